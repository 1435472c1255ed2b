"""Options of a case: further calls and refusals, safety checks, goldens without outputs, modules to register.

The writer itself must do what every reader must.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from export_core.export import Case, ExportError, ExtraCall, add_checks, api
from export_core.export.case import ExportOptions, outputs_if_any
from export_core.goldens.arrays import leaf_of

X = np.ones((2, 3), np.float32)


@pytest.fixture
def symbolic(exported):
    return exported(lambda x: x.sum(0), X, symbolic_shapes=("b, 3",), constraints=("b >= 2",))


def use(*args, refused=None, **kwargs):
    return ExtraCall(args, kwargs, refused)


def test_calls_and_refusals_are_kept_in_order_with_their_arrays(symbolic):
    uses = [use(np.ones((5, 3), np.float32)), use(np.ones((1, 3), np.float32), refused="b >= 2")]
    produced = add_checks(symbolic, uses)
    call, refusal = produced.manifest.checks
    assert (call.name, call.inputs, call.outputs) == ("call1", "call1.inputs.npz", "call1.outputs.npz")
    assert (refusal.name, refusal.inputs, refusal.outputs) == ("refused2", "refused2.inputs.npz", None)
    assert refusal.refused == "b >= 2"
    assert {"call1.inputs.npz", "call1.outputs.npz", "refused2.inputs.npz"} <= produced.files.keys()
    assert set(produced.manifest.files) == set(produced.files)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (use(np.ones((4, 3), np.float32), refused="b >= 2"), "test_f: refused1: expected this call .* and it was not"),
        (use(X.astype(np.int32), refused="b >= 2"), "expected a refusal with 'b >= 2' .* found ValueError: .*float32"),
        (use(X, X), "call 1 has other arguments than the first one"),
    ],
    ids=["no refusal", "another reason", "other arguments"],
)
def test_a_further_call_that_is_not_as_expected_fails_at_writing(symbolic, call, message):
    with pytest.raises(ExportError, match=message):
        add_checks(symbolic, [call])


def printing(x):
    jax.debug.print("{}", x)
    return x


@pytest.mark.parametrize(
    ("function", "argument", "options", "message"),
    [
        (printing, X, {}, "calls back into Python, .* Leave the call out when exporting"),
        (jnp.copy, jnp.zeros(3, "int2"), {}, "refused this function: .*int2"),
        (jnp.copy, jnp.zeros(3, "uint2"), {}, "refused this function: .*uint2"),
        (jnp.sin, X, {"calling_convention_version": 3}, "version"),
        (jnp.sin, X, {"register": ("nobody_imported_this",)}, "register='nobody.*: expected the name .* found none"),
        (jnp.sin, X, {"register": ("builtins",)}, "register='builtins': expected the name of a module .* found None"),
    ],
)
def test_what_cannot_be_exported_is_told(exported, function, argument, options, message):
    with pytest.raises((ExportError, ValueError), match=message):
        exported(function, argument, **options)


def test_a_refusal_is_tried_on_the_artifact_as_it_is_read_back(exported):
    """Before serializing, jax names the constraint; deserialized, it refines shapes first and names the misfit."""
    symbolic = {"symbolic_shapes": ("b",), "constraints": ("b >= 2", "mod(b, 2) == 0")}
    halves = exported(lambda x: x.reshape(x.shape[0] // 2, 2).sum(1), X[:, 0], **symbolic)
    message = r"(?s)refused1: expected a refusal with 'b >= 2' .* number of output elements"
    with pytest.raises(ExportError, match=message):
        add_checks(halves, [use(X[:1, 0], refused="b >= 2")])
    add_checks(halves, [use(X[:1, 0], refused="number of output elements")])


class OldChecks:
    """`DisabledSafetyCheck` of jax 0.4.24 to 0.4.28."""

    platform = staticmethod(lambda: "platform")
    shape_assertions = staticmethod(lambda: "shape_assertions")
    custom_call = staticmethod(lambda target: f"custom_call:{target}")


def test_shape_assertions_are_a_check_of_their_own_and_no_target(monkeypatch):
    given = []

    def export(function, *, platforms=None, disabled_checks=()):
        given.extend(disabled_checks)
        return lambda: None

    old = SimpleNamespace(DisabledSafetyCheck=OldChecks, export=export)
    monkeypatch.setattr(api, "export_module", lambda: old)
    names = ("platform", "shape_assertions", "my_target", "ALL")
    api.export_function(jax.jit(jnp.sin), (), {}, platforms=("cpu",), disabled_checks=names)
    assert given == ["platform", "shape_assertions", "custom_call:my_target", "custom_call:ALL"]


def test_a_jax_without_the_check_refuses_its_name():
    options = ExportOptions(disabled_checks={"shape_assertions": "we call it with other shapes"})
    case = Case("a", "test_a.py::test_a", None, jax.jit(jnp.sin), (1.0,), {}, options)
    with pytest.raises(ExportError, match=r"cannot leave out the shape_assertions, as only jax before 0\.4\.29 can"):
        case.check()


# --- whether a function is run when its golden is written -------------------------------------------------------------

OUTPUTS = (leaf_of(np.ones(2)),)


def outputs_on(platform: str, reason: str, error: Exception | None = None):
    def compute():
        if error:
            raise error
        return OUTPUTS

    options = ExportOptions(platforms=("cuda",), without_outputs=reason)
    case = Case("test_a.test_f", "test_a.py::test_f", None, lambda: None, (), {}, options)
    return outputs_if_any(case, platform, ("cuda",), compute)


@pytest.mark.parametrize(("platform", "reason"), [("cpu", ""), ("cuda", ""), ("cuda", "CI has no GPU")])
def test_a_function_that_runs_has_outputs_also_on_its_own_platform(platform, reason):
    assert outputs_on(platform, reason) == (OUTPUTS, "")


def test_with_a_reason_nothing_is_run_elsewhere():
    assert outputs_on("cpu", "CI has no GPU", AssertionError("it ran")) == (None, "CI has no GPU")


NOT_FOUND = "MLIR translation rule for primitive 'mine' not found for platform cpu"


@pytest.mark.parametrize("told", [NOT_FOUND, "Only interpret mode is supported on CPU backend"])
def test_where_jax_has_no_lowering_its_message_is_the_reason(told):
    reason = f"JAX cannot run it on cpu, where it was written: {told}"
    assert outputs_on("cpu", "", NotImplementedError(f"{told}.\nmore")) == (None, reason)


def test_an_error_elsewhere_asks_for_a_reason():
    with pytest.raises(ExportError, match=r"does not run on cpu.*ValueError: no rule\. .*without_outputs='why'"):
        outputs_on("cpu", "", ValueError("no rule.\nmore"))


def test_an_error_on_its_own_platform_is_that_of_the_function():
    with pytest.raises(ValueError, match="no rule"):
        outputs_on("cuda", "CI has no GPU", ValueError("no rule"))


# --- modules that a reader must import first --------------------------------------------------------------------------

NODES = """
import jax
from jax import export

class Box:
    def __init__(self, value):
        self.value = value

jax.tree_util.register_pytree_node(Box, lambda box: ((box.value,), None), lambda _, children: Box(*children))
export.register_pytree_node_serialization(
    Box, serialized_name="tests.Box", serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: None
)
"""


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    (folder / "boxes_to_register.py").write_text(NODES)
    sys.path.insert(0, str(folder))
    import boxes_to_register

    yield boxes_to_register
    sys.path.remove(str(folder))


def test_a_copy_of_the_module_is_one_of_the_goldens_files(exported, boxes):
    produced = exported(lambda box: boxes.Box(box.value + 1), boxes.Box(X), register=("boxes_to_register",))
    assert produced.files["boxes_to_register.register.py"] == Path(boxes.__file__).read_bytes()
    assert "boxes_to_register.register.py" in produced.manifest.files
    assert produced.manifest.options.register == ("boxes_to_register",)
