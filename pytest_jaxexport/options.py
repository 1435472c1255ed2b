"""The options of the command line and of the ini file, and their values without a policy.

Every run of pytest loads this file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

DRY_RUN, REVIEW = "dry-run", "review"
"""Values of --update-goldens."""

SECOND_RUN = "jaxexport-second-export"
"""The name of the plugin by which a run of pytest is the second process of `second_export`."""

_UPDATES = {
    "missing": "Write only the goldens that the jaxlib of this run has not written yet, and check all others.",
    DRY_RUN: "Say which goldens would be new or replaced, and what is different in each, and write nothing.",
    REVIEW: "Say the same of one golden after the other, ask at the terminal, and write those that you accept.",
}
"""The values of --update-goldens, with their help."""
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
"""Options of the command line that are flags or take a value, with their help."""
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
    # Options of their own: with nargs="?", the first would take the path after it, `pytest --update-goldens tests`. No
    # --dry-run and no --review: those may be options of another plugin, and pytest refuses one that two plugins add.
    for value, meaning in _UPDATES.items():
        group.addoption(
            f"--update-goldens={value}", dest="update_goldens", action="store_const", const=value, help=meaning
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


def check_updates(words: Sequence[object]) -> None:
    """Raise `pytest.UsageError` if the words of a command line give --update-goldens an unknown value.

    The parser of pytest, which runs later, would only say that it ignores the value.
    """
    for word in words:
        option, is_given, value = str(word).partition("=")
        if option == "--update-goldens" and is_given and value not in _UPDATES:
            from export_core.base.text import did_you_mean  # only a mistake needs it

            known = ", ".join(f"--update-goldens={value}" for value in _UPDATES)
            raise usage_error(
                f"--update-goldens: expected no value, or one of {known}; found {value!r}."
                f"{did_you_mean(value, _UPDATES)}"
            )


def request_devices(config: pytest.Config) -> None:
    """Request the ini file's number of CPU devices in XLA_FLAGS, which XLA reads when jax first uses a device.

    A number that the user has set already in XLA_FLAGS is not changed.
    """
    count = str(config.getini("export_devices")).strip()
    flag = "--xla_force_host_platform_device_count"
    if not count:
        return
    if not count.isdecimal() or int(count) < 1:
        raise usage_error(f"export_devices: expected a number of devices, such as 8, found {count!r}.")
    # A number that the user has set already, in the shell or in CI, is left alone.
    flags = os.environ.get("XLA_FLAGS", "")
    if flag not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {flag}={count}".strip()


def usage_error(text: str) -> pytest.UsageError:
    """Return a `pytest.UsageError` with this text, whose lines begin as in errors of the command `jaxexport`."""
    from export_core.base.errors import with_prefix

    return pytest.UsageError(with_prefix(text))


def option(config: pytest.Config, name: str) -> tuple[str, object]:
    """Return the source of an option's value, for messages, and the value.

    The command line takes precedence over the ini file.
    """
    value = config.getoption(name, None)  # some are in the ini file only
    if value is not None:
        return f"--{name.replace('_', '-')}", value
    return f"{config.inipath.name if config.inipath else 'ini file'}: {name}", config.getini(name)


def repeated_options(config: pytest.Config) -> tuple[str, ...]:
    """Return the options of this run with a value, as they are typed, that a command in a message has to repeat."""
    options = (text.partition("=") for text in _OPTIONS)
    return tuple(
        f"{name}={value}"
        for name, takes_value, _ in options
        if takes_value and name != "--dump-ir" and (value := config.getoption(name)) is not None
    )


def named_goldens(config: pytest.Config) -> Path | None:
    """Return the folder of goldens that the command line or the ini file names; None if neither does.

    Paths on the command line are relative to the folder where pytest was called.
    """
    if named := config.getoption("goldens"):
        return config.invocation_params.dir / str(named)
    in_ini = config.getini("export_goldens")
    return config.rootpath / str(in_ini) if in_ini else None


def named_policy(config: pytest.Config) -> str | None:
    """Return the policy file that the command line or the ini file names; None if neither does."""
    if named := config.getoption("export_policy"):
        return str(config.invocation_params.dir / str(named))
    in_ini = config.getini("export_policy")
    return str(config.rootpath / str(in_ini)) if in_ini else None


def has_policy(config: pytest.Config) -> bool:
    """Return whether the project may have a policy, without loading the modules that read a policy.

    In pyproject.toml the word jaxexport must stand alone, since a dependency on pytest-jaxexport contains it too.
    """
    # export_compat.yml too, which the policy refuses by name: it must not go unnoticed here.
    if named_policy(config) is not None or any(config.rootpath.glob("export_compat.y*ml")):
        return True
    try:
        return bool(
            re.search(rb"\bjaxexport\b(?<!pytest-jaxexport)", (config.rootpath / "pyproject.toml").read_bytes())
        )
    except OSError:
        return False
