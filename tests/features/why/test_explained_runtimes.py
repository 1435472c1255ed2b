"""Failures of cells in a runtime that is not jaxlib: who is right, since which release, and a bundle."""

import dataclasses
import json
import os
import subprocess
import sys

import jax
import msgspec
import numpy as np
import pytest
from test_explanation import choice_of, judged

from export_core.features.convert.programs import ModuleRewriter
from export_core.features.why.bisect import bisection
from export_core.features.why.bisect.bisection_report import changes_between
from export_core.features.why.explain import who_is_right
from export_core.features.why.explain.bundle import SCRIPT, program_of, write_bundle
from export_core.features.why.explain.explanation import explain
from export_core.features.why.explain.who_is_right import alone_line, interpreter_line
from export_core.goldens.arrays import from_npz, to_npz
from export_core.goldens.store import OUTPUTS
from export_core.matrix import Verdict, cached_replay
from export_core.matrix.replay import Ran
from export_core.matrix.result import new_result
from export_core.readers.environment import this_interpreter
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar, runtimes
from export_core.releases.runtimes import LACKS_DTYPE, runtime_of, runtime_readers

CALENDAR = load_calendar()
CASE = "tests.compat.test_dtypes.test_dtype[float32]"
WRONG = {"stage": Stage.COMPARE, "max_abs_error": 1.0, "message": "output 0 differs"}


@pytest.fixture
def choice():
    return choice_of(CASE, "0.12.0.1", "iree==3.13.0")


# --- who is right -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "outputs", "sentence", "for_stored"),
    [
        (Verdict.PASS, None, "stablehlo 0.12.0.1 agrees with the writer", True),
        (Verdict.NUMERICS, 1.0, "stablehlo 0.12.0.1 agrees with the reader, and not with the writer", False),
        (Verdict.NUMERICS, 2.0, "stablehlo 0.12.0.1 agrees with neither", None),
        (Verdict.CRASH, None, "stablehlo 0.12.0.1 cannot run it (crash in stage run: Unsupported op)", None),
    ],
)
def test_the_stablehlo_interpreter_shows_if_writer_or_reader_is_right(
    verdict, outputs, sentence, for_stored, choice, monkeypatch
):
    written = from_npz(choice.cell.golden.folder / OUTPUTS)
    moved = {by: tuple(dataclasses.replace(leaf, data=leaf.data + np.float32(by)) for leaf in written) for by in (1, 2)}

    def replayed(cells, *_, **__):
        (cell,) = cells
        if cell == choice.cell:
            yield Ran(new_result(cell, Stage.COMPARE, Verdict.NUMERICS), moved[1])
        else:
            stage = Stage.RUN if verdict is Verdict.CRASH else Stage.COMPARE
            outcome = new_result(cell, stage, verdict, "Unsupported op")
            yield Ran(outcome, moved[int(outputs)] if outputs else written)

    monkeypatch.setattr(who_is_right, "replay_with_outputs", replayed)
    assert interpreter_line(choice, print) == (sentence, for_stored)


@pytest.mark.parametrize(
    ("case", "known"), [("test_linear_algebra.test_fft", True), ("test_models.test_convolution", False)]
)
def test_a_known_issue_of_the_interpreter_is_named(case, known, monkeypatch):
    choice = choice_of(f"tests.compat.{case}", "0.12.0.1", "0.12.0.1")

    def replayed(cells, *_, **__):
        yield Ran(new_result(cells[0], Stage.COMPARE, Verdict.NUMERICS, "output 0 differs"))

    monkeypatch.setattr(who_is_right, "replay_with_outputs", replayed)
    title = "A Fourier transform is rounded more than by others"
    end = f", which says nothing of either: it is known of this interpreter ({title})" if known else ""
    assert interpreter_line(choice, print) == (f"stablehlo 0.12.0.1 agrees with neither{end}", None)


@pytest.mark.skipif(
    jax.__version_info__ < (0, 12), reason="needs jax 0.12: an older jax cannot parse the artifact that it rewrites"
)
def test_shardy_is_removed_for_stablehlos_interpreter(here, monkeypatch):
    ran = []

    def replayed(cells, *_, **__):
        (cell,) = cells
        ran.append((cell.reader.family, *(module.dialects for module in cell.golden.read_artifact().modules)))
        yield Ran(new_result(cell, Stage.COMPARE, Verdict.PASS))

    monkeypatch.setattr(who_is_right, "replay_with_outputs", replayed)
    monkeypatch.setattr(ModuleRewriter, "_newest", lambda self: this_interpreter(here))
    choice = choice_of("tests.compat.test_programs.test_random", "0.12.0.1", "iree==3.13.0")
    assert interpreter_line(choice, print).text == "stablehlo 0.12.0.1 agrees with the writer"
    (own, given), (interpreter, converted) = ran
    assert (own, interpreter) == ("iree", "stablehlo")
    assert "sdy" in given
    assert "sdy" not in converted


def test_stablehlo_interpreter_is_not_its_own_reference():
    assert interpreter_line(choice_of(CASE, "0.12.0.1", "stablehlo"), print).text == ""


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        (
            ("0.12.0.1", "pjrt"),
            (),
            "only iree differs from 2 readers of other runtimes, which give the writer's numbers",
        ),
        (("0.12.0.1",), ("pjrt",), ""),  # two runtimes differ
        ((), (), ""),  # nobody else ran it
        (("iree==3.12.0",), (), ""),  # another release of the same runtime is nobody else
    ],
)
def test_an_explanation_names_a_runtime_if_only_it_differs(right, wrong, sentence, choice):
    def result_in(name, verdict):
        (reader,) = runtime_readers(name, CALENDAR) if name[0].isalpha() else [CALENDAR.release(name)]
        return msgspec.structs.replace(judged(choice, verdict, **WRONG), reader=reader)

    stored = [result_in(name, Verdict.PASS) for name in right] + [result_in(name, Verdict.NUMERICS) for name in wrong]
    chosen = dataclasses.replace(choice, stored=tuple(stored))
    assert alone_line(chosen, judged(choice, Verdict.NUMERICS, **WRONG)).startswith(sentence) is True
    assert bool(alone_line(chosen, judged(choice, Verdict.NUMERICS, **WRONG))) is bool(sentence)


def test_a_runtimes_refusal_is_not_explained_by_jaxs_custom_call_list():
    choice = choice_of("tests.compat.test_linear_algebra.test_cholesky", "0.12.0.1", "pjrt==0.12.0.1")
    found = explain(choice, judged(choice, Verdict.REFUSED, stage=Stage.COMPILE, message="No FFI handler"))
    assert "jaxlib pjrt" not in str(found)


def test_a_known_refusal_names_the_cause_and_the_first_step():
    choice = choice_of("tests.compat.test_models.test_convolution", "0.12.0.1", "litert==2.3.0")
    message = "a loop (while, scan, fori_loop), which litert-converter cannot write: unroll it\nFailed to export"
    found = explain(choice, judged(choice, Verdict.REFUSED, stage=Stage.COMPILE, message=message))
    assert (found.cause, found.because) == ("not supported by the runtime", f"{message.splitlines()[0]}.")
    assert found.steps[0] == "Unroll it."
    assert "Report it" not in str(found.steps)


def test_the_advice_of_a_known_issue_replaces_the_messages_advice():
    choice = choice_of("tests.compat.test_programs.test_scan", "0.12.0.1", "litert==2.3.0")
    message = (
        "a loop, which litert-converter cannot write: unroll it; without a loop, fix sizes\nFailed to export flatbuffer"
    )
    steps = explain(choice, judged(choice, Verdict.REFUSED, stage=Stage.LOWER, message=message)).steps
    assert steps[0] == "Unroll the loop."
    assert not [step for step in steps[1:] if "nroll" in step or "without a loop" in step]


def test_a_dtype_that_a_runtime_lacks_is_advised_once():
    choice = choice_of("tests.compat.test_dtypes.test_tiny_dtype[float8_e3m4]", "0.12.0.1", "tensorflow==2.21.0")
    message = f"{LACKS_DTYPE.meaning}\nNotImplementedError: TensorFlow 2.21.0 has no dtype float8_e3m4"
    found = explain(choice, judged(choice, Verdict.REFUSED, message=message))
    assert found.cause == "not supported by the runtime"
    assert "float8_e3m4" in found.because
    assert found.steps[0] == "Pass another dtype, such as float8_e4m3fn or bfloat16."
    assert len({*found.steps}) == len(found.steps)


def test_the_named_cause_is_one_that_a_conversion_cannot_remove():
    choice = choice_of("tests.compat.test_linear_algebra.test_cholesky", "0.12.0.1", "iree==3.13.0")
    message = "Shardy's dialect, which IREE lacks: take it out with `jaxexport convert`"
    found = explain(choice, judged(choice, Verdict.REFUSED, message=message))
    assert (found.cause, found.because) == (
        "not supported by the runtime",
        "iree 3.13.0 does not parse the sdy dialect. A conversion that keeps its custom calls does not help: "
        "afterwards iree 3.13.0 does not compile it: only jax registers lapack_spotrf_ffi; compute with operations "
        "that need no LAPACK.",
    )
    assert found.steps == (
        "Compute with operations that need none of those custom calls, and export again.",
        "Conversion seldom helps: iree 3.13.0 lacks most of what replaces its custom calls.",
    )


def test_a_forecast_failure_of_a_runtime_has_its_known_cause():
    """No release registers the custom call, so neither a bisection nor a bug report is advised."""
    choice = choice_of("tests.compat.test_linear_algebra.test_cholesky", "0.12.0.1", "stablehlo==0.12.0.1")
    found = explain(choice, judged(choice, Verdict.CRASH, stage=Stage.RUN, message="died by signal 6 (SIGABRT)"))
    assert found.because == (
        "stablehlo 0.12.0.1 does not run it: only jax registers lapack_spotrf_ffi; compute with operations that need "
        "no LAPACK."
    )
    assert "bisect" not in str(found.steps)
    assert "Report it" not in str(found.steps)
    assert "`--readers stablehlo==0.12.0.1`" in found.earlier[-1]


@pytest.mark.parametrize(
    ("works", "suggested"),
    [(("0.12.0.1", "litert==2.3.0"), ""), (("litert==2.3.0", "iree==3.9.0"), "iree 3.9.0")],
)
def test_the_suggested_release_is_of_the_same_runtime(works, suggested, choice):
    def result_in(name):
        (reader,) = runtime_readers(name, CALENDAR) if name[0].isalpha() else [CALENDAR.release(name)]
        return msgspec.structs.replace(judged(choice, Verdict.PASS, **WRONG), reader=reader)

    chosen = dataclasses.replace(choice, stored=tuple(map(result_in, works)))
    steps = explain(chosen, judged(choice, Verdict.NUMERICS, **WRONG)).steps
    step = f"Read it with a release in which it works: {suggested}."
    assert [step for step in steps if step.startswith("Read it with")] == ([step] if suggested else [])


@pytest.mark.parametrize("looks_like", ["the elements that differ are zero", "beyond the range: up to 3e+12", ""])
def test_no_policy_rule_is_suggested_for_zeros_or_huge_numbers(looks_like, choice):
    steps = " ".join(explain(choice, judged(choice, Verdict.NUMERICS, **WRONG, looks_like=looks_like)).steps)
    assert ("allow them with a rule" in steps) is not bool(looks_like)
    assert ("No rule allows such numbers" in steps) is bool(looks_like)


# --- since which release ----------------------------------------------------------------------------------------------


def test_a_bisection_tries_the_releases_of_the_runtime():
    bad, good = (runtime_readers(f"tensorflow=={version}", CALENDAR)[0] for version in ("2.18.1", "2.21.0"))
    row = [release.name for release in bisection.between(good, bad, CALENDAR)]
    assert row == [f"tensorflow=={version}" for version in ("2.21.0", "2.19.1", "2.20.0", "2.18.1")]  # by build date
    parts = [(part.name, part.good, part.bad) for part in changes_between(good, bad, CALENDAR)]
    assert parts == [("tensorflow", "2.21.0", "2.18.1"), ("StableHLO", "1.13.7", "1.7.3")]


@pytest.mark.parametrize(
    ("case", "is_hopeless"), [("test_linear_algebra.test_cholesky", True), ("test_models.test_convolution", False)]
)
def test_a_bisection_says_if_no_release_of_the_runtime_passes(case, is_hopeless, monkeypatch):
    def refused(cells, *_, **__):
        for cell in cells:
            yield cell, new_result(cell, Stage.DESERIALIZE, Verdict.REFUSED, "no")

    monkeypatch.setattr(cached_replay, "replay_here", refused)
    choice = choice_of(f"tests.compat.{case}", "0.12.0.1", "iree==3.13.0")
    found = bisection.bisect(choice, print)
    assert found.exit_code == 3
    why = "No release can be good: by its bytes, the artifact runs in no known release of iree ("
    assert (why in found.message) is is_hopeless
    assert ("Name one with --good" in found.message) is not is_hopeless


# --- a bundle ---------------------------------------------------------------------------------------------------------

HALF = """
import numpy as np


def warm():
    pass


def run(call, leaves, stage):
    stage("run")
    assert open(call["module"], "rb").read(4) == b"ML\\xefR"
    return [np.zeros([size or 1 for size in shape], dtype) for dtype, shape, _ in call["outputs"]]
"""


@pytest.mark.parametrize(("numbers", "code"), [("of the writer", 1), ("of the runtime", 0)])
def test_a_bundle_needs_only_the_runtime_to_show_the_failure(numbers, code, choice, tmp_path, monkeypatch):
    half = tmp_path / "zero_worker.py"
    half.write_text(HALF)
    zero = msgspec.structs.replace(runtime_of("iree==3.13.0"), worker=half.name, folder=tmp_path)
    monkeypatch.setattr(runtimes, "known_runtimes", lambda: {"iree": zero})
    result = judged(choice, Verdict.NUMERICS, **WRONG)
    program = program_of(choice, result)
    if numbers == "of the runtime":
        zeros = [
            dataclasses.replace(leaf, data=leaf.data * 0) for leaf in from_npz(choice.cell.golden.folder / OUTPUTS)
        ]
        program = dataclasses.replace(program, text="module {}", outputs=to_npz(zeros))  # as a reduction leaves it
    folder = tmp_path / "bundle"
    write_bundle(folder, choice, result, explain(choice, result), program)
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [sys.executable, "-P", str(folder / SCRIPT)], capture_output=True, text=True, check=False, cwd="/", env=bare
    )
    assert ended.returncode == code, ended.stderr
    assert "reported: ran with different numbers in iree 3.13.0" in ended.stdout
    assert ("its numbers are those" in ended.stdout) is (code == 0)
    text = (folder / "issue.md").read_text()
    assert "https://github.com/iree-org/iree/issues" in text
    assert "and needs only iree" in text
    assert "iree promises nothing about such artifacts" in text
    assert "--info" not in text
    assert json.loads((folder / "call.json").read_text())["worker"] == "zero_worker.py"
    head = (folder / SCRIPT).read_text().partition("# ///\n")[0]
    assert '"iree-base-compiler==3.13.0"' in head
    assert '"iree-base-runtime==3.13.0"' in head
    assert "jax" not in head
