"""Whether the time left that a run shows is true: records a run's progress, and replays it against the rule.

``python -m tools.time_left FILE --record matrix …`` runs the command `jaxexport matrix …` and writes what ended when.
``python -m tools.time_left FILE…`` replays such files: what would have been shown at each half second, beside what was
left. The exit code is 1 where a file breaks the rule.
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
"""After a fifth of the run, what is left is in the range, or within a factor of 1.5 or 5 seconds of its middle; and the
range is never the same for more than 10 seconds."""

Event = tuple[float, str] | tuple[float, str, bool, float]
"""The seconds since the start, and the reader whose environment is built; of a cell also its promise and its cost."""


class Shown(NamedTuple):
    """What is shown at a moment, and what is left in truth."""

    seconds: float
    text: str
    low: float
    high: float
    left: float

    @property
    def is_true(self) -> bool:
        """Whether what is left is in the range, or near enough to its middle."""
        middle = (self.low * self.high) ** 0.5
        wrong = max(middle, 0.1) / max(self.left, 0.1)
        return self.low <= self.left <= self.high or 1 / FACTOR <= wrong <= FACTOR or abs(middle - self.left) <= SLACK


class Clock:
    """Time that passes when it is told."""

    now = 0.0

    def __call__(self) -> float:
        """The seconds that have passed."""
        return self.now


def shown(events: Sequence[Event]) -> Iterator[Shown]:
    """What is shown at each half second of a recorded run."""
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
    """How a recorded run breaks the rule."""
    end = events[-1][0]
    first_cell = next(event[0] for event in events if len(event) == 4)
    found, since, before = [], 0.0, ""
    for moment in shown(events):
        if moment.text != before:
            since, before = moment.seconds, moment.text
        if moment.text and moment.seconds < first_cell:
            found.append(f"{moment.seconds:.0f} s: shows {moment.text}, before a cell has run")
        if not moment.text:
            if moment.seconds > max(end * FROM, first_cell + SLACK):
                found.append(f"{moment.seconds:.0f} s: shows nothing")
            continue
        if moment.seconds - since > STILL:
            found.append(f"{moment.seconds:.0f} s: shows {moment.text} for more than {STILL:.0f} s")
        if moment.seconds > end * FROM and not moment.is_true:
            found.append(f"{moment.seconds:.0f} s: shows {moment.text}, and {moment.left:.0f} s are left")
    return found


class Recorder(progress.TimeLeft):
    """The time left of a run, which also records what ends when."""

    events: list[Event] = []  # noqa: RUF012  # of the one run of this process

    def environment(self, reader: str) -> None:
        """An environment is built."""
        self.events.append((round(self._now(), 2), reader))
        super().environment(reader)

    def cell(self, reader: str, promised: bool, cost: float) -> None:
        """A cell has ended."""
        self.events.append((round(self._now(), 2), reader, promised, round(cost, 3)))
        super().cell(reader, promised, cost)


def record(file: Path, words: Sequence[str]) -> None:
    """Run `jaxexport` with these words, and write what ended when."""
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
    """Record a run, or replay what was recorded."""
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
