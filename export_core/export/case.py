"""A case: the function, arguments and options that a marked test exports.

It checks that jax.export can take them and that each option changes something, and reads what options say of single
arguments. A golden has a copy of each module that a reader imports first, and no outputs if nothing can compute them.
The function that a test passes is the result of `jax.jit`, or a call that has such a result inside.
"""

import dataclasses
import functools
import hashlib
import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec

from export_core.base.callables import name_of, text_attributes
from export_core.base.text import few
from export_core.export import api
from export_core.export.arguments import (
    PASS_LEAVES,
    Arguments,
    find_static_arguments,
    has_hash,
    is_array,
    is_reference,
    require_kept,
)
from export_core.export.errors import ExportError, value_and_type, what_to_pass
from export_core.goldens import Comparison, Leaf

_LONGEST_SIGNATURE = 200  # Characters of a function's signature in a message: its defaults may be arrays.
_LONGEST_ID = 120  # characters of an id before its digest: file systems take 255 bytes of a name, and paths are longer


@dataclass(frozen=True)
class ExportOptions:
    """The options of an export. Each field is a keyword of the marker, and the documentation of the marker explains it.

    `in_specs` says how each argument is sharded: by a `PartitionSpec` or a tree of them, or None for a replicated
    argument. `symbolic_shapes` says the shape of each argument, as `jax.export.symbolic_args_specs` takes it; a single
    text is for all arguments. Both have an entry for each positional argument in order, or entries by position and name
    (`{0: …, "mask": …}`).
    """

    platforms: tuple[str, ...] | None = None
    allow: Mapping[str, str] = field(default_factory=dict)
    disabled_checks: Mapping[str, str] = field(default_factory=dict)
    vjp_order: int = 0
    symbolic_shapes: Any = None
    constraints: tuple[str, ...] = ()
    mesh: Mapping[str, int] = field(default_factory=dict)
    in_specs: tuple[Any, ...] | Mapping[int | str, Any] = ()
    spread_over: int = 0
    calling_convention_version: int | None = None
    ignore_forward_compatibility: bool = False
    register: tuple[str, ...] = ()
    refused_on: tuple[str, ...] = ()
    without_outputs: str = ""


@dataclass(frozen=True)
class Case:
    """A function with its example arguments.

    `test` is the pytest node id of its test. `name` distinguishes several calls in one test. `context_mesh` is the mesh
    of the `jax.set_mesh` around the call, or None.
    """

    id: str
    test: str
    name: str | None
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    options: ExportOptions = field(default_factory=ExportOptions)
    comparison: Comparison = field(default_factory=Comparison)
    context_mesh: Any = field(default_factory=api.context_mesh)

    def check(self) -> None:
        """Raise `ExportError` for options that cannot work: with this jax, or because readers can run the function.

        These options are `shape_assertions` in `disabled_checks`, a check that only old releases can leave out, and
        `without_outputs` for a function that readers run on a CPU.
        """
        options = self.options
        removed = jax.__version_info__ >= api.FIRST_WITHOUT_THE_CHECK
        if removed and api.SHAPE_ASSERTIONS in options.disabled_checks:
            raise ExportError(
                f"{self.test}: disabled_checks: jax {jax.__version__} cannot leave out the {api.SHAPE_ASSERTIONS}; "
                "only jax before 0.4.29 can. Name this check only in tests that run with such a jax."
            )
        on_cpu = "cpu" in (options.platforms or ("cpu",)) or "platform" in options.disabled_checks
        if options.without_outputs and on_cpu:
            raise ExportError(
                f"{self.test}: without_outputs: expected a function that is exported for other platforms than cpu, "
                "such as platforms=['tpu'], with its platform check: otherwise each reader runs it on a CPU and "
                "compares its outputs. Remove without_outputs; or export for other platforms only, and leave "
                "'platform' out of disabled_checks."
            )

    def arguments(self) -> Arguments:
        """Return the arguments of the call, with a mark on each static argument.

        Raises `ExportError` for an argument that cannot be exported.
        """
        __tracebackhide__ = True
        try:
            dynamic_tree = api.dynamic_tree(self.function, self.args, dict(self.kwargs))
        except TypeError as error:
            if "argument" in str(error) and (misfit := _misfit_of(self.function, self.args, self.kwargs)):
                raise ExportError(f"{self.test}: {misfit}") from error
            # jax's words for an argument that is no array. Ours name the argument; if none is wrong, the function
            # raised this itself.
            if re.search("abstract array|valid JAX type", str(error)):
                check_arguments(self.test, Arguments(self.args, dict(self.kwargs)))
            # A node makes arrays of its leaves when it is made, such as a distribution of TensorFlow Probability, and
            # jax has put another object in place of each.
            if "ArgInfo" in str(error):
                raise ExportError(
                    f"{self.test}: a tree node in the arguments accepts only arrays as its leaves, and jax.export "
                    f"fails on it ({error}). {PASS_LEAVES}"
                ) from error
            raise
        except Exception as error:
            kind = type(error)
            if kind.__module__ == "flax.errors" and "Unbound" in kind.__name__:
                first_line = str(error).partition("\n")[0]
                raise ExportError(f"{self.test}: {kind.__name__}: {first_line}. {_LINEN}") from error
            raise
        arguments = find_static_arguments(self.test, self.args, self.kwargs, dynamic_tree)
        check_arguments(self.test, arguments)
        return arguments

    def symbolic_arguments(self, arguments: Arguments) -> Arguments | None:
        """Return the arguments with symbolic dimensions, as `jax.ShapeDtypeStruct`; None without `symbolic_shapes`.

        Raises `ExportError` for shapes that jax cannot read, and for shapes that do not fit the arguments.
        """
        shapes = self.options.symbolic_shapes
        if shapes is None:
            return None
        given = self._by_argument("symbolic_shapes", arguments)
        try:
            specs = api.symbolic_args_specs(arguments.dynamic, given, self.options.constraints)
        except (ValueError, TypeError, IndexError) as error:
            unread = f"symbolic_shapes={shapes!r}: jax cannot read this for these arguments: {error}"
            raise ExportError(f"{self.test}: {self._misfit(given, arguments) or unread}") from error
        if [len(spec.shape) for spec in jax.tree_util.tree_leaves(specs)] != list(map(np.ndim, arguments.flat())):
            raise ExportError(f"{self.test}: {self._misfit(given, arguments)}")

        def narrowed(spec: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
            # To 32 bits where jax makes arrays so: since 0.11 it warns of a spec with more, though not of an array.
            if jax.dtypes.issubdtype(spec.dtype, jax.dtypes.extended):
                return spec
            return jax.ShapeDtypeStruct(spec.shape, jax.dtypes.canonicalize_dtype(spec.dtype))

        return arguments.with_dynamic(*jax.tree_util.tree_map(narrowed, specs))

    def _misfit(self, given: tuple[tuple[Any, ...], dict[str, Any]], arguments: Arguments) -> str | None:
        """Return which array does not have the shape in `symbolic_shapes`; None if the message of jax is more precise.

        `given` are the shapes by argument, as `_by_argument` returns them.
        """
        shapes = self.options.symbolic_shapes
        positions = [position for position in range(len(arguments.args)) if position not in arguments.static]
        fitting: dict[int | str, bool] = {}  # whether all arrays of an argument fit
        misfits: list[tuple[str | None, str, tuple[int, ...], Exception]] = []

        def check(path: Any, text: str | None, part: Any) -> None:
            name, key = ("kwargs", path[1].key) if path[0].idx == 1 else ("args", positions[path[1].idx])
            for inner, leaf in jax.tree_util.tree_flatten_with_path(part)[0]:
                error = _error_for(leaf, text, self.options.constraints)
                fitting[key] = fitting.get(key, True) and error is None
                if error is not None:
                    known = api.symbolic_args_specs(leaf, None, ())
                    inside = jax.tree_util.keystr((*path[2:], *inner))
                    type_ = f"{known.dtype}[{','.join(map(str, known.shape))}]"
                    misfits.append((text, f"{name}[{key!r}]{inside} is {type_}", known.shape, error))

        try:
            jax.tree_util.tree_map_with_path(check, given, arguments.dynamic, is_leaf=lambda text: text is None)
        except (ValueError, TypeError):
            return (
                "symbolic_shapes: expected one text for each argument, such as 'b, 4', or a tree of texts as the "
                f"argument is one of arrays; found {shapes!r}."
            )
        if not misfits:  # each array fits alone
            return None
        text, where, sizes, error = misfits[0]
        if isinstance(shapes, str) and any(fitting.values()):
            texts = {key: shapes for key, fits in fitting.items() if fits}
            return (
                f"symbolic_shapes: {shapes!r} is one text for all arguments, and {where}. Give one for each argument "
                f"that has symbolic dimensions: symbolic_shapes={texts!r}"
            )
        if isinstance(error, IndexError):
            example = repr(", ".join(["b", *map(str, sizes[1:])])) if sizes else "None"
            return (
                f"symbolic_shapes: expected a size for each dimension of its array, and {where}: write {example}, for "
                f"example; found {text!r}."
            )
        return f"symbolic_shapes={shapes!r}: jax cannot read {text!r} for its array, {where}: {error}"

    def partition_specs(self, arguments: Arguments) -> list[PartitionSpec]:
        """Return the partition spec of each flat argument: the spec in `in_specs`, or else the spec for replication.

        A spec in `in_specs` may be for a whole tree of arrays. Raises `ExportError` for specs that do not fit the
        arguments.
        """
        given = self._by_argument("in_specs", arguments)

        def for_each_leaf(spec: Any, tree: Any) -> Any:
            if not _is_spec(spec):
                raise TypeError(f"found {value_and_type(spec)}")
            return jax.tree_util.tree_map(lambda _: PartitionSpec() if spec is None else spec, tree)

        try:
            specs = jax.tree_util.tree_map(for_each_leaf, given, arguments.dynamic, is_leaf=_is_spec)
        except (ValueError, TypeError) as error:
            raise ExportError(
                f"{self.test}: in_specs={self.options.in_specs!r}: expected a PartitionSpec or None for each argument, "
                f"or for each part of its tree: {error}"
            ) from error
        return list(jax.tree_util.tree_leaves(specs, is_leaf=_is_spec))

    def _by_argument(self, option: str, arguments: Arguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the value of an option for each argument that is not static, by position and by keyword.

        The value is None for an argument that the option does not mention. Raises `ExportError` if the option names an
        unknown argument.
        """
        given = getattr(self.options, option) or {}
        args, kwargs = arguments.dynamic
        if isinstance(given, str):
            return (given,) * len(args), dict.fromkeys(kwargs, given)
        if not isinstance(given, Mapping):
            if len(given) != len(args):
                counted = " that are not static" if arguments.static else ""
                raise ExportError(
                    f"{self.test}: {option}: expected a value for each of the {len(args)} positional "
                    f"arguments{counted}, found {len(given)}."
                )
            return tuple(given), dict.fromkeys(kwargs)
        positions = [position for position in range(len(arguments.args)) if position not in arguments.static]
        keys = [*positions, *kwargs]
        for key in given:
            if key not in keys:
                raise ExportError(
                    f"{self.test}: {option}: expected as keys the arguments of the call, by number or name: "
                    f"{few([repr(key) for key in keys])}; found {key!r}."
                )
        return tuple(map(given.get, positions)), {name: given.get(name) for name in kwargs}

    def registration_files(self) -> dict[str, bytes]:
        """Return the source of each module that the case registers, by its file name in the golden.

        Such a module registers tree nodes, effects or custom-call targets. The golden holds a copy of the source, since
        a golden must not depend on code that changes. The worker imports the copy under the module's own name, since
        jax serializes this name with an effect.

        Raises:
            ExportError: This process has not imported the module from a .py file.
        """
        files = {}
        for name in self.options.register:
            module = sys.modules.get(name)
            path = getattr(module, "__file__", None)
            if path is None or not path.endswith(".py"):
                raise ExportError(
                    f"{self.test}: register={name!r}: expected the name of a module that this test has imported from a "
                    f".py file, found {'none' if module is None else repr(path)}. The reader imports a copy of it, "
                    "which may import only jax, numpy, the standard library and the policy's reader_packages."
                )
            files[f"{name}.register.py"] = Path(path).read_bytes()
        return files

    def require_use(self, arguments: Arguments, exported: Any) -> None:
        """Raise `ExportError` for options of the case that have no effect, since setting them is a mistake.

        `exported` is jax's `Exported`.
        """
        options, problems = self.options, []
        if options.constraints and options.symbolic_shapes is None:
            problems.append(
                f"constraints={options.constraints!r} change nothing without symbolic_shapes. Give those, or remove "
                "them."
            )
        sizes = [size for aval in exported.in_avals for size in aval.shape]
        if options.symbolic_shapes is not None and all(isinstance(size, int) for size in sizes):
            problems.append(
                f"symbolic_shapes={options.symbolic_shapes!r} change nothing: no dimension in them is symbolic. Name "
                "one, such as 'b, 4', or remove them."
            )
        if options.in_specs and not options.mesh:
            problems.append(
                f"in_specs={options.in_specs!r} change nothing without a mesh. Give its axes, such as "
                "mesh={'data': 4}, or remove them."
            )
        if exported.nr_devices == 1 < math.prod(options.mesh.values()):
            problems.append(f"mesh={dict(options.mesh)} changes nothing: no argument is placed on it. Remove it.")
        spread = options.spread_over
        first_sizes = [size for leaf in arguments.flat() for size in np.shape(leaf)[:1]]
        if spread == 1 or (spread and not any(size and size % spread == 0 for size in first_sizes)):
            problems.append(
                f"spread_over={spread} changes nothing: expected 2 devices or more, and an argument whose first "
                "dimension is a multiple of that. Give such an argument, or remove it."
            )
        if problems:
            raise ExportError("\n".join(f"{self.test}: {problem}" for problem in problems))

    def outputs_if_any(
        self, platform: str, exported_for: tuple[str, ...], compute: Callable[[], tuple[Leaf, ...]]
    ) -> tuple[tuple[Leaf, ...] | None, str]:
        """Return the outputs that `compute` returns and "", or None and the reason why the golden has no outputs.

        The reason is the marker's `without_outputs`, or that JAX has no lowering for `platform`, the platform of this
        process. If the function was exported for `platform`, its errors are raised unchanged. If not, `ExportError` is
        raised for an error that has another reason.
        """
        if platform in exported_for:
            return compute(), ""
        options = self.options
        if options.without_outputs:
            return None, options.without_outputs
        try:
            return compute(), ""
        except Exception as error:
            first_line = str(error).strip().partition("\n")[0].rstrip(".")
            # With the check of the platform disabled, readers on a CPU would have to run it.
            if (
                NO_LOWERING.search(first_line)
                and "cpu" not in exported_for
                and "platform" not in options.disabled_checks
            ):
                return None, f"JAX cannot run it on {platform}, where it was written: {first_line}"
            raise ExportError(
                f"{self.test}: this function was exported for {', '.join(exported_for)}, and does not run on "
                f"{platform}, the platform of this process: {type(error).__name__}: {first_line}. "
                f"{OUTPUTS_ADVICE.format(platform=platform)}"
            ) from error


_FILTER_JIT = (
    "Where it is a part of a model, as in equinox, export eqx.filter_jit(f) in place of jax.jit(f): the arrays of the "
    "model are arguments then, and its functions constants. Else: "
)
_LINEN = "Export jax.jit(model.apply), with the variables of the model as the first argument."
_SPLIT = "Write graphdef, state = nnx.split(model), and export jax.jit(lambda state, x: nnx.merge(graphdef, state)(x))."


def _misfit_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return why the signature of a function does not accept these arguments; "" if it accepts them."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some callables have no signature
        return ""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        takes = f"{name_of(function, 'it')}{signature}"
        if len(takes) > _LONGEST_SIGNATURE:
            takes = f"{takes[:_LONGEST_SIGNATURE]}…"
        return f"expected the arguments of {takes} after the function, as in a call of it; found: {error}."
    return ""


def _way_of_passing(leaf: Any, inside: str) -> str:
    """Return advice on how to export a function that takes an object which is not an array.

    `inside` is the path of the object inside an argument; empty if the object is the argument itself.
    """
    if _is_nnx(leaf):
        return _SPLIT
    if _is_of(leaf, "flax.linen"):
        return _LINEN
    if registering := _registering(leaf):
        return registering
    if inside:
        static = ", or make it a static argument of its own (static_argnums of jax.jit)" if has_hash(leaf) else ""
        advice = f"take it out of the argument: close over it{static}."
    else:
        static = ", make it static (static_argnums of jax.jit)" if has_hash(leaf) else ""
        advice = f"close over it{static}, or bind it with functools.partial before jax.jit."
    return f"{_FILTER_JIT}{advice}" if callable(leaf) else f"{advice[0].upper()}{advice[1:]}"


def _registering(leaf: Any) -> str:
    """Return the advice to make the class of an object a tree node of jax; empty if no field of the object has arrays.

    For a dataclass without a hash, the advice is returned even without arrays, since its objects cannot be static
    arguments.
    """
    if isinstance(leaf, (type, np.ndarray, np.generic)):
        return ""
    name, is_data = type(leaf).__name__, dataclasses.is_dataclass(leaf)
    if is_data:
        names = [field.name for field in dataclasses.fields(leaf) if field.init]
    else:
        names = [*getattr(leaf, "__dict__", ()), *getattr(type(leaf), "__slots__", ())]
    fields = {name: _leaves_of(getattr(leaf, name, None)) for name in names}
    has_arrays = any(isinstance(part, (jax.Array, np.ndarray)) for parts in fields.values() for part in parts)
    if not has_arrays and (not is_data or has_hash(leaf)):
        return ""
    node = "For its arrays to be arguments, make its class a tree node of jax: jax.tree_util."
    if not is_data or not hasattr(jax.tree_util, "register_dataclass"):
        return f"{node}register_pytree_node({name}, flatten, unflatten)."
    meta = [name for name, parts in fields.items() if has_hash(getattr(leaf, name)) and not all(map(is_array, parts))]
    data = [name for name in fields if name not in meta]
    return f"{node}register_dataclass({name}, data_fields={data}, meta_fields={meta})."


def _leaves_of(value: Any) -> list[Any]:
    try:
        return list(jax.tree_util.tree_leaves(value))
    except (TypeError, ValueError):  # a dict whose keys jax cannot sort
        return [value]


def check_arguments(test: str, arguments: Arguments) -> None:
    """Raise `ExportError` for a leaf that is not an array, or whose numbers jax changes by more than rounding."""
    for argument, inside, leaf in arguments.named():
        where = f"{test}: {argument}{inside}"
        if is_reference(leaf):
            raise ExportError(
                f"{where} is a mutable reference, which jax.export does not accept. "
                "Pass the array, and make the reference inside the function: ref = jax.new_ref(x)."
            )
        if not is_array(leaf):
            raise ExportError(
                f"{where} is {value_and_type(leaf)}; expected an array (jax.Array, numpy.ndarray) of a dtype that JAX "
                f"has, or a Python number, since the golden stores its value. {_way_of_passing(leaf, inside)}"
            )
        require_kept(where, leaf)


def case_id(path: str, names: tuple[str, ...], call: str | None) -> str:
    """Return the id of a case: a folder name that people recognise and that no other test has.

    Args:
        path: the test file relative to the root of the test run (``tests/test_a.py``).
        names: the names of class and function, with the test's parameters (``("TestA", "test_f[x-2]")``).
        call: the ``name=`` of `export_golden`.
    """
    parts = (path.removesuffix(".py").replace("/", "."), *names, *([call] if call else []))
    full = ".".join(parts)
    safe = re.sub(r"[^A-Za-z0-9_.+=\[\],-]+", "-", full)
    # A dot in a folder's name or in name=, or a bracket in name=, could be read as another test's.
    clear = "." not in path.removesuffix(".py") and not re.search(r"[.\[\]]", call or "")
    if safe == full and clear and len(safe) <= _LONGEST_ID:
        return safe
    # What was replaced or cut is in the digest, so that two tests never share a folder.
    whole = "\0".join((path, *names, call or ""))
    return f"{safe[:_LONGEST_ID].lstrip('.')}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def _error_for(leaf: Any, text: str | None, constraints: tuple[str, ...]) -> Exception | None:
    """Return the error if an array cannot have the dimensions that a text names; None if it can.

    The error is an `IndexError` if the array has another number of dimensions.
    """
    try:
        spec = api.symbolic_args_specs(leaf, text, constraints)
    except (ValueError, TypeError, IndexError) as error:
        return error
    return None if len(spec.shape) == np.ndim(leaf) else IndexError(text)


def _is_spec(value: object) -> bool:
    return value is None or isinstance(value, PartitionSpec)


OUTPUTS_ADVICE = (
    "A golden has the outputs of its function, computed where it is written. Give the function an implementation for "
    "{platform} too (jax.lax.platform_dependent), write the golden on a machine that runs it, or say why "
    "it has none: without_outputs='why'. Readers then load, lower and compile it, and compare no numbers."
)

NO_LOWERING = re.compile(r"not found for platform|Only interpret mode is supported on CPU")
"""The messages of JAX about a primitive, or a Pallas kernel, that has no lowering for a platform."""


_JITTED = type(jax.jit(lambda: None))
_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")  # in the path of a library's file


@dataclass(frozen=True)
class JittedCall:
    """A jitted function, and `bind`, which turns the arguments of a user's call into the arguments of that function."""

    function: Any
    bind: Callable[[tuple[Any, ...], Mapping[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]


def jitted_call(test: str, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> JittedCall:
    """Return the jitted function inside the callable that a user passes, and how to bind arguments to that function.

    The callable may be the result of `jax.jit`, or a `functools.partial` or bound method of that result, whose bound
    arguments become arguments of the function. Or it is the result of a library's jit (`eqx.filter_jit`, `nnx.jit`,
    `jax.pmap`), which is traced inside a new `jax.jit`. This one takes the arrays among the leaves of the arguments.
    All other leaves are constants, with the values of the first call.

    Raises:
        ExportError: There is no jitted function in the callable.
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
        if hasattr(function, "wait_checks"):  # of chexify, which holds a jitted function already
            name = name_of(function, "f").replace("<lambda>", "f")
            raise ExportError(
                f"{test}: expected a jitted function first, found {name} of chex.chexify, which checks values outside "
                "of the jitted function. An artifact cannot do that. Export that function without its checks: call "
                f"chex.disable_asserts() first, and pass {name}.__wrapped__."
            )
        raise ExportError(
            f"{test}: expected a jitted function first, such as jax.jit(f), found {value_and_type(function)}. "
            + (_how_to_jit(function, args) if callable(function) else what_to_pass(function))
        )
    return _library_call(test, function, (args, dict(kwargs)))


def _how_to_jit(function: Any, args: tuple[Any, ...]) -> str:
    """Return advice on how to jit a function or a model. For a bound method, the first of `args` is its object."""
    name = name_of(function, "")
    is_method = bool(args and name) and getattr(type(args[0]), name, None) is function
    model, method = (args[0], f".{name}") if is_method else (function, "")
    if _is_of(model, "flax.linen"):
        return _LINEN
    call = f"model{method}".removesuffix(".__call__")
    for library, jit in (("equinox", "eqx.filter_jit"), ("flax.nnx", "nnx.jit")):
        if _is_of(model, library):
            return f"Export {jit}(lambda model, *args: {call}(*args)), with the model as the first argument."
    written = "" if is_method else _as_written(function)
    return f"Wrap it: jax.jit({written})." if written else "Wrap what you pass in jax.jit."


def _as_written(function: Any) -> str:
    """Return the expression by which a test can name a function, such as `rlax.l2_loss`; "" if none is known."""
    name, module = getattr(function, "__qualname__", None), getattr(function, "__module__", None)
    if not (isinstance(name, str) and isinstance(module, str)) or name.endswith("<lambda>"):
        return ""
    is_installed = _INSTALLED.search(getattr(sys.modules.get(module), "__file__", None) or "")
    local = name.rpartition("<locals>.")[2]
    if local != name:  # jax.vmap and others give their results the name of what they wrap
        return "" if is_installed or hasattr(function, "__wrapped__") else local
    parts = module.split(".")
    # By its shortest path: the module of a library that defines a function may be private.
    for path in (".".join(parts[:count]) for count in range(1, len(parts) + 1)):
        if getattr(sys.modules.get(path), name, None) is function:
            return f"{path}.{name}" if is_installed else name
    return ""


def _require_hash(test: str, wrapped: Any) -> None:
    """Raise `ExportError` for a callable that jax cannot hash: an object with arrays as fields, or its method."""
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
                f"{test}: {value_and_type(leaf)} is not a pytree in this release of flax, so its arrays are not "
                f"arguments. {_SPLIT}"
            )
    # nnx.jit gives each Variable a new value, also where the function did not change it.
    inner = function.__wrapped__ if _is_nnx(function) else function

    @functools.wraps(inner, text_attributes(inner), updated=())
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
            raise ExportError(
                f"{test}: a further call has other constants: expected {expected}, found {constants}. Pass the same "
                "constants in each call."
            )
        args, kwargs = _arrays_of((args, dict(kwargs)))
        return args, dict(kwargs)

    return JittedCall(jax.jit(traced), bind)


def _arrays_of(tree: Any) -> Any:
    """Return the tree with None in place of each leaf that is not an array."""
    return jax.tree_util.tree_map(lambda leaf: leaf if _is_traced(leaf) else None, tree)


def _is_traced(leaf: Any) -> bool:
    """Return whether the jit of a library traces this leaf as an array. It treats Python numbers as constants."""
    return is_array(leaf) and isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct, np.ndarray, np.generic))


def _is_nnx(value: Any) -> bool:
    return _is_of(value, "flax.nnx")


def _is_of(value: Any, library: str) -> bool:
    """Return whether the class of an object, or one of its base classes, belongs to a library."""
    return any(f"{kind.__module__}.".startswith(f"{library}.") for kind in type(value).__mro__)
