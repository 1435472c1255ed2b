"""The corpus by which the rules of comparing are measured, `nox -s numbers`: its programs, errors, rules and tables."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from making import files, manifest, write_golden

from export_core.goldens import Check, GoldenStore
from export_core.goldens.arrays import from_npz, leaf_of, noise_to_npz, to_npz
from export_core.goldens.manifest import NoiseRecord
from export_core.goldens.store import INPUTS, NOISE, OUTPUTS
from studies.corpus.choosing import choose
from studies.corpus.programs.planted import PROGRAMS
from studies.numbers import __main__ as session
from studies.numbers import double, kernels, planted, rules, sets, tables, wrong

VALUES = np.array([[1000.0, 0.5], [0.0, -0.25]], np.float32)
PLAIN = Check("", inputs=INPUTS, outputs=OUTPUTS)
HELD_OUT, FOR_TERMS = (list(map(sets.program_in, group.tests)) for group in choose("planted", "held-out"))


@pytest.fixture
def judged(tmp_path):
    """A function that judges a reader's outputs by a golden whose outputs are VALUES, with noise of 2^-10."""
    expected = [leaf_of(VALUES)]
    noise = noise_to_npz([(expected, (np.full((2, 2), 2.0**-10),))])
    content = files() | {OUTPUTS: to_npz(expected), NOISE: noise}
    golden = write_golden(GoldenStore(tmp_path), manifest(noise=NoiseRecord("0.12.0.1", "AVX2", 6, ())), content)
    return lambda outputs: rules.Judge.of(golden).judge(PLAIN, expected, [leaf_of(outputs)])


def test_every_kind_of_planted_error_has_a_program():
    semantic = {kind for program in PROGRAMS.values() for kind in program.variants}
    assert semantic | set(planted.FROM_OUTPUTS) == set(tables.KINDS)


def test_coarse_planted_errors_change_every_nonzero_element():
    for plant in planted.FROM_EACH_OUTPUT.values():
        changed = plant(VALUES)
        assert changed.dtype == VALUES.dtype
        assert (changed != VALUES)[VALUES != 0].all()
    assert set(tables.COARSE) == set(planted.FROM_EACH_OUTPUT)


def test_at_least_90_programs_are_held_out_for_narrow_types():
    kinds = Counter(PROGRAMS[name].narrow for name in FOR_TERMS)
    assert sum(kinds.values()) >= 90
    assert set(kinds) == set(tables.NARROW)
    plants = Counter(kind for name in FOR_TERMS for kind in [PROGRAMS[name].narrow] * len(PROGRAMS[name].wrong))
    assert plants[""] >= 130
    assert plants["beside"] >= 81


def test_at_least_64_programs_are_held_out_20_without_floats():
    arguments = [PROGRAMS[name].arguments for name in HELD_OUT]
    without_floats = [given for given in arguments if all(np.asarray(one).dtype.kind in "iu" for one in given)]
    assert len(arguments) >= 64
    assert len(without_floats) >= 20


def test_every_program_is_in_exactly_one_group():
    groups = sets.groups_of([sets.CORPUS, sets.HELD, sets.HELD_NOW], [])
    tests = [test for group in groups for test in group.tests]
    assert sorted(map(sets.program_in, tests)) == sorted(PROGRAMS)


def test_real_programs_with_false_alarms_have_their_own_writers():
    plain, alarms = sets.groups_of([sets.REALS], [])
    assert alarms.writers
    assert set(alarms.tests) < set(plain.tests)


@pytest.mark.parametrize(
    ("case", "of_set"),
    [
        ("studies.corpus.programs.planted_programs.test_program[matmul]", sets.CORPUS),
        ("studies.corpus.programs.planted_programs.test_program[beam_step]", sets.HELD),
        ("studies.corpus.programs.planted_programs.test_program[distances_of_rows]", sets.HELD_NOW),
        ("studies.corpus.programs.attention_programs.test_attention", sets.REALS),
        ("studies.corpus.programs.flax_programs.test_attention", sets.LIBRARIES),
        ("tests.compat.test_models.test_attention", ""),
    ],
)
def test_the_id_of_a_case_tells_its_set_of_programs(case, of_set):
    assert sets.set_of(case) == of_set


def test_an_unknown_program_is_named_in_the_error():
    with pytest.raises(SystemExit, match="found no_such_program"):
        sets.groups_of([sets.CORPUS], ["no_such_program"])


def test_a_planted_error_changes_the_sign_of_small_elements():
    np.testing.assert_array_equal(planted.small_signs(VALUES), [[1000.0, -0.5], [0.0, 0.25]])


def test_a_planted_error_moves_one_element_by_a_thousandth():
    changed = planted.one_element(VALUES) / np.where(VALUES == 0, 1, VALUES)
    assert sorted(changed.ravel()) == [0, 1, 1, pytest.approx(1.001)]


def test_a_planted_error_sets_denormal_numbers_to_zero():
    values = np.array([6e-8, 1.0, -0.0], np.float16)
    np.testing.assert_array_equal(planted.flushed_denormals(values), [0, 1, 0])


def test_a_planted_error_changes_the_outputs(tmp_path):
    wrong.main(tmp_path, ["mixed_scales"])
    (right,) = PROGRAMS["mixed_scales"].arguments
    (outputs,) = from_npz(tmp_path / "mixed_scales.constant.npz")
    np.testing.assert_array_equal(outputs.data, np.append(np.float32(1e6), np.float32(0.500002) * right))


def test_an_error_of_nine_times_the_noise_fails_within_tolerance(judged):
    result = judged(VALUES + np.array([[0, 9 * 2.0**-10], [0, 0]], np.float32))
    assert (result.fails, result.wrong) == (True, (0,))
    assert result.largest == pytest.approx(9)
    assert not result.fails_tolerance
    assert result.fails_numpy


def test_the_same_outputs_pass_every_rule(judged):
    result = judged(VALUES)
    assert (result.fails, result.largest, result.fails_tolerance, result.fails_numpy) == (False, 0.0, False, False)


def leaves(*numbers):
    return [leaf_of(np.array([number], np.float32)) for number in numbers]


@pytest.mark.parametrize(("reader", "real"), [(1.25, False), (1.5, True)])
def test_only_a_reader_far_farther_from_float64_really_changed(reader, real):
    assert double.farther("output 0", *leaves(1.0625, reader, 1.0)).real is real


def test_one_different_integer_is_not_a_real_change():
    written, read = leaf_of(np.zeros(8, np.int32)), leaf_of(np.eye(8, dtype=np.int32)[0])
    found = double.farther("output 0", written, read, written)
    assert (str(found), found.real) == ("output 0 int32[8]: reader 1, writer 0 from float64", False)


def test_an_alarm_without_a_float64_reference_counts_as_false():
    assert not double.Farther(problem="it has a mesh").real


def test_the_page_of_measured_numbers_shows_its_recorded_data():
    page = Path(__file__).parents[2] / "docs" / "evidence" / "numbers-measured.md"
    found = json.loads(page.with_suffix(".json").read_bytes())
    assert f"{session.BEGIN}{tables.markdown(found)}\n{session.END}" in page.read_text(encoding="utf-8")


def test_write_page_changes_only_text_between_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{session.BEGIN}old\n{session.END}after\n")
    session.write_page(page, "new")
    assert page.read_text() == f"before\n{session.BEGIN}new\n{session.END}after\n"


def test_write_page_keeps_tables_of_other_commands(tmp_path):
    page = tmp_path / "page.md"
    others = f"{session.BEGIN}a table\n{session.END}"
    page.write_text(f"{kernels.BEGIN}old\n{kernels.END}{others}")
    session.write_page(page, "new", kernels.BEGIN, kernels.END)
    assert page.read_text() == f"{kernels.BEGIN}new\n{kernels.END}{others}"


def test_comparing_kernels_gives_share_moved_and_largest_error():
    large, small = np.array([8, 1, 0, 2], np.float32), np.array([1, 0.5, 0.5, 0.5], np.float32)
    moved = np.array([8, 1 + 3 * np.spacing(large[0]), -0.0, 2], np.float32)
    assert kernels.compare([large], [moved]) == kernels.Change(share=0.5, error=3.0)
    assert kernels.compare([large, small], [moved, small]) == kernels.Change(share=0.25, error=3.0)


def test_a_complex_element_counts_as_one_moved_element():
    answer = np.array([4, 3j], np.complex64)
    moved = answer + np.array([2 * np.spacing(np.float32(4)), 0], np.complex64)
    assert kernels.compare([answer], [moved]) == kernels.Change(share=0.5, error=2.0)


def test_changes_by_kernels_are_printed_as_percent_and_error():
    none, some, many = kernels.Change(0.0, 0.0), kernels.Change(0.25, 3.0), kernels.Change(0.5, 1.0)
    assert kernels.text_of([none, none]) == "0"
    assert kernels.text_of([many, some]) == "25–50 %, 3"
    assert kernels.text_of([some, some]) == "25 %, 3"


def test_infinity_is_null_in_json():
    assert json.loads(session.as_json({"times": [math.inf, 1.0]})) == {"times": [None, 1.0]}


@pytest.mark.weekly
def test_a_small_corpus_goes_through_the_whole_session(tmp_path):
    words = ["--programs", "mixed_scales,eigh", "--writers", "0.12.0.1", "--readers", "0.11.2,0.12.0.1"]
    words += ["--sets", "corpus,processors"]
    done = subprocess.run(
        [sys.executable, "-m", "studies.numbers", "--work", tmp_path, *words],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "11 errors were planted." in done.stdout.replace("\n", " ")
    assert "| the corpus | 2 | 4 |" in done.stdout
    assert "| this processor → XLA for SSE4.2 | 2 |" in done.stdout
    assert "| this processor → OpenBLAS for Haswell | 1 |" in done.stdout
    assert "No cell is called wrong but for the documented changes below." in done.stdout
