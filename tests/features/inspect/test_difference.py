"""`jaxexport diff`: what changed from one artifact to another."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from artifacts import DATA, bare, changed, unlisted
from making import manifest, write_golden

from export_core.artifact import read
from export_core.features.inspect.artifact_facts import ConstantFacts, Inspection, describe
from export_core.features.inspect.difference import changes_between
from export_core.goldens import GoldenStore
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import shipped_entries

GOLDEN = Path(__file__).parents[3] / "golden"
MLP = DATA / "0.12.0.1" / "mlp.jaxexport"


SAME = "program: the same. Not compared: locations, and the names of private functions, arguments and results."


def test_a_file_and_its_copy_are_the_same(jaxexport, tmp_path):
    (tmp_path / "copy").write_bytes(MLP.read_bytes())
    ended = jaxexport("diff", MLP, tmp_path / "copy", code=0)
    assert "are the same, byte for byte" in ended.out


def test_artifacts_of_two_writers_differ_by_writer_and_format(jaxexport):
    ended = jaxexport("diff", DATA / "0.9.2" / "mlp.jaxexport", MLP, code=1)
    lines = ended.out.splitlines()
    assert "written by: jaxlib 0.9.2 → jax 0.12.0.1, one of jaxlib 0.11.2, 0.12.0, 0.12.0.1" in lines
    assert "written as: StableHLO_v1.13.7 → StableHLO_v1.18.0" in lines
    assert "envelope format: 5, 6, 7, 8 or 9 → 12" in lines
    assert "operations of derivative 1: 15 → 16" in lines
    assert "operation vhlo.negate_v1 of derivative 2: × 1 → none" in lines
    assert not any(line.startswith(("argument", "result", "platforms")) for line in lines)


def test_a_changed_signature_is_reported_by_argument(jaxexport):
    lines = jaxexport("diff", DATA / "0.12.0.1" / "symbolic.jaxexport", MLP).out.splitlines()
    assert "argument 0 (args[0]): float32[b,4] → float32[4,8]" in lines
    assert "argument 1 (args[1]): none → float32[8,3]" in lines
    assert "result 0: float32[b,b] → float32[]" in lines
    assert "derivatives: to order 0 → to order 2" in lines


def test_changed_custom_calls_and_disabled_checks_are_reported(jaxexport, tmp_path):
    out = jaxexport("diff", DATA / "0.12.0.1" / "cholesky.jaxexport", unlisted(tmp_path, switched_off=True)).out
    assert "custom call lapack_spotrf_ffi: × 2: LAPACK routine; guaranteed stable → none" in out
    assert "custom call my_kernel_of_ours:\n  - none\n  + × 2: custom call; UNLISTED: is not" in out
    assert "checks switched off: none → custom_call(my_kernel_of_ours)" in out


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"platforms": ("cpu", "tpu")}, "platforms: cpu → cpu, tpu"),
        ({"calling_convention_version": 9}, "calling convention: 10 → 9"),
        ({"fun_name": "other"}, "function: <lambda> → other"),
        ({"module_kept_var_idx": (0,)}, "arguments that are used: 0, 1 → 0"),
        ({"vjp": None}, "derivatives: to order 2 → to order 0"),
        ({"ordered_effects": ("io",)}, "ordered effects: none → io"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_diff_prints_one_line_for_each_changed_field(fields, line, jaxexport, tmp_path):
    ended = jaxexport("diff", MLP, changed(tmp_path, "0.12.0.1/mlp", **fields), code=1)
    assert ended.out.splitlines()[2:] == [line]


def test_different_bytes_of_equal_content_exit_1(jaxexport, tmp_path):
    ended = jaxexport("diff", MLP, changed(tmp_path, "0.12.0.1/mlp"))  # written back by us: laid out otherwise
    assert ended.code == 1
    assert ended.out.splitlines()[2:] == [SAME]


def test_constants_are_compared_by_their_content():
    def with_constant(digest: str) -> Inspection:
        facts = describe(read(MLP), Terms(shipped_entries()))
        constant = ConstantFacts("tensor<100xf32>", 400, 9, "main", digest)
        module, *others = facts.modules
        return facts._replace(modules=(module._replace(constants=(constant,)), *others))

    assert changes_between(with_constant("aa" * 32), with_constant("bb" * 32)) == [
        ("constant tensor<100xf32> aaaaaaaaaaaa", "× 1", "none"),
        ("constant tensor<100xf32> bbbbbbbbbbbb", "none", "× 1"),
    ]


def test_a_bare_module_and_an_artifact_can_be_compared(jaxexport, tmp_path):
    ended = jaxexport("diff", bare(tmp_path), DATA / "0.12.0.1" / "platforms.jaxexport", code=1)
    assert "kind: StableHLO portable artifact → serialized jax.export.Exported" in ended.out
    assert "operation" not in ended.out


@pytest.mark.parametrize("words", [("nothing", MLP), (MLP, "nothing")], ids=["the first", "the second"])
def test_a_file_that_does_not_exist_exits_2(words, jaxexport):
    ended = jaxexport("diff", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("jaxexport: error: nothing: expected a file to read")


def exported(folder, function, name, *args, **kwargs):
    import jax

    path, args = folder / name, args or (np.ones((4, 4), np.float32),)
    path.write_bytes(jax.export.export(jax.jit(function))(*args, **kwargs).serialize())
    return path


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (lambda x: x.sum(0), lambda x: x.sum(1), "reduce: dimensions: dense<0> : tensor<1xi64> → dense<1>"),
        (lambda x: x + 2.0, lambda x: x + 3.0, "constant: value: dense<2.0> : tensor<f32> → dense<3.0>"),
        (lambda x: x - x @ x, lambda x: x @ x - x, "subtract: its operands are in another order"),
        (lambda x: x - (x + x), lambda x: (y := x + x) - y, "subtract: its operands come from other operations or"),
    ],
    ids=["attribute", "constant", "order", "operands"],
)
def test_changes_inside_operations_are_reported(jaxexport, tmp_path, before, after, line):
    out = jaxexport("diff", exported(tmp_path, before, "a"), exported(tmp_path, after, "b")).out
    assert f"module: @main: {line}" in out, out


def test_source_locations_are_not_compared(jaxexport, tmp_path):
    before = exported(tmp_path, lambda x: x + 1, "a")
    after = exported(tmp_path, lambda x: x + 1, "b")
    assert before.read_bytes() != after.read_bytes()
    assert SAME in jaxexport("diff", before, after).out.splitlines()


ONES = np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("function", "before", "after", "lines"),
    [
        (
            lambda a, b: a + b,
            ((ONES, ONES), {}),
            ((ONES,), {"b": ONES}),
            ["path of argument 1: args[1] → kwargs['b']"],
        ),
        (
            lambda tree: sum(tree.values()),
            (({"b": ONES, "w": ONES},), {}),
            (({"bias": ONES, "weight": ONES},), {}),
            [
                "path of argument 0: args[0]['b'] → args[0]['bias']",
                "path of argument 1: args[0]['w'] → args[0]['weight']",
            ],
        ),
    ],
    ids=["by name", "keys"],
)
def test_diff_prints_one_line_for_each_leaf_with_a_changed_path(jaxexport, tmp_path, function, before, after, lines):
    files = [
        exported(tmp_path, function, name, *args, **kwargs) for name, (args, kwargs) in (("a", before), ("b", after))
    ]
    assert jaxexport("diff", *files).out.splitlines()[2:] == lines


def test_diff_finds_the_same_program_by_two_writers_equal(jaxexport):
    case = GOLDEN / "tests.compat.test_calls.test_donated_state"
    lines = jaxexport("diff", case / "0.9.2-cpu" / ARTIFACT, case / "0.12.0.1-cpu" / ARTIFACT, code=1).out.splitlines()
    names = [line.partition(":")[0] for line in lines[2:]]
    assert names[:4] == ["written by", "written as", "envelope format", "program"]
    assert lines[5] == SAME


def test_diff_prints_different_operations_before_different_writers(jaxexport):
    lines = jaxexport("diff", DATA / "0.9.2" / "cholesky.jaxexport", MLP).out.splitlines()
    names = [line.partition(":")[0] for line in lines]
    last = max(place for place, name in enumerate(names) if name.startswith("operation vhlo."))
    assert last < names.index("written by")


@pytest.fixture
def goldens(tmp_path, monkeypatch):
    """Goldens of one case by two writers, in a project of their own."""
    monkeypatch.chdir(tmp_path)
    case = GOLDEN / "tests.compat.test_programs.test_random"
    for writer in ("0.6.2-cpu", "0.12.0.1-cpu"):
        shutil.copytree(case / writer, tmp_path / "golden" / case.name / writer)
    return case.name


def test_diff_accepts_the_names_of_goldens(jaxexport, goldens):
    out = jaxexport("diff", f"{goldens}/0.6.2-cpu", f"{goldens}/0.12.0.1-cpu", code=1).out
    assert out.startswith(f"- golden/{goldens}/0.6.2-cpu/artifact.jaxexport, ")
    assert "calling convention: 9 → 10" in out


def test_readers_that_load_only_one_of_two_artifacts_are_reported(jaxexport, goldens):
    names = f"{goldens}/0.6.2-cpu", f"{goldens}/0.12.0.1-cpu"
    lines = jaxexport("diff", *names, "--readers", "0.6.2", code=1).out.splitlines()
    place = lines.index("in 0.6.2:")
    assert lines[place + 1].startswith("  - jaxlib 0.6.2 loads it")
    assert lines[place + 2].startswith("  + jaxlib 0.6.2 cannot load it")


def written(folder, factor, scale=1.0):
    """Write a golden of `x * factor` for inputs of a scale, and return its folder."""
    import jax

    x = scale * np.arange(4, dtype=np.float32)
    exported = jax.export.export(jax.jit(lambda x: x * factor))(x)
    arrays = (to_npz([leaf_of(array)]) for array in (x, np.asarray(exported.call(x))))
    content = dict(zip((ARTIFACT, INPUTS, OUTPUTS), (bytes(exported.serialize()), *arrays), strict=True))
    return write_golden(GoldenStore(folder), manifest(), content).folder


@pytest.mark.parametrize(
    ("factor", "scale", "lines"),
    [
        (0.8, 1.0, ["inputs: the same", "outputs: differ: output 0 float32[4]: 3 of 4 elements differ (max abs error"]),
        (0.7, 2.0, ["inputs: different in args[0]; outputs are not compared"]),
        (0.7, 1.0, ["inputs: the same", "outputs: the same, bit for bit"]),
    ],
)
@pytest.mark.parametrize("by", ["folder", "file"])
def test_inputs_and_outputs_of_goldens_are_compared(jaxexport, tmp_path, factor, scale, lines, by):
    """A changed constant is one line about the module; the outputs show how far it moves the numbers."""
    old, new = written(tmp_path / "old", 0.7), written(tmp_path / "new", factor, scale)
    if by == "file":
        old, new = (folder / "artifact.jaxexport" for folder in (old, new))
    ended = jaxexport("diff", old, new)
    found = [line for line in ended.out.splitlines() if line.startswith(("inputs", "outputs"))]
    assert len(found) == len(lines)
    assert all(one.startswith(line) for one, line in zip(found, lines, strict=True)), found
    assert ended.code == 1


def test_diff_says_that_changed_outputs_are_within_tolerance(jaxexport, tmp_path):
    old, new = written(tmp_path / "old", 0.7), written(tmp_path / "new", 0.7000001)
    out = jaxexport("diff", old, new, code=1).out
    assert "outputs: within what is allowed (max abs error" in out
    assert "; allowed " in out


@pytest.mark.parametrize("fill", [None, 9.0])
def test_goldens_of_one_artifact_with_different_outputs_exit_1(jaxexport, tmp_path, fill):
    old = written(tmp_path / "old", 0.7)
    content = {name: (old / name).read_bytes() for name in (ARTIFACT, INPUTS, OUTPUTS)}
    if fill:
        content[OUTPUTS] = to_npz([leaf_of(np.full(4, fill, np.float32))])
    new = write_golden(GoldenStore(tmp_path / "new"), manifest(), content).folder
    ended = jaxexport("diff", old / ARTIFACT, new / ARTIFACT, code=int(bool(fill)))
    assert "are the same, byte for byte\ninputs: the same\noutputs: " in ended.out


def test_a_damaged_golden_is_not_compared(jaxexport, tmp_path):
    old, new = written(tmp_path / "old", 0.7), written(tmp_path / "new", 0.8)
    (new / "outputs.npz").write_bytes(b"")
    assert "outputs.npz: damaged" in jaxexport("diff", old, new, code=2).err


def test_two_folders_are_compared_file_by_file(jaxexport, tmp_path):
    for folder, files in {"old": ("same", "other", "gone"), "new": ("same", "other", "added")}.items():
        for name in files:
            source = (
                MLP if name != "other" else DATA / ("0.9.2" if folder == "old" else "0.12.0.1") / "cholesky.jaxexport"
            )
            (tmp_path / folder / "deep").mkdir(parents=True, exist_ok=True)
            shutil.copy(source, tmp_path / folder / "deep" / f"{name}.jaxexport")
    (tmp_path / "new" / "readme").write_text("words")
    lines = jaxexport("diff", tmp_path / "old", tmp_path / "new", code=1).out.splitlines()
    assert f"only in the first folder: {tmp_path}/old/deep/gone.jaxexport" in lines
    assert f"only in the second folder: {tmp_path}/new/deep/added.jaxexport" in lines
    assert [line for line in lines if line.startswith("- ")] == [f"- {tmp_path}/old/deep/other.jaxexport, 4.5 kB"]
    assert lines[-1] == "1 the same, 3 different, 0 not read"


def test_a_damaged_file_does_not_stop_the_comparison(jaxexport, tmp_path):
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        shutil.copy(MLP, tmp_path / folder / "a.jaxexport")
    (tmp_path / "old" / "b.jaxexport").write_bytes(MLP.read_bytes())
    (tmp_path / "new" / "b.jaxexport").write_bytes(b"no artifact")
    ended = jaxexport("diff", tmp_path / "old", tmp_path / "new", code=2)
    assert ended.err.startswith(f"jaxexport: error: {tmp_path}/new/b.jaxexport: expected a serialized")
    assert ended.out == "1 the same, 0 different, 1 not read\n"
