"""Goldens made from two real ones so that a real reader gives each verdict."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from export_core.artifact import read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.goldens import GoldenStore
from export_core.goldens.arrays import from_npz, leaf_of, to_npz
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS, sha256

CASE, WRITER = "tests.compat.test_programs.test_sort", "0.9.2"
FOR_TPU = "tests.compat.test_platforms.test_every_platform"
OWN = GoldenStore(Path(__file__).parents[2] / "golden")
ENDS_ITS_PROCESS = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
NEVER_ENDS = "import time\ntime.sleep(600)\n"


def write_rows(root: Path) -> None:
    """Write a golden by 0.9.2 for each verdict, whose case has the name of the verdict that a reader must give."""
    original, for_tpu = (
        next(golden for golden in OWN.generations(case) if golden.manifest.writer.jaxlib == WRITER)
        for case in (CASE, FOR_TPU)
    )
    plain = {name: (original.folder / name).read_bytes() for name in (ARTIFACT, INPUTS, OUTPUTS)}
    first, *rest = from_npz(original.folder / OUTPUTS)
    wrong = to_npz([leaf_of(first.numpy() + np.float32(1)), *rest])

    def write(case: str, module: str = "", options: dict[str, Any] | None = None, **changed: bytes) -> None:
        files = {
            **plain,
            **{{"artifact": ARTIFACT, "inputs": INPUTS, "outputs": OUTPUTS}[k]: v for k, v in changed.items()},
        }
        register = (case,) if module else ()
        if module:
            files[f"{case}.register.py"] = module.encode()
        manifest = msgspec.structs.replace(
            original.manifest,
            case=case,
            options=msgspec.structs.replace(original.manifest.options, register=register, **options or {}),
            files={name: sha256(data) for name, data in files.items()},
            noise=None,
        )
        GoldenStore(root).write(manifest, files)

    write("pass")
    write("numerics", outputs=wrong)
    envelope = read_bytes(plain[ARTIFACT]).envelope
    assert envelope
    # A golden that claims to run where it was written, although its artifact is for TPU: the reader refuses it.
    lifted = {"platforms": ("tpu",), "disabled_checks": {"platform": "it says so"}}
    write("refused", options=lifted, artifact=encode(envelope._replace(platforms=("tpu",))))
    write("error", inputs=to_npz([leaf_of(np.zeros(3, np.float32))]))
    write("crash", ENDS_ITS_PROCESS)
    write("timeout", NEVER_ENDS)
    GoldenStore(root).write(
        msgspec.structs.replace(for_tpu.manifest, case="compiled"),
        {name: (for_tpu.folder / name).read_bytes() for name in for_tpu.manifest.files},
    )
