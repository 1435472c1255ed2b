"""golden.yaml, the manifest of a golden: its fields, and how it is written and read."""

from __future__ import annotations

import datetime
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml
from msgspec import structs

from export_core.goldens.errors import GoldenError
from export_core.goldens.noise_record import NoiseRecord
from export_core.goldens.rules import found_in, problems
from export_core.phrases import schema_problem
from export_core.untrusted import decode_yaml, read_regular

if TYPE_CHECKING:
    from export_core.artifact import Envelope

FORMAT = 1
"""Version of golden.yaml. A newer one is refused: it may mean what this version cannot check."""

UNKNOWN = "unknown"
"""The Python of a writer that only its artifact tells of."""

_QUOTED_SOURCE = re.compile(r"^.*\n[ \t]*\^[ \t]*$", re.MULTILINE)
"""A line of source above a caret, as XLA quotes it below an error."""


class Writer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who exported it: versions of jax, jaxlib and Python, and the platform.

    `built` is the jaxlib's date in the calendar. The last two are what jax itself tells builds of jaxlib between two
    releases apart by, where it has them (until 0.4, `xla_extension_version`). They are evidence and no part of who the
    writer is: a released jaxlib has one of each.
    """

    jax: str
    jaxlib: str
    built: datetime.date
    python: str
    platform: str
    jaxlib_extension_version: int | None = None
    xla_extension_version: int | None = None

    @property
    def id(self) -> str:
        """Name of the golden's folder: ``0.12.0.1-cpu``, or ``0.11.2-jax0.12.0.1-cpu`` where jax and jaxlib differ."""
        jax = "" if self.jax == self.jaxlib else f"-jax{self.jax}"
        return f"{self.jaxlib}{jax}-{self.platform}"


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How it was exported. A field that has its default is not written down.

    `allow` and `disabled_checks` map custom-call targets and checks to the reason why they are accepted. `mesh` maps
    axis names to sizes, in order; empty for one device. `in_specs` has a spec for each positional argument, or for each
    flat one of an artifact that was added without its source. `register` names the modules that the reader imports
    first; the golden holds a copy of each. `refused_on` lists platforms that it was not exported for, and on which its
    refusal is checked. `without_outputs` is why the golden has no outputs: readers compile it, and run nothing.
    """

    # Defaults are left out (omit_defaults), so that a new option does not change the bytes of goldens without it.

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
    without_outputs: str = ""

    @property
    def devices(self) -> int:
        """How many devices it was exported for, as its mesh says."""
        return math.prod(self.mesh.values())


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One more call of the artifact, after the plain one with `inputs.npz`, and the result that it must have.

    `vjp` is the order of the derivative that is called, 0 for the function itself. `inputs` and `outputs` are files of
    the golden: flat arrays; without `inputs` those of the plain call are taken. With `refused`
    the call must be refused, with a message that this regular expression matches; any other call has `outputs`, unless
    the golden is one without. `mesh` is the mesh of the call where it is
    another one; `spread` shards the arguments over it.
    """

    name: str
    vjp: int = 0
    inputs: str | None = None
    outputs: str | None = None
    refused: str | None = None
    mesh: dict[str, int] = {}
    spread: bool = False

    def expects(self, message: str) -> bool:
        """Whether a refusal with this message is the expected one.

        Source that XLA quotes does not count: a comment in it may hold the very words that are looked for.
        """
        return self.refused is not None and found_in(_QUOTED_SOURCE.sub("", message), self.refused)


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How outputs are compared: the comparator's name, or ``module:function``, and tolerances.

    A number applies to every dtype, a mapping to those that it names; null means the default of each dtype (of `ulp`:
    none). `rtol` and `atol` are added as in `numpy.allclose`; `ulp` is in units in the last place.
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


def signature_of(envelope: Envelope) -> Signature:
    """The signature that an artifact declares, read from its bytes: the same text whichever jax wrote it."""
    return Signature(
        inputs=tuple(map(str, envelope.in_avals)),
        outputs=tuple(map(str, envelope.out_avals)),
        in_tree=str(envelope.in_tree),
        out_tree=str(envelope.out_tree),
    )


class JaxprSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The jaxpr that was exported, in figures.

    `primitives` counts each primitive by name in all inner jaxprs too (of cond, while, scan, jit, custom_vjp and so
    on), once for each place that uses one. `constants` has the types of the arrays closed over (``float32[3]``),
    `effects` their names in jax, sorted.
    """

    primitives: dict[str, int]
    constants: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()


class Flattened(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The trees of a function whose artifact cannot hold them all: such a node is a tuple of its leaves there.

    `inputs` and `outputs` have the path of each flat argument and result in the function's own trees
    (``args[0].layers[1].weight``, ``kwargs['rate']``, ``result.mean``), `nodes` the types that are tuples instead.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all leaves."""
        return (*self.inputs, *self.outputs)


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of golden.yaml.

    `files` maps each file beside it to its SHA-256; nothing in it depends on the time, and on the machine only by the
    instruction set of its processor, which outputs and noise depend on.

    `out_shardings` says for more than one device which part of each output is on which device. `packages` has the
    version of every package that was installed where `jaxexport backfill` wrote it; for others it is not written down.
    `flattened` is None where the artifact holds the function's own trees. `inputs_made` says that the test gave only
    the types of some arguments (`jax.ShapeDtypeStruct`), and the plugin made their values.
    `instruction_set` is that of the processor that computed the outputs, as XLA calls it (``x86_64 AVX2``), empty where
    nobody knows; `noise` says how the noise of the outputs was measured, None where it was not.
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
    packages: dict[str, str] = {}
    flattened: Flattened | None = None
    inputs_made: bool = False
    instruction_set: str = ""
    noise: NoiseRecord | None = None
    format: int = FORMAT

    @property
    def is_adopted(self) -> bool:
        """Whether it was made of an artifact without its source: nobody knows its writer's Python."""
        return self.writer.python == UNKNOWN

    @property
    def replayed_on(self) -> tuple[str, ...]:
        """The platforms that have a cell: those where it runs, and those where it must be refused."""
        # Without the check of the platform it also runs where it was written, whatever it was exported for.
        lifted = (self.writer.platform,) if "platform" in self.options.disabled_checks else ()
        return tuple(dict.fromkeys((*self.options.platforms, *lifted, *self.options.refused_on)))


def as_stored(manifest: Manifest, stored: Manifest) -> Manifest:
    """The manifest with the evidence of a stored one that is the same golden whatever it says.

    That is its packages; and where it has no extension versions of jaxlib, it was written before they were recorded.
    """
    writer = structs.replace(manifest.writer, jaxlib_extension_version=None, xla_extension_version=None)
    writer = writer if writer == stored.writer else manifest.writer
    return structs.replace(manifest, packages=stored.packages, writer=writer)


class _Dumper(yaml.SafeDumper):
    """Quotes text with line breaks, so that it reads back unchanged.

    PyYAML folds some of them (U+0085) in other styles.
    """

    def text(self, value: str) -> yaml.ScalarNode:
        """A YAML string."""
        style = None if value.splitlines() in ([], [value]) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _Dumper.text)


def dump_manifest(manifest: Manifest) -> bytes:
    """golden.yaml as bytes, the same for the same manifest: fields in order, `format` first, where readers look."""
    data = msgspec.to_builtins(manifest, builtin_types=(datetime.date,))
    for field in ("packages", "flattened", "inputs_made", "instruction_set", "noise"):
        if not data[field]:  # a new field does not change the bytes of goldens without it
            del data[field]
    ordered = {"format": data.pop("format"), **data}
    return yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120).encode()


def load_manifest(path: Path) -> Manifest:
    """Read a golden.yaml. Raises `GoldenError` naming the file and the field, also where only a rule is broken."""
    try:
        text = read_regular(path)
    except FileNotFoundError:
        raise GoldenError(f"{path}: expected a golden's manifest, found no such file. {RESTORE}") from None
    except OSError as error:
        raise GoldenError(f"{path}: cannot read this manifest: {error.strerror}.") from None
    try:
        fields = decode_yaml(text)  # once: YAML takes most of the time of a matrix with all results cached
        _refuse_newer(path, fields)
        manifest = msgspec.convert(fields, Manifest, builtin_types=(datetime.date,))
    except msgspec.MsgspecError as error:
        raise GoldenError(f"{path}: not a golden's manifest: {schema_problem(error)}. {RESTORE}") from None
    check_manifest(manifest, f"{path}")
    return manifest


def check_manifest(manifest: Manifest, where: str) -> None:
    """Raise `GoldenError` for a manifest that breaks a rule: nobody else has to ask where its names lead."""
    for field, problem in problems(manifest):
        raise GoldenError(f"{where}: {field}: {problem} {RESTORE}")


def refuse_newer_format(path: Path) -> None:
    """Raise `GoldenError` for a manifest that a newer version of this tool wrote.

    A damaged or missing one may be overwritten.
    """
    try:
        _refuse_newer(path, decode_yaml(read_regular(path)))
    except (OSError, msgspec.MsgspecError):
        return


def _refuse_newer(path: Path, fields: Any) -> None:
    # Before the rest is checked: a newer manifest may have fields that would be reported as damage.
    version = msgspec.convert(fields, _Format).format
    if version > FORMAT:
        raise GoldenError(
            f"{path}: manifest format {version}; this pytest-jaxexport reads up to {FORMAT}. Upgrade pytest-jaxexport."
        )


class _Format(msgspec.Struct):
    """The one field that every version of golden.yaml has; unknown ones are allowed here."""

    format: int


RESTORE = "Restore the golden from version control, or write it again with `pytest --update-goldens`."
