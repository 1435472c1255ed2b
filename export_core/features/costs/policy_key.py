"""The entries of the policy's table `budgets`: what the call of an artifact may cost in a reader."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from export_core.base.phrases import did_you_mean
from export_core.base.tolerances import PLATFORMS
from export_core.policy.entries import Patterns, Platforms
from export_core.policy.feature_keys import FeatureKey, Key, Problems

Limit = float | None


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The most that some promised cells may cost. A cell that works and costs more is judged `over-budget`.

    For each limit the first entry counts that is about the cell and sets that limit. A figure that a release or a
    platform does not say exceeds no limit; the report counts such cells.
    """

    cases: Annotated[Patterns, Meta(description="Case ids or globs.")] = ("*",)
    writers: Annotated[Patterns, Meta(description="jaxlib versions or globs.")] = ("*",)
    readers: Annotated[Patterns, Meta(description="jaxlib versions or globs.")] = ("*",)
    platforms: Annotated[Platforms, Meta(description="Platforms of the cells.")] = PLATFORMS
    max_temp_bytes: Annotated[Limit, Meta(description="Bytes of temporary buffers.")] = None
    max_argument_bytes: Annotated[Limit, Meta(description="Bytes of arguments.")] = None
    max_output_bytes: Annotated[Limit, Meta(description="Bytes of outputs.")] = None
    max_alias_bytes: Annotated[Limit, Meta(description="Bytes of outputs that share an argument's buffer.")] = None
    max_code_bytes: Annotated[Limit, Meta(description="Bytes of generated code.")] = None
    max_flops: Annotated[Limit, Meta(description="Floating-point operations.")] = None
    max_transcendentals: Annotated[Limit, Meta(description="Evaluations of functions such as exp and sin.")] = None
    max_bytes_accessed: Annotated[Limit, Meta(description="Bytes read and written.")] = None
    max_instructions: Annotated[Limit, Meta(description="HLO instructions after optimization.")] = None
    max_fusions: Annotated[Limit, Meta(description="Those of them that are fusions.")] = None
    max_growth: Annotated[
        float | dict[str, float] | None,
        Meta(
            description="How many times the figure of the golden's own writer, and with --baseline of the same cell "
            "there, a figure may be: a number for temp_bytes, flops and bytes_accessed, or a number by figure. A "
            "growth by less than 1,024 bytes, 1,000 operations or 10 instructions counts as none."
        ),
    ] = None
    warn_slower: Annotated[
        Limit,
        Meta(
            description="How many times slower than in the golden's own writer a cell may run before the report "
            "warns; needs `--repeat`. A warning changes no judgement and no exit code."
        ),
    ] = None
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read

    def growths(self) -> Mapping[str, float]:
        """The limits of `max_growth` by figure."""
        if self.max_growth is None or isinstance(self.max_growth, dict):
            return self.max_growth or {}
        return dict.fromkeys(GROWING, self.max_growth)


GROWING = ("temp_bytes", "flops", "bytes_accessed")
"""What `max_growth` is about where it names no figures: memory, work, and the bytes that are moved for it."""

FIGURES = tuple(name.removeprefix("max_") for name in Budget.__struct_fields__ if name.startswith("max_"))[:-1]
"""The figures that have a limit; the last field is that of growths."""

LIMITS = (*(f"max_{figure}" for figure in FIGURES), "max_growth", "warn_slower")
"""The keys that are limits, of which an entry has at least one."""


def problems(key: Key, budget: Budget) -> Problems:
    """What is wrong with an entry, each problem with its key below `key`."""
    limits = {name: value for name in LIMITS if (value := getattr(budget, name)) is not None}
    if not limits:
        yield key, f"expected at least one limit, found none. There are {', '.join(LIMITS)}."
    for name, value in limits.items():
        least = 1 if name in ("max_growth", "warn_slower") else 0
        by_figure = value if isinstance(value, dict) else {"": value}
        for figure, limit in by_figure.items():
            path = (*key, name, figure) if figure else (*key, name)
            if figure and figure not in FIGURES:
                yield path, f"expected some of {', '.join(FIGURES)}, found {figure!r}.{did_you_mean(figure, FIGURES)}"
            elif not (limit >= least and math.isfinite(limit)):
                yield path, f"expected a finite number of {least} or more, found {limit:g}."


BUDGETS = FeatureKey(
    "budgets",
    Budget,
    "What promised cells may cost: one that works and costs more is `over-budget`, which fails a run.",
    "budget",
    problems,
    LIMITS,
)
