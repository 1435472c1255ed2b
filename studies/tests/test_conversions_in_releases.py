"""Conversions of this repository's goldens, verified in the releases that refuse the originals."""

from pathlib import Path

import msgspec
import pytest
from stored_artifacts import DATA

from export_core.artifact import read
from export_core.goldens import Comparison, GoldenStore
from export_core.goldens.conversion_record import ConversionRecord
from export_core.releases.stable_targets import stable_targets

pytestmark = [pytest.mark.matrix, pytest.mark.usefixtures("forked_workers")]
GOLDENS = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize(
    ("name", "jaxlib", "rewrite"),
    [
        ("test_programs.test_top_k/0.12.0.1-cpu", "0.8.1", "modules written for StableHLO 1.13.3"),
        ("test_shardings.test_constraint_inside/0.12.0.1-cpu", "0.6.2", "constraints of Shardy written as XLA's: 1"),
        ("test_collectives.test_moved/0.12.0.1-cpu", "0.6.2", "manual computations (shard_map)"),
        ("test_linear_algebra.test_svd/0.12.0.1-cpu", "0.8.1", "lapack_sgesdd_ffi replaced by"),
        ("test_derivatives.test_third_order/0.12.0.1-cpu", "0.6.2", "with 3 derivatives"),
        ("test_devices.test_auto_axes/0.12.0.1-cpu", "0.8.1", "named shardings written as XLA's"),
        ("test_shardings.test_four_devices/0.6.2-cpu", "0.12.0.1", "XLA's shardings written as named ones"),
    ],
)
def test_a_converted_artifact_passes_in_its_reader(jaxexport, tmp_path, name, jaxlib, rewrite):
    out = tmp_path / "out.jaxexport"
    artifact = GOLDENS / f"tests.compat.{name}" / "artifact.jaxexport"
    words = ("--for", jaxlib, "-o", str(out), "--goldens", str(GOLDENS), "--replace-custom-calls")
    ended = jaxexport("convert", str(artifact), *words)
    assert ended.code == 0, ended.err
    record = msgspec.json.decode(Path(f"{out}.converted.json").read_bytes(), type=ConversionRecord)
    assert record.verdict == "converted"
    assert record.golden == f"tests.compat.{name}"
    assert any(rewrite in text for text in record.converted_from.rewrites)


def test_converted_factors_are_compared_up_to_sign(jaxexport, tmp_path):
    """A replaced algorithm gives different signs. So a golden that was compared by elements is compared as factors."""
    (golden,) = GoldenStore(GOLDENS).generations("tests.compat.test_linear_algebra.test_svd")[-1:]
    plain = msgspec.structs.replace(golden.manifest, comparison=Comparison())
    GoldenStore(tmp_path / "golden").write(plain, golden.files())
    folder = tmp_path / "golden" / golden.id
    ended = jaxexport("convert", str(folder), "--for", "0.8.1", "-o", str(tmp_path / "out"), "--replace-custom-calls")
    assert ended.code == 0, ended.err
    assert "compared as factors of svd, which are unique up to sign" in ended.out


def test_a_call_that_needs_lapack_is_not_replaced(jaxexport, tmp_path):
    folder = GOLDENS / "tests.compat.test_linear_algebra.test_schur" / "0.12.0.1-cpu"
    ended = jaxexport("convert", str(folder), "--for", "0.8.1", "-o", str(tmp_path / "out"), "--replace-custom-calls")
    assert ended.code == 1
    assert "lapack_sgees_ffi cannot be replaced: jax has no lowering of it without LAPACK" in ended.err
    assert not (tmp_path / "out").exists()


def test_custom_calls_of_the_old_api_are_replaced(jaxexport, tmp_path):
    out = tmp_path / "out.jaxexport"
    artifact = DATA / "0.4.30" / "cholesky.jaxexport"
    ended = jaxexport("convert", str(artifact), "--for", "0.12.0.1", "-o", str(out), "--replace-custom-calls")
    assert ended.code == 3, ended.err
    assert {call.target for call in read(out).custom_calls} <= stable_targets("0.12.0.1")


def test_via_export_exports_again_in_a_release_in_between(jaxexport, tmp_path):
    """The derivatives are exported again too: all three orders are compared with the golden's derivatives."""
    folder = GOLDENS / "tests.compat.test_derivatives.test_third_order" / "0.12.0.1-cpu"
    ended = jaxexport("convert", str(folder), "--for", "0.8.1", "-o", str(tmp_path / "out"), "--via", "export")
    assert ended.code == 0, ended.err
    (golden,) = GoldenStore(tmp_path / "out").goldens()
    assert golden.manifest.converted_from.way == "exported again"
    assert golden.manifest.converted_from.module_by == "0.8.2"


def test_exporting_again_preserves_symbolic_dimensions(jaxexport, tmp_path):
    out = tmp_path / "out.jaxexport"
    ended = jaxexport(
        *("convert", str(DATA / "0.6.2" / "symbolic.jaxexport"), "--for", "0.12.0.1", "-o", str(out), "--via", "export")
    )
    assert ended.code == 3, ended.err
    before, after = read(DATA / "0.6.2" / "symbolic.jaxexport").envelope, read(out).envelope
    assert list(map(str, after.in_avals)) == list(map(str, before.in_avals))
