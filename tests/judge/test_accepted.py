"""What was let through on purpose is told with its reason."""

import msgspec
import numpy as np
import pytest
from making import day, document, files, golden, manifest, result, summarize, write_golden

from export_core.goldens import Comparison, GoldenStore, Options, Origin
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.manifest import ConvertedFrom
from export_core.goldens.store import OUTPUTS
from export_core.judge.accepted import Accepted, accepted_in, merge_accepted
from export_core.policy import Policy
from export_core.policy.entries import Quirk


def allowing(case, **options):
    return golden(case, options=Options(("cpu",), **options))


def test_each_target_and_check_has_its_reason_and_cases():
    found = accepted_in(
        [
            allowing("a", allow={"my_target": "pinned in our build"}),
            allowing("b", allow={"my_target": "pinned in our build"}, disabled_checks={"ALL": "an experiment"}),
            golden("d", options=Options(("tpu",), without_outputs="no TPU here")),
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


def test_one_target_with_two_reasons_is_reported_twice():
    found = accepted_in([allowing("a", allow={"t": "one"}), allowing("b", allow={"t": "another"})], Policy())
    assert [(each.reason, each.cases) for each in found] == [("another", ("b",)), ("one", ("a",))]


def test_the_report_ends_with_what_was_accepted():
    made = summarize([result()], accepted=[Accepted("custom call t", "pinned", ("a", "b"))])
    told = document([result()], made).findings
    assert (told[-1].title, told[-1].text) == ("accepted", "custom call t: a, b.\n  reason     pinned")


DERIVED = Origin("given", "given", derived={"writer": "the first release from a day on"})
CONVERTED = ConvertedFrom("0" * 64, "0.9.2", "rewritten", (), "pytest-jaxexport")
FOR_TENSORFLOW = msgspec.structs.replace(CONVERTED, reader="tensorflow==2.18.1")


@pytest.mark.parametrize(
    ("claims", "what", "reason"),
    [
        ({"converted_from": CONVERTED}, "a converted artifact: JAX promises nothing", "rewritten for jaxlib 0.9.2"),
        ({"converted_from": FOR_TENSORFLOW}, "a converted artifact", "rewritten for tensorflow 2.18.1"),
        ({"origin": DERIVED}, "a writer that the artifact does not name", "the first release from a day on"),
        ({"comparison": Comparison("shape")}, "comparison: shape", "its numbers are not compared"),
        ({"comparison": Comparison(rtol=1.0)}, "comparison: rtol 1", "accepts zeros in place of output 0"),
        ({"comparison": Comparison(atol={"float32": 9.0})}, "comparison: atol float32 9", "accepts zeros in place of"),
        ({"comparison": Comparison(rtol=1.0, atol=9.0, ulp=1)}, "comparison: rtol 1", "accepts zeros in place of"),
    ],
)
def test_what_a_golden_claims_without_evidence_is_reported(tmp_path, claims, what, reason):
    stored = write_golden(GoldenStore(tmp_path), manifest(**claims))
    (told,) = accepted_in([stored], Policy())
    assert (what in told.what, reason in told.reason, told.cases) == (True, True, (stored.id,)), told


@pytest.mark.parametrize(
    "comparison", [Comparison(), Comparison(rtol=0.1), Comparison(atol={"float64": 9.0}), Comparison(ulp=8)]
)
def test_a_tolerance_that_refuses_zeros_is_not_reported(tmp_path, comparison):
    assert accepted_in([write_golden(GoldenStore(tmp_path), manifest(comparison=comparison))], Policy()) == []


def test_a_tolerance_names_the_output_that_is_small_beside_it(tmp_path):
    outputs = to_npz([leaf_of(np.full(2, value, np.float32)) for value in (5.0, 0.001, 0.0)])
    stored = write_golden(
        GoldenStore(tmp_path), manifest(comparison=Comparison(atol=0.01)), {**files(), OUTPUTS: outputs}
    )
    assert [accepted.reason for accepted in accepted_in([stored], Policy())] == ["accepts zeros in place of output 1"]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ({"expires": day("2026-12-01")}, "until 2026-12-01"),
        ({"permanent": True, "approver": "the owner"}, "permanent, approved by the owner"),
    ],
)
def test_a_quirk_says_how_long_it_is_accepted_and_by_whom(ends, said):
    quirk = Quirk("c", "0.9.2", "rounded otherwise", "me", "#7", added=day("2026-10-01"), rtol=1e-3, **ends)
    (found,) = accepted_in([golden("c", "0.9.2")], Policy(quirks=(quirk,)))
    assert found == Accepted("quirk: rtol 0.001", f"rounded otherwise; owner me, #7, {said}", ("c/0.9.2-cpu",))


def test_goldens_of_a_case_are_listed_by_build_date_of_writers():
    versions = ("0.10.0", "0.9.2", "0.9.0", "0.8.3")
    quirk = Quirk("c", "*", "rounded", "me", "#7", added=day("2026-10-01"), rtol=1e-3, expires=day("2026-12-01"))
    (found,) = accepted_in([golden("c", version) for version in versions], Policy(quirks=(quirk,)))
    assert found.cases == ("c/0.9.0-cpu", "c/0.8.3-cpu", "c/0.9.2-cpu", "c/0.10.0-cpu"), "0.8.3 came after 0.9.0"
    parts = [Accepted(found.what, found.reason, (name,)) for name in sorted(found.cases)]
    assert merge_accepted([[part] for part in parts]) == [found], "of several shards too"
