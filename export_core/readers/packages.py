"""The packages of an environment: which are installed here, and to which versions a project holds its own."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from export_core.readers.errors import EnvironmentFailed

_DECIDED = ("jax", "jaxlib", "pytest-jaxexport")
"""Packages of which a writer's environment decides the version itself."""


def installed_packages() -> dict[str, str]:
    """The version of every package that this interpreter finds, by name, sorted."""
    return {name: package.version for name, package in _installed().items()}


def installed_constraints() -> tuple[str, ...]:
    """The versions that are installed here, as constraints, but for packages from a folder, a file or a repository."""
    from_index = {name: package for name, package in _installed().items() if not package.read_text("direct_url.json")}
    return _constraints({name: [f"=={package.version}"] for name, package in from_index.items()})


def _installed() -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    for package in distributions():
        # What an interrupted uninstallation left has no name. The first of a name is the one that is imported.
        if name := package.metadata["Name"]:
            found.setdefault(canonicalize_name(name), package)
    return dict(sorted(found.items()))


def constraints_of(path: Path) -> tuple[str, ...]:
    """The versions that a file holds packages to, as constraints: a lock in TOML, or requirements as of `pip freeze`.

    A package that a lock has in several versions, one for each platform or Python, is not held. Raises
    `EnvironmentFailed` for a file that cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return _constraints(_locked(text) if path.suffix in (".lock", ".toml") else _required(text))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, InvalidRequirement) as error:
        raise EnvironmentFailed(
            f"--constraints {path}: expected a lock (uv.lock, poetry.lock, pylock.toml) or a file of requirements as "
            f"`pip freeze` writes it: {error}"
        ) from error


def _constraints(versions: dict[str, list[str]]) -> tuple[str, ...]:
    return tuple(
        f"{name}{specifiers[0]}"
        for name, specifiers in sorted(versions.items())
        if name not in _DECIDED and len(set(specifiers)) == 1
    )


def _locked(text: str) -> dict[str, list[str]]:
    """The packages of a lock: [[package]] of uv and poetry, [[packages]] of pylock.toml."""
    lock = tomllib.loads(text)
    versions: dict[str, list[str]] = {}
    for package in [*lock.get("package", ()), *lock.get("packages", ())]:
        source = package.get("source", {})
        # The project itself, and packages in its folders, have a version here that nobody can install.
        if "version" in package and not {"editable", "virtual", "directory"}.intersection(source):
            versions.setdefault(canonicalize_name(package["name"]), []).append(f"=={package['version']}")
    return versions


def _required(text: str) -> dict[str, list[str]]:
    versions: dict[str, list[str]] = {}
    for line in _requirement_lines(text):
        requirement = Requirement(line)
        if requirement.specifier:
            versions.setdefault(canonicalize_name(requirement.name), []).append(str(requirement.specifier))
    return versions


def _requirement_lines(text: str) -> Iterator[str]:
    """The requirements of a file without comments, hashes and folders.

    Raises `InvalidRequirement` for the name of another file.
    """
    for line in text.replace("\\\n", " ").splitlines():
        line = line.partition(" #")[0].partition(" --hash")[0].strip()
        if line.startswith(("-r", "-c", "--requirement", "--constraint")):
            raise InvalidRequirement(f"found {line!r}: name the file that has the versions")
        if line and not line.startswith(("#", "-")):
            yield line
