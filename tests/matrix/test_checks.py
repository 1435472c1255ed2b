"""What the calls of a cell gave, all of them together."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from making import files, manifest, release, write_golden

from export_core.comparing import compare
from export_core.comparing.compare import Difference
from export_core.comparing.diagnosis import Diagnosis
from export_core.comparing.noise import FACTOR, FACTOR_OF_INPUTS
from export_core.comparing.rules import call_noise
from export_core.environments.placement import Mode
from export_core.goldens import Check, GoldenStore
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.noise import noise_to_npz
from export_core.goldens.noise_record import NoiseRecord
from export_core.goldens.store import INPUTS, NOISE, OUTPUTS
from export_core.matrix import Cell
from export_core.matrix.checks import CallResults, check_calls
from export_core.matrix.limits import ReplayOptions
from export_core.releases import load_calendar
from export_core.worker.protocol import Reply, Stage

ONES = np.ones(2, np.float32)


@pytest.fixture
def check(tmp_path):
    """What comes of a golden with three calls whose outputs are ones, where a reader gave these numbers."""
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
        return check_calls(
            Cell(golden, release("0.12.0.1"), "cpu", mode), reply, tmp_path, ReplayOptions(load_calendar())
        )

    return run


def test_the_bits_of_the_golden_are_as_written(check):
    results = check(ONES, ONES)
    assert (results.problem, results.as_written) == ("", True)
    assert results.outputs


def test_a_call_that_was_not_moved_inside_is_judged_by_its_inputs_alone(tmp_path):
    record = NoiseRecord("0.12.0.1", "AVX2", 6, (), {"vjp1/inside": "timed out", "vjp2/inside 3": "no"}, inside=6)
    outputs = [leaf_of(ONES)]
    names = ("vjp1", "vjp2")
    checks = tuple(Check(name, vjp=1, inputs=INPUTS, outputs=f"{name}.npz") for name in names)
    content = {name: to_npz(outputs) for name in (OUTPUTS, "vjp1.npz", "vjp2.npz")}
    content[NOISE] = noise_to_npz([(outputs, (np.zeros(2),))] * 3)
    golden = write_golden(GoldenStore(tmp_path), manifest(checks=checks, noise=record), files() | content)
    factors = {file: noise.factor for file, noise in call_noise(golden).items()}
    assert factors == {OUTPUTS: FACTOR, "vjp1.npz": FACTOR_OF_INPUTS, "vjp2.npz": FACTOR}


def test_numbers_that_pass_say_by_which_rule_too(check):
    assert check(ONES, ONES).difference.tolerance == "8 times the noise of each"


@pytest.mark.parametrize("reader", [(ONES * 2, ONES), (ONES, ONES * 2)], ids=["first", "second"])
def test_other_bits_in_one_call_are_not_as_written(check, reader):
    assert not check(*reader).as_written


def test_the_bits_of_calls_after_one_that_differs_count(check):
    assert check(ONES * 2, ONES, ONES * 3).outputs != check(ONES * 2, ONES, ONES).outputs


def test_only_the_first_call_that_differs_is_reported(check):
    assert check(ONES, ONES * 2, ONES * 3).problem.startswith("second: output 0 float32[2]: 2 of 2 elements differ")
    assert check(ONES, ONES * 2, refusal="yes").problem.startswith("second: ")
    assert check(ONES, ONES, refusal="yes").problem == "last: expected a refusal with 'no' in its message, found yes"


def test_the_error_in_units_of_noise_is_the_largest_of_all_calls(check):
    small, large = ONES + np.float32(2.0**-11), ONES + np.float32(2.0**-10)
    assert check(small, large).difference.max_noise_error == pytest.approx(1.0)
    assert check(large, small).difference.max_noise_error == pytest.approx(1.0)


def test_calls_after_one_that_looks_like_rounding_decide_too(check, monkeypatch):
    def diagnosed(expected, actual, limit, dtype):
        return Diagnosis("rounding: both signs" if actual[0] == 2 else "garbage")

    monkeypatch.setattr(compare, "diagnose", diagnosed)
    assert check(ONES * 2, ONES, ONES * 2).difference.kind == "rounding: both signs"
    found = check(ONES * 2, ONES, ONES * 3)
    assert (found.difference.kind, found.difference.max_abs_error) == ("garbage", 2.0)
    assert found.problem.startswith("output 0 "), "the first call that differs is reported"


def test_what_was_only_compiled_has_no_bits(check):
    assert check(mode=Mode.COMPILE) == CallResults(Difference(True))


def test_a_golden_without_outputs_is_not_as_written(tmp_path):
    made = manifest(options=msgspec.structs.replace(manifest().options, refused_on=("cpu",)))
    golden = write_golden(GoldenStore(tmp_path), made)
    reply = Reply(Stage.RUN, "ok", refusals={"": "was exported for platforms tpu"})
    results = check_calls(Cell(golden, release("0.12.0.1"), "cpu"), reply, tmp_path, ReplayOptions(load_calendar()))
    assert (results.problem, results.outputs, results.as_written) == ("", "", False)
