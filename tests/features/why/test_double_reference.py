"""A reference in double precision: how a module is rewritten for it, and which side is nearer to it."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from making import manifest, write_golden
from test_editing import parts_of
from test_explanation import choice_of
from test_reducing import leaves

from export_core.artifact import read_bytes
from export_core.features.why.choice import Choice, WhyError
from export_core.features.why.explain import who_is_right
from export_core.features.why.explain.who_is_right import in_double, nearer, reference_lines
from export_core.features.why.reduce.failing_alike import program_reader
from export_core.features.why.reduce.reduced_program import flat_program
from export_core.goldens import GoldenStore
from export_core.goldens.arrays import leaf_of
from export_core.judge import Result, judge
from export_core.matrix import Cell, Verdict
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import new_result
from export_core.policy.run_options import CellLimits
from export_core.readers.environment import this_interpreter
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar


def sentences(*outputs: Any) -> list[str]:
    """Return the texts that say whether the writer or the reader is nearer to double precision, one for each output."""
    return [line.text for line in nearer(*outputs)]


def texts_of(*asked: Any) -> list[str]:
    return [line.text for line in reference_lines(*asked)]


@pytest.fixture
def doubled(editor):
    """The function that returns a module's text in double precision, or the reason why it has none."""

    def doubled(text: str) -> str:
        summary, _, changed = editor.edited(parts_of(text), [("double",)])
        return summary.refused or changed.decode()

    return doubled


def program_of(function: Any, *args: Any) -> Any:
    artifact = bytes(jax.export.export(jax.jit(function))(*args).serialize())
    return flat_program(read_bytes(artifact, "artifact"), 0, [leaf_of(np.asarray(arg)) for arg in args])


@pytest.fixture
def exact(here, warm_workers, forked_workers, editor, tmp_path):
    """A function that computes a given function in double precision, in a cold process."""

    def exact(function: Any, *args: Any) -> list[np.ndarray[Any, Any]]:
        program = in_double(program_of(function, *args), editor)
        x64 = manifest(flags={"jax_enable_x64": True})
        golden = write_golden(GoldenStore(tmp_path / "golden"), x64)
        options = ReplayOptions(load_calendar(), limits=CellLimits(jobs=1, timeout=60.0))
        with program_reader(Cell(golden, here, "cpu"), this_interpreter(here), options, warm_workers.start) as reader:
            (tried,) = reader.run([program])
        assert tried.works, tried.outcome.message
        return [leaf.numpy() for leaf in tried.outputs]

    return exact


def test_float32_constants_keep_their_value_in_float64(doubled):
    text = doubled("""
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.constant dense<[0.1, 0x7F800000]> : tensor<2xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<2xf32>
    return %1 : tensor<2xf32>
  }""")
    assert "f32" not in text
    assert "dense<[0.10000000149011612, 0x7FF0000000000000]> : tensor<2xf64>" in text


def test_loops_and_called_functions_run_in_double_precision(exact):
    def function(x):
        return jax.lax.fori_loop(0, 20, lambda _, y: y + jnp.sin(y) / 3, x), jnp.sort(x)[::-1]

    x = np.linspace(0, 1, 5, dtype=np.float32)
    found, ordered = exact(function, x)
    y = x.astype(np.float64)
    for _ in range(20):
        y = y + np.sin(y) / 3
    np.testing.assert_allclose(found, y, rtol=1e-13)
    np.testing.assert_array_equal(ordered, np.sort(x)[::-1])


def test_the_float64_reference_draws_the_random_numbers_of_float32(exact):
    def function(seed):
        return jax.random.uniform(jax.random.key(seed), (8,))

    (found,) = exact(function, np.uint32(3))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.asarray(function(3)).astype(np.float64))


def test_lapack_and_fft_run_in_double_precision(exact):
    def function(a):
        return jnp.linalg.cholesky(a), jnp.fft.ifft(jnp.fft.fft(a) * (0.5 + 0.1j))

    a = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)
    factor, spectrum = exact(function, a)
    np.testing.assert_allclose(factor, np.linalg.cholesky(a.astype(np.float64)), rtol=1e-14)
    factor = complex(np.complex64(0.5 + 0.1j))
    np.testing.assert_allclose(spectrum, np.fft.ifft(np.fft.fft(a.astype(np.float64)) * factor), atol=1e-14)


def test_the_float64_reference_does_not_round_to_bfloat16(exact):
    x = np.linspace(0, 1, 7, dtype=np.float32)
    (found,) = exact(lambda x: (x.astype(jnp.bfloat16) * x * jnp.bfloat16(0.1)).astype(jnp.float32), x)
    np.testing.assert_array_equal(found, x.astype(np.float64) ** 2 * float(jnp.bfloat16(0.1)))


@pytest.mark.parametrize(
    ("operation", "kind", "refused"),
    [
        ("custom_call @mine(%arg0)", "2xf32", "it calls mine, which has no known counterpart in double precision"),
        ("convert %arg0", "2xf8E4M3FN", "it computes in f8E4M3FN"),
    ],
)
def test_unknown_calls_and_small_floats_have_no_reference(operation, kind, refused, doubled):
    text = doubled(f"""
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<{kind}> {{
    %0 = stablehlo.{operation} : (tensor<2xf32>) -> tensor<{kind}>
    return %0 : tensor<{kind}>
  }}""")
    assert text == refused


def test_a_program_of_integers_has_no_reference(editor):
    with pytest.raises(WhyError, match="in double precision already, or has no floats"):
        in_double(program_of(lambda x: x + 1, np.arange(3)), editor)


@pytest.mark.parametrize(
    ("written", "read", "sentence"),
    [
        (4e-6, 2e-6, "the reader is nearer to float64 than the writer (2.03e-06 against 4.05e-06)"),
        (2e-6, 4e-6, "the writer is nearer to float64 than the reader (2.03e-06 against 4.05e-06)"),
        (4e-6, -4.6e-6, "reader and writer are about as near to float64 (4.59e-06 and 4.05e-06)"),
        (1.0, 1.5, "both are far from float64 (1.50e+00 and 1.00e+00): a different sign or order, not rounding"),
    ],
)
def test_whichever_of_writer_and_reader_errs_less_is_called_nearer(written, read, sentence):
    """One element of two is wrong, by an error relative to the output."""
    outputs = (leaves(np.float32([1 + error, 1])) for error in (written, read))
    assert sentences(*outputs, leaves(np.ones(2))) == [f"output 0 float32[2]: {sentence}"]


@pytest.mark.parametrize(
    ("written", "read", "dtype", "for_stored"),
    [
        (1e-2, 5e-8, "float32", False),
        (1e-3, 5e-8, "float32", False),
        (np.nan, 0, "float32", False),
        (4e-6, 2e-6, "float32", True),
        (2e-6, 1e-2, "float32", True),
        (8.3e-3, 1.3e-2, "float32", True),
        (1.2e-7, 0, "float32", True),  # a unit in the last place, where the reader happens to be exact
        (1e-2, 0, "bfloat16", True),
        (1e-2, 0, "float64", None),  # double precision is what the reader itself computes in
    ],
)
def test_float64_contradicts_stored_outputs_only_if_far_off(written, read, dtype, for_stored):
    """One element of two is wrong, by an error relative to the output."""
    outputs = (leaves(np.asarray([1 + error, 1]).astype(jnp.dtype(dtype))) for error in (written, read))
    (line,) = nearer(*outputs, leaves(np.ones(2)))
    assert line.for_stored is for_stored


def test_an_output_is_named_by_its_path():
    (line,) = nearer(leaves(np.ones(2)), leaves(np.zeros(2)), leaves(np.ones(2)), "{0} (result[{0}])".format)
    assert line.text.startswith("output 0 (result[0]) float64[2]: ")


def test_an_output_that_is_not_listed_can_contradict_the_golden():
    outputs = [np.float32([1 + 1e-2, 1]), *[np.float32([1 + 0.5])] * 5]
    read = [np.float32([1, 1]), *[np.float32([1 + 0.4])] * 5]
    lines = nearer(leaves(*outputs), leaves(*read), leaves(*[np.ones(len(one)) for one in outputs]))
    assert [line.for_stored for line in lines] == [True] * 4 + [False]
    assert lines[4].text == "and 2 more outputs that differ"


def test_a_sum_that_rounds_to_zero_is_explained_by_float64(exact):
    """Releases add in another order: (1e8 + 1) - 1e8 is 0 in float32, and (1e8 - 1e8) + 1 is not."""
    x = np.float32([[1e8, 1, -1e8], [1, 2, 3]])
    reference = leaves(*exact(lambda x: jnp.log(x.sum(axis=1)), x))
    zero, one = (leaves(np.float32([value, np.log(6)])) for value in (-np.inf, 0))
    found = "output 0 float32[2]: 1 element is {} in the reader and {} in the writer: finite in float64, as in the {}"
    assert sentences(zero, one, reference) == [found.format("finite", "-inf", "reader")]
    assert sentences(one, zero, reference) == [found.format("-inf", "finite", "writer")]


def test_nan_from_the_root_of_a_rounding_error_is_explained(exact):
    """0.1 + 0.2 - 0.3 of float32 is 0 where it is rounded twice, and -7.5e-09 where it is not rounded."""
    x = np.float32([[0.1, 0.2, 0.3], [1, 1, 1]])
    reference = leaves(*exact(lambda x: jnp.sqrt(x[:, 0] + x[:, 1] - x[:, 2]), x))
    written, read = leaves(np.float32([0, 1])), leaves(np.float32([np.nan, 1]))
    found = (
        "output 0 float32[2]: 1 element is NaN in the reader and finite in the writer: NaN in float64, as in the reader"
    )
    assert sentences(written, read, reference) == [found]


@pytest.mark.parametrize(
    ("written", "read", "reference", "sentence"),
    [
        ([np.inf, 1], [np.nan, 1], [2, 1], ["inf in the writer: finite in float64, as in neither"]),
        ([np.inf, 1], [-np.inf, 1], [np.inf, 1], ["-inf in the reader", "inf in float64, as in the writer"]),
        ([3, 1], [np.inf, 1], [2, 1], ["as in the writer, whose numbers are far from it"]),
        ([3, 1], [4, 1], [np.nan, 1], ["finite in the reader and finite in the writer: NaN in float64, as in neither"]),
        ([1j, 1], [complex(0, np.inf), 1], [1j, 1], ["1 element is inf in the reader", "float64, as in the writer"]),
        (
            *([np.nan, np.nan, 1, 1], [1, 1, np.inf, 1], [1, 1, 1, 1]),
            ["2 elements are finite in the reader and NaN", "; 1 element is inf in the reader and finite"],
        ),
    ],
)
def test_float64_shows_if_writer_or_reader_is_right_about_nan(written, read, reference, sentence):
    dtype = np.complex64 if np.iscomplexobj(written) else np.float32
    (line,) = sentences(*(leaves(np.asarray(side, dtype)) for side in (written, read)), leaves(np.asarray(reference)))
    assert [words for words in sentence if words not in line] == []


def test_nan_and_infinity_are_explained_before_finite_errors():
    written, read = np.float32([1, np.nan, 2, np.nan]), np.float32([1 + 1e-6, 1, 2, np.nan])
    rounded, same = np.float32([1 + 1e-3]), np.float32([1])
    lines = sentences(leaves(rounded, written), leaves(same, read), leaves(same, np.float64([1, 1, 2, np.nan])))
    assert lines[0].startswith(
        "output 1 float32[4]: 1 element is finite in the reader and NaN in the writer: finite in"
    )
    assert "as in the reader; the writer is nearer to float64" in lines[0]
    assert lines[1].startswith("output 0 ")
    assert sentences(leaves(written), leaves(written), leaves(np.ones(4))) == []


def test_writer_or_reader_is_called_nearer_though_float64_gives_zero():
    (line,) = sentences(leaves(np.float32([0, 0])), leaves(np.float32([1e-9, 0])), leaves(np.zeros(2)))
    assert "the writer is nearer to float64" in line


def test_the_most_different_outputs_are_listed_first():
    written = leaves(*(np.float32([1 + number * 1e-5]) for number in range(7)), np.int32([1]))
    read = leaves(*[np.float32([1])] * 7, np.int32([2]))
    lines = sentences(written, read, leaves(*[np.ones(1)] * 7, np.int32([1])))
    assert [line.partition(" float32")[0] for line in lines[:4]] == [f"output {number}" for number in (6, 5, 4, 3)]
    assert lines[4:] == ["and 2 more outputs that differ"]


def moved(choice: Any) -> Result:
    outcome = new_result(choice.cell, verdict=Verdict.NUMERICS, stage=Stage.COMPARE, message="output 0 differs")
    return judge(outcome, choice.cell.golden, choice.options.policy)


def test_calls_on_several_devices_have_no_reference():
    choice = choice_of("tests.compat.test_shardings.test_output_shardings", "0.9.2", "0.12.0.1")
    lines = texts_of(choice, moved(choice), print)
    assert lines == ["no reference in double precision: a reference is computed only for calls on one CPU"]


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        (np.float32([1, np.nan, 3]), "output 0 float32[3]: 1 element is NaN in the reader and finite in the writer"),
        (np.float32([1, 2, 3]), "no reference in double precision: run once more in jaxlib 0.12.0.1, alone, it gives"),
    ],
)
def test_the_explanation_is_about_the_outputs_of_the_repeated_run(read, sentence, monkeypatch):
    """If the repeated run gives NaN, the text is about that; if it gives the stored outputs, the text says so."""
    written = (leaf_of(np.float32([1, 2, 3])),)
    monkeypatch.setattr(who_is_right, "from_npz", lambda _: written)
    monkeypatch.setattr(who_is_right, "flat_program", lambda *_: None)
    monkeypatch.setattr(who_is_right, "in_double", lambda *_: "double")
    monkeypatch.setattr(who_is_right, "ModuleEditor", lambda _: nullcontext())
    readers = SimpleNamespace(build=lambda placement: SimpleNamespace(release=placement.reader))
    monkeypatch.setattr(Choice, "environments", lambda *_: nullcontext(readers))
    exact = (leaf_of(np.float64([1, 2, 3])),)
    monkeypatch.setattr(
        who_is_right, "_outputs", lambda _, __, ___, program: exact if program == "double" else (leaf_of(read),)
    )
    choice = choice_of("tests.compat.test_models.test_convolution", "0.12.0.1", "0.12.0.1")
    (line,) = texts_of(choice, moved(choice), print)
    assert line.startswith(sentence)


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_a_real_golden_is_compared_in_double_precision(monkeypatch):
    """Make the writer's numbers worse, since whether a reader rounds otherwise depends on its processor."""
    compare = who_is_right.nearer

    def with_worse(written, *others):
        return compare([leaf_of(leaf.numpy() * np.float32(1.0001)) for leaf in written], *others)

    monkeypatch.setattr(who_is_right, "nearer", with_worse)
    choice = choice_of("tests.compat.test_models.test_convolution", "0.10.1-jax0.10.2-cpu", "0.12.0.1")
    (line,) = texts_of(choice, moved(choice), print)
    assert line.startswith("output 0 float32[2,3,3,4]: the reader is nearer to float64 than the writer (")
