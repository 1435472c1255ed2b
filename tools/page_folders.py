"""The makers of the folders in which the commands of pages run; tools/printed.py runs the commands."""

import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from commands import finished
from making import manifest, result, write_golden
from making import writer as writer_of

from export_core.artifact import read
from export_core.goldens import GoldenStore
from export_core.goldens.adopt import adopt_artifact
from export_core.goldens.upkeep import rename_case
from export_core.judge import Judgement
from export_core.matrix import Verdict

ROOT = Path(__file__).parents[1]
# What a library of models would have: its cases, and the goldens of this repository that they are made of.
MODEL = {
    "tests.test_model.test_attention": "tests.compat.test_models.test_attention",
    "tests.test_model.test_training_step": "tests.compat.test_models.test_mlp_with_gradients",
    "tests.test_solver.test_cholesky": "tests.compat.test_linear_algebra.test_cholesky",
    "tests.test_kernel.test_scale": "tests.compat.test_safety_checks.test_allowed_target",
}
WRITERS = ("0.9.2-cpu", "0.11.0-cpu", "0.12.0.1-cpu")


def make(name: str, folder: Path) -> Path:
    """Make a folder, and return it.

    Args:
        name: what is in the folder: the name of a maker below, or else a path in the repository, which is copied.
        folder: the path of the folder, which does not exist yet.
    """
    folder.mkdir(parents=True)
    makers = {
        "empty": _empty,
        "repository": _repository,
        "three-goldens": _three_goldens,
        "own-goldens": _own_goldens,
        "api-example": _api_example,
        "model": partial(_goldens, ("test_model", "test_solver"), WRITERS),
        "solver": partial(_goldens, ("test_solver",), WRITERS),
        "kernel": partial(_goldens, ("test_model.test_attention", "test_kernel"), WRITERS[-1:]),
        "archive": _archive,
        "costs": _costs,
    }
    maker = makers.get(name)
    if maker is not None:
        maker(folder)
    else:
        shutil.copytree(ROOT / name, folder, dirs_exist_ok=True)
    return folder


def _empty(folder: Path) -> None:
    pass


def _repository(folder: Path) -> None:
    """Copy all files of this repository that git tracks, so that commands may change them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copyfile(ROOT / name, folder / name)


def _three_goldens(folder: Path) -> None:
    """Write a case with goldens by three writers, for pages that are only about dates: artifacts are placeholders."""
    for jaxlib in ("0.9.2", "0.11.0", "0.12.0.1"):
        write_golden(GoldenStore(folder / "golden"), manifest("t.test_f", jaxlib))


def _own_goldens(folder: Path) -> None:
    """Copy the goldens of this project into a new repository of git."""
    shutil.copytree(ROOT / "golden", folder / "golden")
    subprocess.run(["git", "init", "-q", folder], check=True)
    for setting in ("user.name=A person", "user.email=person@example.org", "gc.auto=0"):
        subprocess.run(["git", "-C", folder, "config", *setting.split("=")], check=True)


def _api_example(folder: Path) -> None:
    """Copy some artifacts, and write the results of a finished run: a passing cell, and a broken one."""
    shutil.copytree(ROOT / "tests" / "artifact" / "data" / "0.12.0.1", folder, dirs_exist_ok=True)
    message = "died by signal 11 (SIGSEGV)"
    broken = result(Verdict.CRASH, Judgement.BROKEN, case="t.g", reader="0.9.2", signal=11, message=message)
    finished(folder / ".jaxexport", result(), broken)


def _goldens(cases: tuple[str, ...], writers: tuple[str, ...], folder: Path) -> None:
    """Write real goldens by these writers for some cases of `MODEL`, those whose names begin with one of `cases`."""
    store = GoldenStore(folder / "golden")
    for case, source in MODEL.items():
        if case.startswith(tuple(f"tests.{name}" for name in cases)):
            for writer in writers:
                shutil.copytree(ROOT / "golden" / source / writer, store.root / source / writer)
            rename_case(store, source, case)


def _archive(folder: Path) -> None:
    """Copy real artifacts with their inputs and outputs, and without source code."""
    for name, source, writer in (
        ("attention", "tests.compat.test_models.test_attention", "0.11.0-cpu"),
        ("solver", "tests.compat.test_linear_algebra.test_cholesky", "0.9.2-cpu"),
    ):
        golden = ROOT / "golden" / source / writer
        (folder / name).mkdir()
        for file in ("artifact.jaxexport", "inputs.npz", "outputs.npz"):
            shutil.copyfile(golden / file, folder / name / file)


def _costs(folder: Path) -> None:
    """Adopt two artifacts by jaxlib 0.9.2 that cost more in later releases; tools/cost_examples.py has written them."""
    field = np.indices((192,) * 3).sum(axis=0, dtype=np.float32) % 2  # neighbours differ by one: each sum is exact
    roughness = np.float32(3 * 191 * 192 * 192)
    _adopt(folder / "golden", "squared_differences", "tests.test_field.test_roughness", [field], roughness)
    # Each sum is 1 or 2: every library rounds the logarithms of these to the same number.
    weights, values = np.ones((10, 4, 6), np.float32), np.zeros((10, 4, 6, *(9,) * 5), np.float32)
    values[:, :, 0], values[:, ::2, 1] = 1, 1
    logarithms = np.log(values.sum(axis=2))
    _adopt(folder / "slower", "log_sums", "tests.test_sums.test_log_sums", [weights, values], logarithms)


def _adopt(store: Path, artifact: str, case: str, inputs: list[Any], outputs: Any) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(scratch) / f"{name}.npz" for name in ("inputs", "outputs")]
        np.savez(files[0], *inputs)
        np.savez(files[1], outputs)
        data = read(ROOT / "tests" / "docs" / "data" / f"{artifact}.jaxexport")
        GoldenStore(store).write(*adopt_artifact(data, *files, case, writer_of("0.9.2")))
