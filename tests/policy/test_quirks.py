"""Quirks: each relaxes the comparison of one golden until it expires, and is reported."""

import msgspec
import pytest
from making import day, golden, result, summarize

from export_core.goldens import Comparison, Options
from export_core.judge.accepted import Accepted
from export_core.judge.weakening import accepted_in
from export_core.matrix import MatrixError
from export_core.matrix.comparisons import apply_quirks
from export_core.policy import Policy
from export_core.policy.entries import Quirk

CASE = "t.f"
QUIRK = Quirk(
    CASE, "0.9.2", "rounded otherwise", "me", "#7", added=day("2026-10-01"), rtol=1e-3, allow=("t",),
    expires=day("2026-12-01"), location="export_compat.yaml:3",
)  # fmt: skip


def test_a_quirk_relaxes_only_its_golden():
    goldens = [golden(CASE, "0.9.2"), golden(CASE, "0.10.1"), golden("t.g", "0.9.2")]
    found = apply_quirks(goldens, [QUIRK])
    assert [one.compared_as for one in found[1:]] == [one.compared_as for one in goldens[1:]]
    assert found[0].compared_as.comparison == Comparison(rtol=1e-3)
    assert found[0].compared_as.allow == {"t": "quirk: rounded otherwise; owner me, #7"}


@pytest.mark.parametrize(("location", "source"), [("ci/export_compat.yaml:3", "export_compat.yaml:3"), ("", "policy")])
def test_a_relaxed_tolerance_names_the_line_of_its_quirk(location, source):
    (found,) = apply_quirks([golden(CASE, "0.9.2")], [msgspec.structs.replace(QUIRK, location=location)])
    assert found.compared_as.sources == {"rtol": source}


@pytest.mark.parametrize(
    ("own", "quirk", "wanted"),
    [
        (None, {"float32": 1.0}, {"float32": 1.0}),
        ({"float16": 2.0, "float32": 0.5}, {"float32": 1.0}, {"float16": 2.0, "float32": 1.0}),
        ({"float16": 2.0}, 1.0, 1.0),
        (0.5, {"float32": 1.0}, {"float32": 1.0}),
    ],
)
def test_a_quirk_for_one_dtype_leaves_the_others_unchanged(own, quirk, wanted):
    one = golden(CASE, "0.9.2", comparison=Comparison(rtol=own))
    (found,) = apply_quirks([one], [msgspec.structs.replace(QUIRK, rtol=quirk)])
    assert found.compared_as.comparison.rtol == wanted


@pytest.mark.parametrize("compare", ["exact", "module:function"])
def test_a_quirk_needs_a_comparator_with_tolerances(compare):
    one = golden(CASE, "0.9.2", comparison=Comparison(compare=compare))
    with pytest.raises(
        MatrixError, match=r"^export_compat\.yaml:3: expected a golden whose comparator takes tolerances"
    ):
        apply_quirks([one], [QUIRK])
    (found,) = apply_quirks([one], [msgspec.structs.replace(QUIRK, rtol=None)])
    assert found.compared_as.allow


def test_a_quirk_is_listed_among_what_is_accepted_with_its_expiry():
    found = accepted_in([golden(CASE, "0.9.2", options=Options(("cpu",)))], Policy(quirks=(QUIRK,)))
    assert found == [
        Accepted(
            "quirk: rtol 0.001, custom call t", "rounded otherwise; owner me, #7, until 2026-12-01", ("t.f/0.9.2-cpu",)
        )
    ]


@pytest.mark.parametrize(
    ("case", "as_of", "problem"),
    [
        (CASE, "2026-12-01", None),
        (
            CASE,
            "2026-12-02",
            "expired on 2026-12-01; this is as of 2026-12-02. If it is still needed, write a new `expires`, at most 90 "
            "days after a new `added`; else delete it.",
        ),
        ("another", "2026-11-21", "matches no golden of this run. Delete it."),
    ],
)
def test_an_expired_or_unused_quirk_makes_a_run_stale(case, as_of, problem):
    summary = summarize([result(case=case)], policy=Policy(quirks=(QUIRK,)), as_of=day(as_of))
    wanted = [f"export_compat.yaml:3: quirks[0] (rounded otherwise; owner me, #7): {problem}"] if problem else []
    assert (summary.stale, summary.exit_code) == (wanted, 4 if problem else 0)
