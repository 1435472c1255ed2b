"""Further calls and refusals of a case: the writer itself must do what every reader must. Safety checks by name."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from export_core.export import Case, ExportError, ExtraCall, add_checks, api
from export_core.export.case import ExportOptions

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
    assert (refusal.name, refusal.inputs, refusal.outputs, refusal.refused) == (
        "refused2", "refused2.inputs.npz", None, "b >= 2",
    )  # fmt: skip
    assert {"call1.inputs.npz", "call1.outputs.npz", "refused2.inputs.npz"} <= produced.files.keys()
    assert set(produced.manifest.files) == set(produced.files)


def test_a_refusal_that_does_not_come_fails_at_writing(symbolic):
    with pytest.raises(ExportError, match=r"test_f: refused1: expected this call .* to be refused, and it was not"):
        add_checks(symbolic, [use(np.ones((4, 3), np.float32), refused="b >= 2")])


def test_a_refusal_for_another_reason_fails_with_its_message(symbolic):
    with pytest.raises(ExportError, match=r"refused1: expected a refusal with 'b >= 2' .* found ValueError: .*float32"):
        add_checks(symbolic, [use(X.astype(np.int32), refused="b >= 2")])


def test_a_call_with_other_arguments_than_the_first_is_told(exported):
    produced = exported(lambda x, y: x + y, X, X)
    with pytest.raises(ExportError, match="call 1 has other arguments than the first one"):
        add_checks(produced, [use(X)])


def test_a_host_callback_is_an_error_that_says_what_to_do(exported):
    def printing(x):
        jax.debug.print("{}", x)
        return x

    with pytest.raises(ExportError, match=r"calls back into Python, .* Leave the call out when exporting"):
        exported(printing, X)


@pytest.mark.parametrize("dtype", ["int2", "uint2"])
def test_a_dtype_that_no_artifact_can_hold_is_told(exported, dtype):
    with pytest.raises(ExportError, match=f"refused this function: .*{dtype}"):
        exported(lambda x: x, jnp.zeros(3, dtype))


def test_a_setting_that_this_jax_does_not_take_is_told(exported):
    with pytest.raises((ExportError, ValueError), match="version"):
        exported(lambda x: x, X, calling_convention_version=3)


def test_a_refusal_is_tried_on_the_artifact_as_it_is_read_back(exported):
    """Before serializing, jax names the constraint; deserialized, it refines shapes first and names the misfit."""
    symbolic = {"symbolic_shapes": ("b",), "constraints": ("b >= 2", "mod(b, 2) == 0")}
    halves = exported(lambda x: x.reshape(x.shape[0] // 2, 2).sum(1), X[:, 0], **symbolic)
    with pytest.raises(
        ExportError, match=r"(?s)refused1: expected a refusal with 'b >= 2' .* number of output elements"
    ):
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
