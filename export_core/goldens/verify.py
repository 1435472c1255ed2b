"""The check that goldens are complete, and that their claims about themselves are true.

Every file must be as its golden.yaml lists it, and every artifact is read whole. Writer, build date and conversion must
be those that the artifact's bytes and the calendar show.
"""

import datetime
import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from export_core.artifact import Artifact, ArtifactError, Envelope
from export_core.artifact.audit import unread_findings
from export_core.artifact.envelope.encode import encode
from export_core.artifact.writers import contradiction
from export_core.base.errors import Problem
from export_core.base.json_text import decode_json
from export_core.base.text import plural, shortened
from export_core.base.untrusted import read_regular
from export_core.goldens.arrays import GoldenError
from export_core.goldens.conversion_record import SUFFIX, ConversionRecord
from export_core.goldens.manifest import Manifest, Writer, signature_of
from export_core.goldens.manifest_file import dump_manifest
from export_core.goldens.restoring import restoring
from export_core.goldens.store import (
    ARTIFACT,
    INPUTS,
    MANIFEST,
    NOISE,
    OUTPUTS,
    Golden,
    GoldenStore,
    no_goldens,
    readable_goldens,
)
from export_core.releases import Calendar, ReleaseError, load_calendar

MOST = 10  # The most goldens that one error names: a clone without the files of Git LFS would list all.


def check_read_whole(artifact: Artifact, allow: Mapping[str, str]) -> None:
    """Raise `GoldenError` for an artifact with a part that the reader does not know, unless `allow` gives a reason.

    Such a part may hold a custom call that no audit sees, so the artifact is neither stored nor run.
    """
    problems = [str(finding) for finding in unread_findings(artifact, allow) if not finding.ok]
    if problems:
        raise GoldenError("\n".join(f"{artifact.name}: {problem}" for problem in problems))


def verify_goldens(
    store: GoldenStore,
    calendar: Calendar,
    audited: Callable[[Golden, Artifact], str] | None = None,
    *,
    all_known: bool = True,
    chosen: Sequence[Golden] = (),
) -> list[Golden]:
    """Return every golden of the store, or those that are `chosen`, after checking that all are complete and true.

    Besides the hashes of files, `check_bytes` compares each golden with its artifact's bytes, and `check_dates` its
    build date with the calendar.

    Args:
        store: all goldens.
        calendar: all known releases.
        audited: a function that returns why an artifact must not be compiled, or "". A matrix leaves this to the audit
            of each cell.
        all_known: whether a writer that the calendar lacks is an error, as in `check_dates`.
        chosen: the goldens of the store that are meant; without any, all are.

    Raises:
        GoldenError: Goldens are not complete or not true, and the message names them; or there is no golden at all.
    """
    goldens, unreadable = ([*chosen], {}) if chosen else readable_goldens(store)
    problems = [*map(str, unreadable.values())]
    if not goldens and not problems:
        raise GoldenError(no_goldens(store.root))
    for golden in goldens:
        # Hashes show damage since the writing; reading shows an artifact that was damaged before its hash was taken.
        try:
            golden.verify()
            artifact = golden.read_artifact()
            check_bytes(golden, artifact, calendar)
            if audited and (problem := audited(golden, artifact)):
                raise GoldenError(f"{artifact.name}: {problem}")
        except (GoldenError, ArtifactError) as error:
            problems.append(str(error))
    if problems:
        more = len(problems) - MOST
        rest = [f"  and {plural(more, 'more golden')}"] if more > 0 else []
        raise GoldenError("\n".join([*problems[:MOST], *rest]))
    check_dates(goldens, calendar, all_known=all_known)
    return goldens


def check_dates(goldens: Iterable[Golden], calendar: Calendar, *, all_known: bool = True) -> None:
    """Raise `GoldenError` for each golden whose build date is not the one that the calendar has for its writer.

    The message names file and line. With `all_known`, a writer that the calendar lacks is an error too, since nothing
    confirms the date that it claims.
    """
    problems = []
    for golden in goldens:
        writer = golden.manifest.writer
        try:
            built = calendar.built(writer.jaxlib)
        except ReleaseError as error:  # its message has similar names and what to do
            if all_known:
                problems.append(f"{_line(golden, 'jaxlib')}: writer.jaxlib: {error}")
            continue
        if built != writer.built:
            problems.append(
                f"{_line(golden, 'built')}: writer.built: expected {built}, the build date of jaxlib "
                f"{writer.jaxlib} in the calendar, found {writer.built}. {restoring(golden.manifest)}"
            )
    if problems:
        raise GoldenError("\n".join(problems))


def check_claims(goldens: Iterable[Golden], calendar: Calendar, *, all_known: bool = True) -> None:
    """Raise `GoldenError` for a golden whose bytes or whose date contradict its manifest.

    Raises `ArtifactError` for an artifact without a header. With `all_known`, the calendar must have every writer: see
    `check_dates`.
    """
    goldens = list(goldens)
    for golden in goldens:
        check_bytes(golden, golden.read_artifact(), calendar)
    check_dates(goldens, calendar, all_known=all_known)


def is_unusual(manifest: Manifest) -> bool:
    """Return whether, by its manifest, an artifact may differ from what its writer exported, or cannot run on a CPU.

    It may differ if it was converted, or if its writer was derived and not recorded.
    """
    derived = manifest.origin is not None and "writer" in manifest.origin.derived
    return manifest.converted_from is not None or derived or "cpu" not in manifest.replayed_on


def check_bytes(golden: Golden, artifact: Artifact, calendar: Calendar) -> None:
    """Raise `GoldenError` if the artifact's own bytes contradict its golden.

    Under another writer's name, or as a converted artifact, a golden would leave its window early. With fewer platforms
    or checks, it would have fewer cells, or cells that show less. Raises `ArtifactError` for an artifact without a
    header.
    """
    writer = golden.manifest.writer
    entry = calendar.jaxlib.get(writer.jaxlib)
    problem = contradiction(artifact, writer.jax, writer.jaxlib, entry.stablehlo) if entry else ""
    if golden.manifest.converted_from is not None:
        _check_conversion(golden, artifact, by_writer=entry is not None and not problem)
    elif problem and not is_jax_golden(artifact, writer):
        raise GoldenError(f"{_line(golden, 'jaxlib')}: writer: {problem} {restoring(golden.manifest)}")
    if artifact.envelope is not None:
        for field, *values in _shown_by_bytes(golden.manifest, artifact, artifact.envelope):
            if values[0] != values[1]:
                expected, found = (
                    (", ".join(map(str, value)) or "none") if isinstance(value, (tuple, list)) else value
                    for value in values
                )
                where = f"{golden.folder / MANIFEST}: {field}"
                raise GoldenError(
                    f"{where}: expected {expected}, as in {ARTIFACT}, found {found}. {restoring(golden.manifest)}"
                )


def check_forms(goldens: Iterable[Golden]) -> None:
    """Raise `GoldenError` for each golden.yaml that is not written as this package writes it: somebody has edited it.

    No hash protects golden.yaml, so a changed value is found only where the artifact, the calendar or another field
    contradicts it.
    """
    if problems := [problem for golden in goldens for problem in _edits(golden)]:
        raise GoldenError.about(*problems)


def _edits(golden: Golden) -> Iterator[Problem]:
    """Yield the signs that a golden.yaml was edited: a line in another form, or a file of arrays that no call uses."""
    path, form = golden.folder / MANIFEST, dump_manifest(golden.manifest).decode()
    lines = itertools.zip_longest(form.splitlines(), read_regular(path).decode(errors="replace").splitlines())
    for number, (expected, found) in enumerate(lines, 1):
        if expected != found:
            wanted = "no more lines" if expected is None else repr(shortened(expected, 60))
            given = "no more lines" if found is None else repr(shortened(found, 60))
            problem = f"edited by hand: expected {wanted}, as pytest-jaxexport writes it, found {given}."
            yield Problem(path, problem, line=number, advice=restoring(golden.manifest))
            break
    of_calls = {name for check in golden.manifest.checks for name in (check.inputs, check.outputs)}
    for name in golden.manifest.files:
        if name.endswith(".npz") and name not in {INPUTS, OUTPUTS, NOISE, *of_calls}:
            problem = f"expected the call of {name} under `checks`, found none."
            yield Problem(path, problem, "files", advice=restoring(golden.manifest))


def _shown_by_bytes(manifest: Manifest, artifact: Artifact, envelope: Envelope) -> list[tuple[str, Any, Any]]:
    """Return each field of a manifest that its artifact shows too, as (name, value in artifact, value in manifest)."""
    options, signature = manifest.options, signature_of(envelope)
    fields: list[tuple[str, Any, Any]] = [
        ("options.platforms", envelope.platforms, options.platforms),
        ("options.mesh", f"{plural(envelope.nr_devices, 'device')}", f"{plural(options.devices, 'device')}"),
        ("custom_calls", tuple(sorted({call.target for call in artifact.custom_calls})), manifest.custom_calls),
    ]
    fields += [
        (f"signature.{name}", getattr(signature, name), getattr(manifest.signature, name))
        for name in signature.__struct_fields__
    ]
    if options.calling_convention_version is not None:
        fields.append(
            (
                "options.calling_convention_version",
                envelope.calling_convention_version,
                options.calling_convention_version,
            )
        )
    # An adopted artifact has no test with a marker for these, and no calls of its derivatives.
    if manifest.test:
        fields.append(("options.vjp_order", envelope.vjp_order, options.vjp_order))
        disabled = {check.kind for check in envelope.disabled_checks if check.target is None}
        now = disabled & {*options.disabled_checks}
        fields.append(("options.disabled_checks", sorted(disabled), sorted(now)))
        runs = not options.without_outputs and not {manifest.writer.platform, *now}.isdisjoint(
            (*options.platforms, "platform")
        )
        if envelope.nr_devices > 1 and runs:
            fields.append(("out_shardings", len(envelope.out_avals), len(manifest.out_shardings)))
    if not options.without_outputs:
        called = {check.vjp for check in manifest.checks if check.outputs is not None}
        orders = list(range(1, options.vjp_order + 1))
        fields.append(("checks", f"calls of derivatives {orders}", f"calls of derivatives {sorted(called - {0})}"))
    return fields


def _check_conversion(golden: Golden, artifact: Artifact, *, by_writer: bool) -> None:
    """Raise `GoldenError` unless a golden that claims to be converted has a matching record and a converted artifact.

    `by_writer` is whether nothing in the artifact contradicts its writer. Then the artifact has to be encoded as
    `jaxexport convert` encodes an envelope, which no jax does.
    """
    origin, name = golden.manifest.converted_from, f"{ARTIFACT}{SUFFIX}"
    where = f"{golden.folder / MANIFEST}: converted_from"
    if name not in golden.manifest.files:
        raise GoldenError(
            f"{where}: expected the record {name} of the conversion under `files`, found none. "
            f"{restoring(golden.manifest)}"
        )
    try:
        record: ConversionRecord = decode_json(golden.content(name), ConversionRecord)
    except msgspec.MsgspecError as error:
        raise GoldenError(
            f"{golden.folder / name}: not the record of a conversion: {error}. {restoring(golden.manifest)}"
        ) from None
    if origin != record.converted_from or record.sha256 != artifact.sha256:
        raise GoldenError(
            f"{where}: expected the conversion that {name} records, found another one. {restoring(golden.manifest)}"
        )
    envelope = artifact.envelope
    if record.converted_from.sha256 == artifact.sha256 or (
        by_writer and (envelope is None or encode(envelope) != bytes(artifact.data))
    ):
        raise GoldenError(
            f"{where}: expected a converted artifact, found one as jaxlib {golden.manifest.writer.jaxlib} writes it. "
            f"Delete `converted_from`. {restoring(golden.manifest)}"
        )


def _line(golden: Golden, key: str) -> str:
    """Return the file and the line of a key under `writer`, such as ``golden.yaml:5``; else only the file."""
    path = golden.folder / MANIFEST
    try:
        lines = read_regular(path).decode(errors="replace").splitlines()
    except OSError:
        return str(path)
    # Only the writer is a table with these keys, and its keys are indented.
    number = next((number for number, line in enumerate(lines, 1) if line.startswith(f"  {key}: ")), None)
    return f"{path}:{number}" if number else str(path)


JAX_GOLDENS = Path(__file__).with_name("data") / "jax_goldens.txt"
"""The list of JAX's own goldens: the day of the data, and the SHA-256 of the module, a line for each.

Builds between two releases wrote them, so no writer's bytes fit: they are the only goldens whose writer their bytes may
contradict. `python -m tools.jax_goldens` adds those of a new jax.
"""


@functools.cache
def days_of_jax_goldens() -> dict[str, list[datetime.date]]:
    """Return the dates of JAX's own goldens that hold a StableHLO module, by the module's SHA-256."""
    table: dict[str, list[datetime.date]] = {}
    for line in JAX_GOLDENS.read_text(encoding="ascii").splitlines():
        day, module = line.split()
        table.setdefault(module, []).append(datetime.date.fromisoformat(day))
    return table


def is_jax_golden(artifact: Artifact, writer: Writer) -> bool:
    """Return whether JAX itself has a golden with the artifact's module, for whose writer `writer` may stand.

    `writer` must be built between the date of JAX's golden and the first known release from that date on.
    """
    calendar = load_calendar()
    built = [calendar.built(version) for version in calendar.versions()]
    for day in days_of_jax_goldens().get(hashlib.sha256(artifact.module.serialized()).hexdigest(), ()):
        first = next((date for date in built if date >= day), None)
        if day <= writer.built <= first if first else writer.built >= built[-1]:
            return True
    return False
