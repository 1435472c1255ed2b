"""JAX's own goldens as goldens of this project: `nox -s jax_goldens -- [WHEEL|RELEASE] [--goldens DIR]`.

It stores each golden that ships inside jax as a case `jax.FILE.VARIABLE`. The goldens come from a wheel file of jax,
from a release such as 0.12.0.1, whose environment is built if it is missing, or from the installed jax. They are read
as literals: no code of the wheel is run, and no jax is imported. A golden has a bare StableHLO module, so its envelope
is made as JAX's own test runner makes it. Its writer is the first release built on the day of the data or later. Its
outputs are compared as JAX's own test compares them. golden.yaml records this under `origin`.

No golden is run here; the matrix does that. A refused golden is printed with its file and line, and does not stop the
others. The exit code is 2 if a golden is refused, or if there is none.
"""

import argparse
import contextlib
import datetime
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import structs

from export_core.artifact import Aval, Envelope, Tree, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import ByteSpan, Dim
from export_core.artifact.envelope.formats import WIDE_NR_DEVICES, fields_of
from export_core.artifact.main_check import fits
from export_core.base.errors import PREFIX, ExportCompatError
from export_core.base.platforms import PLATFORMS
from export_core.base.text import plural
from export_core.goldens import Comparison, GoldenError, GoldenStore, Manifest, Origin, Writer
from export_core.goldens.adopt import StatedFacts, adopt_artifact
from export_core.goldens.arrays import Array
from export_core.goldens.manifest import UNKNOWN
from export_core.goldens.store import WriteStatus
from export_core.goldens.verify import check_read_whole, is_jax_golden
from export_core.numbers.factorizations import FACTORIZATIONS
from export_core.policy import Policy, find_policy
from export_core.releases import Calendar
from export_core.releases.stable_targets import stable_targets
from studies.from_jax.jax_data import WHOLE, DataError, DataRecord, JaxData, find_data, read_data

CASES = "jax"  # The first part of each case's name.

LEFT_OUT, REFUSED = "left out", "refused"

_TESTDATA_VERSION = 1
_LINEAR_ALGEBRA = {"cholesky", "hessenberg", "triangular", "tridiagonal", *FACTORIZATIONS}
_SINGLE, _DOUBLE = ("float32", "complex64"), ("float64", "complex128")


def main(words: Sequence[str] | None = None) -> int:
    """Store the goldens that the command line names, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="WHEEL|RELEASE", nargs="?", default="", help="[default: the installed jax]")
    parser.add_argument("--goldens", metavar="DIR", help="where they are stored [default: the policy's, else golden]")
    parser.add_argument("--policy", metavar="FILE", help="policy file [default: that of this folder, if it has one]")
    parser.add_argument("--quiet", "-q", action="store_true", help="do not list the goldens that are stored")
    options = parser.parse_args(words)
    try:
        policy = find_policy(Path(), options.policy)
        return store_goldens(options.source, Path(options.goldens or policy.goldens), policy, quiet=options.quiet)
    except ExportCompatError as error:
        print(f"{PREFIX}{error}", file=sys.stderr)
        return error.exit_code


def store_goldens(source: str, goldens: Path, policy: Policy, *, quiet: bool = False) -> int:
    """Store JAX's goldens, print the status of each, and return the exit code.

    Args:
        source: the path of a wheel file of jax, or a release, or "" for the installed jax.
        goldens: the folder to store them in.
        policy: the policy of the project.
        quiet: whether to print only the goldens that are refused.

    Raises:
        ExportCompatError: there is no such jax, or it has no data files.
    """
    data = find_data(source, policy, partial(print, file=sys.stderr))
    counts: Counter[str] = Counter()
    for imported in import_goldens(data, GoldenStore(goldens), policy):
        counts[imported.status] += 1
        if imported.status == REFUSED:
            print(f"{PREFIX}{imported.text}", file=sys.stderr)
        elif not quiet:
            print(imported.text)
    numbers = ", ".join(f"{count} {status}" for status, count in counts.items())
    print(f"{plural(counts.total(), 'golden')} in jax {data.jax}: {numbers or 'none'}")
    # A wheel without goldens is most likely not the one that was meant.
    return 0 if counts and not counts[REFUSED] else 2


class Imported(NamedTuple):
    """The status of a golden of JAX (a `WriteStatus`, LEFT_OUT or REFUSED), and a line of text about it."""

    status: str
    text: str


def import_goldens(data: JaxData, store: GoldenStore, policy: Policy) -> Iterator[Imported]:
    """Store each golden of these data files, in order, and yield its status. A refused golden does not stop the others.

    No golden is run, since JAX's own tests show that its outputs are right.
    """
    calendar = policy.calendar()
    promised = frozenset[str]().union(*map(stable_targets, calendar.versions()))
    for record in (record for name, source in data.files for record in read_data(name, source)):
        if isinstance(record, DataError):
            yield Imported(REFUSED, str(record))
            continue
        if WHOLE in record.fields:
            whole = "a whole Exported, whose inputs and outputs are in a test of JAX and in no wheel"
            yield Imported(LEFT_OUT, f"{record.place}: left out: {whole}")
            continue
        try:
            manifest, files = _golden(record, data.jax, calendar, policy.allow, promised)
            status = WriteStatus.UNCHANGED if _is_stored(manifest, store) else store.write(manifest, files)
            yield Imported(status, f"{manifest.case}/{manifest.writer.id}: {status}, {record.place}")
        except ExportCompatError as error:
            yield Imported(REFUSED, f"{record.place}: {error}")


def _golden(
    record: DataRecord, jax: str, calendar: Calendar, accepted: Mapping[str, str], promised: Collection[str]
) -> tuple[Manifest, dict[str, bytes]]:
    if (testdata_version := record.get("testdata_version", int)) != _TESTDATA_VERSION:
        raise DataError(f"testdata_version: expected {_TESTDATA_VERSION}, found {testdata_version}")
    platform, day = record.get("platform", str), record.get("serialized_date", datetime.date)
    if platform not in PLATFORMS:
        raise DataError(f"platform: expected one of {', '.join(PLATFORMS)}, found {platform!r}")
    inputs, outputs = _arrays(record, "inputs"), _arrays(record, "expected_outputs")
    artifact = read_bytes(encode(_envelope(record, platform, inputs, outputs), _FIELDS), record.place)
    check_read_whole(artifact, accepted)
    # The custom calls that JAX's golden is about: some are on the stable list of later releases only.
    targets: list[str] = record.get("custom_call_targets", list)
    if not all(isinstance(target, str) for target in targets):
        raise DataError("custom_call_targets: expected texts")
    origin = Origin(
        inputs="given",
        outputs="given",
        source=f"jax {jax}: {record.place}",
        derived={
            "writer": f"the first release built from {day} on, the day of the data",
            "envelope": "around a bare module, as JAX's own test runner makes it",
            "comparison": "by what JAX's own test of this operation allows",
        },
    )
    # Not an earlier release, which would read a golden from its own future.
    versions = calendar.versions()
    jaxlib = next((version for version in versions if calendar.built(version) >= day), versions[-1])
    writer_jax = jaxlib if jaxlib in calendar.jax else calendar.release(jaxlib).jax
    built = calendar.built(jaxlib)
    writer = Writer(jax=writer_jax, jaxlib=jaxlib, built=built, python=UNKNOWN, platform=platform)
    # No release wrote these bytes, so they contradict any writer. Readers accept them only for goldens that are listed.
    if not is_jax_golden(artifact, writer):
        raise DataError(
            "expected a golden of JAX that this version of pytest-jaxexport knows by its SHA-256, found another one. "
            "A newer version may know it."
        )
    given = StatedFacts(origin=origin, nothing_to_compare="JAX's")
    manifest, files = adopt_artifact(artifact, inputs, outputs, f"{CASES}.{record.name}", writer, given)
    allow = {target: "JAX has this golden of it" for target in targets if target in promised}
    options = structs.replace(manifest.options, allow=allow)
    return structs.replace(manifest, comparison=comparison_of(record.name, outputs), options=options), files


def _is_stored(manifest: Manifest, store: GoldenStore) -> bool:
    """Return whether the same golden is stored already, from any release's wheel.

    It is the same even if its noise has been measured since.
    """
    for golden in store.generations(manifest.case):
        stored = golden.manifest
        facts = [(one.writer, one.options, one.comparison) for one in (stored, manifest)]
        if facts[0] == facts[1] and manifest.files.items() <= stored.files.items():
            with contextlib.suppress(GoldenError):  # it is damaged, and written again
                golden.verify()
                return True
    return False


def comparison_of(name: str, outputs: Sequence[Array]) -> Comparison:
    """Return the comparison that JAX's test of a golden makes, by the operation in the name of its data file.

    Factors that are unique only up to signs, phases or order are compared by their properties, as most of JAX's tests
    do. The tolerances are from tests/export_back_compat_test.py of JAX. If a test states none, they are the defaults of
    `CompatTestBase.run_one_test` and `JaxTestCase.assertAllClose`.
    """
    operation = name.rpartition(".data")[0].rpartition(".")[2].lower().split("_")[1:2]
    if not _LINEAR_ALGEBRA.intersection(operation):
        return Comparison(rtol=1e-7, atol=dict.fromkeys(_SINGLE, 1e-6) | dict.fromkeys(_DOUBLE, 1e-15))
    (kind,) = operation
    factors = FACTORIZATIONS.get(kind)
    are_factors = factors is not None and len(outputs) in factors.counts and outputs[0].dtype.kind in "fc"
    return Comparison(
        compare=kind if are_factors else "allclose",
        rtol=dict.fromkeys(_SINGLE, 1e-3) | dict.fromkeys(_DOUBLE, 1e-5),
        atol=dict.fromkeys(_SINGLE, 1e-4) | dict.fromkeys(_DOUBLE, 1e-12),
    )


_FIELDS = (*fields_of(WIDE_NR_DEVICES), "nr_devices")
"""The fields of the envelopes that are made, which every jax since 0.4.24 reads. The number of devices is in two of
them, of 16 and of 32 bits."""


def _envelope(record: DataRecord, platform: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Envelope:
    """Return an envelope around a golden's module, as `CompatTestBase.run_serialized` of JAX makes an `Exported`.

    Raises:
        DataError: the module does not fit the golden's inputs, outputs or other fields.
    """
    code = record.get("mlir_module_serialized", bytes)
    main = read_bytes(code, record.place).module.main
    if main is None:
        raise DataError("mlir_module_serialized: expected a function main, found none")
    in_avals = tuple(_avals("inputs", main.inputs, inputs))
    _ = tuple(_avals("expected_outputs", main.outputs, outputs))  # a check only: the runner declares sizes, no symbols
    out_avals = tuple(Aval(output.dtype.name, output.shape) for output in outputs)
    devices = record.get("nr_devices", int) if "nr_devices" in record.fields else 1
    version = record.get("xla_call_module_version", int)
    if not (0 < devices < 1 << 15 and 0 < version < 1 << 15):
        raise DataError(f"nr_devices and xla_call_module_version: expected numbers from 1, found {devices}, {version}")
    leaf = Tree("leaf")
    return Envelope(
        fun_name="run_serialized",
        in_tree=Tree("tuple", (Tree("tuple", (leaf,) * len(inputs)), Tree("dict"))),
        in_avals=in_avals,
        out_tree=Tree("tuple", (leaf,) * len(outputs)),
        out_avals=out_avals,
        platforms=(platform,),
        nr_devices=devices,
        in_shardings=(None,) * len(inputs),
        out_shardings=(None,) * len(outputs),
        ordered_effects=(),
        unordered_effects=(),
        disabled_checks=(),
        calling_convention_version=version,
        module_kept_var_idx=tuple(range(len(inputs))),
        uses_global_constants=any(isinstance(dim, str) for aval in in_avals for dim in aval.shape),
        vjp=None,
        jax_version=None,
        serialization_version=2,  # the only one that jax 0.4.24 to 0.4.34 take
        format_range=(WIDE_NR_DEVICES, WIDE_NR_DEVICES),
        slots=_FIELDS,
        unknown_fields=(),
        module_source=ByteSpan(code, 0, len(code)),
    )


def _avals(key: str, types: Sequence[str], arrays: Sequence[Array]) -> Iterator[Aval]:
    """Yield the shapes and dtypes of arrays, with a symbol for each dimension that is dynamic in `main`.

    JAX's tests name the symbols. Here dimensions of the same size have the same symbol, such as ``d3``.

    Args:
        key: the field of the golden that has the arrays, for messages.
        types: their types in the function `main`.
        arrays: the arrays.

    Raises:
        DataError: an array does not have its type in `main`.
    """
    if len(types) != len(arrays):
        raise DataError(f"{key}: expected {plural(len(types), 'array')}, as in main, found {len(arrays)}")
    for kind, array in zip(types, arrays, strict=True):
        sizes = kind.removeprefix("tensor<").split("x")
        shape: Iterable[Dim] = (
            f"d{size}" if declared == "?" else size for declared, size in zip(sizes, array.shape, strict=False)
        )
        aval = Aval(array.dtype.name, tuple(shape))
        if len(aval.shape) != array.ndim or not fits(kind, aval):
            raise DataError(f"{key}: expected {kind}, as in main, found {array.dtype.name}{list(array.shape)}")
        yield aval


def _arrays(record: DataRecord, key: str) -> tuple[Array, ...]:
    values = record.get(key, tuple, list)
    if not all(isinstance(value, np.ndarray) for value in values):
        raise DataError(f"{key}: expected arrays, found {', '.join(type(value).__name__ for value in values)}")
    return tuple(values)


if __name__ == "__main__":
    sys.exit(main())
