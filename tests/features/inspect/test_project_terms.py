"""`jaxexport inspect`, `diff` and `audit` in a project that has releases, windows and allowed calls of its own."""

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import platformdirs
import pytest
from artifacts import DATA, changed, unlisted

from export_core.base.cache_folder import STORED_DAYS, cache_path
from export_core.policy import Policy, stored_terms, terms
from export_core.policy.load import FILE, PROJECT_FILE
from export_core.policy.project_terms import terms_of
from export_core.releases import Windows
from export_core.releases.calendar_entries import shipped_entries
from export_core.releases.project_releases import FILE as RELEASES

MLP = DATA / "0.12.0.1" / "mlp.jaxexport"
STABLEHLO = json.dumps(next(entry.stablehlo for entry in shipped_entries() if entry.jaxlib == "0.12.0.1"))
RELEASE = f"""\
jaxlib: {{"0.13.0": {{built: 2026-11-20, stablehlo: {STABLEHLO}}}}}
jax: {{"0.13.0": {{built: 2026-11-20, minimum_jaxlib: "0.13.0"}}}}
"""
POLICY = "windows: {backward: 365, forward: 30}\nallow: {my_kernel_of_ours: we build it}\n"


def written_by_0_13_0(folder: Path) -> Path:
    return changed(folder, "0.12.0.1/mlp", jax_version="0.13.0")


def facts_of(jaxexport, *words: str | Path):
    ended = jaxexport("inspect", *words, "--json", code=0)
    return json.loads(ended.out)


def standing_of_our_kernel(jaxexport, path: Path) -> str:
    calls = {call["target"]: call["standing"] for call in facts_of(jaxexport, path)["custom_calls"]}
    return calls["my_kernel_of_ours"]


def test_an_unknown_writer_is_not_guessed(jaxexport, tmp_path):
    facts = facts_of(jaxexport, written_by_0_13_0(tmp_path))
    assert facts["writer"]["jaxlib"] is None
    assert "0.13.0" not in [reader["jaxlib"] for reader in facts["readers"]]
    assert (facts["readers"][-1]["jaxlib"], facts["promise"]["backward_days"]) == (shipped_entries()[-1].jaxlib, 180)


@pytest.mark.parametrize("stored_in", [RELEASES, FILE, PROJECT_FILE, "--policy"])
def test_every_command_knows_a_release_that_the_project_adds(jaxexport, tmp_path, stored_in):
    path = written_by_0_13_0(tmp_path)
    policy = "releases:\n" + textwrap.indent(RELEASE, "  ") + POLICY
    words = []
    if stored_in == RELEASES:
        (tmp_path / RELEASES).write_text(RELEASE)
        (tmp_path / FILE).write_text(POLICY)
    elif stored_in == FILE:
        (tmp_path / FILE).write_text(policy)
    elif stored_in == PROJECT_FILE:
        (tmp_path / RELEASES).write_text(RELEASE)
        (tmp_path / PROJECT_FILE).write_text("[tool.jaxexport.windows]\nbackward = 365\nforward = 30\n")
    else:
        (tmp_path / "elsewhere.yaml").write_text(policy)
        words = ["--policy", tmp_path / "elsewhere.yaml"]
    facts = facts_of(jaxexport, path, *words)
    assert (facts["writer"]["jaxlib"], facts["readers"][-1]["jaxlib"]) == ("0.13.0", "0.13.0")
    assert facts["promise"] == {
        "backward_days": 365,
        "forward_days": 30,
        "since": ["2026-10-21"] * 2,
        "until": ["2027-11-20"] * 2,
    }
    audit = jaxexport("audit", path, *words)
    assert f"{path}: ok, it makes no custom calls, written by jaxlib 0.13.0\n" in audit.out
    diff = jaxexport("diff", MLP, path, *words)
    assert " → jax 0.13.0, jaxlib 0.13.0\n" in diff.out


def test_every_command_accepts_allowed_calls(jaxexport, tmp_path):
    path = unlisted(tmp_path)
    assert (standing_of_our_kernel(jaxexport, path), jaxexport("audit", path).code) == ("unlisted", 1)
    (tmp_path / FILE).write_text(POLICY)
    assert (standing_of_our_kernel(jaxexport, path), jaxexport("audit", path).code) == ("allowed", 0)
    assert "allowed: we build it" in jaxexport("inspect", path).out
    assert "allowed: we build it" in jaxexport("diff", MLP, path).out


def test_inspect_and_audit_report_a_broken_policy_alike(jaxexport, tmp_path):
    (tmp_path / FILE).write_text("windows: {backwards: 3}\n")
    assert jaxexport("inspect", MLP) == jaxexport("audit", MLP)
    assert jaxexport("inspect", MLP).code == 2


def test_the_parsed_policy_stored_for_inspect_has_its_defaults():
    assert {FILE, RELEASES, FILE.replace(".yaml", ".yml")} == set(stored_terms.POLICY_FILES)
    assert stored_terms.PROJECT_FILE == PROJECT_FILE
    assert terms.Terms(shipped_entries()) == terms_of(Policy())
    assert terms.Terms(()).windows == Windows()


SECOND = """\
import sys
from export_core.cli.entry import main

try:
    main()
finally:
    print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a policy, and a cache folder of its own."""
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "cache"))
    (tmp_path / FILE).write_text(POLICY)
    return tmp_path


def stored(folder: Path) -> list[Path]:
    return sorted((folder / "cache" / "terms").glob("*"))


def test_inspect_parses_an_unchanged_policy_once(project):
    """The second inspect imports none of the packages that parse; `nox -s bench -- --only reading` measures it."""
    ended = [
        subprocess.run([sys.executable, "-c", SECOND, "inspect", MLP], capture_output=True, text=True, cwd=project)
        for _ in range(2)
    ]
    assert ended[0].stdout == ended[1].stdout
    assert "365 days" in ended[1].stdout
    heavy = {"yaml", "msgspec", "click", "platformdirs"}
    assert [bool(heavy & set(one.stderr.split())) for one in ended] == [True, False]


def test_a_policy_that_changes_is_parsed_again(jaxexport, project):
    path = unlisted(project)
    assert standing_of_our_kernel(jaxexport, path) == "allowed"
    (project / FILE).write_text("windows: {backward: 365}\n")
    assert standing_of_our_kernel(jaxexport, path) == "unlisted"


NO_TERMS = b"4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945\n[]"
"""Stored terms that are empty, with the right checksum."""


@pytest.mark.parametrize("data", [b"", b"[]", b"0" * 64 + b"\n[null, 9999, 1, {}]", b"\xff\n\xff", NO_TERMS])
def test_inspect_parses_the_policy_again_if_its_copy_is_damaged(jaxexport, project, data):
    path = unlisted(project)
    facts = facts_of(jaxexport, path)
    (file,) = stored(project)
    file.write_bytes(data)
    assert facts_of(jaxexport, path) == facts
    assert stored(project) == [file]
    assert file.read_bytes() != data


def test_stored_policies_unused_for_long_are_deleted(jaxexport, project):
    facts_of(jaxexport, MLP)
    (old,) = stored(project)
    long_ago = time.time() - (STORED_DAYS + 1) * 86_400
    os.utime(old, (long_ago, long_ago))
    (project / FILE).write_text("windows: {backward: 365}\n")
    facts_of(jaxexport, MLP)
    (new,) = stored(project)
    assert new != old


def test_inspect_works_without_a_writable_cache(jaxexport, project, monkeypatch):
    (project / "file").write_text("")
    monkeypatch.setenv("JAXEXPORT_CACHE", str(project / "file"))
    assert standing_of_our_kernel(jaxexport, unlisted(project)) == "allowed"


@pytest.mark.parametrize("variables", [{}, {"XDG_CACHE_HOME": "/somewhere"}, {"XDG_CACHE_HOME": "relative"}])
def test_the_cache_folder_agrees_with_platformdirs(monkeypatch, variables):
    monkeypatch.delenv("JAXEXPORT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_path() == platformdirs.user_cache_dir("jaxexport")
