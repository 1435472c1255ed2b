"""How does a case become the files of a golden: artifact, inputs, outputs, manifest?"""

from __future__ import annotations

import platform as host
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.export
import jaxlib.version
import numpy as np

from export_core.artifact import Artifact, read_bytes
from export_core.export.case import Case
from export_core.export.errors import ExportError
from export_core.goldens import Leaf, Manifest, Options, Signature, Writer
from export_core.goldens.arrays import key_leaf, leaf_of, to_npz
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
    """A case as exported and run now, in this process: what a golden of this writer would hold."""

    manifest: Manifest
    files: dict[str, bytes]
    artifact: Artifact
    inputs: tuple[Leaf, ...]
    outputs: tuple[Leaf, ...]


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
    writer = installed_writer(calendar)
    inputs = tuple(_leaf(leaf) for leaf in jax.tree_util.tree_leaves((case.args, dict(case.kwargs))))
    platforms = case.platforms or (writer.platform,)
    checks = [jax.export.DisabledSafetyCheck.custom_call(target) for target in case.allow]
    with _no_locations() if reproducible else _as_is():
        if hasattr(case.function, "trace"):
            case.function.trace(*case.args, **case.kwargs)
        try:
            exported = jax.export.export(case.function, platforms=platforms, disabled_checks=checks)(
                *case.args, **case.kwargs
            )
            data = bytes(exported.serialize())
        except (ValueError, NotImplementedError, KeyError, TypeError) as error:
            raise ExportError(_refusal(case, writer, error)) from error
        if len(exported.in_avals) != len(inputs):
            raise ExportError(
                f"{case.test}: expected {len(exported.in_avals)} arrays as the exported function takes them, found {len(inputs)} among the "
                "arguments: static arguments are part of the function; bind them with functools.partial before jax.jit."
            )
        module, jaxpr = exported.mlir_module(), _jaxpr(case)
    inputs = tuple(_as_declared(leaf, aval) for leaf, aval in zip(inputs, exported.in_avals, strict=True))
    outputs = tuple(_leaf(leaf) for leaf in jax.tree_util.tree_leaves(_run(case)))
    artifact = read_bytes(data, name=case.id)
    files = {
        ARTIFACT: data,
        INPUTS: to_npz(inputs),
        OUTPUTS: to_npz(outputs),
        "module.mlir": module.encode(),
        "jaxpr.txt": jaxpr.encode(),
    }
    manifest = Manifest(
        case=case.id,
        test=case.test,
        name=case.name,
        writer=writer,
        flags=_flags(),
        options=Options(platforms=tuple(platforms), allow=dict(case.allow)),
        comparison=case.comparison,
        signature=signature_of(artifact),
        custom_calls=tuple(sorted({call.target for call in artifact.custom_calls})),
        files={name: sha256(content) for name, content in files.items()},
    )
    return Produced(manifest, files, artifact, inputs, outputs)


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


def _refusal(case: Case, writer: Writer, error: Exception) -> str:
    targets = dict.fromkeys(re.findall(r"custom_call @([\w.$-]+)", str(error)))
    if not targets or "no compatibility guarantees" not in str(error):
        return f"{case.test}: jax.export (jax {writer.jax}) refused this function: {type(error).__name__}: {error}"
    allow = dict.fromkeys(targets, "why its behaviour is pinned")
    return (
        f"{case.test}: this function makes custom calls that jax {writer.jax} does not promise to keep: {', '.join(targets)}. "
        f"Avoid them when exporting, or allow each with a reason: allow={allow}."
    )


def _run(case: Case) -> Any:
    """What the function gives. It gets copies, since it may have been jitted to consume its arguments (`donate_argnums`)."""
    args, kwargs = jax.tree_util.tree_map(
        lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, (case.args, dict(case.kwargs))
    )
    return case.function(*args, **kwargs)


def _leaf(value: Any) -> Leaf:
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return key_leaf(str(value.dtype), np.asarray(jax.random.key_data(value)))
    if isinstance(value, (bool, int, float, complex)):
        return leaf_of(np.asarray(jax.numpy.asarray(value)))
    return leaf_of(np.asarray(value))


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


def _jaxpr(case: Case) -> str:
    text = str(jax.make_jaxpr(case.function)(*case.args, **case.kwargs))
    return re.sub(r" at 0x[0-9a-f]+", "", text) + "\n"


def _platform_name() -> str:
    # jax's backend says "gpu" for both; jax.export wants to know whose.
    backend = jax.default_backend()
    if backend != "gpu":
        return str(backend)
    version = str(jax.devices()[0].client.platform_version).lower()
    return "rocm" if "rocm" in version else "cuda"


@contextmanager
def _as_is() -> Iterator[None]:
    yield


@contextmanager
def _no_locations() -> Iterator[None]:
    before = {name: jax.config.values[name] for name in _WITHOUT_LOCATIONS if name in jax.config.values}
    for name in before:
        jax.config.update(name, _WITHOUT_LOCATIONS[name])
    jax.clear_caches()
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
