"""A reader of JAX's own goldens in its wheel: data files in Python, read as untrusted literals and never executed."""

import ast
import datetime
import importlib.util
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from packaging.utils import parse_wheel_filename

from export_core.base.untrusted import open_regular, read_regular
from export_core.goldens import GoldenError
from export_core.goldens.arrays import PLAIN
from export_core.policy import Policy
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.installed import metadata_of
from export_core.readers.placement import Placement

LARGEST = 1 << 24  # The most bytes of a data file. The largest of jax 0.12.0.1 has 139 kB.

WHOLE = "exported_serialized"  # The field of a golden that is a whole `Exported`, without inputs and outputs.

_MARKS = {"testdata_version", WHOLE}  # A ``dict(...)`` with one of these keywords is a golden.

_NUMPY = ("np", "numpy")
_VALUES = {"inf": np.inf, "nan": np.nan}


@dataclass(frozen=True)
class DataRecord:
    """The ``dict(...)`` of a golden in a data file, with its fields.

    `name` is made of file, variable and keys; `place` is the file and the line.
    """

    name: str
    place: str
    fields: Mapping[str, Any]

    def get(self, key: str, *types: type) -> Any:
        """Return the value of a field.

        Raises:
            DataError: the field is missing, or its value has none of these types.
        """
        value = self.fields.get(key)
        if type(value) not in types:
            expected = " or ".join(kind.__name__ for kind in types)
            found = type(value).__name__ if key in self.fields else "no such field"
            raise DataError(f"{key}: expected {expected}, found {found}")
        return value


class DataError(GoldenError):
    """An error: a data file has something that no data file of JAX has.

    `line` is the line of what was found, or 0 for the first line of the statement.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def read_data(name: str, source: bytes) -> Iterator[DataRecord | DataError]:
    """Yield the goldens in a data file, and an error for each statement that cannot be read.

    Args:
        name: the path of the file below the folder of data files, such as ``pallas/mosaic_matmul.py``.
        source: the bytes of the file.
    """
    try:
        if len(source) > LARGEST:
            raise ValueError(f"expected a file of at most {LARGEST:,} bytes, found {len(source):,}")
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        yield DataError(f"{name}:{getattr(error, 'lineno', None) or 1}: not a file of Python literals: {error}")
        return
    reader = _Reader()
    for statement in statements:
        try:
            reader.execute(statement)
        except (ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
            yield DataError(f"{name}:{statement.lineno}: {error or type(error).__name__}")
        except DataError as error:
            yield DataError(f"{name}:{error.line or statement.lineno}: {error}")
    for golden in _goldens(reader.values, name.removesuffix(".py").replace("/", ".")):
        yield replace(golden, place=f"{name}:{golden.place}")


def _goldens(value: Any, name: str) -> Iterator[DataRecord]:
    """Yield the goldens in a value, also those inside dicts, lists and tuples, each with its name."""
    if isinstance(value, DataRecord):
        yield replace(value, name=name)
    elif isinstance(value, (dict, list, tuple)):
        for key, inside in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _goldens(inside, f"{name}.{key}")


@dataclass
class _Reader(ast.NodeTransformer):
    """A reader of statements that assign literals.

    `values` has the value of each variable. `types` has aliases of NumPy's names, such as ``float32 = np.float32``.
    """

    values: dict[str, Any] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)

    def execute(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                return
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() as value):
                self.types[name] = self.of_numpy(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.assign(self.values, name, value)
            case ast.Assign(targets=[ast.Subscript(value=table, slice=key)], value=value):
                self.assign(self.table(table), str(self.value(key)), value)
            case _:
                raise DataError("expected an assignment of literals, found another statement", statement.lineno)

    def assign(self, table: dict[str, Any], key: str, value: ast.expr) -> None:
        if key in table:  # a second value would replace the first
            raise DataError(f"expected a new name, found {key} a second time", value.lineno)
        table[key] = self.value(value)

    def table(self, node: ast.expr) -> dict[str, Any]:
        """Return the dict that an expression stands for: a variable of this file, or a dict inside one."""
        match node:
            case ast.Name(id=name):
                table = self.values.get(name)
            case ast.Subscript(value=outer, slice=key):
                table = self.table(outer).get(str(self.value(key)))
            case _:
                table = None
        if not isinstance(table, dict):
            raise DataError(f"expected a dict of this file, found {ast.unparse(node)[:80]}", node.lineno)
        return table

    def of_numpy(self, node: ast.expr) -> str:
        """Return the name in NumPy that an expression stands for, such as `float32` for `np.float32`."""
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in _NUMPY:
                return name
            case ast.Name(id=name):
                return self.types.get(name, name)
        raise DataError(f"expected a name of NumPy, found {ast.unparse(node)[:80]}", node.lineno)

    def value(self, node: ast.expr) -> Any:
        """Return the value of a literal, which may also contain `inf` and `nan` of NumPy and some calls."""
        literal = self.visit(node)
        try:
            return ast.literal_eval(literal)
        except ValueError:
            raise DataError(f"expected a literal, found {ast.unparse(node)[:80]}", node.lineno) from None

    def visit_Name(self, node: ast.expr) -> ast.expr:
        name = self.of_numpy(node)
        return ast.copy_location(ast.Constant(_VALUES[name]), node) if name in _VALUES else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self.visit_Name(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not all(word.arg for word in node.keywords):
            return node
        words = {word.arg or "": word.value for word in node.keywords}
        return ast.copy_location(ast.Constant(self.call(node.func, node.args, words, node.lineno)), node)

    def call(self, function: ast.expr, items: list[ast.expr], words: dict[str, ast.expr], line: int) -> Any:
        """Return the value of a call, if it is one of the few that are allowed.

        Args:
            function: the expression that is called.
            items: its positional arguments.
            words: its keyword arguments.
            line: the line of the call.
        """
        made: Callable[..., Any]
        match ast.unparse(function):
            case "dict" if not items:
                fields = {name: self.value(value) for name, value in words.items()}
                return DataRecord("", str(line), fields) if _MARKS & fields.keys() else fields
            case "datetime.date" if not words:
                made = datetime.date
            case "bytearray" if not words and len(items) == 1 and isinstance(items[0], ast.Constant):
                made = bytearray
            case _ if self.of_numpy(function) == "array" and len(items) == 1 and words.keys() <= {"dtype"}:
                dtype = self.of_numpy(words["dtype"]) if words else None
                if dtype is not None and dtype not in PLAIN:
                    raise DataError(f"expected a dtype of NumPy, found {dtype}", words["dtype"].lineno)
                array = np.array(self.value(items[0]), dtype)
                if array.dtype.name not in PLAIN:
                    raise DataError(f"expected an array of numbers, found one of {array.dtype.name}", line)
                return array
            case _:
                raise DataError(f"expected a literal, found a call of {ast.unparse(function)[:80]}", line)
        values = [self.value(item) for item in items]
        if made is bytearray and type(values[0]) is not bytes:  # bytearray(10**12) would be a terabyte
            raise DataError("bytearray: expected bytes", line)
        return made(*values)


FOLDER = "jax/_src/internal_test_util/export_back_compat_test_data"
"""The folder of data files in the package jax. JAX's tests, which compare outputs with the data, are in no wheel."""

_RELEASE = re.compile(r"\d+(\.\d+)+\w*")
_LARGEST_OF_ALL = 1 << 28  # The most bytes of all data files of a wheel. Those of jax 0.12.0.1 have 1.7 MB.


class JaxData(NamedTuple):
    """The data files of a release of jax: its version, and the path below `FOLDER` and the bytes of each file."""

    jax: str
    files: tuple[tuple[str, bytes], ...]


def find_data(named: str, policy: Policy, notify: Callable[[str], None]) -> JaxData:
    """Return the data files of a jax, without importing it.

    Args:
        named: the path of a wheel file of jax, or a release, or "" for the installed jax.
        policy: the policy by which the environment of a release is built, if it is missing.
        notify: prints progress.

    Raises:
        ExportCompatError: there is no such jax, or it has no data files.
    """
    if not named:
        spec = importlib.util.find_spec("jax")
        if spec is None or spec.origin is None:
            raise GoldenError("expected jax to be installed, found none. Name a wheel file or a release.")
        root = Path(spec.origin).parents[1]
        try:
            data = JaxData(version("jax"), _in_folder(root))
        except PackageNotFoundError:
            raise GoldenError(f"{root}: expected the metadata of jax, found none. Name a wheel file.") from None
    elif _RELEASE.fullmatch(named) and not Path(named).exists():
        calendar = policy.calendar()
        release = calendar.release(named)
        with ReaderEnvironments.of(policy, calendar, notify=notify) as environments:
            folder = environments.build(Placement(release)).folder
            info = metadata_of(folder, "jax") if folder else None
            if info is None:
                raise GoldenError(f"{folder}: expected an environment with jax, found none. Delete it, and try again.")
            data = JaxData(release.jax, _in_folder(info.parent))
    else:
        data = _in_wheel(Path(named))
    if not data.files:
        raise GoldenError(f"{named or 'jax'}: expected data files in {FOLDER}, found none in jax {data.jax}.")
    return data


def _in_folder(root: Path) -> tuple[tuple[str, bytes], ...]:
    folder = root / FOLDER
    files = []
    for path in sorted(folder.rglob("*.py")):
        try:
            if path.name != "__init__.py":
                files.append((path.relative_to(folder).as_posix(), read_regular(path)))
        except OSError as error:
            raise GoldenError(f"{path}: cannot read this data file: {error.strerror or error}.") from None
    return tuple(files)


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
            f"{path}: expected a wheel of jax, such as jax-0.12.0.1-py3-none-any.whl, or a release: {error}."
        ) from None
