"""Where is the policy of a project, and what does it say? Every error names file, line and key."""

from __future__ import annotations

import copy
import datetime
import difflib
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from export_core.policy.errors import PolicyError
from export_core.policy.model import ExtraReleases, Policy
from export_core.policy.source import Key, Source, has_table, read_source
from export_core.policy.validation import problems
from export_core.releases import load_calendar
from export_core.releases.project_releases import FILE as RELEASES
from export_core.releases.project_releases import additions, read_releases

FILE = "export_compat.yaml"
PROJECT_FILE = "pyproject.toml"
_PLACED = ("known_failures", "quirks")


def find_policy(folder: Path, named: str | None = None) -> Policy:
    """The policy of a project: the named file, else that in `folder`, else the defaults; with the releases that it keeps."""
    file = policy_file(folder, named)
    return load_policy(file) if file else _with_releases(Policy(), folder / RELEASES)


def releases_file(folder: Path, named: str | None = None) -> Path:
    """Where a project keeps releases, whether or not it does: beside its policy."""
    return (Path(named).parent if named is not None else folder) / RELEASES


def _with_releases(policy: Policy, path: Path) -> Policy:
    """The policy with the releases of this file. What the policy says itself comes first."""
    if not path.exists():
        return policy
    added = additions(load_calendar(), read_releases(path), path)
    own = policy.releases
    releases = ExtraReleases({**added.jaxlib, **own.jaxlib}, {**added.jax, **own.jax})
    return msgspec.structs.replace(policy, releases=releases)


def policy_file(folder: Path, named: str | None = None) -> Path | None:
    """The named file, else export_compat.yaml or a pyproject.toml with [tool.jaxexport] in `folder`. Raises `PolicyError` for both."""
    if named is not None:
        return Path(named)
    own, project = folder / FILE, folder / PROJECT_FILE
    misnamed = own.with_suffix(".yml")
    if misnamed.exists():
        raise PolicyError(f"{misnamed}: expected the policy in {FILE}. Rename the file.")
    in_project = has_table(project)
    if not (own.exists() or own.is_symlink()):
        return project if in_project else None
    if in_project:
        raise PolicyError(
            f"{read_source(project).place(())}: expected one policy, found two: this table and {own}. Keep one of them."
        )
    return own


def load_policy(file: Path) -> Policy:
    """Read a policy file, and the releases that the project keeps in export_releases.yaml beside it.

    Raises `PolicyError` naming the file, the line, the key and what was expected.
    """
    return _with_releases(read_policy(file)[0], file.with_name(RELEASES))


def read_policy(file: Path) -> tuple[Policy, Source]:
    """A policy, and where each of its keys stands."""
    source = read_source(file)
    try:
        policy = msgspec.convert(source.data, Policy | None) or Policy()
    except msgspec.ValidationError as error:
        raise _told(source, error) from None
    for name in _PLACED:
        for number, entry in enumerate(getattr(policy, name)):
            if entry.place:
                raise source.error(
                    (name, number, "place"), f"unknown key.{_near('place', type(entry).__struct_fields__)}"
                )
    for key, problem in problems(policy):
        raise source.error(key, problem)
    placed = {
        name: tuple(
            msgspec.structs.replace(entry, place=source.place((name, number)))
            for number, entry in enumerate(getattr(policy, name))
        )
        for name in _PLACED
    }
    return msgspec.structs.replace(policy, **placed), source


_AT = re.compile(r"(?P<said>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
_WORDS = {
    "object": "a table",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
_PART = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<number>\d+)\]|\[\.\.\.\]")


def _told(source: Source, error: msgspec.ValidationError) -> PolicyError:
    """What msgspec says, with the line of the key that it means, what was found there and what may be."""
    match = _AT.fullmatch(str(error))
    said, path = (match["said"], match["path"] or "") if match else (str(error), "")
    key = _spelled_out(source.data, path, str(error))
    kinds = _kinds(inspect.type_info(Policy), key)
    fields = [field.encode_name for kind in kinds if isinstance(kind, inspect.StructType) for field in kind.fields]
    known = [name for name in fields if name != "place"]
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", said):
        return source.error((*key, unknown[1]), f"unknown key.{_near(unknown[1], known)}")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", said):
        return source.error(key, f"expected the key `{missing[1]}`, found none.")
    found = _at(source.data, key)
    literals = [str(value) for kind in kinds if isinstance(kind, inspect.LiteralType) for value in kind.values]
    if literals and isinstance(found, str):
        near = difflib.get_close_matches(found, literals, n=1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        return source.error(key, f"expected {_one_of(literals)}, found {found!r}.{hint}")
    if key[:1] == ("windows",) and len(key) > 1:
        return source.error(key, f"expected days such as 180 or `180 days`, found {_short(found)}.")
    if "Expected `str`" in said and isinstance(found, (int, float, datetime.date)):
        return source.error(key, f"expected text, found {found}: put it into quotes, as it is meant.")
    if any(isinstance(kind, inspect.DateType) for kind in kinds):
        return source.error(key, f"expected a day such as 2026-10-25, found {_short(found)}.")
    wanted = re.match(r"Expected `([^`]*)`, got", said)
    kind = " or ".join(_WORDS.get(word, word) for word in wanted[1].split(" | ") if word != "null") if wanted else ""
    return source.error(key, f"{f'expected {kind}' if kind else said}, found {_short(found)}.")


def _spelled_out(data: Any, path: str, error: str) -> Key:
    """The place that msgspec means: of the entries of a table that it leaves open, ``[...]``, the one that says the same alone."""
    key: Key = ()
    data = copy.deepcopy(data)
    for part in _PART.finditer(path):
        if part["name"] or part["number"]:
            key = (*key, part["name"] or int(part["number"]))
            continue
        table = _at(data, key)
        entries = dict(table)
        for name, value in entries.items():
            table.clear()
            table[name] = value
            try:
                msgspec.convert(data, Policy)
            except msgspec.ValidationError as again:
                if str(again) == error:
                    key = (*key, name)
                    break
    return key


def _at(data: Any, key: Key) -> Any:
    for part in key:
        data = data[part]
    return data


def _kinds(kind: inspect.Type, key: Key) -> list[inspect.Type]:
    """Which types a value may have at a place."""
    if isinstance(kind, inspect.Metadata):
        return _kinds(kind.type, key)
    if isinstance(kind, inspect.UnionType):
        return [found for each in kind.types for found in _kinds(each, key)]
    if not key:
        return [kind]
    if isinstance(kind, inspect.StructType):
        return [found for field in kind.fields if field.encode_name == key[0] for found in _kinds(field.type, key[1:])]
    if isinstance(kind, inspect.DictType):
        return _kinds(kind.value_type, key[1:])
    if isinstance(kind, inspect.VarTupleType):
        return _kinds(kind.item_type, key[1:])
    return []


def _near(name: str, known: list[str] | tuple[str, ...]) -> str:
    known = [each for each in known if each != "place"]
    near = difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1)
    return f" Did you mean `{near[0]}`?" if near else f" Known keys here: {', '.join(known)}."


def _one_of(values: list[str]) -> str:
    return f"one of {', '.join(sorted(values))}" if len(values) > 1 else f"`{values[0]}`"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
