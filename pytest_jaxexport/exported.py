"""What `export_golden` returns: an object by which a test adds further calls of an exported function."""

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from export_core.base.errors import ExportCompatError
from export_core.base.text import shown
from export_core.export.golden_checks import MISMATCH, ExtraCall, GoldenChecks, call_name, inputs_file
from export_core.export.produce import ExportedAgain
from export_core.run.marker_keywords import ALL_KEYWORDS, KeywordError
from pytest_jaxexport.ledger import Ledger
from pytest_jaxexport.marker import NAME


class Exported:
    """What `export_golden` returns: `also` and `refused` add calls that the exported function must take, or refuse."""

    def __init__(self, checks: GoldenChecks | None, ledger: Ledger, *, to_write: bool) -> None:
        """Store what further calls need. `checks` is None in a second process, which exports but runs nothing."""
        self.checks = checks
        self.to_write = to_write
        self._ledger = ledger

    def also(self, *args: Any, **kwargs: Any) -> None:
        """Add a call with other values as arguments, or with other sizes of symbolic dimensions.

        Its outputs are stored in the golden and compared in every reader. The function is called at once, with the
        settings of jax that hold at this call.
        """
        __tracebackhide__ = True
        self._add("also()", ExtraCall(args, kwargs, place=_place("also()")))

    def refused(self, *args: Any, match: str = MISMATCH, **kwargs: Any) -> None:
        """Add a call that must be refused, here and in every reader: a shape outside the constraints, another dtype.

        Args:
            args: the arguments.
            match: a regular expression that must match somewhere in the refusal's message, in every release. It has at
                most one `*` or `+` in each alternative, and no `{…}`.
            kwargs: keyword arguments of the function.
        """
        __tracebackhide__ = True
        self._add("refused()", ExtraCall(args, kwargs, match, _place("refused()")))

    def _add(self, what: str, call: ExtraCall) -> None:
        __tracebackhide__ = True
        with self._ledger.enter(what):
            try:
                if self.checks is not None:
                    check_keywords(f"exported.{what}", self.checks.produced.case.function, call.kwargs)
                    self.checks.add(call)
            except ExportCompatError as error:
                raise pytest.fail.Exception(shown(str(error)), pytrace=False) from None


class SecondExported(Exported):
    """What `export_golden` returns in a second process: further calls are not run, their inputs are hashed."""

    def __init__(self, again: ExportedAgain, inputs: dict[str, str], ledger: Ledger) -> None:
        """Store what further calls need; the hash of each call's inputs is added to `inputs`, by their file."""
        super().__init__(None, ledger, to_write=False)
        self._again = again
        self._inputs = inputs
        self._calls = 0

    def _add(self, what: str, call: ExtraCall) -> None:
        self._calls += 1
        with self._ledger.enter(what), suppress(ExportCompatError):  # the first process has reported it
            if call.refused is None and (sha256 := self._again.hash_inputs(call.args, call.kwargs)):
                self._inputs[inputs_file(call_name(self._calls))] = sha256


def _place(call: str) -> str:
    """Return a call of the test with its file and line: `also() at test_a.py:16`."""
    frame = sys._getframe(2)
    return f"{call} at {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def check_keywords(call: str, function: Callable[..., Any], kwargs: Mapping[str, Any]) -> None:
    """Raise `KeywordError` for a keyword of the marker in a call, unless the function itself has that parameter.

    A function with `**kwargs` would take the keyword silently, and it would have no effect.

    Args:
        call: the call as its error names it.
        function: what is exported.
        kwargs: its keyword arguments.
    """
    given = [name for name in kwargs if name in ALL_KEYWORDS]
    if not given:
        return
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some callables have no signature
        return
    named = {parameter.name for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_KEYWORD}
    if of_marker := [name for name in given if name not in named]:
        words = ", ".join(f"{name}={kwargs[name]!r}" for name in of_marker)
        what = "is a keyword" if len(of_marker) == 1 else "are keywords"
        raise KeywordError(
            f"{call}: {', '.join(of_marker)} {what} of the marker, and the function has no parameter of that name: "
            f"write @pytest.mark.{NAME}({words})."
        )
