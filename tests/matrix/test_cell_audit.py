"""The audit stage of a cell, which stops artifacts that must not be compiled."""

from pathlib import Path

import msgspec
import pytest
from making import ARTIFACTS, NEWEST, files, manifest, release, write_golden, writer

from export_core.goldens import GoldenStore
from export_core.goldens.manifest import ConvertedFrom
from export_core.goldens.store import ARTIFACT
from export_core.matrix import Cell, outcome
from export_core.matrix.outcome import audit_problem, foreseen_note
from export_core.policy import Policy


def problem(folder: Path, name: str, old: bytes, new: bytes, **allow: str) -> str:
    """Return why the audit stops a golden with this artifact, in which some bytes are replaced."""
    data = (ARTIFACTS / NEWEST / f"{name}.jaxexport").read_bytes().replace(old, new)
    golden = write_golden(GoldenStore(folder), manifest(), {**files(), ARTIFACT: data})
    return audit_problem(golden, msgspec.structs.replace(Policy(), allow=allow))


def test_a_golden_with_promised_calls_passes_the_audit(tmp_path):
    assert problem(tmp_path, "cholesky", b"", b"") == ""


@pytest.mark.parametrize("dialect", [b"mhlo", b"func"])
def test_an_unknown_dialect_always_stops_a_cell(tmp_path, dialect):
    for allow in ({}, {dialect.decode(): "we trust it"}):
        text = problem(tmp_path, "cholesky", b"vhlo\0", dialect + b"\0", **allow)
        assert f"{dialect.decode()} (dialect) is not read" in text


def test_an_unknown_operation_stops_a_cell_unless_allowed(tmp_path):
    assert "vhlo.tanh_v9" in problem(tmp_path, "platforms", b"tanh_v2\0", b"tanh_v9\0")
    assert problem(tmp_path, "platforms", b"tanh_v2\0", b"tanh_v9\0", **{"vhlo.tanh_v9": "it is a tanh"}) == ""


@pytest.mark.parametrize(("jax", "jaxlib", "is_promised"), [("0.4.31", "0.4.30", True), ("0.4.30", "0.4.31", False)])
def test_jax_not_jaxlib_decides_the_list_of_stable_calls(tmp_path, jax, jaxlib, is_promised):
    """lapack_spotrf_ffi is on the list of jax 0.4.31 and not on that of 0.4.30, lapack_strsm_ffi on neither."""
    pair = msgspec.structs.replace(writer(jaxlib), jax=jax)
    data = (ARTIFACTS / NEWEST / "cholesky.jaxexport").read_bytes()
    golden = write_golden(GoldenStore(tmp_path), manifest(writer=pair), {**files(), ARTIFACT: data})
    text = audit_problem(golden, Policy())
    assert ("lapack_spotrf_ffi (LAPACK routine) is not guaranteed" not in text) == is_promised
    assert f"lapack_strsm_ffi (LAPACK routine) is not guaranteed stable by jax {jax} on jaxlib {jaxlib}" in text


def test_a_converted_artifact_is_audited_by_its_readers_list(tmp_path, monkeypatch):
    listed: list[str] = []
    monkeypatch.setattr(outcome, "stable_targets", lambda version: listed.append(version) or frozenset())
    for number, reader in enumerate(("0.9.2", "tensorflow==2.18.1")):
        origin = ConvertedFrom("0" * 64, reader, "rewritten", (), "pytest-jaxexport")
        audit_problem(write_golden(GoldenStore(tmp_path / str(number)), manifest(converted_from=origin)), Policy())
    assert listed == ["0.9.2"], "another runtime has no such list"


def test_a_cell_notes_foreseen_refusals_except_on_the_cpu(tmp_path):
    data = (ARTIFACTS / NEWEST / "cholesky.jaxexport").read_bytes()
    golden = write_golden(GoldenStore(tmp_path), manifest(), {**files(), ARTIFACT: data})
    notes = {platform: foreseen_note(Cell(golden, release(NEWEST), platform)) for platform in ("cpu", "cuda")}
    assert notes == {"cpu": "", "cuda": "refused: it was exported for cpu"}
