"""The jax of one release on the jaxlib of another, which were not released for each other: to see which is to blame.

The jax is that of an installed release, packed again without its two demands on jaxlib: the requirement in its
metadata, and the check when it is imported. Nothing else of it is changed.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import Distribution
from pathlib import Path

from export_core.base.atomic import write_whole
from export_core.matrix import Cell, Outcome
from export_core.matrix.cached_replay import replay_unknown
from export_core.matrix.outcome_cache import OutcomeCache
from export_core.matrix.replay import no_notes, replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.readers.build import Built, EnvironmentLocks, Recipe, build, cache_folder, find_built, uv_command
from export_core.readers.environment import Environment, ReaderEnvironments, cell_variables, requirements
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.installed import metadata_of
from export_core.readers.interpreters import CPython, interpreter_for
from export_core.readers.packages import installed_files, wheel_of
from export_core.readers.placement import Placement
from export_core.releases import Release

_CHECKED = "jax/_src/lib/__init__.py"
_FUNCTION = "check_jaxlib_version"
_UNCHECKED = """\
def check_jaxlib_version(jax_version, jaxlib_version, minimum_jaxlib_version):
  import re
  return tuple(int(x) for x in re.match(r"[0-9]+(?:[.][0-9]+)*", jaxlib_version).group(0).split("."))
"""
_IMPORT = """
import json
try:
    import importlib.util, jax, jaxlib.version, numpy, flatbuffers
    importlib.import_module("jax.export" if importlib.util.find_spec("jax.export") else "jax.experimental.export")
    problem = ""
except Exception as error:
    problem = f"{type(error).__name__}: {error}".replace(f" ({getattr(error, 'path', None)})", "")
print(json.dumps(problem))
"""


def replay_pair(
    cell: Cell, jax_of: Release, jaxlib_of: Release, options: ReplayOptions, notify: Callable[[str], None] = no_notes
) -> Outcome:
    """Run a cell with the jax of one release on the jaxlib of another.

    The outcome of a pair that cannot be installed or imported is not_run, with the reason as its message.
    """
    stopping = threading.Event()
    run = functools.partial(replay, options=options, notify=notify, stopping=stopping)
    with (
        _PairEnvironments(jax_of, jaxlib_of, options, stopping, notify) as environments,
        OutcomeCache(cache_folder(), notify) as cache,
    ):
        (outcome,) = replay_unknown([cell], cache, environments, options, run, notify)
    return outcome


class _PairEnvironments:
    """The environment of one pair, locked for use until the end of its ``with``."""

    def __init__(
        self,
        jax_of: Release,
        jaxlib_of: Release,
        options: ReplayOptions,
        stopping: threading.Event,
        notify: Callable[[str], None],
    ) -> None:
        self._jax_of, self._jaxlib_of = jax_of, jaxlib_of
        self._options = options
        # When the replay ends early, so does the environment that is being built for it.
        self._stopping = stopping
        self._notify = notify
        self._locks = EnvironmentLocks()
        packages = options.policy.reader_packages
        self._own = ReaderEnvironments(
            options.calendar, options.sources, packages=packages, stopping=stopping, notify=notify
        )

    def __enter__(self) -> _PairEnvironments:
        return self

    def __exit__(self, *exception: object) -> None:
        self._own.__exit__(*exception)
        self._locks.__exit__(*exception)

    def find(self, placement: Placement) -> Environment | None:
        """The environment of the pair if it is built, and jax could be imported in it."""
        try:
            if (own := self._own.find(replace(placement, reader=self._jax_of))) is None:
                return None
            recipe, python = self._recipe(placement, own)
        except EnvironmentFailed:  # building it says why
            return None
        built = find_built(recipe.folder, self._locks)
        return self._environment(placement, built, python) if built and not json.loads(built.checked) else None

    def build(self, placement: Placement) -> Environment:
        """The environment of the pair. Raises `EnvironmentFailed` where it cannot be installed or imported."""
        recipe, python = self._recipe(placement, self._own.build(replace(placement, reader=self._jax_of)))
        built = build(recipe, self._locks, stopping=self._stopping, notify=self._notify)
        if problem := json.loads(built.checked):
            pair = placement.reader
            raise EnvironmentFailed(f"jax {pair.jax} cannot be imported on jaxlib {pair.jaxlib}: {problem}")
        return self._environment(placement, built, python)

    def _recipe(self, placement: Placement, own: Environment) -> tuple[Recipe, CPython]:
        """What is installed, with the jax of the environment that is its `own`."""
        options, pair = self._options, placement.reader
        python = interpreter_for(self._pythons(), uv_command())
        # The first requirement is the jax that was released with this jaxlib.
        of_jaxlib = requirements(self._jaxlib_of, options.calendar, options.sources)[1:]
        recipe = Recipe(
            f"pair-{pair.jaxlib}-jax{pair.jax}{f'-{placement.name}' if placement.name else ''}",
            python.python,
            (f"jax @ {wheel_without_checks(own).as_uri()}", *of_jaxlib, *placement.requirements()),
            _IMPORT,
            options.sources.content(self._jaxlib_of),
            options.sources.options(),
            packages=tuple(options.policy.reader_packages),
        )
        return recipe, python

    def _environment(self, placement: Placement, built: Built, python: CPython) -> Environment:
        variables = cell_variables(placement, self._options.policy.environment)
        return Environment(placement.reader, built.python, variables, built.content_hash, python.note, built.folder)

    def _pythons(self) -> tuple[str, ...]:
        """The versions of CPython on which both run."""
        pythons = self._options.calendar.pythons
        own = pythons(self._jax_of.jaxlib)
        both = tuple(python for python in pythons(self._jaxlib_of.jaxlib) if python in own)
        if not both:
            raise EnvironmentFailed(f"no CPython has both jax {self._jax_of.jax} and jaxlib {self._jaxlib_of.jaxlib}")
        return both


def wheel_without_checks(environment: Environment) -> Path:
    """A wheel of the jax of an environment, without its demands on jaxlib. Raises `EnvironmentFailed`."""
    info = metadata_of(environment.folder, "jax") if environment.folder else None
    if info is None:
        raise EnvironmentFailed(f"jax {environment.release.jax} is not installed in {environment.folder}")
    package = Distribution.at(info)
    # RECORD has the hash of every file: the same jax is packed once.
    key = hashlib.sha256((info / "RECORD").read_bytes() + _UNCHECKED.encode()).hexdigest()[:16]
    path = cache_folder() / "wheels" / key / f"jax-{package.version}-py3-none-any.whl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [_without_checks(package, info.name)])
    return path


def _without_checks(package: Distribution, info: str) -> bytes:
    """The bytes of the wheel. `info` is the name of the folder with its metadata."""
    try:
        files = dict(installed_files(package))
        for name, change in ((f"{info}/METADATA", without_jaxlib), (_CHECKED, without_check)):
            files[name] = change(files[name].decode()).encode()
    except (OSError, KeyError, ValueError) as error:
        raise EnvironmentFailed(
            f"jax {package.version} cannot be packed without its check of jaxlib: {error}"
        ) from None
    return wheel_of(f"{info}/RECORD", files)


def without_jaxlib(metadata: str) -> str:
    """The metadata of a package without its requirement of jaxlib."""
    lines = metadata.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("Requires-Dist: jaxlib"))


def without_check(source: str) -> str:
    """The module of jax that checks jaxlib, with a check that lets every jaxlib pass.

    Raises `ValueError` where the module has no such check.
    """
    functions = [
        node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == _FUNCTION
    ]
    if len(functions) != 1:
        raise ValueError(f"expected one function {_FUNCTION} in {_CHECKED}, found {len(functions)}")
    lines = source.splitlines(keepends=True)
    return "".join([*lines[: functions[0].lineno - 1], _UNCHECKED, *lines[functions[0].end_lineno :]])
