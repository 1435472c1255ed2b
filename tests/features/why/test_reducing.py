"""`jaxexport reduce` in the installed release, of an artifact with a custom call that nothing registers."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from commands import assert_bad_input, finished
from making import manifest, with_causes, write_golden

from export_core.artifact import read_bytes
from export_core.features.why import choice
from export_core.features.why.choice import WhyError
from export_core.features.why.reduce import reduction
from export_core.features.why.reduce.failing_alike import Divergence, divergence
from export_core.features.why.reduce.reduction import (
    STEPS,
    NotReproducedError,
    Reduced,
    ReductionEnvironments,
    ReductionFolder,
    reduce_cell,
)
from export_core.goldens import Check, Golden, GoldenStore, Leaf, Options, Writer
from export_core.goldens.arrays import from_npz, leaf_of, to_npz
from export_core.goldens.manifest_file import load_manifest
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS
from export_core.judge import judge
from export_core.matrix import Cell, CellLimits, Verdict
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import new_result
from export_core.policy import Policy
from export_core.readers.environment import this_interpreter
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from export_core.run.plan_record import hash_of

TARGET = "nobody_has_registered_this"


def uses_an_unknown_call(x, n):
    y = jax.jit(lambda x: jnp.sin(x) * 2)(x)
    call = jax.ffi.ffi_call(TARGET, jax.ShapeDtypeStruct((2,), np.float32))
    y = jax.lax.cond(n > 0, lambda y: call(y) + 1, lambda y: y - 1, y)
    return {"a": jnp.cos(y) + x, "b": x - 1}


def loses_digits(x):
    return (x * 2 + 1e8) - 1e8


@pytest.fixture
def golden_of(tmp_path, here) -> Callable[..., Golden]:
    def golden_of(
        function: Callable[..., Any], *args: Any, outputs: Sequence[Leaf] | None = None, vjp_inputs: Sequence[Any] = ()
    ) -> Golden:
        unchecked = [jax.export.DisabledSafetyCheck.custom_call(TARGET)]
        exported = jax.export.export(jax.jit(function), disabled_checks=unchecked)(*args)
        inputs = [leaf_of(array) for array in args]
        content = {INPUTS: to_npz(inputs), OUTPUTS: to_npz(outputs or inputs)}
        content[ARTIFACT] = bytes(exported.serialize(vjp_order=1 if vjp_inputs else 0))
        checks: tuple[Check, ...] = ()
        if vjp_inputs:
            content["vjp1.inputs.npz"] = to_npz(map(leaf_of, vjp_inputs))
            content["vjp1.outputs.npz"] = to_npz(inputs)
            content["some_nodes.register.py"] = b"nodes = 1\n"
            checks = (Check("vjp1", vjp=1, inputs="vjp1.inputs.npz", outputs="vjp1.outputs.npz"),)
        made = manifest(
            writer=Writer(jax=here.jax, jaxlib=here.jaxlib, built=here.built, python="3.12.0", platform="cpu"),
            options=Options(
                platforms=("cpu",),
                allow={TARGET: "it is what fails"},
                vjp_order=len(checks),
                register=("some_nodes",) if checks else (),
            ),
            checks=checks,
        )
        return write_golden(GoldenStore(tmp_path / "golden"), made, content)

    return golden_of


@pytest.fixture
def reduced(here, warm_workers, forked_workers, tmp_path) -> Callable[..., Reduced]:
    def reduced(golden: Golden, *, resume: bool = False, **options: Any) -> Reduced:
        environment = this_interpreter(here)
        folder = ReductionFolder(tmp_path / "reduced")
        return reduce_cell(
            Cell(golden, here, "cpu"),
            ReductionEnvironments(environment, None, environment),
            ReplayOptions(load_calendar(), limits=CellLimits(jobs=2, timeout=60.0)),
            folder,
            folder.earlier(resume=resume),
            start=warm_workers.start,
            **options,
        )

    return reduced


def test_a_resumed_reduction_leaves_only_the_failing_call(golden_of, reduced, tmp_path):
    golden = golden_of(uses_an_unknown_call, np.arange(2, dtype=np.float32), np.int32(1))
    seen: list[str] = []

    def interrupt(text: str) -> None:
        seen.append(text)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reduced(golden, notify=interrupt)
    _, steps, _ = ReductionFolder(tmp_path / "reduced").read()
    assert [step.done for step in steps][:2] == ["started", "inline"]
    assert 1 < steps[-1].operations <= steps[0].operations + 1

    with pytest.raises(WhyError, match="continue the reduction in this one with --resume"):
        reduced(golden)
    done = reduced(golden, resume=True)
    assert done.program.names == (f"stablehlo.custom_call @{TARGET}",)
    assert done.steps[: len(steps)] == steps
    assert done.reduction.failure.startswith("error in stage")

    folder = tmp_path / "reduced"
    (argument,) = from_npz(folder / INPUTS)
    assert str(argument) == "float32[1]"
    assert TARGET.encode() in (folder / "module.mlir").read_bytes()
    assert (folder / STEPS).read_bytes().count(b"\n") == 1 + len(done.steps)
    assert not (folder / "golden.yaml").exists()  # the right outputs are not known
    artifact = (folder / ARTIFACT).read_bytes()
    assert [call.target for call in read_bytes(artifact).custom_calls] == [TARGET]
    with pytest.raises(Exception, match=TARGET):
        jax.jit(jax.export.deserialize(bytearray(artifact)).call)(argument.numpy())


@jax.custom_vjp
def fails_backwards(x):
    return x * 2


fails_backwards.defvjp(
    lambda x: (x * 2, None),
    lambda _, cotangent: (jax.ffi.ffi_call(TARGET, jax.ShapeDtypeStruct((2,), np.float32))(cotangent),),
)


def test_a_failing_derivative_is_reduced_without_its_function(golden_of, reduced, tmp_path):
    """Arguments of a derivative are flat, so that no module that registers pytree nodes is needed."""
    x = np.float32([3, 4])
    golden = golden_of(fails_backwards, x, outputs=[leaf_of(x * 2)], vjp_inputs=[x, x])
    done = reduced(golden)
    assert done.reduction.call == "vjp1"
    assert done.program.names == (f"stablehlo.custom_call @{TARGET}",)
    assert done.program.envelope.vjp is None
    assert [leaf.data.tolist() for leaf in done.program.inputs] == [[1.0]]
    assert not list((tmp_path / "reduced").glob("*.register.py"))


def test_a_cell_that_passes_here_is_not_reduced(golden_of, reduced, tmp_path):
    x = np.arange(4, dtype=np.float32)
    golden = golden_of(lambda x: x + 1, x, outputs=[leaf_of(x + 1)])
    with pytest.raises(NotReproducedError, match="works here: pass") as error:
        reduced(golden)
    assert error.value.exit_code == 3
    assert not (tmp_path / "reduced").exists()


def test_reducing_wrong_numbers_needs_a_good_release(golden_of, reduced):
    x = np.arange(4, dtype=np.float32)
    with pytest.raises(WhyError, match="with --good, name a release that gives other numbers"):
        reduced(golden_of(lambda x: x + 1, x, outputs=[leaf_of(x + 2)]))


@pytest.mark.matrix  # two workers of their own
@pytest.mark.usefixtures("forked_workers")
def test_wrong_numbers_are_traced_to_their_first_operation(golden_of, here, tmp_path):
    """A reader that simplifies x + 1e8 - 1e8 to x keeps the digits that rounding would lose.

    Releases up to 0.11 do so, newer ones with XLA's fast math.
    """
    x = np.linspace(1, 2, 4, dtype=np.float32)
    golden = golden_of(loses_digits, x, outputs=[leaf_of(x * 0)])
    reader = this_interpreter(here)
    wrong, right = (
        dataclasses.replace(reader, variables={**reader.variables, "XLA_FLAGS": flag})
        for flag in ("--xla_cpu_enable_fast_math=true", "--xla_disable_hlo_passes=algsimp")
    )
    done = reduce_cell(
        Cell(golden, here, "cpu"),
        ReductionEnvironments(wrong, right, right),
        ReplayOptions(load_calendar(), limits=CellLimits(jobs=2, timeout=60.0)),
        ReductionFolder(tmp_path / "reduced"),
    )
    assert done.reduction.failure.startswith("numerics in stage compare")
    assert sorted({*done.program.names} - {"stablehlo.constant", "stablehlo.broadcast_in_dim"}) == [
        "stablehlo.add",
        "stablehlo.subtract",
    ]
    assert done.reduction.first_diverging is not None
    assert done.reduction.first_diverging.operation.startswith("stablehlo.subtract : (tensor<4xf32>,")
    folder = tmp_path / "reduced"
    loaded = Golden(load_manifest(folder / "golden.yaml"), folder)
    loaded.verify()
    assert len(loaded.outputs()) == len(done.program.envelope.out_avals)


@pytest.mark.parametrize("lines", [b"", b"{}\n", b'{"cell": 1}\n', b"\xff\xfe\n", b"[" * 2_000 + b"\n"])
def test_resume_refuses_a_folder_without_a_reduction(lines, golden_of, reduced, tmp_path):
    folder = tmp_path / "reduced"
    folder.mkdir()
    (folder / STEPS).write_bytes(lines)
    with pytest.raises(WhyError, match="expected the files of `jaxexport reduce`"):
        reduced(golden_of(lambda x: x, np.ones(2, np.float32)), resume=True)
    assert (folder / STEPS).read_bytes() == lines


def test_resuming_a_reduction_refuses_other_files_and_goldens(golden_of, reduced, tmp_path):
    """A folder may come from another machine: its program is audited, and other files in it are not lost."""
    folder = tmp_path / "reduced"
    golden = golden_of(uses_an_unknown_call, np.arange(2, dtype=np.float32), np.int32(1))
    with pytest.raises(KeyboardInterrupt):
        reduced(golden, notify=interrupt)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(WhyError, match=r"found notes\.txt too, which would be deleted"):
        reduced(golden, resume=True)
    assert (folder / "notes.txt").read_text() == "mine"
    (folder / "notes.txt").unlink()

    other = golden_of(lambda x: jax.ffi.ffi_call(TARGET, x)(x), np.ones(2, np.float32))
    with pytest.raises(WhyError, match="found one of another golden of this name"):
        reduced(other, resume=True)

    call = jax.jit(jax.ffi.ffi_call("another_call", jax.ShapeDtypeStruct((2,), np.float32)))
    unchecked = [jax.export.DisabledSafetyCheck.custom_call("another_call")]
    x = np.ones(2, np.float32)
    (folder / ARTIFACT).write_bytes(jax.export.export(call, disabled_checks=unchecked)(x).serialize())
    (folder / INPUTS).write_bytes(to_npz([leaf_of(x)]))
    with pytest.raises(WhyError, match=r"found one that does not: .*another_call"):
        reduced(golden, resume=True)


def interrupt(_: str) -> None:
    raise KeyboardInterrupt


def test_reduce_works_from_another_machines_results(
    golden_of, here, warm_workers, forked_workers, jaxexport, monkeypatch
):
    """Reduce the only failing cell of a folder of results, with nothing else but its golden."""
    golden = golden_of(lambda x: jax.ffi.ffi_call(TARGET, x)(jnp.sin(x)), np.ones(2, np.float32))
    elsewhere = golden.folder.parents[2]
    monkeypatch.chdir(elsewhere)
    crash = new_result(Cell(golden, here, "cpu"), Stage.COMPILE, Verdict.ERROR, "no such call")
    plan = {"goldens": {golden.id: hash_of(golden.manifest)}}
    finished(
        elsewhere / "ci", *with_causes([judge(crash, golden, Policy(), "a command of another machine")]), plan=plan
    )

    monkeypatch.setattr(choice.ReaderEnvironments, "build", lambda _, placement: this_interpreter(placement.reader))
    monkeypatch.setattr(reduction, "reduce_cell", functools.partial(reduce_cell, start=warm_workers.start))
    ended = jaxexport("reduce", "--results", "ci", "-o", "out", "--quiet", code=0)
    cell = f"{golden.id} in {here.jaxlib}-jax{here.jax} on cpu"
    first, _, left, written, report = ended.out.splitlines()
    assert first.startswith(f"{cell}: error in stage ")
    assert left == f"  stablehlo.custom_call @{TARGET}"
    assert written == "written: out"
    assert report == f"to report it: jaxexport explain '{cell}' --results ci --reduced out --bundle DIR"
    explained = jaxexport("explain", "--results", "ci", "--reduced", "out")
    assert "  reduced to 1 operation of " in explained.out
    assert "a command of another machine" not in explained.out


@pytest.fixture
def refused(jaxexport, tmp_path, monkeypatch) -> Callable[..., None]:
    """The function that asserts that `jaxexport reduce` with these options is bad input and builds no environment."""
    monkeypatch.setattr(choice, "ReaderEnvironments", None)
    write_golden(GoldenStore(tmp_path / "golden"), manifest("tests.test_a.test_f", "0.9.2"))

    def refused(words: str, *message: str) -> None:
        cell = ("--case", "tests.test_a.test_f", "--reader", "0.10.2")
        assert_bad_input(jaxexport("reduce", *cell, *words.split()), *message)

    return refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", ("Missing option", "--output")),
        ("-o .", (".: expected a folder that can be replaced, found the current folder.",)),
        ("-o link", ("link: expected a folder that can be replaced, found the current folder.",)),
        ("-o out --good 0.10.2", ("--good 0.10.2: expected a release in which the cell works, found this one",)),
        ("-o out --good 0.10.3", ("0.10.3",)),
        ("-o mine", ("mine: expected no folder or an empty one, found files in it.", "--resume")),
    ],
)
def test_wrong_options_of_reduce_are_bad_input(words, message, refused, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    notes = tmp_path / "mine" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    refused(words, *message)
    assert notes.read_text() == "mine"


def test_reduce_refuses_an_output_that_is_a_symbolic_link(refused, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to("mine")
    refused("-o link", "link: expected no folder or an empty one, found a symbolic link.")
    assert list((tmp_path / "mine").iterdir()) == []


def leaves(*arrays: Any) -> list[Leaf]:
    return [leaf_of(np.asarray(array)) for array in arrays]


def test_a_difference_is_measured_in_ulps_of_the_largest_element():
    one = np.array([1.0, 1e-6], np.float32)
    other = np.array([1.0 + 2**-22, 1e-6], np.float32)
    assert divergence(leaves(one), leaves(other)).units == 2
    assert divergence(leaves(one), leaves(np.array([np.nan, 1e-6], np.float32))).units == np.inf
    assert divergence(leaves([1, 2]), leaves([1, 3])) == Divergence(unequal=True)
    nothing = np.zeros((0,), np.float32)
    assert divergence(leaves(nothing), leaves(nothing)) == Divergence()


def test_a_reduction_keeps_at_least_half_of_the_difference():
    assert Divergence(4.0).is_enough_for(Divergence(8.0))
    assert not Divergence(3.0).is_enough_for(Divergence(8.0))
    assert not Divergence().is_enough_for(Divergence(0.1))
    assert not Divergence(unequal=True).is_enough_for(Divergence(8.0))
    assert Divergence(unequal=True).is_enough_for(Divergence(unequal=True))
