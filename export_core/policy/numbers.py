"""The entries of the policy's table `numbers`: how goldens are compared, whatever they recorded."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class NumbersRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the goldens of some cases by some writers are compared, instead of what they recorded themselves.

    The first entry that matches a golden counts, as a whole: one without tolerances gives it the default back.
    """

    cases: Annotated[tuple[str, ...], Meta(description="Case ids or globs.")]
    reason: Annotated[str, Meta(description="Why these goldens are compared so, in a sentence a report can repeat.")]
    writers: Annotated[
        tuple[str, ...],
        Meta(description="jaxlib versions, names of goldens' folders such as 0.12.0.1-cpu, or globs."),
    ] = ("*",)
    compare: Annotated[
        str, Meta(description="The comparator, as in the marker: allclose, exact, eigh and so on, or module:function.")
    ] = "allclose"
    rtol: Annotated[float | dict[str, float] | None, Meta(description="Relative tolerance: a number, or by dtype.")] = (
        None
    )
    atol: Annotated[float | dict[str, float] | None, Meta(description="Absolute tolerance: a number, or by dtype.")] = (
        None
    )
    ulp: Annotated[
        int | dict[str, int] | None, Meta(description="Tolerance in units of the last place: a number, or by dtype.")
    ] = None
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read
