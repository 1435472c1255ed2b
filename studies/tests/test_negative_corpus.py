"""The negative corpus: `jaxexport` answers as negative.json records, and the page shows that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from studies.corpus.negative_corpus import ARTIFACTS, CONTROLS, corpus
from studies.corpus.negative_table import DATA, OURS, PAGE, WRITERS, ended, page

RECORDED = json.loads(DATA.read_bytes())
MADE = corpus(OURS)


@pytest.mark.parametrize("name", ARTIFACTS)
def test_inspect_and_audit_answer_as_recorded(name, jaxexport, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("it.jaxexport").write_bytes(MADE[name])
    for command in ("inspect", "audit"):
        code, message = RECORDED[name][command]
        done = jaxexport(command, "it.jaxexport")
        assert (done.code, "Traceback" in done.err) == (code, False)
        assert message in (done.err + done.out)
        assert bool(message) == (code != 0)


@pytest.mark.parametrize("name", [name for name in ARTIFACTS if RECORDED[name]["inspect"][0]])
def test_convert_refuses_what_inspect_refuses(name, jaxexport, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("it.jaxexport").write_bytes(MADE[name])
    done = jaxexport("convert", "it.jaxexport", "--for", "0.9.2", "-o", "out.jaxexport")
    assert done.code == 2
    assert RECORDED[name]["inspect"][1] in done.err
    assert not Path("out.jaxexport").exists()


def test_making_the_corpus_again_gives_the_same_bytes():
    assert corpus(OURS) == MADE
    assert len(set(MADE.values())) == len(MADE) >= 60


def test_valid_control_artifacts_are_accepted_by_all_releases():
    for name in CONTROLS:
        row = RECORDED[name]
        assert row["inspect"] == row["audit"] == [0, ""]
        assert row["jax"] == {release: ["accepted", ""] for release in WRITERS}


def test_no_artifact_crashes_or_hangs_a_release():
    assert ended(RECORDED) == []
    for stage in ("died", "no end"):
        assert ended({"it": {"jax": {**RECORDED[CONTROLS[0]]["jax"], OURS: [stage, "call"]}}}) == ["it"]


def test_the_page_of_the_corpus_shows_its_recorded_answers():
    assert list(RECORDED) == list(ARTIFACTS)
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(RECORDED, text)
