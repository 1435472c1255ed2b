"""The keys of the stash, under which the plugin stores facts about a run of pytest and about a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_jaxexport.ledger import Ledger
from pytest_jaxexport.marker import Marked

if TYPE_CHECKING:
    from export_core.export.produce import Flags
    from pytest_jaxexport.dead_processes import RunningTest
    from pytest_jaxexport.recorder import Recorder
    from pytest_jaxexport.replayer import Replayer
    from pytest_jaxexport.second_export import SecondExport
    from pytest_jaxexport.settings import Settings

# Keys of a test's stash.
MARKED: pytest.StashKey[tuple[list[pytest.Mark], Marked]] = pytest.StashKey()
"""The markers of a test when they were read, and their keywords."""
LEDGER: pytest.StashKey[Ledger] = pytest.StashKey()  # What a test called.
RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()  # The `export_golden` of a test.
FAILED: pytest.StashKey[bool] = pytest.StashKey()
"""Whether a running test has failed already, such as in a subtest, after which it continues."""

# Keys of a run's stash.
UNHEARD: pytest.StashKey[list[str]] = pytest.StashKey()
"""Calls of `export_golden` after the ledger of their test was closed."""
NEXT: pytest.StashKey[pytest.Item | None] = pytest.StashKey()  # The test after the running one.
REPLAYER: pytest.StashKey[Replayer] = pytest.StashKey()
SETTINGS: pytest.StashKey[Settings] = pytest.StashKey()
SECOND_EXPORT: pytest.StashKey[Sequence[SecondExport]] = pytest.StashKey()
RUNNING: pytest.StashKey[RunningTest] = pytest.StashKey()
STARTED_WITH: pytest.StashKey[Mapping[str, str]] = pytest.StashKey()
"""The environment variables of this process when pytest began."""
FLAGS: pytest.StashKey[Flags] = pytest.StashKey()
"""The settings of jax when all test files had been imported; empty if none of them imports jax."""
