"""The functions of JAX's export documents, exported as a marked test does it, and read back without jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from export_core.export.case import Case, ExportOptions
from export_core.export.produce import ProducedGolden, produce
from export_core.releases import load_calendar

Through = Callable[..., ProducedGolden]


@pytest.fixture(scope="session")
def through() -> Through:
    """``through(function, *arguments, **options)``: the options are those of the marker."""
    calendar = load_calendar()

    def exported(function: Any, *args: Any, **options: Any) -> ProducedGolden:
        case = Case("documents", "the documents", None, function, args, {}, ExportOptions(**options))
        return produce(case, calendar, reproducible=False)

    return exported
