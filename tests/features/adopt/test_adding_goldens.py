"""`jaxexport goldens add`: a golden from an artifact whose source code is lost."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from artifacts import DATA, bare, changed, with_an_unknown_operation, with_another_dialect
from commands import assert_bad_input, process
from making import result, run_of
from protobufs import attribute, integer, module_of, node, saved_model

from export_core.artifact import Aval, read, read_bytes
from export_core.artifact.main_check import check_main
from export_core.features.adopt.saved_models import exported
from export_core.goldens import GoldenError, GoldenStore
from export_core.goldens.arrays import from_npz
from export_core.goldens.manifest import NoiseRecord
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.numbers.measuring_noise import MeasuredNoise
from export_core.run.golden_writing import FirstReplay
from tools.stored_results import read_results

GOLDENS = DATA.parents[2] / "golden"
MLP = GOLDENS / "tests.compat.test_models.test_mlp_with_gradients" / "0.9.2-cpu"
KERNEL = GOLDENS / "tests.compat.test_without_outputs.test_kernel_for_tpu" / "0.9.2-cpu"
SYMBOLIC = DATA / "0.12.0.1" / "symbolic.jaxexport"  # float32[b,4] -> float32[b,b]


@pytest.fixture
def add(jaxexport, tmp_path):
    """The function that adds to tmp_path/golden, without a replay by default. Lists of arrays are saved by np.savez."""

    def run(artifact: Path, inputs, outputs, *more: str, case: str = "models.old", replay: bool = False, **ends):
        files = []
        for name, arrays in (("i.npz", inputs), ("o.npz", outputs)):
            if isinstance(arrays, list):
                np.savez(tmp_path / name, *arrays)
                arrays = tmp_path / name
            files.append(arrays)
        words = ["--artifact", artifact, "--inputs", files[0], "--case", case, *more]
        words += ["--outputs", files[1]] if files[1] else []
        if not replay:
            words.append("--no-replay")
        # jax 0.12.0.1 runs with three jaxlibs, so that its artifact does not say which one wrote it.
        if "--writer" not in more and b"0.12.0.1" in artifact.read_bytes():
            words += ["--writer", "0.12.0.1"]
        return jaxexport("goldens", "add", *words, **ends)

    return run


def zeros(*shapes: tuple[int, ...], dtype: str = "float32") -> list[np.ndarray]:
    return [np.zeros(shape, dtype) for shape in shapes]


def the_golden(folder: Path):
    (golden,) = GoldenStore(folder / "golden").goldens()
    return golden


def test_an_added_golden_has_the_given_arrays_and_verifies(add, tmp_path):
    ended = add(MLP / "artifact.jaxexport", MLP / "inputs.npz", MLP / "outputs.npz", code=0)
    assert ended.out == "golden/models.old/0.9.2-cpu: new, by jaxlib 0.9.2\n"
    golden = the_golden(tmp_path)
    golden.verify()
    manifest = golden.manifest
    assert (manifest.case, manifest.writer.jaxlib, manifest.writer.jax) == ("models.old", "0.9.2", "0.9.2")
    assert str(manifest.writer.built) == "2026-03-18"
    other = yaml.safe_load((MLP / "golden.yaml").read_bytes())
    assert list(manifest.signature.inputs) == other["signature"]["inputs"]
    assert manifest.signature.in_tree == other["signature"]["in_tree"]
    for name in ("artifact.jaxexport", "inputs.npz", "outputs.npz"):
        assert (golden.folder / name).read_bytes() == (MLP / name).read_bytes()


@pytest.mark.parametrize(
    ("made", "message"),
    [(with_another_dialect, "mhlo (dialect)"), (with_an_unknown_operation, "vhlo.tanh_v9 (operation)")],
)
def test_an_artifact_that_cannot_be_read_whole_is_refused(add, tmp_path, made, message):
    assert_bad_input(add(made(tmp_path), zeros((4, 4)), zeros((4, 4))), message)
    assert not (tmp_path / "golden").exists()


def test_adding_the_same_artifact_again_changes_nothing(add):
    assert "new" in add(SYMBOLIC, zeros((3, 4)), zeros((3, 3))).out
    assert "unchanged" in add(SYMBOLIC, zeros((3, 4)), zeros((3, 3))).out
    assert "replaced" in add(SYMBOLIC, zeros((2, 4)), zeros((2, 2))).out


def test_positional_arrays_are_ordered_by_number(add, tmp_path):
    leaves = from_npz(MLP / "inputs.npz")
    add(MLP / "artifact.jaxexport", [leaf.data for leaf in leaves], MLP / "outputs.npz", code=0)
    assert [str(leaf) for leaf in the_golden(tmp_path).inputs()] == [str(leaf) for leaf in leaves]


def test_prng_keys_are_given_as_key_data(add, tmp_path):
    key = DATA / "0.12.0.1" / "key.jaxexport"  # key<fry>[] -> key<fry>[2]
    add(key, zeros((2,), dtype="uint32"), zeros((2, 2), dtype="uint32"), code=0)
    assert [str(leaf) for leaf in the_golden(tmp_path).inputs()] == ["key<fry>[]"]
    assert add(key, zeros((2,)), zeros((2, 2), dtype="uint32")).code == 2


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (zeros((3, 4), (1,)), zeros((3, 3)), "i.npz: expected 1 array (float32[b,4]), found 2"),
        (zeros((3, 4)), [], "o.npz: expected 1 array (float32[b,b]), found 0"),
        (
            zeros((3, 5)),
            zeros((3, 3)),
            "i.npz: array 0 (args[0]): expected float32[b,4] with b = 3, found float32[3,5]",
        ),
        (zeros((3, 4)), zeros((2, 2)), "o.npz: array 0: expected float32[b,b] with b = 3, found float32[2,2]"),
        (zeros((3,)), zeros((3, 3)), "i.npz: array 0 (args[0]): expected float32[b,4], found float32[3]"),
        (
            zeros((3, 4), dtype="float64"),
            zeros((3, 3)),
            "i.npz: array 0 (args[0]): expected float32[b,4], found float64[3,4]",
        ),
    ],
    ids=["too many", "none", "a dimension", "a symbol", "the rank", "the dtype"],
)
def test_arrays_that_do_not_fit_the_artifact_are_bad_input(inputs, outputs, message, add, tmp_path):
    assert_bad_input(add(SYMBOLIC, inputs, outputs), message)
    assert not (tmp_path / "golden").exists()


@pytest.mark.parametrize(
    ("dim", "size", "fits"),
    [
        ("2*b + 1", 7, True),
        ("2*b + 1", 6, False),
        ("floordiv(b, 2)", 1, True),
        ("floordiv(b, 2)", 2, False),
        ("mod(b, -2) + b^2", 8, True),
        ("max(b, 5) - min(2, b)", 3, True),
        ("max(b, 5) - min(2, b)", 4, False),
        ("c - 1", 4, True),  # no array has the dimension c, so that its size cannot be checked
    ],
)
def test_shapes_are_checked_against_symbolic_dimensions(dim, size, fits, add, tmp_path):
    path = changed(tmp_path, "0.12.0.1/symbolic", out_avals=(Aval("float32", (dim,)),))
    add(path, zeros((3, 4)), zeros((size,)), code=0 if fits else 2)


def test_bfloat16_is_read_from_an_npz(add, tmp_path):
    import ml_dtypes

    path = changed(tmp_path, "0.12.0.1/symbolic", in_avals=(Aval("bfloat16", ("b",)),), out_avals=())
    values = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    assert add(path, [values], [], "--nothing-to-compare", "only the dtype matters").code == 0
    (leaf,) = the_golden(tmp_path).inputs()
    assert str(leaf) == "bfloat16[2]"
    assert leaf.numpy().tolist() == [1.5, -2.0]
    assert add(path, zeros((2,)), []).code == 2


OF_0430 = DATA / "0.4.30" / "symbolic.jaxexport"


@pytest.mark.parametrize(
    ("artifact", "words", "message"),
    [
        (OF_0430, [], "name it with --writer; these fit: 0.4.19, 0.4.20, "),
        (OF_0430, ["--writer", "0.4.99"], "jaxlib 0.4.99 is not in the release calendar"),
        (
            OF_0430,
            ["--writer", "0.4.24-jax0.4.30"],
            "jaxlib 0.4.24 with jax 0.4.30: jax 0.4.30 needs jaxlib 0.4.27 or",
        ),
        (
            SYMBOLIC,
            [],
            "0.12.0.1 wrote it, with one of several jaxlibs. Windows are counted from the build date of that",
        ),
        (MLP / "artifact.jaxexport", ["--writer", "0.12.0.1"], "--writer 0.12.0.1: expected an artifact in a format"),
    ],
)
def test_an_ambiguous_or_impossible_writer_is_bad_input(artifact, words, message, jaxexport, tmp_path):
    np.savez("i.npz", *zeros((3, 4)))
    files = ["--artifact", artifact, "--inputs", "i.npz", "--outputs", "i.npz", "--case", "a", "--no-replay"]
    assert_bad_input(jaxexport("goldens", "add", *files, *words), message)
    assert not (tmp_path / "golden").exists()


@pytest.mark.parametrize(
    ("artifact", "writer", "name", "built"),
    [
        (OF_0430, "0.4.30", "0.4.30-cpu", "2024-06-18"),
        (OF_0430, "0.4.28-jax0.4.30", "0.4.28-jax0.4.30-cpu", "2024-05-09"),
        # jax 0.12.0.1 works on jaxlib 0.11.2 too, which was built 33 days earlier: another promise.
        (SYMBOLIC, "0.11.2", "0.11.2-jax0.12.0.1-cpu", "2026-09-17"),
    ],
)
def test_writer_option_chooses_among_possible_writers(artifact, writer, name, built, add, tmp_path):
    add(artifact, zeros((3, 4)), zeros((3, 3)), "--writer", writer, code=0)
    stored = the_golden(tmp_path).manifest.writer
    assert (stored.id, str(stored.built)) == (name, built)


@pytest.mark.parametrize("case", ["", ".", "a/b", "..", ".hidden", "a\nb"])
def test_a_case_that_cannot_name_a_folder_is_bad_input(case, add, tmp_path):
    ended = add(SYMBOLIC, zeros((3, 4)), zeros((3, 3)), case=case, code=2)
    assert "--case: expected a name that a folder can have" in ended.err
    assert not (tmp_path / "golden").exists()


def test_a_bare_module_cannot_become_a_golden(add, tmp_path):
    assert_bad_input(add(bare(tmp_path), zeros((4, 8)), zeros((4, 8))), "found a bare StableHLO module")


SAVED_MODELS = DATA / "savedmodels"
OF_092 = ("--writer", "0.9.2")


def test_a_function_in_a_savedmodel_becomes_an_artifact(jaxexport, tmp_path):
    """Run it in a process of its own. Orbax's function takes its weights first, then the caller's arguments."""
    np.savez(tmp_path / "i.npz", *zeros((4, 8), (8, 3), (2, 4)))
    np.savez(tmp_path / "o.npz", *zeros((2, 3)))
    arrays = ("--inputs", "i.npz", "--outputs", "o.npz", "--no-replay")
    words = ("goldens", "add", "--artifact", SAVED_MODELS / "orbax", "--case", "models.orbax", *arrays)
    ended = process(*words, *OF_092)
    assert ended.code == 0, ended.err
    assert "in the envelope of jax.export; loaded by TensorFlow 2.20.0, 2.21.0" in ended.out
    golden = the_golden(tmp_path)
    golden.verify()
    (module,) = read(SAVED_MODELS / "orbax").modules
    assert golden.read_artifact().module.serialized() == module.serialized()
    assert golden.manifest.signature.inputs == ("float32[4,8]", "float32[8,3]", "float32[2,4]")
    assert "unchanged" in jaxexport(*words, *OF_092).out
    assert "these fit: 0.9.2, 0.10.0, 0.10.1, 0.10.2." in jaxexport(*words).err


def test_each_function_of_a_savedmodel_becomes_a_case(jaxexport):
    words = ("--artifact", SAVED_MODELS / "keras", "--case", "keras", *OF_092)
    assert [line.partition(": ")[0] for line in jaxexport("goldens", "add", *words, "--dry-run").out.splitlines()] == [
        "keras.1",
        "keras.2",
    ]


@pytest.mark.parametrize(
    ("writer", "inputs"),
    [
        ("keras", ["float32[4,3]", "float32[3]", "float32[batch,4]"]),
        ("jax2tf", ["float32[b,4]"]),  # for two platforms: main takes their index too
    ],
)
def test_an_unknown_dimension_of_a_savedmodel_gets_a_symbol(writer, inputs):
    artifact = exported(read(SAVED_MODELS / writer), 1, "0.9.2")
    assert [str(aval) for aval in artifact.envelope.in_avals] == inputs
    assert not check_main(artifact)


SYMBOLS = GOLDENS / "tests.compat.test_symbolic_shapes.test_on_several_platforms" / "0.9.2-cpu" / "artifact.jaxexport"
MODULE = module_of(DATA / "0.9.2" / "mlp.jaxexport")


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (node(MODULE, version=8), "found convention 8. Instead, add the artifact of jax.export"),
        (node(MODULE, attribute("newer", integer(3, 1))), "the unknown attribute newer. Instead, add"),
        (node(MODULE, platforms=("CPU", "TPU")), "@main takes no platform index"),
        (node(module_of(SYMBOLS)), "with at most one symbolic dimension, found b, n, and no record"),
    ],
    ids=["an old convention", "an unknown attribute", "no platform index", "two symbols"],
)
def test_a_savedmodel_that_cannot_be_exported_is_refused(operation, message):
    with pytest.raises(GoldenError, match=message):
        exported(read_bytes(saved_model(operation)), 0, "0.9.2")


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_made_inputs_satisfy_the_symbolic_constraints(jaxexport):
    typed = GOLDENS / "tests.compat.test_types_alone.test_symbolic_dimensions" / "0.9.2-cpu" / "artifact.jaxexport"
    ended = jaxexport("goldens", "add", "--artifact", typed, "--case", "typed", *OF_092, code=0)
    assert "inputs made by rule with b = 3, h = 2, for its constraints b >= 3" in ended.out


@pytest.mark.matrix
def test_a_golden_of_a_savedmodel_runs_in_tensorflow(jaxexport, tmp_path):
    jaxexport("goldens", "add", "--artifact", SAVED_MODELS / "orbax", "--case", "orbax", *OF_092, "--quiet", code=0)
    jaxexport("matrix", "--readers", "savedmodel==2.21.0", "--as-of", "2026-04-20", "--quiet")
    (result,) = read_results(tmp_path / ".jaxexport")
    assert (result.golden, result.verdict) == ("orbax/0.9.2-cpu", "pass")


@pytest.mark.parametrize("content", [None, b"no arrays", b"PK\x03\x04 damaged"], ids=["missing", "text", "zip"])
def test_a_file_that_is_not_an_npz_is_bad_input(content, add, tmp_path):
    path = tmp_path / "given.npz"
    if content is not None:
        path.write_bytes(content)
    assert_bad_input(add(SYMBOLIC, path, zeros((3, 3))), f"--inputs {path}: expected an .npz of arrays, found")


def test_named_arrays_in_an_npz_are_bad_input(add, tmp_path):
    np.savez(tmp_path / "named.npz", x=np.zeros((3, 4), "float32"))
    assert_bad_input(add(SYMBOLIC, tmp_path / "named.npz", zeros((3, 3))), "expected arrays named arr_0, arr_1, …")


def test_a_golden_is_stored_without_replay_if_its_writer_is_unavailable(add, tmp_path, no_environments):
    ended = add(MLP / "artifact.jaxexport", MLP / "inputs.npz", MLP / "outputs.npz", replay=True, code=0)
    assert "new, by jaxlib 0.9.2" in ended.out
    assert "\n  not replayed: the index does not answer" in ended.out
    assert "its own writer replays it" not in ended.out
    the_golden(tmp_path).verify()


def test_artifacts_for_other_platforms_are_not_replayed(add, tmp_path):
    golden = GOLDENS / "tests.compat.test_accelerators.test_cholesky" / "0.6.2-cpu"
    arrays = golden / "inputs.npz", golden / "outputs.npz"
    ended = add(golden / "artifact.jaxexport", *arrays, "--writer", "0.6.2", replay=True, code=0)
    assert "\n  not replayed: " in ended.out
    the_golden(tmp_path).verify()


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_given_outputs_that_differ_from_the_writers_are_refused(add, tmp_path):
    ended = add(MLP / "artifact.jaxexport", MLP / "inputs.npz", MLP / "inputs.npz", replay=True, code=2)
    outputs = [leaf.data + 1 for leaf in from_npz(MLP / "outputs.npz")]
    ended = add(MLP / "artifact.jaxexport", MLP / "inputs.npz", outputs, replay=True)
    assert (ended.code, ended.out) == (2, "")
    assert f"--outputs {tmp_path / 'o.npz'}: not what jaxlib 0.9.2 gives for --inputs" in ended.err
    assert "elements differ" in ended.err
    assert not (tmp_path / "golden").exists()
    ended = add(MLP / "artifact.jaxexport", MLP / "inputs.npz", MLP / "outputs.npz", replay=True)
    assert (ended.code, ended.out.splitlines()[1]) == (0, "  its own writer replays it")


def test_the_refusal_of_given_outputs_names_elements_that_differ(add, tmp_path, monkeypatch):
    adoption = "export_core.features.adopt.adoption"
    message = "output 0 float32[3]: 2 of 3 elements differ"
    differing = result(Verdict.NUMERICS, Judgement.BROKEN, case="models.old", reader="0.9.2", message=message)
    monkeypatch.setattr(f"{adoption}.measure_goldens", lambda goldens, *_: [(golden, "no time") for golden in goldens])
    monkeypatch.setattr(f"{adoption}.run_matrix", lambda *_, **__: run_of([differing]))
    ended = add(MLP / "artifact.jaxexport", MLP / "inputs.npz", MLP / "outputs.npz", replay=True, code=2)
    given = f"--outputs {MLP / 'outputs.npz'}: not what jaxlib 0.9.2 gives for --inputs {MLP / 'inputs.npz'}"
    assert f"jaxexport: error: {given}: nothing was stored.\n  message    output 0 float32[3]: 2 of 3" in ended.err
    assert "Give the right file, or leave the outputs out: then that jaxlib computes them." in ended.err
    assert "what was exported" not in ended.err
    assert not (tmp_path / "golden").exists()


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_a_crash_in_the_goldens_writer_is_reported(add, tmp_path):
    golden = GOLDENS / "tests.compat.test_linear_algebra.test_svd" / "0.6.2-cpu"
    ended = add(
        golden / "artifact.jaxexport", golden / "inputs.npz", golden / "outputs.npz", "--writer", "0.6.2", replay=True
    )
    assert ended.code == 0, ended.err
    assert "its own writer crashes when it replays it: stage run: died by signal 11 (SIGSEGV)" in ended.out
    the_golden(tmp_path).verify()


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_an_added_golden_is_kept_in_a_matrix(add, jaxexport, tmp_path):
    assert add(MLP / "artifact.jaxexport", MLP / "inputs.npz", MLP / "outputs.npz").code == 0
    jaxexport("matrix", "--readers", "0.9.2", "--as-of", "2026-03-20", "--quiet", code=0)
    (result,) = read_results(tmp_path / ".jaxexport")
    assert (result.golden, result.verdict, result.judgement) == ("models.old/0.9.2-cpu", "pass", "kept")


def test_outputs_of_only_nan_need_a_reason(add, tmp_path):
    nan = [np.full((3, 3), np.nan, np.float32)]
    ended = add(SYMBOLIC, zeros((3, 4)), nan, code=2)
    assert "o.npz: expected outputs that show what the function computes, but all values of its outputs" in ended.err
    assert not (tmp_path / "golden").exists()
    assert add(SYMBOLIC, zeros((3, 4)), nan, "--nothing-to-compare", " ").code == 2
    assert add(SYMBOLIC, zeros((3, 4)), nan, "--nothing-to-compare", "what it gave then").code == 0
    assert the_golden(tmp_path).manifest.options.nothing_to_compare == "what it gave then"
    assert add(SYMBOLIC, zeros((0, 4)), zeros((0, 0))).code == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--without-outputs", "no TPU here"], 0, ""),
        ([], 2, "its outputs, found none. The artifact was exported for"),
        (["--without-outputs", "why", "--outputs", KERNEL / "inputs.npz"], 2, "expected either --outputs NPZ, or"),
    ],
)
def test_outputs_can_only_be_left_out_with_a_reason(words, code, message, jaxexport, tmp_path):
    files = ["--artifact", KERNEL / "artifact.jaxexport", "--inputs", KERNEL / "inputs.npz"]
    ended = jaxexport("goldens", "add", *files, "--case", "kernel", "--no-replay", *words, code=code)
    assert message in ended.err
    if not code:
        assert the_golden(tmp_path).manifest.options.without_outputs == "no TPU here"
        assert "  no outputs" in jaxexport("goldens", "list").out
        assert "compared      nothing: it has no outputs" in jaxexport("inspect", "kernel").out


def test_outputs_of_an_artifact_for_cpu_cannot_be_left_out(add):
    ended = add(MLP / "artifact.jaxexport", MLP / "inputs.npz", None, "--without-outputs", "why", code=2)
    assert "expected an artifact for other platforms than cpu, found one for cpu" in ended.err


def test_chaotic_outputs_are_added_only_with_a_rule_for_numbers(add, tmp_path, monkeypatch):
    record = NoiseRecord("0.9.2", "AVX2", 6, ())
    measured = MeasuredNoise(record, b"noise", proves_nothing=True)
    adoption = "export_core.features.adopt.adoption"
    monkeypatch.setattr(f"{adoption}.measure_goldens", lambda goldens, *_: [(golden, measured) for golden in goldens])
    monkeypatch.setattr(
        f"{adoption}.replays_by_writer", lambda goldens, *_: {golden.id: FirstReplay() for golden in goldens}
    )
    words = (MLP / "artifact.jaxexport", MLP / "inputs.npz", MLP / "outputs.npz")
    assert "would prove nothing" in add(*words, replay=True).err
    (tmp_path / "export_compat.yaml").write_text("numbers: [{cases: [models.*], compare: shape, reason: chaotic}]")
    assert add(*words, replay=True).code == 0
    assert the_golden(tmp_path).manifest.noise == record
