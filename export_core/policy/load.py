"""Finding and reading the policy of a project. Every error names file, line and key."""

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from export_core.base.checked_arguments import path_of
from export_core.policy.entries import ExtraReleases
from export_core.policy.feature_keys import Key
from export_core.policy.model import LOCATED, Policy
from export_core.policy.schema_errors import schema_problems
from export_core.policy.source import PolicyError, PolicySource, has_table, read_source
from export_core.policy.validation import problems, problems_of_releases
from export_core.releases import JaxlibRelease, JaxRelease, load_calendar
from export_core.releases.project_releases import FILE as RELEASES
from export_core.releases.project_releases import contradictions, unreleased_minimums

FILE = "export_compat.yaml"
PROJECT_FILE = "pyproject.toml"


def find_policy(folder: str | os.PathLike[str], named: str | os.PathLike[str] | None = None) -> Policy:
    """Return the policy in the file `named`, else in `folder`, else the default policy; with the releases beside it."""
    folder = path_of(folder, "find_policy", "a project's folder", PolicyError)
    file = policy_file(folder, None if named is None else path_of(named, "policy", "a policy file", PolicyError))
    return load_policy(file) if file else _with_releases(Policy(), None, folder / RELEASES)


def find_locations(policy: Policy, named: str | os.PathLike[str] | None = None) -> Callable[[Key], str]:
    """Return a function that returns the location of a key in the policy file, such as ``export_compat.yaml:12``.

    The location is "" if there is no file, or if the key has another value in the file than in `policy`.

    Args:
        policy: The policy whose keys are looked for.
        named: The policy file; None for that of the working folder.
    """

    @functools.cache  # warnings are rare, and the file is read again only for one
    def written() -> tuple[Policy, PolicySource] | None:
        try:
            file = policy_file(Path(), named)
            return read_policy(file) if file else None
        except PolicyError:  # `policy` is not from this file, or the file was changed since
            return None

    def location(key: Key) -> str:
        read = written()
        table = str(key[0])
        if read is None or getattr(read[0].without_locations(), table) != getattr(policy.without_locations(), table):
            return ""
        return read[1].location(key)

    return location


def releases_file(folder: Path, named: str | None = None) -> Path:
    """Return the path of the file of releases beside a project's policy, whether or not it exists.

    `named` is the policy file; if it is None, the policy is in `folder`.
    """
    return (Path(named).parent if named is not None else folder) / RELEASES


def _with_releases(policy: Policy, source: PolicySource | None, path: Path) -> Policy:
    """Return the policy with the releases in the file `path` added to those of the policy itself.

    A release that the file says was withdrawn stays withdrawn, whatever else the policy says of it.
    Raises `PolicyError` for a release with different build dates in the two files.
    """
    if not path.exists():
        return policy
    added, written = read_releases(path), policy.releases
    wrong: list[tuple[Key, str]] = []
    for package in ("jaxlib", "jax"):
        here, there = getattr(written, package), getattr(added, package)
        for version in here.keys() & there.keys():
            if (found := here[version].built) != (expected := there[version].built):
                problem = f"expected {expected}, as in {path}, found {found}. Keep one of the two lines."
                wrong.append((("releases", package, version, "built"), problem))
    if source and wrong:
        raise source.error(wrong)
    # A person wrote the policy; `jaxexport releases refresh` writes the other file.
    jaxlib, jax = _merged(added.jaxlib, written.jaxlib), _merged(added.jax, written.jax)
    releases = msgspec.structs.replace(written, jaxlib=jaxlib, jax=jax)
    return msgspec.structs.replace(policy, releases=releases)


_Entry = TypeVar("_Entry", JaxlibRelease, JaxRelease)


def _merged(added: Mapping[str, _Entry], written: Mapping[str, _Entry]) -> dict[str, _Entry]:
    """Return the releases of both; those of `written` replace others, and stay withdrawn if `added` says so."""
    withdrawn = {
        version: msgspec.structs.replace(entry, yanked=added[version].yanked)
        for version, entry in written.items()
        if version in added and not entry.yanked
    }
    return {**added, **written, **withdrawn}


def read_releases(path: Path) -> ExtraReleases:
    """Return the releases in a file that has the form of the key `releases` of a policy.

    The file may also mark releases as withdrawn. Raises `PolicyError`, which names file, line and release, if an entry
    cannot be right.
    """
    read = read_source(path, "file of releases", "releases refresh")
    lines = {("releases", *key): line for key, line in read.lines.items()}
    source = PolicySource(path, {"releases": read.data or {}}, lines)
    releases = _converted(source).releases
    pairs = contradictions(load_calendar(), releases.jaxlib, releases.jax)
    wrong: list[tuple[Key, str]] = [(("releases", package, version), problem) for package, version, problem in pairs]
    if releases.runtimes:
        problem = "expected only releases of jaxlib and jax. Move those of runtimes to `releases` in the policy."
        wrong.append((("releases", "runtimes"), problem))
    if wrong:
        raise source.error(wrong)
    return releases


def policy_file(folder: Path, named: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the policy file of a project: `named`, else the YAML file or the pyproject.toml in `folder`; None if none.

    Raises `PolicyError` if `folder` has both a YAML file and a table in its pyproject.toml.
    """
    if named is not None:
        return Path(named)
    standalone, project = folder / FILE, folder / PROJECT_FILE
    # A policy that nobody reads would leave every key at its default, and the run green.
    misnamed = standalone.with_suffix(".yml")
    if misnamed.exists():
        raise PolicyError(f"{misnamed}: expected the policy in {FILE}. Rename the file.")
    in_project = has_table(project)
    # A dead link is a policy that cannot be read, not a project without one.
    if not (standalone.exists() or standalone.is_symlink()):
        return project if in_project else None
    if in_project:
        raise PolicyError(
            f"{read_source(project).location(())}: expected one policy, found two: this table and {standalone}. Keep "
            "one of the two."
        )
    return standalone


def load_policy(file: str | os.PathLike[str]) -> Policy:
    """Return the policy in a file, with the releases beside it.

    Raises `PolicyError`, which names file, line, key and what was expected.
    """
    file = path_of(file, "load_policy", "a policy file", PolicyError)
    policy, source = read_policy(file)
    policy = _with_releases(policy, source, file.with_name(RELEASES))
    # Only now: a deployment target may have a release that the file beside the policy adds.
    if added := policy.releases.jax:
        known = load_calendar().jaxlib.keys() | policy.releases.jaxlib.keys()
        if unreleased := [(("releases", "jax", jax), why) for jax, why in unreleased_minimums(known, added)]:
            raise source.error(unreleased)
    if policy.deployed and (wrong := list(problems_of_releases(policy.deployed, policy.calendar()))):
        raise source.error(wrong)
    return policy


def read_policy(file: Path) -> tuple[Policy, PolicySource]:
    """Return the policy in a file without the releases beside it, and its source with the line of each key.

    Raises `PolicyError` with a line for each problem.
    """
    source = read_source(file)
    policy = _converted(source)
    if any(entry.location for table in LOCATED for entry in getattr(policy, table)):
        # The JSON form of a policy has this field, and msgspec reads it; a file must not have it.
        raise _schema_error(source, "expected no key `place` in an entry, which this tool sets itself. Delete it.")
    # After the types, since these rules compare dates and numbers.
    if wrong := list(problems(policy)):
        raise source.error(wrong)
    return policy.located(source.location), source


def _converted(source: PolicySource) -> Policy:
    try:
        # A file of comments only has the data None: every key has its default.
        return msgspec.convert(source.data, Policy | None) or Policy()
    except msgspec.ValidationError as error:
        raise _schema_error(source, f"{error}.") from None


def _schema_error(source: PolicySource, otherwise: str) -> PolicyError:
    return source.error(schema_problems(source.data) or [((), otherwise)])
