"""What does golden.yaml say about a golden?"""

from __future__ import annotations

import datetime
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from export_core.goldens.errors import GoldenError

FORMAT = 1
"""Version of golden.yaml. A newer one is refused: it may mean what this version cannot check."""

_QUOTED = re.compile(r"^.*\n[ \t]*\^[ \t]*$", re.MULTILINE)


class Writer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who exported it. `built` is the build date of the jaxlib, from the release calendar."""

    jax: str
    jaxlib: str
    built: datetime.date
    python: str
    platform: str

    @property
    def id(self) -> str:
        """Name of the golden's folder: ``0.12.0.1-cpu``, or ``0.11.2-jax0.12.0.1-cpu`` where jax and jaxlib differ."""
        jax = "" if self.jax == self.jaxlib else f"-jax{self.jax}"
        return f"{self.jaxlib}{jax}-{self.platform}"


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How it was exported. What has its default is not written down.

    `allow` and `disabled_checks` map what was accepted to the reason for it. `mesh` maps axis names to sizes, in order; empty
    for one device. `register` names the modules that the reader imports first; the golden holds a copy of each. `refused_on` lists
    platforms that it was not exported for, and on which its refusal is checked.
    """

    platforms: tuple[str, ...]
    allow: dict[str, str] = {}
    disabled_checks: dict[str, str] = {}
    vjp_order: int = 0
    symbolic_shapes: tuple[str | None, ...] = ()
    constraints: tuple[str, ...] = ()
    mesh: dict[str, int] = {}
    in_specs: tuple[str | None, ...] = ()
    calling_convention_version: int | None = None
    ignore_forward_compatibility: bool = False
    register: tuple[str, ...] = ()
    refused_on: tuple[str, ...] = ()

    @property
    def devices(self) -> int:
        """How many devices it was exported for, as its mesh says."""
        return math.prod(self.mesh.values())


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One more use of the artifact, after the plain call with `inputs.npz`, and what must come of it.

    `vjp` is the order of the derivative that is called, 0 for the function itself. `inputs` and `outputs` are files of the
    golden: flat arrays; without `inputs` those of the plain call are taken. Without `outputs` the call must be refused, with a
    message in which `refused` is found (a regular expression). `mesh` is the mesh of the call where it is another one;
    `spread` puts the arguments on it in pieces.
    """

    name: str
    vjp: int = 0
    inputs: str | None = None
    outputs: str | None = None
    refused: str | None = None
    mesh: dict[str, int] = {}
    spread: bool = False

    def expects(self, said: str) -> bool:
        """Whether a refusal that says this is the one that must come. XLA quotes lines of source above a caret: those do not count."""
        return self.refused is not None and re.search(self.refused, _QUOTED.sub("", said)) is not None


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How outputs are compared: the comparator's name, or ``module:function``, and tolerances.

    A number is for every dtype, a mapping for those that it names; null stands for the default of each dtype (of `ulp`: none).
    """

    compare: str = "allclose"
    rtol: float | dict[str, float] | None = None
    atol: float | dict[str, float] | None = None
    ulp: int | dict[str, int] | None = None


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Types as jax prints them (``float32[4,8]``), flat and in order, and the trees that hold them."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    in_tree: str
    out_tree: str


class JaxprSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The jaxpr that was exported, in figures.

    `primitives` counts each primitive by name through all inner jaxprs (of cond, while, scan, jit, custom_vjp and so on), anew for
    each place that uses one. `constants` has the types of the arrays closed over (``float32[3]``), `effects` what jax calls them, sorted.
    """

    primitives: dict[str, int]
    constants: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """golden.yaml. `files` maps each file beside it to its SHA-256; nothing in it depends on the machine or the time.

    `out_shardings` says for more than one device which part of each output lies where.
    """

    case: str
    test: str
    name: str | None
    writer: Writer
    flags: dict[str, bool | int | str | None]
    options: Options
    comparison: Comparison
    signature: Signature
    custom_calls: tuple[str, ...]
    files: dict[str, str]
    checks: tuple[Check, ...] = ()
    out_shardings: tuple[str, ...] = ()
    jaxpr: JaxprSummary | None = None
    format: int = FORMAT

    @property
    def replayed_on(self) -> tuple[str, ...]:
        """The platforms on which there is something to see: where it runs, and where it must be refused."""
        lifted = (self.writer.platform,) if "platform" in self.options.disabled_checks else ()
        return tuple(dict.fromkeys((*self.options.platforms, *lifted, *self.options.refused_on)))


class _Dumper(yaml.SafeDumper):
    """Quotes text with line breaks so that it reads back as it was: PyYAML folds some of them (U+0085) in other styles."""

    def text(self, value: str) -> yaml.ScalarNode:
        """A YAML string."""
        style = None if value.splitlines() in ([], [value]) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _Dumper.text)


def dump_manifest(manifest: Manifest) -> bytes:
    """The same bytes for the same manifest, in the order of its fields, `format` first."""
    data = msgspec.to_builtins(manifest, builtin_types=(datetime.date,))
    ordered = {"format": data.pop("format"), **data}
    return yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120).encode()


def load_manifest(path: Path) -> Manifest:
    """Read a golden.yaml. Raises `GoldenError` naming the file and the field."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise GoldenError(f"{path}: expected a golden's manifest, found no such file. {RESTORE}") from None
    except OSError as error:
        raise GoldenError(f"{path}: cannot read this manifest: {error.strerror}.") from None
    try:
        said = msgspec.yaml.decode(text)  # once: YAML takes most of the time of a matrix that is known
        _refuse_newer(path, said)
        return msgspec.convert(said, Manifest, builtin_types=(datetime.date,))
    except msgspec.MsgspecError as error:
        problem = " ".join(str(error).split())  # what YAML says fills several lines
        raise GoldenError(f"{path}: not a golden's manifest: {problem}. {RESTORE}") from None


def refuse_newer_format(path: Path) -> None:
    """Raise `GoldenError` for a manifest that a newer version of this tool wrote. One that is damaged or missing is nobody's loss."""
    try:
        _refuse_newer(path, msgspec.yaml.decode(path.read_bytes()))
    except (OSError, msgspec.MsgspecError):
        return


def _refuse_newer(path: Path, said: Any) -> None:
    version = msgspec.convert(said, _Format).format
    if version > FORMAT:
        raise GoldenError(
            f"{path}: manifest format {version}; this pytest-jaxexport reads up to {FORMAT}. Upgrade pytest-jaxexport."
        )


class _Format(msgspec.Struct):
    format: int


RESTORE = "Restore the golden from version control, or write it again with `pytest --update-goldens`."
