"""What a replay of a converted golden proves, and what it does not."""

import hashlib
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from making import ARTIFACTS, NEWEST, files, golden, release
from stored_artifacts import DATA

from export_core.artifact import read, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.writers import writers
from export_core.base.tolerances import Tolerance
from export_core.features.convert import proof
from export_core.features.convert.convert import REWRITTEN, UNCHANGED, Converted
from export_core.features.convert.errors import ConversionRefused
from export_core.features.convert.proof import ProofEvidence
from export_core.goldens import Comparison, FactorGroup
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import ARTIFACT, MODULE_TEXT, OUTPUTS
from export_core.matrix import Cell, Verdict
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import new_result
from export_core.policy import Policy
from export_core.policy.entries import NumbersRule
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from export_core.releases.calendar_entries import calendar_entries

GOLDEN = golden()
SVD_GOLDEN = Path(__file__).parents[3] / "golden/tests.compat.test_linear_algebra.test_svd/0.12.0.1-cpu"
READER = release("0.12.0.1")
SVD = (FactorGroup("svd", (0, 1, 2)),)


def made(way=REWRITTEN, *, module_by="", data="mlp", replaced=()):
    """Build a conversion that made this artifact."""
    artifact = read(ARTIFACTS / NEWEST / f"{data}.jaxexport")
    return Converted(artifact, SimpleNamespace(release=READER), way, "a reason", (), module_by, replaced)


def evidence(artifact=ARTIFACTS / NEWEST / "mlp.jaxexport", **changes):
    """Build a golden with this artifact and the text of its module."""
    content = {**files(), ARTIFACT: artifact.read_bytes(), MODULE_TEXT: b"module {}"}
    return ProofEvidence(msgspec.structs.replace(GOLDEN.manifest, **changes), content, GOLDEN.id)


def proved(
    monkeypatch,
    verdict=Verdict.PASS,
    *,
    stage=Stage.COMPARE,
    compared=True,
    platforms=("cpu",),
    golden=GOLDEN.id,
    replaced=(),
    content=None,
    policy=None,
    **changes,
):
    """Return the proof of a conversion; the replay of the converted golden ends in this verdict and stage."""
    content = files() if content is None else content
    outcome = new_result(Cell(GOLDEN, READER, "cpu"), stage, verdict, "the message")
    monkeypatch.setattr(proof, "replay_here", lambda *_, **__: [(None, outcome)])
    without = "" if compared else "made inputs"
    options = msgspec.structs.replace(GOLDEN.manifest.options, platforms=platforms, without_outputs=without)
    manifest = msgspec.structs.replace(GOLDEN.manifest, options=options, **changes)
    return proof.prove(
        *(manifest, content, ProofEvidence(manifest, content, golden), made(replaced=replaced)),
        *(ReplayOptions(load_calendar(), policy or Policy()), print),
    )


@pytest.mark.parametrize(
    ("verdict", "changes"),
    [
        (Verdict.NOT_RUN, {}),
        (Verdict.NOT_RUN, {"compared": False}),
        (Verdict.PASS, {"compared": False}),
        (Verdict.PASS, {"compared": False, "golden": None}),
        (Verdict.PASS, {"platforms": ("tpu",)}),
        (Verdict.ERROR, {"compared": False, "stage": Stage.RUN}),
    ],
)
def test_a_replay_without_a_comparison_verifies_nothing(verdict, changes, monkeypatch):
    assert not proved(monkeypatch, verdict, **changes).verified


@pytest.mark.parametrize(
    ("verdict", "changes"),
    [
        *((verdict, {}) for verdict in Verdict if verdict.fails),
        (Verdict.ERROR, {"compared": False, "stage": Stage.DESERIALIZE}),  # excused only in the call
        (Verdict.ERROR, {"compared": False, "stage": Stage.COMPILE}),
        (Verdict.CRASH, {"compared": False, "stage": Stage.RUN}),
        (Verdict.TIMEOUT, {"compared": False, "stage": Stage.RUN}),
    ],
)
def test_a_converted_artifact_that_fails_is_not_written(verdict, changes, monkeypatch):
    with pytest.raises(ConversionRefused, match=f"not written: the converted artifact ends in {verdict} in stage"):
        proved(monkeypatch, verdict, **changes)


NAN = to_npz([leaf_of(np.full(2, np.nan, np.float32))])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"comparison": Comparison("shape")}, "its comparison looks at shapes and dtypes alone"),
        ({"content": {**files(), OUTPUTS: NAN}}, "all values of its outputs are NaN"),
        ({"content": {**files(), OUTPUTS: to_npz([])}}, "the function has no outputs"),
        ({"comparison": Comparison(rtol=1e30)}, "its comparison accepts zeros in place of every output"),
        ({"policy": Policy(tolerances={"cpu": {"float32": Tolerance(atol=9.0)}})}, "accepts zeros in place of every"),
        ({"comparison": Comparison("accepting:anything")}, "its comparison accepts zeros in place of every output"),
        ({"compared": False}, "the golden has no outputs (made inputs)"),
    ],
)
def test_a_golden_that_compares_nothing_proves_nothing(changes, why, monkeypatch, cwd):
    (cwd / "accepting.py").write_text("def anything(expected, actual): pass\n")
    shown = proved(monkeypatch, **changes)
    assert (shown.verified, "; nothing was compared: " in shown.message, why in shown.message) == (False, True, True)


def test_the_proof_of_a_conversion_names_the_goldens_comparison(monkeypatch):
    shown = proved(monkeypatch, comparison=Comparison(rtol=0.45))
    assert shown.verified
    assert shown.message.endswith(f"gives the outputs of the golden {GOLDEN.id}, compared by rtol 0.45")


@pytest.mark.parametrize(("golden", "outputs"), [(GOLDEN.id, f"the golden {GOLDEN.id}"), (None, "--outputs")])
def test_a_proof_names_the_golden_or_the_given_outputs(golden, outputs, monkeypatch):
    shown = proved(monkeypatch, golden=golden)
    assert (shown.verified, shown.message) == (True, f"jaxlib {READER.jaxlib} gives the outputs of {outputs}")


@pytest.mark.parametrize(
    ("changes", "is_named"),
    [
        ({"factors": SVD, "replaced": ("lapack_sgesdd_ffi",)}, True),
        ({"factors": SVD}, False),
        ({"replaced": ("lapack_sgesdd_ffi",)}, False),
        ({"factors": SVD, "replaced": ("lapack_sgesdd_ffi",), "comparison": Comparison(compare="exact")}, False),
    ],
)
def test_a_proof_says_that_replaced_factorizations_may_change_sign(changes, is_named, monkeypatch):
    content = {**files(), OUTPUTS: (SVD_GOLDEN / OUTPUTS).read_bytes()}
    message = proved(monkeypatch, content=content, **changes).message
    assert message.endswith(", compared as factors of svd, which are unique up to sign") is is_named


@pytest.mark.parametrize(
    ("size", "dtype", "made"),
    [
        (8, "float32", True),
        (1 << 27, "float32", False),
        ((1 << 25) + 1, "float64", False),  # bytes count, not elements
        ((1 << 24) + 1, "complex128", False),
        ((1 << 24) + 1, "key<urbg>", False),
    ],
)
def test_inputs_for_a_proof_are_generated_unless_they_would_be_huge(size, dtype, made, monkeypatch):
    if not made:
        monkeypatch.setattr("export_core.goldens.made_inputs.made_leaf", lambda *of: pytest.fail("they would be huge"))
    envelope = read(ARTIFACTS / NEWEST / "symbolic.jaxexport").envelope
    aval = envelope.in_avals[0]._replace(shape=(size,), dtype=dtype)
    artifact = read_bytes(encode(envelope._replace(in_avals=(aval,))))
    found = proof.made_evidence(artifact, load_calendar())
    assert (found is not None) is made
    assert found is None or found.manifest.options.without_outputs


def test_generated_evidence_names_the_newest_possible_writer():
    calendar = load_calendar()
    artifact = read(DATA / "0.4.30" / "mlp.jaxexport")
    possible = writers(artifact, calendar_entries(calendar))
    assert len(possible) > 2
    assert proof.made_evidence(artifact, calendar).manifest.writer.jaxlib == possible[-1]


def test_an_artifact_that_needs_no_change_keeps_its_golden_unchanged():
    before = evidence(factors=SVD)
    assert proof.converted_golden(before, made(UNCHANGED)) == (before.manifest, before.files)


@pytest.mark.parametrize("module_by", ["", "0.9.2"])
def test_a_converted_golden_drops_the_text_of_a_replaced_module(module_by):
    converted = made(module_by=module_by, data="cholesky")
    before = evidence()
    manifest, files = proof.converted_golden(before, converted)
    data = converted.artifact.data
    assert (files[ARTIFACT], manifest.files[ARTIFACT]) == (data, hashlib.sha256(data).hexdigest())
    assert manifest.custom_calls == ("lapack_spotrf_ffi", "lapack_strsm_ffi")
    assert manifest.converted_from == converted.origin(hashlib.sha256(before.files[ARTIFACT]).hexdigest())
    assert (MODULE_TEXT in files, MODULE_TEXT in manifest.files) == ((not module_by,) * 2)


@pytest.mark.parametrize("factors", [(), (FactorGroup("svd", (2, 1, 0)),)])
def test_a_converted_golden_compares_factors_as_its_original_does(factors):
    before = evidence(SVD_GOLDEN / ARTIFACT, factors=factors)
    assert proof.converted_golden(before, made())[0].factors == (factors or SVD)


def test_a_proof_replays_in_the_reader_under_the_policy(monkeypatch):
    replayed = []

    def replay(cells, options, *, notify):
        replayed.extend(cells)
        assert (cells[0].golden.folder / ARTIFACT).read_bytes() == before.files[ARTIFACT]
        assert options.limits.jobs == 1
        yield cells[0], new_result(cells[0], Stage.COMPARE, Verdict.PASS, "")

    monkeypatch.setattr(proof, "replay_here", replay)
    before = evidence()
    rule = NumbersRule(cases=(GOLDEN.manifest.case,), rtol=0.25, reason="measured")
    policy = Policy(numbers=(rule,))
    shown = proof.prove(before.manifest, before.files, before, made(), ReplayOptions(load_calendar(), policy), print)
    (cell,) = replayed
    assert shown.verified
    assert (cell.reader.jaxlib, cell.platform, cell.golden.compared_as.comparison.rtol) == (READER.jaxlib, "cpu", 0.25)
    assert shown.message.endswith(", compared by rtol 0.25")
