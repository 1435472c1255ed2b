"""Whether a function is run when its golden is written: by platform, and by what the marker says."""

from __future__ import annotations

import numpy as np
import pytest

from export_core.export import Case, ExportError, ExportOptions
from export_core.export.case import outputs_if_any
from export_core.goldens.arrays import leaf_of

OUTPUTS = (leaf_of(np.ones(2)),)


def outputs_on(platform: str, reason: str, error: Exception | None = None):
    def compute():
        if error:
            raise error
        return OUTPUTS

    options = ExportOptions(platforms=("cuda",), without_outputs=reason)
    case = Case("test_a.test_f", "test_a.py::test_f", None, lambda: None, (), {}, options)
    return outputs_if_any(case, platform, ("cuda",), compute)


@pytest.mark.parametrize(("platform", "reason"), [("cpu", ""), ("cuda", ""), ("cuda", "CI has no GPU")])
def test_a_function_that_runs_has_outputs_also_on_its_own_platform(platform, reason):
    assert outputs_on(platform, reason) == (OUTPUTS, "")


def test_with_a_reason_nothing_is_run_elsewhere():
    assert outputs_on("cpu", "CI has no GPU", AssertionError("it ran")) == (None, "CI has no GPU")


@pytest.mark.parametrize(
    "told",
    [
        "MLIR translation rule for primitive 'mine' not found for platform cpu",
        "Only interpret mode is supported on CPU backend",
    ],
)
def test_where_jax_has_no_lowering_its_message_is_the_reason(told):
    reason = f"JAX cannot run it on cpu, where it was written: {told}"
    assert outputs_on("cpu", "", NotImplementedError(f"{told}.\nmore")) == (None, reason)


def test_an_error_elsewhere_asks_for_a_reason():
    with pytest.raises(ExportError, match=r"does not run on cpu.*ValueError: no rule\. .*without_outputs='why'"):
        outputs_on("cpu", "", ValueError("no rule.\nmore"))


def test_an_error_on_its_own_platform_is_that_of_the_function():
    with pytest.raises(ValueError, match="no rule"):
        outputs_on("cuda", "CI has no GPU", ValueError("no rule"))
