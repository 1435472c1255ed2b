"""The halves of TensorFlow, SavedModel and LiteRT, with stand-ins for their modules and in real runtimes."""

import importlib.util
import sys
import types

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from cold_half import RUNTIMES, call_half
from jax import export

from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import load_calendar
from export_core.releases.runtimes import load_runtime, runtime_named, runtime_readers

IN_TENSORFLOW, IN_LITERT = "tensorflow==2.21.0", "litert==2.3.0"


def half_of(name):
    spec = importlib.util.spec_from_file_location(name, RUNTIMES / f"{name}_worker.py")
    half = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(half)
    return half


@pytest.fixture
def stubs(monkeypatch):
    """Stand-ins for the modules that the halves import, with what a call uses before its first stage."""

    def as_dtype(name):
        if name not in ("float32", "bfloat16"):
            raise TypeError(name)
        return name

    dtypes = types.SimpleNamespace(as_dtype=as_dtype)
    tensorflow = types.SimpleNamespace(__version__="2.21.0", dtypes=dtypes, constant=lambda value: value)
    interpreter = types.SimpleNamespace(Interpreter=None)
    for name, module in [("tensorflow", tensorflow), ("ai_edge_litert.interpreter", interpreter)]:
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "ai_edge_litert", types.SimpleNamespace(interpreter=interpreter))


REFUSED = [
    ("tensorflow", {"inputs": [["float8_e3m4", [2], "f8"]], "kept": [0]}, "TensorFlow 2.21.0 has no dtype float8_e3m4"),
    ("tensorflow", {"outputs": [["float8_e4m3", [2], "float8_e4m3"]]}, "TensorFlow 2.21.0 has no dtype float8_e4m3"),
    ("litert", {"tokens": 1}, "LiteRT has no tokens"),
]


@pytest.mark.parametrize(("name", "fields", "message"), REFUSED)
def test_unsupported_tokens_and_types_are_refused(stubs, name, fields, message):
    call = {"tokens": 0, "inputs": [], "outputs": [], "kept": [], "module": "", "platforms": ["cpu"]}
    stages = []
    with pytest.raises(NotImplementedError, match=message) as raised:
        half_of(name).run(call | fields, [], stages.append)
    assert stages == ["deserialize"]
    assert runtime_named(name).refusal(str(raised.value)) is not None


def test_tensorflow_ignores_the_dtype_of_an_unused_argument(stubs):
    call = {"inputs": [["float8_e3m4", [2], "f8"]], "outputs": [], "kept": [], "module": "no file"}
    with pytest.raises(FileNotFoundError, match="no file"):
        half_of("tensorflow").run(call, [None], lambda stage: None)


ONCE = "Detected at node XlaCallModule defined at (most recent call last):\n"
LEADS = [
    f'Graph execution error:\n\n{ONCE}  File "worker.py", line 1, in run\n\n  File "xla.py", line 4, in call\n\n',
    f"Graph execution error:\n\n{ONCE}<stack traces unavailable>\n",
    "{{function_node __inference_function_8}} ",
    "",
]


@pytest.mark.parametrize("lead", LEADS)
def test_python_lines_are_removed_from_tensorflows_messages(lead):
    assert half_of("tensorflow").STACK.sub("", f"{lead}Cannot deserialize\n  File 3") == "Cannot deserialize\n  File 3"


def test_the_runtime_savedmodel_has_the_same_facts_as_tensorflow():
    tensorflow, savedmodel = map(runtime_named, ("tensorflow", "savedmodel"))
    for field in ("worker", "requirements", "check", "megabytes", "download_megabytes", "promise", "refusals"):
        assert getattr(savedmodel, field) == getattr(tensorflow, field)
    assert savedmodel.variables == {**tensorflow.variables, "JAXEXPORT_SAVED_MODEL": "1"}


# --- in real runtimes -------------------------------------------------------------------------------------------------


def interpreter_of(reader):
    """Return the interpreter of a reader's environment, which other tests share, since TensorFlow takes 1.4 GB."""
    (release,) = runtime_readers(reader, load_calendar())
    return str(ReaderEnvironments(load_calendar()).build(Placement(release)).python)


def exported(function, *arguments, platforms=("cpu",)):
    with jax.enable_x64(True):
        return bytes(export.export(jax.jit(function), platforms=platforms)(*arguments).serialize())


def types_of(*values):
    return [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in values]


def forward(x, w):
    return jnp.tanh(x @ w), jnp.sum(x)


@pytest.mark.matrix
@pytest.mark.parametrize("saved", [False, True], ids=["tensorflow", "savedmodel"])
def test_tensorflow_runs_an_artifact(saved, tmp_path, monkeypatch):
    if saved:
        monkeypatch.setenv("JAXEXPORT_SAVED_MODEL", "1")
    python = interpreter_of(IN_TENSORFLOW)
    values = np.ones((2, 3), np.float32), np.full((3, 4), 0.5, np.float32)
    artifact = exported(forward, *types_of(*values), platforms=("cpu", "cuda"))
    called = call_half("tensorflow", artifact, *values, folder=tmp_path, python=python)
    assert (called.error, called.stage, called.threads) == ("", "run", 1)
    assert [name for name in called.late if name.startswith("tensorflow")] == []
    for found, expected in zip(called.outputs, forward(*values), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.matrix
def test_a_refusal_of_tensorflow_names_its_stage(tmp_path):
    python, value = interpreter_of(IN_TENSORFLOW), np.eye(3, dtype=np.float32)
    called = call_half(
        "tensorflow", exported(jnp.linalg.cholesky, *types_of(value)), value, folder=tmp_path, python=python
    )
    refusal = load_runtime(RUNTIMES / "tensorflow.yaml").refusal(called.error)
    assert called.stage in ("deserialize", "run")  # the first where StableHLO is newer, which a release may end
    assert refusal is not None


@pytest.mark.matrix
def test_litert_runs_an_artifact(tmp_path):
    python = interpreter_of(IN_LITERT)
    values = np.ones((2, 3), np.float32), np.full((3, 4), 0.5, np.float32)
    artifact = exported(forward, *types_of(*values), platforms=("cpu", "cuda"))
    called = call_half("litert", artifact, *values, folder=tmp_path, python=python)
    assert (called.error, called.stage, called.threads, called.late) == ("", "run", 1, [])
    for found, expected in zip(called.outputs, forward(*values), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.matrix
def test_litert_accepts_and_returns_int4(tmp_path):
    value = np.array([[1, -2, 3]], ml_dtypes.int4)
    artifact = exported(lambda x: x.T, *types_of(value))
    called = call_half("litert", artifact, value, folder=tmp_path, python=interpreter_of(IN_LITERT))
    assert called.error == ""
    assert called.outputs[0].dtype == ml_dtypes.int4
    np.testing.assert_array_equal(called.outputs[0], value.T)
