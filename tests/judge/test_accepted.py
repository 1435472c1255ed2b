"""What was let through on purpose is told with its reason."""

from __future__ import annotations

from making import day, manifest, result, summarize

from export_core.goldens import Options
from export_core.judge import Accepted, accepted_in
from export_core.policy import Policy
from export_core.report import findings


def allowing(case, **options):
    return manifest(case, options=Options(("cpu",), **options))


def test_each_target_and_check_has_its_reason_and_cases():
    found = accepted_in(
        [
            allowing("a", allow={"my_target": "pinned in our build"}),
            allowing("b", allow={"my_target": "pinned in our build"}, disabled_checks={"ALL": "an experiment"}),
            manifest("d", options=Options(("tpu",), without_outputs="no TPU here")),
            allowing("c", disabled_checks={"platform": "cosine is the same there", "my_target": "audited"}),
        ],
        Policy(),
    )
    assert found == [
        Accepted("custom call my_target", "pinned in our build", ("a", "b")),
        Accepted("no check of any custom call", "an experiment", ("b",)),
        Accepted("no check of the custom call my_target", "audited", ("c",)),
        Accepted("no check of the platform", "cosine is the same there", ("c",)),
        Accepted("no outputs: compiled, and never compared", "no TPU here", ("d",)),
    ]


def test_one_target_with_two_reasons_is_told_twice():
    found = accepted_in([allowing("a", allow={"t": "one"}), allowing("b", allow={"t": "another"})], Policy())
    assert [(each.reason, each.cases) for each in found] == [("another", ("b",)), ("one", ("a",))]


def test_the_report_ends_with_what_was_accepted():
    made = summarize(
        [result()],
        planned=1,
        policy=Policy(),
        as_of=day("2026-11-21"),
        selection={"whole": False},
        seconds=1,
        accepted=[Accepted("custom call t", "pinned", ("a", "b"))],
    )
    told = findings([result()], made)
    assert (told[-1].title, told[-1].text) == ("accepted", "custom call t: a, b.\n  reason     pinned")
