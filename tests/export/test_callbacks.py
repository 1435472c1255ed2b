"""The message for a refused callback names its primitive, file and source line, also inside inner jaxprs."""

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


def checked(x: Any) -> Any:
    checkify.check(x > 0, "x is {}", x)
    return x


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (in_scan, r'debug_(print|callback) at {} in prints: jax.debug.print\("x {{}}", x\)'),
        (jax.grad(in_scan), r"debug_(print|callback) at {} in prints: jax.debug.print\("),
        (lambda x: jax.vmap(prints)(x[None]), r"debug_(print|callback) at {} in prints: jax.debug.print\("),
        (lambda x: jax.lax.cond(x > 0, rule, abs, x), r"pure_callback at {} in rule: return jax.pure_callback\("),
        (jax.jit(lambda x: io_callback(print, None, x)), r"io_callback at {} in <lambda>: .*io_callback\("),
        (checked, r"check at {} in checked: checkify.check\(.*\nExport jax.jit"),
    ],
    ids=["scan", "gradient", "vmap", "custom_vjp in cond", "jit", "checkify"],
)
def test_a_call_is_told_with_its_line(function: Callable[..., Any], expected: str) -> None:
    text = describe_callbacks(jax.jit(function).trace(jnp.float32(1)).jaxpr)
    assert re.fullmatch(expected.format(r".*test_callbacks.py:\d+") + ".*", text), text


def test_advice_is_given_where_it_applies() -> None:
    assert "\n" not in describe_callbacks(jax.make_jaxpr(prints)(1.0))


def test_one_line_is_told_once() -> None:
    def twice(x: Any) -> Any:
        return prints(prints(x))

    assert describe_callbacks(jax.make_jaxpr(twice)(1.0)).count("debug_") == 1


def compiled(body: str, file: str, **names: Any) -> Any:
    """A function `call` of a library's file."""
    found = {"jax": jax, **names}
    exec(compile(f"def call(x):\n{body}", file, "exec"), found)
    return found["call"]


def test_more_than_five_are_counted() -> None:
    body = "".join(f"    jax.debug.callback(print, {number})\n" for number in range(7)) + "    return x\n"
    linecache.cache["many.py"] = (1, None, ["def call(x):\n", *body.splitlines(keepends=True)], "many.py")
    text = describe_callbacks(jax.make_jaxpr(compiled(body, "many.py"))(1.0))
    assert text.splitlines()[4:] == ["debug_callback at many.py:6 in call: jax.debug.callback(print, 4)", "and 2 more"]


CALLS_BACK = "    return jax.pure_callback(abs, x, x)\n"


def test_the_library_that_makes_the_call_is_named() -> None:
    error_if = compiled(CALLS_BACK, "/lib/site-packages/equinox/_errors.py")

    def step(x: Any) -> Any:
        return error_if(x)

    text = describe_callbacks(jax.make_jaxpr(step)(1.0))
    assert re.match(r"pure_callback \(equinox/_errors.py\) at .*test_callbacks.py:\d+ in step: return error_if", text)
    assert "EQX_ON_ERROR=off" in text


@pytest.mark.parametrize("file", ["/lib/site-packages/equinox/_module.py", "<string>"], ids=["equinox", "init"])
def test_what_a_call_of_another_library_goes_through_is_not_named(file: str) -> None:
    outer = compiled("    return inner(x)\n", file, inner=compiled(CALLS_BACK, "/lib/site-packages/gp/solver.py"))
    text = describe_callbacks(jax.make_jaxpr(lambda x: outer(x))(1.0))
    assert re.match(r"pure_callback \(gp/solver.py\) at .*test_callbacks.py:", text)
    assert "EQX_ON_ERROR" not in text


def test_a_call_that_is_in_no_equation_is_told_as_such(monkeypatch):
    monkeypatch.delitem(sys.modules, "equinox", raising=False)
    text = describe_callbacks(jax.make_jaxpr(jnp.sin)(1.0))
    assert text.startswith("No equation of the function makes the call")
    assert "EQX_ON_ERROR" not in text
    monkeypatch.setitem(sys.modules, "equinox", object())
    assert "EQX_ON_ERROR=off" in describe_callbacks(jax.make_jaxpr(jnp.sin)(1.0))
