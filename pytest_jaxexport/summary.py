"""The lines about goldens at the end of a pytest run. Only a run that has some loads this."""

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from export_core.base.text import few, plural, rounded_text, shown
from export_core.base.untrusted import read_regular
from export_core.base.yaml_text import yaml_text
from pytest_jaxexport.events import CheckedCase, DeployedCase, Event, LeftCase, WrittenCase

_CHANGES = (
    *("new", "replaced", "unchanged", "would be new", "would be replaced"),
    *("not written, as answered", "not replaced, as answered"),
)
"""The possible changes of a golden that was to be written, in the order of the lines."""


MODULE = "module"
"""The beginning of a part of `WrittenCase.replaced` that is about an operation."""
ENVELOPE = "envelope: "
"""The beginning of a part of `WrittenCase.replaced` that is about the envelope."""

_OTHERS = re.compile(r"module[^:]*: (\d+) or more other operations differ")
_NAMED = 3  # The most tests that a command names; one for more tests is for all tests of the run.

Update = Callable[[Sequence[Event]], str]
"""A function that returns the command that writes the goldens of the tests of these events."""


def shown_lines(
    events: Sequence[Event],
    unused: Sequence[str],
    *,
    verbose: bool,
    repeated: Sequence[str] = (),
    selected: Sequence[str] = (),
) -> Iterator[str]:
    """Yield all lines of the summary, those about unused goldens included, with control characters escaped."""
    yield from map(shown, summary_lines(events, verbose=verbose, repeated=repeated, selected=selected))
    yield from map(shown, unused)


def summary_lines(
    events: Sequence[Event], *, verbose: bool = False, repeated: Sequence[str] = (), selected: Sequence[str] = ()
) -> Iterator[str]:
    """Yield lines about the goldens that were written, replayed and judged, and about those that are missing.

    With `verbose`, a line says how many goldens have the outcome of an earlier run. `repeated` are the options of this
    run that its commands in such lines repeat, and `selected` are the words that selected its tests.
    """

    def update(about: Sequence[Event]) -> str:
        tests = list(dict.fromkeys(event["test"] for event in about))
        return updating(repeated, tests=tests if len(tests) <= _NAMED else selected)

    checked = [event for event in events if "judgements" in event]
    yield from _written([event for event in events if "written" in event])
    yield from _left([event for event in events if "left" in event], update)
    if checked:
        yield from _judged(checked, verbose=verbose)
    yield from _remark_lines(checked, update)
    yield from _deployed([event for event in events if "deployed" in event])
    yield from _compared_otherwise([event for event in checked if event["corrected"] is not None])
    if unmeasured := [event for event in events if event["unmeasured"]]:
        count = sum(event["unmeasured"] for event in unmeasured)
        yield f"{plural(count, 'golden')} without noise yet: {unmeasured[0]['measure']} measures it"
    if missing := [event for event in checked if not event["own"]]:
        cases = few([event["case"] for event in missing], most=3)
        yield f"no golden by {missing[0]['writer']} yet of {cases}: {update(missing)} adds it"


def updating(repeated: Sequence[str], value: str = "", tests: Sequence[str] = ()) -> str:
    """Return the command of pytest that writes goldens, with the options of this run.

    `value` follows --update-goldens, such as ``=missing``. `tests` are the words that select tests; without them, the
    command runs all tests.
    """
    return shlex.join([*run_words(), f"--update-goldens{value}", *repeated, *tests])


def run_words() -> list[str]:
    """Return the first words of a command that runs tests as this run does: `pytest`, or the backfill's command."""
    ended = os.environ.get("JAXEXPORT_SESSION_ENDED")
    command = Path(ended).with_name("command") if ended else None  # the backfill writes it
    return shlex.split(read_regular(command).decode()) if command and command.exists() else ["pytest"]


def _left(events: Sequence[LeftCase], update: Update) -> Iterator[str]:
    """Yield a line about the goldens that were not written since they exist, with the command that replaces them."""
    if goldens := [event["left"] for event in events]:
        replaces = f"{update(events)} replaces {'them' if goldens[1:] else 'it'}"
        yield f"{plural(len(goldens), 'golden')} left unchanged: {few(goldens, most=3)}; {replaces}"


def _written(events: Sequence[WrittenCase]) -> Iterator[str]:
    for change in sorted({event["written"] for event in events}, key=_CHANGES.index):
        these = {f"{event['case']}/{event['writer']}": event for event in events if event["written"] == change}
        yield f"{plural(len(these), 'golden')} {change}: {few([*these], most=3)}"
        if change.endswith("replaced"):
            yield from (f"  {golden}: {'; '.join(in_brief(event['replaced']))}" for golden, event in these.items())
    crashed: dict[str, list[str]] = {}
    for event in events:
        crashed.setdefault(event["crash"], []).append(f"{event['case']}/{event['writer']}")
        if event["renamed"]:
            yield f"  {event['case']}: {event['renamed']}"
    for text, goldens in crashed.items():
        if text:
            yield f"  {few(goldens, most=3)}: its own writer crashes when it replays it: {text}"
    for event in events:
        yield from (f"  {event['case']}/{event['writer']}: {text}" for text in event["named"])
    rounded: dict[str, list[str]] = {}
    for event in events:
        for dtype in event["rounded"]:
            rounded.setdefault(dtype, []).append(f"{event['case']}/{event['writer']}")
    yield from (f"  {few(goldens, most=3)}: {rounded_text(dtype)}" for dtype, goldens in rounded.items())
    alone: dict[str, list[str]] = {}
    for event in events:
        alone.setdefault(event["not_repeated"], []).append(event["case"])
    for why, cases in alone.items():
        if why:
            once = f"{plural(len(cases), 'golden')} exported only once: {few(cases, most=3)}"
            yield f"{once}. The next run of pytest shows whether the export can be repeated."
            yield f"  {why}"
    if parts := {name: part for event in events for name, part in event["not_seen"].items()}:
        # NumPy: 100 ms in xdist's controller; what wrote has it.
        from export_core.numbers.noise import WHAT_TO_DO
        from export_core.numbers.unseen_errors import LITTLE_NOT_SEEN, NotSeen, not_seen_advice, not_seen_text

        hidden = {name: NotSeen(*part) for name, part in parts.items()}  # a list, if it comes from another process
        advice = not_seen_advice(hidden.values())
        is_fine = not advice and not any(WHAT_TO_DO in event["to_do"] for event in events)
        yield f"  {not_seen_text(hidden, most=3)}{f'. {LITTLE_NOT_SEEN}' if is_fine else ''}"
        yield from (f"  {text}" for text in advice)
    yield from (f"  {text}" for text in dict.fromkeys(text for event in events for text in event["to_do"]))


def _judged(events: Sequence[CheckedCase], *, verbose: bool) -> Iterator[str]:
    judgements: Counter[str] = sum((Counter(event["judgements"]) for event in events), Counter())
    counts = ", ".join(f"{count} {name}" for name, count in sorted(judgements.items())) or "none exported for cpu"
    total = plural(sum(judgements.values()), "golden")
    unpromised = judgements and judgements.keys() <= {"bonus", "outside"}
    nothing = "; nothing was promised: the installed jaxlib is outside the window of each" if unpromised else ""
    yield f"{plural(len(events), 'case')} checked against {total}: {counts}{nothing}"
    if verbose:
        stored = sum(event["stored"] for event in events)
        yield f"  {stored} of them by the outcome of an earlier run, since nothing has changed (--no-export-cache)"


def _remark_lines(events: Sequence[CheckedCase], update: Update) -> Iterator[str]:
    """Yield remarks on cases that were checked, such as changed exports, with commands that write their goldens."""
    # Goldens with the same outcome share a line: a broken release would fill the screen otherwise.
    goldens_by_text: dict[str, list[str]] = {}
    for golden, text in (line for event in events for line in event["shown"]):
        goldens_by_text.setdefault(text, []).append(golden)
    for text, goldens in goldens_by_text.items():
        yield f"  {few(goldens, most=3)}: {text}"
    if undecided := [golden for event in events for golden in event["undecided"]]:
        counted = f"{plural(len(undecided), 'golden')} with outputs that would not show a wrong number"
        yield f"{counted}: {few(undecided, most=3)}; `jaxexport inspect GOLDEN` says which, and what passes"
    if not_replayed := sum(event["elsewhere"] for event in events):
        without = sum(event["without_outputs"] for event in events)
        outputs = f", {without} of them without outputs" if without else ""
        yield f"{plural(not_replayed, 'golden')} not replayed: exported for other platforms than cpu{outputs}"
    if by_outputs := [event["case"] for event in events if event["compared_by_outputs"]]:
        cases = few(by_outputs, most=3)
        yield f"{plural(len(by_outputs), 'case')} compared only by their outputs, since two exports differ: {cases}"
    for event in events:
        if event["changed"]:
            yield (
                f"  {event['case']}: export changed, and changed_module is warn: {event['changed']}. "
                f"{update([event])} stores it"
            )
        if event["other_inputs"]:
            yield (
                f"  {event['case']}: example arguments are not the golden's inputs, which were compared: "
                f"{few(event['other_inputs'], most=3)}. {update([event])} stores the new ones; if they are random, "
                "seed them in the test, else they differ from run to run"
            )
    if sentences := [text for event in events for text in event["other_generations"]]:
        from export_core.judge.generations import first_changes  # NumPy, as above

        yield from (f"  {text}" for text in first_changes(sentences))


def _deployed(events: Sequence[DeployedCase]) -> Iterator[str]:
    """Yield lines about cases that are deployed in other releases: how many in which, and the command to test them."""
    cases: dict[str, dict[str, set[str]]] = {}
    for event in events:
        for title in event["deployed"]:
            cases.setdefault(event["run_deployed"], {}).setdefault(title, set()).add(event["case"])
    for command, by_title in cases.items():
        (title, first), *others = by_title.items()
        more = "".join(f", {len(names)} in {name}" for name, names in others)
        them = "it" if len(first) == 1 and not others else "them"
        yield f"{plural(len(first), 'case')} deployed in {title}{more}: `{command}` tests {them} there"


def _compared_otherwise(events: Sequence[CheckedCase]) -> Iterator[str]:
    """Yield a line about the cases that a matrix would compare differently, with policy entries that change that."""
    if not events:
        return
    cases: dict[str, list[str]] = {}
    for event in events:
        cases.setdefault(json.dumps(event["corrected"]), []).append(event["case"])
    entries = [{"cases": names, **json.loads(how), "reason": "TODO"} for how, names in cases.items()]
    text = yaml_text({"numbers": entries}, default_flow_style=True, width=float("inf")).strip()
    yield (
        f"{plural(len(events), 'case')} compared by the marker and options of this run, not by the rule in their "
        f"goldens. `jaxexport matrix` still uses the goldens' rule; to change that, add to the policy: {text[1:-1]}"
    )


def in_brief(parts: Sequence[str]) -> list[str]:
    """Return the differences in `WrittenCase.replaced`, shortened for a line of the summary.

    All changes of the envelope become one part. The changes of modules become the first change, with how many follow.
    """
    envelope = [part.removeprefix(ENVELOPE) for part in parts if part.startswith(ENVELOPE)]
    operations = [part for part in parts if part.startswith(MODULE)]
    brief = [part for part in parts if not part.startswith((ENVELOPE, MODULE))]
    if envelope:
        brief.append(f"{ENVELOPE}{', '.join(envelope)}")
    if operations:
        # A line such as "module: 3 or more other operations differ" stands for as many.
        counts = [int(found[1]) if (found := _OTHERS.match(part)) else 1 for part in operations]
        at_least = "at least " if any(_OTHERS.match(part) for part in operations) else ""
        more = f", and {at_least}{plural(sum(counts) - 1, 'other difference')}" if operations[1:] else ""
        brief.append(f"{operations[0]}{more}")
    return brief
