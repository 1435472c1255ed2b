"""A test without goldens that was renamed: the unused case whose goldens are its own, and the command to rename it."""

import os
import shlex
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from export_core.base.errors import ExportCompatError
from export_core.goldens import Golden, GoldenStore, Manifest
from export_core.goldens.upkeep import exporting_test
from pytest_jaxexport.settings import Settings
from pytest_jaxexport.unused_goldens import is_named_in, why_partial

_NEWEST = pytest.StashKey["list[Golden]"]()


def rename_hint(
    manifest: Manifest,
    own: Collection[str],
    agrees: Callable[[Golden], bool],
    settings: Settings,
    config: pytest.Config,
) -> tuple[str, str]:
    """The unused case that a test may have had before, and what to do; both empty unless exactly one can be this one.

    `manifest` is that of the missing golden, `own` are the cases of its test, and `agrees` compares what the test
    exports with a golden.
    """
    candidates = [
        golden
        for golden in _newest_of_each_case(GoldenStore(settings.goldens), config)
        if _is_unused(golden, manifest.test, own, config) and agrees(golden)
    ]
    if len(candidates) != 1:
        return "", ""
    old = candidates[0].manifest
    words = ["jaxexport", "goldens", "rename", old.case, manifest.case]
    if exporting_test(old, manifest.case) != manifest.test:
        words += ["--test", manifest.test]
    folder = Path(os.path.relpath(settings.goldens, settings.directory)).as_posix()
    if folder != Path(settings.policy.goldens).as_posix():
        words += ["--goldens", folder]
    same = "jaxpr" if old.options.without_outputs else "outputs"
    text = f"Was it renamed? The unused case {old.case} has the same signature and {same}: {shlex.join(words)}"
    return old.case, text


def _newest_of_each_case(store: GoldenStore, config: pytest.Config) -> list[Golden]:
    """Read once in a run: many tests may be without goldens."""
    if _NEWEST not in config.stash:
        config.stash[_NEWEST] = newest = []
        for folder in sorted(store.root.iterdir()) if store.root.is_dir() else []:
            try:
                newest += store.generations(folder.name)[-1:]
            except ExportCompatError:  # a damaged golden fails its own test
                continue
    return config.stash[_NEWEST]


def _is_unused(golden: Golden, test: str, own: Collection[str], config: pytest.Config) -> bool:
    """Whether no test exports a golden any more, as far as this run can tell before it has ended."""
    old = golden.manifest.test
    if old == test:  # a call was renamed
        return golden.manifest.case not in own
    collected = config.pluginmanager.get_plugin("jaxexport-collection").collected  # type: ignore[union-attr]
    if not old or old in collected.tests:
        return False
    file = config.rootpath / old.partition("::")[0]
    # A parameter may have got another name, which only a run of all tests shows.
    return not is_named_in(file, old) or (old.partition("::")[0] in collected.files and not why_partial(config))
