"""What a feature is to the kernel: what it adds, in one place, without the kernel knowing its name.

`export_core.features.FEATURES` lists the features. The `FEATURE` of each names its functions as ``module:name``, below
its own folder: they are imported when they are needed, since `jaxexport --help` must not load what a matrix needs.
"""

import functools
import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

FOLDER = "export_core.features"


# No dataclass, which takes 8 ms to import: `jaxexport inspect FILE` loads this, and reads an artifact in less.
class Feature(NamedTuple):
    """What a feature adds. Everything is left out that it does not have."""

    commands: Mapping[str, str] = {}
    """Its commands, by what is typed after `jaxexport`: ``{"goldens add": "commands:add"}``."""
    schemas: Mapping[str, tuple[str, str]] = {}
    """Its types that other programs read, by the name of their schema: ``module:Type``, and what the file is. Of these
    tools/schemas.py makes schemas."""
    quick_start: str = ""
    """Of a feature that has a command of its own name: a function that gets what is typed after it, and ends the
    command without click, or returns where click is needed."""
    facts: Mapping[str, str] = {}
    """What it adds to results, by the key in their `facts`: each a `Fact` of base/facts.py, ``module:NAME``."""
    findings: str = ""  # Findings of a run: gets the `Run`.
    table: str = ""  # A table of the report in full: gets the `Run`, and returns its lines, or none.
    picture: str = ""  # A picture of the page: gets the `Run`, and returns a `Picture` or None.
    row_line: str = ""
    """The line beside a row of the page's table: gets the cells of the row, and returns a `RowLine` or None."""
    compare: str = ""
    """What is different from an earlier run: gets the `Run` and folders of others, and returns a `Comparison`."""
    trend: str = ""
    """What moves from release to release: gets results, and whether `numbers` and `cost` are asked for; returns what
    --json prints, and the lines for people."""
    coverage: str = ""  # What goldens cover: gets the goldens, and returns the text for people.
    policy_key: str = ""  # A key of the policy, a `FeatureKey` in its module `policy_key`.
    keywords: Mapping[str, tuple[str, str]] = {}
    """Keywords of the marker, each the name of its key of the policy: the meaning and an example, which is all that
    `pytest --markers` needs."""
    rule: str = ""
    """A rule over a run that has ended: gets its results, its policy, and the results of an earlier run by cell, or
    None; returns the results as they are judged by it."""
    after_replay: str = ""
    """What is done with the cells of a matrix once all have run: gets the results, the cells, the `RunOptions`, the
    `ReplayOptions`, and what to call with a line for people; returns the results."""
    executor: str = ""
    """Another machine than this: gets what `--executor` names, and gives a context manager whose value replays cells,
    as `matrix.replay.replay_here` does."""
    remedy: str = ""  # What may make a failing cell run: gets the cell and the `ReplayOptions`; returns a sentence.
    converted: str = ""
    """A cell whose reader gets the same program in another form: gets the cell, the `ReplayOptions`, a folder to make,
    and what to call with a line for people; returns the cell of a converted golden, or None."""


@functools.cache
def features() -> Mapping[str, Feature]:
    """Every feature by the name of its folder, in the order of the list."""
    names = importlib.import_module(FOLDER).FEATURES
    return {name: importlib.import_module(f"{FOLDER}.{name}").FEATURE for name in names}


def feature_commands() -> Iterator[tuple[str, Any]]:
    """Every command of a feature, with what is typed after `jaxexport` to run it."""
    for name, feature in features().items():
        for words, where in feature.commands.items():
            yield words, _imported(name, where)


def hooks(field: str) -> list[Any]:
    """The function that each feature names in a field of its `Feature`, in the order of the list."""
    named = [(name, getattr(feature, field)) for name, feature in features().items()]
    return [_imported(name, where) for name, where in named if where]


def start_quickly(words: Sequence[str]) -> None:
    """End the command line of a feature that answers it without click; return where there is none."""
    name = words[0] if words else ""
    if name in importlib.import_module(FOLDER).FEATURES:
        feature: Feature = importlib.import_module(f"{FOLDER}.{name}").FEATURE
        if feature.quick_start:
            _imported(name, feature.quick_start)(words[1:])


def _imported(feature: str, where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(f"{FOLDER}.{feature}.{module}"), name)
