"""A writer that needs only jax: `write_scale.py DAY FOLDER`.

It writes an artifact with the lowering of this day, its inputs and its outputs, for `jaxexport goldens add`.
"""

import sys
from pathlib import Path

import jax
import jax.export
import numpy as np
import scale
import scale_targets  # noqa: F401 - registers

if __name__ == "__main__":
    day, folder = sys.argv[1], Path(sys.argv[2])
    scale.use_lowering(day)
    function = jax.jit(lambda x: scale.scale(x, 2.5))
    x = np.arange(4, dtype=np.float32)
    checks = [jax.export.DisabledSafetyCheck.custom_call(target) for target in ("my_scale_v1", "my_scale_v2")]
    exported = jax.export.export(function, disabled_checks=checks)(x)
    (folder / "artifact.jaxexport").write_bytes(exported.serialize())
    np.savez(folder / "inputs.npz", x)
    np.savez(folder / "outputs.npz", np.asarray(function(x)))
