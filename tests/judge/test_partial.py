"""A run of a part of the project's plan says which part it was, wherever it is reported."""

from __future__ import annotations

import pytest
from making import document, result, summarize

from export_core.matrix import Selection
from export_core.policy import Policy
from export_core.policy.run_options import Shard
from export_core.report.junit import junit_xml
from export_core.report.markdown import markdown_text
from export_core.report.page import html_page
from export_core.report.wording import headline


def summary(selection, **facts):
    return summarize([result()], selection=selection.described(), **facts)


@pytest.mark.parametrize(
    ("selection", "policy", "partial"),
    [
        ({}, Policy(), ""),
        ({"readers": "all"}, Policy(), ""),
        ({"readers": "window,0.9.2"}, Policy(), ""),
        ({"readers": "0.9.2,0.12.0.1"}, Policy(readers="0.12.0.1,0.9.2"), ""),
        ({"readers": "all"}, Policy(readers="0.9.2"), ""),
        ({"platforms": ("cpu", "tpu:compile")}, Policy(), ""),
        ({"readers": "0.9.2"}, Policy(), "only readers 0.9.2"),
        ({"readers": "window"}, Policy(readers="all"), "only readers window"),
        ({"readers": "0.9.2"}, Policy(readers="0.9.2,0.10.2"), "only readers 0.9.2"),
        ({"platforms": ("cpu",)}, Policy(platforms={"cpu": "auto", "tpu": "compile"}), "only platforms cpu"),
        ({"cases": ("t.*", "a")}, Policy(), "only cases t.*, a"),
        ({"writers": ("0.9.2",)}, Policy(), "only writers 0.9.2"),
        ({"touching": "0.13.0rc1"}, Policy(), "only cells that jaxlib 0.13.0rc1 wrote or reads"),
        ({"only": "promised"}, Policy(), "only promised cells"),
        ({"only": "backward"}, Policy(), "only promised cells and those of younger readers"),
    ],
)
def test_a_selection_is_partial_unless_the_policy_asks_for_it(selection, policy, partial):
    assert summary(Selection(**selection), policy=policy).partial == partial


def test_every_report_says_which_part_it_was():
    made = summary(Selection(cases=("t.*",)), shard=Shard(1, 7))
    assert made.partial == "shard 1/7, only cases t.*"
    assert headline(made)[0] == "KEPT: the 1 promised cell; partial: shard 1/7, only cases t.*."
    told = document([result()], made)
    assert all("partial: shard 1/7, only cases t.*." in text for text in (html_page(told), junit_xml(told)))
    assert r"partial: shard 1/7, only cases t.\*." in markdown_text(told)
