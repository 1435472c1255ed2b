"""Safety checks by name: a name means what it meant in the jax that knew it."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from export_core.export import Case, ExportError, api
from export_core.export.case import ExportOptions


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
