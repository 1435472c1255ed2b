"""The step of action.yml that runs the matrix: the options that it passes to a stub, and those that it refuses."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from actions import scripts

from export_core.cli.matrix import matrix

STEPS = scripts(Path(__file__).parents[2] / "action.yml")
SCRIPT = STEPS["Matrix"]
INPUTS = ("readers", "platforms", "cases", "writers", "touching", "only", "shard")
NARROWING = {f"--{name}" for name in INPUTS}
ELSEWHERE = {"--results", "--resume", "--help", "--dry-run", "--json", "--format"}
FLAGS = {"--cache", "--no-cache", "--convert", "--quiet"}
ACCEPTED = {
    *("--goldens", "--policy", "--as-of", "--target", "--wheels", "--index", "--executor", "--jobs", "--device-jobs"),
    *("--timeout", "--memory", "--repeat", "--convert", "--cache", "--no-cache", "--dump-ir", "--unpromised"),
    *("--fail-on", "--quiet", "--html", "--markdown", "--junit", "--svg", "--sarif"),
}
STUB = """#!{python}
import json, pathlib, sys
pathlib.Path("words.json").write_text(json.dumps(sys.argv[1:]))
results = pathlib.Path(sys.argv[-1])
if {finishes}:
    results.mkdir()
    (results / "summary.json").write_text('{{"exit_code": {code}}}')
sys.exit({code})
"""


class Step(NamedTuple):
    code: int
    output: str
    words: list[str] | None


@pytest.fixture
def step(tmp_path) -> Callable[..., Step]:
    def step(code: int = 0, finishes: bool = True, **inputs: str) -> Step:
        program = tmp_path / "jaxexport" / "bin" / "jaxexport"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(STUB.format(python=sys.executable, code=code, finishes=finishes))
        program.chmod(0o755)
        if not (python := program.with_name("python")).exists():
            python.symlink_to(sys.executable)
        given = {name.upper(): inputs.get(name, "") for name in ("options", *INPUTS)}
        files = {"GITHUB_OUTPUT": str(tmp_path / "output"), "RUNNER_TEMP": str(tmp_path)}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", SCRIPT],
            cwd=tmp_path,
            env={**os.environ, **given, **files, "RESULTS": str(tmp_path / "results")},
            capture_output=True,
            text=True,
            check=False,
        )
        words = tmp_path / "words.json"
        assert f"exit-code={done.returncode}\n" in (tmp_path / "output").read_text()
        return Step(done.returncode, done.stdout, json.loads(words.read_text()) if words.exists() else None)

    return step


@pytest.mark.parametrize("option", sorted(NARROWING))
@pytest.mark.parametrize("spelling", ["{} 1/7", "{}=1/7", "--quiet\n{}=1/7"])
def test_options_that_select_cells_must_be_inputs_of_the_action(step, option, spelling):
    ran = step(options=spelling.format(option))
    assert (ran.code, ran.words) == (2, None)
    assert "::error" in ran.output
    assert f"Give it as the input '{option[2:]}'." in ran.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ('--unpromised "old goldens"', ["--unpromised", "old goldens"]),
        ("--unpromised='old  #1'\n--quiet", ["--unpromised=old  #1", "--quiet"]),
        (r"--policy C:\new\policy.yaml", ["--policy", r"C:\new\policy.yaml"]),
        ("", []),
    ],
)
def test_options_are_split_as_in_a_shell(step, options, words):
    ran = step(options=options)
    assert ran.code == 0, ran.output
    assert ran.words is not None
    assert ran.words[1:-2] == words


def test_a_quote_that_is_not_closed_is_refused(step):
    ran = step(options='--unpromised "old goldens')
    assert (ran.code, ran.words) == (2, None)
    assert "::error title=jaxexport matrix::options: expected each quote to be closed" in ran.output


def test_exit_code_2_of_the_matrix_is_annotated_as_an_error(step):
    assert "::error title=jaxexport matrix::Bad input, and nothing was judged" in step(code=2).output
    assert "::error" not in step(code=1).output


@pytest.mark.parametrize("name", ["case", "reader", "writer", "platform"])
def test_a_singular_option_is_refused_in_favour_of_the_plural_input(step, name):
    ran = step(options=f"--{name} a")
    assert (ran.code, ran.words) == (2, None)
    assert f"Give it as the input '{name}s'." in ran.output


@pytest.mark.parametrize("option", sorted(ACCEPTED - FLAGS))
@pytest.mark.parametrize(("after", "found"), [("", "none"), (" --quiet", "--quiet"), (" -q", "-q")])
def test_an_option_without_its_value_takes_no_other_word(step, option, after, found):
    ran = step(options=option + after, readers="0.12.0.1", shard="1/2")
    assert (ran.code, ran.words) == (2, None)
    assert f"options: expected a value after {option}, found {found}." in ran.output


ELSEWHERE_OR_NOWHERE = ["--help", "-h", "-hh", "--version", "--results=old", "--resume", "--", "--dry-run"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *((f"--quiet {option}", f"found {option}. Leave it out.") for option in ELSEWHERE_OR_NOWHERE),
        *(
            (f"{before} tests.test_a.*", "found tests.test_a.*. Give a case as the input 'cases', and")
            for before in ("", "--timeout 300", "--jobs=2", *sorted(FLAGS), "-q")
        ),
    ],
)
def test_options_that_the_action_sets_or_cannot_use_are_refused(step, options, message, tmp_path):
    (tmp_path / "results").mkdir()  # of an earlier use of the action in this job
    ran = step(options=options)
    assert (ran.code, ran.words) == (2, None)
    assert message in ran.output
    assert not (tmp_path / "results").exists()


def test_every_option_of_the_command_is_refused_or_accepted():
    context = matrix.make_context("matrix", [])
    options = {word for option in matrix.get_params(context) for word in (*option.opts, *option.secondary_opts)}
    assert options - {"-h", "-q", "named_cases"} == NARROWING | ELSEWHERE | ACCEPTED, (
        "list a new option here and in action.yml"
    )
    flags = {word for option in matrix.params if getattr(option, "is_flag", False) for word in option.opts}
    assert (flags | {"--no-cache"}) & ACCEPTED == FLAGS, "list an option without a value in action.yml"


def test_inputs_of_the_action_reach_the_command_unchanged(step, tmp_path):
    ran = step(
        options="--timeout  300\n--quiet --unpromised *",
        readers="--help",
        cases="t.f[a b]\n\n  $(touch broken)\n`touch broken`;touch broken",
        only="promised",
        shard="1/7' \"",
    )
    assert ran.code == 0
    assert ran.words == [
        *("matrix", "--timeout", "300", "--quiet", "--unpromised", "*"),
        *("--readers=--help", "--only=promised", "--shard=1/7' \""),
        *("--cases=t.f[a b]", "--cases=$(touch broken)", "--cases=`touch broken`;touch broken"),
        *("--results", str(tmp_path / "results")),
    ]
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize("code", [0, 1, 3, 4, 130])
def test_a_step_ends_with_the_exit_code_of_its_run(step, code):
    assert step(code=code).code == code


def test_a_run_that_ends_with_0_and_no_summary_fails(step):
    assert step().code == 0
    ran = step(finishes=False)
    assert ran.code == 3, "the summary of an earlier run is not used"
    assert "has no summary that says the same" in ran.output


def test_the_actions_report_step_succeeds_without_results(tmp_path):
    given = {"RESULTS": str(tmp_path), "RUNNER_TEMP": "no folder"}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS["Report"]]
    assert subprocess.run(command, env={**os.environ, **given}, check=False).returncode == 0
    (tmp_path / "summary.json").touch()
    assert subprocess.run(command, env={**os.environ, **given}, capture_output=True, check=False).returncode == 127
