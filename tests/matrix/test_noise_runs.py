"""The measurement of noise: which runs are made, what their outputs give, and what becomes of runs that fail."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from making import files, manifest, release, write_golden

from export_core.base.tolerances import FLOATS
from export_core.goldens import Check, Comparison, Golden, GoldenStore
from export_core.goldens.arrays import from_npz, leaf_of, to_npz
from export_core.goldens.manifest import NoiseRecord, UndecidedOutput
from export_core.goldens.store import INPUTS, NOISE, OUTPUTS
from export_core.numbers import measuring_noise
from export_core.numbers.compare import GoldenOutputs
from export_core.numbers.measuring_noise import (
    MOVED,
    NOT_ROUNDED,
    OPTIONS,
    UNOPTIMIZED,
    MeasuredNoise,
    known_noise,
    measure_noise,
    with_noise,
)
from export_core.numbers.noise import call_noise, outputs_to_name
from export_core.policy import Policy
from export_core.readers.environment import this_interpreter
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.hardware import instruction_set
from export_core.readers.worker.first_run import FirstRuns
from export_core.readers.worker.protocol import Reply, Request, Stage, VariantRequest

PLAIN = np.asarray([1.0, 2.0], np.float32)
OK = Reply(Stage.RUN, "ok")


class FakeWorker:
    """A worker that writes the outputs of each variant, and gives the replies of the test."""

    def __init__(self, outputs_of: Callable[[str], object] = lambda name: PLAIN, *replies: Reply) -> None:
        self.outputs_of = outputs_of
        self.dies_cold = False
        self.replies = [*replies, OK]
        self.requests: list[Request] = []

    def submit(self, request: Request) -> Future[Reply]:
        self.requests.append(request)
        if self.dies_cold and not request.warm:
            crashed: Future[Reply] = Future()
            crashed.set_result(Reply(Stage.RUN, "crash", signal=11))
            return crashed
        assert request.warm, "until 0.9.2 linear algebra dies in any other process"
        for check in request.checks:
            if check.outputs is not None:
                for name, path in (("plain", check.outputs), *((one.name, one.outputs) for one in check.variants)):
                    assert path.endswith(".npz"), "NumPy would add it"
                    Path(path).write_bytes(to_npz([leaf_of(np.asarray(self.outputs_of(name)))]))
        future: Future[Reply] = Future()
        future.set_result(self.replies.pop(0))
        return future

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


@pytest.fixture
def golden(tmp_path) -> Golden:
    return write_golden(GoldenStore(tmp_path / "golden"), manifest())


def measured(golden: Golden, worker: FakeWorker) -> MeasuredNoise:
    """Return the noise of a golden that this worker runs."""
    noise = measure_noise(golden, this_interpreter(release("0.12.0.1")), worker)
    assert isinstance(noise, MeasuredNoise), noise
    return noise


def noise_in(golden: Golden, noise: MeasuredNoise, tmp_path: Path) -> list[float]:
    """Return the noise of each element of the first output, as a golden stores it."""
    changed, content = with_noise(golden.manifest, golden.files(), noise)
    stored = write_golden(GoldenStore(tmp_path / "with noise"), changed, content)
    stored.verify()
    return stored.noise()[OUTPUTS][0].tolist()


MOVED_NAMES = [f"moved {number}" for number in range(MOVED)]
INSIDE_NAMES = [UNOPTIMIZED, *(f"inside {n}" for n in range(24)), *(f"amplified {n}" for n in range(4))]


def own_variants(request: Request) -> dict[str, VariantRequest]:
    """Return the variants of a request that measure noise, by name, without those with entirely different inputs."""
    variants = request.checks[0].variants
    count = sum(variant.limited for variant in variants)
    assert all(variant.limited for variant in variants[:count]), "the compiled program is there only at first"
    return {variant.name: variant for variant in variants[count:]}


def test_noise_runs_perturb_inputs_or_inner_results(golden):
    worker = FakeWorker()
    record = measured(golden, worker).record
    (request,) = worker.requests
    variants = own_variants(request)
    assert list(variants) == [*MOVED_NAMES, *INSIDE_NAMES]
    assert {variants[name].numbers for name in MOVED_NAMES} == {()}
    # So that one compilation serves all.
    assert [variants[name].options for name in INSIDE_NAMES] == [OPTIONS] * len(INSIDE_NAMES)
    seeds = {variants[name].numbers for name in INSIDE_NAMES}
    assert len(seeds) == len(INSIDE_NAMES)
    assert request.warm
    assert (record.moved, record.inside, record.amplified, record.compiled) == (MOVED, 24, 4, (UNOPTIMIZED,))
    assert record.failed == {}


def test_without_float_inputs_noise_runs_move_only_inner_results(tmp_path):
    content = {**files(), INPUTS: to_npz([leaf_of(np.arange(3))])}
    golden = write_golden(GoldenStore(tmp_path / "golden"), manifest(), content)
    worker = FakeWorker()
    record = measured(golden, worker).record
    (request,) = worker.requests
    variants = own_variants(request)
    assert list(variants) == INSIDE_NAMES
    assert {variant.inputs for variant in variants.values()} == {request.checks[0].inputs}
    assert (record.moved, record.inside) == (0, 24)


@pytest.mark.parametrize(
    ("why", "recorded"),
    [
        (f"{NOT_ROUNDED}: the program has no result that is rounded", {}),
        ("MLIRError: no", dict.fromkeys(["amplified", "inside", UNOPTIMIZED], "MLIRError: no")),
    ],
    ids=["nothing is rounded", "all fail alike"],
)
def test_inner_noise_runs_that_all_fail_alike_are_recorded_once(golden, why, recorded):
    failed = Reply(Stage.RUN, "ok", failed=dict.fromkeys(INSIDE_NAMES, why))
    record = measured(golden, FakeWorker(lambda name: PLAIN, failed)).record
    assert (record.moved, record.inside, record.amplified, record.compiled) == (MOVED, 0, 0, ())
    assert record.failed == recorded


@pytest.mark.parametrize("failing", ["all", "none rounded", "only inside", "of a derivative"])
def test_outputs_without_measured_noise_are_compared_by_tolerance(tmp_path, failing):
    """Whole numbers only, and no run of the rewritten program ends: it is not known that nothing moves."""
    outputs = files() | {"vjp1-outputs.npz": files()[OUTPUTS]}
    content = {**outputs, INPUTS: to_npz([leaf_of(np.arange(3.0 if failing == "only inside" else 3))])}
    checks = {"vjp1": Check("vjp1", vjp=1, inputs=INPUTS, outputs="vjp1-outputs.npz")}
    how = {"checks": tuple(checks.values())} if failing == "of a derivative" else {}
    content = content if how else {name: data for name, data in content.items() if name != "vjp1-outputs.npz"}
    golden = write_golden(GoldenStore(tmp_path / "golden"), manifest(**how), content)
    prefix = "vjp1/" if failing == "of a derivative" else ""
    why = f"{NOT_ROUNDED}: the program has no result that is rounded" if failing == "none rounded" else "took too long"
    names = [f"{prefix}{name}" for name in INSIDE_NAMES]
    worker = FakeWorker(lambda name: PLAIN, Reply(Stage.RUN, "ok", failed=dict.fromkeys(names, why)))
    noise = measured(golden, worker)
    unmeasured = {"all": ("",), "of a derivative": ("vjp1",)}.get(failing, ())
    assert noise.record.unmeasured == unmeasured
    written = write_golden(GoldenStore(tmp_path / "with"), *with_noise(golden.manifest, golden.files(), noise))
    by_noise = {name or "plain" for name in ("", "vjp1") if name not in unmeasured}
    assert {check.name or "plain" for file, check in written.calls.items() if file in call_noise(written)} <= by_noise
    named = [text for text in outputs_to_name(noise.record) if "nothing was measured" in text]
    assert len(named) == len(unmeasured)
    check = written.calls["vjp1-outputs.npz" if prefix else OUTPUTS]
    expected = from_npz(written.folder / (check.outputs or ""))
    near = [leaf_of(np.asarray(leaf.numpy() * np.float32(1 + 2e-6))) for leaf in expected]
    assert GoldenOutputs(written, "cpu", {}).compare(check, expected, near).ok is bool(unmeasured)


def test_a_rewritten_program_with_other_numbers_gives_no_noise(golden):
    """A release may compile the rewritten program to something else, so that its runs differ from the plain run."""
    moved = {name: np.float32(1e-6 * number) for number, name in enumerate(INSIDE_NAMES)}
    record = measured(
        golden, FakeWorker(lambda name: PLAIN + np.float32(0.1) + moved[name] if name in moved else PLAIN)
    ).record
    assert set(record.failed.values()) == {measuring_noise.OTHER_NUMBERS}
    assert (record.moved, record.inside, record.amplified, record.compiled) == (MOVED, 0, 0, ())
    rounded = measured(golden, FakeWorker(lambda name: PLAIN * (1 + moved[name]) if name in moved else PLAIN)).record
    assert (rounded.failed, rounded.inside) == ({}, 24)


def test_elements_moved_out_of_proportion_are_recorded(golden, tmp_path):
    """64 units move the second element by 0.5, one unit by nothing."""
    jump = np.asarray([0.0, 0.5], np.float32)
    worker = FakeWorker(lambda name: PLAIN + jump * name.startswith("amplified"))
    noise = measured(golden, worker)
    assert noise.record.jumping == {"0": (1, 2)}
    assert noise_in(golden, noise, tmp_path) == pytest.approx([0, 0.25])


def test_storing_noise_never_rounds_it_down(golden, tmp_path):
    worker = FakeWorker(lambda name: PLAIN + np.float32([0.001, 0.0]) if name == "inside 1" else PLAIN)
    noise, zero = noise_in(golden, measured(golden, worker), tmp_path)
    assert 0.001 <= noise <= 0.001 * 2 ** (1 / 8) * 1.001
    assert zero == 0


def test_a_noise_run_that_raises_is_left_out_and_named(golden, tmp_path):
    raised = Reply(Stage.RUN, "ok", failed={UNOPTIMIZED: "ValueError: No such option\nmore"})
    worker = FakeWorker(lambda name: PLAIN + (name == UNOPTIMIZED), raised)
    noise = measured(golden, worker)
    assert noise.record.failed == {UNOPTIMIZED: "ValueError: No such option"}
    assert noise.record.compiled == ()
    assert noise_in(golden, noise, tmp_path) == [0, 0]


DIED, ABORTED = "died by signal 11 (SIGSEGV)", "died by signal 6 (SIGABRT)"
INSIDE = ["amplified", "inside", UNOPTIMIZED]


@pytest.mark.parametrize(
    ("reply", "failed", "moved", "inside", "again"),
    [
        (
            Reply(Stage.RUN, "crash", variant="moved 2", signal=11, failed={"moved 0": "ValueError: no"}),
            {"moved 0": "ValueError: no", "moved 2": DIED},
            *(MOVED - 2, 24, ["moved 1", *MOVED_NAMES[3:], *INSIDE_NAMES]),
        ),
        (
            Reply(Stage.RUN, "crash", variant=UNOPTIMIZED, signal=6),
            dict.fromkeys(INSIDE, ABORTED),
            *(MOVED, 0, MOVED_NAMES),
        ),
        (
            Reply(Stage.RUN, "timeout", variant="moved 4"),
            dict.fromkeys(["moved 4", "moved 5", *INSIDE], "took more than 240 seconds of processor time"),
            *(4, 0, MOVED_NAMES[:4]),
        ),
    ],
    ids=["a run that dies", "a program that dies is compiled once", "only what was before a timeout"],
)
def test_a_second_try_leaves_out_runs_that_ended_the_process(golden, reply, failed, moved, inside, again):
    worker = FakeWorker(lambda name: PLAIN, reply)
    record = measured(golden, worker).record
    assert (record.failed, record.moved, record.inside) == (failed, moved, inside)
    assert [variant.name for variant in worker.requests[1].checks[0].variants] == again


def test_runs_with_other_inputs_do_not_count_as_noise(golden):
    died = Reply(Stage.RUN, "crash", variant="other 3", signal=14)
    worker = FakeWorker(lambda name: PLAIN + name.startswith(("other", "small", "alone")), died)
    noise = measured(golden, worker)
    assert (noise.record.failed, noise.record.undecided_outputs, noise.remarks) == ({}, {}, ())
    assert [len(request.checks[0].variants) - len(own_variants(request)) > 0 for request in worker.requests] == [1, 0]


@pytest.mark.parametrize("raised", [{}, {"other 5": "ValueError: no"}], ids=["all run", "one raises"])
def test_an_output_unchanged_by_all_other_inputs_has_a_remark(golden, raised):
    noise = measured(golden, FakeWorker(lambda name: PLAIN, Reply(Stage.RUN, "ok", failed=raised)))
    count = 16 - len(raised)
    text = f"its 2 elements are the same with all of {count} other inputs too: choose inputs on which it depends"
    assert [(remark.leaf, remark.text) for remark in noise.remarks] == [("result", text)]
    assert noise.record.failed == {}


def test_a_warm_process_replaces_a_cold_one_that_dies(golden):
    worker = FakeWorker()
    worker.dies_cold = True
    noise = measure_noise(golden, this_interpreter(release("0.12.0.1")), worker, first_runs=FirstRuns())
    assert isinstance(noise, MeasuredNoise), noise
    assert [remark.leaf for remark in noise.remarks] == ["result"]
    assert [request.warm for request in worker.requests] == [False, True]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(Stage.RUN, "crash", signal=11), "died by signal 11 (SIGSEGV)"),
        (Reply(Stage.COMPILE, "error", type="ValueError", message="no\nmore"), "ValueError: no"),
        (Reply(Stage.RUN, "timeout"), "took more than 240 seconds of processor time"),
    ],
)
def test_a_golden_that_does_not_run_has_no_noise(golden, reply, reason):
    worker = FakeWorker(lambda name: PLAIN, reply)
    assert measure_noise(golden, this_interpreter(release("0.12.0.1")), worker) == reason


@pytest.mark.parametrize("refused_on", [(), ("cpu",)])
def test_a_golden_for_other_platforms_is_not_run(tmp_path, refused_on):
    made = manifest()
    options = msgspec.structs.replace(made.options, platforms=("cuda",), refused_on=refused_on)
    golden = write_golden(GoldenStore(tmp_path / "golden"), msgspec.structs.replace(made, options=options))
    worker = FakeWorker()
    reason = measure_noise(golden, this_interpreter(release("0.12.0.1")), worker)
    assert (reason, worker.requests) == ("it was exported for other platforms than cpu", [])


def test_outputs_far_off_in_a_noise_run_count_as_noise(golden):
    worker = FakeWorker(lambda name: PLAIN * 2 if name == "moved 3" else PLAIN)
    noise = measured(golden, worker)
    assert noise.record.failed == {}
    assert noise.record.undecided_outputs == {"0": UndecidedOutput(2, 2, noise=2.0, largest=1.0, leaf="result")}
    assert noise.proves_nothing


def test_a_noise_run_with_outputs_of_other_types_is_left_out(golden):
    worker = FakeWorker(lambda name: PLAIN[:1] if name == "inside 1" else PLAIN)
    assert measured(golden, worker).record.failed == {"inside 1": "its outputs have other types"}


def test_calls_with_the_same_outputs_share_noise(tmp_path):
    made = manifest(checks=(Check("again", outputs=OUTPUTS),))
    golden = write_golden(GoldenStore(tmp_path / "golden"), made)
    worker = FakeWorker(lambda name: PLAIN + np.float32(0.0625) * (name == "again/inside 1"))
    noise = measured(golden, worker)
    assert len(from_npz(noise.data)) == 1
    assert noise_in(golden, noise, tmp_path) == [0.0625, 0.0625]


@pytest.mark.parametrize("dtype", sorted(FLOATS))
def test_noise_takes_no_more_room_than_outputs(dtype, tmp_path):
    import ml_dtypes

    values = np.linspace(0.5, 4, 64).astype(getattr(ml_dtypes, dtype, None) or dtype)
    outputs = to_npz([leaf_of(values)])
    golden = write_golden(GoldenStore(tmp_path / "golden"), manifest(), {**files(), OUTPUTS: outputs})
    worker = FakeWorker(lambda name: values if name != "inside 1" else np.roll(values, 1))
    noise = measured(golden, worker)
    assert len(noise.data) <= len(outputs)
    changed, content = with_noise(golden.manifest, golden.files(), noise)
    stored = write_golden(GoldenStore(tmp_path / "with noise"), changed, content)
    (stored_noise,) = stored.noise()[OUTPUTS]
    moved = np.abs(values.astype(complex) - np.roll(values, 1).astype(complex))
    # Of 8 bits and fewer it is half of the jump, and twice the jump is allowed.
    assert (stored_noise >= moved * (0.499 if leaf_of(values).data.itemsize == 1 else 0.999)).all()
    assert NOISE in stored.manifest.files


def stored_with_noise(golden: Golden, tmp_path: Path, **fields: object) -> GoldenStore:
    """Return a store with this golden and its noise, whose record has these fields."""
    noise = measured(golden, FakeWorker())
    noise = replace(noise, record=msgspec.structs.replace(noise.record, **fields))
    store = GoldenStore(tmp_path / "stored")
    write_golden(store, *with_noise(golden.manifest, golden.files(), noise))
    return store


@pytest.fixture
def written(tmp_path) -> Golden:
    """A golden by this processor, without noise."""
    return write_golden(GoldenStore(tmp_path / "golden"), manifest(instruction_set=instruction_set()))


def test_noise_of_an_equal_golden_is_reused(written, tmp_path):
    known = known_noise(stored_with_noise(written, tmp_path), written.manifest)
    assert known == replace(measured(written, FakeWorker()), remarks=())


ANOTHER_PROCESSOR = {"instruction_set": "x86_64 SSE4_2"}


@pytest.mark.parametrize(
    ("changes", "measured_by"),
    [
        (ANOTHER_PROCESSOR, {}),
        ({"comparison": Comparison(rtol=0.1)}, {}),
        ({"flags": {"jax_enable_x64": True}}, {}),
        ({"files": {"artifact.jaxexport": "0" * 64}}, {}),
        ({}, {"jaxlib": "0.11.2"}),
        ({}, ANOTHER_PROCESSOR),
    ],
)
def test_noise_of_another_golden_is_not_reused(written, tmp_path, changes, measured_by):
    store = stored_with_noise(written, tmp_path, **measured_by)
    assert known_noise(store, msgspec.structs.replace(written.manifest, **changes)) is None


def test_damaged_noise_is_not_reused(written, tmp_path):
    store = stored_with_noise(written, tmp_path)
    (stored,) = store.goldens()
    (stored.folder / NOISE).write_bytes(b"damaged")
    assert known_noise(store, written.manifest) is None
    assert known_noise(GoldenStore(tmp_path / "empty"), written.manifest) is None


@pytest.mark.parametrize(("call", "kernel"), [("lapack_spotrf_ffi", "Haswell"), ("tpu_custom_call", "")])
def test_noise_of_lapack_calls_includes_another_openblas_kernel(tmp_path, monkeypatch, call, kernel):
    monkeypatch.setattr(measuring_noise, "other_openblas_core", lambda variables: "Haswell")
    started: list[str] = []
    kernel_worker = FakeWorker(lambda name: PLAIN + np.float32([0.0, 0.5]))

    class Kernels:
        def start(self, environment, slots):
            started.append(environment.variables["OPENBLAS_CORETYPE"])
            return kernel_worker

        def close(self):
            """Do nothing: there is nothing to close."""

    monkeypatch.setattr(measuring_noise, "WarmWorkers", Kernels)
    golden = write_golden(GoldenStore(tmp_path / "golden"), manifest(custom_calls=(call,)))
    environment = this_interpreter(release("0.12.0.1"))
    other = measuring_noise.OtherKernel()
    noise = measure_noise(golden, environment, FakeWorker(), other)
    assert isinstance(noise, MeasuredNoise), noise
    assert (noise.record.kernel, started) == (kernel, [kernel] if kernel else [])
    assert all(request.warm for request in kernel_worker.requests), "a cold process dies at a call of LAPACK"
    assert noise_in(golden, noise, tmp_path)[1] == (0.5 if kernel else 0)


# --- the release that measures ----------------------------------------------------------------------------------------


class Worker:
    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def in_these_readers(monkeypatch, noise, build=lambda _, placement: this_interpreter(placement.reader)) -> None:
    monkeypatch.setattr(measuring_noise.ReaderEnvironments, "build", build)
    monkeypatch.setattr(measuring_noise, "start_worker", lambda *_, **__: Worker())
    monkeypatch.setattr(measuring_noise, "measure_noise", noise)


def measured_by(jaxlib: str) -> MeasuredNoise:
    return MeasuredNoise(NoiseRecord(jaxlib, "", 6, ()), b"", False)


@pytest.fixture
def measured_in(tmp_path, monkeypatch):
    """A function that measures a golden by 0.9.2; it returns the tried releases, and which one did, or why none did.

    The environments of releases in `unbuilt` cannot be built; releases in `not_run` cannot run the golden.
    """

    def measure(unbuilt: set[str], not_run: set[str]) -> tuple[list[str], object]:
        tried = []

        def build(self, placement):
            tried.append(placement.reader.jaxlib)
            if tried[-1] in unbuilt:
                raise EnvironmentFailed(f"no {tried[-1]}")
            return this_interpreter(placement.reader)

        def noise(golden, environment, worker, other):
            jaxlib = environment.release.jaxlib
            return f"fails in {jaxlib}" if jaxlib in not_run else measured_by(jaxlib)

        in_these_readers(monkeypatch, noise, build)
        golden = write_golden(GoldenStore(tmp_path / "golden"), manifest(jaxlib="0.9.2"))
        ((_, measured_noise),) = measuring_noise.measure_goldens([golden], Policy(), lambda text: None)
        return tried, measured_noise if isinstance(measured_noise, str) else measured_noise.record.jaxlib

    return measure


@pytest.mark.parametrize(
    ("unbuilt", "not_run", "tried", "by"),
    [
        (set(), set(), ["0.9.2"], "0.9.2"),
        (set(), {"0.9.2"}, ["0.9.2"], "fails in 0.9.2"),
        ({"0.9.2"}, set(), ["0.9.2", "0.10.0"], "0.10.0"),
        ({"0.9.2"}, {"0.10.0"}, ["0.9.2", "0.10.0", "0.10.1"], "0.10.1"),
    ],
    ids=["its writer", "no other release where its writer fails", "the oldest later release", "that runs it"],
)
def test_the_oldest_release_that_runs_a_golden_measures_noise(unbuilt, not_run, tried, by, measured_in):
    assert measured_in(unbuilt, not_run) == (tried, by)


def test_if_no_release_can_be_built_the_writers_error_is_shown(measured_in):
    tried, reason = measured_in({*measuring_noise.Policy().calendar().versions()}, set())
    assert (tried[:2], reason) == (["0.9.2", "0.10.0"], "no 0.9.2")


def test_noise_of_a_golden_is_returned_before_the_next_is_measured(tmp_path, monkeypatch):
    """An interruption loses no noise that was measured."""
    is_first_known = threading.Event()

    def noise(golden, *_):
        assert golden.manifest.case == "t.a" or is_first_known.wait(20)
        return measured_by("0.9.2")

    in_these_readers(monkeypatch, noise)
    store = GoldenStore(tmp_path / "golden")
    goldens = [write_golden(store, manifest(case=case, jaxlib="0.9.2")) for case in ("t.a", "t.b")]
    measurements = measuring_noise.measure_goldens(goldens, Policy(), lambda text: None)
    assert next(measurements)[0] is goldens[0]
    is_first_known.set()
    assert next(measurements)[0] is goldens[1]


def test_a_progress_line_names_the_measured_golden(tmp_path, monkeypatch):
    in_these_readers(monkeypatch, lambda *_: "not now")
    store, lines = GoldenStore(tmp_path / "golden"), []
    goldens = [write_golden(store, manifest(case=case, jaxlib="0.9.2")) for case in ("t.a", "t.b")]
    list(measuring_noise.measure_goldens(goldens, Policy(), lines.append))
    assert sorted(lines) == [
        "measuring the noise of t.a/0.9.2-cpu (1 of 2 by this writer)",
        "measuring the noise of t.b/0.9.2-cpu (2 of 2 by this writer)",
    ]
