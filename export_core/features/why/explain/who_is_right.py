"""Who is right where numbers differ: StableHLO's reference interpreter, which shares no code with XLA, is asked."""

from collections.abc import Callable
from contextlib import closing

from export_core.base.errors import ExportCompatError, InfrastructureFault
from export_core.base.feature import hooks
from export_core.base.phrases import first_line, plural
from export_core.base.scratch import scratch_folder
from export_core.features.why.choice import Choice
from export_core.features.why.explain.double_reference import reference_lines
from export_core.goldens.arrays import from_npz
from export_core.goldens.store import OUTPUTS
from export_core.judge import Result
from export_core.judge.result import titles
from export_core.matrix import Cell, Verdict
from export_core.matrix.comparisons import GoldenOutputs
from export_core.matrix.replay import Ran, replay_with_outputs
from export_core.readers.cell import checks_of

INTERPRETER = "stablehlo"


def references(
    choice: Choice, result: Result, notify: Callable[[str], None], *, ask: bool = True
) -> list[tuple[str, str]]:
    """What shows who is right where numbers differ, labelled: stored results; with `ask`, also what is run now."""
    if result.verdict is not Verdict.NUMERICS:
        return []
    shown = [("alone", alone_line(choice, result))]
    if ask:
        shown.append(("reference", interpreter_line(choice, notify)))
        shown.append(("float64", "\n".join(reference_lines(choice, result, notify))))
    return shown


def interpreter_line(choice: Choice, notify: Callable[[str], None]) -> str:
    """Which side the newest interpreter agrees with: a sentence, also where it cannot run the golden."""
    cell = choice.cell
    try:
        reference = choice.cell_in(choice.release(INTERPRETER))
        if reference.reader == cell.reader:
            return ""
        notify(f"running {cell.golden.id} in {reference.reader.title} too")
        with scratch_folder() as scratch, choice.environments(notify) as environments:

            def run(cell: Cell) -> Ran:
                with closing(replay_with_outputs([cell], environments.build, choice.options, notify=notify)) as ran:
                    return next(ran)

            # Whatever the interpreter does not parse and can do without is taken out, such as Shardy's dialect.
            forms = (form(reference, choice.options, scratch / "converted", notify) for form in hooks("converted"))
            own, theirs = run(cell), run(next(filter(None, forms), reference))
        return f"{reference.reader.title} {_side(choice, own, theirs)}"
    except (ExportCompatError, InfrastructureFault) as error:
        return f"the reference interpreter was not asked: {first_line(str(error))}"


def _side(choice: Choice, own: Ran, reference: Ran) -> str:
    """Whom the interpreter agrees with, by the outputs of the plain call."""
    outcome = reference.outcome
    if reference.works:
        return "agrees with the writer"
    if outcome.verdict is not Verdict.NUMERICS:
        return f"cannot run it ({outcome.verdict} in stage {outcome.stage}: {first_line(outcome.message)})"
    cell, options, plain = choice.cell, choice.options, checks_of(choice.cell)[0]
    written = from_npz(cell.golden.folder / (plain.outputs or OUTPUTS))
    # As a reader has to agree with the writer.
    wanted = GoldenOutputs(cell.golden, cell.platform, options.policy.tolerances, options.user_code)
    is_comparable = own.outputs and len(written) == len(own.outputs)
    if is_comparable and wanted.compare(plain, own.outputs, reference.outputs).ok:
        return "agrees with the reader, and not with the writer"
    return "agrees with neither"


def alone_line(choice: Choice, result: Result) -> str:
    """Whether one runtime alone gives other numbers, by the stored results of the golden; empty where it does not."""
    right = [stored for stored in choice.stored if stored.verdict.works]
    wrong = [stored for stored in (*choice.stored, result) if stored.verdict is Verdict.NUMERICS]
    others = {stored.reader.family for stored in right} - {result.reader.family}
    if not others or {stored.reader.family for stored in wrong} != {result.reader.family}:
        return ""
    against = [stored.reader for stored in right if stored.reader.family in others]
    return (
        f"only {result.reader.family or 'jaxlib'} differs from {plural(len({*against}), 'reader')} of other runtimes, "
        f"which give the writer's numbers: {titles(against)}"
    )
