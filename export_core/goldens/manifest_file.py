"""The file golden.yaml, written and read: the same bytes for the same manifest, one error for a bad file.

Below are the rules for a manifest that its types do not express. A manifest that was loaded follows all of them.
"""

import datetime
import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from export_core.artifact.hlo_sharding import Spec
from export_core.artifact.numerics import REQUIRED
from export_core.base.errors import Problem
from export_core.base.patterns import problem_of_pattern
from export_core.base.text import plural, schema_problem
from export_core.base.tolerances import problem_of_name, read_amount
from export_core.base.untrusted import read_regular
from export_core.base.yaml_text import decode_yaml
from export_core.goldens.adopted_mesh import parse_specs
from export_core.goldens.arrays import GoldenError
from export_core.goldens.manifest import FORMAT, Check, Manifest
from export_core.goldens.restoring import restoring_unread


class UnreadableManifestError(GoldenError):
    """An error for a golden.yaml that is missing, is no manifest, or breaks a rule: its golden can only be replaced."""


class _ManifestDumper(yaml.SafeDumper):
    """A YAML dumper that quotes text with line breaks, of which PyYAML folds some (U+0085) in other styles."""

    def text(self, value: str) -> yaml.ScalarNode:
        """Return text as a YAML string that reads back unchanged."""
        style = None if value.splitlines() in ([], [value]) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_ManifestDumper.add_representer(str, _ManifestDumper.text)


def dump_manifest(manifest: Manifest) -> bytes:
    """Return golden.yaml as bytes; equal manifests give equal bytes.

    Fields are in order, but `format` is first, since readers look there.
    """
    data = msgspec.to_builtins(manifest, builtin_types=(datetime.date,))
    optional = ("factors", "packages", "flattened", "inputs_made", "inputs_rule", "origin", "instruction_set", "noise")
    for field in (*optional, "converted_from"):
        if not data[field]:  # left out, so that a new field does not change the bytes of other goldens
            del data[field]
    if manifest.reproducible:  # left out, since it is true of nearly all
        del data["reproducible"]
    ordered = {"format": data.pop("format"), **data}
    return yaml.dump(ordered, Dumper=_ManifestDumper, sort_keys=False, allow_unicode=True, width=120).encode()


def load_manifest(path: Path) -> Manifest:
    """Read a golden.yaml. Raises `GoldenError`, which names the file and the field, also if only a rule is broken.

    The error is `UnreadableManifestError` if the golden can only be replaced.
    """
    try:
        text = read_regular(path)
    except FileNotFoundError:
        problem = "expected a golden's manifest, found no such file."
        raise UnreadableManifestError.about(Problem(path, problem, advice=restoring_unread(path.parent))) from None
    except OSError as error:
        raise GoldenError.about(Problem(path, f"cannot read this manifest: {error.strerror}.")) from None
    try:
        manifest = _decode_manifest(text)
    except _NewerFormatError as error:
        raise _newer_format(path, error.version) from None
    except msgspec.MsgspecError as error:
        line = _line_of_conflict(text)
        found = f"found a merge conflict in line {line}" if line else schema_problem(error)
        problem = f"not a golden's manifest: {found}."
        raise UnreadableManifestError.about(Problem(path, problem, advice=restoring_unread(path.parent))) from None
    for field, problem in problems(manifest):
        raise UnreadableManifestError.about(Problem(path, problem, field, advice=restoring_unread(path.parent)))
    return manifest


def _line_of_conflict(text: bytes) -> int:
    """Return the line of the first mark that git leaves where both sides of a merge changed a file; 0 if none."""
    marked = (number for number, line in enumerate(text.split(b"\n"), 1) if line.startswith(b"<<<<<<< "))
    return next(marked, 0)


@functools.lru_cache(maxsize=1024)  # a command reads its goldens again and again, and YAML takes most of its time
def _decode_manifest(text: bytes) -> Manifest:
    fields = decode_yaml(text)
    _refuse_newer(fields)
    return msgspec.convert(fields, Manifest, builtin_types=(datetime.date,))


def check_manifest(manifest: Manifest, where: str) -> None:
    """Raise `GoldenError` for a manifest that breaks a rule. `where` names the manifest in the message.

    After this check, no name in the manifest leads out of its folder.
    """
    for field, problem in problems(manifest):
        raise GoldenError.about(Problem(where, problem, field))


def refuse_newer_format(path: Path) -> None:
    """Raise `GoldenError` for a manifest that a newer version of this tool wrote. A damaged one is accepted."""
    try:
        _refuse_newer(decode_yaml(read_regular(path)))
    except _NewerFormatError as error:
        raise _newer_format(path, error.version) from None
    except (OSError, msgspec.MsgspecError):  # a damaged or missing one may be overwritten
        pass


class _NewerFormatError(Exception):
    """A manifest in a format that a newer version of this tool writes."""

    def __init__(self, version: int) -> None:
        self.version = version


def _refuse_newer(fields: Any) -> None:
    # Before the rest is checked: a newer manifest may have fields that would be reported as damage.
    version = msgspec.convert(fields, _Format).format
    if version > FORMAT:
        raise _NewerFormatError(version)


def _newer_format(path: Path, version: int) -> GoldenError:
    problem = f"manifest format {version}; this pytest-jaxexport reads up to {FORMAT}."
    return GoldenError.about(Problem(path, problem, advice="Upgrade pytest-jaxexport."))


class _Format(msgspec.Struct):
    """The only field that every version of golden.yaml has. It is read before all others, which may be unknown."""

    format: int


MOST_DEVICES = 1 << 16
"""The most devices of a mesh: no machine simulates more."""
MOST_RUNS = 1000  # The most runs with moved inputs, of which a golden has six.

# Not in the name of a file or a folder on Windows either, where goldens may be checked out.
_NOT_IN_NAMES = frozenset('/\\:*?"<>|\0')
_VERSION = (re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*"), "a version such as 0.12.0")
_READER = (re.compile(rf"([A-Za-z][A-Za-z0-9_]*==)?{_VERSION[0].pattern}"), "a reader: 0.12.0, tensorflow==2.21.0")
_PLATFORM = (re.compile(r"[A-Za-z0-9_]+"), "a platform such as cpu")
_SHA256 = (re.compile(r"[0-9a-f]{64}"), "a SHA-256 of 64 hexadecimal digits")
_LARGEST = 1 << 63


Problems = Iterator[tuple[str, str]]


def is_plain_name(name: str) -> bool:
    """Return whether every system allows this name for a file or a folder, and the name leads to no other folder."""
    return not problem_of_plain_name(name)


def problem_of_plain_name(name: str) -> str:
    """Return why a system does not allow this name for a file or a folder, such as ``with '/'``; "" if all allow it."""
    wrong = next((letter for letter in name if letter in _NOT_IN_NAMES or not letter.isprintable()), "")
    if wrong or not name:
        return f"with {wrong!a}" if name else "empty"
    if name[0] == "." or name[-1] in ". ":
        return f"with {name[0]!a} at its beginning" if name[0] == "." else f"with {name[-1]!a} at its end"
    return ""


def problems(manifest: Manifest) -> Problems:
    """Yield everything that is wrong with a manifest, each problem as (field, message)."""
    if not is_plain_name(manifest.case):
        problem = problem_of_plain_name(manifest.case)
        yield "case", f"expected the name of a folder, found {manifest.case!r}, {problem}."
    for field, text, (pattern, expected) in _texts(manifest):
        if not pattern.fullmatch(text):
            yield field, f"expected {expected}, found {text!r}."
    for name, digest in manifest.files.items():
        if not is_plain_name(name) or name == "golden.yaml":
            yield "files", f"expected names of files beside the manifest, found {name!r}."
        if not _SHA256[0].fullmatch(digest):
            yield "files", f"{name}: expected {_SHA256[1]}, found {digest!r}."
    yield from _options(manifest)
    yield from _comparison(manifest)
    yield from _noise(manifest)
    if manifest.origin and not 0 <= (manifest.origin.seed or 0) < _LARGEST:
        yield "origin.seed", f"expected a number of 63 bits, found {manifest.origin.seed}."
    for number, check in enumerate(manifest.checks):
        for problem in _check(check, manifest):
            yield f"checks[{number}]", problem
    names = [check.name for check in manifest.checks]
    if len({*names}) < len(names) or "" in names:
        yield "checks", "expected a name for each, and no name twice."


def _texts(manifest: Manifest) -> Iterator[tuple[str, str, tuple[re.Pattern[str], str]]]:
    """Yield the fields whose text must match a pattern, as (field, text, (pattern, what it matches in words))."""
    yield "writer.jax", manifest.writer.jax, _VERSION
    yield "writer.jaxlib", manifest.writer.jaxlib, _VERSION
    yield "writer.platform", manifest.writer.platform, _PLATFORM
    for platform in manifest.options.platforms:
        yield "options.platforms", platform, _PLATFORM
    for platform in manifest.options.refused_on:
        yield "options.refused_on", platform, _PLATFORM
    if manifest.noise:
        yield "noise.jaxlib", manifest.noise.jaxlib, _VERSION
    if manifest.origin and manifest.origin.outputs_by:
        yield "origin.outputs_by", manifest.origin.outputs_by, _VERSION
    if original := manifest.converted_from:
        yield "converted_from.sha256", original.sha256, _SHA256
        yield "converted_from.reader", original.reader, _READER
        if original.module_by:
            yield "converted_from.module_by", original.module_by, _VERSION


def _options(manifest: Manifest) -> Problems:
    options = manifest.options
    yield from _mesh("options.mesh", options.mesh)
    for field, number in (
        ("vjp_order", options.vjp_order),
        ("calling_convention_version", options.calling_convention_version or 0),
    ):
        if not 0 <= number < MOST_DEVICES:
            yield f"options.{field}", f"expected a whole number from 0 to {MOST_DEVICES - 1}, found {number}."
    for name in options.register:
        # A name and not a path: the reader imports the copy that is in this golden, and nothing else.
        if not all(part.isidentifier() for part in name.split(".")):
            yield "options.register", f"expected the dotted name of a Python module, found {name!r}."
        elif f"{name}.register.py" not in manifest.files:
            yield "options.register", f"{name}: expected its copy {name}.register.py under `files`, found none."
    if options.in_specs and manifest.is_adopted:
        try:
            fits = len(adopted_specs(manifest)) == len(manifest.signature.inputs)
        except GoldenError:
            fits = False
        if not fits:
            yield "options.in_specs", f"expected a PartitionSpec or null for each argument, found {options.in_specs}."
    if options.without_outputs:
        if "cpu" in options.platforms or "platform" in options.disabled_checks:
            yield "options.without_outputs", "expected none for an artifact that readers run on cpu."
        if "outputs.npz" in manifest.files:
            yield "files", "expected no outputs.npz, since the golden is `without_outputs`."
    for name, value in manifest.flags.items():
        if isinstance(value, int) and abs(value) >= _LARGEST:
            yield f"flags.{name}", f"expected a number of 64 bits, found one of {len(str(value))} digits."


def adopted_specs(manifest: Manifest) -> tuple[Spec | None, ...]:
    """Return how a reader shards each flat argument of an adopted artifact, as its manifest says.

    Empty for an artifact that a test exported: such an artifact itself contains its specs.
    """
    # An artifact that a test exported with specs contains them.
    return _specs(manifest.options.in_specs if manifest.is_adopted else ())


def check_specs(check: Check) -> tuple[Spec | None, ...]:
    """Return how a further call shards each flat argument; empty if the check does not say it."""
    return _specs(check.in_specs)


def _specs(given: Sequence[str | None]) -> tuple[Spec | None, ...]:
    return parse_specs(", ".join(map(str, given))) if given else ()


def _comparison(manifest: Manifest) -> Problems:
    comparison = manifest.comparison
    module, colon, function = comparison.compare.partition(":")
    if problem := problem_of_name(comparison.compare):
        yield "comparison", problem
    elif colon and not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
        yield "comparison", f"expected module:function, found {comparison.compare!r}."
    for field in ("rtol", "atol", "ulp"):
        amount: Any = getattr(comparison, field)
        if amount is not None:
            try:
                read_amount(amount, whole=field == "ulp")
            except ValueError as error:
                yield f"comparison.{field}", str(error)
    outputs = [output for group in manifest.factors for output in group.outputs]
    count = len(manifest.signature.outputs)
    if len({*outputs}) < len(outputs) or not all(0 <= output < count for output in outputs):
        yield "factors", f"expected numbers of its {plural(count, 'output')}, each once, found {outputs}."
    for group in manifest.factors:
        if group.compare not in REQUIRED:
            yield "factors", f"expected a comparator of {', '.join(REQUIRED)}, found {group.compare!r}."


def _noise(manifest: Manifest) -> Problems:
    record = manifest.noise
    if record is None:
        return
    if "noise.npz" not in manifest.files:
        yield "noise", "expected noise.npz under `files`, found none."
    for name, runs in (("moved", record.moved), ("inside", record.inside), ("amplified", record.amplified)):
        if not 0 <= runs <= MOST_RUNS:
            yield f"noise.{name}", f"expected a number of runs from 0 to {MOST_RUNS}, found {runs}."
    failed_in = {name.rpartition("/")[0] for name in record.failed}
    if unknown := [name for name in record.unmeasured if name not in failed_in]:
        found = ", ".join(map(repr, unknown))
        yield "noise.unmeasured", f"expected calls whose runs are under noise.failed, found {found}."
    counts = {f"jumping.{name}": pair for name, pair in record.jumping.items()}
    for name, output in (record.undecided_outputs or {}).items():
        counts[f"undecided_outputs.{name}"] = (output.elements, output.of)
    for name, (count, size) in counts.items():
        if not 0 < count <= size < _LARGEST:
            problem = f"expected a number of elements from 1 to the size of their output, found {count} of {size}."
            yield f"noise.{name}", problem
    for name, count in record.unstable.items():
        if not 0 < count < _LARGEST:
            yield f"noise.unstable.{name}", f"expected a number of elements from 1 to 2**63 - 1, found {count}."


def _check(check: Check, manifest: Manifest) -> Iterator[str]:
    for field in ("inputs", "outputs"):
        # A file that is not listed has no hash, and `../other` is no file of this golden.
        if (name := getattr(check, field)) is not None and name not in manifest.files:
            yield f"{field}: expected one of `files`, found {name!r}."
    if manifest.options.without_outputs:
        if check.outputs is not None:
            yield "expected no `outputs`, since the golden is `without_outputs`."
    elif (check.outputs is None) == (check.refused is None):
        yield "expected either `outputs` or `refused`."
    if check.refused is not None and (problem := problem_of_pattern(check.refused)):
        yield f"refused: {problem}"
    if not check.name.isprintable() or check.name.startswith("."):
        yield f"name: expected a printable name that does not begin with a dot, found {check.name!r}."
    if not 0 <= check.vjp < MOST_DEVICES:
        yield f"vjp: expected the order of a derivative, from 0 to {MOST_DEVICES - 1}, found {check.vjp}."
    yield from (problem for _, problem in _mesh("mesh", check.mesh))
    try:
        fits = len(check_specs(check)) in (0, len(manifest.signature.inputs))
    except GoldenError:
        fits = False
    if not fits:
        yield f"in_specs: expected a PartitionSpec or null for each argument, found {check.in_specs}."


def _mesh(field: str, mesh: Mapping[str, int]) -> Problems:
    if any(size < 1 for size in mesh.values()) or math.prod(mesh.values()) > MOST_DEVICES:
        yield field, f"expected sizes of 1 or more that make at most {MOST_DEVICES} devices, found {dict(mesh)}."
