"""Nothing is in the archive without evidence: each artifact has a golden of the same bytes."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("artifact", sorted(ROOT.glob("artifacts/*.jaxexport")), ids=lambda path: path.stem)
def test_each_artifact_has_a_golden(artifact):
    (golden,) = ROOT.glob(f"golden/{artifact.stem}/*/artifact.jaxexport")
    assert golden.read_bytes() == artifact.read_bytes()
