"""`jaxexport goldens add --from`: goldens from a folder of artifacts, by a list or by a naming rule."""

import shutil
from pathlib import Path, PurePath

import numpy as np
import pytest
from artifacts import DATA, unlisted
from commands import assert_bad_input
from making import manifest, write_golden

from export_core.features.adopt import adoption
from export_core.features.adopt.archive import case_of
from export_core.goldens import Golden, GoldenStore, Origin
from export_core.goldens.arrays import from_npz
from export_core.goldens.store import content_of
from export_core.readers.environment import this_interpreter
from export_core.run.golden_writing import FirstReplay

OF_092 = DATA / "0.9.2"
GOLDENS = DATA.parents[2] / "golden"
MLP = GOLDENS / "tests.compat.test_models.test_mlp_with_gradients" / "0.9.2-cpu"


@pytest.fixture
def archive(tmp_path) -> Path:
    """A folder with one artifact, its inputs and outputs, and a file that is no artifact."""
    folder = tmp_path / "archive"
    (folder / "old").mkdir(parents=True)
    for name, file in (("mlp.bin", "artifact.jaxexport"), ("mlp.inputs.npz", "inputs.npz")):
        shutil.copy(MLP / file, folder / "old" / name)
    shutil.copy(MLP / "outputs.npz", folder / "old" / "mlp.outputs.npz")
    (folder / "README").write_text("no artifact")
    return folder


@pytest.fixture
def add(jaxexport, archive):
    """The function that runs `jaxexport goldens add --from ARCHIVE WORDS`."""
    return lambda *words, **ends: jaxexport("goldens", "add", "--from", archive, *words, **ends)


@pytest.fixture
def writers_here(monkeypatch, forked_workers) -> None:
    """This interpreter in place of every writer's environment. Nothing is replayed, and no noise is measured."""

    monkeypatch.setattr(adoption.ReaderEnvironments, "build", lambda _, placement: this_interpreter(placement.reader))
    monkeypatch.setattr(adoption, "measure_goldens", lambda goldens, *_: [(golden, "no time") for golden in goldens])
    monkeypatch.setattr(
        adoption, "replays_by_writer", lambda goldens, *_: {golden.id: FirstReplay() for golden in goldens}
    )


def stored() -> dict[str, Golden]:
    return {golden.id: golden for golden in GoldenStore(Path("golden")).goldens()}


def test_each_artifact_becomes_a_golden_of_a_separate_case(archive, add):
    (archive / "attention").mkdir()
    for name in ("artifact.jaxexport", "inputs.npz", "outputs.npz"):
        shutil.copy(MLP / name, archive / "attention")
    ended = add("--no-replay", code=0)
    assert ended.out.splitlines() == [
        "golden/attention/0.9.2-cpu: new, by jaxlib 0.9.2",
        "golden/old.mlp/0.9.2-cpu: new, by jaxlib 0.9.2",
        "2 artifacts: 2 new; left out: 5 other files",
    ]
    for golden in stored().values():
        golden.verify()
        assert golden.manifest.origin is None
        assert golden.content("outputs.npz") == (MLP / "outputs.npz").read_bytes()


def test_adding_an_archive_again_skips_the_goldens_inside_it(archive, jaxexport):
    words = ("goldens", "add", "--from", archive, "--goldens", archive / "golden", "--no-replay")
    assert "1 new" in jaxexport(*words).out
    before = {path: path.stat().st_mtime_ns for path in (archive / "golden").rglob("*")}
    ended = jaxexport(*words)
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "1 artifact: 1 unchanged; left out: 7 other files")
    assert {path: path.stat().st_mtime_ns for path in (archive / "golden").rglob("*")} == before


def test_a_bad_artifact_does_not_stop_the_others(archive, add):
    (archive / "cut.jaxexport").write_bytes((MLP / "artifact.jaxexport").read_bytes()[:500])
    np.savez(archive / "point.inputs.npz", np.zeros(3, np.float32))
    shutil.copy(MLP / "outputs.npz", archive / "point.outputs.npz")
    shutil.copy(OF_092 / "point.jaxexport", archive)
    ended = add("--no-replay", code=2)
    assert list(stored()) == ["old.mlp/0.9.2-cpu"]
    assert ended.out.splitlines()[-1].startswith("3 artifacts: 2 not added, 1 new")
    assert f"error: {archive}/cut.jaxexport: " in ended.err
    assert f"--inputs {archive}/point.inputs.npz: expected 2 arrays (float32[4,8], float32[4,8]), found 1" in ended.err


def test_a_dry_run_of_one_artifact_stores_nothing(bare_archive, jaxexport):
    words = ("--artifact", bare_archive / "symbolic.jaxexport", "--case", "a", "--dry-run")
    ended = jaxexport("goldens", "add", *words, code=0)
    assert ended.out == f"a: {bare_archive / 'symbolic.jaxexport'}, inputs made, outputs computed by its writer\n"
    assert not Path("golden").exists()


def test_a_dry_run_of_an_archive_stores_nothing(archive, add):
    shutil.copy(OF_092 / "symbolic.jaxexport", archive)
    ended = add("--dry-run")
    assert (ended.code, ended.out.splitlines()) == (
        0,
        [
            f"old.mlp: {archive}/old/mlp.bin, inputs {archive}/old/mlp.inputs.npz, "
            f"outputs {archive}/old/mlp.outputs.npz",
            f"symbolic: {archive}/symbolic.jaxexport, inputs made, outputs computed by its writer",
            "2 artifacts: 2 found; left out: 3 other files",
        ],
    )
    assert not Path("golden").exists()


@pytest.fixture
def of_a_test(archive) -> dict[str, bytes]:
    """The files of a golden that a test wrote, of the case and the writer of the archive's artifact."""
    golden = write_golden(GoldenStore(Path("golden")), manifest("old.mlp", "0.9.2"))
    assert golden.manifest.test
    return content_of(golden.folder)


@pytest.mark.parametrize("words", [("--no-replay",), ("--dry-run",)])
def test_an_archived_file_replaces_no_golden_of_a_test(archive, of_a_test, add, words):
    ended = add(*words)
    assert (ended.code, ended.out.splitlines()[-1]) == (2, "1 artifact: 1 not added; left out: 3 other files")
    assert "old/mlp.bin: would replace the golden old.mlp/0.9.2-cpu, which tests/test_a.py::old.mlp wrote" in ended.err
    assert content_of(Path("golden/old.mlp/0.9.2-cpu")) == of_a_test


def test_an_equal_golden_of_a_test_is_not_replaced(archive, add):
    content = {name: (MLP / name).read_bytes() for name in ("artifact.jaxexport", "inputs.npz", "outputs.npz")}
    golden = write_golden(GoldenStore(Path("golden")), manifest("old.mlp", "0.9.2"), content)
    before = content_of(golden.folder)
    ended = add("--no-replay")
    assert (ended.code, content_of(golden.folder)) == (2, before)


def test_replace_option_replaces_a_golden_of_a_test(archive, of_a_test, add):
    ended = add("--no-replay", "--replace", "old.mlp")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "1 artifact: 1 replaced; left out: 3 other files")


def test_new_arrays_do_not_replace_an_adopted_golden(archive, jaxexport):
    words = ("goldens", "add", "--from", archive, "--no-replay")
    assert jaxexport(*words).code == 0
    before = content_of(Path("golden/old.mlp/0.9.2-cpu"))
    with np.load(MLP / "inputs.npz") as arrays:
        np.savez(archive / "old" / "mlp.inputs.npz", *(arrays[name] * 2 for name in sorted(arrays)))
    ended = jaxexport(*words)
    assert (ended.code, "would replace the golden old.mlp/0.9.2-cpu, which has other files" in ended.err) == (2, True)
    assert content_of(Path("golden/old.mlp/0.9.2-cpu")) == before


def test_options_set_the_names_of_array_files(archive, add):
    for old, new in (("inputs", "in"), ("outputs", "out")):
        (archive / "old" / f"mlp.{old}.npz").rename(archive / "old" / f"{new}_of_mlp.npz")
    patterns = ("--inputs", "in_of_{name}.npz", "--outputs", "out_of_{name}.npz")
    add(*patterns, "--no-replay", code=0)
    assert list(stored()) == ["old.mlp/0.9.2-cpu"]


@pytest.mark.parametrize(
    ("path", "case"),
    [
        ("mlp.jaxexport", "mlp"),
        ("v1.2/mlp.bin", "v1.2.mlp"),
        ("models/attention/artifact.jaxexport", "models.attention"),
        ("artifact.jaxexport", "artifact"),
        ("..hidden/a:b.bin", "hidden.a_b"),
        ("a\nb.bin", "a_b"),
    ],
)
def test_the_case_of_an_archived_file_is_made_from_its_path(path, case):
    assert case_of(PurePath(path)) == case


def test_two_artifacts_for_the_same_golden_are_refused(archive, add):
    shutil.copytree(archive / "old", archive / "old.mlp")
    (archive / "old.mlp" / "mlp.bin").rename(archive / "old.mlp" / "artifact.bin")
    for kind in ("inputs", "outputs"):
        (archive / "old.mlp" / f"mlp.{kind}.npz").rename(archive / "old.mlp" / f"{kind}.npz")
    ended = add("--no-replay", code=2)
    assert f"old/mlp.bin: expected another case than that of {archive}/old.mlp/artifact.bin" in ended.err
    assert list(stored()) == ["old.mlp/0.9.2-cpu"]


# --- the list ---------------------------------------------------------------------------------------------------------


def test_artifacts_yaml_pairs_artifacts_with_their_arrays(archive, add):
    (archive / "old" / "mlp.inputs.npz").rename(archive / "x.npz")
    shutil.copy(OF_092 / "symbolic.jaxexport", archive)  # not listed, and so not added
    (archive / "artifacts.yaml").write_text(
        "artifacts: [{file: old/mlp.bin, case: models.first, inputs: x.npz, writer: 0.9.2}]"
    )
    add("--no-replay", code=0)
    assert list(stored()) == ["models.first/0.9.2-cpu"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("artifacts: [{case: a}]", "not a list of artifacts: expected the key `artifacts[0].file`, found none"),
        ("artifacts: [{file: a, tolerance: 1}]", "tolerance`: unknown key"),
        (
            "artifacts: [{file: a, writer: 0.10}]",
            "`artifacts[0].writer`: expected text or nothing, found a number; put it in quotes as you wrote it, such "
            'as "0.10": without them, YAML reads 0.10 as the number 0.1.',
        ),
        ("artifacts: [{file: a, case: 1}]", "expected text, found a whole number; put it in quotes."),
        (
            "artifacts:\n- {file: a, without_outputs: 2026-13-31}",
            "in line 2: expected a date such as 2026-10-25, found 2026-13-31: month must be in 1..12; correct it, or "
            "put it in quotes if it is text.",
        ),
        ("artifacts: [{file: !!timestamp soon}]", "in line 1: expected a date such as 2026-10-25, found soon; correct"),
        ("artifacts: {", "not a list of artifacts: "),
        ("artifacts: [{file: ../secret}]", "expected a path inside"),
        ("artifacts: [{file: /etc/hostname}]", "expected a path inside"),
        ("artifacts: [{file: old/mlp.bin, register: [../a.py]}]", "expected a path inside"),
        ("artifacts: [{file: old/none.bin}]", "old/none.bin: expected a file to read"),
        ("artifacts: [{file: old/mlp.bin, mesh: {a: -2, b: -1}}]", "Expected `int` >= 1, at `artifacts[0].mesh"),
        ("artifacts: [{file: old/mlp.bin, case: ../up}]", "expected a name that a folder can have"),
        ("artifacts: [{file: README}]", "README: expected"),
    ],
)
def test_a_wrong_artifacts_yaml_is_bad_input(text, message, archive, add):
    (archive / "artifacts.yaml").write_text(text)
    ended = add("--no-replay")
    assert (ended.code, message in ended.err) == (2, True), ended
    assert not Path("golden").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected either --artifact FILE or --from FOLDER"),
        (["--artifact", "a", "--from", "b"], "expected either --artifact FILE or --from FOLDER"),
        (["--artifact", "a"], "expected the name of its case too"),
        (["--from", "a", "--case", "b"], "--case cannot be combined with --from"),
        (["--from", "nowhere"], "--from nowhere: expected a folder with artifacts, found none"),
        (["--from", "."], "expected artifacts, found none in 0 files"),
        (["--from", ".", "--dims", "b"], "--dims b: expected symbolic dimensions and their sizes"),
    ],
)
def test_wrong_options_of_goldens_add_are_bad_input(words, message, jaxexport):
    assert_bad_input(jaxexport("goldens", "add", *words), message)


# --- inputs that are made, outputs that are computed ------------------------------------------------------------------


@pytest.fixture
def bare_archive(archive) -> Path:
    """A folder with one artifact, float32[b,4] -> float32[b,b], and nothing that belongs to it."""
    shutil.rmtree(archive / "old")
    shutil.copy(OF_092 / "symbolic.jaxexport", archive)
    return archive


@pytest.mark.parametrize(("words", "size"), [([], 2), (["--dims", "b=5"], 5)])
def test_missing_inputs_are_made_and_outputs_computed(words, size, bare_archive, add, jaxexport, writers_here):
    ended = add(*words, code=0)
    assert ended.out.splitlines()[:3] == [
        "golden/symbolic/0.9.2-cpu: new, by jaxlib 0.9.2",
        f"  inputs made by rule with b = {size}",
        "  outputs computed by its own writer",
    ]
    golden = stored()["symbolic/0.9.2-cpu"]
    assert golden.manifest.inputs_made
    assert golden.manifest.origin == Origin("made", "replayed", "0.9.2", 20261122)
    (x,), (y,) = golden.inputs(), golden.outputs()
    # The rule as the documentation has it, for a program that only has NumPy.
    assert (x.data == np.random.RandomState(20261122).standard_normal((size, 4)).astype("float32")).all()
    np.testing.assert_allclose(y.data, np.sin(x.data) @ x.data.T, rtol=1e-5)
    shown = " ".join(jaxexport("inspect", "symbolic").out.split())
    assert "origin inputs: made, outputs: replayed, outputs_by: 0.9.2, seed: 20261122" in shown


def test_outputs_of_given_inputs_are_computed(archive, add, writers_here):
    (archive / "old" / "mlp.outputs.npz").unlink()
    add(code=0)
    golden = stored()["old.mlp/0.9.2-cpu"]
    assert golden.manifest.origin == Origin("given", "replayed", "0.9.2")
    assert list(map(str, golden.outputs())) == list(map(str, from_npz(MLP / "outputs.npz")))


def test_a_single_artifact_can_be_added_without_arrays(bare_archive, jaxexport, writers_here):
    words = ("--artifact", bare_archive / "symbolic.jaxexport", "--case", "a", "--dims", "b=3")
    ended = jaxexport("goldens", "add", *words, code=0)
    assert list(map(str, stored()["a/0.9.2-cpu"].outputs())) == ["float32[3,3]"]
    ended = jaxexport("goldens", "add", *words[:-1], "c=3")
    assert (ended.code, "expected sizes of its symbolic dimensions (b), found a size of c" in ended.err) == (2, True)


def test_editing_a_registered_module_in_a_replay_changes_no_golden(
    bare_archive, jaxexport, writers_here, cwd, monkeypatch
):
    (cwd / "ours.py").write_text("A = 1\n")
    run = adoption.replay_with_outputs

    def changed_meanwhile(*asked):
        (cwd / "ours.py").write_text("A = 2\n")
        return run(*asked)

    monkeypatch.setattr(adoption, "replay_with_outputs", changed_meanwhile)
    words = ("--artifact", bare_archive / "symbolic.jaxexport", "--case", "a", "--register", "ours.py")
    jaxexport("goldens", "add", *words, code=0)
    golden = stored()["a/0.9.2-cpu"]
    golden.verify()
    assert golden.content("ours.register.py") == b"A = 1\n"


def test_a_size_for_a_dimension_that_no_artifact_has_is_bad_input(bare_archive, add, writers_here):
    ended = add("--dims", "bacth=4", code=2)
    assert "--dims bacth: expected symbolic dimensions of artifacts whose inputs are made, found none" in ended.err


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("symbolic", ["--no-replay"], "or leave out --no-replay: then its writer computes them"),
        ("sharded", ["--dims", "b=0"], "--dims b=0: expected symbolic dimensions"),
    ],
)
def test_inputs_that_cannot_be_made_are_refused(name, words, message, bare_archive, add, writers_here):
    (bare_archive / "symbolic.jaxexport").unlink()
    shutil.copy(OF_092 / f"{name}.jaxexport", bare_archive)
    ended = add(*words)
    assert (ended.code, message in ended.err) == (2, True), ended
    assert not Path("golden").exists()


def test_positive_definite_inputs_are_made_if_other_inputs_give_nan(bare_archive, add, writers_here):
    """The first two rules make random and positive inputs, whose Cholesky factors are NaN."""
    shutil.copy(OF_092 / "cholesky.jaxexport", bare_archive)
    ended = add(code=0)
    assert "  inputs made by rule (positive definite numbers)\n  outputs computed by its own writer\n" in ended.out
    golden = stored()["cholesky/0.9.2-cpu"]
    assert golden.manifest.inputs_rule == "positive definite"
    assert all(np.isfinite(leaf.data).all() for leaf in golden.outputs())
    again = add()
    assert "golden/cholesky/0.9.2-cpu: unchanged" in again.out


def test_an_artifact_is_refused_if_all_inputs_give_nan(bare_archive, add, writers_here, monkeypatch):
    monkeypatch.setattr(adoption, "RULES", ("", "positive"))
    shutil.copy(OF_092 / "cholesky.jaxexport", bare_archive)
    ended = add(code=2)
    assert "expected finite numbers, found NaN or infinities in its outputs for all inputs that were made" in ended.err
    assert "Give inputs for which the function is defined: --inputs NPZ" in ended.err
    assert stored().keys() == {"symbolic/0.9.2-cpu"}


def test_outputs_without_inputs_are_refused(archive, add):
    (archive / "old" / "mlp.inputs.npz").unlink()
    ended = add(code=2)
    assert "old/mlp.outputs.npz: expected inputs for these outputs, found none" in ended.err


def test_nothing_is_stored_if_the_writers_environment_fails_to_build(bare_archive, add, no_environments):
    ended = add(code=2)
    assert "expected its writer to compute its outputs, but its writer cannot be run here: the index" in ended.err
    assert not Path("golden").exists()


def test_an_unpromised_custom_call_is_never_run(bare_archive, add, writers_here):
    unlisted(bare_archive)
    ended = add("--writer", "0.12.0.1", code=2)
    assert "changed.jaxexport: expected its writer to compute its outputs, but my_kernel_of_ours" in ended.err


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_each_archived_artifact_is_replayed_by_its_writer(archive, add, jaxexport):
    """Replay in jaxlib 0.9.2, which crashes on a Cholesky factorization in a new process."""
    for name in ("symbolic", "key", "sharded", "cholesky"):
        shutil.copy(OF_092 / f"{name}.jaxexport", archive)
    ended = add(code=2)
    assert sorted(stored()) == [f"{name}/0.9.2-cpu" for name in ("key", "old.mlp", "sharded", "symbolic")]
    assert ended.out.count("its own writer replays it") == 4
    assert "cholesky.jaxexport: expected its writer to compute its outputs, but its own writer gave no" in ended.err
    assert "died by signal 11" in ended.err
    ended = add()
    assert ended.out.splitlines()[-1].startswith("5 artifacts: ")
    assert "4 unchanged" in ended.out.splitlines()[-1]
    ended = jaxexport("matrix", "--readers", "0.9.2", "--as-of", "2026-03-20", "--quiet")
    assert (ended.code, "4 kept" in ended.out) == (0, True), ended.out + ended.err
