"""The message for a refused callback names its primitive, file and source line, also inside inner jaxprs."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify, io_callback

from export_core.export.refusals import describe_callbacks


def prints(x: Any) -> Any:
    jax.debug.print("x {}", x)
    return x


@jax.custom_vjp
def rule(x: Any) -> Any:
    return jax.pure_callback(np.sin, x, x)


rule.defvjp(lambda x: (rule(x), x), lambda _, cotangent: (cotangent,))


def in_scan(x: Any) -> Any:
    return jax.lax.scan(lambda carry, _: (prints(carry), None), x, None, length=2)[0]


def in_custom_vjp_in_cond(x: Any) -> Any:
    return jax.lax.cond(x > 0, rule, lambda x: x, x)


def in_jit(x: Any) -> Any:
    jax.jit(lambda x: io_callback(print, None, x, ordered=True))(x)
    return x


def in_gradient(x: Any) -> Any:
    return jax.grad(in_scan)(x)


def in_vmap(x: Any) -> Any:
    return jax.vmap(prints)(x[None])


def checked(x: Any) -> Any:
    checkify.check(x > 0, "x is {}", x)
    return x


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (in_scan, r'debug_(print|callback) at .*test_callbacks.py:\d+ in prints: jax.debug.print\("x {}", x\)'),
        (in_custom_vjp_in_cond, r"pure_callback at .*test_callbacks.py:\d+ in rule: return jax.pure_callback\("),
        (in_jit, r"io_callback at .*test_callbacks.py:\d+ in <lambda>: jax.jit\(lambda x: io_callback\("),
        (in_gradient, r"debug_(print|callback) at .*test_callbacks.py:\d+ in prints: jax.debug.print\("),
        (in_vmap, r"debug_(print|callback) at .*test_callbacks.py:\d+ in prints: jax.debug.print\("),
        (checked, r"check at .*test_callbacks.py:\d+ in checked: checkify.check\(.*\nExport jax.jit"),
    ],
)
def test_a_call_is_told_with_its_line(function: Callable[..., Any], expected: str) -> None:
    text = describe_callbacks(jax.jit(function).trace(jnp.float32(1)).jaxpr)
    assert re.fullmatch(expected + ".*", text), text


def test_advice_is_given_where_it_applies() -> None:
    assert "\n" not in describe_callbacks(jax.make_jaxpr(prints)(1.0))


def test_one_line_is_told_once() -> None:
    def twice(x: Any) -> Any:
        return prints(prints(x))

    assert describe_callbacks(jax.make_jaxpr(twice)(1.0)).count("debug_") == 1


def test_more_than_five_are_counted() -> None:
    lines = "".join(f"    jax.debug.callback(print, {number})\n" for number in range(7))
    program = f"def many(x):\n{lines}    return x\n"
    linecache.cache["many.py"] = (len(program), None, program.splitlines(keepends=True), "many.py")
    names: dict[str, Any] = {"jax": jax}
    exec(compile(program, "many.py", "exec"), names)
    text = describe_callbacks(jax.make_jaxpr(names["many"])(1.0))
    assert text.splitlines()[4:] == ["debug_callback at many.py:6 in many: jax.debug.callback(print, 4)", "and 2 more"]


def test_the_library_that_makes_the_call_is_named() -> None:
    program = "def error_if(x):\n    return jax.pure_callback(abs, x, x)\n"
    names: dict[str, Any] = {"jax": jax}
    exec(compile(program, "/lib/site-packages/equinox/_errors.py", "exec"), names)

    def step(x: Any) -> Any:
        return names["error_if"](x)

    text = describe_callbacks(jax.make_jaxpr(step)(1.0))
    assert re.match(r"pure_callback \(equinox/_errors.py\) at .*test_callbacks.py:\d+ in step: return names", text), (
        text
    )
    assert "EQX_ON_ERROR=off" in text


def compiled(program: str, file: str, **names: Any) -> Any:
    found = {"jax": jax, **names}
    exec(compile(program, file, "exec"), found)
    return found["call"]


def test_a_call_of_another_library_through_equinox_is_not_equinox_s() -> None:
    inner = compiled("def call(x):\n    return jax.pure_callback(abs, x, x)\n", "/lib/site-packages/gp/solver.py")
    outer = compiled("def call(x):\n    return inner(x)\n", "/lib/site-packages/equinox/_module.py", inner=inner)
    text = describe_callbacks(jax.make_jaxpr(lambda x: outer(x))(1.0))
    assert text.startswith("pure_callback (gp/solver.py) at ")
    assert "EQX_ON_ERROR" not in text


def test_a_made_init_is_nobody_s_line() -> None:
    inner = compiled("def call(x):\n    return jax.pure_callback(abs, x, x)\n", "/lib/site-packages/gp/solver.py")
    made = compiled("def call(x):\n    return inner(x)\n", "<string>", inner=inner)
    assert "test_callbacks.py" in describe_callbacks(jax.make_jaxpr(lambda x: made(x))(1.0))


def test_a_call_that_is_in_no_equation_is_told_as_such(monkeypatch):
    monkeypatch.delitem(sys.modules, "equinox", raising=False)
    text = describe_callbacks(jax.make_jaxpr(jnp.sin)(1.0))
    assert text.startswith("No equation of the function makes the call")
    assert "EQX_ON_ERROR" not in text
    monkeypatch.setitem(sys.modules, "equinox", object())
    assert "EQX_ON_ERROR=off" in describe_callbacks(jax.make_jaxpr(jnp.sin)(1.0))
