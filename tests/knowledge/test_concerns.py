"""Whether an entry of the knowledge base is about an artifact, by one property of the artifact at a time."""

from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from jax.export import SymbolicScope, export, symbolic_shape
from making import ARTIFACTS

from export_core.artifact import read, read_bytes, writers
from export_core.knowledge import entries_of, forecasting
from export_core.knowledge.concerns import CALL, About, Names, is_concerned, operations_of
from export_core.knowledge.forecasting import NO, YES, YES_BUT

DERIVED = read(ARTIFACTS / "0.12.0.1" / "mlp.jaxexport")  # with two nested derivatives


def bare_module(*shapes):
    """Return an artifact that is the module of an elementwise sum alone, without an envelope."""
    scope = SymbolicScope()
    arguments = [jax.ShapeDtypeStruct(symbolic_shape(shape, scope=scope), "float32") for shape in shapes]
    return read_bytes(bytes(export(jax.jit(lambda *arrays: sum(arrays)))(*arguments).mlir_module_serialized))


def test_attribute_and_type_codes_are_separated_from_other_names():
    names = Names(("sdy attribute 12", "vhlo type 10", "an attribute of mine", "mhlo.sharding", "12"))
    assert names.attribute_codes == {("sdy", 12)}
    assert names.type_codes == {("vhlo", 10)}
    assert names.texts == ["an attribute of mine", "mhlo.sharding", "12"]


@pytest.mark.parametrize(
    ("key", "names", "expected"),
    [
        ("attributes", ["builtin attribute 8"], True),
        ("attributes", ["builtin type 8"], False),
        ("attributes", ["vhlo attribute 8"], False),
        ("attributes", ["vhlo type 999", "builtin attribute 8"], True),
        ("attributes", ["jit(fun_vjp_jax)"], True),  # in the modules of the derivatives only
        ("attributes", ["no such text", "result"], True),
        ("attributes", ["no such text"], False),
        ("lacks", ["no such text", "builtin attribute 999"], True),
        ("lacks", ["no such text", "builtin attribute 8"], False),
    ],
)
def test_an_entry_concerns_attributes_in_any_module_of_an_artifact(key, names, expected):
    assert is_concerned(About(DERIVED), {key: names}) is expected


def test_an_entry_concerns_operations_and_dialects_of_derivatives():
    about = About(DERIVED)
    first = About(read_bytes(bytes(DERIVED.module.serialized())))
    assert about.operations > first.operations
    assert is_concerned(about, {"dialects": ["sdy", "vhlo"]})
    assert not is_concerned(about, {"dialects": ["sdy", "mhlo"]})


@pytest.mark.parametrize(
    ("shapes", "expected"), [(("b", "1"), True), (("1", "b"), True), (("1", "1"), False), (("b", "b"), True)]
)
def test_a_bare_module_is_symbolic_if_one_of_its_inputs_is(shapes, expected):
    about = About(bare_module(*shapes))
    assert is_concerned(about, {"symbolic": expected})
    assert not is_concerned(about, {"symbolic": not expected})
    assert is_concerned(about, {"x64": False})


@pytest.mark.parametrize("dtypes", [("f64", "f32"), ("f32", "i64"), ("f64", "i64"), ("f32", "f32")])
def test_one_64_bit_input_makes_a_bare_module_need_x64(dtypes, monkeypatch):
    monkeypatch.setattr(About, "_inputs", [f"1x{dtype}" for dtype in dtypes])  # jax needs x64 to write such a module
    assert is_concerned(About(bare_module("1")), {"x64": {*dtypes} != {"f32"}})


@pytest.mark.parametrize(
    ("possible", "expected"),
    [(["0.8.0", "0.8.1"], YES), (["0.8.1", "0.8.2"], YES_BUT), (["0.8.2", "0.9.0"], NO), (["0.8.1"], YES)],
)
def test_an_entry_about_old_writers_depends_on_possible_writers(possible, expected, monkeypatch):
    (entry,) = [one for one in entries_of("jaxlib") if one.id == "cpu-4-bit-goldens"]
    monkeypatch.setattr(writers, "find_writer", lambda *_: SimpleNamespace(possible=possible))
    assert forecasting._written_before(entry, About(DERIVED)) == expected


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ([["stablehlo.ta*", ""]], True),
        ([["stablehlo.ta*", "f32"]], True),
        ([["stablehlo.ta*", "f16"]], False),
        ([["stablehlo.so*", ""]], False),
        ([["stablehlo.t?nh", "^f32->f32$"]], True),
        ([["stablehlo.reduce(*d*)", "f32"]], True),
        ([["stablehlo.reduce(maximum)", "f32"]], False),
    ],
)
def test_globs_in_an_entrys_uses_match_operations_and_bodies(uses, expected):
    assert is_concerned(About(DERIVED), {"uses": uses}) is expected


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ([["stablehlo.reduce(*", r"tensor<(\d+x){2}f32>"]], True),
        ([["stablehlo.reduce(add)", r"tensor<(\d+x){2}f32>"]], True),
        ([["stablehlo.reduce(maximum)", r"tensor<(\d+x){2}f32>"]], False),
        ([["stablehlo.reduce(*", r"tensor<(\d+x){3}f32>"]], False),
        ([["stablehlo.tanh", "tensor<f32>"]], False),  # in the module, but no operand of this operation
        ([["stablehlo.tanh", "tensor<f32>"], ["stablehlo.tanh", "tensor<4x3xf32>"]], True),
    ],
)
def test_an_operand_type_is_matched_only_for_the_named_operation(operands, expected):
    assert is_concerned(About(DERIVED), {"operands": operands}) is expected


@pytest.mark.parametrize(
    ("arguments", "results", "expected"), [("int8", "f4", True), ("f4", "int8", True), ("f4", "f4", False)]
)
def test_a_type_used_only_inside_a_function_is_not_in_its_signature(arguments, results, expected):
    exported = export(jax.jit(lambda x: x.astype("int8").astype(results)))(jax.ShapeDtypeStruct((2,), arguments))
    about = About(read_bytes(bytes(exported.serialize())))
    assert is_concerned(about, {"types": "i8>"})
    assert is_concerned(about, {"signature": "i8>"}) is expected


def test_a_reduction_is_doubtful_only_if_its_operand_has_rank_8():
    def tiled(x):  # of rank 8 before it is reshaped
        return jnp.tile(x, (1, 1, 3, 1)).sum(0)

    def reduced(x):
        return x.reshape(2, 2, 1, 3, 1, 1, 1, 1).sum(0)

    entry = next(entry for entry in entries_of("jaxlib") if entry.id == "cpu-rank-8")
    argument = jax.ShapeDtypeStruct((2, 2, 3, 1), "float32")
    concerned = [
        is_concerned(About(read_bytes(bytes(export(jax.jit(function))(argument).serialize()))), entry.concerns)
        for function in (tiled, reduced)
    ]
    assert concerned == [False, True]


@pytest.mark.parametrize(
    ("concerns", "operations"),
    [
        ({"calls": ["lapack_*"]}, {"stablehlo.custom_call"}),
        ({"operations": ["stablehlo.sort", "stablehlo.while"], "devices": 2}, {"stablehlo.sort", "stablehlo.while"}),
        ({"operations": ["stablehlo.sort", "sdy.*"]}, set()),  # any operation of a dialect may be meant
        ({"uses": [["stablehlo.reduce(add)", "f16"], ["stablehlo.tanh", ""]]}, {"stablehlo.reduce", "stablehlo.tanh"}),
        ({"operands": [["stablehlo.reduce(*", "x"]]}, {"stablehlo.reduce"}),
        ({"types": "f16"}, set()),
    ],
)
def test_the_operations_that_an_entry_concerns_are_listed(concerns, operations):
    assert operations_of(concerns) == operations


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("8x3xf32", True),
        (r"tensor<(\d+x){2}f32>", True),
        ("f64", False),
        (r"(?m)^\(tensor<4x8xf32>, tensor<8x3xf32>\)", True),
        (r"(?m)^\(tensor<8x3xf32>, tensor<4x8xf32>\)", False),
    ],
)
def test_a_pattern_may_match_types_of_values_and_of_functions(pattern, expected):
    assert is_concerned(About(DERIVED), {"types": pattern}) is expected


def test_a_conversion_leaves_out_shardings_and_keeps_other_custom_calls():
    plain = About(DERIVED)
    assert plain.converted is plain
    shardy = About(read(ARTIFACTS / "0.12.0.1" / "sharded.jaxexport"))
    assert shardy.operations - shardy.converted.operations == {"sdy.mesh"}
    of_gspmd = About(read(ARTIFACTS / "0.6.2" / "key.jaxexport"))
    assert of_gspmd.calls == of_gspmd.uses[CALL] == {"Sharding"}
    assert of_gspmd.converted.calls == frozenset()
    assert CALL not in of_gspmd.converted.uses
    folder = Path(__file__).parents[2] / "golden" / "tests.compat.test_shardings.test_shard_map" / "0.6.2-cpu"
    mapped = About(read(folder / "artifact.jaxexport")).converted
    assert mapped.uses[CALL] == mapped.calls == {"SPMDFullToShardShape", "SPMDShardToFullShape"}
