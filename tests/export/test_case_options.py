"""Options of a case: further calls and refusals, safety checks, modules to register.

The writer checks itself what every reader must do.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from export_core.export import api
from export_core.export.case import Case, ExportOptions
from export_core.export.errors import ExportError
from export_core.export.golden_checks import ExtraCall, add_checks

X = np.ones((2, 3), np.float32)


@pytest.fixture
def symbolic(exported):
    return exported(lambda x: x.sum(0), X, symbolic_shapes=("b, 3",), constraints=("b >= 2",))


def use(*args, refused=None, **kwargs):
    return ExtraCall(args, kwargs, refused)


def test_further_calls_and_declared_refusals_are_stored_in_order(symbolic):
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
        (
            use(X.astype(np.int32), refused="(a+)+"),
            r"test_f: call 1: refused\(match=…\): expected a regular expression",
        ),
        (use(X.astype(np.int32), refused="b >= 2"), "expected a refusal with 'b >= 2' .* found ValueError: .*float32"),
        (use(X, X), "call 1 takes different arguments from the first call: expected PyTreeDef"),
    ],
    ids=["no refusal", "an endless pattern", "another reason", "other arguments"],
)
def test_a_further_call_that_does_not_end_as_declared_is_an_error(symbolic, call, message):
    with pytest.raises(ExportError, match=message):
        add_checks(symbolic, [call])


def printing(x):
    jax.debug.print("{}", x)
    return x


def calling_back(x):
    return jax.pure_callback(lambda array: array, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@pytest.mark.parametrize(
    ("function", "argument", "options", "message"),
    [
        (printing, X, {}, "calls back into Python, .* Leave the call out when exporting"),
        (calling_back, X, {"symbolic_shapes": ("b, 3",)}, r"(?s)calls back into Python, .*\npure_callback at "),
        (jnp.copy, jnp.zeros(3, "int2"), {}, "refused this function: .*int2"),
        (jnp.copy, jnp.zeros(3, "uint2"), {}, "refused this function: .*uint2"),
        (jnp.sin, X, {"calling_convention_version": 3}, "version"),
        (jnp.sin, X, {"register": ("nobody_imported_this",)}, "register='nobody.*: expected the name .* found none"),
        (jnp.sin, X, {"register": ("builtins",)}, "register='builtins': expected the name of a module .* found None"),
    ],
)
def test_a_function_that_cannot_be_exported_is_an_error(exported, function, argument, options, message):
    with pytest.raises((ExportError, ValueError), match=message):
        exported(function, argument, **options)


def test_a_declared_refusal_is_tried_on_the_deserialized_artifact(exported):
    """Of an artifact that was not serialized, jax names the constraint; of a deserialized one, the misfit of shapes."""
    symbolic = {"symbolic_shapes": ("b",), "constraints": ("b >= 2", "mod(b, 2) == 0")}
    halves = exported(lambda x: x.reshape(x.shape[0] // 2, 2).sum(1), X[:, 0], **symbolic)
    message = r"(?s)refused1: expected a refusal with 'b >= 2' .* number of output elements"
    with pytest.raises(ExportError, match=message):
        add_checks(halves, [use(X[:1, 0], refused="b >= 2")])
    add_checks(halves, [use(X[:1, 0], refused="number of output elements")])


def test_a_declared_refusal_on_a_platform_not_here_is_not_tried(exported):
    options = {"platforms": ("tpu",), "without_outputs": "no TPU here"}
    produced = exported(lambda x: x.sum(0), X, symbolic_shapes=("b, 3",), constraints=("b >= 2",), **options)
    (refusal,) = add_checks(produced, [use(X[:1], refused="b >= 2")]).manifest.checks
    assert refusal.refused == "b >= 2"


class OldChecks:
    """`DisabledSafetyCheck` of jax 0.4.24 to 0.4.28."""

    platform = staticmethod(lambda: "platform")
    shape_assertions = staticmethod(lambda: "shape_assertions")
    custom_call = staticmethod(lambda target: f"custom_call:{target}")


def test_shape_assertions_are_not_a_custom_call_target(monkeypatch):
    given = []

    def export(function, *, platforms=None, disabled_checks=()):
        given.extend(disabled_checks)
        return lambda: None

    old = SimpleNamespace(DisabledSafetyCheck=OldChecks, export=export)
    monkeypatch.setattr(api, "export_module", lambda: old)
    names = ("platform", "shape_assertions", "my_target", "ALL")
    api.export_function(jax.jit(jnp.sin), (), {}, platforms=("cpu",), disabled_checks=names)
    assert given == ["platform", "shape_assertions", "custom_call:my_target", "custom_call:ALL"]


def test_shape_assertions_are_refused_by_newer_jax():
    options = ExportOptions(disabled_checks={"shape_assertions": "we call it with other shapes"})
    case = Case("a", "test_a.py::test_a", None, jax.jit(jnp.sin), (1.0,), {}, options)
    with pytest.raises(ExportError, match=r"cannot leave out the shape_assertions; only jax before 0\.4\.29 can"):
        case.check()


def test_an_error_while_computing_outputs_is_raised():
    def compute():
        raise ValueError("no rule")

    options = ExportOptions(platforms=("cuda",), without_outputs="CI has no GPU")
    case = Case("test_a.test_f", "test_a.py::test_f", None, lambda: None, (), {}, options)
    with pytest.raises(ValueError, match="no rule"):
        case.outputs_if_any("cuda", ("cuda",), compute)
