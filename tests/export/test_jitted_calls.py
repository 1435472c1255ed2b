"""`export_golden` takes more than functions of `jax.jit`: partials, bound methods, jits of libraries."""

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from export_core.export.case import jitted_call
from export_core.export.errors import ExportError
from export_core.export.golden_checks import ExtraCall, add_checks

X = np.arange(3, dtype=np.float32)


class FilterJit:
    """A jit as libraries have them: arrays are traced, all other leaves are constants."""

    def __init__(self, function):
        self.__wrapped__ = function

    def lower(self, *args, **kwargs):
        raise AssertionError("expected no call of `lower`, which is not that of jax")

    def __call__(self, *args, **kwargs):
        return self.__wrapped__(*args, **kwargs)


class Nnx(FilterJit):
    """A jit that replaces every array in its arguments, as that of flax.nnx does."""

    __module__ = "flax.nnx.transforms"
    __call__ = FilterJit.lower  # an export calls the wrapped function instead


class Model:
    """A pytree that its functions change."""

    def __init__(self, weight, seen):
        self.weight, self.seen = weight, seen


jax.tree_util.register_pytree_with_keys(
    Model,
    lambda model: ([(jax.tree_util.GetAttrKey(name), value) for name, value in vars(model).items()], None),
    lambda _, leaves: Model(*leaves),
)


class Layer:
    def __init__(self, factor):
        self.factor = factor

    @functools.partial(jax.jit, static_argnums=0)
    def scaled(self, x):
        return x * self.factor

    @jax.jit
    def not_static(self, x):
        return x * self.factor


@dataclasses.dataclass
class State:
    w: object
    parts: object
    mode: str
    tables: dict


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: object


class Unregistered:
    def __init__(self):
        self.w = X


TREE_NODE = "For its arrays to be arguments, make its class a tree node of jax: jax.tree_util."
FIELDS = "State, data_fields=['w', 'parts', 'tables'], meta_fields=['mode']"


def outputs(golden):
    return [leaf.numpy().tolist() for leaf in golden.outputs]


def test_bound_arguments_of_a_partial_are_inputs(exported):
    golden = exported(Lowering(functools.partial(jax.jit(lambda a, b, n: a + b * n), X, n=2)), X)
    assert golden.manifest.signature.inputs == ("float32[3]", "float32[3]", "int32[]")
    assert outputs(golden) == [[0, 3, 6]]
    assert "call1.inputs.npz" in add_checks(golden, [ExtraCall((X + 1,), {})]).files


def test_the_object_of_a_method_may_be_static(exported):
    golden = exported(Layer(3).scaled, X)
    assert golden.manifest.signature.inputs == ("float32[3]",)
    assert outputs(golden) == [[0, 3, 6]]


def test_self_of_a_jitted_method_must_be_static_or_a_pytree(exported):
    with pytest.raises(ExportError, match=r"argument \[0\] is .*Layer.* make it static"):
        exported(Layer(3).not_static, X)


class Unhashable:
    """A module as equinox has them: its hash is that of its fields, and arrays have none."""

    def __hash__(self):
        return hash(X)

    def __call__(self, x):
        return x

    def scaled(self, x):
        return x


class BoundMethod:
    """A bound method that is an object itself, as those of equinox: jax.jit copies its attributes."""

    def __init__(self, module):
        self.__func__, self.__self__, self.__name__ = Unhashable.scaled, module, "scaled"

    def __hash__(self):
        return hash(self.__self__)

    def __call__(self, x):
        return x


@pytest.mark.parametrize(
    ("function", "advice"),
    [(Unhashable(), r"\*args: module\(\*args\)"), (BoundMethod(Unhashable()), r"\*args: module.scaled\(\*args\)")],
    ids=["module", "method"],
)
def test_a_jitted_object_without_a_hash_is_an_error(exported, function, advice):
    with pytest.raises(ExportError, match=rf"jax.jit cannot call .*Unhashable.*: it has no hash.*{advice}"):
        exported(jax.jit(function), X)


def test_a_jitted_bound_method_object_is_exported(exported):
    assert outputs(exported(jax.jit(BoundMethod(0)), X)) == [[0, 1, 2]]


def test_non_arrays_given_to_a_filter_jit_are_not_inputs(exported):
    jitted = FilterJit(lambda tree, x: (tree["f"](x) * tree["w"], "text", tree["f"]))
    golden = exported(jitted, {"f": jnp.square, "w": X}, X)
    assert golden.manifest.signature.inputs == ("float32[3]", "float32[3]")
    assert golden.manifest.signature.in_tree == "PyTreeDef((({'f': None, 'w': *}, *), {}))"
    assert outputs(golden) == [[0, 1, 8]]


def test_a_library_jit_whose_name_is_not_a_string_is_exported(exported):
    jitted = FilterJit(jnp.square)
    jitted.__name__ = jitted.__qualname__ = object()  # as eqx.filter_jit of a module that quax has wrapped
    golden = exported(jitted, X)
    assert outputs(golden) == [[0, 1, 4]]
    assert golden.artifact.envelope.fun_name == "traced"


def test_further_calls_must_have_the_same_constants(exported):
    golden = exported(FilterJit(lambda tree: tree["f"](tree["w"])), {"f": jnp.square, "w": X})
    assert add_checks(golden, [ExtraCall(({"f": jnp.square, "w": X + 1},), {})]).manifest.checks[0].name == "call1"
    with pytest.raises(ExportError, match=r"a further call has other constants: expected .*square.*, found .*sin"):
        add_checks(golden, [ExtraCall(({"f": jnp.sin, "w": X},), {})])


def test_arguments_that_an_nnx_function_changes_are_outputs(exported):
    def step(model, x):
        model.seen = model.seen + x.sum()
        return model.weight * x

    golden = exported(Nnx(step), Model(X, np.float32(1)), X)
    assert golden.manifest.signature.out_tree == "PyTreeDef({'changed': {'args[0].seen': *}, 'result': *})"
    assert outputs(golden) == [4, [0, 1, 4]]


def test_a_model_that_is_not_a_pytree_is_an_error_with_a_remedy(exported):
    class Module:
        __module__ = "flax.nnx.module"

    with pytest.raises(ExportError, match=r"Module is not a pytree .* nnx\.split\(model\)"):
        exported(FilterJit(lambda model, x: x), Module(), X)


def test_a_pmap_is_exported_inside_a_jit(exported):
    golden = exported(jax.pmap(lambda x: x * 2), X[None])
    assert outputs(golden) == [[[0, 2, 4]]]


@pytest.mark.parametrize("value", ["text", None, 3, (1, 2), jnp.sin, True], ids=lambda value: type(value).__name__)
def test_an_argument_static_by_name_is_not_an_input(exported, value):
    function = jax.jit(lambda x, n: x * 2, static_argnames=("n",))
    by_name = exported(function, X, kwargs={"n": value})
    by_position = exported(function, X, value)
    assert by_name.manifest.signature.inputs == by_position.manifest.signature.inputs == ("float32[3]",)


class Lowering(functools.partial):
    """A partial with the attribute `lower`, so that the fixture `exported` does not jit it."""

    lower = None


def test_a_function_of_chexify_is_refused_with_a_remedy():
    """As in chex 0.1.92, which itself refuses to be wrapped in `jax.jit`."""

    @functools.wraps(jitted := jax.jit(lambda x: x))
    def chexified(x):
        raise AssertionError("expected no call, since it would check values")

    chexified.wait_checks = lambda: None
    with pytest.raises(ExportError, match=r"of chex\.chexify.*disable_asserts\(\) first, and pass .*__wrapped__"):
        jitted_call("t", chexified, (X,), {})
    assert chexified.__wrapped__ is jitted


class Encoder:
    """A model: it can be called, has a method, and is no array."""

    def __call__(self, x):
        return x

    def encode(self, x):
        return x


def model_of(library: str) -> type:
    """Return the class of a model, with the module name of a library."""
    return type("Model", (Encoder,), {"__module__": library})


@pytest.mark.parametrize(
    ("library", "remedy"),
    [
        ("equinox.nn._mlp", "Export eqx.filter_jit(lambda model, *args: model(*args)), with the model as the first"),
        ("flax.nnx.module", "Export nnx.jit(lambda model, *args: model(*args)), with the model as the first argument."),
        ("flax.linen.module", "Export jax.jit(model.apply), with the variables of the model as the first argument."),
        ("ours", "Wrap what you pass in jax.jit."),
    ],
)
def test_an_unjitted_model_is_an_error_with_a_remedy(library, remedy):
    model = model_of(library)()
    with pytest.raises(ExportError, match=re.escape(remedy)):
        jitted_call("t", model, (X,), {})
    if library != "ours":
        with pytest.raises(ExportError, match=re.escape(remedy)):
            jitted_call("t", model.__call__, (X,), {})
    with pytest.raises(ExportError, match=re.escape(remedy.replace("model(*args)", "model.encode(*args)"))):
        jitted_call("t", model.encode, (X,), {})


def loss(x):
    return x


def local():
    """Return a function and a method that have names in this function only, in a class of its own."""

    class Solver:
        def run(self, x):
            return x

    def inner(x):
        return x

    return inner, Solver().run


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (loss, "Wrap it: jax.jit(loss)."),
        (scipy.linalg.expm, "Wrap it: jax.jit(scipy.linalg.expm)."),
        (local()[0], "Wrap it: jax.jit(inner)."),
        (local()[1], "Wrap what you pass in jax.jit."),
        (jax.vmap(loss), "Wrap what you pass in jax.jit."),
        (jax.vmap(local()[0]), "Wrap what you pass in jax.jit."),
        (Encoder().encode, "Wrap what you pass in jax.jit."),
        (functools.partial(loss, X), "Wrap it: jax.jit(loss)."),
        (lambda x: x, "Wrap what you pass in jax.jit."),
    ],
    ids=[
        *("own", "library", "local", "method of a local class", "wrapped", "wrapped local"),
        *("method", "partial", "lambda"),
    ],
)
def test_advice_to_jit_names_only_functions_that_a_test_can_name(function, advice):
    with pytest.raises(ExportError, match=re.escape(advice)):
        jitted_call("t", function, (X,), {})


@pytest.mark.parametrize(
    ("leaf", "remedy"),
    [
        (
            model_of("flax.nnx.module")(),
            "Write graphdef, state = nnx.split(model), and export jax.jit(lambda state, x:",
        ),
        (model_of("flax.linen.module")(), "Export jax.jit(model.apply)"),
        (jnp.tanh, "as in equinox, export eqx.filter_jit(f) in place of jax.jit(f): the arrays of the model are"),
        ("text", "since the golden stores its value. Take it out of the argument: close over it, or make it a static"),
        ({1, 2}, "since the golden stores its value. Take it out of the argument: close over it."),
        (State(X, [X], "tanh", {1: 2, "b": 3}), f"{TREE_NODE}register_dataclass({FIELDS})."),
        (Frozen(X), f"{TREE_NODE}register_dataclass(Frozen, data_fields=['w'], meta_fields=[])."),
        (Unregistered(), f"{TREE_NODE}register_pytree_node(Unregistered, flatten, unflatten)."),
        (Frozen("text"), "Take it out of the argument: close over it, or make it a static argument of its own"),
    ],
    ids=["nnx", "linen", "a function", "text", "no hash", "dataclass", "frozen", "object", "frozen, no arrays"],
)
def test_a_leaf_that_is_not_an_array_is_an_error_with_a_remedy(exported, leaf, remedy):
    with pytest.raises(ExportError, match=re.escape(remedy)) as refused:
        exported(jax.jit(lambda model, x: x), [leaf, X], X)
    assert "argument [0][0] is " in str(refused.value)
    if leaf is jnp.tanh:
        assert "Else: take it out of the argument: close over it, or" in str(refused.value)


def test_an_argument_that_is_not_an_array_may_be_static_or_bound(exported):
    with pytest.raises(ExportError, match=r"Close over it, make it static \(static_argnums of jax.jit\), or bind it"):
        exported(jax.jit(lambda x, mode: x), X, "text")
    with pytest.raises(ExportError, match=r"Close over it, or bind it with functools.partial before jax.jit"):
        exported(jax.jit(lambda x, mode: x), X, {1, 2})


def test_a_dataclass_registered_as_advised_is_exported(exported):
    @dataclasses.dataclass
    class Layer:
        w: object
        name: str

    with pytest.raises(ExportError, match=r"jax\.tree_util\.register_dataclass\(Layer, .*\)\.") as refused:
        exported(jax.jit(lambda layer: layer.w * 2), Layer(X, "tanh"))
    exec(str(refused.value).rpartition(": ")[2].removesuffix("."), {"jax": jax, "Layer": Layer})
    assert exported(jax.jit(lambda layer: layer.w * 2), Layer(X, "tanh")).manifest.signature.inputs == ("float32[3]",)
