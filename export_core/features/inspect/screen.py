"""The output of `jaxexport inspect`: an artifact's facts as a screen or as JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from export_core.artifact import Artifact, as_dict, read
from export_core.artifact.artifact import saved_model_in
from export_core.artifact.audit import LAPACK, UNCHECKED, AuditFinding, Payload, only_jax
from export_core.artifact.envelope.formats import format_in_words
from export_core.artifact.readers import CONVERT, Reader
from export_core.artifact.writers import WrittenBy
from export_core.base.layout import wrapped
from export_core.base.named_tuple import TYPE_CHECKING
from export_core.base.streams import NOBODY_READS, drop_output
from export_core.base.text import plural, printable, printable_json, ranges, with_escaped_surrogates, without_commands
from export_core.features.inspect.artifact_facts import (
    RAW,
    Inspection,
    ModuleFacts,
    ReaderFacts,
    RuntimeFacts,
    StableHloPromise,
    describe,
)
from export_core.knowledge import NO, ONE_DEVICE, UNKNOWN, YES_BUT
from export_core.knowledge.replaced_calls import crashes_in_any_export, why_not_replaced
from export_core.policy.stored_terms import terms_here
from export_core.policy.terms import Terms

if TYPE_CHECKING:
    from export_core.policy.load_check import LoadCheck
    from export_core.releases.calendar_entries import CalendarEntry

WIDTH = 14  # of the first column
LINE = 150  # the most characters beside a name; a longer text is wrapped, and --json has all of it
MOST = 8  # the most lines of one kind
REWRITTEN = "it was changed after its export, as by `jaxexport convert`"


def quick_start(words: Sequence[str]) -> None:
    """Print what is in a file and exit, if the command line is only ``FILE [--json]``; otherwise do nothing.

    This skips the import of click for the commonest call of `jaxexport inspect`.

    Raises `ExportCompatError` if the file, the policy, or the project's file of releases cannot be used.
    """
    files = [word for word in words if not word.startswith("-")]
    # An option such as --policy takes a value, which looks like a file here: click knows it. What does not
    # exist may be a golden.
    if len(files) != 1 or set(words) - {*files, "--json"}:
        return
    is_folder = os.path.isdir(files[0]) and saved_model_in(files[0]) == files[0]  # noqa: PTH112 - pathlib: 5 ms
    if is_folder or not os.path.lexists(files[0]):
        return
    text = inspect_text(read(files[0]), terms_here(), as_json="--json" in words)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; Python would complain once more when it ends
        drop_output(sys.stdout)
        sys.exit(NOBODY_READS)
    sys.exit()


def load_checks(
    artifact: Artifact, terms: Terms, readers: Sequence[Reader], writer: WrittenBy | None = None
) -> list[LoadCheck]:
    """Return, for each of these readers, whether it loads the artifact, and whether JAX promises that.

    Without `writer`, the writer is read from the artifact's bytes.
    """
    if not readers:
        return []
    from export_core.policy.load_check import check_load

    return [check_load(artifact, terms, reader, writer=writer) for reader in readers]


def check_lines(checks: Sequence[LoadCheck], readers: Sequence[Reader], *, converted: bool = False) -> str:
    """Return the last lines of a screen: whether each reader loads the artifact, and what to do if a jaxlib does not.

    `converted` is whether the artifact was changed after its export.
    """
    if not checks:
        return ""
    from export_core.policy.load_check import in_words

    lines: list[str] = []
    for check, reader in zip(checks, readers, strict=True):
        # The reasons of another runtime contain what to do.
        is_advised = check.loads is False and not reader.release.runtime
        to_do = f"; {_remedy(reader.release, check.custom_calls, converted=converted)}" if is_advised else ""
        lines.append(
            f"{'' if lines else 'reader':<{WIDTH}}{printable(f'{in_words(check, converted=converted)}{to_do}')}\n"
        )
    return "".join(lines)


def _remedy(release: CalendarEntry, targets: Collection[str], *, converted: bool) -> str:
    """Return advice on how to get an artifact that this jaxlib loads and runs.

    `targets` are the artifact's custom-call targets. If it was `converted`, the advice is to convert its original.
    """
    if converted:
        return f"convert the original again: `jaxexport convert ORIGINAL --for {release.jaxlib} -o OUT`"
    if crashes_in_any_export(targets, release):
        convert = f"try `jaxexport convert FILE --for {release.jaxlib} --replace-custom-calls -o OUT`, or "
        if why_not_replaced([target for target in targets if target.startswith(LAPACK)], release):
            convert = ""
        crash = f"what jax {release.jax} exports would crash a fresh process there, by its calls of LAPACK"
        return f"{convert}upgrade the reader: {crash}"
    return f"export it again with jax {release.jax}, or try `jaxexport convert FILE --for {release.jaxlib} -o OUT`"


def inspect_text(artifact: Artifact, terms: Terms, readers: Sequence[Reader] = (), *, as_json: bool) -> str:
    """Return the screen about an artifact, or, with `as_json`, everything as one JSON object.

    The jaxlibs among `readers` have to promise the custom calls. Raises `ArtifactError` if a module cannot be read.
    """
    facts = describe(artifact, terms, whole=as_json, readers=readers)
    return json_text(facts) if as_json else without_commands(screen(facts))


def json_text(facts: Inspection) -> str:
    """Return everything about an artifact as one JSON object, with a line break at its end."""
    import json

    shown = as_dict(facts)
    text = json.dumps(shown)
    # Half of a pair of surrogates, which JSON has no text for, is a byte of a file's name.
    return (printable_json(json.dumps(with_escaped_surrogates(shown)) if "\\udc" in text else text)) + "\n"


def screen(facts: Inspection) -> str:
    """Return the screen about an artifact: lines with a name in the first column and the fact beside it."""
    lines = [f"{facts.file}: {facts.kind}, {size(facts.nbytes)}, SHA-256 {facts.sha256[:16]}…"]
    for name, texts in _rows(facts):
        shown = [texts] if isinstance(texts, str) else list(texts)
        more = [f"and {len(shown) - MOST} more; --json has all"] if len(shown) > MOST else []
        for number, text in enumerate([*shown[:MOST], *more]):
            first = f"{'' if number else name:<{WIDTH - 1}} "
            for line in wrapped(printable(text), WIDTH + LINE, first, WIDTH, most=MOST):
                lines.append(line if len(line) <= WIDTH + LINE else line[: WIDTH + LINE - 1] + "…")  # one long word
    return "".join(f"{line}\n" for line in lines)


Rows = Iterator[tuple[str, str | Iterable[str]]]  # The name in the first column, and the line or lines beside it.


def _rows(facts: Inspection) -> Rows:
    if facts.saved_model is not None:
        yield from _rows_of_saved_model(facts)
        return
    yield from _signature(facts)
    if facts.nr_devices is not None:
        yield from _envelope(facts)
    for module in facts.modules:
        yield "inside" if module.vjp_order == 0 else f"derivative {module.vjp_order}", _inside(module)
    yield from call_rows(facts)
    yield "checks", [f"switched off by the exporter: {name}" for name in facts.disabled_checks]
    yield "unknown", [f"field {name}, from a newer schema" for name in facts.unknown_fields]
    yield "written by", who_wrote(facts)
    formats = format_in_words(*facts.writer.formats) if facts.writer.formats else ""
    bytecode = f"{facts.writer.producer}, MLIR bytecode {facts.modules[0].bytecode_version}"
    # The record of a conversion names the format that was written, which may be any of these.
    formats += ": the file does not say which" if facts.converted and " or " in formats else ""
    yield "written as", f"{bytecode}; envelope format {formats}" if formats else bytecode
    yield from reader_rows(facts)


def call_rows(facts: Inspection) -> Rows:
    """Yield the rows about an artifact's custom calls, and about what each platform is expected to do with them."""
    yield "custom calls", list(map(custom_call, facts.custom_calls)) or "none"
    alike: dict[str, list[str]] = {}  # platforms that refuse for one reason share a line
    for platform in facts.foreseen:
        alike.setdefault(platform.note, []).append(platform.platform)
    yield "foreseen", [f"{joined(platforms)}: {note}" for note, platforms in alike.items()]


def reader_rows(facts: Inspection) -> Rows:
    """Yield the rows about what an artifact needs, which readers load and run it, and what is promised."""
    yield "needs", dict.fromkeys(map(need_in_words, facts.modules))
    if converted := facts.converted:
        # JAX promises nothing for a converted artifact, whatever it promises for the original.
        about = f"{converted.in_words}, {converted.way}, from SHA-256 "
        rewrites = [f"- {rewrite}" for rewrite in converted.rewrites]
        lines = [f"{about}{converted.sha256[:16]}…", f"{converted.verdict}: {converted.message}", *rewrites]
        yield "converted", converted.problem or lines
    loading = [reader for reader in facts.readers if reader.loads]
    count = f"{len(loading)} of the {len(facts.readers)} releases known"
    yield "loads in", f"{spans(facts.readers, loading)} ({count})"
    if facts.readers and all(reader.loads is False for reader in facts.readers):
        targets = [call.target for call in facts.custom_calls]
        yield "to do", _remedy(facts.readers[-1].release, targets, converted=facts.is_changed)
    yield "not in", _not_in(facts.readers)
    yield from _not_run(facts.readers, f"it needs {plural(facts.nr_devices or 1, 'device')}")
    yield "runtimes", _runtimes(facts.runtimes, facts.nr_devices or 1)
    yield "promised", _promised(facts)


def _rows_of_saved_model(facts: Inspection) -> Rows:
    from export_core.features.inspect.saved_model_screen import PROMISED, about_call

    model = facts.saved_model
    assert model is not None
    yield "written by", f"TensorFlow {model.tensorflow}, as it says" if model.tensorflow else "a TensorFlow"
    yield "signatures", joined(model.signatures) or "none"
    yield "operations", f"{len(model.calls)} by jax of {model.operations}; the others are TensorFlow's, and not checked"
    for number, (call, module) in enumerate(zip(model.calls, facts.modules, strict=True)):
        takes, returns = _types(call.inputs), _types(call.outputs)
        yield f"function {number + 1}", about_call(call, takes, returns, _inside(module))
    yield "custom calls", list(map(custom_call, facts.custom_calls)) or "none"
    bytecode = ((module.producer, module.bytecode_version) for module in facts.modules)
    yield "written as", dict.fromkeys(f"{producer}, MLIR bytecode {version}" for producer, version in bytecode)
    yield "needs", dict.fromkeys(map(need_in_words, facts.modules))
    loading = [runtime for runtime in facts.runtimes if any(ok is not False for ok in runtime.reads.values())]
    of_tensorflow = [runtime for runtime in facts.runtimes if runtime.runtime in ("tensorflow", "savedmodel")]
    yield "runtimes", _runtimes(loading or of_tensorflow, 1)
    yield "promised", PROMISED


def _signature(facts: Inspection) -> Rows:
    signature = facts.signature
    if facts.kind == RAW:
        yield "function", "not read: StableHLO in raw bytecode differs from one build to the next"
        return
    yield "function", signature.name or "none: it has no function main"
    for name, avals, tree in (
        ("takes", signature.inputs, signature.in_tree),
        ("returns", signature.outputs, signature.out_tree),
    ):
        # As much on one line as fits; "*" alone says that there is one array, which the types say already.
        shown = "" if tree is None else tree.removeprefix("PyTreeDef(")[:-1]
        if len(types := _types(avals)) + len(shown) > LINE - 10:
            yield name, [types, f"as {shown}"]
        else:
            yield name, types + (f" as {shown}" if shown not in ("", "*") else "")
    if unused := signature.unused:
        yield "unused", f"{'arguments' if len(unused) > 1 else 'argument'} {joined(unused)}"
    if signature.dimensions:
        names = f"symbolic: {joined(signature.dimensions)}"
        checked = f"each call checks {joined(signature.constraints)}, which jax keeps in the module alone"
        yield "dimensions", [names, checked] if signature.constraints else names


def _envelope(facts: Inspection) -> Rows:
    yield "platforms", joined(facts.platforms)
    sides = (("in:", facts.in_shardings), ("out:", facts.out_shardings))
    shardings = [f"{word} {joined(one or 'unspecified' for one in side)}" for word, side in sides if any(side)]
    yield "devices", "; ".join([str(facts.nr_devices), *shardings])
    effects = [*(f"{name} (ordered)" for name in facts.ordered_effects), *facts.unordered_effects]
    yield "effects", joined(effects) or "none"
    yield "derivatives", f"reverse mode to order {facts.vjp_order}" if facts.vjp_order else "none"
    yield "convention", convention_in_words(facts)


def convention_in_words(facts: Inspection) -> list[str]:
    """Return texts on an artifact's calling convention: whether `@main` follows it, then each problem."""
    convention, main = f"calling convention {facts.calling_convention_version}", facts.main
    others = {*facts.derivative_conventions} - {facts.calling_convention_version}
    convention += f" (of derivatives {joined(sorted(others))})" if others else ""
    if main is None or not main.checked:
        return [f"{convention}, which is not known here: @main was not checked"]
    if not main.problems:
        return [f"{convention}, and @main follows it"]
    return [f"{convention}, and @main does NOT follow it:", *main.problems]


def _types(types: Sequence[str]) -> str:
    counted = ((kind, len(list(same))) for kind, same in groupby(types))
    return joined(f"{number} × {kind}" if number != 1 else kind for kind, number in counted) or "nothing"


def _inside(module: ModuleFacts) -> str:
    constants = module.constants
    held = f", {plural(len(constants), 'constant')} of {size(sum(c.nbytes for c in constants))}"
    return (
        f"{plural(module.operations, 'operation')} of {plural(len(module.op_counts), 'kind')} in "
        f"{plural(len(module.functions), 'function')}{held if constants else ''}; {size(module.nbytes)}"
    )


def custom_call(call: AuditFinding) -> str:
    """Return one line about a custom-call target: kind, number of calls, whether it is stable or allowed, and why."""
    what = str(Payload(call.what, call.payload_version))
    times = f" × {call.count}" if call.count > 1 else ""
    why = call.message.removeprefix(f"{call.target} ({what})").strip()
    if call.standing == "stable":
        standing = why.removeprefix("is ").rstrip(".")
    elif call.standing == UNCHECKED:
        standing = why.replace("was not checked", "NOT CHECKED", 1)
    else:
        standing = f"{call.standing if call.ok else call.standing.upper()}: {why}"
    return f"{call.target}{times}: {what}; {standing}"


def who_wrote(facts: Inspection) -> str:
    """Return one line about the jax and jaxlib that wrote an artifact."""
    writer = facts.writer
    candidates = writer.candidates
    if facts.nr_devices is None:
        fitting = spans(facts.readers, [reader for reader in facts.readers if reader.jaxlib in candidates])
        return "not known" + (f"; jaxlib {fitting} can write for this version" if candidates else "")
    jax = f"jax {writer.jax}, as it says" if writer.jax else ""
    if writer.jaxlib is not None:
        return f"{jax}, and jaxlib {writer.jaxlib}" if jax else f"jaxlib {writer.jaxlib}: no other release fits"
    if candidates:
        which = f"one of jaxlib {joined(candidates)}: it does not say which"
    else:
        which = "no jaxlib of the calendar fits"
        which += f": {REWRITTEN}" if facts.rewritten and not facts.converted else ""
    return f"{jax}; {which}" if jax else which


def need_in_words(module: ModuleFacts) -> str:
    """Return one line about the StableHLO version and the dialects that a reader needs for a module."""
    need = module.needs
    because = f", because of {joined(need.set_by)}" if need.set_by else ", the oldest that is promised to be read"
    foreign = f"; dialect {joined(need.dialects)}" if need.dialects else ""
    if need.exact:
        return f"StableHLO {need.stablehlo}{because}{foreign}"
    if need.unknown:
        return f"unknown, at least StableHLO {need.stablehlo}: {joined(need.unknown)} not known{foreign}"
    newer = f"written for {module.producer}, newer than the tables"
    return f"StableHLO {need.stablehlo} by its names{because}; {newer}{foreign}"


def _not_in(readers: Sequence[ReaderFacts]) -> Iterator[str]:
    """Yield a line for each reason why releases do not, or may not, load an artifact; the latest releases first."""
    groups: dict[tuple[bool, str], list[ReaderFacts]] = {}
    for reader in readers:
        if reader.loads:
            continue
        reason = reader.reasons[0]
        own, _, need = reason.partition(", and ")
        if own.startswith("jaxlib ") and " has StableHLO " in own:
            # Without the release's own StableHLO version, several releases share a line.
            reason = need.replace(" came with ", " came with StableHLO ")
        groups.setdefault((reader.loads is None, reason), []).append(reader)
    for (open_, reason), group in sorted(groups.items(), key=lambda item: item[1][-1].built, reverse=True):
        counts = {len(reader.reasons) - 1 for reader in group}
        more = f"{'up to ' if len(counts) > 1 else ''}{plural(max(counts), 'more reason')}"
        also = f" (and {more}; --json has all)" if max(counts) else ""
        yield f"{'may load in ' if open_ else ''}{spans(readers, group)}: {reason}{also}"


_SPOILED = {NO: "does not run", YES_BUT: "runs, but", UNKNOWN: "may not run"}
"""The first column of a line about releases that load an artifact, by whether they run it."""


def _not_run(readers: Sequence[ReaderFacts], known_reason: str) -> Rows:
    """Yield rows about releases that load the artifact but do not run it, or run it only on a condition.

    Each line has a reason and its releases, the latest first. `known_reason` is left out: another row has it already.
    """
    groups: dict[str, dict[str, list[ReaderFacts]]] = {}
    for reader in readers:
        if reader.loads and {*reader.known} - {known_reason}:
            name = _SPOILED.get(reader.runs, "other numbers" if reader.numbers == NO else "numbers")
            groups.setdefault(name, {}).setdefault("; ".join(reader.known), []).append(reader)
    for name, by_reasons in groups.items():
        latest_first = sorted(by_reasons.items(), key=lambda item: item[1][-1].built, reverse=True)
        yield name, [f"{spans(readers, group)}: {reasons}" for reasons, group in latest_first]


def _runtimes(runtimes: Sequence[RuntimeFacts], devices: int) -> Iterator[str]:
    """Yield a line for each runtime other than jaxlib on which of its releases read and run the artifact.

    Runtimes with the same text share a line. If none runs the artifact, because of its custom calls or its number of
    `devices`, lines before these say so, and these say which releases parse it.
    """
    calls = sorted({call for runtime in runtimes for call in runtime.custom_calls})
    by_none = [f"none but jaxlib compiles it, since {only_jax(calls)}"] if calls else []
    if devices > 1:
        by_none.append(
            f"none but jaxlib runs it, since the others run artifacts for one device, and it is for {devices}"
        )
    yield from by_none
    of_all = ONE_DEVICE.format(devices)
    alike: dict[str, list[str]] = {}
    for runtime in runtimes:
        reads = [version for version, ok in runtime.reads.items() if ok]
        text = f"{'parsed' if by_none else 'read'} by {len(reads) or 'none'} of {plural(len(runtime.reads), 'release')}"
        if reads:
            text += f", {ranges(reads, [*runtime.reads])}"
        if runtime.reasons:  # the reasons of the newest release that does not read it
            version, reasons = next(reversed(runtime.reasons.items()))
            reason, _, _ = reasons[0].partition(CONVERT)
            text += f"; {reason.replace(f'{runtime.runtime} {version}', version)}"
        if reads and (known := runtime.known.get(reads[-1])):
            shared = of_all, only_jax(runtime.custom_calls)
            own = [reason for reason in known if reason not in shared]
            answer = {NO: "does not run it", UNKNOWN: "may run it, but"}.get(runtime.runs[reads[-1]], "runs it, but")
            text += f"; {reads[-1]} {answer}: {'; '.join(own)}" if own else ""
        alike.setdefault(text, []).append(runtime.runtime)
    for text, names in alike.items():
        yield f"{joined(names)}: {text}"


def _promised(facts: Inspection) -> str | Sequence[str]:
    promised = facts.promise
    if facts.nr_devices is None:
        return promises_in_words(facts.stablehlo_promise)
    if facts.converted and facts.converted.differs_from_original:
        return "nothing: JAX promises to read what jax.export wrote, and this was converted"
    if promised is None:
        return "unknown: no release of the calendar wrote it, or an index has withdrawn the one that did"
    until, since = [f"until {day}" for day in promised.until], [f"from {day} on" for day in promised.since]
    if promised.until[0] != promised.until[1]:  # by writers built on different days
        writers = [reader.jaxlib for reader in facts.readers if reader.jaxlib in facts.writer.possible]
        first, last = f" if jaxlib {writers[0]} wrote it, ", f" if {writers[-1]} did"
        until, since = ([f"{days[0]}{first}{days[1]}{last}"] for days in (until, since))
    return (
        f"to jaxlibs built {until[0]} ({plural(promised.backward_days, 'day')} after the writer)",
        f"and {since[0]} ({plural(promised.forward_days, 'day')} before the writer)",
    )


def promises_in_words(by_stablehlo: StableHloPromise | None) -> tuple[str, str]:
    """Return two lines on what JAX and StableHLO promise for a module without an envelope."""
    by_jax = "nothing by JAX, whose windows are for what jax.export wrote"
    if by_stablehlo is None:
        return by_jax, "nothing by StableHLO: only the build that wrote raw bytecode is sure to read it"
    return by_jax, (
        f"by StableHLO {by_stablehlo.backward_years} years backward and {by_stablehlo.forward_years} forward, "
        "between the builds of StableHLO that wrote and read it; not for custom calls"
    )


def spans(readers: Sequence[ReaderFacts], chosen: Sequence[ReaderFacts]) -> str:
    """Return the chosen readers as ranges by build date, such as ``0.11.0 (2026-07-16) to 0.12.0.1 (2026-10-20)``.

    Return ``no release`` if none is chosen.
    """
    versions = {reader.jaxlib for reader in chosen}
    runs = [list(run) for here, run in groupby(readers, lambda reader: reader.jaxlib in versions) if here]
    ends = ((f"{reader.jaxlib} ({reader.built})" for reader in (run[0], run[-1])) for run in runs)
    return joined(" to ".join(dict.fromkeys(two)) for two in ends) or "no release"


def size(number: int) -> str:
    """Return a number of bytes as text, such as ``812 bytes``, ``6.7 kB`` or ``50.0 MB``."""
    if number < 1000:
        return f"{plural(number, 'byte')}"
    return f"{number / 1e3:.1f} kB" if number < 1_000_000 else f"{number / 1e6:.1f} MB"


def joined(words: Iterable[object]) -> str:
    """Return words joined by commas."""
    return ", ".join(map(str, words))
