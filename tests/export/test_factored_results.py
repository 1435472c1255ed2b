"""Results that are factors are found in the jaxpr and in the custom calls of the artifact, alike on a CPU."""

import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import jax.scipy.linalg as scipy_linalg
import numpy as np
import pytest
from jax import lax

from export_core.artifact import read_bytes, tracing
from export_core.artifact.bytecode.listing import Line
from export_core.artifact.numerics import factored_outputs
from export_core.export import api
from export_core.export.jaxprs import factored_results
from export_core.goldens import Check, FactorGroup
from export_core.goldens.arrays import leaf_of
from export_core.goldens.store import OUTPUTS, staged_goldens
from export_core.numbers.compare import GoldenOutputs

SQUARE = np.arange(9, dtype=np.float32).reshape(3, 3) + np.eye(3, dtype=np.float32)


def by_both(function, *args, platforms=("cpu",)):
    """Return the factors that the jaxpr shows, and those that the artifact shows."""

    def flat(*values):
        return tuple(jax.tree_util.tree_leaves(function(*values)))

    exported = api.export_function(jax.jit(flat), args, {}, platforms=platforms, disabled_checks=("lapack_sgeqp3_ffi",))
    artifact = read_bytes(api.serialize(exported, 0), "an artifact")
    return factored_results(jax.make_jaxpr(flat)(*args)), factored_outputs(artifact)


@pytest.mark.parametrize(
    ("function", "groups"),
    [
        (jnp.linalg.eigh, (("eigh", (0, 1)),)),
        (lax.linalg.eigh, (("eigh", (1, 0)),)),
        (jnp.linalg.svd, (("svd", (0, 1, 2)),)),
        (jnp.linalg.qr, (("qr", (0, 1)),)),
        (lambda a: jnp.linalg.qr(a[:, :2], mode="complete"), (("qr", (0, 1)),)),
        (lambda a: scipy_linalg.qr(a, pivoting=True), (("qr", (0, 1, 2)),)),
        (scipy_linalg.lu_factor, (("lu", (0, 1)),)),
        (lax.linalg.lu, (("lu", (0, 1, 2)),)),
        (scipy_linalg.schur, (("schur", (0, 1)),)),
        (lambda a: scipy_linalg.schur(a, output="complex"), (("schur", (0, 1)),)),
        (lax.linalg.eig, (("eig", (0, 1, 2)),)),
        (lambda a: jnp.linalg.eig(a + 1j), (("eig", (0, 1)),)),
        (jnp.linalg.eigvals, (("eig", (0,)),)),
        (jax.checkpoint(jnp.linalg.qr), (("qr", (0, 1)),)),
        (lambda a: (jnp.linalg.qr(a), a + 1, jnp.linalg.qr(a)), (("qr", (0, 1)), ("qr", (3, 4)))),
        (jnp.linalg.cholesky, ()),
        (lambda a: jnp.linalg.svd(a, compute_uv=False), ()),
        (lambda a: jnp.linalg.eigh(a)[1], ()),
        (lambda a: jnp.linalg.qr(a, mode="r"), ()),
        (lambda a: jnp.linalg.eigh(a)[1] * 2, ()),
        (lambda a: (jnp.linalg.qr(a)[0], jnp.linalg.qr(a + 1)[1]), ()),
        (lambda a: (scipy_linalg.schur(a)[0] - 2, scipy_linalg.schur(a)[1]), ()),
        (lambda a: (jnp.linalg.eigh(a)[0], jnp.linalg.eigh(a)[1] - 0.5), ()),
    ],
)
def test_only_results_of_a_factorization_are_factors(function, groups):
    assert by_both(function, SQUARE) == (groups, groups)


def test_the_factors_of_a_vmapped_svd_are_one_group():
    assert by_both(jax.vmap(jnp.linalg.svd), np.stack([SQUARE, SQUARE.T])) == ((("svd", (0, 1, 2)),),) * 2


def test_an_export_for_two_platforms_shows_factors_only_in_its_jaxpr():
    assert by_both(jnp.linalg.qr, SQUARE, platforms=("cpu", "cuda")) == ((("qr", (0, 1)),), ())


def test_the_manifest_lists_factors_that_no_custom_call_shows(exported):
    for_one = exported(lambda a: tuple(lax.linalg.qr(a)), SQUARE).manifest
    assert for_one.factors == (), "the custom call of the artifact shows them"
    for_two = exported(lambda a: tuple(lax.linalg.qr(a)), SQUARE, platforms=("cpu", "cuda")).manifest
    assert for_two.factors == (FactorGroup("qr", (0, 1)),)


def test_factors_of_a_stored_golden_follow_from_its_custom_calls(exported):
    produced = exported(lambda a: (a, *lax.linalg.qr(a)), SQUARE)
    with staged_goldens((produced.manifest, produced.files)) as (golden,):
        assert golden.manifest.factors == ()
        assert golden.factors == (FactorGroup("qr", (1, 2)),)
    wanted = GoldenOutputs(golden, "cpu", {})
    matrix, q, r = produced.outputs
    turned = [matrix, leaf_of(-q.numpy()), leaf_of(-r.numpy())]
    assert wanted.compare(Check("", outputs=OUTPUTS), produced.outputs, turned).ok
    assert not wanted.compare(Check("vjp1", vjp=1, outputs=OUTPUTS), produced.outputs, turned).ok


def test_factors_among_500_results_are_found_quickly():
    def function(xs):
        ys = xs
        for _ in range(10):
            ys = [jnp.sin(y) + 1 for y in ys]
        return [*ys, *lax.linalg.qr(SQUARE)]

    jaxpr = jax.make_jaxpr(function)([1.0] * 500)
    start = time.process_time()
    assert factored_results(jaxpr) == (("qr", (500, 501)),)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("line", "arguments", "count"),
    [
        (Line("call", (), ("main",), ("tensor<f32>",), (), tracing.BODY, ()), 0, 1000),
        # tracing a wide loop takes no time for each pair of its values
        (Line("while", (), (), ("tensor<f32>",) * 2000, tuple(range(2000)), tracing.BODY, ()), 2000, 1),
    ],
    ids=["calls in circles", "a wide loop"],
)
def test_a_recursive_or_wide_module_is_traced_quickly(line, arguments, count, monkeypatch):
    results = count * len(line.types)
    returned = Line("return", (), (), (), tuple(range(arguments, arguments + results)), tracing.BODY, ())
    monkeypatch.setattr(tracing, "listing", lambda module: {"main": [line] * count + [returned]})
    main = SimpleNamespace(name="main", inputs=["tensor<f32>"] * arguments, outputs=["tensor<f32>"] * results)
    start = time.process_time()
    assert factored_outputs(SimpleNamespace(module=SimpleNamespace(main=main, functions=[main]))) == ()
    assert time.process_time() - start < 2


def test_an_unreadable_artifact_has_no_factors(exported):
    produced = exported(lambda a: tuple(lax.linalg.qr(a)), SQUARE)
    with staged_goldens((produced.manifest, produced.files)) as (golden,):
        golden.artifact.write_bytes(b"damaged")
        assert golden.factors == ()
