"""The settings of a pytest run. The marker comes first, then the command line, the ini file and the policy file."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

if TYPE_CHECKING:
    from export_core.base.tolerances import Sources
    from export_core.goldens import Comparison
    from export_core.numbers.user_code import UserCode
    from export_core.policy import Policy

Marked = Mapping[str, Any]
"""The value of every keyword of the marker, None for one that no marker of the test has. `entries` are those of the
policy's keys that features bring."""

SECOND_RUN = "jaxexport-second-export"
"""The name of the plugin that makes a run of pytest the second one of `second_export`."""

DRY_RUN, REVIEW = "dry-run", "review"
"""Values of --update-goldens."""

_USER_CODE: pytest.StashKey[UserCode] = pytest.StashKey()


class Settings(NamedTuple):  # no dataclass: every pytest run makes this class, and a dataclass takes milliseconds
    """The settings of a pytest run that do not come from markers.

    `update` says which goldens are written: none, all, or those that this writer does not have yet; `dry_run` that they
    are only shown, `reviewed` that somebody is asked about each; `noise_later` that their noise is not measured now.
    `repeated` are options that a suggested command has to repeat; `policy_file` is the file that `policy` was read
    from, None where there is none; `directory` is where pytest was called.
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

    def comparison(self, marked: Marked) -> Comparison:
        """Comparator and tolerances of a test."""
        from export_core.run import marker_keywords as core

        return core.comparison(marked, self.policy, self.rtol, self.atol)

    def sources(self, marked: Marked) -> Sources:
        """What set the parts of a test's comparison, for messages."""
        comparison = self.comparison(marked)
        sources = {"compare": "marker"}
        for name in ("rtol", "atol", "ulp"):
            if marked.get(name) is not None:
                sources[name] = "marker"
            elif getattr(comparison, name) is not None:  # `ulp` comes from the marker alone
                of_run = getattr(self, name) is not None
                sources[name] = f"export_{name}" if of_run else f"{name} of the policy"
        return sources


def usage_error(text: str) -> pytest.UsageError:
    """An error that ends the run before any test, with the prefix that the command `jaxexport` has."""
    return pytest.UsageError(f"jaxexport: error: {text}")


@contextmanager
def as_usage_errors() -> Iterator[None]:
    """Raise `pytest.UsageError` for an error of export_core inside the `with` block."""
    from export_core.base.errors import ExportCompatError

    try:
        yield
    except ExportCompatError as error:
        raise usage_error(str(error)) from error


def read_policy(config: pytest.Config) -> Policy:
    """The policy of the run, or the default one. Raises `pytest.UsageError` for a file that cannot be read."""
    from export_core.policy import find_policy

    with as_usage_errors():
        return find_policy(config.rootpath, _policy_file(config))


def has_policy(config: pytest.Config) -> bool:
    """Whether there may be a policy, found without loading what reads one.

    In pyproject.toml the word must stand alone: a project that only depends on pytest-jaxexport names that there.
    """
    # export_compat.yml too, which the policy refuses by name: it must not go unnoticed here.
    if _policy_file(config) is not None or any(config.rootpath.glob("export_compat.y*ml")):
        return True
    try:
        return bool(
            re.search(rb"\bjaxexport\b(?<!pytest-jaxexport)", (config.rootpath / "pyproject.toml").read_bytes())
        )
    except OSError:
        return False


def fails_unused(config: pytest.Config) -> bool:
    """Whether the policy wants a run of all tests to fail where goldens belong to no test any more."""
    if not has_policy(config):
        return False
    try:
        return read_policy(config).unused_goldens == "fail"
    except pytest.UsageError:  # which a run with a marked test has told
        return False


def _policy_file(config: pytest.Config) -> str | None:
    if named := config.getoption("export_policy"):
        return str(config.invocation_params.dir / str(named))
    in_ini = config.getini("export_policy")
    return str(config.rootpath / str(in_ini)) if in_ini else None


def user_code(config: pytest.Config) -> UserCode:
    """The process of this run's own comparators, with the root directory first on its `sys.path`."""
    if _USER_CODE not in config.stash:
        from export_core.numbers.user_code import UserCode

        variables = read_policy(config).environment if has_policy(config) else ()
        config.stash[_USER_CODE] = UserCode(config.rootpath, variables=variables)
        config.add_cleanup(config.stash[_USER_CODE].close)
    return config.stash[_USER_CODE]


_OPTIONS = {
    "--record-packages": "With --update-goldens: record in each golden the versions of all installed packages, as "
    "`jaxexport goldens backfill` does.",
    "--prune-goldens": "After a run of all tests, delete the goldens of tests that no longer exist. "
    "Refused in any other run.",
    "--goldens=DIR": "Folder of goldens. Default: the ini file's, else the policy's, else golden in the root "
    "directory.",
    "--export-platforms=P,P": "Platforms to export for, unless a marker names some.",
    "--export-rtol=R": "Relative tolerance, unless a marker names one.",
    "--export-atol=A": "Absolute tolerance, unless a marker names one.",
    "--export-policy=FILE": "Policy file. Default: export_compat.yaml, or [tool.jaxexport] in pyproject.toml, in the "
    "root directory.",
    "--no-export-cache": "Replay every golden, even if neither it nor the installed packages have changed since an "
    "earlier run.",
    "--no-second-export": "Do not run tests in a second process with another hash seed. It finds exports that are not "
    "reproducible, for new goldens and for exports that differ from their golden.",
    "--dump-ir=DIR": "Write every replayed module into this folder as text, as exported and as compiled, by case.",
}
"""Options of the command line that are given or not, or take a value."""
_INI = {
    "export_goldens": "Folder of goldens, relative to the root directory. Default: the policy's.",
    "export_platforms": _OPTIONS["--export-platforms=P,P"],
    "export_rtol": _OPTIONS["--export-rtol=R"],
    "export_atol": _OPTIONS["--export-atol=A"],
    "export_policy": "Policy file, relative to the root directory.",
    "export_module_text": "yes (the default) or no: whether new goldens have module.mlir, which no reader needs.",
    "export_devices": "Number of logical CPU devices of this process, for exports over several devices.",
}


def add_options(parser: pytest.Parser) -> None:
    """Add the plugin's options to the command line and to the ini file."""
    group = parser.getgroup("jaxexport", "jax.export compatibility")
    group.addoption(
        "--update-goldens",
        action="store_const",
        const="all",
        default="",
        help="Write the goldens of the selected marked tests that pass, with the jaxlib of this run. "
        "Goldens by other writers are not changed.",
    )
    # An option of its own: with nargs="?", the first would take the path after it, `pytest --update-goldens tests`.
    group.addoption(
        "--update-goldens=missing",
        dest="update_goldens",
        action="store_const",
        const="missing",
        help="Write only the goldens that the jaxlib of this run has not written yet, and check all others.",
    )
    # No --dry-run and no --review: those may be options of another plugin, and pytest refuses one that two plugins add.
    group.addoption(
        f"--update-goldens={DRY_RUN}",
        dest="update_goldens",
        action="store_const",
        const=DRY_RUN,
        help="Say which goldens would be new or replaced, and what is different in each, and write nothing.",
    )
    group.addoption(
        f"--update-goldens={REVIEW}",
        dest="update_goldens",
        action="store_const",
        const=REVIEW,
        help="Say the same of one golden after the other, ask at the terminal, and write those that you accept.",
    )
    group.addoption(
        "--noise",
        choices=("now", "later"),
        metavar="now|later",
        dest="export_noise",
        default="now",
        help="With --update-goldens: now (the default) measures the noise of each new or changed golden; later "
        "leaves that to `jaxexport goldens verify --noise`, and a second export to the next run of its test.",
    )
    for option, meaning in _OPTIONS.items():
        name, _, value = option.partition("=")
        group.addoption(name, help=meaning, **({"metavar": value} if value else {"action": "store_true"}))
    for name, meaning in _INI.items():
        kind: Literal["args"] | None = "args" if name == "export_platforms" else None  # words, or one text
        parser.addini(name, meaning, type=kind)


def request_devices(config: pytest.Config) -> None:
    """Request the logical CPU devices of the ini file. XLA reads the variable when jax first uses a device."""
    count = str(config.getini("export_devices")).strip()
    flag = "--xla_force_host_platform_device_count"
    if not count:
        return
    if not count.isdecimal() or int(count) < 1:
        raise usage_error(f"export_devices: expected a number of devices, found {count!r}.")
    # A number that the user has set already, in the shell or in CI, is left alone.
    flags = os.environ.get("XLA_FLAGS", "")
    if flag not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {flag}={count}".strip()


def goldens_folder(config: pytest.Config) -> Path:
    """The folder of goldens. Paths on the command line start where pytest was called, others at the root directory.

    Raises `pytest.UsageError` for a policy file that is needed and cannot be read.
    """
    if named := config.getoption("goldens"):
        return config.invocation_params.dir / str(named)
    if in_ini := config.getini("export_goldens"):
        return config.rootpath / str(in_ini)
    # Most runs have no policy file, and need not load export_core to read one.
    return config.rootpath / (read_policy(config).goldens if has_policy(config) else "golden")


def read_settings(config: pytest.Config) -> Settings:
    """The settings of a run. Raises `pytest.UsageError` for impossible values."""
    from export_core.base.cache_folder import cache_path
    from export_core.policy.load import policy_file

    source, text = _option(config, "export_module_text")
    if (module_text := str(text).lower()) not in ("", "yes", "no", "true", "false"):  # TOML has booleans
        raise usage_error(f"{source}: expected yes or no, found {text!r}.")
    with as_usage_errors():
        cache_path()
    update = config.getoption("update_goldens")
    return Settings(
        goldens=goldens_folder(config),
        update="all" if update in (DRY_RUN, REVIEW) else update,
        dry_run=update == DRY_RUN,
        reviewed=update == REVIEW,
        policy=read_policy(config),
        platforms=_platforms(config),
        rtol=_tolerance(config, "export_rtol"),
        atol=_tolerance(config, "export_atol"),
        repeated=tuple(
            f"{name}={value}"
            for name, takes_value, _ in (option.partition("=") for option in _OPTIONS)
            if takes_value and name != "--dump-ir" and (value := config.getoption(name)) is not None
        ),
        dump_ir=_dump_folder(config),
        policy_file=policy_file(config.rootpath, _policy_file(config)),
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
    from export_core.matrix.plan import make_dump_folder

    with as_usage_errors():
        return make_dump_folder(config.invocation_params.dir / str(named))


def _platforms(config: pytest.Config) -> tuple[str, ...] | None:
    from export_core.run import marker_keywords as core

    source, value = _option(config, "export_platforms")
    words = value if isinstance(value, list) else [value]
    # An ini file gives a list of words, the command line one text with commas.
    names = [name for word in words for name in re.split(r"[\s,]+", str(word)) if name]
    with as_usage_errors():
        return core.parse_platforms(names, source) if value else None


def _tolerance(config: pytest.Config, name: str) -> float | None:
    source, value = _option(config, name)
    if not value:
        return None
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if not (number >= 0 and math.isfinite(number)):  # NaN is not: no comparison with it is true
        raise usage_error(f"{source}: expected a finite number of 0 or more, found {value!r}.")
    return number


def _option(config: pytest.Config, name: str) -> tuple[str, object]:
    """Where a value comes from, for messages, and the value: the command line's before the ini file's."""
    value = config.getoption(name, None)  # some are in the ini file only
    if value is not None:
        return f"--{name.replace('_', '-')}", value
    return f"{config.inipath.name if config.inipath else 'ini file'}: {name}", config.getini(name)
