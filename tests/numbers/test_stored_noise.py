"""Outputs of a golden whose noise is so large that a wrong number would not show."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from making import files, golden, manifest, write_golden

from export_core.base.tolerances import Tolerance
from export_core.goldens import Check, Comparison, FactorGroup, GoldenStore
from export_core.goldens.arrays import leaf_of, noise_to_npz, to_npz
from export_core.goldens.manifest import NoiseRecord, Signature, UndecidedOutput
from export_core.goldens.store import INPUTS, NOISE, OUTPUTS, ComparedAs
from export_core.numbers.leaf_paths import call_in_words
from export_core.numbers.noise import (
    hides_large_errors,
    knows_inputs_only,
    left_to_noise,
    noise_text,
    outputs_to_name,
    proves_nothing,
    undecided_in,
    undecided_outputs,
)
from export_core.numbers.unseen_errors import NOT_SEEN_ADVICE, NotSeen, not_seen, not_seen_advice, not_seen_text

ONES = np.ones(2, np.float32)
COUNTS = np.ones(2, np.int32)
LARGE, SMALL = np.ones(2), np.full(2, 1e-9)
DERIVATIVE = Check("vjp1", vjp=1, inputs=INPUTS, outputs="vjp1.npz")
SECOND = Check("vjp2", vjp=2, inputs=INPUTS, outputs="vjp2.npz")


@pytest.fixture
def made(tmp_path):
    """The function that writes a golden with these outputs for each call."""

    def made(*arrays, checks=(DERIVATIVE,), **changes):
        outputs = to_npz([leaf_of(array) for array in arrays])
        content = dict.fromkeys((OUTPUTS, *(check.outputs for check in checks)), outputs)
        return write_golden(GoldenStore(tmp_path), manifest(checks=checks, **changes), files() | content)

    return made


def names(golden, jumping=None, **noise):
    """Return how many elements of each output are undecided. By default the calls have the same noise."""
    noises = {OUTPUTS: noise["plain"], "vjp1.npz": noise.get("vjp1", noise["plain"])}
    found = undecided_outputs(golden, noises, jumping or {})
    return {name: output.elements for name, output in found.items()}


def test_an_output_as_small_as_its_noise_is_undecided(made):
    golden = made(ONES * 4, checks=(DERIVATIVE, SECOND))
    found = undecided_outputs(golden, {OUTPUTS: (LARGE * 3,), "vjp1.npz": (LARGE,), "vjp2.npz": (SMALL,)}, {})
    assert found == {
        "0": UndecidedOutput(2, 2, 3.0, 4.0, "result"),
        "vjp1/0": UndecidedOutput(2, 2, 1.0, 4.0, "derivative by args[0]"),
    }


def test_a_second_derivative_is_named_by_its_cotangent(made):
    arrays = (ONES,) * 4
    golden = made(*arrays, checks=(DERIVATIVE, SECOND))
    found = undecided_outputs(golden, {"vjp2.npz": (SMALL, SMALL, LARGE, SMALL)}, {})
    assert found["vjp2/2"].leaf == "derivative by the cotangent of result"


def test_outputs_are_numbered_including_those_without_noise(made):
    golden = made(COUNTS, ONES, COUNTS, ONES)
    assert names(golden, plain=(None, SMALL, LARGE, LARGE)) == {"3": 2, "vjp1/3": 2}


@pytest.mark.parametrize(
    ("comparison", "undecided"),
    [
        (Comparison(rtol=1e-3, atol=1e-3), {}),
        (Comparison(ulp={"float32": 4}), {}),
        (Comparison(ulp={"float16": 4}), {"0": 2, "vjp1/0": 2}),
        (Comparison(compare="exact"), {}),
        (Comparison(compare="shape"), {}),
        (Comparison(compare="qr"), {"vjp1/0": 2}),  # a derivative is no factorization
        (Comparison(compare="m:f"), {"vjp1/0": 2}),
    ],
)
def test_a_tolerance_exact_or_shape_leaves_no_derivative_undecided(made, comparison, undecided):
    assert names(made(ONES, comparison=comparison), plain=(LARGE,)) == undecided


def test_outputs_that_are_factors_are_never_undecided(made):
    three = Signature(("float32[2]",), ("float32[2]",) * 3, "((*,), {})", "(*, *, *)")
    golden = made(ONES, ONES, ONES, factors=(FactorGroup("qr", (0, 1)),), signature=three)
    assert names(golden, plain=(LARGE, LARGE, LARGE)) == {"2": 2, "vjp1/0": 2, "vjp1/1": 2, "vjp1/2": 2}


def test_jumping_elements_do_not_count_as_undecided(made):
    golden = made(ONES, ONES)
    jumping = {"0": (1, 5), "1": (2, 5), "vjp1/1": (2, 5)}
    assert names(golden, jumping, plain=(LARGE, LARGE)) == {"0": 1, "vjp1/0": 2}


@pytest.mark.parametrize(
    ("elements", "proves"),
    [
        ([(2, 2), (1, 2)], False),  # half of each
        ([(2, 5), (5, 5)], True),
        ([(1, 1), (3, 3)], False),
        ([(1, 2)], True),  # nothing is wrong with the other output
        ([], True),
    ],
)
def test_a_golden_proves_nothing_if_half_of_each_output_is_undecided(made, elements, proves):
    undecided = {str(number): UndecidedOutput(count, of, 1.0, 1.0) for number, (count, of) in enumerate(elements)}
    assert proves_nothing(made(ONES, ONES, checks=()), undecided) is not proves


def test_empty_outputs_do_not_count_as_decided(made):
    undecided = {"0": UndecidedOutput(1, 1, 1.0, 1.0)}
    assert proves_nothing(made(ONES[:1], ONES[:0], checks=()), undecided)
    assert not proves_nothing(made(ONES[:0], checks=()), {})


# --- golden.yaml and noise.npz ----------------------------------------------------------------------------------------


def test_a_noise_record_shows_if_only_inputs_were_moved():
    by_older_version = NoiseRecord("0.9.2", "x86_64 AVX2", 6, ("unoptimized", "fast_math"))
    not_rewritten = NoiseRecord("0.9.2", "x86_64 AVX2", 6, (), failed={"inside": "MLIRError: no"})
    nothing_rounded = NoiseRecord("0.9.2", "x86_64 AVX2", 6, ())
    moved_inside = NoiseRecord("0.9.2", "x86_64 AVX2", 6, ("unoptimized",), inside=6)
    derivative_timed_out = msgspec.structs.replace(moved_inside, failed={"vjp1/inside": "timed out"})
    one_failed = msgspec.structs.replace(moved_inside, inside=5, failed={"inside 3": "no"})
    records = (by_older_version, not_rewritten, derivative_timed_out, nothing_rounded, moved_inside, one_failed)
    assert [knows_inputs_only(record) for record in records] == [True, True, True, False, False, False]


@pytest.fixture
def chaotic(tmp_path):
    """The function that writes a golden with noise as large as its outputs, and with this record of the noise."""

    def write(values=(1, 1, 1, 1), dtype=np.float32, noise=(0.0, 0.25, 0.25, 0.25), **recorded):
        leaf = leaf_of(np.asarray(values, dtype))
        data = noise_to_npz([([leaf], (np.asarray(noise),))])
        record = NoiseRecord("0.9.2", "x86_64 AVX2", 6, (), **recorded)
        content = {**files(), OUTPUTS: to_npz([leaf]), NOISE: data}
        return write_golden(GoldenStore(tmp_path / "golden"), manifest("t.chaos", noise=record), content)

    return write


SHOWN = (
    "output 0: 4 of 4 elements would not show a wrong number: "
    "rounding alone moves them by up to 0.25, and the largest number is 1"
)
JUMP = "elements jump: their last bit decides between distant values"


@pytest.mark.parametrize(
    ("recorded", "text"),
    [
        ({}, SHOWN),
        ({"undecided_outputs": {}}, SHOWN),
        ({"undecided_outputs": None}, SHOWN),
        ({"undecided_outputs": {"7": UndecidedOutput(1, 2, 1.0, 1.0)}}, SHOWN),
        (
            {"jumping": {"0": (4, 4)}, "undecided_outputs": {}},
            f"output 0: 4 of 4 {JUMP}; errors of up to 2 pass, and the largest number is 1",
        ),
        (
            {"values": (1, 2, 3, 4), "dtype": np.int32, "noise": (0.0, 0.0, 1e9, 0.0), "undecided_outputs": {}},
            f"output 0: 1 of 4 {JUMP}; errors of up to 8.59e+09 pass",
        ),
    ],
)
def test_undecided_outputs_are_counted_from_files_not_the_manifest(chaotic, recorded, text):
    assert undecided_in([chaotic(**recorded), golden("t.smooth")]) == [f"t.chaos/0.12.0.1-cpu: {text}"]


def test_a_tolerance_for_another_dtype_leaves_outputs_undecided(chaotic):
    stored = chaotic(undecided_outputs={})
    other, own = (
        replace(stored, manifest=msgspec.structs.replace(stored.manifest, comparison=Comparison(rtol={dtype: 0.1})))
        for dtype in ("float16", "float32")
    )
    assert (undecided_in([other]), undecided_in([own])) == ([f"t.chaos/0.12.0.1-cpu: {SHOWN}"], [])


def test_a_tolerance_of_the_policy_leaves_no_output_undecided(chaotic):
    stored = chaotic(undecided_outputs={"0": UndecidedOutput(4, 4, 0.25, 1.0, "result")})
    assert left_to_noise(stored) == stored.manifest.noise
    asked = stored.compared(ComparedAs(Comparison(rtol=1e-3), {}))
    assert (undecided_in([asked]), left_to_noise(asked).undecided_outputs) == ([], {})
    of_platform = {"cpu": {"float32": Tolerance(rtol=1e-3)}}
    assert (undecided_in([stored], of_platform), left_to_noise(stored, of_platform).undecided_outputs) == ([], {})
    assert undecided_in([stored], {"cuda": of_platform["cpu"]}) == [f"t.chaos/0.12.0.1-cpu: {SHOWN}"]


@pytest.mark.parametrize(
    ("dtype", "how", "jumps"),
    [
        (np.float32, Comparison(rtol=1e-3), False),
        (np.int32, Comparison(rtol=1e-3), True),  # a tolerance is for floats
        (np.int32, Comparison(compare="exact"), False),
    ],
)
def test_jumping_elements_are_reported_unless_another_rule_decides(chaotic, dtype, how, jumps):
    stored = chaotic(dtype=dtype, jumping={"0": (3, 4)}, undecided_outputs={}).compared(ComparedAs(how, {}))
    assert undecided_in([stored]) == [f"t.chaos/0.12.0.1-cpu: output 0: 3 of 4 {JUMP}; errors of up to 2 pass"] * jumps
    assert bool(left_to_noise(stored).jumping) is jumps


def test_noise_that_cannot_be_read_is_reported(chaotic):
    stored = chaotic()
    (stored.folder / NOISE).chmod(0o644)
    (stored.folder / NOISE).write_bytes(b"no arrays")
    (text,) = undecided_in([stored])
    assert text.startswith("t.chaos/0.12.0.1-cpu: its noise cannot be read: ")


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [(0.38, "40 %"), (0.0996, "10 %"), (0.0512, "5 %"), (0.00101, "0.1 %"), (0.0002, "0.02 %"), (2.1e-6, "0.0002 %")],
)
def test_the_size_of_errors_that_noise_hides_is_shown_in_percent(fraction, shown):
    text = not_seen_text({"output 0 (result[0])": NotSeen(fraction, "float32")}, most=1)
    assert text == f"errors that rounding hides: up to {shown} of the largest number in output 0 (result[0])"


def test_outputs_whose_noise_hides_the_largest_errors_come_first():
    parts = {f"output {n}": NotSeen(part, "float32") for n, part in enumerate((2e-6, 0.05, 1e-7, 1e-8))}
    text = not_seen_text(parts, most=2)
    listed = "up to 5 % of the largest number in output 1; up to 0.0002 % in output 0; less in 2 more outputs"
    assert text.endswith(f": {listed}")
    assert not_seen_text({}, most=2) == ""


def test_errors_hidden_by_a_jump_are_counted(chaotic):
    jumping = chaotic(jumping={"0": (1, 4)}, values=(1, 1, 1, 1), noise=(0.0, 0.25, 0.0, 0.0), undecided_outputs={})
    assert not_seen(jumping) == {"output 0": NotSeen(2.0, "float32")}
    assert left_to_noise(jumping).undecided_outputs == {}, "elements that jump do not refuse a golden"
    assert hides_large_errors(jumping)
    assert not hides_large_errors(jumping.compared(ComparedAs(Comparison(rtol=1e-3), {})))


@pytest.mark.parametrize(("fractions", "advised"), [([], False), ([2e-6, 0.01], False), ([2e-6, 0.011], True)])
def test_noise_that_hides_errors_above_a_hundredth_gets_advice(fractions, advised):
    advice = not_seen_advice([NotSeen(fraction, "bfloat16") for fraction in fractions])
    assert advice == ([NOT_SEEN_ADVICE] if advised else [])


def test_no_wider_type_is_advised_for_float32():
    wide, small = NotSeen(0.2, "float32"), NotSeen(1e-6, "bfloat16")
    (advice,) = not_seen_advice([wide, small])
    assert "for float32. What to do: choose inputs away from values where the function jumps" in advice
    assert "wider type" not in advice
    assert not_seen_advice([wide, NotSeen(0.2, "float16")]) == [NOT_SEEN_ADVICE, advice]


def test_only_the_first_undecided_outputs_are_named():
    output = UndecidedOutput(1, 1, noise=1.0, largest=1.0, leaf="result")
    record = NoiseRecord("0.9.2", "x86_64 AVX2", 6, (), undecided_outputs={str(n): output for n in range(9)})
    *named, more = outputs_to_name(record)
    assert (len(named), more) == (4, "and 5 more outputs, in golden.yaml")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"inside": 4, "amplified": 2}, "noise by jaxlib 0.12.0.1: 6 moved inputs, 6 moved inside"),
        (
            {"failed": {"inside": "timed out"}},
            "noise by jaxlib 0.12.0.1: 6 moved inputs, 0 moved inside; 1 kind of runs failed, as golden.yaml says; "
            "noise of inputs only: results inside the program were not moved",
        ),
        (
            {"inside": 4, "unmeasured": ("", "vjp1")},
            "noise by jaxlib 0.12.0.1: 6 moved inputs, 4 moved inside; outputs: nothing was measured, since all runs "
            "failed, as golden.yaml says under noise.failed; compared with the default tolerances; outputs of the call "
            "vjp1: nothing was measured, since all runs failed, as golden.yaml says under noise.failed; compared with "
            "the default tolerances",
        ),
    ],
)
def test_a_line_says_how_noise_was_measured(changes, text):
    assert noise_text(NoiseRecord("0.12.0.1", "AVX2", 6, (), **changes)) == text


def test_an_output_of_a_further_call_is_named_with_exported_also():
    project = Path(__file__).parents[2] / "examples" / "serving" / "models"
    stored = GoldenStore(project).generations("training.test_models.test_rank")
    assert any(name.endswith(" of call1 (exported.also)") for name in not_seen(stored[-1]))


@pytest.mark.parametrize(("call", "words"), [("call2", "call2 (exported.also)"), ("vjp1", "vjp1"), ("", "")])
def test_a_further_call_is_named_with_exported_also(call, words):
    assert call_in_words(call) == words
