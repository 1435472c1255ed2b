"""Mistakes in a call: each error is one line with expected, found, where and what to do, and no traceback."""

import pytest
from projects import Projects, Run

TESTS = """
    import jax, jax.numpy as jnp, numpy as np, pytest
    from jax.extend.core import Primitive
    from jax._src.interpreters import mlir
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    X = np.arange(4, dtype="float32")

    # As in the page on export of JAX's documents.
    new_prim = Primitive("new_prim")
    new_prim.def_abstract_eval(lambda x: x)

    def lowering(context, operand):
        call = mlir.custom_call("my_new_prim", operands=[operand], result_types=[operand.type])
        return call.results

    mlir.register_lowering(new_prim, lowering)

    def on(size):
        return NamedSharding(Mesh(np.array(jax.devices()[:size]), ("x",)), P("x"))
"""
AT_LEAST_4 = 'symbolic_shapes="b", constraints=("b >= 4",)'
UNFIT = ["its own writer cannot replay this golden", "Expected arguments that fit the exported shapes and constraints"]
WEIGHTS = '{"g1": np.ones(4, np.float32), "w": np.ones((4, 2), np.float32)}'
CALLS = {  # the marker, what the test calls, and words of the message
    "primitive_without_a_handler": (
        *('allow={"my_new_prim": "documented"}', "export_golden(jax.jit(new_prim.bind), X)"),
        ["expected a handler of the custom call my_new_prim on cpu", "found none", "register=('module',)"],
    ),
    "derivative_without_a_handler": (
        *('allow={"my_new_prim": "documented"}, vjp_order=1', "export_golden(differentiable, X)"),
        ["expected a handler of the custom call my_new_prim on cpu", "found none", "register=('module',)"],
    ),
    "first_call_outside_the_constraints": (
        *(AT_LEAST_4, "export_golden(jax.jit(jnp.sin), X[:3])"),
        [*UNFIT, "found in the first call: ValueError: Input shapes do not match the symbolic shape constraint b >= 4"],
    ),
    "also_outside_the_constraints": (
        *(AT_LEAST_4, "export_golden(jax.jit(jnp.sin), X).also(X[:3])"),
        [*UNFIT, "found in call1: ValueError: Input shapes do not match the symbolic shape constraint b >= 4"],
    ),
    "one_symbolic_shape_for_weights_too": (
        *('symbolic_shapes="b, 3, 4"', f"export_golden(jax.jit(block), {WEIGHTS}, np.ones((2, 3, 4), np.float32))"),
        [
            "symbolic_shapes: 'b, 3, 4' is one text for all arguments, and args[0]['g1'] is float32[4]",
            "Give one for each argument that has symbolic dimensions: symbolic_shapes={1: 'b, 3, 4'}",
        ],
    ),
    "no_argument": (
        *("", "export_golden(jax.jit(scaled))"),
        ["expected the arguments of scaled(x, *, by=1.0) after the function", "missing a required argument: 'x'."],
    ),
    "argument_of_another_name": (
        *("", "export_golden(jax.jit(scaled), X, bi=2.0)"),
        ["expected the arguments of scaled(x, *, by=1.0)", "found: got an unexpected keyword argument 'bi'."],
    ),
    "module_of_flax": (
        *("", "export_golden(jax.jit(unbound), X)"),
        ["CallCompactUnboundModuleError: Can't call", "Export jax.jit(model.apply), with the variables of the model"],
    ),
    "symbolic_shape_of_more_dimensions": (
        *('symbolic_shapes={0: "b, 3"}', "export_golden(jax.jit(jnp.sin), X)"),
        ["symbolic_shapes: expected a size for each dimension of its array, and args[0] is float32[4]: write 'b'"],
    ),
    "symbolic_shape_of_wrong_syntax": (
        *('symbolic_shapes="b +"', "export_golden(jax.jit(jnp.sin), X)"),
        ["symbolic_shapes='b +': jax cannot read 'b +' for its array, args[0] is float32[4]: syntax error"],
    ),
    "symbolic_shape_of_another_size": (
        *('symbolic_shapes={1: "b, 5"}', "export_golden(jax.jit(jnp.dot), X, np.ones((4, 6), np.float32))"),
        ["jax cannot read 'b, 5' for its array, args[1] is float32[4,6]", "different size 5 for known dimension"],
    ),
    "symbolic_shape_that_is_no_text": (
        *('symbolic_shapes={0: ("b", 5)}', "export_golden(jax.jit(jnp.sin), X)"),
        ["symbolic_shapes: expected one text for each argument, such as 'b, 4', or a tree", "found {0: ('b', 5)}."],
    ),
    "also_of_another_shape": (
        *("", "export_golden(jax.jit(jnp.sin), X).also(X[:3])"),
        [*UNFIT, "found in call1: ValueError: Shape mismatch for", "exported.refused("],
    ),
    "also_of_another_dtype": (
        *("", "export_golden(jax.jit(jnp.sin), X).also(X.astype(jnp.int32))"),
        [*UNFIT, "found in call1: ValueError: Dtype mismatch for", "exported.refused("],
    ),
    "also_by_position": (
        *("", "also = export_golden(jax.jit(lambda x, y: x + y), X, y=X).also; also(X, y=X); also(X, X)"),
        ["also() at test_a.py:", "it passes y by position, and the first call by name. Pass it by name too."],
    ),
    "also_by_name": (
        *("", "export_golden(jax.jit(lambda x, y: x + y), X, X).also(X, y=X)"),
        ["also() at test_a.py:", "it passes y by name, and the first call by position. Pass it by position too."],
    ),
    "also_on_two_devices": (
        *("", "export_golden(jax.jit(jnp.sin), jax.device_put(X, on(4))).also(jax.device_put(X, on(2)))"),
        ["call 1: expected arguments on 4 devices", "found a mesh of 2: {'x': 2}", "Place them on 4 devices"],
    ),
}
TESTS += """
    @jax.custom_vjp
    def forward(x):
        return jnp.sin(x)

    CallCompactUnboundModuleError = type("CallCompactUnboundModuleError", (Exception,), {"__module__": "flax.errors"})

    def unbound(x):
        raise CallCompactUnboundModuleError("Can't call compact methods on unbound modules")

    def scaled(x, *, by=1.0):
        return x * by

    def block(params, x):
        return params["g1"] * x @ params["w"]

    forward.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (new_prim.bind(ct),))
    differentiable = jax.jit(forward)
"""
TESTS += "".join(
    f"""
    @pytest.mark.export_compat({marked})
    def test_{name}(export_golden):
        {call}
"""
    for name, (marked, call, _) in CALLS.items()
)


@pytest.fixture(scope="module")
def written(projects: Projects) -> Run:
    project = projects(test_a=TESTS)
    with (project.folder / "pytest.ini").open("a") as ini:
        ini.write("export_devices = 4\n")
    return project.pytest("--update-goldens")


@pytest.mark.parametrize("name", CALLS)
def test_the_error_of_a_wrong_call_is_one_line(name, written):
    report, (*_, words) = written[f"test_{name}"], CALLS[name]
    assert report.outcome == "failed", written.text
    assert [word for word in words if word not in report.text] == []
    assert len(report.text.strip().splitlines()) == 1, report.text
    assert "worker" not in report.text
