"""Evidence of a stored run, which counts only where all that decided its verdicts is unchanged."""

import ast
import itertools
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import filelock
import msgspec
import pytest
from making import golden, manifest, write_golden

from export_core.base.processes import DEVICES, KERNELS, SYSTEM
from export_core.cli.app import main
from export_core.goldens import GoldenStore
from export_core.goldens.store import sha256
from export_core.judge.gate import RunIdentity
from export_core.matrix import CellLimits, Selection, Verdict, cache_keys, make_plan
from export_core.matrix.result import new_result
from export_core.numbers import user_source
from export_core.numbers.user_code import UserCode
from export_core.numbers.user_source import source_hash
from export_core.policy import Policy
from export_core.policy.feature_keys import feature_keys
from export_core.policy.model import REPLAYED
from export_core.readers.worker.protocol import Stage
from export_core.releases import Windows, load_calendar
from export_core.run import plan_record, session
from export_core.run.plan_record import PLAN, Evidence, PlanRecord, record_of, recorded_plan
from export_core.run.results import FINISHED, LOCK, RESULTS, SUMMARY, read_summary

HERE = Path(__file__)
PACKAGE = HERE.parents[2] / "export_core"
DAY = "2026-11-21"
MATRIX = ("matrix", "--readers", "0.12.0.1", "--as-of", DAY, "--quiet")
POLICY = """\
deployed: [{name: serving, jaxlib: 0.12.0.1}]
numbers: [{cases: [t.a], compare: "checks.mine:close", reason: our own}]
environment: [OUR_SETTING]
"""


def ran(cells, *_, **__):
    """Yield each cell with a pass, in place of a replay."""
    yield from ((cell, new_result(cell, Stage.COMPARE, Verdict.PASS)) for cell in cells)


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A project with its own comparator, and its finished runs: a whole one, an earlier one, and two shards."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("OUR_SETTING", "one")
        patch.setattr(session, "_replay_by", lambda *_: ran)
        for case in ("t.a", "t.b"):
            write_golden(GoldenStore(Path("golden")), manifest(case, "0.12.0.1"))
        write("export_compat.yaml", POLICY)
        write("checks/__init__.py", "")
        write("checks/mine.py", "from .limits import (\n    MOST,  # (the most)\n)\ndef close(expected, actual): ...\n")
        write("checks/limits.py", "MOST = 1\n")
        for words in ((), ("--results", "earlier"), *(("--results", f"{n}", "--shard", f"{n}/2") for n in (1, 2))):
            patch.setattr(sys, "argv", ["jaxexport", *MATRIX, *words])
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code
    return folder


@pytest.fixture
def project(runs, cwd, monkeypatch) -> Path:
    """A copy of `runs`, which the test may change. Runs here find the comparator without a process that imports it."""
    shutil.copytree(runs, cwd, dirs_exist_ok=True)
    monkeypatch.setenv("OUR_SETTING", "one")
    monkeypatch.setattr(UserCode, "check", lambda *_: None)
    monkeypatch.setattr(session, "_replay_by", lambda *_: ran)
    return cwd


def other_code(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_keys, "hash_of_code", lambda: "0123456789abcdef")


CHANGES: dict[str, tuple[Callable[[pytest.MonkeyPatch], object], str]] = {
    "the comparator": (
        lambda _: write("checks/mine.py", "def close(expected, actual): return 'wrong'\n"),
        "another source of the comparator checks.mine:close",
    ),
    "what the comparator imports": (
        lambda _: write("checks/limits.py", "MOST = 2\n"),
        "another source of the comparator checks.mine:close",
    ),
    "the package of the comparator": (
        lambda _: write("checks/__init__.py", "import numpy\n"),
        "another source of the comparator checks.mine:close",
    ),
    "a variable": (lambda patch: patch.setenv("OUR_SETTING", "two"), "another value of the variable OUR_SETTING"),
    "no variable": (
        lambda patch: patch.delenv("OUR_SETTING"),
        "another value of the variable OUR_SETTING, which is not set now",
    ),
    "the tool": (other_code, "another version of pytest-jaxexport: "),
}
OF_POLICY = {
    "tolerances": f"{POLICY}tolerances: {{cpu: {{float32: {{rtol: 0.5}}}}}}\n",
    "numbers": POLICY.replace('compare: "checks.mine:close"', "rtol: 0.5"),
    "allow": f"{POLICY}allow: {{ours: tested}}\n",
    "quirks": f"{POLICY}quirks: [{{case: t.b, writer: 0.12.0.1, rtol: 0.5, reason: r, owner: o, issue: i,\n"
    "  added: 2026-11-01, expires: 2027-01-01}]\n",
    "reader_packages": f"{POLICY}reader_packages: [einops]\n",
    "reader_packages_from_source": f"{POLICY}reader_packages_from_source: [einops]\n",
    "environment": POLICY.replace("[OUR_SETTING]", "[OUR_SETTING, OTHER]"),
}

REFUSED = {
    "judge": ("judge",),
    "judge of another day": ("judge", "--as-of", "2026-11-22"),
    "judge with a baseline": ("judge", "--baseline", "earlier"),
    "the joining of shards": ("judge", "1", "2", "--results", "joined"),
    "a shard alone": ("judge", "1"),
    "report of another day": ("report", "--as-of", "2026-11-22"),
    "report by a policy": ("report", "--policy", "export_compat.yaml"),
    "--resume": (*MATRIX, "--resume"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_stored_run_is_refused_if_its_evidence_has_changed(project, jaxexport, monkeypatch, change):
    apply, difference = CHANGES[change]
    apply(monkeypatch)
    for use, words in REFUSED.items():
        ended = jaxexport(*words, code=2)
        assert difference in ended.err, use
        assert len(ended.err.splitlines()) == 1, use
    assert not Path("joined").exists()


def test_a_stored_run_is_accepted_if_nothing_has_changed(project, jaxexport):
    for use, words in REFUSED.items():
        jaxexport(*words, code=3 if use == "a shard alone" else 0)


@pytest.mark.parametrize("key", OF_POLICY)
def test_a_run_is_refused_after_a_change_of_the_policy(project, jaxexport, key):
    write("export_compat.yaml", OF_POLICY[key])
    difference = f"{key}: expected the value that this run was made with, found another one"
    for use, words in REFUSED.items():
        assert (difference if use != "--resume" else "had another plan: ") in jaxexport(*words, code=2).err
    assert not Path("joined").exists()
    ended = jaxexport("can-i-deploy", "--to", "serving", code=3)
    assert f"the results in .jaxexport do not count: they were made by another value of `{key}` in" in ended.err


@pytest.mark.parametrize("change", CHANGES)
def test_changed_evidence_makes_can_i_deploy_unknown(project, jaxexport, monkeypatch, change):
    assert "YES" in jaxexport("can-i-deploy", "--to", "serving", code=0).out
    apply, difference = CHANGES[change]
    apply(monkeypatch)
    ended = jaxexport("can-i-deploy", "--to", "serving", code=3)
    assert f"the results in .jaxexport do not count: they were made by {difference}" in ended.err


def test_another_tool_version_makes_the_answer_unknown(project, jaxexport):
    # This version cannot read a plan in which another one adds or leaves out a key.
    Path(".jaxexport", PLAN).write_text(json.dumps({"tool": "9.0 (abc)", "another": "form"}))
    ended = jaxexport("can-i-deploy", "--to", "serving", code=3)
    assert "do not count: they were made by another version of pytest-jaxexport: 9.0 (abc), now " in ended.err


@pytest.mark.parametrize("change", CHANGES)
def test_a_report_of_an_outdated_run_says_what_has_changed(project, jaxexport, monkeypatch, change):
    apply, difference = CHANGES[change]
    words = "report", "--markdown", "shown.md", "--badge", "badge.json"
    jaxexport(*words, code=0)
    assert "OUTDATED" not in Path("shown.md").read_text()
    assert json.loads(Path("badge.json").read_bytes())["message"].startswith("partial run, kept")
    apply(monkeypatch)
    line = f"What decides verdicts has changed since the run in .jaxexport: it was made by {difference}"
    assert line in " ".join(jaxexport("report", code=0).out.split())
    jaxexport(*words, code=0)
    assert "OUTDATED" in Path("shown.md").read_text()
    assert json.loads(Path("badge.json").read_bytes())["message"].startswith("outdated run, partial run, kept")
    assert line in jaxexport("report", "--trend", code=0).err
    compared = " ".join(jaxexport("report", "--baseline", "earlier", code=0).out.split())
    assert f"the baseline was made by {difference}" in compared


def changed_golden(_: object) -> None:
    path = Path("golden/t.a/0.12.0.1-cpu/golden.yaml")
    path.write_text(re.sub("outputs.npz: [0-9a-f]{8}", "outputs.npz: 00000000", path.read_text()))


IN_PROJECT = {
    "a golden": (changed_golden, "other goldens with the same names: t.a/0.12.0.1-cpu"),
    **{
        f"{key} of the policy": (
            lambda _, key=key: write("export_compat.yaml", OF_POLICY[key]),
            f"another value of `{key}` in the policy",
        )
        for key in ("allow", "numbers")
    },
    "a deleted case": (
        lambda _: shutil.rmtree("golden/t.a"),
        "goldens that are missing or damaged now: t.a/0.12.0.1-cpu",
    ),
    "a damaged file of a golden": (
        lambda _: write("golden/t.b/0.12.0.1-cpu/outputs.npz", "another"),
        "goldens that are missing or damaged now: t.b/0.12.0.1-cpu",
    ),
    "a golden with an error": (
        lambda _: write("golden/t.a/0.12.0.1-cpu/golden.yaml", "case: [\n"),
        "goldens that cannot be read any more (golden/t.a/0.12.0.1-cpu/golden.yaml",
    ),
}


@pytest.mark.parametrize("change", IN_PROJECT)
def test_every_report_says_what_in_the_project_has_changed(project, jaxexport, change):
    apply, difference = IN_PROJECT[change]
    apply(None)
    line = f"What decides verdicts has changed since the run in .jaxexport: it was made by {difference}"
    assert line in " ".join(jaxexport("report", code=0).out.split())
    assert line in jaxexport("report", "--trend", code=0).err
    files = "shown.md", "shown.xml", "shown.html"
    words = "--markdown", files[0], "--junit", files[1], "--html", files[2], "--badge", "b.json"
    assert f"note: {line}" in jaxexport("report", *words, code=0).err
    for file in files:
        text = Path(file).read_text().replace("&#x27;", "'").replace("\\", "")
        assert difference.partition("`")[0] in text
        assert "OUTDATED, was KEPT: " in re.sub("<[^>]*>", "", text)
    page = Path("shown.html").read_text()
    assert '<h1><span class="exit3">OUTDATED, was KEPT:</span>' in page
    assert "What decides verdicts has changed since" in page.partition("<main>")[0], "it is not folded"
    assert jaxexport("report", "--annotations", code=0).out.startswith("::warning title=OUTDATED%2C was KEPT%3A ")
    assert json.loads(Path("b.json").read_bytes())["message"].startswith("outdated run, partial run, kept")
    jaxexport("judge", code=2)


def test_a_run_is_judged_though_git_lfs_left_only_pointers(project, jaxexport):
    path = Path("golden/t.a/0.12.0.1-cpu/outputs.npz")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 9\n"
    path.write_text(pointer.format(sha256(path.read_bytes())))
    jaxexport("judge", code=0)
    path.write_text(pointer.format(sha256(b"another")))
    assert "missing or damaged now: t.a/0.12.0.1-cpu. Restore them, or run" in jaxexport("judge", code=2).err


def test_a_run_is_judged_by_its_policy_file_if_the_project_has_none(project, jaxexport):
    Path("own.yaml").write_text(Path("export_compat.yaml").read_text())
    Path("export_compat.yaml").unlink()
    jaxexport(*MATRIX, "--policy", "own.yaml", code=0)
    jaxexport("judge", code=0)
    write("own.yaml", OF_POLICY["numbers"])
    for words in (("judge",), ("report", "--as-of", DAY, "--badge", "b.json")):
        assert "own.yaml: numbers: expected the value that this run was made with" in jaxexport(*words, code=2).err
    assert not Path("b.json").exists()


def test_a_report_compares_the_policy_file_named_for_the_run(project, jaxexport):
    write("other.yaml", OF_POLICY["allow"])
    jaxexport(*MATRIX, "--policy", "other.yaml", code=0)
    assert "OUTDATED" not in jaxexport("report", code=0).out
    write("other.yaml", POLICY)
    assert "another value of `allow` in the policy" in " ".join(jaxexport("report", code=0).out.split())
    Path("other.yaml").unlink()
    assert "OUTDATED" not in jaxexport("report", code=0).out


@pytest.mark.parametrize(
    ("text", "problem"),
    [("windows: 5\n", "export_compat.yaml:1: windows: "), ("windows: {\n", "export_compat.yaml:2: not YAML: ")],
)
def test_a_report_says_where_the_policy_cannot_be_read(project, jaxexport, text, problem):
    jaxexport(*MATRIX, code=0)
    write("export_compat.yaml", text)
    sentence = "The policy of this project cannot be read, so this is the judgement by the policy of the run: "
    shown = " ".join(jaxexport("report", code=0).out.split())
    assert f"UNREADABLE POLICY {sentence}{problem}" in shown
    assert "Correct that first." in shown
    assert "UNREADABLE POLICY, was KEPT: " in shown
    assert "OUTDATED" not in shown, "no other run is needed"
    assert f"note: {sentence}{problem}" in jaxexport("report", "--badge", "badge.json", code=0).err
    assert json.loads(Path("badge.json").read_bytes())["message"].startswith("unreadable policy, partial run, kept")
    assert problem in jaxexport("judge", code=2).err


def test_a_report_says_that_its_policy_is_not_that_of_the_run(project, jaxexport):
    jaxexport(*MATRIX, code=0)
    assert "is not the policy" not in jaxexport("report", code=0).out
    write("export_compat.yaml", f"{POLICY}calendar_days: 61\n")
    sentence = "export_compat.yaml is not the policy by which this run was judged: "
    command = "`jaxexport report --policy export_compat.yaml` judges by it."
    shown = " ".join(jaxexport("report", code=0).out.split())
    assert f"OTHER POLICY {sentence}{command}" in shown
    assert "OTHER POLICY, was KEPT: " in shown, "the headline says it"
    files = ("--markdown", "shown.md", "--html", "shown.html", "--badge", "badge.json")
    assert f"note: {sentence}{command}" in " ".join(jaxexport("report", *files, code=0).err.split())
    assert "is not the policy by which this run was judged" in Path("shown.md").read_text()
    assert f"{sentence}" in Path("shown.html").read_text()
    assert '<h1><span class="exit3">OTHER POLICY, was KEPT:</span>' in Path("shown.html").read_text()
    assert json.loads(Path("badge.json").read_bytes())["message"].startswith("other policy, partial run, kept")
    assert jaxexport("report", "--annotations", code=0).out.startswith("::warning title=OTHER POLICY%2C was KEPT%3A ")
    assert "is not the policy" not in jaxexport("report", "--policy", "export_compat.yaml", code=0).out


def test_the_note_about_an_outdated_run_repeats_its_command(project, jaxexport):
    jaxexport(*MATRIX, code=0)
    write("export_compat.yaml", OF_POLICY["allow"])
    command = f"jaxexport matrix --as-of {DAY} --readers 0.12.0.1 --platforms cpu"
    assert f"Run it again: `{command}`." in " ".join(jaxexport("report", code=0).out.split())
    assert f"run it again (`{command}`)" in " ".join(jaxexport("judge", code=2).err.split())


@pytest.mark.parametrize(
    ("kept", "again"),
    [
        ("../kept", "../kept-again"),
        ("runs/1", "runs/1-again"),
        (".jaxexport/deploy/robot", ".jaxexport/deploy/robot"),
        (".", "-again"),
    ],
)
def test_no_advised_command_overwrites_a_copy_of_a_run(project, jaxexport, kept, again):
    jaxexport(*MATRIX, code=0)
    write("export_compat.yaml", OF_POLICY["allow"])
    shutil.copytree(".jaxexport", kept, dirs_exist_ok=True)
    for words in (("report", kept), ("report", kept, "--trend"), ("judge", kept)):
        ended = jaxexport(*words, code=None)
        assert f"{again}`" in " ".join((ended.out + ended.err).split()), words


def test_a_report_made_in_another_folder_is_not_called_outdated(project, jaxexport, monkeypatch):
    (project / "elsewhere").mkdir()
    shutil.copytree("checks", "elsewhere/checks")
    monkeypatch.chdir("elsewhere")
    assert "OUTDATED" not in jaxexport("report", "../.jaxexport", code=0).out


def test_an_explanation_ignores_results_before_a_change(project, monkeypatch):
    from export_core.features.why.choice import Asked, choose

    asked = Asked(cell="t.a", reader="0.12.0.1")
    assert choose(asked).result is not None
    other_code(monkeypatch)
    assert choose(asked).result is None


READERS = {"read_run", "results_in", "read_summary", "plan_of", "recorded_plan"}
USES = {
    "cli/judge.py: judge": "judge",
    "cli/report.py: report": "report",
    "features/compare_runs/comparison.py: compare_with_baseline": "a baseline",
    "features/deploy/asked.py: stored_evidence": "can-i-deploy",
    "features/why/choice.py: choose": "explain, bisect and reduce",
    "run/merge.py: _finished": "the joining of shards",
    "run/merge.py: merge_shards": "the joining of shards",
    "run/plan_record.py: plan_of": "reads a plan for the others",
    "run/results.py: Journal._take_up": "--resume",
    "run/results.py: _continued": "names the command that continues an unfinished run",
    "run/results.py: read_run": "reads a run for the others",
    "run/session.py: _whole_plan": "takes the day of a run that is continued, whose plan --resume compares",
}
"""Every function that reads a stored run, with its use. The tests above try each use, under that name."""


def test_new_functions_that_read_a_stored_run_have_to_be_listed():
    readers = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(reader in text for reader in READERS):  # to parse all files would take seconds
            continue
        tree = ast.parse(text)
        for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
            for function in scope.body:
                names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
                if isinstance(function, ast.FunctionDef) and READERS & names:
                    owner = f"{scope.name}." if isinstance(scope, ast.ClassDef) else ""
                    readers.add(f"{path.relative_to(PACKAGE)}: {owner}{function.name}")
    assert readers == set(USES)


JUDGING = {
    *("windows", "deployed", "required", "calendar_days", "unpromised", "fail_on", "releases", "known_failures"),
    *("known_issues", "custom_call_changes", "retention", "budgets"),
}
"""Keys that only judge results: each judgement applies them anew. `releases` is compared with the calendar."""
ELSEWHERE = {
    "goldens": "the hash of each golden is in the plan",
    "readers": "in the selection of the plan",
    "platforms": "in the selection of the plan",
    "rtol": "of new goldens, which record it",
    "atol": "of new goldens, which record it",
    "changed_module": "of tests, in pytest",
    "changed_inputs": "of tests, in pytest",
    "unused_goldens": "of tests, in pytest",
    "backfill_install": "of new goldens, by older writers",
}


def test_each_policy_key_is_part_of_the_evidence_or_an_exception():
    keys = {*Policy.__struct_fields__}
    assert {key.name for key in feature_keys()} <= keys
    assert keys == {*REPLAYED, *JUDGING, *ELSEWHERE}
    assert {*OF_POLICY} == {*REPLAYED}, "each is changed above"
    assert not {*REPLAYED} & (JUDGING | {*ELSEWHERE})


@pytest.mark.parametrize("line", ["windows: {backward: 200}", "calendar_days: 9", "fail_on: [outside]"])
def test_a_change_of_judging_keys_leaves_a_run_valid(project, jaxexport, line):
    write("export_compat.yaml", f"{POLICY}{line}\n")
    jaxexport("judge", code=0)
    assert "YES" in jaxexport("can-i-deploy", "--to", "serving", code=0).out


# --- unfinished runs --------------------------------------------------------------------------------------------------

COMMANDS = {
    "no option": (),
    "a part": ("t.*", "--writers", "0.12.0.1", "--only", "promised", "--results", "out/r 5"),
    "a shard": ("--shard", "1/2", "--results", "out/r5"),
    "limits": ("--timeout", "5", "--memory", "2", "--no-cache", "--convert", "--jobs", "2", "--cases", "t.a"),
    "files": ("--goldens", "other goldens", "--policy", "other.yaml"),
    "what the policy lacks": ("--fail-on", "outside", "--unpromised", "it's old"),
}


def unfinished(jaxexport, *words: str) -> Path:
    """Begin a run with these options in a project that has two sets of goldens, and return its folder of results."""
    shutil.copytree("golden", "other goldens")
    write("other.yaml", f"{POLICY}windows: {{backward: 300}}\n")
    jaxexport("matrix", "--readers", "0.12.0.1,0.12.0", "--as-of", DAY, "--quiet", *words)
    folder = Path(dict(itertools.pairwise(words)).get("--results", ".jaxexport"))
    (folder / SUMMARY).unlink()
    return folder


def committed(message: str) -> None:
    """Write a commit of all files of the working folder."""
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", message]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)


def quoted(message: str) -> list[str]:
    """Return the words of the command between the first backquotes of a message."""
    name, *words = shlex.split(message.split("`")[1])
    assert name == "jaxexport"
    return words


@pytest.mark.parametrize(("given", "reader"), [*zip(COMMANDS, ("report", "judge", "explain") * 2, strict=True)])
def test_the_printed_command_continues_an_unfinished_run(project, jaxexport, given, reader):
    folder = unfinished(jaxexport, *COMMANDS[given])
    message = jaxexport(reader, "--results", folder, code=2).err
    assert "found a run that has not finished: `jaxexport matrix " in message
    assert message.endswith("` continues it.\n")
    ended = jaxexport(*quoted(message))
    assert ended.code != 2, ended.err
    assert "cells already have a result" in ended.out
    assert (folder / SUMMARY).exists()


def test_a_continued_run_says_how_many_cells_ran_before(project, jaxexport):
    folder = unfinished(jaxexport)
    results = folder / RESULTS
    first, *_ = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(first)
    ended = jaxexport("matrix", "--readers", "0.12.0.1,0.12.0", "--as-of", DAY, "--resume", code=None)
    before = "(continued: 1 cell ran before)"
    assert f" s {before}, exit code " in " ".join(ended.out.split())
    assert before in jaxexport("report", "--html", "-", code=0).out


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda: shutil.rmtree("golden/t.a"), "goldens that are missing or damaged now: t.a/0.12.0.1-cpu"),
        (lambda: write("export_compat.yaml", f"{POLICY}calendar_days: 61\n"), "another policy"),
        (lambda: committed("later"), "another commit of the project: none, now "),
    ],
)
def test_an_unfinished_run_is_not_continued_after_a_change(project, jaxexport, change, difference):
    unfinished(jaxexport)
    change()
    message = jaxexport("report", code=2).err
    assert f"found a run that has not finished, made with {difference}" in message
    command = f"jaxexport matrix --as-of {DAY} --readers 0.12.0.1,0.12.0 --platforms cpu"
    assert f"no command continues it, run `{command}` again" in message
    assert "--resume" not in message


def test_an_unfinished_run_waits_for_a_readable_policy(project, jaxexport):
    unfinished(jaxexport)
    write("export_compat.yaml", "windows: 5\n")
    message = jaxexport("report", code=2).err
    assert "has not finished, and no command continues it before this is corrected: export_compat.yaml:1: wi" in message


def test_deleted_goldens_known_to_git_make_a_run_outdated(project, jaxexport):
    committed("goldens")
    shutil.move("golden", "elsewhere")
    assert "goldens that are missing or damaged now: t.a/0.12.0.1-cpu" in jaxexport("report", code=0).err.replace(
        "\n", " "
    ) + " ".join(jaxexport("report", code=0).out.split())
    assert "missing or damaged now" in jaxexport("judge", code=2).err
    subprocess.run(["git", "rm", "-rq", "--cached", "golden"], check=True)
    assert "missing or damaged now" not in " ".join(jaxexport("report", code=0).out.split()), "on another machine"


@pytest.mark.parametrize("words", ["report", "judge", "explain", "reduce -o reduced", "can-i-deploy --to serving"])
def test_every_command_on_stored_runs_names_an_unfinished_run(project, jaxexport, words):
    folder = unfinished(jaxexport)
    (folder / FINISHED).mkdir()
    (folder / FINISHED / SUMMARY).write_text("{}")
    ended = jaxexport(*words.split(), code=None)
    message = " ".join(ended.err.split())
    assert "found a run that has not finished: `jaxexport matrix " in message
    assert " --resume` continues it. The finished run that was there before is in .jaxexport/finished." in message
    assert "Run `jaxexport matrix` first" not in message, "it would replace the part that is there"
    assert ended.code == (3 if "can-i-deploy" in words else 2)


@pytest.mark.parametrize("words", ["report", "judge", "explain", "can-i-deploy --to serving"])
def test_commands_say_that_another_process_still_writes_the_run(project, jaxexport, words):
    folder = unfinished(jaxexport)
    with filelock.FileLock(folder / LOCK):
        message = " ".join(jaxexport(*words.split(), code=None).err.split())
    assert "found a run that another process is writing, with " in message
    assert "so far. Wait for it." in message
    assert "--resume" not in message, "it would be refused"
    assert "found a run that has not finished: " in jaxexport(*words.split(), code=None).err


@pytest.mark.parametrize("given", ["a part", "files"])
def test_a_refused_resume_prints_the_command_that_works(project, jaxexport, given):
    folder = unfinished(jaxexport, *COMMANDS[given])
    message = jaxexport("matrix", "--readers", "0.12.0", "--resume", "--results", folder, code=2).err
    assert "{" not in message
    ended = jaxexport(*quoted(message))
    assert ended.code != 2, ended.err
    assert "cells already have a result" in ended.out


def test_a_refused_resume_names_only_the_options_that_differ(project, jaxexport):
    unfinished(jaxexport, "--touching", "0.12.0.1")
    message = jaxexport("matrix", "--readers", "0.12.0.1,0.12.0", "--as-of", DAY, "--resume", code=2).err
    assert (
        "had another plan: another selection: touching 0.12.0.1, now none. Continue it by `jaxexport matrix" in message
    )


def test_a_resume_with_equal_options_after_a_change_says_start_again(project, jaxexport):
    unfinished(jaxexport)
    write("export_compat.yaml", f"{POLICY}allow: {{ours: tested}}\n")
    message = jaxexport("matrix", "--readers", "0.12.0.1,0.12.0", "--as-of", DAY, "--resume", code=2).err
    assert message.endswith("had another plan: another policy. Start again without --resume.\n")


@pytest.mark.parametrize("changed", [*CHANGES, *OF_POLICY, "a golden"])
def test_a_resume_refused_for_more_than_options_says_start_again(project, jaxexport, monkeypatch, changed):
    unfinished(jaxexport, "t.a", "t.b")
    if changed in CHANGES:
        CHANGES[changed][0](monkeypatch)
    elif changed in OF_POLICY:
        write("export_compat.yaml", OF_POLICY[changed])
    else:
        Path("golden/t.a/0.12.0.1-cpu/golden.yaml").unlink()
        write_golden(GoldenStore(Path("golden")), manifest("t.a", "0.12.0.1", reproducible=False))
    message = jaxexport("matrix", "--readers", "0.12.0.1,0.12.0", "--as-of", DAY, "--resume", code=2).err
    assert "had another plan: " in message
    assert message.endswith(". Start again without --resume.\n")


def test_an_unfinished_run_by_another_tool_is_not_continued(project, jaxexport, monkeypatch):
    unfinished(jaxexport)
    other_code(monkeypatch)
    message = jaxexport("report", code=2).err
    assert "not finished, made by another version of pytest-jaxexport: " in message
    assert message.endswith(": run `jaxexport matrix` again.\n")


def test_a_recorded_command_has_no_password(project, jaxexport):
    unfinished(jaxexport, "--index", "https://me:secret@example.org/simple")
    assert "https://example.org/simple" in jaxexport("report", code=2).err
    assert "secret" not in Path(".jaxexport", PLAN).read_text()


# --- commits ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(project) -> Path:
    """The project of these tests, as a git repository with one commit."""
    shutil.rmtree("1")
    git("init", "-q")
    git("add", "export_compat.yaml", "checks", "golden")
    git("commit", "-qm", "first")
    return project


def test_shards_of_two_commits_are_not_joined(repository, jaxexport):
    shard = (*MATRIX, "--shard", "1/2", "--results", "1")
    other = (*MATRIX, "--shard", "2/2", "--results", "2")
    jaxexport(*shard, code=0)
    jaxexport(*other, code=0)
    first = recorded_plan(Path("1")).evidence.parts["commit"]
    assert len(first) == 40
    jaxexport("judge", "1", "2", "--results", "joined", code=0)
    write("checks/limits.py", "MOST = 1  # as before\n")
    git("checkout", "-q", "checks")
    git("commit", "-qm", "second", "--allow-empty")
    jaxexport("judge", "joined", code=0)
    jaxexport(*other, code=0)
    second = recorded_plan(Path("2")).evidence.parts["commit"]
    error = jaxexport("judge", "1", "2", "--results", "again", code=2).err
    assert (
        f"2: mixed plans: expected the plan of 1, found another commit of the project: {first} in 1, {second} in 2. "
        in error
    )
    assert not Path("again").exists()
    resumed = jaxexport(*shard, "--resume", code=2).err
    refused = f"the last run in 1 had another plan: another commit of the project: {first}, now {second}. Start again "
    assert refused in resumed
    assert refused in jaxexport(*shard, "--resume", "--jobs", "1", code=2).err, "with other options too"


def test_shards_with_uncommitted_changes_are_not_joined(repository, jaxexport):
    jaxexport(*MATRIX, "--shard", "1/2", "--results", "1", code=0)
    write("export_compat.yaml", f"# a remark\n{POLICY}")
    jaxexport(*MATRIX, "--shard", "2/2", "--results", "2", code=0)
    assert read_summary(Path("2")).identity.changed is True
    error = jaxexport("judge", "1", "2", "--results", "joined", code=2).err
    assert "another commit of the project: " in error
    assert " with changes in 2. Run all shards with the same options on the same commit" in error


def test_a_run_starts_git_once(repository, jaxexport, monkeypatch):
    commands, run_git = [], session.run_git
    monkeypatch.setattr(session, "run_git", lambda words, *more: commands.append(words[0]) or run_git(words, *more))
    jaxexport(*MATRIX, code=0)
    assert commands == ["status"]


def test_a_run_without_git_has_no_commit(repository, jaxexport, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("GITHUB_SHA", raising=False)
    monkeypatch.delenv("CI_COMMIT_SHA", raising=False)
    jaxexport(*MATRIX, code=0)
    assert "commit" not in recorded_plan(Path(".jaxexport")).evidence.parts
    identity: RunIdentity = read_summary(Path(".jaxexport")).identity
    assert (identity.commit, identity.changed) == ("", None)


# --- the parts of the digest ------------------------------------------------------------------------------------------


def record(*goldens, policy: Policy = Policy()) -> PlanRecord:  # noqa: B008 - it is frozen
    chosen = goldens or (golden("t.a"), golden("t.b"))
    plan = make_plan(chosen, load_calendar(), Windows(), Selection(readers="0.12.0.1"), load_calendar().today())
    return record_of(plan, policy, CellLimits())


def test_the_evidence_digest_depends_on_every_part(project):
    evidence = recorded_plan(project / ".jaxexport").evidence
    parts = {"tool", "policy", "goldens", "limits", "wheels", "comparator checks.mine:close", "variable OUR_SETTING"}
    assert set(evidence.parts) == parts
    for name in parts:
        assert Evidence.of({**evidence.parts, name: "other"}).digest != evidence.digest
        assert Evidence.of({**evidence.parts, name: "other"}).differs_in(evidence)
    assert Evidence.of(evidence.parts) == evidence


def test_the_digest_of_a_plan_leaves_out_its_command():
    # Stored runs of earlier versions, whose plans have no command, keep their digest: without it they are refused.
    plain = PlanRecord("t", DAY, {"b": 1, "a": 2}, {}, "c", 1, "p", {"x": 1.0}, "w", {"c": 1}, {})
    assert plain.digest == "d9020cd5d31336a4b82939ce40afadb1c00c5e199a3e5549eeaf228f76992ecc"
    assert msgspec.structs.replace(plain, options=["--jobs", "2"]).digest == plain.digest


def test_a_recorded_plan_keeps_the_types_of_cell_options(monkeypatch):
    monkeypatch.setattr(plan_record, "of_cell", lambda _: {"timeout": 1, "precision": "highest"})
    made = record()
    assert made.limits == {"timeout": 1.0, "precision": "highest"}
    assert msgspec.json.decode(msgspec.json.encode(made), type=PlanRecord) == made


def test_a_digest_that_contradicts_its_parts_is_refused(project, jaxexport):
    path = project / ".jaxexport"
    plan = recorded_plan(path)
    plan = msgspec.structs.replace(plan, evidence=msgspec.structs.replace(plan.evidence, digest="0" * 64))
    (path / PLAN).write_bytes(msgspec.json.encode(plan))
    summary = json.loads((path / SUMMARY).read_bytes())
    (path / SUMMARY).write_text(json.dumps({**summary, "plan": plan.digest}))
    assert "summary.json: evidence: expected the values in plan.json beside it" in jaxexport("report", code=2).err


def test_a_variable_is_stored_as_a_salted_hash(monkeypatch):
    policy = Policy(environment=("OUR_SETTING",))
    monkeypatch.setenv("OUR_SETTING", "a secret value")
    made = record(policy=policy)
    assert b"a secret value" not in msgspec.json.encode(made)
    assert made == record(policy=policy), "that of another shard is the same"
    other = record(golden("t.c"), policy=policy).evidence.parts["variable OUR_SETTING"]
    assert other != made.evidence.parts["variable OUR_SETTING"], "another project has another salt"


@pytest.mark.parametrize("name", [*sorted(SYSTEM | DEVICES | KERNELS), "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"])
def test_variables_that_describe_the_machine_are_not_evidence(monkeypatch, name):
    policy = Policy(environment=(name,))
    before = record(policy=policy)
    monkeypatch.setenv(name, "other")
    assert record(policy=policy) == before
    assert f"variable {name}" not in before.evidence.parts


@pytest.mark.parametrize(
    "text",
    [
        "import sub.far",
        "from sub import far",
        "from sub.far import X",
        "def f():\n    import sub.far",
        "x = 1; import sub.far",
        "if True: from sub import (\n    near,  # near (not far)\n    far,\n)",
        "from sub import near, \\\n    far",
    ],
)
def test_a_comparators_hash_covers_the_modules_it_imports(cwd, text):
    write("sub/__init__.py", "")
    write("sub/near.py", "")
    write("sub/far.py", "X = 1")
    write("mine.py", text)
    before = source_hash("mine:close")
    write("sub/far.py", "X = 2")
    assert source_hash("mine:close") != before
    after = source_hash("mine:close")
    write("not_imported.py", "")
    assert source_hash("mine:close") == after


@pytest.mark.parametrize("module", ["elsewhere", "../mine", "\0"])
def test_a_comparator_that_is_not_found_has_no_hash(cwd, module):
    write("mine.py", "")
    assert source_hash(f"{module}:close") == ""


def test_an_installed_comparators_hash_covers_its_package(cwd, monkeypatch):
    write("site-packages/ours/__init__.py", "")
    write("site-packages/ours/checks.py", "")
    write("site-packages/ours/deep/limits.py", "MOST = 1")
    monkeypatch.syspath_prepend(str(cwd / "site-packages"))
    before = source_hash("ours.checks:close")
    assert before
    write("site-packages/ours/deep/limits.py", "MOST = 2")
    assert source_hash("ours.checks:close") != before


def test_a_comparators_hash_has_imported_packages_by_version(cwd, monkeypatch):
    write("mine.py", "import numpy as np\n")
    of_numpy = source_hash("mine:close")
    write("other.py", "import msgspec\n")
    before = source_hash("other:close")
    monkeypatch.setattr(user_source, "version", lambda name: "0.0")
    assert source_hash("other:close") != before
    assert source_hash("mine:close") == of_numpy, "which this program's own comparators use too"


def test_a_run_with_a_missing_comparator_is_refused(project, jaxexport, monkeypatch):
    monkeypatch.setattr(plan_record, "source_hash", lambda name: "")
    jaxexport(*MATRIX, code=0)
    error = jaxexport("judge", code=2).err
    assert "another source of the comparator checks.mine:close, which is not found from this folder" in error
