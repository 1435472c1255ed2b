"""`jaxexport badge`: the verdict of a run in a few words."""

import json
from xml.etree import ElementTree as Xml

import msgspec
from example_runs import broken_run, kept_run
from making import result, summarize

from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
from export_core.report.badge import badge, badge_svg


def test_a_broken_run_says_how_many_of_how_many():
    assert badge(broken_run()[1]).message == "broken: 67 of 1,350 promised cells"


def test_a_kept_run_is_green_and_a_broken_one_red():
    kept, broken = badge(kept_run()[1]), badge(broken_run()[1])
    assert kept.message.startswith("kept: all ")
    assert (kept.color, broken.color) == ("#2c8a58", "#c62f38")


def test_known_failures_are_named_beside_what_is_kept():
    known = result(Verdict.CRASH, Judgement.KNOWN, case="t.b", stage=Stage.RUN)
    made = summarize([result(), known])
    assert badge(msgspec.structs.replace(made, exit_code=0)).message == "kept: 1 of 2 promised cells, 1 known failure"


def test_a_run_without_results_is_incomplete():
    empty = summarize([], planned=2)
    assert badge(empty).message == "incomplete: 2 of 2 planned cells have no result that counts"


def test_the_picture_says_it_to_a_screen_reader():
    picture = Xml.fromstring(badge_svg(badge(broken_run()[1])))
    assert picture.get("aria-label") == "jax.export: broken: 67 of 1,350 promised cells"


def test_shields_reads_the_endpoint():
    assert json.loads(msgspec.json.encode(badge(broken_run()[1]))) == {
        "schemaVersion": 1,
        "label": "jax.export",
        "message": "broken: 67 of 1,350 promised cells",
        "color": "#c62f38",
    }
