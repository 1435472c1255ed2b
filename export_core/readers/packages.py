"""The packages of an environment: those installed here, and the versions to which a project holds its own.

Also what a reader can import, and this pytest-jaxexport as a requirement of another environment.
"""

from __future__ import annotations

import ast
import base64
import csv
import functools
import hashlib
import io
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from importlib.metadata import Distribution, packages_distributions
from pathlib import Path, PurePosixPath
from urllib.parse import urlparse
from urllib.request import url2pathname

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from export_core.base.atomic import write_whole
from export_core.base.json_text import decode_json
from export_core.readers.build import cache_folder
from export_core.readers.errors import EnvironmentFailed

_DECIDED = ("jax", "jaxlib", "pytest-jaxexport")  # A writer's environment has versions of its own of these packages.


def installed_packages() -> dict[str, str]:
    """Return the version of every package that this interpreter finds, by name, sorted."""
    versions: dict[str, str] = {}
    for package in metadata.distributions():
        # What an interrupted uninstallation left has no name. The first of a name is the one that is imported.
        if name := package.metadata["Name"]:
            versions.setdefault(canonicalize_name(name), package.version)
    return dict(sorted(versions.items()))


def constraints_of(path: Path) -> tuple[str, ...]:
    """Return the requirements with a version in a file such as `pip freeze` writes, for example ``scipy==1.14``.

    Packages with several versions, such as one for each Python, are left out, and so are jax and other packages whose
    version the writer decides. Raises `EnvironmentFailed` for a file that cannot be read.
    """
    try:
        versions = _required(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InvalidRequirement) as error:
        raise EnvironmentFailed(
            f"--constraints {path}: expected requirements, as `pip freeze` and `uv export` write them: {error}"
        ) from error
    held = {name: specifiers[0] for name, specifiers in sorted(versions.items()) if len(set(specifiers)) == 1}
    return tuple(f"{name}{specifier}" for name, specifier in held.items() if name not in _DECIDED)


def _required(text: str) -> dict[str, list[str]]:
    """Return the version specifiers of each package in the text of a requirements file.

    Raises `InvalidRequirement` if a line includes another file.
    """
    versions: dict[str, list[str]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        line = line.partition(" #")[0].partition(" --hash")[0].strip()
        if line.startswith(("-r", "-c", "--requirement", "--constraint")):
            raise InvalidRequirement(f"found {line!r}: name the file that has the versions")
        if not line or line.startswith(("#", "-")):  # also a folder
            continue
        requirement = Requirement(line)
        if requirement.specifier:
            versions.setdefault(canonicalize_name(requirement.name), []).append(str(requirement.specifier))
    return versions


# What jax and jaxlib bring along is among them. Names as of `canonicalize_name`.
_IN_EVERY_READER = frozenset(("jax", "jaxlib", "numpy", "scipy", "ml-dtypes", "opt-einsum", "flatbuffers"))
_REGISTER = ".register.py"
_GUARDS = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")


def import_problems(files: Mapping[str, bytes], packages: Sequence[str]) -> list[str]:
    """Return a sentence for each module that a golden's registration modules import and that readers do not have.

    Imports in functions count, since a reader may call them. Imports in a ``try`` that may fail, and those for types
    only, do not.

    Args:
        files: the content of the golden's files by name; a registration module is ``<name>.register.py``.
        packages: the policy's `reader_packages`.
    """
    problems = []
    registered: set[str] = set()
    for file in (file for file in files if file.endswith(_REGISTER)):
        name = file.removesuffix(_REGISTER)
        try:
            imported = {*imported_modules(ast.parse(files[file]))} - registered
            missing = [module for module in sorted(imported) if not _is_in_a_reader(module, packages)]
        except (SyntaxError, ValueError) as error:
            problems.append(f"register={name!r} is not a Python module: {error}.")
            continue
        problems += [_problem(name, module) for module in missing]
        registered.add(name)
    return problems


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    """Return, for each top-level module here, the names of the packages that provide it. Cached: it takes 0.1 s."""
    return packages_distributions()


def _is_in_a_reader(module: str, packages: Sequence[str]) -> bool:
    """Return whether every reader can import a module, from the standard library or from an installed package.

    `packages` are the requirements that every reader gets in addition to jax.
    """
    package = module.partition(".")[0]
    installed = _IN_EVERY_READER | {canonicalize_name(Requirement(text).name) for text in packages}
    names = map(canonicalize_name, (package, *_distributions().get(package, ())))
    return package in sys.stdlib_module_names or not installed.isdisjoint(names)


def packages_with(module: str) -> Sequence[str]:
    """Return the names of the packages installed here that provide a top-level module."""
    return _distributions().get(module, ())


def imported_modules(node: ast.AST) -> Iterator[str]:
    """Yield the full name of each module that code cannot do without; the name begins with a dot if relative.

    Imports for types only are left out, and those in a ``try`` that catches their failure.
    """
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, level=level):
            yield "." * level + (module or "")
        case ast.Try(handlers=handlers) if any(
            handler.type is None or any(name in ast.unparse(handler.type) for name in _GUARDS) for handler in handlers
        ):
            for statement in (*node.orelse, *node.finalbody):
                yield from imported_modules(statement)
        case ast.If(test=test) if ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for statement in node.orelse:
                yield from imported_modules(statement)
        case _:
            for part in ast.iter_child_nodes(node):
                yield from imported_modules(part)


def _problem(register: str, module: str) -> str:
    has = "jax, numpy, scipy, ml_dtypes, flatbuffers and the standard library"
    packages = _distributions().get(module.partition(".")[0], ())
    if module.startswith(".") or not packages:
        way = "Make the module self-contained: the golden has a copy of this module only"
    else:
        way = (
            f"Name its package in the policy, to install it for every reader (`reader_packages: [{packages[0]}]`, or "
            f"{packages[0]}=={metadata.version(packages[0])} for a single version), or do without it"
        )
    return f"register={register!r} imports {module}, and readers have {has}. {way}."


_OF_THE_INSTALLER = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json")
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a zip file: the same files must give the same bytes


class _Folder(msgspec.Struct, frozen=True):
    editable: bool = False


class _Origin(msgspec.Struct, frozen=True):
    """The origin of an installed package, from its direct_url.json."""

    url: str
    dir_info: _Folder = _Folder()


def make_own_requirement(package: Distribution | None = None) -> str:
    """Return a pip requirement that installs the pytest-jaxexport that runs here, from its folder or from a new wheel.

    The folder is used for an editable installation. A name and a version would not do: an index may have different
    code under them, or nothing. Raises `EnvironmentFailed` if a file of the installed package is missing.
    """
    package = package or metadata.distribution("pytest-jaxexport")
    # The form of direct_url.json is that of PEP 610.
    try:
        origin = decode_json((package.read_text("direct_url.json") or "null").encode(), _Origin | None)
    except msgspec.MsgspecError:
        origin = None
    if origin and origin.dir_info.editable:
        return f"-e{url2pathname(urlparse(origin.url).path)}"
    name = f"{package.metadata['Name'].replace('-', '_')}-{package.version}"
    try:
        files = dict(installed_files(package))
        if not files:
            raise OSError(f"{name} has no RECORD of its files")
        wheel = wheel_of(f"{name}.dist-info/RECORD", files)
    except OSError as error:
        raise EnvironmentFailed(
            f"backfill installs a copy of this pytest-jaxexport, and one of its files cannot be read: {error}. Install "
            "pytest-jaxexport again."
        ) from error
    path = cache_folder() / "wheels" / hashlib.sha256(wheel).hexdigest()[:16] / f"{name}-py3-none-any.whl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [wheel])
    return str(path)


def installed_files(package: Distribution) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an installed package that came with its wheel, as (path, present content).

    Bytecode and the installer's own files are left out, and command scripts, which name an interpreter.
    """
    # Not `package.files`, which leaves out what is lost since CPython 3.12.
    for name in sorted(row[0] for row in csv.reader((package.read_text("RECORD") or "").splitlines()) if row):
        file = PurePosixPath(name)
        is_info = file.parent.name.endswith(".dist-info")
        if ".." in file.parts or file.suffix == ".pyc" or (is_info and file.name in _OF_THE_INSTALLER):
            continue
        yield name, Path(str(package.locate_file(name))).read_bytes()


def wheel_of(record: str, files: dict[str, bytes]) -> bytes:
    """Return a wheel with these files, given by path, as bytes. The same files give the same bytes.

    `record` is the path at which the wheel gets its RECORD, in the form of PEP 427.
    """
    lines = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in files.items()
    ]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in (*files.items(), (record, "".join([*lines, f"{record},,\n"]).encode())):
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), data, zipfile.ZIP_DEFLATED)
    return content.getvalue()
