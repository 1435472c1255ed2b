"""The difference between a golden's export and today's: figures, then jaxprs, then StableHLO.

Of two jaxprs, the changed line is shown, not the hundred lines whose variables are renumbered.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from making import manifest, writer
from msgspec import structs

from export_core.export.jaxprs import describe_jaxpr
from export_core.goldens.manifest import JaxprSummary
from pytest_jaxexport.changes import jaxpr_difference, source_difference, summary_difference

X = np.ones(3, np.float32)


def exported(function):
    text, summary = describe_jaxpr(jax.make_jaxpr(function)(X))
    artifact = bytes(jax.export.export(jax.jit(function))(X).serialize())
    files = {"jaxpr.txt": text.encode(), "artifact.jaxexport": artifact}
    return files, manifest(jaxpr=summary)


def written(folder, files):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_counts_of_primitives_come_before_jaxpr_and_stablehlo(tmp_path):
    then, golden = exported(jnp.tanh)
    now, today = exported(lambda x: jnp.tanh(jnp.tanh(x)) + jnp.exp(x))
    lines = source_difference(written(tmp_path, then), now, golden, today)
    assert lines[0] == "primitives: tanh 1 → 2; new: add 1, exp 1"
    heads = [line for line in lines if not line.startswith("  ")]
    assert [head.split()[0] for head in heads] == ["primitives:", "jaxpr", "StableHLO"]
    assert any(line.startswith("  +") and "= exp a" in line for line in lines)
    assert any(line.startswith("  module: @main: + exponential") for line in lines)
    without = source_difference(tmp_path, now, golden, today, operations=False)
    assert without == lines[: lines.index(heads[2])]
    assert source_difference(tmp_path, then, golden, golden) == []


def test_a_changed_constant_shows_in_stablehlo_only(tmp_path):
    (then, golden), (now, today) = (exported(lambda x, c=c: x * np.array([1, 2, c], np.float32)) for c in (3, 4))
    (head, line) = source_difference(written(tmp_path, then), now, golden, today)
    assert head == f"StableHLO (golden → now, - only golden, + only now; {tmp_path / 'artifact.jaxexport'}):"
    assert "dense<[1.0, 2.0, 3.0]>" in line
    assert "dense<[1.0, 2.0, 4.0]>" in line


def test_a_changed_function_type_is_shown_with_was_and_now(tmp_path):
    """With an arrow between the types, `(...) -> (...) → (...) -> (...)` was read as one type."""
    (then, golden), (now, today) = (exported(lambda x, n=n: jnp.concatenate([x] * n)) for n in (2, 3))
    lines = source_difference(written(tmp_path, then), now, golden, today)
    (line,) = (line for line in lines if "->" in line and line.startswith("  module"))
    assert line.count("->") == 2
    assert "→" not in line
    assert ": was (" in line
    assert "; now (" in line


def test_without_readable_files_in_a_golden_no_difference_is_shown(tmp_path):
    then, golden = exported(jnp.sin)
    now, today = exported(jnp.cos)
    assert source_difference(tmp_path, now, structs.replace(golden, jaxpr=None), today) == []
    written(tmp_path, {**then, "artifact.jaxexport": b"damaged"})
    assert source_difference(tmp_path, then, golden, golden) == []


def test_a_difference_to_a_golden_by_another_jax_names_its_release(tmp_path):
    (then, golden), (now, today) = exported(jnp.sin), exported(jnp.cos)
    older = structs.replace(golden, writer=writer("0.6.2"))
    assert "The golden is by jax 0.6.2" in source_difference(written(tmp_path, then), now, older, today)[-1]


def test_changed_constants_effects_and_primitives_are_reported():
    then = JaxprSummary({"sin": 1, "cos": 2}, ("float32[3]", "float32[3]"), ())
    now = JaxprSummary({"cos": 2}, ("float32[3]",), ("Debug",))
    assert summary_difference(then, now) == [
        "primitives: gone: sin 1",
        "constants: golden 2 × float32[3]; now float32[3]",
        "effects: golden none; now Debug",
    ]


# --- two jaxprs -------------------------------------------------------------------------------------------------------


def jaxpr(function, *args):
    return describe_jaxpr(jax.make_jaxpr(function)(*args))[0]


def changed(then, now):
    return [line for line in jaxpr_difference(then, now) if line[:1] in "+-"]


def chain(*functions):
    def run(x, y):
        for function in functions:
            x = function(x, y)
        return x

    return jaxpr(run, X, X)


LONG = [lambda x, y: jnp.sin(x) + y] * 40


def test_renamed_variables_are_no_difference():
    then = "{ lambda ; a:f32[3]. let\n    b:f32[3] = sin a\n    c:f32[3] = add b a\n  in (c,) }\n"
    now = "{ lambda ; x:f32[3]. let\n    q:f32[3] = sin x\n    a:f32[3] = add q x\n  in (a,) }\n"
    assert jaxpr_difference(then, now) == []


def test_a_new_equation_changes_only_its_line_and_uses():
    assert changed(chain(*LONG), chain(lambda x, y: jnp.tanh(x), *LONG)) == [
        "-    c:f32[3] = sin a",
        "+    c':f32[3] = tanh a",
        "+    c:f32[3] = sin c'",
    ]


def test_a_changed_primitive_changes_one_line():
    then, now = (chain(*LONG, lambda x, y, f=f: f(x), *LONG) for f in (jnp.tanh, jnp.exp))
    gone, new = changed(then, now)
    assert gone.split(" = ")[0][1:] == new.split(" = ")[0][1:]
    assert (gone.split()[-2], new.split()[-2]) == ("tanh", "exp")


@pytest.mark.parametrize("size", [3, 4])
def test_swapped_operands_are_a_difference(size):
    then, now = jaxpr(lambda x, y: x - y, X, X), jaxpr(lambda x, y: y - x, *[np.ones(size, np.float32)] * 2)
    assert any("sub b a" in line for line in changed(then, now))


def test_a_changed_parameter_with_a_variables_name_is_a_difference():
    then = "{ lambda ; a:f32[]. let\n    b:f32[] = f[k=a name='a b'] a\n  in (b,) }\n"
    gone, new = "-    b:f32[] = f[k=a name='a b'] a", "+    b:f32[] = f[k=b name='a b'] a"
    assert changed(then, then.replace("k=a", "k=b")) == [gone, new]


def test_a_long_difference_and_a_long_line_are_cut():
    then, now = "\n".join(f"old {n}" for n in range(100)), "\n".join(f"new {n}" for n in range(100))
    lines = jaxpr_difference(then, now, most=10)
    assert (len(lines), lines[-1]) == (11, "… 191 more lines of this difference")
    assert max(map(len, jaxpr_difference("a" * 10_000, "b" * 10_000))) < 300
