"""The table of operations that other runtimes ran, which equals the records and which forecasts use."""

from pathlib import Path

import jax
import pytest
from jax import lax
from jax.export import export, symbolic_shape
from making import ARTIFACTS

from export_core.artifact import read, read_bytes
from export_core.knowledge import NO, UNKNOWN, YES, YES_BUT, entries_of, forecast
from export_core.knowledge.concerns import CALL, About, is_concerned
from export_core.knowledge.forecasting import _Consumer
from export_core.knowledge.measured import MEASURED, Measured, measured
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import shipped_entries
from tools.measured_operations import recorded_runs, text_of

GOLDENS = Path(__file__).parents[2] / "golden"
TABLE = Measured(
    ("1.0", "1.2", "1.10"), {"stablehlo.add": {"f32->f32": 0b111, "i8->i8": 0b010}, "stablehlo.while": {"": 0b100}}
)


def artifact_of(name):
    return read(GOLDENS / f"tests.compat.{name}" / "0.12.0.1-cpu" / "artifact.jaxexport")


def forecast_of(name, reader):
    return forecast(artifact_of(name), find_reader(reader, Terms(shipped_entries())))


def test_the_table_of_measured_operations_equals_its_records():
    assert Path(MEASURED).read_text(encoding="utf-8") == text_of(*recorded_runs()), (
        "run `python -m tools.measured_operations`"
    )


@pytest.mark.parametrize(
    ("needed", "release", "unseen"),
    [
        ({"stablehlo.add": {"f32->f32"}}, "1.2", {}),
        ({"stablehlo.add": {"f32->f32"}}, "1.4", {}),  # both neighbours ran it
        ({"stablehlo.add": {"f32->f32", "i8->i8"}}, "1.4", {"stablehlo.add": {"i8->i8"}}),
        ({"stablehlo.add": {"f32->f32"}}, "1.11", {"stablehlo.add": {"f32->f32"}}),  # newer than all that ran
        ({"stablehlo.sort(compare)": {"f32->f32"}}, "1.2", {"stablehlo.sort(compare)": {"f32->f32"}}),
        ({"stablehlo.while": set()}, "1.10", {}),
        ({"stablehlo.while": set()}, "1.2", {"stablehlo.while": {""}}),
    ],
)
def test_an_operation_not_measured_in_a_release_is_unknown(needed, release, unseen):
    assert TABLE.unseen(needed, TABLE.stand_ins(release)) == unseen


@pytest.mark.parametrize(
    ("release", "stand_ins"),
    [
        *(("1.0", 0b001), ("1.2", 0b010), ("1.10", 0b100)),  # measured
        *(("1.1", 0b011), ("1.4", 0b110), ("1.9", 0b110)),  # between two that were
        *(("0.9", 0b1000), ("1.11", 0b1000), ("2.0", 0b1000)),  # older or newer than all
    ],
)
def test_an_unmeasured_release_is_represented_by_both_neighbours(release, stand_ins):
    assert TABLE.stand_ins(release) == stand_ins
    assert TABLE.is_outside(stand_ins) == (stand_ins == 0b1000)


@pytest.mark.parametrize(
    ("needed", "ran"),
    [
        ({}, -1),  # all releases, also those that were not measured
        ({"stablehlo.add": {"f32->f32"}}, 0b111),
        ({"stablehlo.add": {"f32->f32", "i8->i8"}}, 0b010),
        ({"stablehlo.add": {"f32->f32"}, "stablehlo.while": set()}, 0b100),
        ({"stablehlo.add": {"f64->f64"}}, 0),
        ({"stablehlo.sort": {"f32->f32"}}, 0),
    ],
)
def test_releases_that_ran_every_needed_operation_are_found(needed, ran):
    assert TABLE.ran_all(needed) == ran


def test_an_operation_run_only_in_some_forms_does_not_count_as_run():
    table = TABLE._replace(some={"stablehlo.add": {"f32->f32": 0b010}, "stablehlo.sort": {"": 0b001}})
    assert table.ran_all({"stablehlo.add": {"f32->f32"}}) == 0b101


@pytest.mark.parametrize(
    ("failed", "may"),
    [
        ({}, False),
        ({"stablehlo.add": {"i8->i8": 0b001}}, True),  # its name is enough
        ({"stablehlo.sort": {"*": 0b111}}, False),
        ({"*": {"i8": 0b001}}, True),
        ({"*": {"f8": 0b001}}, False),
    ],
)
def test_an_operation_or_type_that_failed_in_a_release_may_fail(failed, may):
    needed = {"stablehlo.add": frozenset({"f32,i8->f32"}), "stablehlo.while": frozenset[str]()}
    assert TABLE._replace(failed=failed).may_fail(needed) is may


def test_an_operation_and_its_types_may_be_measured_separately():
    table = TABLE._replace(types={"f32": 0b111, "i8": 0b010})
    needed = {"stablehlo.add": frozenset({"i8->f32"})}
    assert table.unseen(needed, table.stand_ins("1.2")) == {}
    assert table.unseen(needed, table.stand_ins("1.0")) == needed  # i8 was not run there
    other = {"stablehlo.sort(compare)": frozenset({"f32->f32"})}
    assert table.unseen(other, table.stand_ins("1.2")) == other  # the operation was never run


def test_an_operation_failing_in_some_forms_is_conditional():
    table = TABLE._replace(some={"stablehlo.add": {"f32->f32": 0b010}})
    needed = {"stablehlo.add": frozenset({"f32->f32", "i8->i8"}), "stablehlo.while": frozenset[str]()}
    assert table.in_some_forms(needed, table.stand_ins("1.2")) == ["stablehlo.add"]
    assert table.in_some_forms(needed, table.stand_ins("1.0")) == []


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ([["stablehlo.dot_general", "^f32->"]], True),
        ([["stablehlo.dot_general", "f16"]], False),
        ([["stablehlo.sort*", ""]], False),
        ([["stablehlo.sort*", ""], ["stablehlo.tanh", ""]], True),
    ],
)
def test_an_entrys_uses_match_an_operation_together_with_its_types(uses, expected):
    assert is_concerned(About(read(ARTIFACTS / "0.12.0.1" / "mlp.jaxexport")), {"uses": uses}) is expected


def test_an_operation_never_measured_is_unknown():
    assert forecast_of("test_dtypes.test_tiny_dtype[int4]", "tensorflow==2.21.0").runs.answer == UNKNOWN
    assert forecast_of("test_models.test_convolution", "tensorflow==2.21.0").runs.answer == YES


def test_operations_failing_in_all_given_releases_are_found():
    failed = {"stablehlo.sort": {"*": 0b011}, "*": {"f8": 0b111}, CALL: {"mine": 0b001}}
    table = TABLE._replace(failed=failed)
    unseen = {
        "stablehlo.sort": frozenset({"f32->f32"}),
        "stablehlo.add": frozenset({"f8->f32", "i4->i4"}),
        CALL: frozenset({"mine", "yours"}),
    }
    everything = {"stablehlo.sort": {"f32->f32"}, "stablehlo.add": {"f8->f32"}, CALL: {"mine"}}
    assert table.failing(unseen, table.stand_ins("1.0")) == everything
    assert table.failing(unseen, table.stand_ins("1.10")) == {"stablehlo.add": {"f8->f32"}}
    assert table.failing(unseen, table.stand_ins("1.11")) == {}, "nothing is known of a release outside"
    without_kinds = table._replace(failed={"stablehlo.sort": {"*": 0b011}})
    assert without_kinds.failing(unseen, table.stand_ins("1.0")) == {"stablehlo.sort": {"f32->f32"}}


def approximate_maximum(*platforms):
    exported = export(jax.jit(lambda x: lax.approx_max_k(x, 2)), platforms=platforms)
    return read_bytes(bytes(exported(jax.ShapeDtypeStruct((8,), "float32")).serialize()))


@pytest.mark.parametrize(
    ("reader", "answer"),
    [("pjrt==0.12.0.1", YES), ("iree==3.13.0", YES_BUT), ("litert==2.3.0", NO)],
)
def test_approx_max_k_is_forecast_as_it_was_measured(reader, answer):
    known = forecast(approximate_maximum("cpu"), find_reader(reader, Terms(shipped_entries())))
    assert known.numbers.answer == answer


def test_a_custom_call_that_nobody_ran_is_unknown():
    artifact = read(ARTIFACTS / "0.12.0.1" / "mlp.jaxexport")
    for name in ("pjrt==0.12.0.1", "iree==3.13.0", "litert==2.3.0"):
        about = _Consumer(About(artifact), name.partition("==")[0], "cpu", ())
        vars(about.about).update(calls=frozenset({"my_target"}), uses={CALL: frozenset({"my_target"})})
        stand_ins = about.table.stand_ins(name.partition("==")[2])
        assert about.unmeasured(stand_ins) == ("", "", "", "custom call my_target")


def test_operations_unmeasured_in_an_unknown_newer_release_are_named():
    about = About(read(ARTIFACTS / "0.12.0.1" / "mlp.jaxexport"))
    vars(about).update(calls=frozenset({"my_target"}), uses={**about.uses, CALL: frozenset({"my_target"})})
    unknown = {
        name: _Consumer(about, name, "cpu", ()).unmeasured(measured()[name].stand_ins("99.0.0")).unseen
        for name in ("pjrt", "litert")
    }
    assert unknown["pjrt"] == "custom call my_target", "of XLA's compiler, which is that of its jaxlib"
    assert unknown["litert"] == about.few_uses
    assert "stablehlo.dot_general of f32->f32" in about.few_uses


def test_a_custom_call_that_a_runtime_lacks_is_forecast_to_fail():
    known = forecast_of("test_safety_checks.test_allowed_target", "iree==3.13.0")
    assert known.runs.answer == NO
    assert "pytest_jaxexport.scale" in str(known.runs.reasons[0])


@pytest.mark.parametrize(
    "reader", ["iree==3.13.0", "litert==2.3.0", "tensorflow==2.21.0", "savedmodel==2.21.0", "pjrt==0.12.0.1"]
)
def test_every_runtime_has_a_table_of_measured_operations(reader):
    runtime, _, release = reader.partition("==")
    assert release in measured()[runtime].releases


def test_a_forecast_depends_on_the_readers_settings():
    case = "test_dtypes.test_wide_dtype[float64]"
    assert forecast_of(case, "iree==3.13.0").runs.answer == NO
    assert forecast_of(case, "iree==3.13.0[--iree-input-demote-f64-to-f32=false]").runs.answer == YES


def product(narrow, wide, platform):
    exported = export(jax.jit(lambda x: lax.dot(x, x, preferred_element_type=wide)), platforms=(platform,))
    return read_bytes(bytes(exported(jax.ShapeDtypeStruct((8, 8), narrow)).serialize()))


@pytest.mark.parametrize(
    ("narrow", "wide", "platform", "answer", "entry"),
    [
        ("int4", "int32", "cpu", NO, "cpu-products-of-4-bits"),
        ("uint4", "int32", "cpu", NO, "cpu-products-of-4-bits"),
        ("int4", "int4", "cpu", YES, ""),
        ("int8", "int32", "cpu", YES, ""),
        ("float4_e2m1fn", "float32", "cuda", UNKNOWN, "cuda-products-of-float4"),
    ],
)
def test_the_forecast_knows_which_products_of_4_bits_compile(narrow, wide, platform, answer, entry):
    artifact, reader = product(narrow, wide, platform), find_reader("0.12.0.1", Terms(shipped_entries()))
    assert forecast(artifact, reader, platform).compiles.answer == answer
    concerned = [one.id for one in entries_of("jaxlib") if is_concerned(About(artifact), one.concerns)]
    assert not entry or entry in concerned


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="older jax refuses to export it")
def test_the_forecast_doubts_a_composite_of_a_symbolic_size():
    square = lax.composite(lambda x: x * x, name="own.square")
    argument = jax.ShapeDtypeStruct(symbolic_shape("b"), "float32")
    artifact = read_bytes(bytes(export(jax.jit(square))(argument).serialize()))
    known = forecast(artifact, find_reader("0.12.0.1", Terms(shipped_entries())))
    assert known.compiles.answer == YES_BUT
    assert known.compiles.reasons[0].entry == "composite-of-a-symbolic-size"
