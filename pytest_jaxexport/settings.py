"""The settings of a pytest run. The marker comes first, then the command line, the ini file and the policy file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import pytest

from pytest_jaxexport.marker import MarkerOptions, parse_platforms, parse_tolerance
from pytest_jaxexport.project_policy import found_policy_file, has_policy, read_policy, usage_error

if TYPE_CHECKING:
    from export_core.base.tolerances import Sources
    from export_core.export import ExportOptions
    from export_core.goldens import Comparison
    from export_core.policy import Policy

_OPTIONS = ("goldens", "export_platforms", "export_rtol", "export_atol", "export_policy")


class Settings(NamedTuple):  # no dataclass: every pytest run makes this class, and a dataclass takes milliseconds
    """The settings of a pytest run that do not come from markers.

    `update` says which goldens are written: none, all, or those that this writer does not have yet; `noise_later` that
    their noise is not measured now. `repeated` are options that a suggested command has to repeat; `policy_file` is the
    file that `policy` was read from, None where there is none; `directory` is where pytest was called.
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
    noise_later: bool = False
    second_export: bool = True

    def export_options(self, marked: MarkerOptions) -> ExportOptions:
        """How a test's function is to be exported."""
        from export_core.run import marker_keywords as core

        return core.export_options(marked._asdict(), self.policy, self.platforms)

    def comparison(self, marked: MarkerOptions) -> Comparison:
        """Comparator and tolerances of a test."""
        from export_core.run import marker_keywords as core

        return core.comparison(marked._asdict(), self.policy, self.rtol, self.atol)

    def sources(self, marked: MarkerOptions) -> Sources:
        """What set the parts of a test's comparison, for messages."""
        comparison = self.comparison(marked)
        sources = {"compare": "marker"}
        for name in ("rtol", "atol", "ulp"):
            if getattr(marked, name) is not None:
                sources[name] = "marker"
            elif getattr(comparison, name) is not None:  # `ulp` comes from the marker alone
                of_run = getattr(self, name) is not None
                sources[name] = f"export_{name}" if of_run else f"{name} of the policy"
        return sources


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
    group.addoption(
        "--noise",
        choices=("now", "later"),
        metavar="now|later",
        dest="export_noise",
        default="now",
        help="With --update-goldens: now (the default) measures the noise of each golden that is new or has changed, "
        "later leaves it to `jaxexport goldens noise`, and a second export of each golden to the run that checks it.",
    )
    group.addoption(
        "--record-packages",
        action="store_true",
        help="With --update-goldens: record in each golden the versions of all installed packages, as `jaxexport "
        "backfill` does.",
    )
    group.addoption(
        "--prune-goldens",
        action="store_true",
        help="After a run of all tests, delete the goldens of tests that no longer exist. Refused in any other run.",
    )
    group.addoption(
        "--goldens",
        metavar="DIR",
        help="Folder of goldens. Default: the ini file's, else the policy's, else golden in the root directory.",
    )
    group.addoption("--export-platforms", metavar="P,P", help="Platforms to export for, unless a marker names some.")
    group.addoption("--export-rtol", metavar="R", help="Relative tolerance, unless a marker names one.")
    group.addoption("--export-atol", metavar="A", help="Absolute tolerance, unless a marker names one.")
    group.addoption(
        "--export-policy",
        metavar="FILE",
        help="Policy file. Default: export_compat.yaml, or [tool.jaxexport] in pyproject.toml, in the root directory.",
    )
    group.addoption(
        "--no-export-cache",
        action="store_true",
        help="Replay every golden, also where neither it nor what is installed has changed since an earlier run.",
    )
    group.addoption(
        "--no-second-export",
        action="store_true",
        help="Do not run tests in a second process with another hash seed, to find exports that are not reproducible: "
        "those of new goldens, and those that differ from their golden.",
    )
    group.addoption(
        "--dump-ir",
        metavar="DIR",
        help="Write every replayed module into this folder as text, as exported and as compiled, by case.",
    )
    parser.addini("export_goldens", "Folder of goldens, relative to the root directory. Default: the policy's.")
    parser.addini("export_platforms", "Platforms to export for, unless a marker names some.", type="args")
    parser.addini("export_rtol", "Relative tolerance, unless a marker names one.")
    parser.addini("export_atol", "Absolute tolerance, unless a marker names one.")
    parser.addini("export_policy", "Policy file, relative to the root directory.")
    parser.addini(
        "export_module_text", "yes (the default) or no: whether new goldens have module.mlir, which no reader needs."
    )
    parser.addini("export_devices", "Number of logical CPU devices of this process, for exports over several devices.")


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
    return Settings(
        goldens=goldens_folder(config),
        update=config.getoption("update_goldens"),
        policy=read_policy(config),
        platforms=_platforms(config),
        rtol=_tolerance(config, "export_rtol"),
        atol=_tolerance(config, "export_atol"),
        repeated=tuple(
            f"--{name.replace('_', '-')}={value}" for name in _OPTIONS if (value := config.getoption(name)) is not None
        ),
        dump_ir=_dump_folder(config),
        policy_file=found_policy_file(config),
        directory=config.invocation_params.dir,
        record_packages=bool(config.getoption("record_packages")),
        module_text=_module_text(config),
        cache=not config.getoption("no_export_cache"),
        noise_later=config.getoption("export_noise") == "later",
        second_export=not config.getoption("no_second_export"),
    )


def _module_text(config: pytest.Config) -> bool:
    source, value = _option(config, "export_module_text")
    text = str(value).lower() or "yes"
    if text not in ("yes", "no", "true", "false"):  # a boolean of pyproject.toml arrives as text
        raise usage_error(f"{source}: expected yes or no, found {value!r}.")
    return text in ("yes", "true")


def _dump_folder(config: pytest.Config) -> Path | None:
    if not (named := config.getoption("dump_ir")):
        return None
    from export_core.base.errors import ExportCompatError
    from export_core.matrix.plan import make_dump_folder

    try:
        return make_dump_folder(config.invocation_params.dir / str(named))
    except ExportCompatError as error:
        raise usage_error(str(error)) from error


def _platforms(config: pytest.Config) -> tuple[str, ...] | None:
    source, value = _option(config, "export_platforms")
    words = value if isinstance(value, list) else [value]
    # An ini file gives a list of words, the command line one text with commas.
    names = [name for word in words for name in re.split(r"[\s,]+", str(word)) if name]
    return parse_platforms(names, source) if value else None


def _tolerance(config: pytest.Config, name: str) -> float | None:
    source, value = _option(config, name)
    return parse_tolerance(value, source) if value else None


def _option(config: pytest.Config, name: str) -> tuple[str, object]:
    """Where a value comes from, for messages, and the value: the command line's before the ini file's."""
    value = config.getoption(name, None)  # some are in the ini file only
    if value is not None:
        return f"--{name.replace('_', '-')}", value
    return f"{config.inipath.name if config.inipath else 'ini file'}: {name}", config.getini(name)
