"""The settings of a pytest run with a marked test: the marker first, then command line, ini file and policy file.

A run that only collects marked tests loads this file: it must not load NumPy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

from export_core.base.cache_folder import cache_path
from export_core.base.errors import ExportCompatError
from export_core.policy import Policy, find_policy
from export_core.policy.load import policy_file
from export_core.run.marker_keywords import parse_platforms, positional_mistakes, read_keywords, unused_tolerances
from pytest_jaxexport.marker import NAME, Marked, MarkerError
from pytest_jaxexport.options import DRY_RUN, REVIEW, named_goldens, named_policy, option, repeated_options, usage_error

if TYPE_CHECKING:
    from export_core.numbers.user_code import UserCode

_USER_CODE: pytest.StashKey[UserCode] = pytest.StashKey()


class Settings(NamedTuple):
    """The settings of a pytest run: the values of its options and of the ini file, and the policy.

    `update` says which goldens to write: none, all, or those that this writer lacks. With `dry_run` they are only
    shown, with `reviewed` a person is asked about each, and with `noise_later` their noise is not measured now.
    `repeated` are the options that commands in messages repeat. `policy_file` is the file of `policy`, or None if it
    has no file. `directory` is the folder where pytest was called.
    """

    goldens: Path
    update: Literal["", "all", "missing"]
    policy: Policy
    platforms: tuple[str, ...] | None
    rtol: float | None
    atol: float | None
    repeated: tuple[str, ...] = ()
    dump_ir: Path | None = None
    policy_file: Path | None = None
    directory: Path = Path()
    record_packages: bool = False
    module_text: bool = True
    cache: bool = True
    dry_run: bool = False
    reviewed: bool = False
    noise_later: bool = False
    second_export: bool = True


@contextmanager
def as_usage_errors() -> Iterator[None]:
    """Raise a `pytest.UsageError` with the text of any export_core error that the `with` block raises."""
    try:
        yield
    except ExportCompatError as error:
        raise usage_error(str(error)) from error


def read_policy(config: pytest.Config) -> Policy:
    """Return the policy of the run, or the default policy if there is none.

    Raises `pytest.UsageError` for a file that cannot be read.
    """
    with as_usage_errors():
        return find_policy(config.rootpath, named_policy(config))


def user_code(config: pytest.Config) -> UserCode:
    """Return the process that runs the project's own comparators, with the root directory first on its `sys.path`."""
    if _USER_CODE not in config.stash:
        from export_core.numbers.user_code import UserCode  # NumPy: 120 ms, which collecting marked tests must not take

        config.stash[_USER_CODE] = UserCode(config.rootpath, variables=read_policy(config).environment)
        config.add_cleanup(config.stash[_USER_CODE].close)
    return config.stash[_USER_CODE]


def read_settings(config: pytest.Config) -> Settings:
    """Return the settings of a pytest run, from its options, the ini file and the policy.

    Raises `pytest.UsageError` for a value that is not allowed.
    """
    source, text = option(config, "export_module_text")
    if (module_text := str(text).lower()) not in ("", "yes", "no", "true", "false"):  # TOML has booleans
        raise usage_error(f"{source}: expected yes or no, found {text!r}.")
    with as_usage_errors():
        cache_path()
    policy, update = read_policy(config), config.getoption("update_goldens")
    return Settings(
        goldens=named_goldens(config) or config.rootpath / policy.goldens,
        update="all" if update in (DRY_RUN, REVIEW) else update,
        dry_run=update == DRY_RUN,
        reviewed=update == REVIEW,
        policy=policy,
        platforms=_platforms(config),
        rtol=_tolerance(config, "export_rtol"),
        atol=_tolerance(config, "export_atol"),
        repeated=repeated_options(config),
        dump_ir=_dump_folder(config),
        policy_file=policy_file(config.rootpath, named_policy(config)),
        directory=config.invocation_params.dir,
        record_packages=bool(config.getoption("record_packages")),
        module_text=module_text in ("", "yes", "true"),
        cache=not config.getoption("no_export_cache"),
        noise_later=config.getoption("export_noise") == "later",
        second_export=not config.getoption("no_second_export"),
    )


def _dump_folder(config: pytest.Config) -> Path | None:
    if not (named := config.getoption("dump_ir")):
        return None
    from export_core.matrix.plan import make_dump_folder  # NumPy, as above

    with as_usage_errors():
        return make_dump_folder(config.invocation_params.dir / str(named))


def _platforms(config: pytest.Config) -> tuple[str, ...] | None:
    source, value = option(config, "export_platforms")
    words = value if isinstance(value, list) else [value]
    # An ini file gives a list of words, the command line one text with commas.
    names = [name for word in words for name in re.split(r"[\s,]+", str(word)) if name]
    with as_usage_errors():
        return parse_platforms(names, source) if value else None


def _tolerance(config: pytest.Config, name: str) -> float | None:
    source, value = option(config, name)
    if not value:
        return None
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if not (number >= 0 and math.isfinite(number)):  # NaN is not: no comparison with it is true
        raise usage_error(f"{source}: expected a finite number of 0 or more, found {value!r}.")
    return number


def read_marker(item: pytest.Item) -> Marked:
    """Return the keywords in the markers of a test, merged with those of its class and module.

    A keyword of the test's own marker takes precedence over the same keyword of its class, and that over its module.
    Raises `MarkerError` for a wrong marker.
    """
    where = f"@pytest.mark.{NAME}"
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        raise MarkerError(
            f"{where} cannot be combined with hypothesis's @given: a golden has the same arguments in every run, and "
            "@given draws others.\nLeave the marker off this test, and write one beside it without @given that passes "
            "fixed arguments to export_golden, such as those of an @example."
        )
    merged: dict[str, Any] = {}
    mistakes = []
    # From the test outwards to its class and module: setdefault leaves the keyword of the nearest marker.
    for marker in item.iter_markers(NAME):
        mistakes += positional_mistakes(marker.args, where)
        mistakes += unused_tolerances(marker.kwargs, where)
        for key, value in marker.kwargs.items():
            merged.setdefault(key, value)
    try:
        keywords = read_keywords(merged, where, lambda: user_code(item.config))
    except ExportCompatError as error:
        raise MarkerError("\n".join([*mistakes, str(error)])) from error
    if mistakes:
        raise MarkerError("\n".join(mistakes))
    return keywords
