"""A check of the time left that a run shows: it records a run's progress, and replays the record.

``python -m tools.time_left FILE --record matrix …`` runs `jaxexport matrix …` and records when each cell ended.
``python -m tools.time_left FILE…`` replays such files. It compares the time left that would have been shown at each
half second with the time that was really left. The exit code is 1 if a file breaks the rule below.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from export_core.report import progress

FROM, FACTOR, SLACK, STILL = 0.2, 1.5, 5.0, 10.0
"""The rule, which holds after a fifth of the run. The real time left is in the shown range, or differs from the range's
middle by a factor of at most 1.5 or by at most 5 seconds. And the text changes at least every 10 seconds."""

Event = tuple[float, str] | tuple[float, str, bool, float]
"""An event of a run: the seconds since its start, and a reader. With two items, the reader's environment was built;
with four, a cell of the reader ended, which is promised or not, and has a cost."""


class Shown(NamedTuple):
    """What a run shows of the time left at a moment: a text and its range. `left` is the time that was really left."""

    seconds: float
    text: str
    low: float
    high: float
    left: float

    @property
    def is_true(self) -> bool:
        """Whether the real time left is in the shown range, or near enough to the middle of the range."""
        middle = (self.low * self.high) ** 0.5
        wrong = max(middle, 0.1) / max(self.left, 0.1)
        return self.low <= self.left <= self.high or 1 / FACTOR <= wrong <= FACTOR or abs(middle - self.left) <= SLACK


class Clock:
    """A clock that stands still until somebody sets it."""

    now = 0.0

    def __call__(self) -> float:
        """Return the seconds that have passed."""
        return self.now


def shown(events: Sequence[Event]) -> Iterator[Shown]:
    """Yield what is shown at each half second of a recorded run."""
    clock = Clock()
    cells = Counter((event[1], event[2]) for event in events if len(event) == 4)
    time_left = progress.TimeLeft(cells, clock)
    end, waiting = events[-1][0], list(events)
    for half in range(int(end * 2) + 1):
        while waiting and waiting[0][0] <= half / 2:
            clock.now, *what = waiting.pop(0)
            (time_left.cell if what[1:] else time_left.environment)(*what)
        clock.now = half / 2
        low, high = time_left.range() or (0.0, 0.0)
        yield Shown(clock.now, str(time_left), low, high, end - clock.now)


def problems(events: Sequence[Event]) -> list[str]:
    """Return a line for each half second of a recorded run whose shown time left is false, missing, early or stale."""
    end = events[-1][0]
    first_cell = next(event[0] for event in events if len(event) == 4)
    found, since, before = [], 0.0, ""
    for moment in shown(events):
        if moment.text != before:
            since, before = moment.seconds, moment.text
        if moment.text and moment.seconds < first_cell:
            found.append(f"{moment.seconds:.0f} s: expected no text before a cell has run, found {moment.text}")
        if not moment.text:
            if moment.left and moment.seconds > max(end * FROM, first_cell + SLACK):
                found.append(f"{moment.seconds:.0f} s: expected a time left, found none")
            continue
        if moment.seconds - since > STILL:
            found.append(f"{moment.seconds:.0f} s: expected a new text after {STILL:.0f} s, found {moment.text} still")
        if moment.seconds > end * FROM and not moment.is_true:
            found.append(f"{moment.seconds:.0f} s: expected about {moment.left:.0f} s left, found {moment.text}")
    return found


class Recorder(progress.TimeLeft):
    """The computation of a run's time left, which also records when environments are built and cells end."""

    events: list[Event] = []  # noqa: RUF012  # of the one run of this process

    def environment(self, reader: str) -> None:
        """Record that the environment of a reader is built."""
        self.events.append((round(self._now(), 2), reader))
        super().environment(reader)

    def cell(self, reader: str, promised: bool, cost: float) -> None:
        """Record that a cell of a reader has ended, with its estimated cost."""
        self.events.append((round(self._now(), 2), reader, promised, round(cost, 3)))
        super().cell(reader, promised, cost)


def record(file: Path, words: Sequence[str]) -> None:
    """Run `jaxexport` with these words, and write into a file when environments were built and cells ended."""
    from export_core.cli.entry import main as jaxexport

    progress.TimeLeft = Recorder  # type: ignore[misc]
    sys.argv = ["jaxexport", *words]
    try:
        jaxexport()
    except SystemExit as end:
        print(f"jaxexport ended with exit code {end.code}")
    finally:
        file.write_text("[{}]\n".format(",\n".join(map(json.dumps, Recorder.events))), encoding="utf-8")


def main() -> None:
    """Record a run, or check the files of recorded runs, and exit with 1 if a file breaks the rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--record", nargs=argparse.REMAINDER, help="the words of the command, such as matrix --jobs 2")
    options = parser.parse_args()
    if options.record:
        record(options.files[0], options.record)
    broken = False
    for file in options.files:
        events = [tuple(row) for row in json.loads(file.read_text(encoding="utf-8"))]
        found = problems(events)
        broken |= bool(found)
        print(f"{file}: {len(events)} events in {events[-1][0]:.0f} s; {len(found)} half seconds break the rule")
        print(*(f"  {problem}" for problem in found[:20]), sep="\n")
    raise SystemExit(broken)


if __name__ == "__main__":
    main()
