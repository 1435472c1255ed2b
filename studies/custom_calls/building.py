"""Builds of the scale library, which has the custom call as of each day of its change, and readers that load them."""

import dataclasses
import shutil
import subprocess
from pathlib import Path

from export_core.readers.environment import Environment

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")
HOLDS = {"D-1": ("scale_v1",), "D": ("scale_v1", "scale_v2"), "RELEASE+180": ("scale_v2",)}
"""The source files of the library on each day. On D+21 and RELEASE, they are the same as on D."""


def build_libraries(folder: Path, headers: str) -> dict[str, Path]:
    """Build the custom-call library as it is on each day of its change; return each library's path by that day.

    The days are the keys of `HOLDS`, such as D-1.

    A jaxlib accepts handlers that were compiled with its own headers or with older headers. So the headers of the
    oldest reader work for all readers.

    Args:
        folder: where the libraries are written.
        headers: the folder of XLA's headers, as `jax.ffi.include_dir()` returns it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    compiler = [COMPILER or "g++", "-std=c++17", "-O0", "-w", "-fPIC", f"-I{headers}"]
    compiling = [
        subprocess.Popen([*compiler, "-c", HERE / f"{source}.cc", "-o", folder / f"{source}.o"])
        for source in HOLDS["D"]
    ]
    failed = [process.args for process in compiling if process.wait()]
    assert not failed, failed
    libraries = {day: folder / f"libscale-{number}.so" for number, day in enumerate(HOLDS)}
    for day, sources in HOLDS.items():
        objects = [folder / f"{source}.o" for source in sources]
        subprocess.run([compiler[0], "-shared", *objects, "-o", libraries[day]], check=True)
    return libraries


def with_library(environment: Environment, library: Path) -> Environment:
    """Return an environment whose variables tell where this library is."""
    variables = {**environment.variables, "SCALE_LIBRARY": str(library)}
    return dataclasses.replace(environment, variables=variables)
