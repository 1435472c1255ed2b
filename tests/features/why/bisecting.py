"""A fake replay for tests of `jaxexport bisect`: the test says how each release ends."""

import dataclasses
from collections.abc import Callable, Generator, Sequence
from typing import Any

from export_core.matrix import Cell, Verdict
from export_core.matrix.replay import Replayed
from export_core.matrix.result import new_result
from export_core.readers.worker.protocol import Stage

Ending = dict[str, Any]
"""The fields of an outcome, except its cell."""

PASS: Ending = {"stage": Stage.COMPARE, "verdict": Verdict.PASS}
CRASH: Ending = {"stage": Stage.RUN, "verdict": Verdict.CRASH, "message": "died by signal 11 (SIGSEGV)", "signal": 11}
REFUSED: Ending = {
    "stage": Stage.DESERIALIZE,
    "verdict": Verdict.REFUSED,
    "message": "ValueError: version 10 is not supported",
}
TIMEOUT: Ending = {"stage": Stage.RUN, "verdict": Verdict.TIMEOUT, "message": "still in stage run after 120 s, killed"}
NOT_RUN: Ending = {"stage": Stage.ENVIRONMENT, "verdict": Verdict.NOT_RUN, "message": "the index does not answer"}


def error(message: str) -> Ending:
    return {"stage": Stage.RUN, "verdict": Verdict.ERROR, "message": message}


def off(noise: float, verdict: Verdict = Verdict.PASS) -> Ending:
    return {"stage": Stage.COMPARE, "verdict": verdict, "max_noise_error": noise}


@dataclasses.dataclass
class FakeReplay:
    """A replay that ends each cell by its jaxlib, and records which releases ran."""

    ending: Callable[[str], Ending]
    ran: list[str] = dataclasses.field(default_factory=list)

    def __call__(self, cells: Sequence[Cell], options: Any, **_: Any) -> Generator[Replayed, None, None]:
        for cell in cells:
            self.ran.append(cell.reader.jaxlib)
            yield cell, new_result(cell, **self.ending(cell.reader.jaxlib))
