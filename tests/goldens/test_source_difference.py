"""What has changed in what a test exports: figures, then jaxprs, then StableHLO."""

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from making import manifest

from export_core.export.jaxprs import describe_jaxpr
from export_core.goldens import JaxprSummary
from export_core.goldens.source_difference import source_difference, summary_difference

X = np.ones(3, np.float32)


def exported(function, *, jaxpr=True):
    described = describe_jaxpr(jax.make_jaxpr(function)(X))
    artifact = bytes(jax.export.export(jax.jit(function))(X).serialize())
    kept = msgspec.structs.replace(manifest(), jaxpr=described.summary if jaxpr else None)
    return {"jaxpr.txt": described.text.encode(), "artifact.jaxexport": artifact}, kept


def written(folder, files):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_figures_come_first_then_the_jaxpr_then_stablehlo(tmp_path):
    then, golden = exported(lambda x: jnp.tanh(x))
    now, today = exported(lambda x: jnp.tanh(jnp.tanh(x)) + jnp.exp(x))
    lines = source_difference(written(tmp_path, then), now, golden, today)
    assert lines[0] == "primitives: tanh 1 → 2; new: add 1, exp 1"
    heads = [line for line in lines if not line.startswith("  ")]
    assert [head.split()[0] for head in heads] == ["primitives:", "jaxpr", "StableHLO"]
    assert any(line.startswith("  +") and "= exp a" in line for line in lines)
    assert any(line.startswith("  module: @main: + exponential") for line in lines)
    without = source_difference(tmp_path, now, golden, today, operations=False)
    assert without == lines[: lines.index(heads[2])]


def test_what_is_exported_as_before_has_no_difference(tmp_path):
    files, kept = exported(jnp.sin)
    assert source_difference(written(tmp_path, files), files, kept, kept) == []


def test_another_value_of_a_constant_shows_in_stablehlo_alone(tmp_path):
    (then, golden), (now, today) = (exported(lambda x, c=c: x * np.array([1, 2, c], np.float32)) for c in (3, 4))
    (head, line) = source_difference(written(tmp_path, then), now, golden, today)
    assert head == f"StableHLO (- golden, + now; {tmp_path / 'artifact.jaxexport'}):"
    assert "dense<[1.0, 2.0, 3.0]>" in line
    assert "dense<[1.0, 2.0, 4.0]>" in line


def test_a_golden_without_listings_and_figures_shows_nothing(tmp_path):
    _, golden = exported(jnp.sin, jaxpr=False)
    now, today = exported(jnp.cos)
    assert source_difference(tmp_path, now, golden, today) == []


def test_an_artifact_that_cannot_be_read_shows_nothing(tmp_path):
    (then, golden), (now, today) = exported(jnp.sin), exported(jnp.sin)
    (written(tmp_path, then) / "artifact.jaxexport").write_bytes(b"damaged")
    assert source_difference(tmp_path, now, golden, today) == []


def test_another_release_of_jax_may_be_the_reason(tmp_path):
    then, golden = exported(jnp.sin)
    now, today = exported(jnp.cos)
    older = msgspec.structs.replace(
        golden, writer=msgspec.structs.replace(golden.writer, jax="0.4.30", jaxlib="0.4.30")
    )
    assert "The golden is by jax 0.4.30" in source_difference(written(tmp_path, then), now, older, today)[-1]


def test_constants_and_effects_that_changed_are_told():
    then = JaxprSummary({"sin": 1}, ("float32[3]", "float32[3]"), ())
    now = JaxprSummary({"sin": 1}, ("float32[3]",), ("Debug",))
    assert summary_difference(then, now) == [
        "constants: golden 2 × float32[3]; now float32[3]",
        "effects: golden none; now Debug",
    ]


def test_primitives_that_are_gone_are_told():
    assert summary_difference(JaxprSummary({"sin": 1, "cos": 2}), JaxprSummary({"cos": 2})) == [
        "primitives: gone: sin 1"
    ]
