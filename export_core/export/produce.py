"""How does a case become the files of a golden: artifact, inputs, outputs, manifest?"""

from __future__ import annotations

import functools
import platform as host
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jaxlib.version

from export_core.artifact import Artifact, read_bytes
from export_core.export import api
from export_core.export.arguments import Arguments, arguments_of, leaf_from
from export_core.export.case import Case, check_arguments, check_tree
from export_core.export.errors import ExportError
from export_core.export.jaxprs import Described, describe
from export_core.export.meshes import abstract, mesh_of, placed
from export_core.export.registrations import registration_files
from export_core.goldens import Leaf, Manifest, Options, Signature, Writer
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS, sha256
from export_core.releases import Calendar

FLAGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_numpy_dtype_promotion",
    "jax_threefry_partitionable",
    "jax_use_shardy_partitioner",
    "jax_export_ignore_forward_compatibility",
)
"""Settings of jax that change what is exported. A release that lacks one leaves it out of the manifest."""

_WITHOUT_LOCATIONS = {
    "jax_traceback_in_locations_limit": 0,
    "jax_hlo_source_file_canonicalization_regex": ".*",  # up to 0.6, a limit of 0 leaves the innermost file in
}


@dataclass(frozen=True)
class Produced:
    """A case as exported and run now, in this process: what a golden of this writer would hold.

    `inputs` and `outputs` are flat. The rest is for the checks that are added to it: the jax `Exported`, and the call itself.
    """

    case: Case
    manifest: Manifest
    files: dict[str, bytes]
    artifact: Artifact
    inputs: tuple[Leaf, ...]
    outputs: tuple[Leaf, ...]
    exported: Any
    arguments: Arguments


def installed_writer(calendar: Calendar) -> Writer:
    """This process as a writer. Raises `ReleaseError` when its jaxlib is not in the calendar."""
    return Writer(
        jax=jax.__version__,
        jaxlib=jaxlib.version.__version__,
        built=calendar.built(jaxlib.version.__version__),
        python=host.python_version(),
        platform=_platform_name(),
    )


def produce(case: Case, calendar: Calendar, *, reproducible: bool) -> Produced:
    """Export the case and run it once.

    Args:
        case: what to export.
        calendar: dates the writer.
        reproducible: keep paths of this machine out of the bytes. It empties jax's caches, so it is asked for only when
            a golden is to be written. (`jax_traceback_in_locations_limit` is ignored by what jax has already traced.)

    Raises:
        ExportError: jax.export does not take it. What the function itself raises when it is traced or run is passed on.
    """
    case.check()
    asked = case.asked
    writer = installed_writer(calendar)
    platforms = asked.platforms or (writer.platform,)
    with _no_locations() if reproducible else nullcontext(), _configured(case):
        arguments = placed(case, _arguments(case))
        shapes: Any = getattr(case.function, "eval_shape", None)
        if shapes is not None:
            check_tree(case.test, "output", shapes(*arguments.args, **arguments.kwargs))
        specs = _specs(case, arguments)
        try:
            exported = api.exported(
                case.function,
                specs.args,
                dict(specs.kwargs),
                platforms=platforms,
                disabled_checks=tuple({**asked.allow, **asked.disabled_checks}),
            )
            data = api.serialized(exported, asked.vjp_order)
        except (ValueError, NotImplementedError, KeyError, TypeError) as error:
            raise ExportError(_refusal(case, writer, error)) from error
        module, jaxpr = api.module_text(exported), _jaxpr(case, specs)
    flags = _flags()
    inputs = leaves_as_declared(arguments, exported)
    outputs = tuple(map(leaf_from, run(case, arguments)))
    artifact = read_bytes(data, name=case.id)
    files = {
        ARTIFACT: data,
        INPUTS: to_npz(inputs),
        OUTPUTS: to_npz(outputs),
        "module.mlir": module.encode(),
        "jaxpr.txt": jaxpr.text.encode(),
        **registration_files(case),
    }
    manifest = Manifest(
        case=case.id,
        test=case.test,
        name=case.name,
        writer=writer,
        flags=flags,
        options=_options(case, arguments, platforms, exported.nr_devices),
        comparison=case.comparison,
        signature=signature_of(artifact),
        custom_calls=tuple(sorted({call.target for call in artifact.custom_calls})),
        files={name: sha256(content) for name, content in files.items()},
        jaxpr=jaxpr.summary,
    )
    return Produced(case, manifest, files, artifact, inputs, outputs, exported, arguments)


def run(case: Case, arguments: Arguments) -> list[Any]:
    """What the function gives, flat."""
    copies = arguments.copied()
    return list(jax.tree_util.tree_leaves(case.function(*copies.args, **copies.kwargs)))


def outputs_for(produced: Produced, inputs: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """What the function gives for other inputs, flat and stored."""
    return tuple(map(leaf_from, run(produced.case, produced.arguments.with_leaves(inputs))))


def leaves_as_declared(arguments: Arguments, exported: Any) -> tuple[Leaf, ...]:
    """The arguments as they are stored, of the types that the exported function really takes."""
    leaves = map(leaf_from, arguments.flat())
    return tuple(_as_declared(leaf, aval) for leaf, aval in zip(leaves, exported.in_avals, strict=True))


def signature_of(artifact: Artifact) -> Signature:
    """The signature an artifact declares, read from its bytes, so that it reads the same whoever wrote it."""
    envelope = artifact.envelope
    if envelope is None:
        raise ExportError("Expected a serialized jax.export.Exported, found a bare StableHLO module.")
    return Signature(
        inputs=tuple(map(str, envelope.in_avals)),
        outputs=tuple(map(str, envelope.out_avals)),
        in_tree=str(envelope.in_tree),
        out_tree=str(envelope.out_tree),
    )


def _arguments(case: Case) -> Arguments:
    whole = Arguments(case.args, dict(case.kwargs))
    try:
        taken = api.dynamic_tree(case.function, case.args, dict(case.kwargs))
    except TypeError as error:
        if re.search("abstract array|valid JAX type", str(error)):
            check_arguments(case.test, whole)
        raise
    found = arguments_of(case.test, case.args, case.kwargs, taken)
    check_arguments(case.test, found)
    return found


def _specs(case: Case, arguments: Arguments) -> Arguments:
    """What stands for the arguments while the function is exported."""
    asked = case.asked
    if asked.symbolic_shapes is None:
        return abstract(case, arguments)
    args, kwargs = arguments.dynamic
    try:
        specs = api.symbolic_args_specs(args, asked.symbolic_shapes, asked.constraints)
    except (ValueError, TypeError) as error:
        raise ExportError(
            f"{case.test}: symbolic_shapes={asked.symbolic_shapes!r}: jax cannot read this for these arguments: {error}"
        ) from error
    return arguments.with_dynamic(specs, kwargs)


def _options(case: Case, arguments: Arguments, platforms: tuple[str, ...], devices: int) -> Options:
    asked = case.asked
    shapes = asked.symbolic_shapes
    return Options(
        platforms=tuple(platforms),
        allow=dict(asked.allow),
        disabled_checks=dict(asked.disabled_checks),
        vjp_order=asked.vjp_order,
        symbolic_shapes=() if shapes is None else (shapes,) if isinstance(shapes, str) else _texts(shapes),
        constraints=asked.constraints,
        mesh=mesh_of(case, arguments, devices),
        in_specs=_texts(asked.in_specs),
        calling_convention_version=asked.calling_convention_version,
        ignore_forward_compatibility=asked.ignore_forward_compatibility,
        register=asked.register,
        refused_on=asked.refused_on,
    )


def _texts(values: Any) -> tuple[str | None, ...]:
    return tuple(value if value is None else str(value) for value in values)


def _configured(case: Case) -> Any:
    values: dict[str, Any] = {}
    if case.asked.calling_convention_version is not None:
        values["jax_export_calling_convention_version"] = case.asked.calling_convention_version
    if case.asked.ignore_forward_compatibility:
        values["jax_export_ignore_forward_compatibility"] = True
    return api.configured(case.test, values)


_CALLBACK = re.compile(r"host_callbacks|callback")


def _refusal(case: Case, writer: Writer, error: Exception) -> str:
    text = str(error)
    if _CALLBACK.search(text):
        return (
            f"{case.test}: this function calls back into Python (jax.debug.print, jax.debug.callback, pure_callback or io_callback), and "
            f"no artifact can hold a Python function: {text.splitlines()[0]}. Take the call out where it is exported, or export what is "
            "around it."
        )
    targets = dict.fromkeys(re.findall(r"custom_call @([\w.$-]+)", text))
    if not targets or "no compatibility guarantees" not in text:
        return f"{case.test}: jax.export (jax {writer.jax}) refused this function: {type(error).__name__}: {error}"
    allow = dict.fromkeys(targets, "why its behaviour is pinned")
    return (
        f"{case.test}: this function makes custom calls that jax {writer.jax} does not promise to keep: {', '.join(targets)}. "
        f"Avoid them when exporting, or allow each with a reason: allow={allow}."
    )


def _as_declared(leaf: Leaf, aval: Any) -> Leaf:
    """Jax narrows 64-bit NumPy input when x64 is off; the golden keeps what the exported function really takes."""
    if leaf.dtype == str(aval.dtype) or leaf.dtype not in ("float64", "int64", "uint64", "complex128"):
        return leaf
    return leaf_of(leaf.data.astype(aval.dtype))


def _flags() -> dict[str, bool | int | str | None]:
    known: dict[str, Any] = jax.config.values
    return {
        name: value if isinstance(value, (bool, int, str, type(None))) else str(value)
        for name in FLAGS
        if name in known and (value := getattr(jax.config, name, known[name])) is not ...
    }


def _jaxpr(case: Case, specs: Arguments) -> Described:
    if hasattr(
        case.function, "trace"
    ):  # jax.jit has it since 0.4.30, and knows what is static; before, the jit itself is printed too
        return describe(case.function.trace(*specs.args, **specs.kwargs).jaxpr)
    static = tuple(where for where in specs.static if isinstance(where, int))
    named = {name: value for name, value in specs.kwargs.items() if name in specs.static}
    traced = jax.make_jaxpr(functools.partial(case.function, **named), static_argnums=static)
    return describe(traced(*specs.args, **specs.dynamic[1]))


def _platform_name() -> str:
    # jax's backend says "gpu" for both; jax.export wants to know whose.
    backend = jax.default_backend()
    if backend != "gpu":
        return str(backend)
    version = str(jax.devices()[0].client.platform_version).lower()
    return "rocm" if "rocm" in version else "cuda"


@contextmanager
def _no_locations() -> Iterator[None]:
    known = {name: value for name, value in _WITHOUT_LOCATIONS.items() if name in jax.config.values}
    with api.configured("", known):
        jax.clear_caches()
        yield
