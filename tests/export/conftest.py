"""Cases made by hand and exported by the jax of this process."""

from collections.abc import Callable
from typing import Any

import jax
import pytest

from export_core.export.case import Case, ExportOptions
from export_core.export.produce import ProducedGolden, produce
from export_core.releases import load_calendar

Exporting = Callable[..., ProducedGolden]


@pytest.fixture
def exported() -> Exporting:
    """``exported(f, x, vjp_order=1)``: the golden that this jax makes of a function, which it jits if needed."""

    def export(function: Any, *args: Any, kwargs: dict[str, Any] | None = None, **asked: Any) -> ProducedGolden:
        jitted = function if hasattr(function, "lower") else jax.jit(function)
        case = Case("test_a.test_f", "test_a.py::test_f", None, jitted, args, kwargs or {}, ExportOptions(**asked))
        return produce(case, load_calendar(), reproducible=False)

    return export
