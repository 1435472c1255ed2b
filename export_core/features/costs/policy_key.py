"""The entries of the policy's table `budgets`: what the call of an artifact may cost in a reader."""

import math
from collections.abc import Mapping

import msgspec

from export_core.base.platforms import PLATFORMS
from export_core.base.text import did_you_mean
from export_core.policy.entries import Patterns, Platforms
from export_core.policy.feature_keys import FeatureKey, Key, Problems

Limit = float | None


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The most that some promised cells may cost. A cell that works and costs more is judged `over-budget`.

    Each limit of a cell comes from the first entry that matches the cell and sets the limit. A figure that a release or
    a platform does not report exceeds no limit; the report counts such cells.
    """

    cases: Patterns = ("*",)  # Case ids or globs.
    writers: Patterns = ("*",)  # jaxlib versions or globs.
    readers: Patterns = ("*",)  # jaxlib versions or globs; other runtimes report no costs, and are in no budget.
    platforms: Platforms = PLATFORMS  # Platforms of the cells.
    max_temp_bytes: Limit = None  # Bytes of temporary buffers.
    max_argument_bytes: Limit = None  # Bytes of arguments.
    max_output_bytes: Limit = None  # Bytes of outputs.
    max_alias_bytes: Limit = None  # Bytes of outputs that share an argument's buffer.
    max_code_bytes: Limit = None  # Bytes of generated code.
    max_flops: Limit = None  # Floating-point operations.
    max_transcendentals: Limit = None  # Evaluations of functions such as exp and sin.
    max_bytes_accessed: Limit = None  # Bytes read and written.
    max_instructions: Limit = None  # HLO instructions after optimization.
    max_fusions: Limit = None  # The instructions that are fusions.
    max_growth: float | dict[str, float] | None = None
    """How many times the figure of the golden's own writer, and with --baseline of the same cell there, a figure may
    be: a number for temp_bytes, flops and bytes_accessed, or a number by figure. A growth by less than 1,024 bytes,
    1,000 operations or 10 instructions counts as none."""
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read

    def growths(self) -> Mapping[str, float]:
        """Return the limits of `max_growth` by figure."""
        if self.max_growth is None or isinstance(self.max_growth, dict):
            return self.max_growth or {}
        return dict.fromkeys(GROWING, self.max_growth)


GROWING = ("temp_bytes", "flops", "bytes_accessed")
"""The figures that `max_growth` limits if it is a single number: memory, work, and the bytes that are moved for it."""

FIGURES = tuple(name.removeprefix("max_") for name in Budget.__struct_fields__ if name.startswith("max_"))[:-1]
"""The figures with a limit of their own; the last field, `max_growth`, is about several figures."""

LIMITS = (*(f"max_{figure}" for figure in FIGURES), "max_growth")
"""The keys that are limits, of which an entry has at least one."""


def problems(key: Key, budget: Budget) -> Problems:
    """Yield each problem of an entry, with the path of the value that has it; the entry's own path is `key`."""
    limits = {name: value for name in LIMITS if (value := getattr(budget, name)) is not None}
    if not limits:
        yield key, f"expected at least one limit, found none. There are {', '.join(LIMITS)}."
    for number, reader in enumerate(budget.readers):
        if reader[0].isalpha():  # no version of jaxlib begins so
            found = f"found {reader!r}: other runtimes report no costs, and no budget applies to them"
            yield (*key, "readers", number), f"expected a jaxlib version or a glob of them, {found}."
    for name, value in limits.items():
        least = 1 if name == "max_growth" else 0
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
    "it only adds a judgement of cells that work: no output is compared otherwise",
    LIMITS,
)
