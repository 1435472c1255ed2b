"""The table of all budgets: each benchmark takes its limit from it, and the page on performance prints it.

Most limits are ratios of two sides that are measured in the same run, so they hold on any machine. Limits in seconds
are what a person can wait, and limits in megabytes fit into the memory of a CI runner.
"""

from typing import NamedTuple


class Budget(NamedTuple):
    """The limit of a measurement: the most time or memory that something may take, or the least gain in speed."""

    what: str
    limit: float
    unit: str  # The words that follow the limit, such as "times" or "ms more".
    against: str  # What `what` is compared with, or the size or person that the limit is for.

    def __str__(self) -> str:
        return f"{self.limit:g} {self.unit}"


BUDGETS = {
    "plugin": Budget(
        "a pytest run with no marked test, `--help`, `--markers`",
        20,
        "ms more",
        "the same run with `-p no:jaxexport`, in a fork of a process that has imported pytest",
    ),
    "inspect": Budget(
        "`jaxexport inspect` as a process, also with a policy of fifty entries",
        10,
        "times faster",
        "`jax.export.deserialize` and `mlir_module()` as a process",
    ),
    "reading": Budget("reading an artifact of 7 kB in process", 0.45, "times", "jaxlib's deserialize"),
    "large": Budget("reading an artifact of 50 MB in process, without a copy", 0.06, "times", "jaxlib's deserialize"),
    "check": Budget("`export_core.check` in process", 1.5, "times", "reading every operation of the artifact"),
    "known to inspect": Budget(
        "what is known of all readers, in `jaxexport inspect`", 1, "ms more", "whether each of them loads the artifact"
    ),
    "known to check": Budget(
        "what is known of a reader, in `export_core.check`", 0.1, "ms more", "whether it loads the artifact"
    ),
    "daily": Budget(
        "a marked test, goldens of five generations, nothing changed",
        1.3,
        "times",
        "`jax.export.export(f)(*args).serialize()` and one call of `f` in the same process",
    ),
    "cold": Budget("a cold cell", 1.4, "times", "the same cell in a warm process"),
    "matrix": Budget(
        "a cell of a matrix, all cores",
        1.5,
        "times",
        "the same artifacts in as many warm processes as cores, which isolate, audit and compare nothing",
    ),
    "gate": Budget(
        "the gate's answer: all promised cells",
        10,
        "% of the run more than their share",
        "the whole run",
    ),
    # On a quiet machine with two cores: 0.59 times the wall time, and 0.99 times the processor time. More than half of
    # it is XLA's compilation, which both sides do.
    "nothing": Budget(
        "from nothing to the answer: ten tests, three writers, seven readers, uv's cache warm",
        0.62,
        "times",
        "a venv and a pytest for each reader, one after the other",
    ),
    "nothing-processors": Budget("the same, processor time of all processes", 1.0, "times", "the same"),
    "environments": Budget(
        "environments on a machine that has nothing", 1.2, "times", "uv and the first import of jax"
    ),
    # Also a run without new cells reads all goldens: it checks their bytes, and lists outputs that show nothing.
    "again": Budget("the same matrix again, nothing changed", 60, "times faster", "its first run"),
    "cost": Budget("cost figures of the compiler", 1.05, "times", "the same matrix without"),
    "writing": Budget(
        "writing goldens with noise and second export, processor time of all processes",
        1.8,
        "times",
        "`--noise=later --no-second-export`",
    ),
    "writing-compiled": Budget(
        "the same, where compilation dominates", 2.8, "times", "`--noise=later --no-second-export`"
    ),
    "writing-later": Budget("the same with `--noise=later`", 1.1, "times", "`--noise=later --no-second-export`"),
    "inventory": Budget("an inventory of 10,000 artifacts on two cores", 60, "s", "a person who waits"),
    "coordinator": Budget("the coordinator's memory", 200, "MB", "100,000 planned cells"),
    "first paint": Budget("the page: first paint", 1000, "ms", "100,000 cells"),
    "ready": Budget("the page: ready", 3000, "ms", "100,000 cells"),
    "a filter": Budget("the page: a filter", 300, "ms", "100,000 cells"),
    "opening a cell": Budget("the page: opening a cell", 200, "ms", "100,000 cells"),
    "a frame while scrolling": Budget("the page: a frame while scrolling", 50, "ms", "100,000 cells"),
}


def budgets_table() -> str:
    """Return all budgets as a Markdown table."""
    rows = [("what", "budget", "against"), ("-",) * 3]
    rows += [(budget.what, str(budget), budget.against) for budget in BUDGETS.values()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
