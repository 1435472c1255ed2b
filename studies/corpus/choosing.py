"""The choice of example programs by the tags in programs.yaml, by which several studies use the same programs."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
INDEX = Path(__file__).with_name("programs.yaml")
EXPORTS_RECORDS = "studies/corpus/programs/planted_programs.py::test_program"


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Programs that are chosen and written together: marked tests, or records that a single marked test exports."""

    tags: frozenset[str]
    """The purposes of the programs, in the words that programs.yaml explains."""
    paths: tuple[str, ...]
    """Folders, files and single tests of files, from the root of the repository."""
    packages: tuple[str, ...] = ()
    """The packages that must be installed in addition to jax."""
    since: str = "0.4.30"
    """The oldest jaxlib that writes the goldens of the programs."""
    writers: tuple[str, ...] = ()
    """The releases that write the goldens, whichever a session asks for; if empty, the session decides."""
    variables: dict[str, str] = {}
    """Environment variables of the process that writes."""
    name: str = ""

    @property
    def tests(self) -> tuple[str, ...]:
        """The pytest ids of the programs."""
        return tuple(test for path in self.paths for test in programs_at(path))


@functools.cache
def groups() -> tuple[Group, ...]:
    """Return all groups of programs.yaml, in its order."""
    listed = msgspec.yaml.decode(INDEX.read_bytes(), type=dict[str, Group])
    return tuple(msgspec.structs.replace(group, name=name) for name, group in listed.items())


def choose(*tags: str) -> list[Group]:
    """Return the groups of programs that have all of these tags.

    Raises:
        ValueError: no group has all of these tags.
    """
    if chosen := [group for group in groups() if group.tags.issuperset(tags)]:
        return chosen
    known = sorted({tag for group in groups() for tag in group.tags})
    raise ValueError(f"expected tags of {INDEX.name} that a group has ({', '.join(known)}), found {', '.join(tags)}")


@functools.cache
def programs_at(path: str) -> tuple[str, ...]:
    """Return the pytest ids of the programs at a path of programs.yaml, in order. Files are parsed, not imported."""
    if "::" in path:
        return (path,)
    if (ROOT / path).is_dir():
        files = sorted((ROOT / path).glob("[!_]*.py"))
        return tuple(test for file in files for test in programs_at(file.relative_to(ROOT).as_posix()))
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    tests = [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    if tests:
        return tuple(f"{path}::{test}" for test in tests)
    return tuple(f"{EXPORTS_RECORDS}[{name}]" for node in body for name in _records(node))


def case_of(test: str) -> str:
    """Return the id of a program's case, which is the name of the folder of its goldens, from its pytest id."""
    return test.replace(".py::", ".").replace("/", ".")


def _records(node: ast.stmt) -> list[str]:
    """Return the names of the records if a statement is ``PROGRAMS = (Program(function, …), …)``, else an empty list.

    The name of a record is that of its function.
    """
    is_list = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PROGRAMS"
    if not (is_list and isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)):
        return []
    return [ast.unparse(call.args[0]).strip("_") for call in node.value.elts if isinstance(call, ast.Call)]
