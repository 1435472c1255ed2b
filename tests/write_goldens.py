"""A program that writes into FOLDER the goldens that tests replay, with the jax of this interpreter.

Some hang or need much memory by what they compute. Others misbehave by the name of their function, as
tests/misbehaving defines.
"""

import dataclasses
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.export
import jax.numpy as jnp
import msgspec
import numpy as np

from export_core.export.case import Case, ExportOptions
from export_core.export.produce import produce
from export_core.goldens import Comparison, GoldenStore
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import ARTIFACT, OUTPUTS, sha256
from export_core.releases import load_calendar

GARBAGE = tuple(
    f"garbage_{form}"
    for form in ("text", "binary", "half", "shape", "list", "for_another", "after_the_end", "without_end")
)
MISBEHAVING = (
    "dies_by_segv",
    "exits_silently",
    "closes_its_pipes",
    "kills_its_worker",
    "prints_on_stdout",
    "reads_stdin",
    "says_on_stderr",
    "refused_by_version",
    "refused_by_age",
    "sleeps_a_second",
    "is_flaky",
    "floods",
    "finds_a_full_disk",
    "keeps_nothing",
    *GARBAGE,
)


def hangs(x):
    return jax.lax.while_loop(lambda carry: carry[0] >= 0, lambda carry: ((carry[0] + 1) % 7, carry[1] + 1), (0, x))[1]


def eats_memory(x):
    big = jnp.broadcast_to(x[0], (1 << 28,))  # 1 GiB
    _, kept = jax.lax.while_loop(
        lambda carry: carry[0] >= 0, lambda carry: ((carry[0] + 1) % 7, carry[1] + 1), (0, big)
    )
    return kept[:2]


def named(name):
    def function(x):
        return x - 1

    function.__name__ = name
    return function


def main(root: Path) -> None:
    store = GoldenStore(root)
    calendar = load_calendar()
    x = np.array([1.0, 2.0], np.float32)

    def made(case, function, *args, platforms=None, **comparison):
        return produce(
            Case(
                case,
                f"tests/test_x.py::{case}",
                None,
                jax.jit(function),
                args,
                {},
                ExportOptions(platforms=platforms),
                Comparison(**comparison),
            ),
            calendar,
            reproducible=False,
        )

    def write(produced, **other):
        files = {
            name: data for name, data in {**produced.files, **other}.items() if not name.endswith((".mlir", ".txt"))
        }
        manifest = msgspec.structs.replace(
            produced.manifest, files={name: sha256(data) for name, data in files.items()}
        )
        store.write(manifest, files)

    waves = made("waves", lambda x: {"sin": jnp.sin(x), "cos": jnp.cos(x) * 2}, x)
    write(waves)
    write(made("both", lambda x: x + 1, x, platforms=("cpu", "tpu")))
    write(made("large", lambda x: jnp.zeros(1 << 17) + x[0], x))
    write(made("tpu_only", lambda x: x + 2, x, platforms=("tpu",)))
    off = [leaf_of(np.array([1.0, -1.0], np.float32)), leaf_of(np.array([0.5, 0.5], np.float32))]
    write(made("other_numbers", lambda x: (jnp.sin(x), jnp.cos(x)), x), **{OUTPUTS: to_npz(off)})
    write(made("other_count", lambda x: jnp.tan(x), x), **{OUTPUTS: to_npz(off)})
    keys = tuple(jax.random.key(3, impl=impl) for impl in ("threefry2x32", "rbg", "unsafe_rbg"))
    write(made("keys", lambda *keys: [jax.random.split(key) for key in keys], *keys, compare="exact"))
    dtypes = [
        "bool",
        "int4",
        "uint4",
        "int8",
        "uint32",
        "bfloat16",
        "float16",
        "float8_e4m3fn",
        "float8_e5m2",
        "complex64",
    ]
    many = [jnp.asarray([0, 1, 1], dtype) for dtype in dtypes]
    shapes = [jnp.zeros((0, 3)), jnp.float32(2.5)]
    write(
        made(
            "every_dtype",
            lambda *arrays: [array[::-1] if array.ndim == 1 else array for array in arrays],
            *many,
            *shapes,
        )
    )
    write(made("cholesky", lambda a: jnp.linalg.cholesky(a), np.eye(4, dtype=np.float32) * 4))
    write(made("eigh", lambda a: tuple(jnp.linalg.eigh(a)), np.diag([1.0, 2, 3]).astype(np.float32), compare="eigh"))
    write(made("wrong_comparator", lambda x: x * 3, x, compare="svd"))

    plain = made("plain", lambda x: x - 1, x)  # exported under many names, and compiled once
    for function in (hangs, eats_memory, *map(named, MISBEHAVING)):
        case = function.__name__
        manifest = msgspec.structs.replace(plain.manifest, case=case, test=f"tests/test_x.py::{case}")
        data = bytes(jax.export.export(jax.jit(function))(x).serialize())
        write(dataclasses.replace(plain, manifest=manifest), **{ARTIFACT: data})
    damaged = bytearray(waves.files[ARTIFACT])
    damaged[: len(damaged) // 2] = bytes(len(damaged) // 2)
    write(made("no_artifact", lambda x: x, x), **{ARTIFACT: bytes(damaged)})

    jax.config.update("jax_enable_x64", True)
    write(made("x64", lambda x: (x / 3, jnp.arange(3)), np.array([1.0, 2.0])))


if __name__ == "__main__":
    os.fsync = lambda descriptor: None  # as in conftest.py
    main(Path(sys.argv[1]))
