"""Keys for what a cell runs and for its outcome: digests of everything that decides them.

An outcome has no key if user code decides it too that is not self-contained.
"""

import ast
import functools
import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from export_core.base.feature import features
from export_core.base.processes import deciding_variables
from export_core.base.text import with_escaped_surrogates
from export_core.goldens import Golden, GoldenError, Manifest
from export_core.goldens.store import FOR_THE_EYE
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy.run_options import CellLimits
from export_core.readers.cell import Cell, register_modules, request_of
from export_core.readers.environment import Environment
from export_core.releases.runtimes import runtime_of

_OUTPUTS = Path("outputs")
_CORE = Path(__file__).parents[1]


class ExecutionKeys:
    """Digests that are equal for cells whose readers run equal content: artifact, inputs, calls, platform and mode."""

    def __init__(self, limits: CellLimits) -> None:
        self._limits = limits
        self._keys: dict[tuple[str, str, str, str, bool | None], str] = {}

    def of(self, cell: Cell) -> str:
        """Return a digest of everything that a cell runs in its reader; the expected outputs are not included."""
        # Which calls a cell makes depends on its runtime and on 64-bit types too, and on nothing else of its reader.
        name = (cell.golden.id, cell.platform, cell.mode, cell.reader.family, cell.reader.x64)
        if name not in self._keys:
            # A timeout does not change what the artifact does, and is never stored as a verdict.
            request = msgspec.to_builtins(request_of(cell, _OUTPUTS, replace(self._limits, timeout=0.0)))
            content = _with_content(request, str(cell.golden.folder.resolve()), cell.golden.manifest.files)
            self._keys[name] = _digest([cell.platform, cell.mode, content])
        return self._keys[name]


class OutcomeKeys:
    """Keys for the outcomes of cells: digests of everything that decides them."""

    def __init__(self, options: ReplayOptions) -> None:
        self._calendar = options.calendar
        # The reasons for allowed calls are left out, since they decide nothing. Forecasts, which are stored with
        # outcomes, depend on the releases.
        policy = options.policy
        self._policy = _digest([policy.tolerances, sorted(policy.allow), policy.releases])
        self._executions = ExecutionKeys(options.limits)
        self._expected: dict[str, str] = {}
        self._readers: dict[int, tuple[Environment, str]] = {}

    def of(self, cell: Cell, environment: Environment) -> str:
        """Return the key for a cell's outcome in an environment whose `content_hash` is known."""
        golden = cell.golden
        if golden.id not in self._expected:
            # Messages say what set a tolerance, such as a line of the policy: where that moves, they change.
            self._expected[golden.id] = _digest([expected_content(golden.manifest), golden.compared_as])
        if id(environment) not in self._readers:
            reader = environment.release
            jax = self._calendar.jax.get(reader.jax)  # its date decides which messages are refusals
            # Such as LD_LIBRARY_PATH, which decides the native libraries that a cell loads, and what the policy adds.
            inherited = _digest(deciding_variables(environment.variables))
            half = hashlib.sha256(environment.half.read_bytes()).hexdigest()  # a vendor's is not in this package
            built = str(jax.built if jax else reader.built)
            refusals = _digest(msgspec.to_builtins(runtime_of(reader.runtime).known_refusals)) if reader.runtime else ""
            decides = environment.content_hash, inherited, built, half, refusals, hash_of_code(), machine()
            # The environment is stored too: while it lives, no other object gets its id.
            self._readers[id(environment)] = environment, "\n".join(decides)
        of_reader = self._readers[id(environment)][1]
        parts = (self._executions.of(cell), self._expected[golden.id], of_reader, self._policy)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def expected_content(manifest: Manifest) -> str:
    """Return a digest of a golden's content and expectations, without its name, its packages and files for people."""
    files = {name: content for name, content in manifest.files.items() if name not in FOR_THE_EYE}
    return _digest(msgspec.structs.replace(manifest, case="", test="", name=None, files=files, packages={}))


def runs_code_outside_the_key(golden: Golden) -> bool:
    """Return whether replaying a golden runs code of the user whose behaviour the cache key does not determine.

    A user's comparator may use anything. A Python module that registers types is in the golden, and so in the key,
    which determines what it does only if the module is self-contained.
    """
    if ":" in golden.compared_as.comparison.compare:
        return True
    modules = [Path(path).name for _, path in register_modules(golden)]
    if not all(name in golden.manifest.files for name in modules):
        return True
    try:
        return not all(is_self_contained(golden.content(name)) for name in modules)
    except GoldenError:  # the cell reports it
        return True


@functools.cache
def hash_of_code() -> str:
    """Return a hash of this program's code and tables that run cells, here or on other machines, or decide outcomes."""
    # With executors: machines that exchange jobs must have the same `tool`. Without judge: every run judges its cells.
    executors = [f"features/{name}" for name, feature in features().items() if feature.executor]
    names = "artifact", "base", "goldens", "knowledge", "matrix", "numbers", "policy", "readers", "releases", *executors
    patterns = "*.py", "*.yaml", "data/*.*"
    paths = {path for name in (*names, "runtimes") for pattern in patterns for path in (_CORE / name).rglob(pattern)}
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@functools.cache
def machine() -> str:
    """Return the properties of this machine that can change numbers, as text for keys: machines may share a cache."""
    processor = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = [platform.processor()]
    kinds = sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    comparing = (f"{name} {version(name)}" for name in ("numpy", "ml_dtypes"))
    # XLA divides work, and with it sums, by the number of processors.
    return "\n".join((sys.platform, processor, str(os.cpu_count()), *comparing, *kinds))


def tool() -> str:
    """Return the version of this program with the start of the hash of its code, such as ``1.0 (0123456789ab)``."""
    return f"{version('pytest-jaxexport')} ({hash_of_code()[:12]})"


def _with_content(value: Any, folder: str, files: Mapping[str, str]) -> Any:
    """Return a copy of a nested value with each file's path below `folder` replaced by the file's hash in `files`."""
    if isinstance(value, str):
        name = os.path.relpath(value, folder) if value.startswith(folder + os.sep) else ""
        # A file that no manifest lists is its own content, and shared with nobody.
        return f"sha256:{files[name]}" if name in files else value
    if isinstance(value, dict):
        return {key: _with_content(item, folder, files) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_content(item, folder, files) for item in value]
    return value


def _digest(value: Any) -> str:
    # Not as JSON, which writes infinity and NaN as null: they would share a key with a value that is not set.
    try:
        data = msgspec.msgpack.encode(value, order="deterministic")
    except UnicodeEncodeError:  # the name of a file that is not UTF-8
        data = msgspec.msgpack.encode(with_escaped_surrogates(msgspec.to_builtins(value)), order="deterministic")
    return hashlib.sha256(data).hexdigest()


_IMPORTS = """
__future__ abc collections contextlib copy dataclasses enum functools inspect itertools jax json math ml_dtypes numbers
numpy operator re string types typing
"""
IMPORTS = frozenset(_IMPORTS.split())
"""The imports of a self-contained Python module: packages whose versions are in the key, and standard modules that read
nothing."""
_REACHES = """
DataSource __builtins__ __file__ __import__ __loader__ __spec__ breakpoint compilation_cache ctypes ctypeslib
datetime64 environ eval exec fromfile fromregex genfromtxt getenv import_module io load load_library loadtxt memmap open
open_memmap os pathlib random recfromcsv recfromtxt subprocess sys time
"""
REACHES = frozenset(_REACHES.split())
"""Names of functions and modules that read from outside: files, environment variables, the clock, native libraries."""


def is_self_contained(source: bytes) -> bool:
    """Return whether the behaviour of a Python module depends on its source alone.

    It may import only `IMPORTS`, and use no name in `REACHES`, such as of functions that read files or the clock. This
    check does not detect code that evades it on purpose.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: a source that nests too deep
        return False
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                imported = [alias.name.partition(".")[0] for alias in names]
                used = [part for alias in names for part in alias.name.split(".")]
            case ast.ImportFrom(module=module, names=names, level=level):
                imported = ["." if level else (module or "").partition(".")[0]]
                used = [alias.name for alias in names] + (module or "").split(".")
            case ast.Name(id=name) | ast.Attribute(attr=name):
                imported, used = [], [name]
            case _:
                continue
        if not IMPORTS.issuperset(imported) or REACHES.intersection(used):
            return False
    return True
