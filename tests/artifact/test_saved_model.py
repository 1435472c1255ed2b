"""SavedModels of TensorFlow: the functions that jax exported into them, read without TensorFlow."""

import pytest
from protobufs import attribute, integer, module_of, node, saved_model, span, texts
from stored_artifacts import DATA, SAVED_MODELS

from export_core.artifact import ArtifactError, read, read_bytes
from export_core.artifact.audit import audit
from export_core.artifact.folders import LeftOut, read_folders
from export_core.artifact.readers import loads, readers_of, readers_of_runtime
from export_core.artifact.saved_model import OPERATION
from export_core.knowledge import forecast
from export_core.releases.calendar_entries import shipped_entries, shipped_runtimes

FOLDER = DATA / "savedmodels"
MODULE = module_of(DATA / "0.4.30" / "platforms.jaxexport")


def readers(name: str) -> list:
    return readers_of_runtime(name, shipped_runtimes(), shipped_entries())


def loading(artifact, name="savedmodel"):
    return {load.reader.release.version: load for load in loads(artifact, readers(name))}


def read_model(data: bytes):
    artifact = read_bytes(data)
    assert artifact.saved_model is not None
    return artifact.saved_model


@pytest.mark.parametrize(
    ("writer", "functions", "platforms"),
    [("jax2tf", 3, {("CPU", "TPU"), ("CPU",)}), ("keras", 2, {("CPU",)}), ("orbax", 1, {("CPU",)})],
)
def test_savedmodels_of_each_writer_are_read_whole(writer, functions, platforms):
    artifact = read(FOLDER / writer)
    model = artifact.saved_model
    assert model is not None
    assert (model.tensorflow, len(model.calls)) == ("2.21.0", functions)
    assert {call.platforms for call in model.calls} == platforms
    assert {call.version for call in model.calls} == {10}
    assert all(call.use_shardy_partitioner and call.runs_on_cpu and not call.unknown for call in model.calls)
    assert all(call.function.startswith("__inference_") for call in model.calls)
    for call, module in zip(model.calls, artifact.modules, strict=True):
        assert module.stablehlo_version == "1.13.7"
        assert module.main is not None
        assert len(module.main.inputs) >= len(call.inputs)
    assert not artifact.unread


def test_result_types_of_a_savedmodel_are_read_as_tensorflow_types():
    model = read(FOLDER / "jax2tf").saved_model
    assert model is not None
    assert [call.outputs for call in model.calls] == [
        ("float32[?,4]",),
        ("float32[?,3]",),
        ("float32[2]", "float32[2]"),
    ]


def test_calls_that_jax_exported_are_audited():
    artifact = read(FOLDER / "jax2tf")
    assert [finding.target for finding in audit(artifact, frozenset()) if not finding.ok] == ["shape_assertion"]


@pytest.mark.parametrize("writer", ["jax2tf", "keras", "orbax"])
def test_a_savedmodel_loads_only_in_tensorflows_of_its_convention(writer):
    """Measured: TensorFlow 2.16.2 and 2.19.1 load each file and refuse its first call; 2.20.0 loads all and ran two."""
    results = loading(read(FOLDER / writer))
    assert [version for version, load in results.items() if load.ok] == ["2.20.0", "2.21.0"]
    (reason, *_) = results["2.19.1"].reasons
    assert reason == "savedmodel 2.19.1 takes conventions up to 9: export with jax_export_calling_convention_version=9"


def test_an_older_convention_runs_in_an_older_tensorflow():
    results = loading(read_bytes(saved_model(node(MODULE))), "tensorflow")
    assert results["2.19.1"].ok
    assert not any("convert" in reason for load in results.values() for reason in load.reasons)


@pytest.mark.parametrize("name", ["iree", "litert", "pjrt"])
def test_no_other_runtime_loads_a_savedmodel(name):
    for load in loading(read(FOLDER / "orbax"), name).values():
        assert not load.ok
        assert load.reasons[0].endswith("loads no SavedModel: only TensorFlow does")


def test_no_jaxlib_loads_a_savedmodel():
    assert not any(load.ok for load in loads(read(FOLDER / "orbax"), readers_of(shipped_entries()).values()))


def test_every_attribute_of_a_call_of_a_jax_function_is_read():
    calls = attribute("function_list", span(1, span(9, span(1, "lookup")), span(9, span(1, "decode"))))
    flags = attribute("has_token_input_output", integer(5, 1)) + attribute("new_attribute", integer(3, 1))
    more = texts("disabled_checks", "platform"), texts("dim_args_spec", "0.0"), calls, flags
    (call,) = read_model(saved_model(node(MODULE, *more, version=4, platforms=("TPU",)))).calls
    assert (call.version, call.platforms, call.disabled_checks) == (4, ("TPU",), ("platform",))
    assert (call.dim_args_spec, call.function_list) == (("0.0",), ("lookup", "decode"))
    assert call.has_token_input_output
    assert call.runs_on_cpu
    assert call.unknown == ("new_attribute",)
    assert call.title == "call"


def test_a_function_only_for_tpu_does_not_run_on_a_cpu():
    artifact = read_bytes(saved_model(node(MODULE, platforms=("TPU",))))
    known = forecast(artifact, readers("tensorflow")[-1])
    assert known.in_words == "does not run it"
    assert [str(reason) for reason in known.runs.reasons] == ["call is for TPU, and not for a CPU"]


def test_a_functions_name_may_follow_its_operations():
    function = span(3, node(MODULE)) + span(1, span(1, "late"))
    (call,) = read_model(saved_model(library=(function,))).calls
    assert call.function == "late"


def test_a_savedmodel_without_jax_functions_is_refused(tmp_path):
    model = saved_model(span(1, "sum") + span(2, "AddV2"))
    with pytest.raises(ArtifactError, match=f"expected an operation {OPERATION}, found none among 1 operation"):
        read_bytes(model)
    for name in ("alone", "jax"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "saved_model.pb").write_bytes(model if name == "alone" else saved_model(node(MODULE)))
    left_out = LeftOut()
    (file,) = read_folders(_name, [str(tmp_path)], left_out, 1)
    assert file.result == str(tmp_path / "jax" / "saved_model.pb")
    assert left_out == {"a SavedModel of TensorFlow alone": 1}


def _name(artifact):
    return artifact.name


ONCE = {
    "an operation with two kinds": saved_model(span(2, "AddV2") + node(MODULE)),
    "an attribute twice": saved_model(node(MODULE, attribute("module", span(2, MODULE)))),
    "an attribute with two values": saved_model(node(MODULE, attribute("disabled_checks", integer(3, 1) + span(1)))),
    "two graphs in one": integer(1, 1) + span(2, span(2, span(1, node(MODULE))), span(2)),
    "two libraries": integer(1, 1) + span(2, span(2, span(2), span(2))),
    "a field that could hold operations": saved_model(node(MODULE)) + span(9),
    "a field of a graph that is not known": integer(1, 1) + span(2, span(2, span(9))),
    "a module that is a number": saved_model(span(2, OPERATION) + attribute("module", integer(3, 7))),
    "no module": saved_model(span(2, OPERATION)),
    "a list of other items": saved_model(node(MODULE, attribute("disabled_checks", span(1, integer(3, 1))))),
    "a group": saved_model(node(MODULE)) + b"\x13\x14",
    "field number zero": saved_model(node(MODULE)) + b"\x00\x00",
    "a length beyond the file": saved_model(node(MODULE)) + b"\x12\xff\x01",
    "a number that does not end": saved_model(node(MODULE)) + b"\x08" + b"\xff" * 11,
    "text that is not UTF-8": saved_model(span(1, b"\xff") + span(2, OPERATION)),
}


@pytest.mark.parametrize("data", ONCE.values(), ids=list(ONCE))
def test_an_ambiguous_or_damaged_savedmodel_is_refused(data):
    with pytest.raises(ArtifactError) as caught:
        read_bytes(data)
    assert caught.value.at is not None
    assert "on which it failed" not in str(caught.value)


def test_more_operations_than_fit_the_file_are_refused():
    with pytest.raises(ArtifactError, match="at most 17 operations"):
        read_bytes(saved_model(*[span(2, OPERATION) + attribute("module", span(2))] * 20))


def test_a_savedmodel_cut_anywhere_is_refused():
    data = SAVED_MODELS[-1].read_bytes()
    for length in range(8, len(data) - 1, 97):
        with pytest.raises(ArtifactError):
            read_bytes(data[:length])
