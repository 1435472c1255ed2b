"""Mistakes and unnoticed changes of an author: each gets an error or a note that says what to do."""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from commands import written_to
from projects import Project, Projects, Run
from warm_pytest import own_variables

IMPORTS = "import jax, jax.numpy as jnp, numpy as np, pytest\n\nX = np.arange(3, dtype='float32')\n"

WRONG_MARKERS = (
    IMPORTS
    + """
@pytest.mark.export_compat(platform="cpu")
def test_keyword(export_golden):
    export_golden(jax.jit(jnp.sin), X)

@pytest.mark.skip(reason="its marker is wrong, which is an error of a skipped test too")
@pytest.mark.export_compat(platforms=["gpu"])
def test_value(export_golden):
    export_golden(jax.jit(jnp.sin), X)

@pytest.mark.export_compat("cpu")
def test_positional(export_golden):
    export_golden(jax.jit(jnp.sin), X)

@pytest.mark.export_compat
def test_good(export_golden):
    export_golden(jax.jit(jnp.sin), X)

def test_plain():
    pass
"""
)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_each_wrong_marker_is_an_error_of_its_test(projects, workers):
    project = projects(test_a=WRONG_MARKERS)
    run = project.pytest("--update-goldens", *workers)
    assert run.code == pytest.ExitCode.TESTS_FAILED
    assert sorted(run.outcomes()["passed"]) == ["test_a.test_good", "test_a.test_plain"]
    assert "has no keyword 'platform'; did you mean 'platforms'?" in run["test_keyword"].text
    assert "platforms: unknown platform 'gpu'" in run["test_value"].text
    assert "takes keywords only, found the positional 'cpu'" in run["test_positional"].text
    assert [run[f"test_{name}"].outcome for name in ("keyword", "value", "positional")] == ["error"] * 3
    assert "INTERNALERROR" not in run.text
    assert "During handling of" not in run.text


def test_a_wrong_marker_makes_no_golden_unused(projects):
    project = projects(test_a=IMPORTS + MARKED)
    assert project.pytest("--update-goldens").code == 0
    project.write(test_a=(IMPORTS + MARKED).replace("export_compat", "export_compat(platfroms=['cpu'])"))
    run = project.pytest("--prune-goldens")
    assert run["test_sin"].outcome == "error"
    assert "unused" not in run.text
    assert len([*project.goldens.glob("*/*")]) == 1


MARKED = """
@pytest.mark.export_compat
def test_sin(export_golden):
    export_golden(jax.jit(jnp.sin), X)
"""

CALLS = (
    IMPORTS
    + """
pytestmark = pytest.mark.export_compat

def with_options(x, **options):
    assert not options
    return x + 1

def integrate(x, rtol=1e-3):
    return x * rtol

def test_takes_anything(export_golden):
    export_golden(jax.jit(with_options), X, rtol=1e-3)

def test_takes_none(export_golden):
    export_golden(jax.jit(lambda x: x + 1), X, compare="svd", ulp=4)

def test_further_call(export_golden):
    export_golden(jax.jit(with_options), X).also(X + 1, atol=1.0)

def test_refused_call(export_golden):
    export_golden(jax.jit(with_options), X).refused(np.arange(4.0), vjp_order=1)

def test_of_its_own(export_golden):
    export_golden(jax.jit(integrate, static_argnames="rtol"), X, rtol=0.5)

def test_no_arguments(export_golden):
    export_golden()
"""
)


@pytest.fixture(scope="module")
def called(projects: Projects) -> Run:
    """The run of all tests in CALLS, with an update of goldens."""
    return projects(test_a=CALLS).pytest("--update-goldens")


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("takes_anything", "export_golden(): rtol is a keyword of the marker, and the function has no parameter of"),
        ("takes_anything", "write @pytest.mark.export_compat(rtol=0.001)."),
        ("takes_none", "compare, ulp are keywords of the marker, and the function has no parameter of that name: "),
        ("takes_none", "write @pytest.mark.export_compat(compare='svd', ulp=4)."),
        ("further_call", "exported.also(): atol is a keyword of the marker"),
        ("refused_call", "exported.refused(): vjp_order is a keyword of the marker"),
        ("no_arguments", "expected a jitted function and its example arguments, found none: export_golden(jax.jit(f),"),
    ],
)
def test_a_call_with_a_keyword_of_the_marker_is_refused(called, test, message):
    assert called[f"test_{test}"].outcome == "failed"
    assert message in " ".join(called[f"test_{test}"].text.split())


def test_a_parameter_may_be_named_like_a_keyword(called):
    assert called["test_of_its_own"].outcome == "passed"


INPUTS = (
    IMPORTS
    + """
pytestmark = pytest.mark.export_compat
GRAVITY = 9.8

def test_fall(export_golden):
    exported = export_golden(jax.jit(lambda state, g: g * state["t"]), {"t": X}, np.float32(GRAVITY))
    exported.also({"t": X + 1}, np.float32(2))
"""
)


@pytest.fixture(scope="module")
def falling(projects: Projects) -> Project:
    """A project with one golden, written with gravity 9.8."""
    project = projects(test_a=INPUTS)
    assert project.pytest("--update-goldens").code == 0
    return project


def with_inputs(project: Project, old: str, new: str, policy: str = "changed_inputs: warn\n") -> Run:
    """Run a project with other arguments."""
    assert old in INPUTS
    project.write(test_a=INPUTS.replace(old, new))
    (project.folder / "export_compat.yaml").write_text(policy, encoding="utf-8")
    return project.pytest()


def test_unchanged_example_arguments_get_no_note(falling):
    run = with_inputs(falling, "9.8", "9.8")
    assert run.code == 0
    assert "example arguments" not in run.text


def test_example_arguments_that_differ_by_rounding_get_no_note(falling):
    run = with_inputs(falling, "np.float32(GRAVITY)", "np.nextafter(np.float32(GRAVITY), np.float32(10))")
    assert run.code == 0
    assert "example arguments" not in run.text


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("9.8", "9.81", "args[1]"),
        ('export_golden(jax.jit(lambda state, g: g * state["t"]), {"t": X}', None, "args[0]['t']"),
        ("np.float32(2))", "np.float32(3))", "call1 (exported.also)"),
    ],
    ids=["a number", "an array in a tree", "a further call"],
)
def test_example_arguments_other_than_the_goldens_get_a_note(falling, old, new, named):
    run = with_inputs(falling, old, new or old.replace("X", "2 * X"))
    assert run.code == 0
    note = f"example arguments are not the golden's inputs, which were compared: {named}. pytest --update-goldens"
    assert note in run.text
    assert (
        "stores the new ones; if they are random, seed them in the test, else they differ from run to run" in run.text
    )


def test_changed_example_arguments_fail_if_the_policy_says_fail(falling):
    run = with_inputs(falling, "9.8", "9.81", policy="changed_inputs: fail\n")
    assert run["test_fall"].outcome == "failed"
    assert "changed_inputs is fail: args[1]." in run["test_fall"].text
    assert re.search(
        r"If they are random, seed them in the test, .*\. If the change is intended: pytest --update-goldens test_a",
        run.text,
    )
    assert "1 golden replaced" in falling.pytest("--update-goldens").text
    assert falling.pytest().code == 0


def test_unused_goldens_fail_if_the_policy_says_fail(projects):
    both = IMPORTS + MARKED + MARKED.replace("test_sin", "test_gone")
    project = projects(test_a=both)
    (project.folder / "export_compat.yaml").write_text("unused_goldens: fail\n", encoding="utf-8")
    assert project.pytest("--update-goldens").code == 0
    project.write(test_a=IMPORTS + MARKED)
    run = project.pytest()
    assert run.code == pytest.ExitCode.TESTS_FAILED
    assert run.outcomes() == {"passed": ["test_a.test_sin"]}
    assert "unused_goldens is fail" in run.text
    assert project.pytest("-k", "sin").code == 0  # a run of some tests cannot know which goldens are unused
    # Without a marked test left, too.
    project.write(test_a="def test_plain(): pass\n")
    assert project.pytest().code == pytest.ExitCode.TESTS_FAILED
    project.write(test_a=IMPORTS + MARKED)
    assert project.pytest("--prune-goldens").code == 0
    assert project.pytest().code == 0


REASONS = (
    IMPORTS
    + """
import threading
pytestmark = pytest.mark.export_compat

def test_missing(export_golden):
    export_golden(jax.jit(jnp.sin), X)

def test_never():
    pass

def test_caught(export_golden):
    export_golden(jax.jit(jnp.sin), X, name="whole")
    try:
        export_golden()
    except BaseException:
        pass

@pytest.mark.export_compat(constant=["nothing"])
def test_constant(export_golden):
    export_golden(jax.jit(jnp.sin), X)

@pytest.mark.export_compat(platform="cpu")
def test_wrong_marker(export_golden):
    export_golden(jax.jit(jnp.sin), X)
"""
)


def test_pytests_short_summary_has_reason_and_test_name_once(projects):
    run = projects(test_a=REASONS).pytest(environment={"COLUMNS": "140"})
    reasons = {
        "FAILED test_a.py::test_missing": "No golden of this test yet: expected one in",
        "FAILED test_a.py::test_never": "never called export_golden, though it is marked",
        "FAILED test_a.py::test_caught": "export_golden() at test_a.py:17 raised",
        "FAILED test_a.py::test_constant": "constant=['nothing']: expected leaves of what is exported, found nothing",
        "ERROR test_a.py::test_wrong_marker": "@pytest.mark.export_compat has no keyword 'platform'",
    }
    for start, reason in reasons.items():
        (line,) = (line for line in run.text.splitlines() if line.startswith(start))
        assert line.startswith(f"{start} - Failed: {reason}")
        assert line.count(start.rpartition("::")[2]) == 1


CHANGING = (
    IMPORTS
    + """
pytestmark = pytest.mark.export_compat

def test_numbers(export_golden):
    export_golden(jax.jit(lambda x: jnp.sin(2 * x)), X)

def test_module(export_golden):
    export_golden(jax.jit(lambda x: x + 1.5), X)

def test_inputs(export_golden):
    export_golden(jax.jit(lambda x, y: x * y), X, 2 * X)

def test_options(export_golden):
    export_golden(jax.jit(jnp.cos), X)

def test_same(export_golden):
    export_golden(jax.jit(jnp.tan), X)
"""
)
CHANGES = {"2 * x": "3 * x", "x + 1.5": "(x + 0.5) + 1.0", "X, 2 * X": "X, 3 * X"}
OPTION = ("def test_options", "@pytest.mark.export_compat(vjp_order=1)\ndef test_options")
PARTS = {
    "numbers": ("numbers: output 0 float32[3]: 2 of 3 elements differ (max abs error ", "; allowed "),
    "module": ("module: ", " other difference"),
    "inputs": ("inputs: args[1]",),
    "options": ("vjp_order: golden 0; now 1",),
}
"""Parts of the line about each replaced golden, by its test."""


@pytest.fixture(scope="module")
def changed_project(projects: Projects) -> Project:
    """A project whose functions have changed since its goldens were written; tests that write have a copy."""
    project = projects(test_a=CHANGING)
    assert project.pytest("--update-goldens").code == 0
    text = CHANGING.replace(*OPTION) + CHANGING.partition("def test_same")[2].join(["\n\ndef test_new", ""])
    for old, new in CHANGES.items():
        assert old in text
        text = text.replace(old, new)
    project.write(test_a=text)
    return project


def parts_in(text: str) -> dict[str, str]:
    """Return what a run prints about each replaced golden, by its test."""
    found = re.findall(r"^  test_a\.test_(\w+)/\S+: (.*)$", text, re.MULTILINE)
    return {name: parts for name, parts in found if name in PARTS}


def test_a_dry_run_shows_what_an_update_replaces(changed_project, tmp_path):
    project = changed_project.copy(tmp_path / "project")
    before = project.stored()
    shown = project.pytest("--update-goldens=dry-run")
    assert (shown.code, project.stored()) == (0, before)
    assert "4 goldens would be replaced: " in shown.text
    assert "1 golden would be new: test_a.test_new/" in shown.text
    assert "1 golden unchanged: test_a.test_same/" in shown.text
    assert "dry run: nothing was written; pytest --update-goldens writes it" in shown.text
    of_one = project.pytest("--update-goldens=dry-run", "-k", "same", "test_a.py").text
    words = "pytest --update-goldens -k same test_a.py writes it"
    assert f"dry run: nothing was written; {words}" in of_one, "without -k, it would write all goldens"
    assert "goldens that would be written in " in shown.text
    differences = parts_in(shown.text)
    assert differences.keys() == PARTS.keys()
    for name, words in PARTS.items():
        assert all(word in differences[name] for word in words), differences[name]
    assert not differences["inputs"].startswith("numbers")
    written = project.pytest("--update-goldens")
    assert "4 goldens replaced: " in written.text
    assert parts_in(written.text) == differences
    assert "5 goldens would" not in project.pytest("--update-goldens=dry-run").text
    assert project.pytest().code == 0


SINE = (
    IMPORTS
    + """
@pytest.mark.export_compat
def test_sine(export_golden):
    export_golden(jax.jit(lambda x: jnp.sin(2 * x)), X)
"""
)


@pytest.fixture(scope="module")
def sine(projects: Projects) -> Project:
    """A project with one golden, of which tests have copies."""
    project = projects(test_a=SINE)
    assert project.pytest("--update-goldens").code == 0
    return project


def loosened(sine: Project, folder: Path, marker: str, function: str) -> Project:
    """Return a project whose test got another marker and another function since its golden was written."""
    project = sine.copy(folder)
    project.write(test_a=SINE.replace("export_compat\n", f"export_compat({marker})\n").replace("2 * x", function))
    return project


def replaced_in(run: Run) -> str:
    """Return what a run prints about the one golden that it replaces, or would replace."""
    return re.search(r"^  test_a\.test_sine/\S+: (.*)$", run.text, re.MULTILINE)[1]


def test_an_update_writes_changed_numbers_under_compare_shape(sine, tmp_path):
    project = loosened(sine, tmp_path / "project", "compare='shape'", "3 * x")
    would, written = project.pytest("--update-goldens=dry-run"), project.pytest("--update-goldens")
    assert ["1 golden would be replaced" in would.text, "1 golden replaced" in written.text] == [True, True]
    assert replaced_in(would) == replaced_in(written)
    assert "numbers: within what is allowed (only shapes and dtypes are compared)" in replaced_in(written)
    assert replaced_in(written).startswith("comparison: compare allclose → shape; ")
    assert project.pytest().code == 0


def test_an_update_names_a_changed_setting(sine, tmp_path):
    project = sine.copy(tmp_path / "project")
    setting = "jax_default_matmul_precision"
    project.write(conftest=f"import jax\njax.config.update({setting!r}, 'float32')\n")
    would = project.pytest("--update-goldens=dry-run")
    assert replaced_in(would) == f"{setting}: not set → float32"
    assert replaced_in(project.pytest("--update-goldens")) == replaced_in(would)
    assert project.pytest().code == 0


def test_an_update_names_a_changed_comparison(sine, tmp_path):
    project = loosened(sine, tmp_path / "project", "rtol=0.5", "2 * x")
    assert replaced_in(project.pytest("--update-goldens=dry-run")) == "comparison: rtol not set → 0.5"
    shown = reviewed(project, ["n"]).replace("\r", "")
    assert re.search(r"test_sine/\S+ replaced:\n  comparison: rtol not set → 0\.5\n", shown)
    assert replaced_in(project.pytest("--update-goldens")) == "comparison: rtol not set → 0.5"
    project.write(test_a=SINE.replace("export_compat\n", "export_compat(rtol={'float32': 1.0}, atol=9)\n"))
    project.write(test_a=(project.folder / "test_a.py").read_text(encoding="utf-8").replace("2 * x", "3 * x"))
    changed = replaced_in(project.pytest("--update-goldens"))
    assert changed.startswith("comparison: rtol 0.5 → 1.0 for float32, atol not set → 9.0; numbers: within what is")
    assert re.search(r"allowed \(max abs error [^;]*; allowed rtol 1, atol 9 \(marker\)\)", changed)


@pytest.mark.parametrize("damage", ["conflict", "missing", "rule"])
def test_an_update_replaces_a_golden_that_cannot_be_read(damage, sine, tmp_path):
    project = sine.copy(tmp_path / "project")
    whole = project.stored()
    (path,) = project.goldens.glob("*/*/golden.yaml")
    text = path.read_text(encoding="utf-8")
    path.unlink()
    if damage == "conflict":
        path.write_text(f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> branch\n", encoding="utf-8")
    elif damage == "rule":
        path.write_text(text.replace("compare: allclose", "compare: nothing"), encoding="utf-8")
    damaged = project.stored()
    would = project.pytest("--update-goldens=dry-run")
    assert (would.code, project.stored()) == (0, damaged)
    assert replaced_in(would) == "its golden.yaml could not be read"
    written = project.pytest("--update-goldens")
    assert (written.code, replaced_in(written)) == (0, replaced_in(would))
    assert "1 golden replaced: " in written.text
    assert project.stored() == whole


def test_an_update_skips_damaged_goldens_of_other_writers(sine, tmp_path):
    project = sine.copy(tmp_path / "project")
    (own,) = project.goldens.glob("*/*/golden.yaml")
    other = project.add_older_generation(own.parent.parent.name) / "golden.yaml"
    for path in (own, other):
        path.write_text("<<<<<<< HEAD\n", encoding="utf-8")
    run = project.pytest("--update-goldens")
    assert (run.code, replaced_in(run)) == (0, "its golden.yaml could not be read")
    assert other.read_text(encoding="utf-8") == "<<<<<<< HEAD\n"
    run = project.pytest()
    assert f"{other}: not a golden's manifest: found a merge conflict in line 1." in " ".join(run.text.split())


def test_an_update_fails_on_a_manifest_that_is_a_link(sine, tmp_path):
    project = sine.copy(tmp_path / "project")
    (path,) = project.goldens.glob("*/*/golden.yaml")
    elsewhere = path.rename(tmp_path / "elsewhere.yaml")
    text = elsewhere.read_bytes()
    path.symlink_to(elsewhere)
    run = project.pytest("--update-goldens")
    assert run["test_sine"].outcome == "failed"
    assert "golden.yaml: cannot read this manifest: expected a regular file" in run["test_sine"].text
    assert (path.is_symlink(), elsewhere.read_bytes()) == (True, text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--update-goldens=review",), "asks at a terminal, and this run has none. --update-goldens=dry-run shows"),
        (("--update-goldens=review", "-n", "1"), "cannot be combined with -n: workers of xdist cannot ask."),
        (("--update-goldens=dry-run", "--prune-goldens"), "cannot be combined with --prune-goldens, which deletes"),
    ],
)
def test_review_without_a_terminal_or_dry_run_with_prune_is_refused(words, message, projects):
    run = projects(test_a="def test_plain(): pass\n").pytest(*words)
    assert run.code == pytest.ExitCode.USAGE_ERROR
    (line,) = run.text.strip().splitlines()
    assert line.startswith(f"ERROR: jaxexport: error: {words[0]} {message}")


@pytest.mark.parametrize(
    ("value", "hint"),
    [("mising", " Did you mean 'missing'?"), ("dry_run", " Did you mean 'dry-run'?"), ("yes", ""), ("", "")],
)
def test_the_error_for_an_unknown_update_mode_names_the_known_modes(value, hint, projects):
    run = projects(test_a="def test_plain(): pass\n").pytest(f"--update-goldens={value}")
    assert run.code == pytest.ExitCode.USAGE_ERROR
    known = "--update-goldens=missing, --update-goldens=dry-run, --update-goldens=review"
    error = f"--update-goldens: expected no value, or one of {known}; found {value!r}.{hint}"
    assert run.text.strip() == f"ERROR: jaxexport: error: {error}"


def test_a_path_after_the_update_goldens_option_selects_tests(projects):
    run = projects(test_a="def test_plain(): pass\n").pytest("--update-goldens", "test_a.py")
    assert "1 passed" in run.text


def reviewed(project: Project, answers: Sequence[str]) -> str:
    """Run a review in a terminal of its own and answer each question."""
    import pty

    terminal, other_end = pty.openpty()
    words = "--update-goldens=review", "--no-second-export", "--noise=later"
    variables = {**own_variables(), "JAXEXPORT_CACHE": str(project.cache)}
    run = project.warm.run, words, project.folder, variables, Path(os.ttyname(other_end)), project.noise
    with ThreadPoolExecutor() as threads:
        code = threads.submit(*run)
        code.add_done_callback(lambda _: os.close(other_end))  # which ends the loop
        text, waiting = "", [*answers]
        for part in written_to(terminal):
            text += part.decode(errors="replace")
            if waiting and text.endswith("no to all that follow: "):
                os.write(terminal, f"{waiting.pop(0)}\n".encode())
        os.close(terminal)
        assert (code.result(), waiting) == (0, []), text
    return text


def test_a_review_writes_only_accepted_goldens(changed_project, tmp_path):
    project = changed_project.copy(tmp_path / "project")
    before = project.stored()
    text = reviewed(project, ["y", "", "n", "q"])
    assert text.count("Write it? ") == 4
    written = {name.split("/")[0] for name, content in project.stored().items() if before.get(name) != content}
    assert written == {"test_a.test_numbers"}
    differences = re.search(r"test_a\.test_module/\S+ replaced:\n((?:  .*\n)+)", text.replace("\r", ""))[1].splitlines()
    assert len(differences) > 1
    assert all(line.startswith("  module: ") for line in differences)
    assert "1 golden replaced: test_a.test_numbers/" in text
    assert "3 goldens not replaced, as answered: test_a.test_module/" in text
    assert "1 golden not written, as answered: test_a.test_new/" in text
    assert reviewed(project, ["n", "a"]).count("Write it? ") == 2
    assert "1 golden would be replaced: test_a.test_module/" in project.pytest("--update-goldens=dry-run").text


def test_an_update_names_the_damaged_files_it_replaces(projects):
    project = projects(test_a=IMPORTS + MARKED)
    assert project.pytest("--update-goldens").code == 0
    (text,) = project.folder.glob("golden/*/*/module.mlir")
    whole = text.read_bytes()
    text.write_bytes(whole[:100])
    run = project.pytest("--update-goldens")
    assert re.search(r"^  test_a\.test_sin/\S+: damaged: module\.mlir$", run.text, re.MULTILINE)
    assert text.read_bytes() == whole
