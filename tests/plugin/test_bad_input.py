"""Errors are reported once and clearly, with an exit code other than 0, and harm no stored golden."""

import re
import shutil
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs
from projects import Project, Projects

from export_core.goldens import GoldenStore
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.manifest_file import dump_manifest
from export_core.goldens.store import sha256

KINDS = ["whole", "flipped", "gone", "unread", "future", "none", "older_alone", "older_wrong", "older_inputs"]
TESTS = """
import os, warnings
import jax, jax.numpy as jnp, numpy as np, pytest

X = np.linspace(0.1, 1.0, 9, dtype=np.float32).reshape(3, 3)
SIN = jax.jit(jnp.sin)
KINDS = @KINDS@

if "RLIMIT_FSIZE" in os.environ:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["RLIMIT_FSIZE"]),) * 2)

@pytest.mark.export_compat
@pytest.mark.parametrize("kind", KINDS)
def test_stored(export_golden, kind):
    many = np.arange(50_000.0)
    export_golden(jax.jit(lambda x: x.sum() + many) if "LARGE" in os.environ else SIN, X)

def test_unmarked(export_golden):
    export_golden(SIN, X)

with warnings.catch_warnings(action="ignore"):
    misspelled = pytest.mark.export_compt

@misspelled
def test_misspelled(export_golden):
    export_golden(SIN, X)

class TestCall:
    pytestmark = pytest.mark.export_compat

    def test_never(self):
        pass

    def test_twice(self, export_golden):
        export_golden(SIN, X, name="one")
        export_golden(SIN, X, name="one")

    def test_twice_unnamed(self, export_golden):
        export_golden(SIN, X)
        export_golden(SIN, X)

    def test_own_mistake(self, export_golden):
        def mistaken(x):
            return x + "1"
        export_golden(jax.jit(mistaken), X)

    def test_argument_too_few(self, export_golden):
        export_golden(SIN)

    def test_static_without_hash(self, export_golden):
        export_golden(jax.jit(lambda x, n: x, static_argnums=1), X, {})

    def test_fails_afterwards(self, export_golden):
        export_golden(SIN, X)
        raise AssertionError("failed afterwards")

    def test_skips_afterwards(self, export_golden):
        export_golden(SIN, X)
        pytest.skip("skipped afterwards")
"""


CALLS = {  # each call, and the messages with which its test fails
    "never_though_taken": (
        "pass",
        "is marked with export_compat: call export_golden(jax.jit(f), *args), or remove the marker.",
    ),
    "empty_name": (
        'export_golden(SIN, X, name="")',
        "name='': expected text that distinguishes this call from others.",
    ),
    "not_jitted": (
        *(
            "export_golden(jnp.sinc.__wrapped__, X)",
            "expected a jitted function first, such as jax.jit(f), found <function",
        ),
    ),
    "text": (
        *('export_golden(SIN, {"w": [X, "relu"]})', "argument [0]['w'][1] is 'relu' of type str; expected an array"),
    ),
    "objects": (
        "export_golden(jax.jit(lambda x, bias: x), X, bias=np.array([None]))",
        "argument keyword ['bias'] is array([None], dtype=object) of type ndarray; expected an array",
    ),
    "static": (
        "export_golden(jax.jit(lambda x, n, m: x * n * m, static_argnums=1), X, 2, 3)",
        "several choices of static arguments would explain that. Bind the static ones with functools.partial",
    ),
    "unpromised": (
        "export_golden(jax.jit(lambda x: jax.scipy.linalg.qr(x, pivoting=True)), X)",
        "allow={'lapack_sgeqp3_ffi': 'why its behaviour is pinned'",
    ),
    "callback": (
        "export_golden(jax.jit(lambda x: jax.pure_callback(np.sin, x, x)), X)",
        "no artifact can hold a Python function: serialization of host_callbacks is not yet implemented.",
        "\npure_callback at test_bad.py:84 in <lambda>: export_golden(jax.jit(lambda x: jax.pure_callback(",
    ),
    "reference": (
        "export_golden(jax.jit(lambda ref: ref[...]), jax.new_ref(X))",
        "argument [0] is a mutable reference, which jax.export does not accept. Pass the array, and make",
    ),
    "closed_over": (
        "ref = jax.new_ref(X); export_golden(jax.jit(lambda x: x + ref[...]), X)",
        "A mutable reference that the function closes over gives this message: make it inside",
    ),
    "unnamed_not_jitted": ("export_golden(lambda x: x, X)", "of type function. Wrap what you pass in jax.jit."),
    "exported": (
        "export_golden(jax.export.export(SIN)(X))",
        "of type Exported. Pass the jitted function that was exported: the fixture exports it. For an artifact",
    ),
    "result": ("export_golden(SIN(X))", "of type ArrayImpl. Pass the function, and its arguments after it."),
    "dates": (
        "export_golden(SIN, np.array(['2026-11-27'], 'datetime64[D]'))",
        "expected an array (jax.Array, numpy.ndarray) of a dtype that JAX has, or a Python number, since",
    ),
}
MESSAGES = {
    "unmarked": ["uses export_golden without the marker: mark it with @pytest.mark.export_compat."],
    "misspelled": ["it with @pytest.mark.export_compat. Its mark 'export_compt' has a similar name."],
    "never": ["though it is marked with export_compat: request the fixture (in unittest, take self.export_golden)"],
}
TESTS += "".join(f"\n    def test_{name}(self, export_golden):\n        {call}\n" for name, (call, *_) in CALLS.items())


@pytest.fixture(scope="module")
def spoiled(projects: Projects) -> SimpleNamespace:
    """Runs that check damaged goldens and that update by tests with mistakes, and what is stored after each."""
    project = projects(test_bad=TESTS.replace("@KINDS@", repr(KINDS)))
    spoiled = SimpleNamespace(
        project=project, written=project.pytest("-q", "--update-goldens", "-k", "stored and whole")
    )
    _spoil(project)
    spoiled.before = project.stored()
    spoiled.checked = project.pytest()
    spoiled.after_checked = project.stored()
    spoiled.updated = project.pytest("-q", "--update-goldens", "-k", "not stored")
    spoiled.after_update = project.stored()
    return spoiled


def _spoil(project: Project) -> None:
    (whole,) = GoldenStore(project.goldens).goldens()
    own = {
        kind: project.add_golden(whole, case=f"test_bad.test_stored[{kind}]", test=f"test_bad.py::test_stored[{kind}]")
        for kind in KINDS[1:]
    }
    data = bytearray((own["flipped"] / "outputs.npz").read_bytes())
    data[-100] ^= 1
    (own["flipped"] / "outputs.npz").write_bytes(data)
    (own["gone"] / "inputs.npz").unlink()
    (own["unread"] / "golden.yaml").unlink()
    text = (own["future"] / "golden.yaml").read_text()
    (own["future"] / "golden.yaml").write_text(text.replace("format: 1", "format: 2"))
    _replace(own["none"], "artifact.jaxexport", b"a text that somebody saved here")
    project.add_older_generation("test_bad.test_stored[older_alone]")
    shutil.rmtree(own["older_alone"])
    older = project.add_older_generation("test_bad.test_stored[older_wrong]")
    _replace(older, "outputs.npz", zeros := to_npz([leaf_of(np.zeros((3, 3), np.float32))]))
    older = project.add_older_generation("test_bad.test_stored[older_inputs]")
    _replace(older, "inputs.npz", zeros)
    _replace(older, "outputs.npz", zeros)


def _replace(folder: Path, name: str, data: bytes) -> None:
    """Replace a file of a golden, and its hash in the manifest."""
    (golden,) = (
        each for each in GoldenStore(folder.parent.parent).generations(folder.parent.name) if each.folder == folder
    )
    manifest = structs.replace(golden.manifest, files={**golden.manifest.files, name: sha256(data)})
    (folder / name).write_bytes(data)
    (folder / "golden.yaml").write_bytes(dump_manifest(manifest))


@pytest.mark.parametrize(
    ("kind", "messages"),
    [
        ("flipped", ["outputs.npz: damaged: expected SHA-256"]),
        ("gone", ["inputs.npz: expected a file of this golden, found none."]),
        ("unread", ["golden.yaml: expected a golden's manifest, found no such file."]),
        ("future", ["golden.yaml: manifest format 2; this pytest-jaxexport reads up to 1. Upgrade pytest-jaxexport."]),
        ("none", ["AUDIT FAILED", "artifact.jaxexport: expected"]),
        (
            "older_wrong",
            [
                "BROKEN PROMISE",
                "ran with different numbers",
                "output 0 float32[3,3]: 9 of 9 elements differ",
                "jaxexport matrix --cases 'test_bad.test_stored[older_wrong]' --writers",
                "--no-cache --results .jaxexport/reproduced",
            ],
        ),
    ],
)
def test_a_failure_names_the_damaged_file_or_the_writer(spoiled, kind, messages):
    report = spoiled.checked[f"test_stored[{kind}]"]
    assert report.outcome == "failed"
    reason, _, rest = report.text.partition("\n")  # the first line, which pytest's short summary has, may say it too
    for words in messages:
        assert words in report.text
        assert max(reason.count(words), rest.count(words)) == 1
    assert "Traceback" not in report.text
    assert "another exception" not in report.text


@pytest.mark.parametrize("kind", ["flipped", "gone", "unread"])
def test_the_command_to_rewrite_a_damaged_golden_names_only_its_test(spoiled, kind):
    test = f"--update-goldens 'test_bad.py::test_stored[{kind}]'`"
    words = re.findall(r"or write it again: `(.*?) with jaxlib (\S+) installed, else `(.*?`)", spoiled.checked.text)
    release = metadata.version("jaxlib")
    backfill = f"jaxexport goldens backfill --writers {release} -- {test}"
    assert (f"pytest {test}", release, backfill) in words


@pytest.mark.parametrize("update", [(), ("--update-goldens=missing",)], ids=["checked", "missing"])
def test_in_a_subfolder_the_command_has_a_relative_path_to_the_test(spoiled, update):
    folder = spoiled.project.folder
    (folder / "below").mkdir(exist_ok=True)
    options = ("-k", "stored and unread", f"--rootdir={folder}", *update)
    run = spoiled.project.pytest(*options, str(folder), cwd=folder / "below")
    test = "../test_bad.py::test_stored[unread]"
    assert f"or write it again: `pytest --update-goldens '{test}'` with" in run.text
    assert f" -- --update-goldens '{test}'`." in run.text


def test_undamaged_goldens_are_still_checked(spoiled):
    assert spoiled.checked["test_stored[whole]"].outcome == "passed"
    assert spoiled.checked["test_stored[older_alone]"].outcome == "passed"


def test_a_missing_golden_of_this_writer_is_noted(spoiled):
    assert (
        "older_alone]: pytest --update-goldens 'test_bad.py::test_stored[older_alone]' adds it" in spoiled.checked.text
    )


def test_a_generation_with_other_inputs_is_noted(spoiled):
    """Each golden agrees with its own outputs, so nothing fails."""
    assert spoiled.checked["test_stored[older_inputs]"].outcome == "passed"
    (line,) = (line for line in spoiled.checked.text.splitlines() if "have other inputs" in line)
    assert "test_bad.test_stored[older_inputs]: the goldens by " in line
    assert line.endswith(" shows what differs")


@pytest.mark.parametrize("test", ["unmarked", "misspelled", "never", *CALLS])
@pytest.mark.parametrize("updating", [False, True])
def test_a_wrong_call_of_export_golden_fails_with_one_sentence(spoiled, test, updating):
    report = (spoiled.updated if updating else spoiled.checked)[f"test_{test}"]
    assert report.outcome == ("error" if test in ("unmarked", "misspelled") else "failed")
    for message in MESSAGES.get(test) or CALLS[test][1:]:
        assert report.text.count(message) == 1
    assert "another exception" not in report.text
    assert f"::test_{test}: " not in report.text, "pytest says which test it is"
    assert len(report.text.splitlines()) <= 3 or report.outcome == "error"


@pytest.mark.parametrize("test", ["test_twice", "test_twice_unnamed"])
def test_a_second_export_golden_with_the_same_name_is_refused(spoiled, test):
    assert "give each call of a test a name of its own" in spoiled.updated[test].text


def test_an_error_in_the_function_shows_its_traceback(spoiled):
    text = spoiled.checked["test_own_mistake"].text
    assert 'return x + "1"' in text
    assert "refused" not in text
    assert "in _export_case" not in text, "frames that are not the user's"


def test_too_few_arguments_are_answered_with_the_signature(spoiled):
    text = spoiled.checked["test_argument_too_few"].text
    assert text.startswith("expected the arguments of sin(x: 'ArrayLike', /) -> 'Array' after the function, as in ")
    assert text.rstrip().endswith("found: missing a required argument: 'x'.")


def test_an_error_of_jax_is_shown_at_the_call_of_export_golden(spoiled):
    text = spoiled.checked["test_static_without_hash"].text
    message = "Non-hashable static arguments"
    assert re.search(rf"\n>       export_golden\(.*\nE       \w+Error: [^\n]*{message}", text, re.DOTALL)
    assert "dynamic_tree" not in text, "source that is not the user's"


def test_failing_or_skipped_tests_write_nothing(spoiled):
    assert "failed afterwards" in spoiled.updated["test_fails_afterwards"].text
    assert spoiled.updated["test_skips_afterwards"].outcome == "skipped"
    assert "no marked test wrote a golden (@pytest.mark.export_compat); nothing was written." in spoiled.updated.text


def test_runs_with_wrong_calls_fail_and_leave_goldens_unchanged(spoiled):
    assert (spoiled.written.code, spoiled.checked.code, spoiled.updated.code) == (0, 1, 1)
    assert spoiled.before == spoiled.after_checked == spoiled.after_update


def test_a_full_disk_leaves_the_old_golden(spoiled, small_disk):
    folder, limit = small_disk
    case = "test_bad.test_stored[whole]"
    shutil.copytree(spoiled.project.goldens / case, folder / case)
    (before,) = GoldenStore(folder).goldens()
    words = ["--update-goldens", f"--goldens={folder}", "-k", "whole"]
    limits = {"RLIMIT_FSIZE": str(limit)} if limit else {}
    run = spoiled.project.pytest(*words, environment={"LARGE": "1", **limits})
    report = run["test_stored[whole]"]
    assert (run.code, report.outcome) == (1, "failed")
    assert (
        "cannot write this golden: File too large" in report.text
        or "cannot write this golden: No space left" in report.text
    )
    assert "Nothing stored was changed; make room" in report.text
    assert [path.name for path in (folder / case).iterdir()] == [before.folder.name]
    assert GoldenStore(folder).goldens() == [before]
    before.verify()


def test_a_comparator_module_that_exits_is_an_error(projects):
    project = projects(
        test_a="""
        import pytest

        @pytest.mark.export_compat(compare="our_checks:f")
        def test_f(): ...
        """,
        our_checks="import sys; sys.exit(0)",
    )
    report = project.pytest()["test_f"]
    assert report.outcome == "error"
    assert "compare='our_checks:f': cannot import our_checks: SystemExit: 0." in report.text


UNKNOWN_DIALECT = """
import jax, jax.numpy as jnp, numpy as np, pytest
from export_core.export import api

serialize = api.serialize
api.serialize = lambda *words: serialize(*words).replace(b"vhlo\\0", b"mhlo\\0")  # as a newer jax may write it

@pytest.mark.export_compat
def test_f(export_golden):
    export_golden(jax.jit(jnp.sin), np.ones(3))
"""


def test_an_export_with_an_unknown_dialect_is_not_stored(projects):
    project = projects(test_a=UNKNOWN_DIALECT)
    text = project.pytest("--update-goldens")["test_f"].text
    assert "mhlo (dialect) is not read" in text
    assert project.stored() == {}


SWALLOWED = """
import jax, numpy as np, os, pytest

pytestmark = pytest.mark.export_compat
X = np.ones(2, np.float32)
wrong = os.environ.get("WRONG") == "1"

def call(export_golden, function, **name):
    with pytest.raises(NameError) if wrong else __import__("contextlib").nullcontext():
        export_golden(jax.jit((lambda x: nowhere) if wrong else function), X, **name)

def test_alone(export_golden):
    call(export_golden, lambda x: x + 1)

def test_beside_another(export_golden):
    export_golden(jax.jit(lambda x: x * 3), X)
    call(export_golden, lambda x: x + 2, name="b")
"""


def test_a_test_that_catches_the_error_of_its_export_fails(projects):
    project = projects(test_s=SWALLOWED)
    assert project.pytest("--update-goldens").code == 0
    run = project.pytest(environment={"WRONG": "1"})
    assert "2 failed" in run.text
    for test, call in (("test_alone", "export_golden()"), ("test_beside_another", "export_golden(name='b')")):
        assert run[test].text.startswith(f"{call} at test_s.py:10 raised NameError")
        assert "The test passed nevertheless" in run[test].text
