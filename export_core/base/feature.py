"""What a feature is to the kernel: what it adds, in one place, without the kernel knowing its name.

`export_core.features.FEATURES` lists the features. The `FEATURE` of each names its functions as ``module:name``, below
its own folder: they are imported when they are needed, since `jaxexport --help` must not load what a matrix needs.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

FOLDER = "export_core.features"


class Feature(NamedTuple):
    """What a feature adds. Everything is left out that it does not have.

    A tuple, since `jaxexport inspect` loads this, and `dataclasses` takes as long to load as all that it inspects with.
    """

    commands: Mapping[str, str] = MappingProxyType({})
    """Its commands, by what is typed after `jaxexport`: ``{"goldens add": "add_command:add"}``."""


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


def _imported(feature: str, where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(f"{FOLDER}.{feature}.{module}"), name)
