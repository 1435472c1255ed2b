"""`jaxexport policy`: a first one from what is there, whether it is right, what holds and why."""

import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from commands import assert_bad_input
from making import files, manifest, write_golden
from rich.console import Console

from export_core.goldens import GoldenStore, Options
from export_core.policy import Policy, PolicyError, load_policy
from export_core.report.policy_text import policy_keys
from tools.schemas import schema, written


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_init_writes_a_policy_from_the_goldens(jaxexport, here):
    store = GoldenStore(here / "kept")
    write_golden(store, manifest("t.a", "0.12.0.1"))
    write_golden(store, manifest("t.a", "0.9.2", options=Options(("cpu", "tpu"))))
    scaled = (
        Path(__file__).parents[2] / "golden" / "tests.compat.test_safety_checks.test_allowed_target" / "0.12.0.1-cpu"
    )
    unlisted = {**files(), "artifact.jaxexport": (scaled / "artifact.jaxexport").read_bytes()}
    write_golden(store, manifest("t.q", "0.12.0.1"), unlisted)
    ended = jaxexport("policy", "init", "--goldens", "kept")
    assert (ended.code, ended.err) == (0, "")
    text = (here / "export_compat.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=export_compat.schema.json\n")
    assert (here / "export_compat.schema.json").read_bytes() == written("policy")
    assert "Found here: 3 goldens of 2 cases by jaxlib 0.9.2, 0.12.0.1." in text
    assert "  # tpu: compile  # 1 golden exported for it\n" in text
    assert '#   pytest_jaxexport.scale: ""  # called by t.q/0.12.0.1-cpu\n' in text
    policy = load_policy(here / "export_compat.yaml")
    assert (policy.goldens, policy.platforms, policy.windows.backward) == ("kept", {"cpu": "run"}, 180)
    jsonschema.validate(yaml.safe_load(text), schema("policy"))
    assert jaxexport("policy", "check").code == 0


def test_commented_parts_of_a_first_policy_are_valid(jaxexport, here):
    jaxexport("policy", "init")
    path = here / "export_compat.yaml"
    taken = re.sub(r"^# ?(?=(  )*(- )?[a-z0-9_]+:)", "", path.read_text(), flags=re.MULTILINE)
    path.write_text(taken)
    with pytest.raises(PolicyError, match=r"numbers\[0\]\.reason: expected your own text in the place of 'TODO'"):
        load_policy(path)
    path.write_text(taken.replace("TODO", "filled in"))
    policy = load_policy(path)
    assert (policy.rtol, list(policy.allow), list(policy.tolerances)) == ({"float32": 1e-5}, ["my_target"], ["tpu"])
    assert [rule.cases for rule in policy.numbers] == [("tests.test_model.*",)]


@pytest.mark.parametrize("name", ["export_compat.yaml", "pyproject.toml"])
def test_a_policy_that_is_there_is_never_written_over(jaxexport, here, name):
    text = "[tool.jaxexport]\n" if name == "pyproject.toml" else "goldens: mine\n"
    (here / name).write_text(text)
    assert_bad_input(jaxexport("policy", "init"), f"{name}: this project has a policy. Nothing was written")
    assert [(path.name, path.read_text()) for path in here.iterdir()] == [(name, text)]


def test_what_has_expired_is_named_with_its_line(jaxexport, here):
    (here / "export_compat.yaml").write_text(
        "known_failures:\n  - {cases: [a], writers: ['*'], readers: ['*'], verdict: crash, stage: run, message: m, "
        "reason: r,\n     owner: o, issue: i, added: 2026-10-01, expires: 2026-12-01}\n"
    )
    assert jaxexport("policy", "check", "--as-of", "2026-12-01").code == 0
    ended = jaxexport("policy", "check", "--as-of", "2026-12-02", code=4)
    assert ended.out.splitlines() == [
        "export_compat.yaml:2: known_failures[0] (r; owner o, i): expired on 2026-12-01; this is as of 2026-12-02. "
        "Extend or delete it.",
        "export_compat.yaml: 1 known failure, 0 comparison rules, 0 allowed custom calls; 1 expired",
    ]


def test_show_names_the_origin_of_every_value(jaxexport, here):
    (here / "pyproject.toml").write_text(
        "[tool.jaxexport]\ngoldens = 'kept'\n[tool.jaxexport.windows]\nbackward = 200\n"
        "[[tool.jaxexport.retention.pinned]]\ngoldens = ['*']\nreason = 'r'\n"
        "[[tool.jaxexport.custom_call_changes]]\nold = 'a'\nnew = 'b'\nintroduced = 2026-02-04\nrelease = 2026-02-28\n"
        "reason = 'r'\nowner = 'o'\nissue = 'i'\n"
    )
    rows = [line.split() for line in jaxexport("policy", "show").out.splitlines()]
    for wanted in (
        ["goldens", "kept", "(pyproject.toml:2)"],
        ["windows.backward", "200", "days", "(pyproject.toml:4)"],
        ["custom_call_changes", "1", "entry", "(pyproject.toml:8)"],
    ):
        assert wanted in rows[: rows.index(["default"])]
    for wanted in (["windows.forward", "21", "days"], ["required.outside", "true"], ["known_failures", "none"]):
        assert wanted in rows[rows.index(["default"]) :]


def test_show_wraps_long_values_and_entries_between_words(jaxexport, here, monkeypatch):
    monkeypatch.setattr("export_core.cli.click_options.console", lambda: Console(width=100))
    (here / "export_compat.yaml").write_text(
        f"backfill_install: [{', '.join(f'package-{number}' for number in range(30))}]\nallow: {{my_target: ours}}\n"
        f"retention: {{pinned: [{{goldens: ['*'], reason: {'because it is in use ' * 30}}}]}}\n"
    )
    lines = jaxexport("policy", "show").out.splitlines()
    every = len(policy_keys(Policy()))
    assert lines[0] == f"export_compat.yaml: 3 of {every} keys set, the others have their default"
    assert max(map(len, lines)) <= 100
    assert any(line.endswith(" ours  (export_compat.yaml:2)") for line in lines)
    assert sum("because it is in use" in line for line in lines) == 3


def test_show_names_the_file_of_the_projects_releases(jaxexport, here):
    (here / "export_releases.yaml").write_text("jaxlib:\n  0.13.0: {built: 2026-11-20}\njax: {}\n")
    text = " ".join(jaxexport("policy", "show").out.split())
    assert "releases jaxlib: {0.13.0: " in text
    assert " (export_releases.yaml) " in text
    (here / "export_compat.yaml").write_text("releases: {jaxlib: {0.13.1: {built: 2026-11-21}}}\n")
    text = " ".join(jaxexport("policy", "show").out.split())
    assert "(export_compat.yaml:1, export_releases.yaml)" in text


def test_a_first_policy_that_cannot_be_made_leaves_no_file(jaxexport, here):
    golden = write_golden(GoldenStore(here / "golden"), manifest("t.a", "0.12.0.1"))
    (golden.folder / "artifact.jaxexport").unlink()
    assert jaxexport("policy", "init").code != 0
    assert [path.name for path in here.iterdir()] == ["golden"]


def test_the_schema_is_printed_for_editors(jaxexport, here):
    assert jaxexport("policy", "show", "--schema").out.encode() == written("policy")


def test_known_upstream_issues_are_listed_with_what_to_do(jaxexport, here):
    out = jaxexport("policy", "show", "--known").out
    assert "lapack-cold-process: LAPACK calls crash in a fresh process\n" in out
    assert "  readers  before 0.10.0\n" in out
    assert "  issue    https://github.com/jax-ml/jax/issues/29610\n" in out


@pytest.mark.parametrize("width", [60, 140])
def test_known_issues_fit_the_terminal(width, jaxexport, here, monkeypatch):
    monkeypatch.setattr("export_core.cli.click_options.console", lambda: Console(width=width))
    lines = jaxexport("policy", "show", "--known").out.splitlines()
    assert width - 10 < max(len(line) for line in lines if "https://" not in line) <= width


def test_the_table_that_is_printed_is_a_table_that_can_be_given(jaxexport, here):
    printed = jaxexport("policy", "show", "--known", "--json").out
    (here / "own.json").write_text(printed)
    (here / "export_compat.yaml").write_text("known_issues: own.json")
    assert jaxexport("policy", "show", "--known", "--json").out == printed
    (here / "export_compat.yaml").write_text("known_issues: none.yaml")
    for command in (("policy", "show", "--known"), ("policy", "check"), ("matrix", "--dry-run")):
        assert_bad_input(jaxexport(*command), "none.yaml: expected a table of known issues, found none")
