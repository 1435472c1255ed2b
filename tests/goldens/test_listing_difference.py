"""What differs between two jaxprs: the changed line, not the hundred that were renumbered by it."""

import jax
import jax.numpy as jnp
import numpy as np

from export_core.export.jaxprs import describe_jaxpr
from export_core.goldens.source_difference import jaxpr_difference


def jaxpr(function, *args):
    return describe_jaxpr(jax.make_jaxpr(function)(*args)).text


def changed(lines):
    return [line for line in lines if line[:1] in "+-"]


def chain(*functions):
    def run(x, y):
        for function in functions:
            x = function(x, y)
        return x

    return run


def add(x, y):
    return jnp.sin(x) + y


X = np.ones(3, np.float32)
LONG = [add] * 40


def test_equal_jaxprs_do_not_differ():
    text = jaxpr(chain(*LONG), X, X)
    assert jaxpr_difference(text, text) == []


def test_names_of_variables_alone_are_no_difference():
    then = "{ lambda ; a:f32[3]. let\n    b:f32[3] = sin a\n    c:f32[3] = add b a\n  in (c,) }\n"
    now = "{ lambda ; x:f32[3]. let\n    q:f32[3] = sin x\n    a:f32[3] = add q x\n  in (a,) }\n"
    assert jaxpr_difference(then, now) == []


def test_a_new_first_equation_changes_its_line_and_its_uses_only():
    then = jaxpr(chain(*LONG), X, X)
    now = jaxpr(chain(lambda x, y: jnp.tanh(x), *LONG), X, X)
    assert changed(jaxpr_difference(then, now)) == [
        "-    c:f32[3] = sin a",
        "+    c':f32[3] = tanh a",
        "+    c:f32[3] = sin c'",
    ]


def test_another_primitive_in_the_middle_is_one_line():
    then = jaxpr(chain(*LONG, lambda x, y: jnp.tanh(x), *LONG), X, X)
    now = jaxpr(chain(*LONG, lambda x, y: jnp.exp(x), *LONG), X, X)
    gone, new = changed(jaxpr_difference(then, now))
    assert gone.split(" = ")[0][1:] == new.split(" = ")[0][1:]
    assert (gone.split()[-2], new.split()[-2]) == ("tanh", "exp")


def test_operands_that_changed_places_are_a_difference():
    then, now = (jaxpr(function, X, X) for function in (lambda x, y: x - y, lambda x, y: y - x))
    assert len(changed(jaxpr_difference(then, now))) == 2


def test_swapped_operands_show_where_arguments_changed_too():
    then = jaxpr(lambda x, y: x - y, X, X)
    now = jaxpr(lambda x, y: y - x, np.ones(4, np.float32), np.ones(4, np.float32))
    assert any("sub b a" in line for line in jaxpr_difference(then, now))


def test_words_in_quotes_and_parameters_are_no_variables():
    then = "{ lambda ; a:f32[]. let\n    b:f32[] = f[k=a name='a b'] a\n  in (b,) }\n"
    now = then.replace("k=a", "k=b")
    assert changed(jaxpr_difference(then, now)) == [
        "-    b:f32[] = f[k=a name='a b'] a",
        "+    b:f32[] = f[k=b name='a b'] a",
    ]


def test_what_is_left_out_of_a_long_difference_is_counted():
    then, now = "\n".join(f"old {n}" for n in range(100)), "\n".join(f"new {n}" for n in range(100))
    lines = jaxpr_difference(then, now, most=10)
    assert len(lines) == 11
    assert lines[-1] == "… 191 more lines of this difference"


def test_a_line_without_end_is_cut():
    assert max(map(len, jaxpr_difference("a" * 10_000, "b" * 10_000))) < 300
