"""The one table of verdicts and judgements: words, looks, order and consequences, for every medium."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from export_core.base.exit_code import ExitCode


class Verdict(StrEnum):
    """The verdict of a cell: what happened."""

    PASS = "pass"  # It ran, and its outputs are those that the writer saw, within the tolerance.
    COMPILED = "compiled"  # It was compiled for a described device, and not run. Never called a pass.
    CONVERTED = "converted"
    """It works as `pass` or `compiled` do, but what the reader took is an artifact that `jaxexport convert` made."""
    NUMERICS = "numerics"  # It ran, and gave other numbers than the writer saw.
    REFUSED = "refused"  # The reader refused it, by a message that this release is known to use.
    ERROR = "error"  # The reader raised another error.
    CRASH = "crash"  # Its process died by a signal.
    TIMEOUT = "timeout"  # It reached its time limit: run it again with a longer one.
    NOT_RUN = "not_run"  # It was not run, for a reason that says nothing about the artifact, such as a full disk.

    @property
    def works(self) -> bool:
        """Whether the cell did what was planned: it ran with the expected outputs, or was compiled."""
        return self in WORKING

    @property
    def is_compared(self) -> bool:
        """Whether the outputs of the cell were compared."""
        return self in (Verdict.PASS, Verdict.CONVERTED, Verdict.NUMERICS)

    @property
    def fails(self) -> bool:
        """Whether the cell was run and does not work."""
        return not self.works and self is not Verdict.NOT_RUN


WORKING = frozenset({Verdict.PASS, Verdict.COMPILED, Verdict.CONVERTED})
"""The verdicts of cells that work."""


@dataclass(frozen=True)
class FindingKind:
    """A kind of finding, whose findings are shown together; kinds are ordered by `rank`, the lowest first."""

    title: str
    rank: int
    style: str = "bright_black"  # The style of its title in a terminal.
    exit_code: ExitCode = ExitCode.KEPT
    """The exit code of a run that has such a finding. Unless it is `KEPT`, the finding is shown with its evidence."""
    level: str = ""
    """Its level as an annotation on the line of a test: ``error`` or ``warning``; empty if it is no annotation."""
    to_do: str = ""  # What to do about it, unless that depends on the verdict or the judgement.
    is_open: bool = False  # Whether its findings are shown unfolded in Markdown, although they do not fail a run.


def failing(title: str, to_do: str = "") -> FindingKind:
    """Return a kind of finding that fails a run."""
    return FindingKind(title, 0, "bold red", ExitCode.BROKEN, "error", to_do)


def missing(title: str) -> FindingKind:
    """Return a kind of finding that leaves a run without an answer."""
    return FindingKind(title, 1, "bold magenta", ExitCode.INCOMPLETE, "warning")


BROKEN_PROMISE = failing("BROKEN PROMISE")
NUMBERS_MOVED = failing(
    "NUMBERS MOVED",
    "Find the operation that rounds in another way: `{}`. Compare both releases with a reference in double "
    "precision: `{}`. If the new numbers are as good, allow them with a rule (`numbers` in the policy) and its reason.",
)
"""The finding for broken cells whose numbers look like rounding.

``{}`` in its advice stands for the commands `reduce` and `explain` of the cell.
"""
NOT_REPLAYABLE = failing(
    "NOT REPLAYABLE",
    "Check the test before you blame a release: in a new process, its own writer gives another result. "
    "`jaxexport goldens verify` checks the files; then export it again.",
)
AUDIT_FAILED = failing(
    "AUDIT FAILED",
    "No release is to blame, and no date excuses it: export without this call, or allow it with a reason (`allow` in "
    "the policy or in the marker). `jaxexport audit CASE/WRITER` shows all that the audit finds.",
)
"""The finding for cells that the audit stopped before anything was compiled, inside or outside the window."""
_ON_ITS_PROCESSOR = (
    "Replay it on the processor that wrote it, without settings that choose other instructions. If it passes there, no "
    "release is to blame: write the golden on a processor like those that read it{}. If it fails there too, check the "
    "test, and the history of the golden's folder."
)
NEAR_ON_ANOTHER_PROCESSOR = _ON_ITS_PROCESSOR.format(
    ", or allow the difference with a rule (`numbers` in the policy) and its reason"
)
"""The advice about numbers that may depend on the processor, if nothing contradicts the golden's stored outputs."""
FAR_ON_ANOTHER_PROCESSOR = _ON_ITS_PROCESSOR.format("")
"""The advice in place of `NEAR_ON_ANOTHER_PROCESSOR` if the numbers are too far off for a rule that allows them."""
HISTORY = "`git log -- {}` shows whether the stored outputs were changed after they were written."
"""The advice to look at the history of a golden; ``{}`` is its folder."""
OTHER_PROCESSOR = failing(
    "OTHER PROCESSOR",
    f"Ask first whether the stored outputs are right: `{{}}` compares both sides with double precision. {HISTORY} "
    f"{NEAR_ON_ANOTHER_PROCESSOR}",
)
"""The finding for a golden whose own writer gives different numbers on a different processor or with other settings.

That alone does not show that the processor is the reason: the stored outputs may have been changed. The first ``{}`` in
its advice stands for the command `explain` of the cell, the second for the golden's folder.
"""
STORED_IN_DOUBT = (
    "Look at the history of the golden's folder: `git log -- {}`. If its outputs were changed, restore them. "
    "`jaxexport goldens verify` checks that its files are those that its golden.yaml lists. If nothing was changed, "
    "check the test, and write the golden again."
)
"""The advice about a golden whose stored outputs are in doubt; ``{}`` is its folder."""
WITHOUT_FLAGS = "Replay it without these XLA_FLAGS first: they may change numbers by any amount."
"""The first advice about such a golden if it was read with flags that change numbers."""
OTHER_NUMBERS = failing(
    "OTHER NUMBERS",
    "This runtime promises nothing, and a silently wrong number is never fine: `{}` asks which side is right.",
)
"""The finding for different numbers in cells of which none is promised.

Its advice is for a runtime that promises nothing; ``{}`` in it stands for the command `explain` of the cell.
"""
NOT_TO_ALLOW = "No rule allows such numbers: they are not finite, zero, or far beyond the range of the expected ones."
"""The advice in place of a rule if the numbers are garbage."""
_OF_POLICY = re.compile(
    r"\(([^()]+:\d+)\)"
)  # Where a policy states what was allowed, such as `(export_compat.yaml:50)`.


def how_to_allow(allowed: str, *, is_garbage: bool) -> str:
    """Return advice on how the policy can allow the different numbers of a cell, or why it cannot (`is_garbage`).

    `allowed` are the rules by which the numbers were compared, as in a result. The advice is about the policy alone,
    since the matrix sees no markers.
    """
    if is_garbage:
        return NOT_TO_ALLOW
    if places := dict.fromkeys(_OF_POLICY.findall(allowed)):
        return f"If the new numbers are as good, change what is allowed at {', '.join(places)}, and its reason."
    return "If the new numbers are as good, allow them with a rule (`numbers` in the policy) and its reason."


DEVICE_LIMIT = FindingKind(
    "DEVICE LIMIT",
    3,
    "yellow",
    level="warning",
    to_do="Change the program or the platform, or choose another device (`--target`). Where this device has to run it "
    "all the same, list it under `deployed` in the policy: then it fails the run.",
)
"""The finding for cells that an accelerator's compiler cannot compile even in the release that wrote the golden."""
RUN_CONTROL = (
    "Run the release that wrote it for this device too (`--readers {}`): where it fails alike, the device cannot do "
    "it, and no release is to blame."
)
"""The first advice if nobody knows whether a failure is a `DEVICE_LIMIT`; ``{}`` is the release of the writer."""
BUSY_MACHINE = (
    "The machine may be busy: run fewer cells at a time (--jobs), and {again}. Or the disk with the environments is "
    "slow: JAXEXPORT_CACHE names a folder on another one. How long a worker may take to start does not depend on "
    "--timeout."
)
"""The advice about a cell whose worker did not start in time; ``{again}`` is how to run the cell again."""
FAIL_ON = failing("FAIL ON")
MISSING_RESULT = missing("INCOMPLETE")
NOTHING_PROMISED = missing("NOTHING PROMISED")
STALE_LIST = FindingKind("STALE LIST", 2, "bold yellow", ExitCode.STALE, "error")


@dataclass(frozen=True, kw_only=True)
class JudgementFacts:
    """The facts about a judgement: its meaning, how reports show it, and what follows from it, such as an exit code."""

    meaning: str  # Its meaning, in a sentence that explains.
    short: str  # Its meaning in a few words, for a legend and after a number of cells.
    symbol: str  # Its sign in Markdown. Signs whose colours look alike to some readers differ in shape.
    style: str  # Its style in a terminal.
    badness: int  # How bad it is, for the comparison of two runs: more is worse, and 0 is fine.
    works: bool = False  # Whether a cell with this judgement works.
    mark: str = ""  # Its mark after the verdict in a table; a letter has a space before it.
    exit_code: ExitCode = ExitCode.KEPT  # The exit code of a run with such a cell, unless another one outranks it.
    junit: str = ""  # The JUnit element in its test case, such as ``failure``; empty if the test case passes.
    kind: FindingKind | None = None  # The kind of a finding about such cells; None if there are no such findings.
    next_step: str = ""
    """The advice about such a cell unless it timed out. ``{target}`` is the deployment target that must run it, and
    ``{convert}`` the advice to convert the artifact, or "" where no conversion helps."""
    addition: str = ""
    """What a sentence about such a cell says after its verdict; ``{}`` is the names of its deployment targets."""


class Judgement(StrEnum):
    """The meaning of a verdict, given the two build dates; the worst is listed first."""

    facts: JudgementFacts

    def __new__(cls, name: str, facts: JudgementFacts) -> Self:
        """Create a judgement that is equal to its name, with its facts as an attribute."""
        member = str.__new__(cls, name)
        member._value_, member.facts = name, facts
        return member

    BROKEN = (
        "broken",
        JudgementFacts(
            meaning="promised, and it fails; or other numbers on any date",
            short="broken",
            symbol="❌",
            style="bold red",
            badness=4,
            mark="!",
            exit_code=ExitCode.BROKEN,
            junit="failure",
            kind=BROKEN_PROMISE,
        ),
    )
    """A promised cell fails, or a cell gives wrong numbers, promised or not."""
    OWED = (
        "owed",
        JudgementFacts(
            meaning="not promised, and it fails in a deployment target",
            short="fails where it is deployed",
            symbol="🟥",
            style="bold red",
            badness=3,
            mark=" o",
            exit_code=ExitCode.BROKEN,
            junit="failure",
            kind=failing("OWED"),
            addition=", and deployment target {} must run it",
            next_step="Do not deploy it there: export it with a release that this one reads (`jaxexport inspect "
            "FILE`){convert}, or upgrade the deployment target: `jaxexport can-i-deploy --to {target}` says whether "
            "a later release runs it.",
        ),
    )
    """A cell of a deployment target fails outside its window: an obligation of the policy is broken."""
    INCOMPLETE = (
        "incomplete",
        JudgementFacts(
            meaning="has no result",
            short="no result",
            symbol="❔",
            style="bold magenta",
            badness=5,
            exit_code=ExitCode.INCOMPLETE,
            junit="error",
            kind=MISSING_RESULT,
        ),
    )
    """A cell that had to run was not run."""
    OVER_BUDGET = (
        "over-budget",
        JudgementFacts(
            meaning="promised, and it works, but costs more than a budget allows",
            short="over a budget",
            symbol="💰",
            style="red",
            badness=2,
            works=True,
            mark="$",
            exit_code=ExitCode.BROKEN,
            junit="failure",
            kind=failing("OVER BUDGET"),
            addition=", but costs more than a budget allows",
        ),
    )
    """A promised cell works, and exceeds an entry of `budgets`."""
    KNOWN = (
        "known",
        JudgementFacts(
            meaning="broken or owed, but it fails exactly as the list of known failures says",
            short="known failure",
            symbol="🟡",
            style="yellow",
            badness=1,
            mark=" k",
            junit="skipped",
            kind=FindingKind("known failure", 4, "yellow"),
        ),
    )
    """A broken or owed cell that fails exactly as an entry of `known_failures` says."""
    OUTSIDE = (
        "outside",
        JudgementFacts(
            meaning="not promised, and it fails",
            short="fails, not promised",
            symbol="⚪",
            style="bright_black",
            badness=1,
            junit="skipped",
            kind=FindingKind("outside the window", 5),
        ),
    )
    """A cell outside the window fails, or was not run and is not required."""
    BONUS = (
        "bonus",
        JudgementFacts(
            meaning="not promised, and it works",
            short="works, not promised",
            symbol="🔵",
            style="cyan",
            badness=0,
            works=True,
        ),
    )
    """A cell outside the window works."""
    KEPT = (
        "kept",
        JudgementFacts(
            meaning="promised, and it works", short="kept", symbol="✅", style="green", badness=0, works=True
        ),
    )
    """A promised cell works."""

    @property
    def fails_run(self) -> bool:
        """Whether a single cell with this judgement makes the exit code of a run nonzero."""
        return self.facts.exit_code is not ExitCode.KEPT

    @property
    def is_urgent(self) -> bool:
        """Whether the cell fails or has no result, and therefore fails its run."""
        return self.fails_run and not self.facts.works

    @property
    def is_breach(self) -> bool:
        """Whether the cell was run and breaks a promise or an obligation. Only such a cell can be a known failure."""
        return self.is_urgent and self.facts.exit_code is ExitCode.BROKEN


@dataclass(frozen=True, kw_only=True)
class VerdictFacts:
    """The words of a verdict, and its meaning inside and outside the window."""

    phrase: str  # The predicate of a sentence about a cell.
    short: str  # A few words for a legend or a title.
    mark: str  # The short word for a cell in every table.
    symbol: str  # The sign for a cell if a table has no room for the word.
    inside: Judgement  # Its judgement inside the window.
    outside: Judgement  # Its judgement outside the window, unless the cell is required or has a deployment target.
    is_explained: bool = True
    """Whether the message says what went wrong. If not, the release in which it began says more."""
    next_step: str = ""
    """The advice of what to do about a cell with this verdict. ``{}`` is the folder of the results as an argument,
    ``{judged}`` the folder with the options of the judgement, and ``{again}`` how to run the cell again; ``{longer}``
    is the command that runs it with a longer time limit, and ``{bisect}`` the command `bisect` with that limit."""
    advice: str = ""  # What to do if a golden gets this verdict in its own writer before it is stored.


_REPORT = (
    "Run the command below. If a release is to blame, report it to JAX; `jaxexport judge{judged} --propose` prints an "
    "entry for the list of known failures."
)

VERDICTS: Mapping[Verdict, VerdictFacts] = {
    Verdict.NUMERICS: VerdictFacts(
        phrase="ran with different numbers",
        short="different numbers",
        mark="num",
        symbol="≠",
        inside=Judgement.BROKEN,
        outside=Judgement.BROKEN,  # a silently wrong number is never fine
        is_explained=False,
        next_step="`jaxexport report{} --trend numbers` shows in which release the numbers moved.",
        advice="Outputs must depend on the inputs only and be the same in each process.",
    ),
    Verdict.CRASH: VerdictFacts(
        phrase="crashed",
        short="killed by a signal",
        mark="crash",
        symbol="†",
        inside=Judgement.BROKEN,
        outside=Judgement.OUTSIDE,
        is_explained=False,
        next_step=_REPORT,
    ),
    Verdict.TIMEOUT: VerdictFacts(
        phrase="timed out",
        short="timed out",
        mark="time",
        symbol="…",
        inside=Judgement.BROKEN,
        outside=Judgement.OUTSIDE,
        is_explained=False,
        next_step="Run it again, alone and with a longer limit, since a busy machine and an endless compilation look "
        "alike. The command: `{longer}`. Only if it times out again on a quiet machine, find the release in which it "
        "began: `{bisect}`, and report it to JAX.",
        advice="Export a smaller case: readers have the same time limit.",
    ),
    Verdict.ERROR: VerdictFacts(
        phrase="failed",
        short="failed",
        mark="err",
        symbol="×",
        inside=Judgement.BROKEN,
        outside=Judgement.OUTSIDE,
        next_step=_REPORT,
    ),
    Verdict.REFUSED: VerdictFacts(
        phrase="was refused",
        short="refused",
        mark="ref",
        symbol="∅",
        inside=Judgement.BROKEN,
        outside=Judgement.OUTSIDE,
        next_step="Check how old the artifact is with `jaxexport inspect`; inside the window, report it to JAX.",
    ),
    Verdict.COMPILED: VerdictFacts(
        phrase="compiled",
        short="compiled only: nothing ran",
        mark="comp",
        symbol="c",
        inside=Judgement.KEPT,
        outside=Judgement.BONUS,
    ),
    Verdict.CONVERTED: VerdictFacts(
        phrase="works as a converted artifact",
        short="works as a converted artifact",
        mark="conv",
        symbol="v",
        inside=Judgement.BONUS,  # JAX promises nothing for what it has not written
        outside=Judgement.BONUS,
    ),
    Verdict.PASS: VerdictFacts(
        phrase="ran and agrees with the writer's outputs",
        short="agrees",
        mark="ok",
        symbol="✓",
        inside=Judgement.KEPT,
        outside=Judgement.BONUS,
    ),
    Verdict.NOT_RUN: VerdictFacts(
        phrase="was not run",
        short="not run",
        mark="-",
        symbol="-",
        inside=Judgement.INCOMPLETE,
        outside=Judgement.OUTSIDE,
        next_step="Fix what the message names, then {again}.",
    ),
}
"""Every verdict, from a silently wrong number down to what is not a failure."""
WORST_FIRST = (*VERDICTS,)


def is_expected(judgement: Judgement, verdict: Verdict) -> bool:
    """Return whether a cell is outside its window and was refused, which is how such a cell is expected to fail."""
    return (judgement, verdict) == (Judgement.OUTSIDE, Verdict.REFUSED)
