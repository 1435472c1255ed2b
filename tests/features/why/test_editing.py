"""The changes that a reduction tries on a module, by the text of the module before and after."""

import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from export_core.features.why.reduce.reduced_program import ModuleEditor, ModuleParts, ModuleSummary
from export_core.readers.environment import this_interpreter

VERSION = stablehlo.get_current_version()
BRANCH = """
  func.func public @main(%arg0: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %arg1: tensor<i32>)
      -> (tensor<4xf32> {jax.result_info = "a"}, tensor<4xf32> {jax.result_info = "b"}) {
    %0 = stablehlo.sine %arg0 : tensor<4xf32>
    %1 = call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.case"(%arg1) ({
      %5 = stablehlo.exponential %1 : tensor<4xf32>
      stablehlo.return %5 : tensor<4xf32>
    }, {
      stablehlo.return %0 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    %3 = stablehlo.slice %2 [0:2] : (tensor<4xf32>) -> tensor<2xf32>
    %4 = stablehlo.concatenate %3, %3, dim = 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
    return %4, %2 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @twice(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
"""


def parts_of(text: str) -> ModuleParts:
    with mlir.make_ir_context():
        module = ir.Module.parse("module {" + text + "}")
        return ModuleParts(_jax.mlir.serialize_portable_artifact(module, VERSION), VERSION)


@pytest.fixture
def edited(editor) -> Callable[..., tuple[ModuleSummary, str]]:
    def edited(text: str, *edits: Any) -> tuple[ModuleSummary, str]:
        summary, _, changed = editor.edited(parts_of(text), edits)
        assert not summary.refused, summary.refused
        return summary, changed.decode()

    return edited


def test_an_editor_makes_its_folder_only_when_entered(here, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    editor = ModuleEditor(this_interpreter(here))
    assert list(tmp_path.iterdir()) == []
    with editor:
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_all_functions_are_inlined(edited):
    summary, text = edited(BRANCH, ("inline",))
    assert "call" not in text
    assert "@twice" not in text
    assert sorted(summary.names) == [
        *("stablehlo.add", "stablehlo.case", "stablehlo.concatenate", "stablehlo.exponential"),
        *("stablehlo.sine", "stablehlo.slice"),
    ]


def test_a_branch_replaces_its_conditional(editor, edited):
    regions = editor.summary(parts_of(BRANCH)).edits["region"]
    summary, text = edited(BRANCH, regions[0])
    assert "stablehlo.case" not in text
    assert "stablehlo.exponential" in text
    assert [source.was for source in summary.arguments] == [0]
    assert "stablehlo.exponential" not in edited(BRANCH, regions[1])[1]


def test_main_can_be_cut_short_and_return_inner_values(editor, edited):
    end = editor.summary(parts_of(BRANCH)).edits["end"]
    summary, text = edited(BRANCH, end[1])
    assert summary.names == ("stablehlo.sine", "func.call", "stablehlo.add")
    assert [source.type for source in summary.results] == [((4,), "float32")] * 2
    assert summary.results[0].text == "stablehlo.sine : (tensor<4xf32>) -> (tensor<4xf32>)"
    assert "tf.aliasing_output" not in text
    assert len(edited(BRANCH, end[2])[0].results) == 1


def test_a_value_becomes_an_argument_and_its_operations_are_removed(editor, edited):
    case = editor.summary(parts_of(BRANCH)).edits["value"][2]
    summary, _ = edited(BRANCH, case)
    assert summary.names == ("stablehlo.slice", "stablehlo.concatenate")
    assert [(source.operation, source.type) for source in summary.arguments] == [(case[1], ((4,), "float32"))]


def test_a_dropped_result_takes_along_operations_only_it_needs(edited):
    summary, text = edited(BRANCH, ("result", 0))
    assert [source.was for source in summary.results] == [1]
    assert "concatenate" not in text
    assert 'jax.result_info = "b"' in text
    assert "tf.aliasing_output = 0 : i32" in text


def test_a_result_is_dropped_from_a_main_without_attributes(edited):
    kind = "tensor<2xf32>"
    main = f"func.func public @main(%arg0: {kind}, %arg1: {kind}) -> ({kind}, {kind})"
    text = f"{main} {{ return %arg0, %arg1 : {kind}, {kind} }}"
    summary, changed = edited(text, ("result", 0))
    assert ([source.was for source in summary.results], [source.was for source in summary.arguments]) == ([1], [1])
    assert "@main(%arg0: tensor<2xf32>) -> tensor<2xf32>" in changed


def test_operations_are_replaced_by_constants_and_operands(editor, edited):
    edits = editor.summary(parts_of(BRANCH)).edits
    summary, text = edited(BRANCH, *edits["constant"])
    assert set(summary.names) == {"stablehlo.constant"}
    assert "dense<1.000000e+00>" in text
    summary, _ = edited(BRANCH, *edits["operand"])
    assert "stablehlo.sine" not in summary.names
    assert "stablehlo.exponential" not in summary.names


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        *(("i1", "bool"), ("i4", "int4"), ("ui8", "uint8"), ("i64", "int64")),
        *(("bf16", "bfloat16"), ("f64", "float64"), ("complex<f32>", "complex64"), ("f8E4M3FN", "float8_e4m3fn")),
    ],
)
def test_types_have_the_dtype_names_of_jax(element, dtype, edited):
    kind = f"tensor<2x{element}>"
    text = f"""
      func.func public @main(%arg0: {kind}) -> {kind} {{
        %0 = stablehlo.reverse %arg0, dims = [0] : {kind}
        return %0 : {kind}
      }}
    """
    (result,) = edited(text, ("values",))[0].results
    assert result.type == ((2,), dtype)


SINES = """
  func.func public @main(%arg0: tensor<4x3xf32>) -> tensor<3x4xf32> {
    %0 = stablehlo.sine %arg0 : tensor<4x3xf32>
    %1 = stablehlo.slice %0 [0:4, 0:3] : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
    return %2 : tensor<3x4xf32>
  }
"""


def test_a_dimensions_size_changes_everywhere_or_is_refused(editor, edited):
    assert ("size", 4, 2) in editor.summary(parts_of(SINES)).edits["size"]
    _, text = edited(SINES, ("size", 4, 2))
    assert "4" not in text
    assert "slice %0 [0:2, 0:3]" in text
    refused, code, _ = editor.edited(parts_of(BRANCH), [("size", 4, 1)])
    assert refused.refused == "its dimensions of size 4 cannot have size 1"
    assert code == b""


LOOP = """
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<2xf32>) -> tensor<2xf32> {
    %0:2 = stablehlo.while(%i = %arg0, %x = %arg1) : tensor<i32>, tensor<2xf32>
    cond {
      %c = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %i, %c : tensor<i32>
      %2 = stablehlo.tanh %x : tensor<2xf32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<2xf32>
    }
    return %0#1 : tensor<2xf32>
  }
"""


def test_a_loop_is_replaced_by_its_body_or_removed(editor, edited):
    edits = editor.summary(parts_of(LOOP)).edits
    (body,) = edits["region"]
    summary, _ = edited(LOOP, body)
    assert summary.names == ("stablehlo.tanh",)
    summary, _ = edited(LOOP, edits["operand"][0])
    assert summary.names == ()


def test_text_that_is_not_utf8_is_preserved(edited):
    text = """
      func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
        %0 = stablehlo.custom_call @"a\\FFb"(%arg0) {backend_config = "\\FE\\00\\FF"} : (tensor<2xf32>) -> tensor<2xf32>
        %1 = stablehlo.sine %0 : tensor<2xf32>
        return %1 : tensor<2xf32>
      }
    """
    summary, changed = edited(text, ("end", 1))
    assert summary.names == ("stablehlo.custom_call @a\\xffb",)
    assert summary.results[0].text == f"{summary.names[0]} : (tensor<2xf32>) -> (tensor<2xf32>)"
    assert '"\\FE\\00\\FF"' in changed


def test_the_editor_restarts_its_process_after_it_died(editor, edited):
    assert editor.summary(ModuleParts(b"no module", VERSION)).refused
    editor._process.kill()
    assert "died" in editor.summary(parts_of(LOOP)).refused
    assert len(edited(LOOP)[0].names) == 6
