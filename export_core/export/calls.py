"""What people pass as the function that is exported: `jax.jit` itself, or a call that has one inside."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from export_core.export.arguments import is_array
from export_core.export.errors import ExportError, value_and_type

_JITTED = type(jax.jit(lambda: None))


@dataclass(frozen=True)
class JittedCall:
    """A function of `jax.jit`, and how the arguments of what the user calls become its arguments."""

    function: Any
    bind: Callable[[tuple[Any, ...], Mapping[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]


def jitted_call(test: str, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> JittedCall:
    """The jitted function in what a user calls, or an `ExportError` where there is none.

    That is the result of `jax.jit`; a `functools.partial` or bound method of one, whose bound arguments become
    arguments; or the jit of a library (`eqx.filter_jit`, `nnx.jit`, `jax.pmap`), which is traced inside a `jax.jit`
    that takes the arrays among the leaves of its arguments. All other leaves are constants, which those of the first
    call say.
    """
    if type(function) is _JITTED:  # first, since jax gives it the attributes of what it wraps, such as a bound method
        _require_hash(test, function.__wrapped__)
        return JittedCall(function, lambda args, kwargs: (args, dict(kwargs)))
    if isinstance(function, functools.partial):
        first, named = function.args, function.keywords
        inner = jitted_call(test, function.func, (*first, *args), {**named, **kwargs})
        return JittedCall(inner.function, lambda args, kwargs: inner.bind((*first, *args), {**named, **kwargs}))
    if hasattr(function, "__func__") and hasattr(function, "__self__"):
        return jitted_call(test, functools.partial(function.__func__, function.__self__), args, kwargs)
    if not (callable(function) and hasattr(function, "lower")):
        name = getattr(function, "__name__", "f")
        if hasattr(function, "wait_checks"):  # as chexify needs a jitted function inside, jitting it again is refused
            raise ExportError(
                f"{test}: expected a jitted function first, found {name} of chex.chexify, which checks values outside "
                "of the jitted function: no artifact can. Export that function without its checks: call "
                f"chex.disable_asserts() first, and pass {name}.__wrapped__."
            )
        raise ExportError(
            f"{test}: expected a jitted function first, such as jax.jit(f), found {value_and_type(function)}. "
            f"Wrap it: jax.jit({name})."
        )
    return _library_call(test, function, (args, dict(kwargs)))


def _require_hash(test: str, wrapped: Any) -> None:
    """Refuse what jax cannot hash, and so cannot call: a module whose fields are arrays, or a method bound to it."""
    try:
        hash(wrapped)
    except TypeError as error:
        bound = getattr(wrapped, "__self__", wrapped)
        call = f"module{f'.{wrapped.__name__}' if bound is not wrapped else ''}(*args)"
        raise ExportError(
            f"{test}: jax.jit cannot call {value_and_type(bound)}: it has no hash ({error}). With "
            f"jax.jit(lambda *args: {call}), its arrays are constants of the artifact. With "
            f"eqx.filter_jit(lambda module, *args: {call}) and the module as the first argument, they are arguments."
        ) from error


def _library_call(test: str, function: Any, first: Any) -> JittedCall:
    leaves, tree = jax.tree_util.tree_flatten(first)
    for leaf in leaves:
        if _is_nnx(leaf):
            raise ExportError(
                f"{test}: {value_and_type(leaf)} is no pytree in this release of flax, so its arrays are no arguments. "
                "Write graphdef, state = nnx.split(model), and export jax.jit(lambda state, x: "
                "nnx.merge(graphdef, state)(x))."
            )
    # nnx.jit gives each Variable a new value, also where the function did not change it.
    inner = function.__wrapped__ if _is_nnx(function) else function

    @functools.wraps(inner, updated=())
    def traced(*args: Any, **kwargs: Any) -> Any:
        arrays = iter(jax.tree_util.tree_leaves((args, kwargs)))
        values = [next(arrays) if _is_traced(leaf) else leaf for leaf in leaves]
        args, kwargs = jax.tree_util.tree_unflatten(tree, values)
        result = _arrays_of(inner(*args, **kwargs))
        # nnx models have mutable state: the arrays that the function has changed in its arguments, by path.
        given = {id(value) for value in values}
        changed = {
            ("kwargs" if path[0].idx else "args") + jax.tree_util.keystr(path[1:]): after
            for path, after in jax.tree_util.tree_flatten_with_path((args, kwargs))[0]
            if _is_traced(after) and id(after) not in given
        }
        return {"result": result, "changed": changed} if changed else result

    def bind(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        constants = [leaf for leaf in jax.tree_util.tree_leaves((args, kwargs)) if not _is_traced(leaf)]
        expected = [leaf for leaf in leaves if not _is_traced(leaf)]
        if constants != expected:
            raise ExportError(f"{test}: a further call has other constants: expected {expected}, found {constants}.")
        args, kwargs = _arrays_of((args, dict(kwargs)))
        return args, dict(kwargs)

    return JittedCall(jax.jit(traced), bind)


def _arrays_of(tree: Any) -> Any:
    """The tree with None in place of each leaf that is no array."""
    return jax.tree_util.tree_map(lambda leaf: leaf if _is_traced(leaf) else None, tree)


def _is_traced(leaf: Any) -> bool:
    """Whether the jit of a library takes this leaf as an array: Python numbers are constants."""
    return is_array(leaf) and isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct, np.ndarray, np.generic))


def _is_nnx(value: Any) -> bool:
    return any(kind.__module__.startswith("flax.nnx") for kind in type(value).__mro__)
