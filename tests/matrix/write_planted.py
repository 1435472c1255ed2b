"""A script that writes goldens into a folder, by its own jax, with something wrong on other platforms."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jax import lax

from export_core.export.case import Case, ExportOptions
from export_core.export.produce import produce
from export_core.goldens import Comparison, GoldenStore
from export_core.goldens.store import ARTIFACT, sha256
from export_core.releases import load_calendar

OTHERS = ("cuda", "tpu")
WHY = {"planted_target": "no platform has it"}


def missing(x):
    """Call a target that no TPU and no GPU has."""
    kernel = jax.ffi.ffi_call("planted_target", jax.ShapeDtypeStruct(x.shape, x.dtype))
    return lax.platform_dependent(x, cuda=kernel, tpu=kernel, default=lambda x: x * 3)


def unreadable(x):
    """Call the target of real TPU kernels with a payload that TPUs refuse."""
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    mosaic = jax.ffi.ffi_call("tpu_custom_call", shape, custom_call_api_version=1, legacy_backend_config="no kernel")
    return lax.platform_dependent(x, tpu=mosaic, default=lambda x: x * 3)


def whole_numbers(x):
    """Return a convolution of whole numbers, which no compiler for CUDA supports."""
    image = jnp.broadcast_to(x.astype(jnp.int32), (1, 3, 8, 2))
    return lax.conv(image, jnp.ones((4, 3, 3, 1), jnp.int32), (1, 1), "SAME")


def main(root: Path) -> None:
    store = GoldenStore(root)
    x = np.array([1.0, 2.0], np.float32)

    def made(case, function, **options):
        whole = Case(
            case, f"tests/test_x.py::{case}", None, jax.jit(function), (x,), {}, ExportOptions(**options), Comparison()
        )
        return produce(whole, load_calendar(), reproducible=False)

    sound = made("sound", jnp.cos, platforms=OTHERS)
    store.write(sound.manifest, sound.files)
    lacks = made("missing_target", missing, platforms=OTHERS, allow=WHY)
    store.write(lacks.manifest, lacks.files)
    kernel = made("unreadable_kernel", unreadable, platforms=("tpu",))
    store.write(kernel.manifest, kernel.files)
    limited = made("whole_numbers", whole_numbers, platforms=("cuda",))
    store.write(limited.manifest, limited.files)
    # Its manifest says what its artifact does not: that it was exported for these platforms.
    foreign = made("foreign_platform", jnp.cos, platforms=("cpu",))
    options = msgspec.structs.replace(foreign.manifest.options, platforms=("cpu", *OTHERS))
    store.write(msgspec.structs.replace(foreign.manifest, options=options), foreign.files)
    # The same two for a CPU, on which a target that is missing cannot have been run by its writer either.
    calls = made("missing_target_on_cpu", jnp.cos, platforms=("cpu",))
    kernel = jax.jit(lambda x: jax.ffi.ffi_call("planted_target", jax.ShapeDtypeStruct(x.shape, x.dtype))(x))
    unchecked = [jax.export.DisabledSafetyCheck.custom_call("planted_target")]
    artifact = bytes(jax.export.export(kernel, platforms=["cpu"], disabled_checks=unchecked)(x).serialize())
    manifest = msgspec.structs.replace(
        calls.manifest,
        options=msgspec.structs.replace(calls.manifest.options, allow=WHY),
        custom_calls=("planted_target",),
        files={**calls.manifest.files, ARTIFACT: sha256(artifact)},
    )
    store.write(manifest, {**calls.files, ARTIFACT: artifact})
    strange = made("foreign_to_cpu", jnp.cos, platforms=OTHERS)
    options = msgspec.structs.replace(strange.manifest.options, platforms=("cpu", *OTHERS))
    store.write(msgspec.structs.replace(strange.manifest, options=options), strange.files)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
