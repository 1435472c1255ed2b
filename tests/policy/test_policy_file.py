"""Policy files: what they may contain, and the errors of a wrong one, with file, line, key and the nearest key."""

import contextlib
import copy
import datetime
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml
from commands import assert_bad_input
from hypothesis import given, settings
from hypothesis import strategies as st

from export_core.base.tolerances import LEVELS
from export_core.features.inspect.artifact_facts import STABLEHLO_YEARS
from export_core.policy import Policy, PolicyError, find_policy
from export_core.policy.entries import Required, WindowDays
from export_core.policy.load import read_policy
from export_core.policy.schema_errors import schema_problems
from export_core.releases import Windows

EVERYTHING = (Path(__file__).parent / "everything.yaml").read_text()
LOADED = yaml.safe_load(EVERYTHING)


@pytest.fixture
def error_of(load, tmp_path):
    def error_of(text: str | bytes, name: str = "export_compat.yaml") -> str:
        with pytest.raises(PolicyError) as error:
            load(text, name)
        return str(error.value).removeprefix(f"{tmp_path}/")

    return error_of


# --- valid policies ---------------------------------------------------------------------------------------------------


def test_every_key_of_a_policy_is_read(load):
    policy = load(EVERYTHING)
    assert policy.window_lengths() == Windows(180, 21)
    assert policy.readers == "0.9.2,window"
    assert policy.platforms == {"cpu": "run", "tpu": "compile", "cuda": "auto"}
    assert policy.required == Required(("0.12.*",), ("0.9.2",), ("cpu",), 10, outside=False)
    assert policy.unpromised == "goldens of 2023, which only bonus cells read"
    assert policy.rtol == {"float32": 1e-4}
    entries = (*policy.numbers, *policy.quirks, *policy.known_failures)
    assert [entry.location.rpartition("/")[2] for entry in entries] == [
        f"export_compat.yaml:{line}" for line in (20, 26, 32, 47)
    ]
    assert policy.calendar().built("0.13.0.dev20261120") == datetime.date(2026, 11, 20)
    assert policy.known_issues == "known_issues.yaml"


def test_the_policies_of_the_docs_can_be_read(load):
    shown = (Path(__file__).parents[2] / "docs" / "reference" / "policy.md").read_text()
    policies = [load(text) for text in re.findall(r"```yaml\n(.*?)```", shown, re.DOTALL)]
    assert [bool(policy.known_failures) for policy in policies].count(True) == 1


def test_a_policy_survives_a_round_trip_through_json(load):
    policy = load(EVERYTHING)
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(policy)), Policy) == policy


def test_the_page_about_windows_names_defaults_and_their_sources():
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "windows.md").read_text()
    windows, (backward, forward) = Policy().windows, STABLEHLO_YEARS
    for row in (
        f"`backward: {windows.backward}` (the default)",
        f"`forward: {windows.forward}` (the default)",
        "| 1 month | the same note of May 2024, for forward compatibility | `forward: 30` |",
        "| 6 months, 1 February to 1 August |",
        f"| {backward} years and {forward} years | StableHLO,",
    ):
        assert row in page
    for advice in (
        "rebuild and redeploy",
        "with the same jaxlib",
        "newest released",
        "promises nothing for StableHLO that is not from `jax.export`",
    ):
        assert advice in " ".join(page.split())


@pytest.mark.parametrize(
    ("length", "days"), [("180", 180), ("180 days", 180), ("'1 day'", 1), ("26 weeks", 182), ("1 week", 7)]
)
def test_a_window_is_a_number_of_days_or_weeks(load, length, days):
    assert load(f"windows: {{backward: {length}, forward: {length}}}").windows == WindowDays(days, days)


def test_platforms_in_a_list_get_mode_auto(load):
    assert load("platforms: [cpu, tpu]").platforms == {"cpu": "auto", "tpu": "auto"}


def test_quotes_lines_and_a_bom_do_not_change_what_a_policy_says(load):
    plain = load(EVERYTHING).without_locations()
    quoted = EVERYTHING.replace("added: 2026-10-01", 'added: "2026-10-01"')
    assert quoted != EVERYTHING
    assert load(b"\xef\xbb\xbf# moved\n" + quoted.encode()).without_locations() == plain


def test_a_file_of_comments_is_the_default_policy(load):
    assert load("# nothing yet\n") == Policy()


def test_yaml_anchors_can_be_used(load):
    assert load("rtol: &same {float32: 0.5}\natol: *same").atol == {"float32": 0.5}


def test_a_policy_can_be_in_pyproject_toml(load):
    policy = load(
        """
        [tool.ruff]
        line-length = 88
        [tool.jaxexport]
        windows.backward = "200 days"
        platforms = {cpu = "run"}
        [[tool.jaxexport.known_failures]]
        cases = ["a"]
        writers = ["*"]
        readers = ["*"]
        verdict = "crash"
        stage = "run"
        message = "signal 11"
        reason = "r"
        owner = "o"
        issue = "i"
        added = 2026-10-01
        expires = 2026-12-01
        """,
        "pyproject.toml",
    )
    assert (policy.windows.backward, policy.platforms) == (200, {"cpu": "run"})
    assert policy.known_failures[0].location.endswith("pyproject.toml")


# --- the policy's file ------------------------------------------------------------------------------------------------


def test_a_project_has_its_policy_in_one_of_two_files(tmp_path):
    assert find_policy(tmp_path) == Policy()
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\ndependencies = ["pytest-jaxexport"]\n')
    assert find_policy(tmp_path) == Policy(), "to depend on it says nothing"
    project.write_text("[tool.jaxexport]\ngoldens = 'kept'\n")
    assert find_policy(tmp_path).goldens == "kept"
    (tmp_path / "export_compat.yaml").write_text("goldens: other\n")
    with pytest.raises(PolicyError, match=r"pyproject\.toml: expected one policy, found two: this table and .*yaml"):
        find_policy(tmp_path)
    assert find_policy(tmp_path, str(project)).goldens == "kept", "the one that is named is meant"


@pytest.mark.parametrize("broken", ["misnamed", "a dead link"])
def test_a_misnamed_or_unreadable_policy_is_an_error(tmp_path, broken):
    if broken == "misnamed":
        (tmp_path / "export_compat.yml").write_text("goldens: kept")
    else:
        (tmp_path / "export_compat.yaml").symlink_to("nowhere")
    with pytest.raises(
        PolicyError, match=r"expected (the policy in export_compat\.yaml\. Rename|a policy file, found no)"
    ):
        find_policy(tmp_path)


# --- wrong policies ---------------------------------------------------------------------------------------------------

ENTRY = """known_failures:
  - {cases: [a], writers: ["*"], readers: ["*"], verdict: crash, stage: run, message: m,
     reason: r, owner: o, issue: i, added: 2026-10-01,
     expires: 2026-12-30}
"""
NUMBERS = """numbers:
  - {cases: [a],
     compare: svd, rtol: 1,
     reason: r}
"""
QUIRK = """quirks:
  - {case: a, writer: '1', rtol: 1, reason: r, owner: o, issue: i,
     added: 2026-10-01, expires: 2026-12-01}
"""
KNOWN_FAILURES = [  # a text of the entry, what replaces it, the line of the error, and its message
    ("owner", "ownr", 3, ".ownr: unknown key. Did you mean `owner`?"),
    ("owner: o", "owner: o, place: x", 3, ".place: unknown key. "),
    ("reason: r, ", "", 2, ": lacks the key `reason`."),
    ("verdict: crash", "verdict: crsh", 2, ".verdict: expected one of crash, error, numerics"),
    ("cases: [a]", "cases: []", 2, '.cases: expected at least one name or glob, found none. ["*"]'),
    ("message: m", "message: ''", 2, ".message: expected text, found none."),
    ("owner: o", "owner: ' '", 3, ".owner: expected text, found none."),
    ("reason: r", "reason: todo later", 3, ".reason: expected your own text in the place of 'todo later'."),
    ("2026-12-30", "2026-09-30", 4, ".expires: expected a date 0 to 90 days after added, or permanent"),
    ("expires: 2026-12-30", "", 2, ": expected expires (at most 90 days after added), or permanent"),
    ("expires: 2026-12-30", "permanent: true", 2, ": permanent: true needs an approver."),
    ("expires: 2026-12-30", "permanent: true, approver: ''", 4, ".approver: expected text, found none."),
    ("expires", "permanent: true, approver: b, expires", 4, ".expires: expected no date, since the entry has"),
    ("2026-10-01", "lately", 3, ".added: expected a date such as 2026-10-25, found 'lately'."),
    ("10-01", "10-01 12:00:00", 3, ".added: expected a date such as 2026-10-25, found 2026-10-01 12:00:00."),
    ("owner: o", "owner: o, at_most: 0", 3, ".at_most: expected a number of 1 or more, found 0."),
]
RULES = [
    ("reason: r", "resaon: r", 4, ".resaon: unknown key. Did you mean `reason`?"),
    ("reason: r", "reason: TODO", 4, ".reason: expected your own text in the place of"),
    ("cases: [a]", "cases: []", 2, ".cases: expected at least one name or glob"),
    ("compare: svd", "compare: svdd", 3, ".compare: compare='svdd': expected one of allclose, exact"),
    ("svd, rtol: 1", "'mine:'", 3, ".compare: expected module:function, found 'mine:'."),
    ("rtol: 1", "rtol: {float32: -1}", 3, ".rtol: float32: expected a finite number of 0 or more, found -1.0."),
    ("rtol: 1", "ulp: 1.5", 3, ".ulp: expected a whole number"),
    ("svd", "exact", 3, ".rtol: expected none: 'exact' takes no tolerances."),
    ("svd", "'mine:close'", 3, ".rtol: expected none: 'mine:close' takes no"),
]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # keys: the nearest of that very table
        ("goldens: a\nwidnows: {}", "2: widnows: unknown key. Did you mean `windows`?"),
        ("known-failures: []", "1: known-failures: unknown key. Did you mean `known_failures`?"),
        ("zzz: 1", "1: zzz: unknown key. Known keys here: goldens, windows, readers, platforms"),
        ("windows:\n  backwards: 1", " windows.backwards: unknown key. Did you mean `backward`?"),
        ("required:\n  goldens: 1", "2: required.goldens: unknown key. Known keys here: readers, writers, platforms"),
        (QUIRK.replace("writer", "writers"), "2: quirks[0].writers: unknown key. Did you mean `writer`?"),
        (
            "tolerances:\n  cpu: {float32: {rtol: 1}}\n  tpu:\n    float32:\n      atoll: 2",
            "5: tolerances.tpu.float32.atoll: unknown key. Did you mean `atol`?",
        ),
        ("allow:\n  a: b\n  c: d\n  a: e", "4: allow.a: duplicate key: also in line 2. Keep one."),
        ("windows: {}\ngoldens: a\nwindows: {}", "3: windows: duplicate key: also in line 1. Keep one."),
        ("allow: {1: x}", "1: expected text as a key, found 1. Put it in quotes."),
        # values of another type
        ("windows:\n  backward: long",
         "2: windows.backward: expected a whole number or text such as '180 days', found 'long'."),
        ("windows:\n  backward: 6 months",
         "2: windows.backward: expected a whole number or text such as '180 days', found '6 months'. A month has 28 "
         "to 31 days, and a window has the same length whenever it begins: write 180 days for the 6 months of JAX"),
        ("windows: 6 months", "1: windows: expected a table, found '6 months'. A month has 28 to 31 days"),
        ("windows: {backward: 1.5}",
         "1: windows.backward: expected a whole number or text such as '180 days', found 1.5."),
        ('windows: {backward: "180"}',
         "1: windows.backward: expected a whole number or text such as '180 days', found '180'."),
        ("windows: {backward: -1}", "1: windows.backward: expected 0 to 36500 days, found -1."),
        ("windows: {forward: 99999}", "1: windows.forward: expected 0 to 36500 days, found 99999."),
        ("platforms: cpu", "1: platforms: expected a table or a list of texts, found 'cpu'. Write [\"cpu\"]."),
        ("platforms:\n  cpu: runn",
         "2: platforms.cpu: expected one of auto, compile, run, found 'runn'. Did you mean 'run'?"),
        ("platforms: [gpu]", "1: platforms: expected some of cpu, cuda, rocm, tpu, found 'gpu'."),
        ("platforms: []", "1: platforms: expected some of cpu, cuda, rocm, tpu, found none."),
        ("readers: [0.9.2, 0.10]",
         '1: readers[1]: expected text, found 0.1. Put it in quotes as you wrote it, such as "0.10": without them, '
         "YAML reads 0.10 as the number 0.1."),
        (ENTRY.replace('writers: ["*"]', "writers: [0.10]"),
         '2: known_failures[0].writers[0]: expected text, found 0.1. Put it in quotes as you wrote it, such as "0.10"'),
        (QUIRK.replace("'1'", "0.10"),
         '2: quirks[0].writer: expected text, found 0.1. Put it in quotes as you wrote it, such as "0.10"'),
        ("readers: 12", "1: readers: expected text or a list of texts, found 12. Put it in quotes."),
        ("fail_on: outsid",
         "1: fail_on: expected a list with some of bonus-lost, outside, found 'outsid'. Did you mean [\"outside\"]?"),
        ("fail_on: outside", 'found \'outside\'. Write ["outside"].'),
        ("fail_on: all", "1: fail_on: expected a list with some of bonus-lost, outside, found 'all'."),
        ("fail_on: [outsid]",
         "1: fail_on[0]: expected one of bonus-lost, outside, found 'outsid'. Did you mean 'outside'?"),
        ("environment: MY_FLAG", "1: environment: expected a list of texts, found 'MY_FLAG'. Write [\"MY_FLAG\"]."),
        ("known_failures: none", "1: known_failures: expected a list of tables, found 'none'."),
        ("required: {platforms: gpu}", "expected a list with some of cpu, cuda, rocm, tpu, found 'gpu'."),
        ("known_failures:\n  - {reason: r}",
         "2: known_failures[0]: lacks the keys `cases`, `writers`, `readers`, `verdict`, `stage`, `message`, "),
        ("readers: ''", "1: readers: expected window, all, newest, deployed or jaxlib versions, found none."),
        ("goldens: ''", "1: goldens: expected a folder, found none."),
        ("- a", "1: expected a table, found ['a']."),
        ("required: {cells: many}", "1: required.cells: expected a whole number, found 'many'."),
        ("rtol: {float3: 1}", "1: rtol: float3: expected a floating-point dtype such as float32."),
        (
            "tolerances:\n  cpu:\n    float32: {rtol: -1}",
            "3: tolerances.cpu.float32.rtol: expected a finite number of 0 or more, found -1.0.",
        ),
        ("tolerances: {float32: {rtol: 1}}", f"1: tolerances.float32.rtol: expected a table, found 1.{LEVELS}"),
        ("tolerances: {cpu: {float32: 1}}", f"1: tolerances.cpu.float32: expected a table, found 1.{LEVELS}"),
        ("tolerances: {cpu: {rtol: {float32: 1}}}",
         f"rtol.float32: unknown key. Known keys here: rtol, atol, ulp.{LEVELS}"),
        ("tolerances: {float32: {}}", f"1: tolerances.float32: expected a platform of cpu, cuda, rocm, tpu.{LEVELS}"),
        ("tolerances: {cpu: {tpu: {}}}", f".cpu.tpu: expected a floating-point dtype such as float32.{LEVELS}"),
        ("tolerances:\n  gpu: {}", "2: tolerances.gpu: expected a platform of cpu, cuda, rocm, tpu."),
        ("allow:\n  a: ''", "2: allow.a: expected text, found none."),
        ("releases: {jaxlib: {nightly: {built: 2026-11-01}}}",
         "1: releases.jaxlib.nightly: expected a version such as 0.12.0.1"),
        ("releases: {jaxlib: {0.9.9: {built: 9999-01-01}}}",
         "1: releases.jaxlib.0.9.9.built: expected a date between 2000-01-01"),
        ("releases: {jaxlib: {0.9.9: {built: 2026-11-01, stablehlo: []}}}",
         "1: releases.jaxlib.0.9.9.stablehlo: expected 3 values, found 0."),
        ("rtol: {float32: high}", "1: rtol.float32: expected a number, found 'high'."),
        ("goldens:", "1: goldens: expected text, found nothing."),
        ("retention: {pinned: [{goldens: [a], reason: ' '}]}",
         "1: retention.pinned[0].reason: expected text, found none."),
        ("unpromised: ' '", "1: unpromised: expected text, found none."),
        ("required: {cells: 2.0}", "1: required.cells: expected a whole number, found 2.0."),
        *((ENTRY.replace(old, new), f"{line}: known_failures[0]{text}") for old, new, line, text in KNOWN_FAILURES),
        (ENTRY.replace("2026-12-30", "2026-12-31"), "found 2026-12-31, 91 days after it."),
        (ENTRY.replace("2026-10-01", "2026-02-30"),
         "3: known_failures[0].added: expected a date such as 2026-10-25, found 2026-02-30: day "),
        (ENTRY.replace("2026-12-30", "2026-13-31"),
         "4: known_failures[0].expires: expected a date such as 2026-10-25, found 2026-13-31: month must be in 1..12. "
         "Correct it, or put it in quotes if it is text."),
        ("releases: {jaxlib: {0.9.9: {built: 2026-11-01 25:00:00}}}",
         "1: releases.jaxlib.0.9.9.built: expected a date such as 2026-10-25, found 2026-11-01 25:00:00: hour must be"),
        ("rtol: 0x_", "1: rtol: expected a number such as 180, found 0x_: invalid literal"),
        ("goldens: !!timestamp soon", "1: goldens: expected a date such as 2026-10-25, found soon. Correct it"),
        ("goldens: !!bool soon", "1: goldens: expected true or false, found soon. Correct it"),
        ("allow:\n  2026-13-31: a", "2: allow: expected a date such as 2026-10-25, found 2026-13-31: month must be"),
        (QUIRK.replace("rtol: 1, ", ""),
         "2: quirks[0]: expected at least one of rtol, atol, ulp and allow, found none."),
        (QUIRK.replace("rtol: 1", "rtol: -1"), "2: quirks[0].rtol: expected a finite number of 0 or more, found -1.0."),
        (QUIRK.replace("2026-12-01", "2027-12-01"), "found 2027-12-01, 426 days after it."),
        *((NUMBERS.replace(old, new), f"{line}: numbers[0]{text}") for old, new, line, text in RULES),
        ("reader_packages: [optax, 'op tax']",
         "1: reader_packages[1]: expected a requirement as pip takes it, such as optax==0.2.5, found 'op tax': "),
        ("backfill_install: ['optax,quadax', ., ../lib, '-e.', 'https://host/a.whl', 'a[b]>=1,<2', numpy]",
         "1: backfill_install[0]: expected a requirement as pip takes it, such as optax==0.2.5, found 'optax,quadax'"),
        ("reader_packages:\n  - jax>=0.5",
         "2: reader_packages[0]: expected another package than jax and jaxlib, of which each reader has its own"),
        *((f"reader_packages_from_source: ['{name}']",
           f"1: reader_packages_from_source[0]: expected the name of a package other than jax and jaxlib, such as "
           f"optax, found '{name}'.") for name in ("", ":all:", "optax==1", "Jaxlib")),
        *((f"environment: ['{name}']", f"1: environment[0]: expected text such as 'MY_LIBRARY', found '{name}'. A name "
           "has letters, digits and `_`, and begins with no digit.") for name in ("MY-VAR", "", "A=1", "1A")),
        # what is no YAML, and what YAML would take in silence
        ("goldens: a\nwindows: [", "2: not YAML: "),
        ("goldens: a\n\twindows: {}", "2: not YAML: found a tab where YAML takes spaces only."),
        ("goldens: a\n---\ngoldens: b", "2: not YAML: expected a single document in the stream"),
        ("goldens: !!python/object:os.system x", "1: not YAML: could not determine a constructor for the tag"),
        (b"goldens: a\nreaders: \xff", "2: expected text in UTF-8, found other bytes. Save the file as UTF-8."),
        ("goldens: a".encode("utf-16"), "1: expected text in UTF-8"),
        (b"goldens: \x00", " not YAML: "),
        ("a: &a [*a]", "1: this alias refers to a value that contains it. Write the value out."),
        ("\n".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}' if n else 'x'] * 10)}]" for n in range(6)),
         "expected at most 100000 values, found more, counting those that aliases repeat."),
        ("[" * 500, " not a policy: it is nested deeper than any policy needs to be."),
        ("", " expected a policy file, found an empty one."),
        (b"\xef\xbb\xbf \n", " expected a policy file, found an empty one."),
    ],
    ids=lambda value: value[:40].replace("\n", " ") if isinstance(value, str) else None,
)  # fmt: skip
def test_a_wrong_value_is_one_error_with_its_line(error_of, text, message):
    problem = error_of(text)
    assert problem.startswith("export_compat.yaml:")
    assert message in problem
    assert "\n" not in problem
    assert problem.endswith((".", "?"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.jaxexport]\n\ngolden = 'x'", " golden: unknown key. Did you mean `goldens`?"),
        ("[tool]\njaxexport.windows.backwards = 3", " windows.backwards: unknown key. Did you mean `backward`?"),
        ("[[tool.jaxexport.quirks]]\ncase = 'a'\n[[tool.jaxexport.quirks]]\ncasus = 'a'",
         " quirks[0]: lacks the keys `writer`, "),
        ("[tool]\njaxexport = 3", " expected a table, found 3."),
        ("[[tool.jaxexport.quirks]]\nexpires = 2026-13-31",
         "2: expires: not TOML: Expected newline or end of document after a statement. A date is written as 2026-10"),
        ("[tool.jaxexport\n", "1: not TOML: "),
        ("[tool.jaxexport]\ngoldens = 'a'\ngoldens = 'b'", "3: goldens: not TOML: "),
        ("[tool.ruff]", " expected a table [tool.jaxexport], found none."),
    ],
)  # fmt: skip
def test_wrong_values_in_pyproject_toml_are_refused_too(error_of, text, message):
    problem = error_of(text, "pyproject.toml")
    assert problem.startswith("pyproject.toml:")
    assert message in problem


def test_errors_are_reported_in_the_order_of_their_lines(error_of, tmp_path):
    entry = ENTRY.replace("verdict: crash", "verdict: crahs").replace("owner: o, ", "").replace("reason", "raeson")
    message = error_of(f"windows:\n  backward: [1]\nreaders: 0.12\n{entry}golden: here")
    assert message.replace(f"{tmp_path}/export_compat.yaml:", "").splitlines() == [
        "export_compat.yaml:2: windows.backward: expected a whole number or text such as '180 days', found [1].",
        '3: readers: expected text or a list of texts, found 0.12. Put it in quotes as you wrote it, such as "0.10": '
        "without them, YAML reads 0.10 as the number 0.1.",
        "5: known_failures[0].verdict: expected one of crash, error, numerics, refused, timeout, found 'crahs'. Did "
        "you mean 'crash'?",
        "5: known_failures[0]: lacks the key `owner`.",
        "6: known_failures[0].raeson: unknown key. Did you mean `reason`?",
        "8: golden: unknown key. Did you mean `goldens`?",
    ]


def test_errors_after_the_first_twenty_are_counted(error_of):
    lines = error_of("".join(f"key{number}: 1\n" for number in range(100))).splitlines()
    assert len(lines) == 21
    assert lines[-1].endswith("export_compat.yaml: 80 more problems.")


def test_the_schema_refuses_what_msgspec_refuses():
    """A policy is read by the schema and by msgspec, which must agree."""
    wrong = [
        ("goldens", 1),
        ("goldens", datetime.date(2026, 1, 1)),
        ("windows", {"backward": True}),
        ("windows", {"forward": "21"}),
        ("readers", {}),
        ("platforms", {"cpu": 1}),
        ("platforms", [1]),
        ("required", {"cells": 1.0}),
        ("required", {"outside": 1}),
        ("rtol", {"float32": None}),
        ("rtol", True),
        ("releases", {"jax": {"1": {"built": "20261101", "minimum_jaxlib": "1"}}}),
        ("releases", {"jax": {"1": None}}),
        ("releases", {"jaxlib": {"1": {"built": datetime.datetime(2026, 1, 1)}}}),
        ("quirks", [{}]),
        ("tolerances", {"tpu": []}),
        ("retention", {"pinned": [{"goldens": []}]}),
        ("backfill_install", "numpy"),
        ("environment", "SCALE_LIBRARY"),
        ("environment", ["A=B"]),
    ]
    for key, value in wrong:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({key: value}, Policy)
        assert schema_problems({key: value}), (key, value)
    assert schema_problems(LOADED) == []


def keys_of(value: object, key: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield every key of nested tables and lists, as a path."""
    if key:
        yield key
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield from keys_of(inner, (*key, name))


TEXTS = ("", " ", "TODO", "x", "cpu", "2026-02-30", "2026-10-01", "x" * 99)
VALUES = (None, True, 0, -1, 7, 1.5, *TEXTS, [], ["cpu"], [1])
TABLES = ({}, {"x": 1}, {"x": "x"}, {"cpu": "run"}, datetime.date(2026, 10, 1), datetime.datetime(2026, 10, 1))


@settings(max_examples=50)
@given(key=st.sampled_from(list(keys_of(LOADED))), value=st.sampled_from((*VALUES, *TABLES)))
def test_the_schema_and_msgspec_agree_on_random_values(key, value):
    data = inner = copy.deepcopy(LOADED)
    for part in key[:-1]:
        inner = inner[part]
    inner[key[-1]] = value
    refused = ""
    try:
        msgspec.convert(data, Policy)
    except msgspec.ValidationError as error:
        refused = str(error)
    assert bool(schema_problems(data)) == bool(refused), refused


@settings(max_examples=30)
@given(
    st.text(max_size=60)
    | st.sampled_from(EVERYTHING.splitlines()).flatmap(lambda line: st.just(EVERYTHING.replace(line, line[:-1])))
)
def test_any_text_gives_a_policy_or_a_policy_error(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "some.yaml"
    path.write_text(text, encoding="utf-8", errors="replace", newline="")
    with contextlib.suppress(PolicyError):
        assert read_policy(path)[0].windows.backward >= 0


@pytest.mark.parametrize("command", [["matrix"], ["releases", "list"], ["policy", "check"]], ids=" ".join)
def test_every_command_reports_an_unknown_key_in_one_line(command, jaxexport, cwd):
    (cwd / "export_compat.yaml").write_text("widnows: {}")
    assert_bad_input(jaxexport(*command), "export_compat.yaml:1: widnows: unknown key. Did you mean `windows`?")
