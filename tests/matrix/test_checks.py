"""The comparison of all calls of a cell, and the request that its worker gets."""

from typing import Any

import msgspec
import numpy as np
import pytest
from making import files, golden, manifest, release, write_golden

from export_core.artifact import read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import Tree
from export_core.goldens import Check, Comparison, FactorGroup, Golden, GoldenStore, Options
from export_core.goldens.arrays import leaf_of, noise_to_npz, to_npz
from export_core.goldens.manifest import Flattened, NoiseRecord
from export_core.goldens.store import ARTIFACT, INPUTS, NOISE, OUTPUTS
from export_core.matrix import Cell
from export_core.matrix.outcome import CallResults, check_calls
from export_core.matrix.replay_options import ReplayOptions
from export_core.numbers import compare
from export_core.numbers.compare import Difference
from export_core.numbers.comparison_of_call import comparison_of
from export_core.numbers.diagnosis import Diagnosis
from export_core.numbers.noise import FACTOR, FACTOR_OF_INPUTS, call_noise
from export_core.policy.run_options import CellLimits, of_cell
from export_core.readers.cell import WRONG_PLATFORM, request_of
from export_core.readers.placement import Mode, Target
from export_core.readers.worker.protocol import Reply, Stage
from export_core.releases import load_calendar

ONES = np.ones(2, np.float32)
OPTIONS = ReplayOptions(load_calendar())


@pytest.fixture
def check(tmp_path):
    """A function that compares a reader's numbers with a golden of three calls, whose outputs are ones."""
    calls = [Check(name, inputs=INPUTS, outputs=f"{name}.npz") for name in ("second", "third")]
    calls.append(Check("last", inputs=INPUTS, refused="no"))
    outputs = [leaf_of(ONES)]
    content = {name: to_npz(outputs) for name in (OUTPUTS, "second.npz", "third.npz")}
    content[NOISE] = noise_to_npz([(outputs, (np.full(2, 2.0**-10),))] * 3)
    made = manifest(checks=tuple(calls), noise=NoiseRecord("0.12.0.1", "AVX2", 6, ()))
    golden = write_golden(GoldenStore(tmp_path / "golden"), made, files() | content)

    def run(*arrays: object, refusal: str = "no", mode: Mode = Mode.RUN) -> CallResults:
        for number in range(3):
            array = arrays[number] if number < len(arrays) else ONES
            (tmp_path / f"{number}.npz").write_bytes(to_npz([leaf_of(np.asarray(array, np.float32))]))
        reply = Reply(Stage.RUN, "ok", refusals={"last": refusal})
        return check_calls(Cell(golden, release("0.12.0.1"), "cpu", mode), reply, tmp_path, OPTIONS)

    return run


def test_outputs_with_the_writers_bits_set_the_field_as_written(check):
    results = check(ONES, ONES)
    assert (results.problem, results.as_written) == ("", True)
    assert results.outputs
    assert results.difference.tolerance == "8 times the noise of each"


def test_noise_of_moved_inputs_alone_is_multiplied_by_more(tmp_path):
    record = NoiseRecord("0.12.0.1", "AVX2", 6, (), {"vjp1/inside": "timed out", "vjp2/inside 3": "no"}, inside=6)
    outputs = [leaf_of(ONES)]
    names = ("vjp1", "vjp2")
    calls = tuple(Check(name, vjp=1, inputs=INPUTS, outputs=f"{name}.npz") for name in names)
    content = {name: to_npz(outputs) for name in (OUTPUTS, "vjp1.npz", "vjp2.npz")}
    content[NOISE] = noise_to_npz([(outputs, (np.zeros(2),))] * 3)
    golden = write_golden(GoldenStore(tmp_path), manifest(checks=calls, noise=record), files() | content)
    factors = {file: noise.factor for file, noise in call_noise(golden).items()}
    assert factors == {OUTPUTS: FACTOR, "vjp1.npz": FACTOR_OF_INPUTS, "vjp2.npz": FACTOR}


def test_different_bits_in_one_call_clear_the_field_as_written(check):
    assert not check(ONES * 2, ONES).as_written
    assert not check(ONES, ONES * 2).as_written
    assert check(ONES * 2, ONES, ONES * 3).outputs != check(ONES * 2, ONES, ONES).outputs, "calls after one count too"


def test_only_the_first_call_that_differs_is_reported(check):
    assert check(ONES, ONES * 2, ONES * 3).problem.startswith("second: output 0 float32[2]: 2 of 2 elements differ")
    assert check(ONES, ONES * 2, refusal="yes").problem.startswith("second: ")
    one, two = (check(ONES, *arrays).difference.grid for arrays in ([ONES * 2], [ONES * 2, ONES * 3]))
    assert one is not None
    assert one == two, "the errors of the reported call are drawn"
    assert check(ONES, ONES, refusal="yes").problem == "last: expected a refusal with 'no' in its message, found yes"


@pytest.fixture
def check_tree(tmp_path):
    """A function that compares numbers with a golden whose function returns ``[{"b1": ...}]``, and its derivative."""
    arrays = to_npz([leaf_of(ONES)])
    calls = (Check("vjp1", vjp=1, inputs=INPUTS, outputs="vjp1.npz"),)
    envelope = read_bytes(files()[ARTIFACT]).envelope
    assert envelope is not None
    tree = Tree("list", (Tree("dict", (Tree("leaf"),), ("b1",)),))
    content = files() | {ARTIFACT: encode(envelope._replace(out_tree=tree)), "vjp1.npz": arrays}
    made = manifest(checks=calls, out_shardings=("x",))
    golden = write_golden(GoldenStore(tmp_path / "golden"), made, content)

    def run(*arrays: object, shardings: tuple[str, ...] = ("x",), **changes: Any) -> str:
        for number, array in enumerate(arrays):
            (tmp_path / f"{number}.npz").write_bytes(to_npz([leaf_of(np.asarray(array, np.float32))]))
        own = Golden(msgspec.structs.replace(golden.manifest, **changes), golden.folder)
        reply = Reply(Stage.RUN, "ok", shardings=shardings)
        return check_calls(Cell(own, release("0.12.0.1"), "cpu"), reply, tmp_path, OPTIONS).problem

    return run


def test_an_output_that_differs_is_named_by_its_path(check_tree):
    assert check_tree(ONES, ONES) == ""
    assert check_tree(ONES * 2, ONES).startswith("output 0 (result[0]['b1']) float32[2]: 2 of 2 elements differ")
    assert check_tree(ONES, ONES * 2).startswith("vjp1: output 0 (derivative by args[0]) float32[2]: 2 of 2 elements")
    assert check_tree(ONES[:1], ONES) == "output 0 (result[0]['b1']): expected float32[2], got float32[1]"
    sharded = "output 0 (result[0]['b1']) is sharded differently: expected x, got y"
    assert check_tree(ONES, ONES, shardings=("y",)) == sharded


def test_a_flattened_output_is_named_by_its_original_path(check_tree):
    own = Flattened(("args[0].x", "args[0].y"), ("result.mean",), ("m.Stats",))
    assert check_tree(ONES * 2, ONES, flattened=own).startswith("output 0 (result.mean) float32[2]: ")


def test_the_error_in_units_of_noise_is_the_largest_of_all_calls(check):
    small, large = ONES + np.float32(2.0**-11), ONES + np.float32(2.0**-10)
    assert check(small, large).difference.max_noise_error == pytest.approx(1.0)
    assert check(large, small).difference.max_noise_error == pytest.approx(1.0)


def test_the_worst_diagnosis_of_all_calls_is_reported(check, monkeypatch):
    def diagnosed(expected, actual, limit, dtype):
        return Diagnosis("rounding: both signs" if actual[0] == 2 else "garbage")

    monkeypatch.setattr(compare, "diagnose", diagnosed)
    assert check(ONES * 2, ONES, ONES * 2).difference.kind == "rounding: both signs"
    results = check(ONES * 2, ONES, ONES * 3)
    assert (results.difference.kind, results.difference.max_abs_error) == ("garbage", 2.0)
    assert results.problem.startswith("output 0 "), "the first call that differs is reported"


def test_a_compiled_cell_has_no_outputs(check):
    assert check(mode=Mode.COMPILE) == CallResults(Difference(True))


def test_a_golden_without_outputs_does_not_set_the_field_as_written(tmp_path):
    made = manifest(options=msgspec.structs.replace(manifest().options, refused_on=("cpu",)))
    golden = write_golden(GoldenStore(tmp_path), made)
    reply = Reply(Stage.RUN, "ok", refusals={"": "was exported for platforms tpu"})
    results = check_calls(Cell(golden, release("0.12.0.1"), "cpu"), reply, tmp_path, OPTIONS)
    assert (results.problem, results.outputs, results.as_written) == ("", "", False)


def cell_of(platform="cpu", mode=Mode.RUN, target=None, *, options=None, **changes):
    """Return a cell of a golden with these properties."""
    return Cell(golden(options=options or Options(("cpu",)), **changes), release("0.12.0.1"), platform, mode, target)


def test_platforms_in_refused_on_must_refuse_a_golden():
    options = Options(("tpu",), refused_on=("cpu",))
    more = Check("vjp1", vjp=1, inputs="vjp1.npz", outputs="vjp1-out.npz")
    on_cpu, on_tpu = (cell_of(platform, options=options, checks=(more,)).checks for platform in ("cpu", "tpu"))
    assert on_cpu == (Check("", inputs=INPUTS, refused=WRONG_PLATFORM),)
    assert on_tpu == (Check("", inputs=INPUTS, outputs=OUTPUTS), more)


OTHER_REFUSALS = [
    "ValueError: Function 'f' was exported for 8 devices and is called in a context with 1 devices.",
    "ValueError: No VJP is available",
    "ValueError: Cannot export functions with custom calls whose targets have no compatibility guarantees: t",
    "ValueError: Expected value >= 1 for dimension variable 'w'.",
    "TypeError: dtype mismatch",
    "XlaRuntimeError: NOT_FOUND: no handler is registered for platform Host",
    "",
]


@pytest.mark.parametrize("message", OTHER_REFUSALS)
def test_a_refusal_for_another_reason_than_the_platform_fails(message, tmp_path):
    cell = cell_of(options=Options(("tpu",), refused_on=("cpu",)))
    (check,) = cell.checks
    results = check_calls(cell, Reply(Stage.RUN, "ok", refusals={check.name: message}), tmp_path, OPTIONS)
    assert results.problem == f"expected a refusal with {WRONG_PLATFORM!r} in its message, found {message}"


def test_a_golden_without_outputs_compares_no_outputs():
    options = Options(("cpu",), without_outputs="no TPU here")
    assert cell_of(options=options).checks == (Check("", inputs=INPUTS),)


@pytest.mark.parametrize(
    ("vjp", "how", "compared"),
    [(0, "svd", "svd"), (1, "svd", "allclose"), (1, "shape", "shape"), (0, "shape", "shape"), (1, "exact", "exact")],
)
def test_derivatives_are_compared_as_outputs_are_except_as_factors(vjp, how, compared):
    comparison = comparison_of(Check("c", vjp=vjp), Comparison(compare=how, rtol=0.5))
    assert (comparison.compare, comparison.rtol) == (compared, 0.5)


def test_a_workers_request_has_the_files_of_each_call(tmp_path):
    mesh, other = {"x": 2}, {"x": 2, "y": 4}
    calls = (
        Check("same", inputs="same.npz", outputs="s.npz", mesh=mesh),
        Check("other", inputs="other.npz", outputs="o.npz", mesh=other),
        Check("spread", inputs="spread.npz", outputs="p.npz", mesh=other, spread=True),
        Check("vjp1", vjp=1, outputs="v.npz"),
        Check("no", inputs="no.npz", refused="no"),
    )
    cell = cell_of(options=Options(("cpu",), mesh=mesh), checks=calls, flags={"jax_enable_x64": True})
    request = request_of(cell, tmp_path, CellLimits(timeout=7, memory=5, repeat=3))
    folder = cell.golden.folder.resolve()
    same, both = tuple(mesh.items()), tuple(other.items())
    assert [(call.name, call.vjp, call.inputs, call.outputs, call.mesh, call.place) for call in request.checks] == [
        ("", 0, str(folder / INPUTS), str(tmp_path / "0.npz"), same, "own"),
        ("same", 0, str(folder / "same.npz"), str(tmp_path / "1.npz"), same, "own"),
        ("other", 0, str(folder / "other.npz"), str(tmp_path / "2.npz"), both, "whole"),
        ("spread", 0, str(folder / "spread.npz"), str(tmp_path / "3.npz"), both, "spread"),
        ("vjp1", 1, str(folder / INPUTS), str(tmp_path / "4.npz"), same, "own"),
        ("no", 0, str(folder / "no.npz"), None, same, "own"),
    ]
    assert (request.devices, request.x64, request.timeout, request.memory, request.repeat) == (8, True, 7, 5, 3)
    assert of_cell(CellLimits()).keys() <= set(request.__struct_fields__)
    assert request_of(cell_of(), tmp_path, CellLimits(timeout=0)).timeout == 1e9, "JSON has no infinity"
    assert {call.dump for call in request.checks} == {None}


@pytest.mark.parametrize(("mode", "is_described"), [(Mode.COMPILE, True), (Mode.RUN, False)])
def test_a_workers_request_describes_a_device_that_is_not_here(mode, is_described, tmp_path):
    target = Target("cuda", "cuda12", "h100")
    described = request_of(cell_of("cuda", mode, target, options=Options(("cuda",))), tmp_path, CellLimits()).described
    assert (described is not None) == is_described
    assert request_of(cell_of("cuda", mode, options=Options(("cuda",))), tmp_path, CellLimits()).described is None


@pytest.mark.parametrize(
    ("mode", "refused_on", "shardings", "problem"),
    [
        (Mode.RUN, (), ("x", "y"), ""),
        (Mode.RUN, (), ("x", "z"), "output 1 is sharded differently: expected y, got z"),
        (Mode.RUN, (), ("x",), "output 1 is sharded differently: expected y, got none"),
        (Mode.COMPILE, (), (), ""),
        (Mode.RUN, ("cpu",), (), ""),
    ],
)
def test_the_sharding_of_outputs_is_compared(mode, refused_on, shardings, problem, tmp_path):
    options = Options(("tpu",), refused_on=refused_on, without_outputs="they are not compared")
    cell = cell_of("cpu", mode, options=options, out_shardings=("x", "y"))
    reply = Reply(Stage.RUN, "ok", shardings=shardings, refusals={"": "was exported for platforms tpu"})
    assert check_calls(cell, reply, tmp_path, OPTIONS).problem == problem
    unknown = cell_of(options=Options(("cpu",), without_outputs="they are not compared"))
    assert check_calls(unknown, Reply(Stage.RUN, "ok", shardings=shardings), tmp_path, OPTIONS).problem == ""


@pytest.mark.parametrize("arrays", [(ONES, ONES * 3), (ONES * 3, ONES), (ONES * 3, ONES * 3)])
def test_a_cell_has_the_largest_errors_of_its_calls(arrays, check):
    difference = check(*arrays).difference
    assert not difference.ok
    assert (difference.max_abs_error, difference.max_rel_error) == (2.0, 2.0)
    assert difference.max_ulp == 12582912, "1.5 binades"
    same = check(ONES, ONES).difference
    assert (same.max_abs_error, same.max_rel_error, same.max_ulp) == (0.0, 0.0, 0)


def test_a_workers_request_names_modules_and_the_dump_folder(tmp_path):
    content = files() | {"my_types.register.py": b""}
    own = write_golden(GoldenStore(tmp_path), manifest(options=Options(("cpu",), register=("my_types",))), content)
    cell = Cell(own, release("0.12.0.1"), "cpu")
    request = request_of(cell, tmp_path, CellLimits(), tmp_path / "dump")
    folder = own.folder.resolve()
    assert request.artifact == str(folder / ARTIFACT)
    assert request.register == (("my_types", str(folder / "my_types.register.py")),)
    assert (request.checks[0].dump or "").startswith(str(tmp_path / "dump"))


def test_derivatives_are_not_compared_as_factors(monkeypatch):
    factors = (FactorGroup("svd", (0, 1, 2)),)
    monkeypatch.setattr(compare, "compare_leaves", lambda *_, factors, **__: factors)
    monkeypatch.setattr(compare, "call_noise", lambda _: {})
    outputs = compare.GoldenOutputs(golden(factors=factors), "cpu", {})
    assert [outputs.compare(Check("c", vjp=vjp), [], []) for vjp in (0, 1)] == [factors, ()]
