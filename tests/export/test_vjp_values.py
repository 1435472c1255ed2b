"""The derivatives of a golden are computed without its artifact, and agree with those of the artifact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from export_core.export.errors import ExportError
from export_core.export.golden_checks import ExtraCall, add_checks, derivatives
from export_core.goldens.arrays import from_npz

X = np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x, y, n, _: (x * y, jnp.sin(x), x * n, n + 1), (X, X + 1, np.int32(3), X)),
        (lambda z: (z * z, jnp.abs(z)), (X + 1j * X[::-1],)),
    ],
    ids=["beside an integer and an unused argument", "complex"],
)
def test_derivatives_agree_with_the_exported_vjp(function, args):
    args = [jnp.asarray(value) for value in args]

    def flat(*leaves):
        return tuple(jax.tree_util.tree_leaves(function(*leaves)))

    called = export.deserialize(export.export(jax.jit(flat))(*args).serialize(vjp_order=2))
    for inputs, outputs in derivatives(flat, args, 2):
        called = called.vjp()
        given = jax.tree_util.tree_leaves(called.call(*inputs))
        assert [value.dtype for value in given] == [value.dtype for value in outputs]
        for one, other in zip(given, outputs, strict=True):
            if one.dtype != jax.dtypes.float0:
                np.testing.assert_allclose(one, other, rtol=1e-5)


def test_cotangents_differ_by_output_but_not_by_run():
    ((first, _),) = derivatives(lambda x: (x, x * 2), [X], 1)
    ((second, _),) = derivatives(lambda x: (x, x * 2), [X], 1)
    np.testing.assert_array_equal(first[1], second[1])
    assert not np.allclose(first[1], first[2])


def test_no_cotangent_of_a_golden_is_zero(exported):
    # Multiplied with zeros, any two derivatives agree.
    produced = add_checks(exported(lambda x: (x**3, jnp.sin(x) * 1j), X, vjp_order=2), [])
    for name in ("vjp1.inputs.npz", "vjp2.inputs.npz"):
        for leaf in from_npz(produced.files[name]):
            assert (leaf.numpy() != 0).all()


def test_a_complex_cotangent_has_an_imaginary_part():
    (((_, cotangent), _),) = derivatives(lambda z: (z * z,), [jnp.asarray(X + 1j * X)], 1)
    assert (cotangent.real != 0).all()
    assert (cotangent.imag != 0).all()


def test_a_golden_written_without_outputs_differs_in_no_other_file(exported):
    golden = {"platforms": ["tpu"], "vjp_order": 2}
    plain, without = (
        add_checks(exported(lambda x: x**3, X, **golden, without_outputs=reason), [ExtraCall((X + 1,), {})])
        for reason in ("", "no TPU here")
    )
    assert without.files == {name: plain.files[name] for name in without.files}
    assert plain.files.keys() - without.files.keys() == {
        "outputs.npz", "vjp1.outputs.npz", "vjp2.outputs.npz", "call1.outputs.npz"
    }  # fmt: skip


def test_the_derivative_beyond_vjp_order_must_be_refused(exported):
    produced = add_checks(exported(lambda x: x**3, X, vjp_order=2), [])
    checks = produced.manifest.checks
    assert [(check.name, check.vjp, check.outputs, check.refused) for check in checks] == [
        ("vjp1", 1, "vjp1.outputs.npz", None),
        ("vjp2", 2, "vjp2.outputs.npz", None),
        ("vjp3", 3, None, "No VJP is available"),
    ]
    x, cotangent = (leaf.numpy() for leaf in from_npz(produced.files["vjp1.inputs.npz"]))
    (gradient,) = (leaf.numpy() for leaf in from_npz(produced.files["vjp1.outputs.npz"]))
    np.testing.assert_allclose(gradient, 3 * x**2 * cotangent, rtol=1e-6)


def test_writing_a_nondifferentiable_function_fails(exported):
    def forward_only(x):
        return jax.lax.while_loop(lambda s: s.sum() < 10, lambda s: s * 2, x)

    with pytest.raises((ExportError, ValueError), match=r"while_loop|Reverse-mode"):
        add_checks(exported(forward_only, X, vjp_order=1), [])
