"""Where JAX's own goldens are: in the installed jax, in a wheel file of jax, or in the environment of a release."""

from __future__ import annotations

import importlib.util
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.utils import parse_wheel_filename

from export_core.base.untrusted import open_regular, read_regular
from export_core.goldens import GoldenError
from export_core.policy import Policy
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.installed import metadata_of
from export_core.readers.placement import Placement

FOLDER = "jax/_src/internal_test_util/export_back_compat_test_data"
"""In the package jax. Its tests, which compare the outputs, are in no wheel."""

_RELEASE = re.compile(r"\d+(\.\d+)+\w*")
_LARGEST_OF_ALL = 1 << 28
"""Bytes of all data files of a wheel. Those of jax 0.12.0.1 have 1.7 MB."""


@dataclass(frozen=True)
class JaxData:
    """The data files of one jax: its version, and the bytes of each by its path below their folder, in order."""

    jax: str
    files: tuple[tuple[str, bytes], ...]


def find_data(named: str, policy: Policy, notify: Callable[[str], None]) -> JaxData:
    """The data files of what ``--from-jax`` names: a wheel file, a release, or nothing for the installed jax.

    Nothing of jax is imported. Raises `ExportCompatError` where there is none, or no such files are in it.
    """
    if not named:
        spec = importlib.util.find_spec("jax")
        if spec is None or spec.origin is None:
            raise GoldenError("--from-jax: expected jax to be installed, found none. Name a wheel file or a release.")
        root = Path(spec.origin).parents[1]
        try:
            data = JaxData(version("jax"), tuple(_in_folder(root)))
        except PackageNotFoundError:
            raise GoldenError(f"{root}: expected the metadata of jax, found none. Name a wheel file.") from None
    elif _RELEASE.fullmatch(named) and not Path(named).exists():
        data = _of_release(named, policy, notify)
    else:
        data = _in_wheel(Path(named))
    if not data.files:
        raise GoldenError(f"--from-jax {named}: expected data files in {FOLDER}, found none in jax {data.jax}.")
    return data


def _of_release(named: str, policy: Policy, notify: Callable[[str], None]) -> JaxData:
    calendar = policy.calendar()
    release = calendar.release(named)
    with ReaderEnvironments.of(policy, calendar, notify=notify) as environments:
        folder = environments.build(Placement(release)).folder
        info = metadata_of(folder, "jax") if folder else None
        if info is None:
            raise GoldenError(f"{folder}: expected an environment with jax, found none. Delete it, and try again.")
        return JaxData(release.jax, tuple(_in_folder(info.parent)))


def _in_folder(root: Path) -> Iterator[tuple[str, bytes]]:
    folder = root / FOLDER
    for path in sorted(folder.rglob("*.py")):
        if path.name != "__init__.py":
            try:
                yield path.relative_to(folder).as_posix(), read_regular(path)
            except OSError as error:
                raise GoldenError(f"{path}: cannot read this data file: {error.strerror or error}.") from None


def _in_wheel(path: Path) -> JaxData:
    try:
        package, number, _, _ = parse_wheel_filename(path.name)
        if package != "jax":
            raise ValueError(f"it is one of {package}")
        with open_regular(path, follow=True) as file, zipfile.ZipFile(file) as archive:
            names = sorted(name for name in archive.namelist() if name.startswith(f"{FOLDER}/"))
            names = [name for name in names if name.endswith(".py") and not name.endswith("/__init__.py")]
            if sum(archive.getinfo(name).file_size for name in names) > _LARGEST_OF_ALL:
                raise ValueError(f"its data files have more than {_LARGEST_OF_ALL:,} bytes")
            return JaxData(str(number), tuple((name[len(FOLDER) + 1 :], archive.read(name)) for name in names))
    except Exception as error:  # zipfile and zlib raise about ten types on damaged bytes
        raise GoldenError(
            f"--from-jax {path}: expected a wheel of jax, such as jax-0.12.0.1-py3-none-any.whl, or a release: {error}."
        ) from None
