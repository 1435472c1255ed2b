"""The CPython of an environment: which version it has, and where it is on this machine."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from export_core.readers.errors import EnvironmentFailed

PREFERRED = "3.12"
"""Runs every jaxlib from 0.4.18 to the newest."""

INSTALL_SECONDS = 600.0


def python_for(pythons: tuple[str, ...]) -> str:
    """The CPython for a release that has wheels for `pythons`: 3.12 if it can, else the newest of them."""
    return PREFERRED if PREFERRED in pythons else max(pythons, key=Version)


@dataclass(frozen=True)
class CPython:
    """One CPython: its path, or its version if uv has it. `note` says which it is where another one is preferred."""

    python: str
    note: str = ""


def interpreter_for(pythons: tuple[str, ...], uv: str) -> CPython:
    """The CPython on which a release with wheels for `pythons` runs here.

    That is the one of `python_for`, downloaded if need be; where this is not possible, the newest other one that is on
    this machine. Raises `EnvironmentFailed`.
    """
    preferred = python_for(pythons)
    try:
        return CPython(find_python(preferred, uv))
    except EnvironmentFailed as error:
        for version in _newest_first({*pythons} - {preferred}):
            if path := _installed(version):
                return CPython(path, f"runs on CPython {version}, since CPython {preferred} was not found here")
        raise EnvironmentFailed(f"{error} The release has wheels for {', '.join(pythons)}; none is here.") from error


@functools.cache
def interpreter_here(pythons: tuple[str, ...]) -> str:
    """The path of the CPython on which such a release runs here, if none is downloaded; empty if there is none."""
    in_order = (python_for(pythons), *_newest_first(pythons))
    return next((path for version in in_order if (path := _installed(version))), "")


@functools.cache
def find_python(version: str, uv: str) -> str:
    """A path to CPython `version` (``3.12``), or the version itself if uv has just downloaded one.

    Looks at the running interpreter, at PATH, at pyenv's versions and at what uv manages, in this order. uv is asked
    last because it stops at the first pyenv shim of a version that is not activated. Raises `EnvironmentFailed`.
    """
    if path := _installed(version):
        return path
    if problem := _why_not_downloaded(version, uv):
        raise EnvironmentFailed(
            f"CPython {version} is needed and was not found: not on PATH, not among pyenv's versions, and uv could not "
            f"download it ({problem}). Install it, or put python{version} on PATH."
        )
    # By its path, if it is where uv usually puts it: the next run finds it there, and must find its environments too.
    return _installed(version) or version  # uv finds its own by the version


def _newest_first(versions: Iterable[str]) -> list[str]:
    return sorted(versions, key=Version, reverse=True)


def _installed(version: str) -> str:
    """A path to CPython `version` on this machine; empty if there is none."""
    return next((str(path) for path in _candidates(version) if _version_of(path) == version), "")


@functools.cache
def _why_not_downloaded(version: str, uv: str) -> str:
    """Let uv download a CPython. Why it could not, empty if it could; asked once, whatever the number of readers."""
    try:
        installing = subprocess.run(
            [uv, "python", "install", version], capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"not within {INSTALL_SECONDS:g} s"
    lines = [line.strip() for line in installing.stderr.splitlines() if line.strip()] or ["it gave no reason"]
    return lines[-1] if installing.returncode else ""


def _candidates(version: str) -> Iterator[Path]:
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        yield Path(getattr(sys, "_base_executable", sys.executable))
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder) / f"python{version}"
        if path.is_file():
            yield path
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)
    of_uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python")
    yield from sorted(of_uv.glob(f"cpython-{version}.*/bin/python{version}"), reverse=True)


@functools.cache  # readers of one run prefer the same few
def _version_of(python: Path) -> str | None:
    """The version that an interpreter says it has, as ``3.12``; None if it does not start, such as a shim of pyenv."""
    try:
        printed = subprocess.run([python, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
        version = Version(printed.split()[1].rstrip("+"))  # a build between releases calls itself 3.13.0+
    except (OSError, subprocess.SubprocessError, IndexError, InvalidVersion):
        return None
    return f"{version.major}.{version.minor}"
