"""The statements of JAX's document on jaxprs: their parts, and each construct in an export."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax, make_jaxpr

from export_core.export.errors import ExportError

EIGHT = (np.zeros(8, np.float32), np.ones(8, np.float32))


def func1(first, second):
    temp = first + jnp.sin(second) * 3.0
    return jnp.sum(temp)


def equation(function, *args, name):
    """Return the only equation of a primitive in a function's jaxpr."""
    (found,) = [each for each in make_jaxpr(function)(*args).eqns if each.primitive.name == name]
    return found


def text(function, *args):
    return str(make_jaxpr(function)(*args))


# Section "jax.core.ClosedJaxpr".


def test_a_closed_jaxpr_has_a_jaxpr_and_its_constants():
    # jax.core.ClosedJaxpr in the document; since 0.11.0 what make_jaxpr gives is a Jaxpr with the same two fields.
    closed = make_jaxpr(lambda x: x * np.arange(3.0, dtype=np.float32))(1.0)
    assert [str(variable.aval) for variable in closed.jaxpr.constvars] == ["float32[3]"]
    assert [np.asarray(constant).tolist() for constant in closed.consts] == [[0, 1, 2]]
    assert [str(variable.aval.dtype) for variable in closed.jaxpr.invars] == ["float32"]


def test_an_equation_uses_inputs_and_earlier_results():
    jaxpr = make_jaxpr(lambda x, y: jnp.tanh(x @ y).sum() * np.arange(3.0))(np.ones((2, 3)), np.ones((3, 2))).jaxpr
    known = {*jaxpr.constvars, *jaxpr.invars}
    for each in jaxpr.eqns:
        assert {atom for atom in each.invars if not hasattr(atom, "val")} <= known
        assert not known & set(each.outvars)
        known |= set(each.outvars)
    assert set(jaxpr.outvars) <= known


def test_parameters_are_printed_in_brackets_by_name():
    # reduce_sum has input_shape too in the document, which jax 0.4.24 no longer has.
    assert "= reduce_sum[axes=(0,)" in text(func1, *EIGHT).replace("\n", "")
    assert "input_shape" not in equation(func1, *EIGHT, name="reduce_sum").params


def test_a_primitive_may_have_several_results():
    assert len(equation(lambda x: lax.top_k(x, 2), np.ones(4), name="top_k").outvars) == 2


def test_python_calls_and_conditions_are_not_in_a_jaxpr():
    def func2(inner, first, second):
        temp = first + inner(second) * 3.0
        return jnp.sum(temp)

    def inner(second):
        if second.shape[0] > 4:
            return jnp.sin(second)
        raise AssertionError

    assert text(lambda first, second: func2(inner, first, second), *EIGHT) == text(func1, *EIGHT)


def test_a_python_condition_on_an_argument_is_refused(export_marked):
    condition = jax.jit(lambda x: 1 if x > 0 else 2)
    with pytest.raises(jax.errors.TracerBoolConversionError, match="Attempted boolean conversion of traced array"):
        export.export(condition)(1.0)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        export_marked(condition, 1.0)


def test_the_jaxpr_of_a_golden_has_dimension_variables(export_marked):
    produced = export_marked(jax.jit(jnp.sin), np.ones((2, 4), np.float32), symbolic_shapes="b, 2*b")
    assert "a:f32[b,2*b]" in produced.files["jaxpr.txt"].decode()


# Section "Handling pytrees".


def test_a_pytree_argument_is_flattened_in_a_jaxpr():
    def func4(arg):
        temp = arg[0] + jnp.sin(arg[1]) * 3.0
        return jnp.sum(temp)

    assert text(func4, EIGHT) == text(func1, *EIGHT)


# Section "Constant variables".


def test_scalars_are_inline_and_arrays_are_constant_variables():
    jaxpr = make_jaxpr(lambda x: (x * 3.0, x + np.ones(2, np.float32)))(1.0).jaxpr
    literals = [atom.val for each in jaxpr.eqns for atom in each.invars if hasattr(atom, "val")]
    assert [float(value) for value in literals] == [3.0]
    assert [variable.aval.shape for variable in jaxpr.constvars] == [(2,)]


# Section "cond primitive".


def one_of_three(index, arg):
    return lax.switch(index, [lambda x: x + 1.0, lambda x: x - 2.0, lambda x: x + 3.0], arg)


def func7(arg):
    return lax.cond(arg >= 0.0, lambda xtrue: xtrue + 3.0, lambda xfalse: xfalse - 3.0, arg)


def test_switch_and_cond_are_the_same_primitive():
    several, two = equation(one_of_three, 1, 5.0, name="cond"), equation(func7, 5.0, name="cond")
    assert [len(each.params["branches"]) for each in (several, two)] == [3, 2]
    # linear too in the document; gone in 0.4.31.
    assert "linear" not in two.params


def test_the_first_operand_of_cond_is_an_integer_index():
    assert [str(atom.aval.dtype) for atom in equation(one_of_three, 1, 5.0, name="cond").invars] == ["int32", "float32"]
    assert [str(atom.aval.dtype) for atom in equation(func7, 5.0, name="cond").invars] == ["int32", "float32"]


def test_the_first_branch_of_cond_is_the_one_for_false():
    branches = equation(func7, 5.0, name="cond").params["branches"]
    assert [[each.primitive.name for each in branch.jaxpr.eqns] for branch in branches] == [["sub"], ["add"]]


def test_an_index_out_of_range_takes_the_nearest_branch(export_marked):
    exported = export.deserialize(bytearray(export_marked(jax.jit(one_of_three), 1, 5.0).artifact.data))
    assert [float(exported.call(index, 5.0)) for index in (-3, 0, 1, 2, 9)] == [6, 6, 3, 8, 8]


def test_a_constant_of_a_branch_is_hoisted_to_the_top():
    def func8(arg1, arg2):
        return lax.cond(arg1 >= 0.0, lambda xtrue: xtrue[0], lambda xfalse: jnp.array([1], jnp.int32) + xfalse[1], arg2)

    jaxpr = make_jaxpr(func8)(5.0, (np.zeros(1, np.float32), 2.0)).jaxpr
    (constant,) = jaxpr.constvars
    (cond,) = [each for each in jaxpr.eqns if each.primitive.name == "cond"]
    assert str(constant.aval) == "int32[1]"
    assert constant in [atom for atom in cond.invars if not hasattr(atom, "val")]


# Section "while primitive".


def func10(arg, n):
    ones = jnp.ones(arg.shape)
    return lax.fori_loop(0, n, lambda i, carry: carry + ones * 3.0 + arg, arg + ones)


def test_a_python_loop_is_unrolled():
    def repeated(x):
        for _ in range(5):
            x = jnp.sin(x)
        return x

    assert [each.primitive.name for each in make_jaxpr(repeated)(1.0).eqns] == ["sin"] * 5


def test_a_while_takes_constants_and_then_the_carry():
    loop = equation(func10, np.ones(16, np.float32), 5, name="while")
    assert (loop.params["cond_nconsts"], loop.params["body_nconsts"], len(loop.invars)) == (0, 2, 5)


def test_a_fori_loop_with_a_fixed_count_is_a_scan():
    # The document has a while for every fori_loop.
    loop = equation(lambda x: lax.fori_loop(0, 5, lambda _, c: c + 1.0, x), 1.0, name="scan")
    assert loop.params["length"] == 5


def test_a_while_is_exported_and_has_no_reverse_derivative(export_marked):
    doubled = jax.jit(lambda x: lax.while_loop(lambda x: x < 10, lambda x: x * 2, x))
    exported = export.export(doubled)(1.0)
    assert float(export.deserialize(exported.serialize()).call(3.0)) == 12
    message = r"Reverse-mode differentiation does not work for lax.while_loop"
    with pytest.raises(ValueError, match=message):
        exported.serialize(vjp_order=1)
    with pytest.raises(ExportError, match=message):
        export_marked(doubled, 1.0, vjp_order=1)


# Section "scan primitive".


def func11(arr, extra):
    ones = jnp.ones(arr.shape)

    def body(carry, aelems):
        ae1, ae2 = aelems
        return (carry + ae1 * ae2 + extra, carry)

    return lax.scan(body, 0.0, (arr, ones))


def test_a_scan_takes_constants_then_the_carry_then_arrays():
    loop = equation(func11, np.ones(16, np.float32), 5.0, name="scan")
    shapes = [atom.aval.shape for atom in loop.invars]
    assert (shapes, loop.params["length"]) == ([(), (), (16,), (16,)], 16)
    assert [float(atom.val) for atom in loop.invars if hasattr(atom, "val")] == [0.0]
    # linear too in the document, gone in 0.10.0; num_consts and num_carry are ft_in since 0.11.0.
    assert "linear" not in loop.params


def test_a_scan_is_exported_with_its_reverse_derivative():
    scanned = export.export(jax.jit(lambda arr, extra: func11(arr, extra)[0]))(np.ones(16, np.float32), 5.0)
    rehydrated = export.deserialize(scanned.serialize(vjp_order=1)).call
    assert jax.grad(rehydrated, 1)(np.ones(16, np.float32), 5.0) == 16


# Section "(p)jit primitive".


def func12(arg):
    @jax.jit
    def inner(x):
        return x + arg * jnp.ones(1)

    return arg + inner(arg - 2.0)


def test_an_inner_jit_is_an_equation_with_its_own_jaxpr():
    # pjit before 0.7.0. Backend and device are no parameters of it, as they are in the document.
    call = equation(func12, 1.0, name="jit")
    assert call.params["name"] == "inner"
    assert [each.primitive.name for each in call.params["jaxpr"].jaxpr.eqns][-1] == "add"
    assert not {"backend", "device"} & set(call.params)


def test_an_inner_jit_is_a_function_of_the_exported_module(export_marked):
    produced = export_marked(jax.jit(func12), np.float32(1.0))
    assert "inner" in [function.name for function in produced.artifact.module.functions]
    assert re.search(r"jit\[\s*name=inner", produced.files["jaxpr.txt"].decode())
