"""The verdict that follows from the reply of a worker."""

from pathlib import Path

import msgspec
import pytest
from making import golden, release

from export_core.base.errors import InfrastructureFault
from export_core.goldens import GoldenError, Options
from export_core.matrix import Cell, Verdict
from export_core.matrix import outcome as outcome_module
from export_core.matrix.outcome import CallResults, machine_fault, outcome_of
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.selection import reader_named
from export_core.numbers import CompareError
from export_core.numbers.compare import Difference
from export_core.policy.run_options import GIB, CellLimits
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Reply, Stage
from export_core.releases import load_calendar

NO_DRIVER = "operation cuInit(0) failed"
OPTIONS = ReplayOptions(load_calendar(), limits=CellLimits(jobs=1, timeout=7, memory=3 * GIB // 2))


def ended(stage, end, *, reader="0.12.0.1", mode=Mode.RUN, calls=(), without_outputs="", **reply):
    """Return the outcome of a cell whose process ended in this way."""
    options = Options(("cpu",), without_outputs=without_outputs)
    cell = Cell(golden(custom_calls=calls, options=options), release(reader), "cpu", mode)
    return outcome_of(cell, Reply(stage, end, **reply), Path("nowhere"), OPTIONS)


def ran(monkeypatch, results, **changes):
    """Return the outcome of a cell whose calls all ended, with this result of the comparison."""

    def check_calls(*_):
        if isinstance(results, Exception):
            raise results
        return results

    monkeypatch.setattr(outcome_module, "check_calls", check_calls)
    return ended(Stage.RUN, "ok", **changes)


def test_only_pass_compiled_and_converted_count_as_working():
    assert {verdict for verdict in Verdict if verdict.works} == {"pass", "compiled", "converted"}
    assert {verdict for verdict in Verdict if verdict.fails} == {"numerics", "refused", "error", "crash", "timeout"}
    assert {verdict for verdict in Verdict if verdict.is_compared} == {"pass", "converted", "numerics"}


@pytest.mark.parametrize(
    ("platform", "mode", "message", "verdict"),
    [
        ("cuda", Mode.COMPILE, NO_DRIVER, Verdict.NOT_RUN),
        ("cuda", Mode.COMPILE, "the artifact is wrong", Verdict.ERROR),
        ("cuda", Mode.RUN, NO_DRIVER, Verdict.ERROR),
        ("tpu", Mode.COMPILE, NO_DRIVER, Verdict.ERROR),
    ],
)
def test_a_cell_whose_compiler_lacks_its_driver_is_not_run(platform, mode, message, verdict):
    cell = Cell(golden(), release("0.12.0.1"), platform, mode)
    reply = Reply(Stage.COMPILE, "error", type="XlaRuntimeError", message=message)
    outcome = outcome_of(cell, reply, Path("nowhere"), ReplayOptions(load_calendar(), limits=CellLimits(jobs=1)))
    assert (outcome.verdict, outcome.stage) == (verdict, Stage.COMPILE)
    assert message in outcome.message


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"type": "RuntimeError", "message": "no device"}, "RuntimeError: no device"),
        ({"message": "no device"}, "no device"),
        ({"signal": 11}, "signal 11 (SIGSEGV)"),
        ({}, "crash"),
    ],
)
def test_a_cell_without_its_device_was_not_run(reply, reason):
    outcome = ended(Stage.ENVIRONMENT, "crash", **reply)
    assert (outcome.verdict, outcome.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
    assert outcome.message == f"jaxlib 0.12.0.1 has no cpu here: {reason}"


@pytest.mark.parametrize(
    ("reply", "verdict", "message"),
    [
        ({"end": "timeout"}, Verdict.TIMEOUT, "still in stage run after 7 s, killed"),
        ({"end": "timeout", "check": "vjp"}, Verdict.TIMEOUT, "vjp: still in stage run after 7 s, killed"),
        ({"end": "memory"}, Verdict.CRASH, "killed: it used more than the limit of 1.5 GiB"),
        ({"end": "crash", "signal": 11}, Verdict.CRASH, "died by signal 11 (SIGSEGV)"),
        ({"end": "crash", "message": "aborted", "check": "vjp"}, Verdict.CRASH, "vjp: aborted"),
        ({"end": "error", "type": "ValueError", "message": "no"}, Verdict.ERROR, "ValueError: no"),
    ],
)
def test_each_end_of_a_cell_has_its_verdict(reply, verdict, message):
    outcome = ended(Stage.RUN, **reply)
    assert (outcome.verdict, outcome.stage, outcome.message) == (verdict, Stage.RUN, message)


@pytest.mark.parametrize(("number", "is_fault"), [(0, 0), (1, 1), (2, 1), (3, 0), (8, 0), (9, 1), (10, 0), (11, 0),
                                                  (14, 0), (15, 1), (16, 0), (None, 0)])  # fmt: skip
def test_only_signals_from_outside_are_machine_faults(number, is_fault):
    fault = machine_fault(Reply(Stage.RUN, "crash", signal=number))
    assert fault.startswith(f"killed from outside, by signal {number} (") == bool(is_fault)
    assert bool(fault) == bool(is_fault)


@pytest.mark.parametrize(
    ("reply", "message"), [({"type": "OSError", "message": "full"}, "OSError: full"), ({"message": "full"}, "full")]
)
def test_a_machine_fault_has_the_message_of_the_worker(reply, message):
    assert machine_fault(Reply(Stage.RUN, "fault", **reply)) == message


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        (CallResults(Difference(ok=True)), Verdict.PASS),
        (CallResults(Difference(ok=True), "", "a digest", as_written=True), Verdict.PASS),
        (CallResults(Difference(ok=True), "it is not refused"), Verdict.ERROR),
        (CallResults(Difference(ok=False), "too far"), Verdict.NUMERICS),
    ],
)
def test_the_comparison_decides_the_verdict(results, verdict, monkeypatch):
    outcome = ran(monkeypatch, results)
    assert (outcome.verdict, outcome.stage, outcome.message) == (verdict, Stage.COMPARE, results.problem)
    assert {name: getattr(outcome, name) for name in results.found} == results.found


@pytest.mark.parametrize(
    ("problem", "reason", "verdict", "message"),
    [
        ("", "", Verdict.COMPILED, ""),
        ("", "no TPU here", Verdict.COMPILED, "the golden has no outputs: no TPU here"),
        ("it is not refused", "no TPU here", Verdict.ERROR, "it is not refused"),
    ],
)
def test_a_cell_in_compile_mode_has_the_verdict_compiled(problem, reason, verdict, message, monkeypatch):
    results = CallResults(Difference(ok=True), problem)
    outcome = ran(monkeypatch, results, mode=Mode.COMPILE, without_outputs=reason)
    assert (outcome.verdict, outcome.stage, outcome.message) == (verdict, Stage.COMPILE, message)
    assert (outcome.max_abs_error, outcome.outputs, outcome.as_written) == (None, "", False)


def test_a_failing_comparator_does_not_blame_the_reader(monkeypatch):
    outcome = ran(monkeypatch, CompareError("no such comparator"))
    assert (outcome.verdict, outcome.stage, outcome.message) == (Verdict.NOT_RUN, Stage.COMPARE, "no such comparator")


def test_unreadable_outputs_are_a_machine_fault(monkeypatch):
    with pytest.raises(InfrastructureFault, match="outputs are gone"):
        ran(monkeypatch, GoldenError("outputs are gone"))


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({"type": "ModuleNotFoundError", "message": "ModuleNotFoundError: flax"}, "ModuleNotFoundError: flax. The pol"),
        ({"type": "ValueError", "message": "bad"}, "bad"),
        ({"type": "ValueError"}, "ValueError"),
    ],
)
def test_a_cell_whose_python_modules_are_missing_was_not_run(reply, message):
    outcome = ended(Stage.READ, "error", **reply)
    assert outcome.verdict is Verdict.NOT_RUN
    assert outcome.message.startswith(message)
    assert ("reader_packages installs what readers need" in outcome.message) == message.endswith("pol")


@pytest.mark.parametrize(
    ("error", "verdict", "start"),
    [
        ("unknown thing", Verdict.ERROR, ()),
        ("unknown vhlo op code: 124", Verdict.REFUSED, ("StableHLO or bytecode that is newer",)),
    ],
)
def test_a_runtimes_failure_shows_three_errors_of_stderr(error, verdict, start):
    errors = [f"m.mlir:{line}: error: {error}" for line in range(4)]
    reply = Reply(Stage.COMPILE, "error", type="ValueError", message="failed", stderr="\n".join(["a note", *errors]))
    cell = Cell(golden(), reader_named("iree==3.13.0", load_calendar()), "cpu")
    outcome = outcome_of(cell, reply, Path("nowhere"), OPTIONS)
    assert outcome.verdict is verdict
    *meaning, message, one, two, three = outcome.message.splitlines()
    assert [text.partition(" than")[0] for text in meaning] == [*start]
    assert (message, one, two, three) == ("ValueError: failed", *errors[:3])


@pytest.mark.parametrize("calls", [(), ("lapack_spotrf_ffi",)])
def test_no_conversion_is_advised_if_custom_calls_would_remain(calls):
    stderr = "m.mlir:1: error: unknown vhlo op code: 124"
    reply = Reply(Stage.COMPILE, "error", type="ValueError", message="failed", stderr=stderr)
    cell = Cell(golden(custom_calls=calls), reader_named("iree==3.13.0", load_calendar()), "cpu")
    meaning, *rest = outcome_of(cell, reply, Path("nowhere"), OPTIONS).message.splitlines()
    assert meaning.startswith("StableHLO or bytecode that is newer than")
    assert ("`jaxexport convert`" in meaning, ": " in meaning) == (not calls, not calls)
    assert rest == ["ValueError: failed", stderr]


def test_whether_an_error_is_a_refusal_depends_on_the_date_of_jax():
    reply = Reply(Stage.DESERIALIZE, "error", type="NotImplementedError", message="deserialize unsupported version 3")
    old = release("0.8.1")
    cells = [Cell(golden(), msgspec.structs.replace(old, jax=jax), "cpu") for jax in ("0.8.1", "0.8.2", "unknown")]
    outcomes = [outcome_of(cell, reply, Path("nowhere"), OPTIONS) for cell in cells]
    assert {outcome.message for outcome in outcomes} == {f"{reply.type}: {reply.message}"}
    assert [outcome.verdict for outcome in outcomes] == [Verdict.REFUSED, Verdict.ERROR, Verdict.REFUSED], (
        "of an unknown jax the day of its jaxlib counts"
    )


@pytest.mark.parametrize("end", ["error", "crash"])
@pytest.mark.parametrize(
    ("stage", "calls", "message", "are_named"),
    [
        (Stage.COMPILE, ("kernel_a", "kernel_b"), "unknown attribute", True),
        (Stage.COMPILE, ("kernel_a", "kernel_b"), "kernel_b: unknown attribute", False),
        (Stage.COMPILE, (), "unknown attribute", False),
        (Stage.RUN, ("kernel_a", "kernel_b"), "unknown attribute", False),
    ],
)
def test_a_failure_to_compile_names_its_custom_calls(end, stage, calls, message, are_named):
    outcome = ended(stage, end, calls=calls, type="ValueError", message=message)
    assert outcome.message.endswith("\nIts custom calls: kernel_a, kernel_b.") == are_named
    assert ("custom calls" in outcome.message) == are_named
