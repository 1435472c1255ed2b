"""What weakens a verdict: one table of all fields says which do, and a run lists each with its reason."""

from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec
import numpy as np
import pytest
from making import ARTIFACTS, day, document, files, golden, manifest, result, summarize, write_golden

from export_core.artifact import read
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import DisabledCheck
from export_core.base.tolerances import Tolerance
from export_core.goldens import Check, Comparison, FactorGroup, Golden, GoldenStore, Manifest, Options, Origin
from export_core.goldens.arrays import leaf_of, noise_to_npz, to_npz
from export_core.goldens.manifest import ConvertedFrom, NoiseRecord
from export_core.goldens.store import ARTIFACT, NOISE, OUTPUTS
from export_core.judge import Judgement, Summary
from export_core.judge.accepted import Accepted, merge_accepted
from export_core.judge.weakening import DOES_NOT, MARKER, WEAKENS, AsField, Elsewhere, accepted_in
from export_core.matrix.comparisons import under_policy
from export_core.policy import Policy
from export_core.policy.entries import NumbersRule, Quirk, Required, WindowDays
from export_core.policy.feature_keys import feature_keys
from export_core.run.marker_keywords import KEYWORDS

NAN = to_npz([leaf_of(np.full(2, np.nan, np.float32))])


def on_disk(root, made, outputs=b"", noise_npz=b""):
    """Write a golden whose manifest need not follow the rules of a stored one, and return it in a list."""
    folder = root / made.case / made.writer.id
    folder.mkdir(parents=True)
    npz_files = {name: content for name, content in ((OUTPUTS, outputs), (NOISE, noise_npz)) if content}
    for name, content in {**files(), **npz_files}.items():
        (folder / name).write_bytes(content)
    signature = msgspec.structs.replace(made.signature, outputs=("float32[2]",))
    return [Golden(msgspec.structs.replace(made, signature=signature), folder)]


def allowing(case, **options):
    """Return a golden of a case that was exported with these options."""
    return golden(case, options=Options(("cpu",), **options))


def test_what_a_marker_allows_is_listed_with_its_reason_and_cases():
    accepted = accepted_in(
        [
            allowing("a", allow={"my_target": "pinned in our build"}),
            allowing("b", allow={"my_target": "pinned in our build"}, disabled_checks={"ALL": "an experiment"}),
            golden("d", options=Options(("tpu",), without_outputs="no TPU here")),
            allowing("c", disabled_checks={"platform": "cosine is the same there", "my_target": "audited"}),
        ],
        Policy(),
    )
    assert accepted == [
        Accepted("custom call my_target", "pinned in our build", ("a", "b")),
        Accepted("no check of any custom call", "an experiment", ("b",)),
        Accepted("no check of the custom call my_target", "audited", ("c",)),
        Accepted("no check of the platform", "cosine is the same there", ("c",)),
        Accepted("no outputs: compiled, and never compared", "no TPU here", ("d",)),
    ]


def test_a_custom_call_allowed_for_two_reasons_is_listed_twice():
    accepted = accepted_in([allowing("a", allow={"t": "one"}), allowing("b", allow={"t": "another"})], Policy())
    assert [(entry.reason, entry.cases) for entry in accepted] == [("another", ("b",)), ("one", ("a",))]


def test_the_report_ends_with_what_was_accepted():
    made = summarize([result()], accepted=[Accepted("custom call t", "pinned", ("a", "b"))])
    findings = document([result()], made).findings
    assert (findings[-1].title, findings[-1].text) == ("accepted", "custom call t: a, b.\n  reason     pinned")


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
def test_claims_of_a_golden_without_evidence_are_listed(tmp_path, claims, what, reason):
    stored = write_golden(GoldenStore(tmp_path), manifest(**claims))
    (accepted,) = accepted_in([stored], Policy())
    assert (what in accepted.what, reason in accepted.reason, accepted.cases) == (True, True, (stored.id,)), accepted


def test_a_tolerance_wider_than_an_output_is_listed_with_the_output(tmp_path):
    outputs = to_npz([leaf_of(np.full(2, value, np.float32)) for value in (5.0, 0.001, 0.0)])
    stored = write_golden(
        GoldenStore(tmp_path), manifest(comparison=Comparison(atol=0.01)), {**files(), OUTPUTS: outputs}
    )
    assert [accepted.reason for accepted in accepted_in([stored], Policy())] == ["accepts zeros in place of output 1"]


@pytest.mark.parametrize(
    ("ends", "period"),
    [
        ({"expires": day("2026-12-01")}, "until 2026-12-01"),
        ({"permanent": True, "approver": "the owner"}, "permanent, approved by the owner"),
    ],
)
def test_a_quirk_is_listed_with_its_end_and_approver(ends, period):
    quirk = Quirk("c", "0.9.2", "rounded otherwise", "me", "#7", added=day("2026-10-01"), rtol=1e-3, **ends)
    (accepted,) = accepted_in([golden("c", "0.9.2")], Policy(quirks=(quirk,)))
    assert accepted == Accepted("quirk: rtol 0.001", f"rounded otherwise; owner me, #7, {period}", ("c/0.9.2-cpu",))


@pytest.mark.parametrize(("on", "period"), [("2026-12-01", "until"), ("2026-12-02", "expired on")])
def test_an_expired_quirk_shows_its_expiry_like_a_known_failure(on, period):
    quirk = Quirk("c", "0.9.2", "r", "me", "#7", added=day("2026-10-01"), rtol=1e-3, expires=day("2026-12-01"))
    (accepted,) = accepted_in([golden("c", "0.9.2")], Policy(quirks=(quirk,)))
    (listed,) = summarize([result()], as_of=day(on), accepted=[accepted]).accepted
    assert listed.reason == f"r; owner me, #7, {period} 2026-12-01"


def test_goldens_are_listed_by_build_date_of_writers():
    versions = ("0.10.0", "0.9.2", "0.9.0", "0.8.3")
    quirk = Quirk("c", "*", "rounded", "me", "#7", added=day("2026-10-01"), rtol=1e-3, expires=day("2026-12-01"))
    (accepted,) = accepted_in([golden("c", version) for version in versions], Policy(quirks=(quirk,)))
    assert accepted.cases == ("c/0.9.0-cpu", "c/0.8.3-cpu", "c/0.9.2-cpu", "c/0.10.0-cpu"), "0.8.3 came after 0.9.0"
    parts = [Accepted(accepted.what, accepted.reason, (name,)) for name in sorted(accepted.cases)]
    assert merge_accepted([[part] for part in parts]) == [accepted], "of several shards too"


def fields_of(*kinds):
    """Return the structs that occur in these types, at any depth, each with the types of its fields by name."""
    fields, remaining = {}, list(kinds)
    while remaining:
        kind = remaining.pop()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            if kind not in fields:
                hints = get_type_hints(kind)
                fields[kind] = {name: hints[name] for name in kind.__struct_fields__}
                remaining += fields[kind].values()
        else:
            remaining += get_args(kind)
    return fields


def test_each_field_has_to_be_listed_as_weakening_or_harmless():
    """A new field of golden.yaml, a policy or the marker needs an entry in `WEAKENS` or `DOES_NOT`."""
    of_features = {key.name: key for key in feature_keys()}
    kinds = fields_of(Manifest, Policy)
    for key in of_features.values():
        assert key.never_weaker, f"{key.name}: why does no entry make a verdict say less?"
        del kinds[key.entry]
    fields = {(kind, name) for kind, names in kinds.items() for name in names}
    # The class of a policy is made anew with the keys of features, which explain themselves.
    fields = {(kind, name) for kind, name in fields if kind is not Policy or name not in of_features}
    fields |= {(MARKER, name) for name in KEYWORDS}
    table = {*WEAKENS, *DOES_NOT}
    assert fields - table == set(), "in neither half of judge/weakening.py"
    assert table - fields == set(), "gone"
    assert {*WEAKENS} & {*DOES_NOT} == set(), "in both halves"
    assert {kind for kind, _ in fields} >= {Manifest, Options, Check, Comparison, NoiseRecord, Policy, Quirk, MARKER}


def test_the_named_report_of_each_weakening_field_exists():
    known = {*Summary.__struct_fields__, *Judgement, "pytest"}
    for field, how in WEAKENS.items():
        if isinstance(how, Elsewhere):
            assert how.place in known, field
        elif isinstance(how, AsField):
            assert (how.kind, how.name) in WEAKENS, field


FUNCTIONS = sorted({how for how in WEAKENS.values() if callable(how)}, key=lambda function: function.__name__)


class Weakened(NamedTuple):
    """A golden or a policy that weakens a verdict, and what a run lists for it."""

    function: str
    what: str
    golden: Mapping[str, Any] = MappingProxyType({})
    policy: Policy = Policy()
    outputs: bytes = b""
    noise_npz: bytes = b""


def refusing(pattern):
    return Check("refused1", inputs="inputs.npz", refused=pattern)


def noise(jaxlib="0.12.0.1", **changes):
    return NoiseRecord(jaxlib, "x86_64 AVX2", **{"moved": 6, "compiled": (), **changes})


def noise_of(units):
    """Return a noise.npz for the outputs of `files`, with this noise in units in the last place."""
    return noise_to_npz([([leaf_of(np.ones(2, np.float32))], (np.array([0.0, units * 2.0**-23]),))])


WIDE = Policy(tolerances={"cpu": {"float32": Tolerance(rtol=1e30)}})
QUIRK = Quirk("t.f", "*", "rounded", "me", "#7", added=day("2026-10-01"), rtol=1e-3, expires=day("2026-12-01"))
BY_TPU = msgspec.structs.replace(manifest().writer, platform="tpu")
ADOPTED = {"test": "", "writer": msgspec.structs.replace(manifest().writer, python="unknown")}
MESH = Options(("cpu",), mesh={"x": 2})
FURTHER_CALL = Check("call1", inputs="inputs.npz", outputs="outputs.npz")
SAME_MESH, OTHER_MESH = (
    msgspec.structs.replace(FURTHER_CALL, name=f"on {axis}", mesh={axis: 2}, out_shardings=("all",)) for axis in "xy"
)
ONE_DEVICE = msgspec.structs.replace(refusing("for 2 devices"), mesh={"x": 1})
VJP1 = Check("vjp1", vjp=1, inputs="inputs.npz", outputs="outputs.npz")
VJP2_REFUSED = Check("vjp2", vjp=2, inputs="inputs.npz", refused="no derivative of order 2")
WEAKER = [
    Weakened("allowed_calls", "custom call t", {"options": Options(("cpu",), allow={"t": "why"})}),
    Weakened("allowed_calls", "custom call t", {"custom_calls": ("t",)}, Policy(allow={"t": "why"})),
    Weakened(
        "disabled_checks",
        "no check of shapes",
        {"options": Options(("cpu",), disabled_checks={"shape_assertions": "why"})},
    ),
    Weakened(
        "without_outputs",
        "no outputs: compiled, and never compared",
        {"options": Options(("tpu",), without_outputs="why")},
    ),
    Weakened("without_outputs", "nothing to compare: all values of its outputs are NaN", outputs=NAN),
    Weakened("without_outputs", "nothing to compare: the function has no outputs", outputs=to_npz([])),
    Weakened("registered_modules", "registered module nodes", {"options": Options(("cpu",), register=("nodes",))}),
    Weakened("conversion", "a converted artifact: JAX promises nothing for it", {"converted_from": CONVERTED}),
    Weakened("derived_origin", "a writer that the artifact does not name", {"origin": DERIVED}),
    Weakened("derived_origin", "outputs by jaxlib 0.9.2", {"origin": Origin("given", "replayed", outputs_by="0.9.2")}),
    Weakened("not_reproducible", "not reproducible", {"reproducible": False}),
    Weakened("own_comparison", "comparison: rtol 0.45", {"comparison": Comparison(rtol=0.45)}),
    Weakened("own_comparison", "comparison: atol float32 1e-08", {"comparison": Comparison(atol={"float32": 1e-8})}),
    Weakened("own_comparison", "comparison: ulp 8", {"comparison": Comparison(ulp=8)}),
    Weakened("own_comparison", "comparison: own:anything", {"comparison": Comparison("own:anything")}),
    Weakened("own_comparison", "comparison: shape", {"comparison": Comparison("shape")}),
    Weakened("own_comparison", "comparison: svd", {"comparison": Comparison("svd")}),
    Weakened("stored_factors", "outputs 0, 1 as factors of qr", {"factors": (FactorGroup("qr", (0, 1)),)}),
    Weakened(
        "numbers_rule", "numbers: shape", policy=Policy(numbers=(NumbersRule(("*",), "random", compare="shape"),))
    ),
    Weakened("quirks", "quirk: rtol 0.001", policy=Policy(quirks=(QUIRK,))),
    Weakened("platform_tolerances", "tolerances: rtol 1e+30 for float32 on cpu", policy=WIDE),
    Weakened("platform_of_writer", "written on tpu: rtol float32 0.01, complex64 0.01", {"writer": BY_TPU}),
    Weakened("other_noise", "noise measured by jaxlib 0.9.2", {"noise": noise(jaxlib="0.9.2")}),
    Weakened("other_noise", "no noise of vjp1", {"noise": noise(unmeasured=("vjp1",))}),
    Weakened("other_noise", "noise, but no run that measured it", {"noise": noise(moved=0)}, noise_npz=noise_of(1)),
    Weakened(
        "other_noise",
        "noise of 128 units in the last place, by moved inputs alone",
        {"noise": noise()},
        noise_npz=noise_of(128),
    ),
    Weakened("any_refusal", "refused1: refused with any message", {"checks": (refusing(""),)}),
    Weakened("any_refusal", "refused1: refused with any message", {"checks": (refusing("."),)}),
    Weakened("any_refusal", "refused1: refused with any message", {"checks": (refusing("b >= 2|[a-z]+"),)}),
    Weakened("calls_left_out", "not called: vjp1, vjp2", {"options": Options(("cpu",), vjp_order=1)}),
    Weakened("calls_left_out", "not called: other-mesh, one-device", {"options": MESH, "out_shardings": ("all",)}),
    Weakened(
        "calls_left_out",
        "not called: other-mesh, one-device",
        {"options": MESH, "out_shardings": ("all",), "checks": (SAME_MESH, refusing("b >= 2"))},
    ),
    Weakened("as_its_artifact_has_it", "no shardings of outputs", {**ADOPTED, "options": MESH}),
    Weakened(
        "as_its_artifact_has_it",
        "no shardings of outputs of further calls",
        {**ADOPTED, "options": MESH, "out_shardings": ("all",), "checks": (FURTHER_CALL,)},
    ),
    Weakened("shorter_windows", "windows: 30 days backward, 21 forward", policy=Policy(windows=WindowDays(30))),
    Weakened("required_outside", "required: outside: false", policy=Policy(required=Required(outside=False))),
    Weakened("calendar_days", "calendar_days: 400", policy=Policy(calendar_days=400)),
]
"""Examples for each function that lists what weakens a verdict."""


@pytest.mark.parametrize("weakened", WEAKER, ids=lambda weakened: f"{weakened.function}-{weakened.what}")
def test_what_weakens_a_verdict_is_listed(tmp_path, weakened):
    (stored,) = on_disk(tmp_path, manifest("t.f", **weakened.golden), weakened.outputs, weakened.noise_npz)
    (accepted,) = accepted_in([stored], weakened.policy)
    assert (accepted.what, bool(accepted.reason)) == (weakened.what, True)
    assert accepted.cases in ((), ("t.f",), (stored.id,))


def test_empty_outputs_are_listed_with_the_tests_reason(tmp_path):
    options = Options(("cpu",), nothing_to_compare="log of a negative number")
    for number, (outputs, reasons) in enumerate(((NAN, ["log of a negative number"]), (b"", []))):
        goldens = on_disk(tmp_path / str(number), manifest("t.f", options=options), outputs)
        assert [accepted.reason for accepted in accepted_in(goldens, Policy())] == reasons


def test_each_function_that_lists_weaker_checks_has_an_example():
    assert {function.__name__ for function in FUNCTIONS} == {weakened.function for weakened in WEAKER}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"comparison": Comparison("exact")},
        {"checks": (refusing("b >= 2"), refusing("(?i)mismatch|do not match|incompatible"))},
        {"noise": noise()},
        {"noise": noise(inside=6, compiled=("unoptimized",))},
        {"noise": noise(moved=0, kernel="Haswell")},
        {"options": Options(("cpu",), vjp_order=1), "checks": (VJP1, VJP2_REFUSED)},
        {"options": MESH, "out_shardings": ("all",), "checks": (OTHER_MESH, ONE_DEVICE)},
    ],
)
def test_nothing_is_listed_for_a_golden_that_weakens_no_check(tmp_path, changes):
    tolerances = {"cpu": {"float64": Tolerance(rtol=1.0)}}  # of a dtype that the golden lacks
    strict = Policy(windows=WindowDays(400, 60), calendar_days=1, allow={"not called": "why"}, tolerances=tolerances)
    units = 128 if changes.get("noise", noise()).inside else 64
    assert accepted_in(on_disk(tmp_path, manifest("t.f", **changes), noise_npz=noise_of(units)), strict) == []


def test_noise_of_outputs_compared_by_a_tolerance_is_not_listed(tmp_path):
    made = on_disk(tmp_path, manifest("t.f", noise=noise(), comparison=Comparison(ulp=4)), noise_npz=noise_of(128))
    assert [accepted.what for accepted in accepted_in(made, Policy())] == ["comparison: ulp 4"]


@pytest.mark.parametrize("values", [np.zeros(2, np.float32), np.ones(2, np.int32)], ids=["zeros", "integers"])
def test_noise_of_zeros_or_integers_is_not_listed_as_unexplained(tmp_path, values):
    noise_npz = noise_to_npz([([leaf_of(values)], (np.array([0.0, 1.0]),))])
    made = on_disk(tmp_path, manifest("t.f", noise=noise()), to_npz([leaf_of(values)]), noise_npz)
    assert not [accepted for accepted in accepted_in(made, Policy()) if accepted.what.startswith("noise")]


@pytest.mark.parametrize("order", [0, 1])
def test_a_tolerance_beside_compare_exact_is_not_listed(tmp_path, order):
    checks = (Check("other", vjp=order, inputs="inputs.npz", outputs="more.npz"),)
    (made,) = on_disk(tmp_path, manifest("t.f", comparison=Comparison("exact"), checks=checks))
    (made.folder / "more.npz").write_bytes(files()[OUTPUTS])
    own = msgspec.structs.replace(made.manifest, comparison=Comparison("exact", rtol=1.0))
    for one in (made, Golden(own, made.folder)):
        assert accepted_in([one], WIDE) == []


@pytest.mark.parametrize(("order", "whats"), [(0, []), (1, ["tolerances: rtol 1e+30 for float32 on cpu"])])
def test_tolerances_of_derivatives_are_listed_beside_a_comparator(tmp_path, order, whats):
    checks = (Check("other", vjp=order, inputs="inputs.npz", outputs="more.npz"),)
    (made,) = on_disk(tmp_path, manifest("t.f", comparison=Comparison("m:f"), checks=checks))
    (made.folder / "more.npz").write_bytes(files()[OUTPUTS])
    assert [accepted.what for accepted in accepted_in([made], WIDE)] == ["comparison: m:f", *whats]
    own = msgspec.structs.replace(made.manifest, comparison=Comparison("m:f", rtol=1.0))
    (accepted,) = accepted_in([Golden(own, made.folder)], Policy())
    zeros = "only a function of the project compares the outputs"
    if order:
        zeros = "accepts zeros in place of output other/0 (derivative by args[0])"
    assert (accepted.what, accepted.reason) == ("comparison: m:f, rtol 1", zeros)


def test_a_call_missing_in_one_golden_of_a_case_is_listed(tmp_path):
    checks = (refusing("b >= 2"), Check("call1", inputs="inputs.npz", outputs="outputs.npz"))
    goldens = [*on_disk(tmp_path, manifest("t.f", "0.9.2")), *on_disk(tmp_path, manifest("t.f", checks=checks))]
    (accepted,) = accepted_in(goldens, Policy())
    assert accepted == Accepted(
        "not called: call1, refused1", "other goldens of its case have these calls", ("t.f/0.9.2-cpu",)
    )


def test_missing_derivatives_and_platform_checks_are_listed(tmp_path):
    """A golden of a test would be refused; one without a test, such as an adopted one, is listed."""
    envelope = read(ARTIFACTS / "0.12.0.1" / "mlp.jaxexport").envelope
    assert envelope.vjp_order == 2
    artifact = encode(envelope._replace(disabled_checks=(DisabledCheck("platform"),)))
    made = write_golden(GoldenStore(tmp_path), manifest("t.f", **ADOPTED), {**files(), ARTIFACT: artifact})
    whats = [accepted.what for accepted in accepted_in([made], Policy())]
    assert whats == ["derivatives of order 1, 2: not called", "no check of the platform"]


def test_an_unknown_attribute_that_the_policy_allows_is_listed(tmp_path):
    envelope = read(ARTIFACTS / "0.12.0.1" / "mlp.jaxexport").envelope
    assert envelope is not None
    (made,) = on_disk(tmp_path, manifest("t.f"))
    part = SimpleNamespace(name="vhlo attribute 99")
    artifact = SimpleNamespace(unread=[("the module", part)], envelope=envelope)
    object.__setattr__(made, "read_artifact", lambda: artifact)
    policy = Policy(allow={"vhlo attribute 99": "seen by hand", "vhlo attribute 98": "not there"})
    assert accepted_in([made], policy) == [Accepted("unknown part vhlo attribute 99", "seen by hand", ("t.f",))]


def test_an_accepted_tolerance_says_if_a_rule_or_quirk_sets_it(tmp_path):
    rule, own = NumbersRule(("t.f",), "measured", atol=1.0), Comparison(rtol=0.1)
    (stored,) = on_disk(tmp_path, manifest("t.f", comparison=own))
    for policy, whats in (
        (Policy(numbers=(rule,)), ["numbers: atol 1"]),
        (Policy(quirks=(QUIRK,)), ["quirk: rtol 0.001"]),
    ):
        compared = under_policy([stored], policy)
        assert [accepted.what for accepted in accepted_in(compared, policy)] == whats


def test_the_policy_that_judges_decides_what_is_listed_as_accepted():
    before = [Accepted("windows: 10 days backward, 21 forward", "JAX promises 180 and 21", ())]
    made = summarize([result()], policy=Policy(calendar_days=400), accepted=before)
    assert [accepted.what for accepted in made.accepted] == ["calendar_days: 400"]
    assert document([result()], made).findings[-1].text.startswith("calendar_days: 400.\n  reason     headlines report")
