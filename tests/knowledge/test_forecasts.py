"""The forecast of what a consumer does with an artifact, in which all commands agree."""

import dataclasses
import functools
import gc
import weakref
from pathlib import Path

import jax
import pytest
from jax.export import export
from jax.sharding import AbstractMesh, AxisType, PartitionSpec
from making import ARTIFACTS, day

import export_core
from export_core.artifact import Artifact, read, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import DisabledCheck
from export_core.artifact.readers import Reader, readers_of, readers_of_runtime, without_advice
from export_core.features.convert.convert import UNCHANGED, convert, find_reader
from export_core.features.convert.errors import ConversionRefused
from export_core.features.deploy.answers import DeployAnswer, Question, deployability
from export_core.features.deploy.asked import Subject
from export_core.features.forecast.forecast import foreseen_readers
from export_core.features.inspect.artifact_facts import describe
from export_core.features.inspect.audit_screen import PolicyOfGoldens, audit_text
from export_core.features.why.choice import Asked, Choice, choose
from export_core.features.why.explain.explanation import explain
from export_core.goldens import Golden, GoldenStore
from export_core.judge import judge
from export_core.knowledge import NO, UNKNOWN, YES, YES_BUT, Forecast, forecast, forecasts, usual_platform
from export_core.knowledge.forecasting import MATRIX
from export_core.matrix import Cell, Verdict
from export_core.matrix.forecasts import CellForecasts, in_words
from export_core.matrix.result import new_result
from export_core.policy.entries import DeploymentTarget
from export_core.policy.load_check import check_load
from export_core.policy.run_options import ProjectOptions, RunOptions
from export_core.policy.terms import Terms
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from export_core.releases.calendar import Release
from export_core.releases.calendar_entries import shipped_entries, shipped_runtimes

ROOT = Path(__file__).parents[2]
CALENDAR, TERMS = load_calendar(), Terms(shipped_entries())
STORE = GoldenStore(ROOT / "golden")
READERS = tuple(
    find_reader(name, CALENDAR)
    for name in (
        *("0.6.2", "0.8.1", "0.9.2", "0.10.1", "0.10.2", "0.11.1", "0.12.0.1"),
        *("tensorflow==2.21.0", "savedmodel==2.21.0", "iree==3.13.0", "litert==2.3.0", "pjrt==0.12.0.1"),
    )
)
# Folders: to read the manifests of all goldens takes seconds, in each process of pytest-xdist.
FOLDERS = sorted(STORE.root.glob("*/*-cpu"))[::18]
POLICY = PolicyOfGoldens()  # read once for all
FILES = sorted(ARTIFACTS.glob("*/*.jaxexport"))
KNOWN = "studies/known/golden/studies.known.test_programs.test_program"


def stored_artifact(file: str, writer: str = "0.12.0.1") -> Artifact:
    return read(ARTIFACTS / writer / f"{file}.jaxexport")


def golden_of(case: str) -> Golden:
    return golden_at(STORE.root / f"tests.compat.{case}" / "0.12.0.1-cpu")


def golden_at(folder: Path) -> Golden:
    return next(golden for golden in STORE.generations(folder.parent.name) if golden.folder == folder)


def of(artifact: Artifact, reader: str, platform: str = "", *settings: str) -> Forecast:
    """Return what is forecast for a reader that is named."""
    return forecast(artifact, find_reader(reader, CALENDAR), platform, settings)


def answers(known: Forecast) -> tuple[str, str, str, str]:
    """Return the four answers of a forecast: whether the artifact loads, compiles, runs, and gives the same numbers."""
    return tuple(answer.answer for answer in known.answers)


# --- the answers ------------------------------------------------------------------------------------------------------


def test_an_artifact_that_no_known_issue_concerns_runs():
    assert answers(of(stored_artifact("mlp"), "0.12.0.1")) == (YES, YES, YES, YES)


def test_an_artifact_that_does_not_load_does_not_run():
    known = of(stored_artifact("cholesky"), "0.9.2")
    assert answers(known) == (NO, NO, NO, NO)
    assert "custom_call_v2 came with" in known.runs.reasons[0].text
    assert known.load.reasons == tuple(reason.text for reason in known.loads.reasons)


def test_a_lapack_artifact_is_forecast_to_crash_in_0_9_2():
    known = of(stored_artifact("cholesky", "0.9.2"), "0.9.2")
    assert answers(known) == (YES, YES, NO, NO)
    assert known.runs.reasons[0].entry == "lapack-cold-process"
    assert known.in_words == "does not run it"
    assert answers(of(stored_artifact("cholesky", "0.9.2"), "0.10.0")) == (YES, YES, YES, YES)


def test_an_artifact_not_exported_for_a_platform_does_not_compile_there():
    known = of(stored_artifact("mlp"), "0.12.0.1", "tpu")
    assert answers(known) == (YES, NO, NO, NO)
    assert str(known.compiles.reasons[0]) == "it was exported for cpu, and not for tpu"


def test_without_its_platform_check_an_artifact_may_run_elsewhere():
    own = stored_artifact("mlp").envelope
    lifted = read_bytes(encode(own._replace(platforms=("tpu",), disabled_checks=(DisabledCheck("platform"),))))
    assert of(lifted, "0.12.0.1", "cpu").runs.answer == YES
    assert of(read_bytes(encode(own._replace(platforms=("tpu",)))), "0.12.0.1", "cpu").compiles.answer == NO
    bare = read_bytes(bytes(stored_artifact("mlp").module.serialized()))
    assert of(bare, "0.12.0.1", "cpu").compiles.answer == YES


def test_whether_an_artifact_runs_on_an_accelerator_is_unknown():
    platforms = stored_artifact("platforms")
    assert usual_platform(platforms) == "cpu"
    assert of(platforms, "0.12.0.1", "tpu").runs.answer == UNKNOWN


def test_calls_that_a_platform_lacks_are_forecast_not_to_compile():
    own = stored_artifact("cholesky", "0.9.2").envelope
    known = of(read_bytes(encode(own._replace(platforms=("tpu",)))), "0.12.0.1", "tpu")
    assert known.compiles.answer == NO
    assert str(known.compiles.reasons[0]) == "it calls lapack_spotrf_ffi, lapack_strsm_ffi, which tpu does not have"
    both = golden_of("test_platforms.test_targets_of_each_platform")  # LAPACK for the CPU, cuSOLVER for CUDA
    assert of(both.read_artifact(), "0.12.0.1", "cuda").compiles.answer == UNKNOWN


def test_a_forecast_for_an_accelerator_names_an_unpromised_call():
    golden = golden_of("test_safety_checks.test_allowed_target")
    reasons = [str(reason) for reason in of(golden.read_artifact(), "0.12.0.1", "cuda").compiles.reasons]
    assert reasons == [
        "it calls pytest_jaxexport.scale, which this reader does not promise to have",
        "nothing is known of cuda",
    ]


@pytest.mark.parametrize(
    ("platform", "dtype", "answer"), [("tpu", "int64", NO), ("tpu", "int32", UNKNOWN), ("cuda", "int64", UNKNOWN)]
)
def test_the_forecast_beyond_a_measured_limit_of_a_device_is_no(platform, dtype, answer):
    with jax.enable_x64(True):
        x = jax.ShapeDtypeStruct((4, 4), dtype)
        data = export(jax.jit(lambda x: x @ x), platforms=(platform,))(x).serialize()
    assert of(read_bytes(bytes(data)), "0.12.0.1", platform).compiles.answer == answer


def test_enough_devices_are_assumed_only_in_a_matrix():
    sharded = stored_artifact("sharded")
    known = of(sharded, "0.12.0.1")
    assert (known.compiles.answer, known.runs.answer) == (YES, YES_BUT)
    assert str(known.runs.reasons[0]) == f"it needs {sharded.devices} devices"
    assert of(sharded, "0.12.0.1", "cpu", *MATRIX).runs.answer == YES


def test_a_one_device_runtime_runs_nothing_for_several_devices():
    for name in ("iree==3.13.0", "litert==2.3.0", "tensorflow==2.21.0"):
        known = of(stored_artifact("sharded"), name)
        assert known.runs.answer == NO


def test_shardy_of_older_releases_refuses_unreduced_maxima():
    artifact = golden_of("test_reduced_axes.test_partial_extremes").read_artifact()
    answered = {name: of(artifact, name).loads.answer for name in ("0.9.1", "0.10.0", "0.10.2", "0.11.0", "0.12.0.1")}
    assert answered == {"0.9.1": NO, "0.10.0": NO, "0.10.2": NO, "0.11.0": YES, "0.12.0.1": YES}
    refused = of(artifact, "0.10.2")
    assert refused.loads.reasons[0].entry == "unreduced-by-max"
    assert (refused.load.ok, refused.load.reasons) == (False, (refused.loads.reasons[0].text,))
    assert of(artifact, "0.11.0").load.ok is True


@pytest.mark.parametrize("side", ["in_shardings", "out_shardings"])
def test_inputs_or_outputs_unreduced_by_maximum_are_doubtful(side):
    golden = golden_of("test_reduced_axes.test_partial_extremes").read_artifact()
    sharding = golden.envelope.in_shardings[0]
    left = sharding._replace(spec=sharding.spec._replace(unreduced=("a",)))
    changed = golden.envelope._replace(**{side: (left, *getattr(golden.envelope, side)[1:])})
    known = of(read_bytes(encode(changed)), "0.12.0.1", "cpu", *MATRIX)
    assert (known.compiles.answer, known.compiles.reasons[0].entry) == (YES_BUT, "unreduced-by-max-outside")
    assert of(golden, "0.12.0.1", "cpu", *MATRIX).numbers.answer == YES


def test_arguments_of_64_bits_are_forecast_to_need_x64():
    artifact = golden_of("test_dtypes.test_wide_dtype[float64]").read_artifact()
    known = of(artifact, "0.12.0.1")
    assert known.runs.answer == YES_BUT
    assert str(known.runs.reasons[0]) == "Arguments of 64 bits need jax_enable_x64 (needs-x64)"
    assert of(artifact, "0.12.0.1", "cpu", "jax_enable_x64").runs.answer == YES


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
def test_pjrt_may_get_4_bit_numbers_wrong_before_0_8_2(dtype):
    artifact = golden_of(f"test_dtypes.test_tiny_dtype[{dtype}]").read_artifact()
    assert answers(of(artifact, "pjrt==0.8.0")) == (YES, YES, YES, YES_BUT)
    assert answers(of(artifact, "pjrt==0.8.1")) == (YES, YES_BUT, YES_BUT, YES_BUT)
    assert answers(of(artifact, "pjrt==0.8.2")) == (YES, YES, YES, YES)


def test_pjrt_refuses_symbolic_shapes_and_jaxlib_runs_them():
    artifact = golden_of("test_symbolic_shapes.test_one_dimension").read_artifact()
    known = of(artifact, "pjrt==0.12.0.1")
    assert (known.loads.answer, known.compiles.answer) == (YES, NO)
    assert "pjrt-symbolic-shapes" in {reason.entry for reason in known.compiles.reasons}
    assert of(artifact, "0.12.0.1").runs.answer == YES


@pytest.mark.parametrize(
    ("golden", "reader", "entry"),
    [
        (f"{KNOWN}[odd_array_of_int4]", "iree==3.13.0", "iree-odd-4-bit-arrays"),
        ("golden/tests.compat.test_linear_algebra.test_fft", "litert==2.3.0", "litert-fft"),
        ("golden/tests.compat.test_programs.test_sort", "litert==2.3.0", "litert-sort"),
        (f"{KNOWN}[argsort_of_ties]", "litert==2.3.0", "litert-sort-without-top-k"),
    ],
    ids=lambda value: value.rpartition(".")[2],
)
def test_an_operation_that_a_runtime_refuses_is_forecast_to_fail(golden, reader, entry):
    known = of(read(ROOT / golden / "0.12.0.1-cpu" / "artifact.jaxexport"), reader)
    assert (known.loads.answer, known.runs.answer) == (YES, NO)
    assert known.runs.reasons[0].entry == entry


def test_a_sharding_call_ends_the_interpreter_unless_it_is_converted():
    """Seen in 0.9.2 and 0.12.0.1, which gave the outputs of the golden after `jaxexport convert`."""
    artifact = golden_at(STORE.root / "tests.compat.test_programs.test_random" / "0.6.2-cpu").read_artifact()
    assert {call.target for call in artifact.custom_calls} == {"Sharding"}
    for reader in ("stablehlo==0.9.2", "stablehlo==0.12.0.1"):
        (reason,) = of(artifact, reader).runs.reasons
        assert reason.entry == "stablehlo-sharding-calls"
        assert f"`jaxexport convert FILE --for {reader} -o OUT`" in reason.text


TINY = "test_dtypes.test_tiny_dtype"


@pytest.mark.parametrize(
    ("case", "reader", "entry"),
    [
        (f"{TINY}[float8_e3m4]", "tensorflow==2.21.0", "tensorflow-dtypes"),
        (f"{TINY}[float8_e8m0fnu]", "savedmodel==2.21.0", "tensorflow-dtypes"),
        (f"{TINY}[float8_e3m4]", "iree==3.13.0", "iree-dtypes"),
        (f"{TINY}[float8_e8m0fnu]", "iree==3.4.0", "iree-dtypes-3.4"),
        ("test_effects.test_ordered", "litert==2.3.0", "litert-tokens"),
        ("test_effects.test_ordered", "stablehlo==0.12.0.1", "stablehlo-tokens"),
    ],
)
def test_an_argument_type_that_a_runtime_lacks_is_forecast_not_to_load(case, reader, entry):
    known = of(golden_of(case).read_artifact(), reader)
    assert known.loads.answer == NO
    assert known.loads.reasons[0].entry == entry


@pytest.mark.parametrize("reader", ["tensorflow==2.21.0", "iree==3.13.0"])
def test_an_unsupported_dtype_inside_a_program_is_forecast_unknown(reader):
    function = jax.jit(lambda x: x.astype("float8_e3m4").astype("float32"))  # both ran it on 2026-12-01
    artifact = read_bytes(bytes(export(function)(jax.ShapeDtypeStruct((3,), "float32")).serialize()))
    assert of(artifact, reader).spoiled.answer == UNKNOWN


def test_a_scatter_that_failed_in_each_program_is_forecast_to_fail():
    known = of(golden_of("test_primitives.test_scatter").read_artifact(), "litert==2.3.0")
    assert known.runs.answer == NO
    assert "failed in each program with stablehlo.scatter(add)" in str(known.runs.reasons[-1])
    assert known.compiles.answer == UNKNOWN  # those programs failed when they were called, others when compiled


def test_litert_runs_a_top_k_whose_decomposition_sorts():
    artifact = golden_of("test_programs.test_top_k").read_artifact()
    assert any(name.startswith("vhlo.sort") for name in artifact.module.op_names)
    assert of(artifact, "litert==2.3.0").runs.answer == YES


def test_devices_of_an_abstract_mesh_in_a_function_are_counted():
    """jax itself says that such an export is for one device."""
    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
    sharded = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec("x"))
    exported = export(jax.jit(lambda x: sharded(x)))(jax.ShapeDtypeStruct((4,), "float32"))
    known = of(read_bytes(bytes(exported.serialize())), "0.12.0.1", "cpu", *MATRIX)
    assert exported.nr_devices == 1
    assert known.compiles.answer == YES_BUT
    assert known.compiles.reasons[0].text.startswith("it needs 4 devices, and its envelope has 1")


def test_only_jax_registers_calls_of_lapack():
    known = of(stored_artifact("cholesky", "0.9.2"), "tensorflow==2.21.0")
    assert known.compiles.answer == NO
    assert known.compiles.reasons[0].text.startswith("only jax registers ")


def test_an_undated_release_may_have_any_known_issue():
    reader = find_reader("0.9.2", CALENDAR)
    reader = reader._replace(release=reader.release._replace(built=""))
    assert forecast(stored_artifact("cholesky", "0.9.2"), reader).runs.answer == UNKNOWN


def test_no_stage_is_forecast_better_than_the_stage_before_it():
    order = (YES, YES_BUT, UNKNOWN, NO)
    for file in FILES:
        for known in forecasts(read(file), READERS):
            ranks = [order.index(answer) for answer in answers(known)]
            assert ranks == sorted(ranks)
            assert all(answer.reasons for answer in known.answers if answer.answer != YES)


def test_forecasts_of_several_readers_equal_single_forecasts():
    readers = [reader for reader in readers_of(shipped_entries()).values() if reader.stablehlo]
    runtimes = shipped_runtimes()
    readers += [one for name in runtimes for one in readers_of_runtime(name, runtimes, shipped_entries())]
    readers.append(readers[-1]._replace(release=readers[-1].release._replace(built="")))
    for file in FILES[::6]:
        artifact = read(file)
        alone = (forecast(artifact, reader) for reader in readers)
        for known, single in zip(forecasts(artifact, readers), alone, strict=True):
            assert (known.by_bytes, known.answers) == (single.by_bytes, single.answers)


def test_an_artifact_is_freed_once_its_forecasts_are_computed():
    artifact = read(FILES[0])
    of_artifact = weakref.ref(artifact)
    gc.disable()  # which would free a cycle, and a large artifact some time later
    try:
        assert len([*forecasts(artifact, READERS)]) == len(READERS)
        del artifact
        assert of_artifact() is None
    finally:
        gc.enable()


# --- all commands that forecast ---------------------------------------------------------------------------------------


def test_commands_are_compared_for_at_least_60_artifacts():
    assert len(FOLDERS) + len(FILES) >= 60


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_all_commands_that_forecast_a_file_give_the_same_answer(file):
    assert_file_commands_agree(read(file))


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.release.name)
def test_export_core_check_agrees_with_the_command_check(reader):
    for artifact in map(read, FILES[::9]):
        of_command = check_load(artifact, TERMS, reader)
        assert str(of_command) == str(export_core.check(artifact.data, reader.release.name))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_all_commands_that_forecast_a_golden_give_the_same_answer(folder):
    golden = golden_at(folder)
    artifact = golden.read_artifact()
    assert_file_commands_agree(artifact)
    assert_golden_commands_agree(golden, artifact)


def assert_file_commands_agree(artifact: Artifact) -> None:
    """Check that inspect, audit, check, can-i-deploy and convert say what the forecast says."""
    facts = describe(artifact, TERMS)
    assert_deployment_agrees(artifact)
    jaxlibs = {reader.jaxlib: reader for reader in facts.readers}
    runtimes = {facts.runtime: facts for facts in facts.runtimes}
    for reader in READERS:
        known, release = forecast(artifact, reader), reader.release
        check = check_load(artifact, TERMS, reader)
        assert (check.loads, check.reasons) == (known.load.ok, known.load.reasons)
        assert (check.compiles, check.runs, check.numbers) == answers(known)[1:]
        is_listed = not release.runtime and check.unpromised
        assert check.known or is_listed or not check.loads or set(answers(known)[1:]) == {YES}
        assert (check.ok is False) == (known.numbers.answer == NO or bool(check.unpromised))
        if release.runtime:
            runtime = runtimes[release.family]
            assert runtime.reads[release.version] == known.load.ok
            assert runtime.runs[release.version] == known.runs.answer
        else:
            own = jaxlibs[release.jaxlib]
            assert (own.loads, own.reasons) == (known.load.ok, known.load.reasons)
            assert (own.compiles, own.runs, own.numbers) == answers(known)[1:]
        text = audit_text(TERMS, None, (reader,), artifact, POLICY)[1]
        assert (f"{release.title} {known.in_words}" in text) == (known.load.ok is True and known.spoiled.answer == NO)
        assert_conversion_agrees(artifact, known)


def assert_deployment_agrees(artifact: Artifact) -> None:
    """Check that can-i-deploy, without any stored result, says no where the forecast does, and else that it is unknown.

    Each reader in `READERS` is a deployment target here.
    """
    platform = usual_platform(artifact)
    pairs = [(Subject(artifact, None, "a.jaxexport"), target_of(reader, platform)) for reader in READERS]
    question = Question(CALENDAR, TERMS, {}, {}, ProjectOptions(), Path("results"))
    answered = deployability(pairs, question, day("2026-11-21")).answers
    for reader, answer in zip(READERS, answered, strict=True):
        known = forecast(artifact, reader, platform)
        assert answer.answer is (DeployAnswer.NO if known.numbers.answer == NO else DeployAnswer.UNKNOWN)
        if known.load.ok is False:
            assert all(reason in answer.why for reason in known.load.reasons)
        elif known.numbers.answer == NO:
            assert known.in_words in answer.why or answer.why.startswith("cannot be compiled: ")


def target_of(reader: Reader, platform: str) -> DeploymentTarget:
    name = reader.release.name
    own = {"reader": name} if reader.release.runtime else {"jaxlib": name}
    return DeploymentTarget(name=f"in-{name.replace('==', '-')}", platform=platform, **own)


def assert_conversion_agrees(artifact: Artifact, known: Forecast) -> None:
    """Check that convert leaves an artifact as it is only if its reader loads it, and states a forecast failure."""

    def refuse(job):
        raise ConversionRefused("it needs a jaxlib")

    try:
        converted = convert(artifact, known.reader, refuse)
    except ConversionRefused:
        return
    if converted.way == UNCHANGED:
        assert known.load.ok
        assert (known.in_words in converted.why) == (known.spoiled.answer == NO)
    else:
        assert forecast(converted.artifact, known.reader).load.ok


def assert_golden_commands_agree(golden: Golden, artifact: Artifact) -> None:
    """Check that the plan of `matrix`, `forecast --deployed` and `explain` agree with `forecast()` of this golden."""
    if golden.manifest.options.refused_on:
        return
    cells = [Cell(golden, release_of(reader), "cpu") for reader in READERS]
    planned = CellForecasts(cells, CALENDAR)
    forecast_lines = foreseen_readers([reader.release.name for reader in READERS], [golden], [], CALENDAR)
    not_run = {line.reader for line in forecast_lines if line.not_run}
    is_for_cpu = "cpu" in golden.manifest.options.platforms
    for reader, cell in zip(READERS, cells, strict=True):
        known = forecast(artifact, reader, "cpu", MATRIX)
        assert planned.of(cell) == in_words(known.numbers)
        assert_explanation_agrees(cell, known)
        plain = forecast(artifact, reader, "cpu")
        is_foreseen = is_for_cpu and plain.loads.answer == YES and plain.runs.answer == NO
        assert (reader.release.name in not_run) == is_foreseen


@functools.cache
def chosen() -> Choice:
    """Return the choice of a golden's cell in its own writer, as if a user had asked about the cell."""
    run = RunOptions(goldens=STORE.root, policy_file=str(ROOT / "export_compat.yaml"))
    of_the_cpu = "tests.compat.test_models.test_convolution/0.12.0.1-cpu"
    return choose(Asked(cell=of_the_cpu, reader="0.12.0.1", platform="cpu", run=run))


def assert_explanation_agrees(cell: Cell, known: Forecast) -> None:
    """Check that explain states the forecast of a cell, as if the cell had failed."""
    choice = dataclasses.replace(chosen(), cell=cell)
    failed = new_result(cell, Stage.RUN, Verdict.ERROR, "it failed")
    evidence = dict(explain(choice, judge(failed, cell.golden, choice.options.policy)).evidence)
    assert evidence.get("artifact", "") == "\n".join(known.load.reasons)
    is_reported = known.load.ok is True and known.spoiled.answer != YES
    assert evidence.get("forecast", "").startswith(known.in_words if is_reported else "") is True
    assert bool(evidence.get("forecast")) == is_reported


def release_of(reader: Reader) -> Release:
    release = reader.release
    jaxlib = "" if release.runtime else release.jaxlib
    return Release(jax=release.jax, jaxlib=jaxlib, built=day(release.built), runtime=release.runtime)


def test_a_golden_that_must_be_refused_is_not_forecast():
    refused = golden_of("test_platforms.test_refused_on_another_platform")
    assert "cpu" in refused.manifest.options.refused_on
    cell = Cell(refused, release_of(READERS[6]), "cpu")
    assert CellForecasts([cell], CALENDAR).of(cell) == ""


def test_a_golden_that_cannot_be_read_is_not_forecast():
    unreadable = Golden(golden_at(FOLDERS[0]).manifest, ROOT / "nowhere")
    cell = Cell(unreadable, release_of(READERS[6]), "cpu")
    assert CellForecasts([cell], CALENDAR).of(cell) == ""


def test_a_compile_only_cell_gets_the_forecast_of_compiling():
    golden = golden_at(STORE.root / "tests.compat.test_linear_algebra.test_cholesky" / "0.9.2-cpu")
    cells = [Cell(golden, release_of(READERS[2]), "cpu", mode) for mode in (Mode.RUN, Mode.COMPILE)]
    forecast_texts = [CellForecasts([cell], CALENDAR).of(cell) for cell in cells]
    assert forecast_texts == ["no: LAPACK calls crash in a fresh process (lapack-cold-process)", "yes"]


def test_no_conversion_is_advised_that_ends_in_a_refusal():
    random = golden_of("test_programs.test_random").read_artifact()
    (reason,) = of(random, "litert==2.3.0").by_bytes.reasons
    start = "litert 2.3.0 does not parse the sdy dialect, and does not compile what `jaxexport convert` makes of it: An"
    assert reason.startswith(start)
    assert without_advice(reason) == "litert 2.3.0 does not parse the sdy dialect"
    # IREE and StableHLO's interpreter run it without Shardy's operations, which the latter fails on.
    for reader in ("iree==3.13.0", "stablehlo==0.6.2"):
        assert of(random, reader).by_bytes.reasons[-1].endswith(f"`jaxexport convert FILE --for {reader} -o OUT`")


def test_no_conversion_is_advised_where_an_operation_failed_in_each_program():
    bits = golden_of("test_primitives.test_bits").read_artifact()
    (reason,) = of(bits, "iree==3.9.0").by_bytes.reasons  # which no entry explains
    assert reason == (
        "iree 3.9.0 has StableHLO 1.12, and composite_v2 came with 1.14, and does not run what `jaxexport convert` "
        "makes of it: this release failed in each program with stablehlo.composite that was run"
    )
    assert of(bits, "iree==3.10.0").by_bytes.reasons[-1].endswith("`jaxexport convert FILE --for iree==3.10.0 -o OUT`")
