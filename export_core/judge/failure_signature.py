"""What failures have in common that are one failure: the one definition, for causes, bisection and reduction."""

from __future__ import annotations

import re
from typing import NamedTuple

from export_core.judge.result import Result
from export_core.matrix import Outcome, Verdict
from export_core.readers.worker.protocol import Stage

_OWN = re.compile(r"https?://\S+|'[^']*'|0x[0-9a-f]+|\d+|(?<=Function )\S+|(?<=function )\S+|(?<=custom call to )\S+")
"""What is a case's own in a message."""


class FailureSignature(NamedTuple):
    """How a cell failed, without what differs from one case, reader or program to the next."""

    verdict: Verdict
    """What happened."""
    stage: Stage
    """How far it got."""
    message: str
    """`message_class` of its message; empty for numbers, whose message has only figures."""

    def __str__(self) -> str:
        return f"{self.verdict} in stage {self.stage}{f': {self.message}' if self.message else ''}"


def failure_signature(failed: Outcome | Result) -> FailureSignature:
    """The signature of an outcome or a result that fails."""
    message = "" if failed.verdict is Verdict.NUMERICS else message_class(failed.message)
    return FailureSignature(failed.verdict, failed.stage, message)


def message_class(message: str) -> str:
    """The first line without links, quoted names, figures, the names of functions and custom calls.

    Cases do not share these.
    """
    line = message.strip().splitlines()[0] if message.strip() else ""
    return _OWN.sub("_", line)
