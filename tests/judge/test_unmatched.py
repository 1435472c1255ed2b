"""Entries of a policy that match nothing: each is reported once, if the whole project is looked at."""

import re
from pathlib import Path

import msgspec
import pytest
from commands import finished
from making import day, golden, manifest, result, write_golden

from export_core.goldens import GoldenStore, Options
from export_core.goldens.manifest import ConvertedFrom
from export_core.judge.unmatched import OTHER_KEYS, PATTERNS, unmatched_patterns
from export_core.matrix import Selection
from export_core.matrix.comparisons import apply_quirks
from export_core.policy import Policy, find_policy
from export_core.policy.feature_keys import feature_keys
from export_core.policy.load import find_locations
from export_core.policy.run_options import RunOptions
from export_core.releases import load_calendar
from export_core.run.session import plan_matrix

ENTRY = "reason: r, owner: o, issue: i, added: 2026-11-01, expires: 2026-12-01"
FAILS = f"verdict: crash, stage: run, message: m, {ENTRY}"
CHANGE = "{old: oars, new: sail, introduced: 2026-10-01, release: null, reason: r, owner: o, issue: i}"
GOLDENS = [golden("t.a[x]"), golden("t.b", "0.9.2", custom_calls=("ours",))]


def quirk(text: str) -> str:
    """Return a policy with one quirk."""
    return f"quirks: [{{{text}, {ENTRY}}}]"


def known(text: str) -> str:
    """Return a policy with one known failure."""
    return f"known_failures: [{{{text}, {FAILS}}}]"


QUIRK, KNOWN = "quirks[0] (r; owner o, i): ", "known_failures[0] (r; owner o, i): "
UNMATCHED = [
    ("readers", "readers: [0.9.2, 0.10.3]", "readers: jaxlib 0.10.3 is not in the release calendar. Did you mean '0.1"),
    ("readers", "readers: [window, '>=99']", "readers: no known jaxlib is in the range >=99."),
    ("readers", "readers: [windw]", "readers: expected window, all, newest, deployed, jaxlib versions such as"),
    ("readers", "readers: tensorflow==9.9, newest", "readers: tensorflow 9.9 is not in the calendar of tensorflow."),
    (
        "readers",
        "readers: 0.9.2 0.10.2",
        "readers: jaxlib 0.9.2 0.10.2 is not in the release calendar. Separate names by commas (0.9.2,0.10.2);",
    ),
    (
        "readers",
        "readers: tensorflow==2.21.0 0.9.2",
        "readers: 'tensorflow==2.21.0 0.9.2' is not one release. Separate names by commas (tensorflow==2.21.0,0.9.2);",
    ),
    ("platforms", "platforms: [cpu, tpu]", "platforms: no golden was exported for tpu."),
    ("tolerances", "tolerances: {cuda: {float32: {rtol: 1e-3}}}", "tolerances.cuda: no golden was exported for cuda."),
    ("allow", "allow: {ours: we ship it, oars: misspelled}", "allow: no golden calls 'oars'."),
    ("fail_on", "fail_on: [bonus-lost]", "fail_on: bonus-lost: no baseline was given"),
    (
        "retention.deployed",
        "retention: {deployed: [0.13.0]}",
        "retention.deployed: '0.13.0' is no release of the calendar",
    ),
    (
        "retention.pinned.goldens",
        "retention: {pinned: [{goldens: [t.z*], reason: r}]}",
        "retention.pinned[0] (r): 't.z*' matches no golden.",
    ),
    (
        "required.readers",
        "required: {readers: ['0.12.*', '0.99.*']}",
        "required.readers: '0.99.*' matches no reader.",
    ),
    ("required.writers", "required: {writers: ['0.8.*']}", "required.writers: '0.8.*' matches no writer."),
    ("required.platforms", "required: {platforms: [tpu]}", "required.platforms: 'tpu' matches no golden's platform."),
    (
        "deployed.cases",
        "deployed: [{name: edge, jaxlib: 0.10.2, cases: [t.b, t.z]}]",
        "deployed[0] (edge): cases: 't.z' matches no golden.",
    ),
    (
        "deployed.platform",
        "platforms: [cpu, tpu]\ndeployed: [{name: edge, jaxlib: 0.10.2, platform: tpu}]",
        "deployed[0] (edge): platform: no golden of its cases was exported for tpu.",
    ),
    ("quirks.case", quirk("case: t.z, writer: '*', rtol: 1"), f"{QUIRK}no golden is of case 't.z'."),
    (
        "quirks.writer",
        quirk("case: t.b, writer: 0.8.*, rtol: 1"),
        f"{QUIRK}writer '0.8.*' matches no golden of its case, which has 0.9.2-cpu.",
    ),
    (
        "quirks.allow",
        quirk("case: t.b, writer: '*', allow: [oars]"),
        f"{QUIRK}allow: its goldens do not call 'oars'.",
    ),
    ("numbers.cases", "numbers: [{cases: [t.z, t.b], reason: r}]", "numbers[0] (r): cases: 't.z' matches no golden."),
    (
        "numbers.writers",
        "numbers: [{cases: [t.b], writers: [0.9.2, 0.8.*], reason: r}]",
        "numbers[0] (r): writers: '0.8.*' matches",
    ),
    (
        "numbers.writers",
        "numbers: [{cases: ['t.a[x]'], writers: [0.9.*], reason: r}]",
        "numbers[0] (r): none of its writers has a golden of its cases.",
    ),
    (
        "numbers.cases",
        "numbers: [{cases: ['t.*'], reason: r}, {cases: [t.b], reason: r}]",
        "numbers[1] (r): has no effect: an earlier entry matches each of its goldens.",
    ),
    (
        "custom_call_changes.old",
        f"custom_call_changes: [{CHANGE}]",
        "custom_call_changes[0].old: no golden calls 'oars'.",
    ),
    (
        "known_failures.cases",
        known("cases: ['t.a[x]', t.z], writers: ['*'], readers: ['*']"),
        f"{KNOWN}cases: 't.z' matches no golden.",
    ),
    (
        "known_failures.writers",
        known("cases: [t.b], writers: [0.12.0.1], readers: ['*']"),
        f"{KNOWN}none of its writers has a golden of its cases.",
    ),
    (
        "known_failures.readers",
        known("cases: ['*'], writers: ['*'], readers: [0.13.*, 0.9.*]"),
        f"{KNOWN}readers: '0.13.*' matches no reader.",
    ),
    (
        "known_failures.platforms",
        known("cases: ['*'], writers: ['*'], readers: ['*'], platforms: [rocm]"),
        f"{KNOWN}platforms: 'rocm' matches no golden.",
    ),
    (
        "budgets.cases",
        "budgets: [{cases: [t.b, t.z], max_flops: 1}]",
        "budgets[0]: cases: 't.z' matches no golden.",
    ),
    (
        "budgets.writers",
        "budgets: [{cases: [t.b], writers: [0.12.0.1], max_flops: 1}]",
        "budgets[0]: none of its writers has a golden of its cases.",
    ),
    (
        "budgets.readers",
        "budgets: [{readers: [0.13.*], max_flops: 1}]",
        "budgets[0]: readers: '0.13.*' matches no reader.",
    ),
    (
        "budgets.platforms",
        "budgets: [{platforms: [rocm], max_flops: 1}]",
        "budgets[0]: platforms: 'rocm' matches no golden.",
    ),
]
"""Each key that can match nothing, a policy in which it does, and how its warning begins."""


def keys_of(kind: type[msgspec.Struct], path: str = "") -> set[str]:
    """Return each key of a policy that has a value, as `PATTERNS` and `OTHER_KEYS` name it."""
    keys = set()
    for field in msgspec.inspect.type_info(kind).fields:
        inner = field.type
        inner = inner.item_type if isinstance(inner, msgspec.inspect.VarTupleType) else inner
        inner = inner.type if isinstance(inner, msgspec.inspect.Metadata) else inner
        inner = inner.item_type if isinstance(inner, msgspec.inspect.VarTupleType) else inner
        if isinstance(inner, msgspec.inspect.StructType):
            keys |= keys_of(inner.cls, f"{path}{field.name}.")
        elif field.name != "location":
            keys.add(f"{path}{field.name}")
    return keys


def test_every_policy_key_with_patterns_is_checked_for_matches():
    features = {key.name for key in feature_keys()}
    limits = {f"{key.name}.{field}" for key in feature_keys() for field in key.in_marker}
    assert set(PATTERNS).isdisjoint(OTHER_KEYS)
    assert keys_of(Policy) - limits == {*PATTERNS, *OTHER_KEYS}
    assert {key for key, _, _ in UNMATCHED} == {*PATTERNS}, "each has an example here"
    assert features == {"budgets"}, "examples of another feature's key belong in UNMATCHED"


@pytest.fixture
def warnings(load):
    """A function that returns the warnings about a policy, without its folder."""

    def read(text: str) -> list[str]:
        unmatched = unmatched_patterns(load(text), GOLDENS, load_calendar())
        return [pattern.text.rpartition("/")[2] for pattern in unmatched]

    return read


def test_converted_goldens_get_no_warning_of_unmatched_patterns(load):
    origin = ConvertedFrom("0" * 64, "iree==3.13.0", "rewritten", (), "pytest-jaxexport")
    converted = [golden("t.a", converted_from=origin)]
    policy = load(known("cases: [t.z], writers: ['0.9.2'], readers: [0.13.9]"))
    assert not unmatched_patterns(policy, converted, load_calendar())
    assert unmatched_patterns(policy, [*converted, *GOLDENS], load_calendar())


@pytest.mark.parametrize(("key", "text", "problem"), UNMATCHED)
def test_each_key_that_matches_nothing_is_reported_once(key, text, problem, warnings):
    # The platform of a deployment target has to be in `platforms`, which is reported too.
    (warning,) = [warning for warning in warnings(text) if key == "platforms" or not warning.startswith("platforms: ")]
    assert warning.removeprefix("export_compat.yaml:1: ").removeprefix("export_compat.yaml:2: ").startswith(problem)


def test_each_unmatched_pattern_is_reported_with_its_line(cwd):
    for key, text, _ in UNMATCHED:
        (cwd / "export_compat.yaml").write_text(f"calendar_days: 60\n{text}")
        policy = find_policy(cwd)
        location, of_another = find_locations(policy), find_locations(Policy())
        for unmatched in unmatched_patterns(policy, GOLDENS, load_calendar()):
            assert re.match(r".*export_compat\.yaml:[23]: ", unmatched.located(location)), key
            assert unmatched.located(of_another) == unmatched.text, "a line of a file that is not this policy's"


def test_unmatched_patterns_of_one_entry_share_a_line(warnings):
    reason = "a sum is rounded otherwise there, " * 9
    text = f"cases: [t.z, t.b, t.y, t.x], writers: ['0.8.*'], reason: '{reason}'"
    (warning,) = warnings(f"numbers: [{{{text}}}]")
    assert warning.count(reason.strip()) == 1
    assert warning.endswith(" match no golden. Did you mean 't.b'? writers: '0.8.*' matches no golden.")
    failing = f"known_failures: [{{cases: [t.z, t.y], writers: ['*'], readers: [0.13.*, 0.9.2], {FAILS}}}]"
    of_runs, of_checks = warnings(failing)
    assert of_runs.endswith(": cases: 't.z', 't.y' match no golden. Did you mean 't.b'?"), (
        "a whole run says so at its end too"
    )
    assert of_checks.endswith(": readers: '0.13.*' matches no reader.")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("deployed: [{name: edge, jaxlib: 0.10.2, cases: [NAMED]}]", "'tests.test_a.test_f'"),
        (quirk("case: NAMED, writer: '*', rtol: 1"), "'tests.test_a.test_f'"),
        ("numbers: [{cases: [NAMED], reason: r}]", "'tests.test_a.test_f'"),
        (known("cases: [NAMED], writers: ['*'], readers: ['*']"), "'tests.test_a.test_f'"),
        ("budgets: [{cases: [NAMED], max_flops: 1}]", "'tests.test_a.test_f'"),
        ("retention: {pinned: [{goldens: [NAMED/0.9.2-cpu], reason: r}]}", "'tests.test_a.test_f/0.9.2-cpu'"),
        ("retention: {pinned: [{goldens: [NAMED], reason: r}]}", "'tests.test_a.test_f/*'"),
        ("retention: {pinned: [{goldens: [tests.test_a.test_f], reason: r}]}", "'tests.test_a.test_f/*'"),
        ("retention: {pinned: [{goldens: [tests.test_a.test_f/0.9.3-cpu], reason: r}]}", ""),
    ],
)
def test_an_unmatched_short_case_name_shows_the_full_id(text, hint, load):
    goldens = [golden("tests.test_a.test_f", "0.9.2"), golden("tests.test_b.test_g")]
    (unmatched,) = unmatched_patterns(load(text.replace("NAMED", "test_f")), goldens, load_calendar())
    assert unmatched.text.endswith(f". Did you mean {hint}?" if hint else " matches no golden.")


def test_patterns_that_match_get_no_warning(warnings):
    text = f"""
        platforms: [cpu]
        readers: [all, deployed, 0.11.2-jax0.12.0.1, '>= 0.11', 'iree >= 3.9', 0.13.0.dev20270101, w/jaxlib-0.13.whl]
        required: {{readers: ['0.12.*', 0.13.0.dev*], writers: ['0.9.*']}}
        retention: {{pinned: [{{goldens: ['t.b/*'], reason: r}}]}}
        numbers: [{{cases: ['t.a[x]'], reason: r}}, {{cases: ['*'], writers: ['0.9.*', '*-cpu'], reason: r}}]
        known_failures: [{{cases: ['t.a[x]'], writers: [0.12.0.1], readers: ['0.9.?', 0.13.0rc*], {FAILS}}}]
        quirks: [{{case: t.b, writer: '*-cpu', allow: [ours], {ENTRY}}}]
    """
    assert warnings(text) == []


def test_a_release_that_the_project_withdraws_is_reported(load, tmp_path):
    (tmp_path / "export_releases.yaml").write_text("jaxlib: {0.12.0.1: {built: 2026-10-20, yanked: true}}")
    policy = load("goldens: golden\n")
    (warning,) = unmatched_patterns(policy, GOLDENS, policy.calendar())
    assert "jaxlib 0.12.0.1 (built 2026-10-20) was withdrawn" in warning.text


@pytest.mark.parametrize(
    ("writer", "relaxed"), [("*", 2), ("0.9.*", 1), ("*-cpu", 2), ("0.9.2-cpu", 1), ("0.9.2", 1), ("0.8*", 0)]
)
def test_the_writer_of_a_quirk_may_be_a_glob(writer, relaxed, load):
    policy = load(f"quirks: [{{case: t.b, writer: '{writer}', rtol: 0.5, {ENTRY}}}]")
    changed = apply_quirks([golden("t.b"), golden("t.b", "0.9.2"), golden("t.c")], policy.quirks)
    assert sum(one.compared_as.comparison.rtol == 0.5 for one in changed) == relaxed


def test_names_of_releases_are_checked_before_a_golden_exists(cwd, jaxexport):
    (cwd / "export_compat.yaml").write_text("readers: [0.10.3]\nretention: {deployed: [0.10.4]}\nallow: {oars: r}\n")
    ended = jaxexport("policy", "check", code=2)
    assert ended.out.startswith("warning: export_compat.yaml:2: retention.deployed: '0.10.4' is no release")
    assert ended.err.startswith("jaxexport: error: export_compat.yaml:1: readers: jaxlib 0.10.3 is not")


@pytest.fixture
def project(cwd):
    """Two goldens, and a policy with two entries that match nothing."""
    for case in ("t.a", "t.b"):
        write_golden(GoldenStore(cwd / "golden"), manifest(case))
    text = f"quirks: [{{case: t.z, writer: '*', rtol: 1, {ENTRY}}}]\nallow: {{oars: r}}\nrequired: {{cells: 0}}\n"
    (cwd / "export_compat.yaml").write_text(text)


def test_plan_and_policy_check_warn_of_unmatched_patterns_and_continue(project, jaxexport):
    for words in (("matrix", "--dry-run"), ("policy", "check"), ("matrix", "--dry-run", "--cases", "t.a")):
        ended = jaxexport(*words, "--as-of", "2026-11-20")
        assert (ended.code, ended.out.count("warning: ")) == (0, 2), words
    calls, case = msgspec.json.decode(jaxexport("matrix", "--dry-run", "--json", "--as-of", "2026-11-20").out)[
        "warnings"
    ]
    assert calls == "export_compat.yaml:2: allow: no golden calls 'oars'."
    assert case.endswith(": no golden is of case 't.z'. Did you mean 't.b'?")


def test_a_partial_run_does_not_warn_of_cases_it_leaves_out(cwd, jaxexport):
    store = GoldenStore(cwd / "golden")
    write_golden(store, manifest("t.a"))
    write_golden(store, manifest("t.b", "0.9.2", options=Options(platforms=("cpu", "tpu"))))
    text = f"quirks: [{{case: t.b, writer: 0.9.2, rtol: 1, {ENTRY}}}]\nplatforms: [cpu, tpu]\n"
    (cwd / "export_compat.yaml").write_text(text)
    assert (
        "warning: "
        not in jaxexport("matrix", "--dry-run", "--cases", "t.a", "--platforms", "cpu", "--as-of", "2026-11-20").out
    )


@pytest.mark.parametrize(("cases", "warned"), [((), ["oars"]), (("t.a",), ["oars", "t.z"])])
def test_a_plan_does_not_warn_of_patterns_that_its_report_names(project, cases, warned):
    selection = Selection(cases=cases)
    plan = plan_matrix(find_policy(Path()), selection, RunOptions(as_of=day("2026-11-20")), is_run=True)
    assert [name for name in ("oars", "t.z") if any(name in warning for warning in plan.warnings)] == warned


def test_patterns_match_readers_of_other_runtimes_too(warnings):
    failing = f"known_failures: [{{cases: ['t.b'], writers: ['*'], readers: ['tensorflow==*'], {FAILS}}}]"
    assert warnings(f"required: {{readers: ['iree==3.13.0', 'pjrt==0.12.*']}}\n{failing}\n") == []
    assert warnings("required: {readers: ['iree==2.*']}\n") == ["required.readers: 'iree==2.*' matches no reader."]


def test_fail_on_bonus_lost_without_a_baseline_is_reported(cwd, jaxexport):
    finished(Path("out"), result())
    finished(Path("old"), result())
    (cwd / "export_compat.yaml").write_text("fail_on: [bonus-lost]\n")
    assert "NOT CHECKED  fail_on: bonus-lost: no baseline" in jaxexport("judge", "out", code=0).out
    assert "NOT CHECKED" not in jaxexport("judge", "out", "--baseline", "old", code=0).out
