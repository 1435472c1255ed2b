"""What is said of deployment targets: the answer of `jaxexport can-i-deploy`, and the finding of a run."""

import itertools
from collections import Counter
from collections.abc import Iterator

from export_core.base.escaping import plain_text
from export_core.base.layout import wrapped
from export_core.base.phrases import plural
from export_core.features.deploy.answers import Answer, Deployability, Deployment, Upgrade
from export_core.judge.verdicts import Kind
from export_core.releases.calendar import title_of
from export_core.report.document import Finding
from export_core.report.wording import counts_line
from export_core.run.run import Run

TARGETS = Kind("deployment targets", 7)
_LABEL = 8


def target_findings(run: Run) -> Iterator[Finding]:
    """One finding with a sentence for each deployment target in force, where there is one: how its cells ended."""
    sentences = []
    for target in run.summary.deployed:
        until = f", until {target.until}" if target.until else ""
        where = f"{target.name} ({title_of(target.jaxlib)}, {target.platform}{until})"
        works = f"{target.works:,} of {plural(target.cells, 'cell')} {'works' if target.cells == 1 else 'work'}"
        failing = counts_line(target.failing)
        sentences.append(f"{where}: {works}{'; ' if failing else ''}{failing}.")
    if sentences:
        yield Finding(TARGETS, 1_000_000, " ".join(sentences))


def deploy_lines(deployability: Deployability, width: int) -> Iterator[str]:
    """A line for each artifact and target, then what to do; wrapped at a width."""
    for _, answers in itertools.groupby(deployability.answers, lambda answer: answer.target):
        own = list(answers)
        first = own[0]
        yield f"{first.target} ({title_of(first.jaxlib)}{'' if first.platform == 'cpu' else f' on {first.platform}'})"
        for answer in own:
            yield from wrapped(_sentence(answer), width, f"  {answer.answer:<{_LABEL}}", _LABEL + 2)
    yield ""
    for upgrade in deployability.upgrades:
        yield from wrapped(_upgrade(upgrade), width, f"{'upgrade':<{_LABEL + 2}}", _LABEL + 2)
    # Each command in one line: it is copied as it is.
    for command in dict.fromkeys(answer.run for answer in deployability.answers if answer.run):
        yield f"{'run':<{_LABEL + 2}}{plain_text(command)}"
    counts = Counter(str(answer.answer) for answer in deployability.answers)
    counted = counts_line({name: counts[name] for name in Answer if counts[name]})
    word = {0: "YES", 1: "NO", 3: "UNKNOWN"}[deployability.exit_code]
    yield f"{word}: {counted}. As of {deployability.as_of}, exit code {deployability.exit_code}."


def _sentence(answer: Deployment) -> str:
    since = f"; so it is since jaxlib {answer.since}" if answer.since else ""
    how = "may run" if answer.foreseen else "runs"
    later = f"; the first later release in which it {how}: {answer.upgrade_to}" if answer.upgrade_to else ""
    return plain_text(f"{answer.artifact}: {answer.why}{since}{later} ({answer.shown_by})")


def _upgrade(upgrade: Upgrade) -> str:
    what = f"before {plural(upgrade.artifacts, 'artifact')} {'is' if upgrade.artifacts == 1 else 'are'} deployed there"
    if not upgrade.to:
        return plain_text(
            f"{upgrade.target}: no later release is known to run all of them. Export them again with a release that "
            f"{title_of(upgrade.jaxlib)} reads, or convert them."
        )
    foreseen = " (foreseen, not run yet)" if upgrade.foreseen else ""
    return plain_text(f"{upgrade.target} from {title_of(upgrade.jaxlib)} to {upgrade.to}{foreseen}, {what}")
