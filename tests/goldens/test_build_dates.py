"""A golden has the build date of the calendar: another one is an error wherever goldens are read to be judged."""

from __future__ import annotations

import msgspec
import pytest
from making import NEWEST, day, files, manifest, release, write_golden

from export_core.goldens import Golden, GoldenError, GoldenStore
from export_core.matrix import Selection
from export_core.policy import ExtraReleases, Policy
from export_core.policy.run_options import RunOptions
from export_core.releases import JaxlibRelease
from export_core.run.session import plan_here, plan_matrix


@pytest.fixture
def claims(tmp_path, monkeypatch):
    """A folder with a golden whose manifest claims a build date."""
    monkeypatch.chdir(tmp_path)

    def write(built: str, jaxlib: str = "0.9.2") -> Golden:
        made = manifest("t.a")
        writer = msgspec.structs.replace(made.writer, jax=jaxlib, jaxlib=jaxlib, built=day(built))
        return write_golden(GoldenStore(tmp_path / "golden"), msgspec.structs.replace(made, writer=writer))

    return write


SAID = "golden/t.a/0.9.2-cpu/golden.yaml:8: writer.built: expected 2026-03-18, the build date of jaxlib 0.9.2"


@pytest.mark.parametrize(
    "words",
    [
        ("goldens", "verify"),
        ("goldens", "prune"),
        ("plan",),
        ("matrix", "--no-cache"),
        ("matrix", "--writers", "0.12.0.1"),
        ("forecast",),
        ("policy", "check"),
    ],
)
@pytest.mark.parametrize("built", ["2024-01-01", "2099-01-01"])
def test_a_golden_cannot_claim_its_own_build_date(words, built, claims, jaxexport, tmp_path):
    claims(built)
    write_golden(GoldenStore(tmp_path / "golden"), manifest("t.b"))
    ended = jaxexport(*words)
    assert (ended.code, SAID in ended.err) == (2, True), ended
    assert f"in the calendar, found {built}." in ended.err
    assert not (tmp_path / ".jaxexport").exists(), "nothing was run"


def test_pytests_own_replay_refuses_a_claimed_date(claims):
    golden = claims("2024-01-01")
    with pytest.raises(GoldenError, match=r"writer\.built: expected 2026-03-18"):
        plan_here(Policy(), Selection(), RunOptions(), [golden], release(NEWEST))


@pytest.mark.parametrize("words", [("goldens", "verify"), ("plan", "--readers", NEWEST)])
def test_a_writer_that_nobody_can_date_is_an_error(words, claims, jaxexport):
    claims("2026-11-20", "0.13.0")
    ended = jaxexport(*words)
    assert ended.code == 2
    assert "golden.yaml:7: writer.jaxlib: jaxlib 0.13.0 is not in the release calendar" in ended.err


def test_a_release_of_the_project_dates_its_goldens(claims):
    golden = claims("2026-11-20", "0.13.0")
    selection, options = Selection(readers=NEWEST), RunOptions(as_of=day("2026-11-22"))

    def planned(built: str) -> str:
        policy = Policy(releases=ExtraReleases({"0.13.0": JaxlibRelease(day(built))}))
        return plan_matrix(policy, selection, options, [golden]).cells[0].golden.id

    assert planned("2026-11-20") == golden.id
    with pytest.raises(GoldenError, match=r"expected 2026-11-19, the build date of jaxlib 0\.13\.0"):
        planned("2026-11-19")


@pytest.mark.parametrize(
    ("writer", "message"),
    [
        ("0.12.0.1", "writer: expected an artifact in a format that jax 0.12.0.1 writes, found another."),
        ("0.6.2", "writer: expected an artifact in a format that jax 0.6.2 writes, found another."),
        ("0.9.0", "writer: expected a module for StableHLO 1.13.4 or 1.13.0, as jaxlib 0.9.0 writes, found 1.13.7."),
    ],
)
@pytest.mark.parametrize("words", [("goldens", "verify"), ("plan",), ("matrix", "--no-cache")])
def test_a_golden_cannot_claim_another_writer(words, writer, message, jaxexport, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_golden(GoldenStore(tmp_path / "golden"), manifest("t.a", writer), files(jaxlib="0.9.2"))
    ended = jaxexport(*words)
    assert (ended.code, f"golden/t.a/{writer}-cpu/golden.yaml:7: {message}" in ended.err) == (2, True), ended
