"""The corpus by which the rules of comparing are measured, `nox -s numbers`: its programs, errors, rules and tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.numbers import __main__ as session
from benchmarks.numbers import planted, rules, tables, wrong
from benchmarks.numbers.programs import PROGRAMS
from export_core.comparing.rules import CallNoise
from export_core.goldens.arrays import from_npz, leaf_of

VALUES = np.array([[1000.0, 0.5], [0.0, -0.25]], np.float32)
NOISE = CallNoise((np.full((2, 2), 1e-3),), "float32")


def judged(outputs):
    return rules.judge([leaf_of(VALUES)], [leaf_of(outputs)], "allclose", NOISE)


def test_every_kind_of_error_applies_to_a_program():
    semantic = {kind for program in PROGRAMS.values() for kind in program.variants}
    assert semantic | set(planted.FROM_OUTPUTS) == set(tables.KINDS)
    assert len(PROGRAMS) >= 60


def test_only_small_elements_change_their_sign():
    np.testing.assert_array_equal(planted.small_signs(VALUES), [[1000.0, -0.5], [0.0, 0.25]])


def test_one_element_is_off_by_a_thousandth():
    changed = planted.one_element(VALUES) / np.where(VALUES == 0, 1, VALUES)
    assert sorted(changed.ravel()) == [0, 1, 1, pytest.approx(1.001)]


def test_denormal_numbers_become_zero():
    values = np.array([6e-8, 1.0, -0.0], np.float16)
    np.testing.assert_array_equal(planted.flushed_denormals(values), [0, 1, 0])


def test_a_program_with_an_error_answers_otherwise(tmp_path):
    wrong.main(tmp_path, ["mixed_scales"])
    (right,) = PROGRAMS["mixed_scales"].arguments
    (outputs,) = from_npz(tmp_path / "mixed_scales.constant.npz")
    np.testing.assert_array_equal(outputs.data, np.append(np.float32(1e6), np.float32(0.500002) * right))


def test_an_error_of_five_times_the_noise_is_beyond_four():
    result = judged(VALUES + np.array([[0, 5e-3], [0, 0]], np.float32))
    assert {factor: count for factor, count in result.beyond.items() if factor in (4, 6)} == {4: 1, 6: 0}
    assert not result.fails_tolerance
    assert result.fails_numpy


def test_the_same_outputs_pass_every_rule():
    result = judged(VALUES)
    assert (result.largest, result.fails_tolerance, result.fails_numpy) == (0.0, False, False)


def test_a_page_keeps_what_is_around_the_tables(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{session.BEGIN}old\n{session.END}after\n")
    session.write_page(page, "new")
    assert page.read_text() == f"before\n{session.BEGIN}new\n{session.END}after\n"


@pytest.mark.matrix
def test_a_small_corpus_goes_through_the_whole_session(tmp_path):
    words = ["--programs", "mixed_scales,eigh", "--writers", "0.12.0.1", "--readers", "0.11.2"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.numbers", "--work", tmp_path, *words],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "2 cells ran, of which the matrix calls 0 numerics. 11 errors were planted." in done.stdout.replace(
        "\n", " "
    )
    assert "| **false alarms** in cells where nothing changed | 2 | **0** | **0** |" in done.stdout
