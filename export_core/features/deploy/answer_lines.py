"""The answers about deployment targets as lines of a terminal, and as a finding in the report of a run."""

from collections import Counter
from collections.abc import Iterator

from export_core.base.layout import wrapped
from export_core.base.text import few, plain_text, plural
from export_core.features.deploy.answers import Deployability, DeployAnswer, Deployment, Upgrade, shown_in
from export_core.matrix.verdicts import FindingKind
from export_core.releases.names import title_of
from export_core.report.document import Finding
from export_core.report.wording import counts_line
from export_core.run.run import Run

TARGETS = FindingKind("deployment targets", 7)
_LABEL = 8
_SHOWN = 3  # How many of the artifacts are named that an upgrade would break.


def target_findings(run: Run) -> Iterator[Finding]:
    """Yield at most one finding: a sentence for each deployment target in force, on how its cells ended."""
    sentences = []
    without_cells: dict[str, list[str]] = {}  # The targets without a cell, by what to do about it.
    are_converted = bool(run.results) and all(result.converted for result in run.results)
    for target in run.summary.deployed:
        if are_converted and not target.cells:  # converted for one release: the others have the project's goldens
            continue
        until = f", until {target.until}" if target.until else ""
        where = f"{target.name} ({title_of(target.jaxlib)}, {target.platform}{until})"
        works = f"{target.works:,} of {plural(target.cells, 'cell')} {'works' if target.cells == 1 else 'work'}"
        if not target.cells:
            is_named = any(problem.startswith(target.no_cell) for problem in run.summary.uncovered)
            todo = (
                "" if is_named or run.summary.shard is not None else "; `jaxexport matrix --readers deployed` runs them"
            )
            without_cells.setdefault(todo, []).append(where)
            continue
        failing = counts_line(target.failing)
        sentences.append(f"{where}: {works}{'; ' if failing else ''}{failing}.")
    of_run = "this shard" if run.summary.shard is not None else "this run"
    for todo, targets in without_cells.items():
        sentences.append(
            f"{', '.join(targets)}: no cell {'of it' if len(targets) == 1 else 'of these'} was in {of_run}{todo}."
        )
    if sentences:
        yield Finding(TARGETS, 1_000_000, " ".join(sentences))


def deploy_lines(deployability: Deployability, width: int) -> Iterator[str]:
    """Yield a line for each artifact and target, then what to do, wrapped to `width` characters."""
    target = ""
    for answer in deployability.answers:  # those of one target are together
        if answer.target != target:
            target, platform = answer.target, "" if answer.platform == "cpu" else f" on {answer.platform}"
            yield f"{target} ({title_of(answer.jaxlib)}{platform})"
        yield from wrapped(_sentence(answer), width, f"  {answer.answer:<{_LABEL}}", _LABEL + 2)
    yield ""
    for accepted in deployability.accepted:
        sentence = plain_text(f"{accepted.sentence} Reason: {accepted.reason}")
        yield from wrapped(sentence, width, f"{'accepted':<{_LABEL + 2}}", _LABEL + 2)
    platforms = {answer.target: answer.platform for answer in deployability.answers}
    for name, goldens in deployability.left_out.items():
        were = f"{plural(len(goldens), 'golden')} {'was' if len(goldens) == 1 else 'were'}"
        where = f" for {platforms[name]}" if name in platforms else " for its platform"
        sentence = plain_text(f"{name}: {were} not exported{where}, and need not run there: {few(goldens)}")
        yield from wrapped(sentence, width, f"{'left out':<{_LABEL + 2}}", _LABEL + 2)
    answered = {answer.target for answer in deployability.answers}
    for name, why in deployability.out_of_force.items():
        label = "note" if name in answered else "left out"
        sentence = plain_text(f"{name}: {why}, so it has to run nothing on {deployability.as_of}")
        yield from wrapped(sentence, width, f"{label:<{_LABEL + 2}}", _LABEL + 2)
    for upgrade in deployability.upgrades:
        yield from wrapped(_upgrade(upgrade), width, f"{'upgrade':<{_LABEL + 2}}", _LABEL + 2)
    # Each command in one line: it is copied as it is.
    for command in dict.fromkeys(answer.run for answer in deployability.answers if answer.run):
        yield f"{'run':<{_LABEL + 2}}{plain_text(command)}"
    counts = Counter(str(answer.answer) for answer in deployability.answers)
    counted = counts_line({name: counts[name] for name in DeployAnswer if counts[name]})
    word = {0: "YES", 1: "NO", 3: "UNKNOWN"}[deployability.exit_code]
    old = f"; {deployability.old_calendar}" if deployability.old_calendar else ""
    yield f"{word}: {counted}{old}. As of {deployability.as_of}, exit code {deployability.exit_code}."


def _sentence(answer: Deployment) -> str:
    since = f"; it has been so since {title_of(answer.since)}" if answer.since else ""
    how = "it may run" if answer.foreseen else "a stored run passed"
    to = answer.upgrade_to.replace("==", " ")
    later = f"; the first later release in which {how}: {to}" if to else ""
    return plain_text(f"{answer.artifact}: {answer.why}{since}{later} ({shown_in(answer.shown_by, answer.folder)})")


def _upgrade(upgrade: Upgrade) -> str:
    if upgrade.partly:
        these = "the one that fails today" if upgrade.artifacts == 1 else f"the {upgrade.artifacts} that fail today"
        shown_by = "forecast" if upgrade.foreseen else "stored results"
        more = len(upgrade.failing) - _SHOWN
        failing = [*upgrade.failing[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
        return plain_text(
            f"{upgrade.target}: no later release is known to run all that it has to run. "
            f"{title_of(upgrade.partly)} runs {these} ({shown_by}), but {'; '.join(failing)}"
        )
    if not upgrade.to:
        instead = " ".join(upgrade.instead)
        return plain_text(f"{upgrade.target}: no later release is known to run all of them. {instead}")
    what = f"before {plural(upgrade.artifacts, 'artifact')} {'is' if upgrade.artifacts == 1 else 'are'} deployed there"
    shown_by = "foreseen, not run yet" if upgrade.foreseen else "the first in which a stored run passed"
    to, earlier = upgrade.to.replace("==", " "), upgrade.foreseen_earlier.replace("==", " ")
    these = "it" if upgrade.artifacts == 1 else "them"
    sooner = f". {earlier} is foreseen to run {these} too, and no stored run shows it" if earlier else ""
    return plain_text(f"{upgrade.target} from {title_of(upgrade.jaxlib)} to {to} ({shown_by}), {what}{sooner}")
