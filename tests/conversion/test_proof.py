"""What a replay of a converted golden proves, and what it does not."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest
from making import NEWEST, artifact_by, golden, release

from export_core.artifact import read_bytes
from export_core.conversion import proof
from export_core.conversion.convert import Converted
from export_core.conversion.errors import ConversionRefused
from export_core.conversion.evidence import Evidence
from export_core.matrix import Cell, Verdict
from export_core.matrix.cell import Outcome
from export_core.policy import Policy
from export_core.releases import load_calendar
from export_core.worker.protocol import Stage

GOLDEN = golden()
READER = release("0.12.0.1")


def proved(monkeypatch, verdict=Verdict.PASS, *, stage=Stage.COMPARE, compared=True, platforms=("cpu",)):
    """The proof where the replay of the converted golden came to this."""
    outcome = Outcome(Cell(GOLDEN, READER, "cpu"), stage, verdict, "the message")
    monkeypatch.setattr(proof, "_replayed", lambda *_: outcome)
    options = msgspec.structs.replace(GOLDEN.manifest.options, platforms=platforms)
    manifest = msgspec.structs.replace(GOLDEN.manifest, options=options)
    artifact = read_bytes(artifact_by(NEWEST))
    converted = Converted(artifact, SimpleNamespace(jaxlib=READER.jaxlib), "envelope", "a reason")
    return proof.prove(
        manifest, {}, Evidence(manifest, {}, GOLDEN.id, compared), converted, Policy(), load_calendar(), print
    )


def test_outputs_that_agree_prove_it(monkeypatch):
    assert proved(monkeypatch).verified


@pytest.mark.parametrize(
    ("verdict", "changes"),
    [
        (Verdict.NOT_RUN, {}),
        (Verdict.NOT_RUN, {"compared": False}),
        (Verdict.PASS, {"compared": False}),
        (Verdict.PASS, {"platforms": ("tpu",)}),
        (Verdict.ERROR, {"compared": False, "stage": Stage.RUN}),
    ],
)
def test_what_was_not_tried_or_not_compared_proves_nothing(verdict, changes, monkeypatch):
    assert not proved(monkeypatch, verdict, **changes).verified


@pytest.mark.parametrize("verdict", [Verdict.ERROR, Verdict.NUMERICS, Verdict.CRASH, Verdict.REFUSED, Verdict.TIMEOUT])
def test_what_fails_is_not_written(verdict, monkeypatch):
    with pytest.raises(ConversionRefused, match=f"not written: the converted artifact ends in {verdict}"):
        proved(monkeypatch, verdict)
