"""Conversions of this repository's goldens, verified in the releases that refuse the originals."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from export_core.conversion.record import ConversionRecord

pytestmark = pytest.mark.matrix
GOLDENS = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize(
    ("name", "jaxlib", "rewrite"),
    [
        ("test_programs.test_top_k/0.12.0.1-cpu", "0.8.1", "modules written for StableHLO 1.13.3"),
        ("test_shardings.test_constraint_inside/0.12.0.1-cpu", "0.6.2", "constraints of Shardy written as XLA's: 1"),
        ("test_derivatives.test_third_order/0.12.0.1-cpu", "0.6.2", "with 3 derivatives"),
        ("test_devices.test_auto_axes/0.12.0.1-cpu", "0.8.1", "named shardings written as XLA's"),
        ("test_shardings.test_four_devices/0.6.2-cpu", "0.12.0.1", "XLA's shardings written as named ones"),
    ],
)
def test_a_rewritten_artifact_is_taken(jaxexport, tmp_path, name, jaxlib, rewrite):
    out = tmp_path / "out.jaxexport"
    artifact = GOLDENS / f"tests.compat.{name}" / "artifact.jaxexport"
    ended = jaxexport("convert", str(artifact), "--for", jaxlib, "-o", str(out), "--goldens", str(GOLDENS))
    assert ended.code == 0, ended.err
    record = msgspec.json.decode(Path(f"{out}.converted.json").read_bytes(), type=ConversionRecord)
    assert record.verdict == "converted"
    assert record.golden == f"tests.compat.{name}"
    assert any(rewrite in text for text in record.converted_from.rewrites)
