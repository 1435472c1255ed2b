"""The fixture by which the functions of JAX's export documents are exported as marked tests do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from export_core.export.case import Case, ExportOptions
from export_core.export.produce import ProducedGolden, produce
from export_core.releases import load_calendar

ExportMarked = Callable[..., ProducedGolden]


@pytest.fixture(scope="session")
def export_marked() -> ExportMarked:
    """A function, ``export_marked(function, *arguments, **options)``, that exports with options of the marker."""
    calendar = load_calendar()

    def exported(function: Any, *args: Any, **options: Any) -> ProducedGolden:
        case = Case("documents", "the documents", None, function, args, {}, ExportOptions(**options))
        return produce(case, calendar, reproducible=False)

    return exported
