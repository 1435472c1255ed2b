"""The policy of a pytest run, and what it decides before any settings: the process for a user's own comparators."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from export_core.numbers.user_code import UserCode
    from export_core.policy import Policy

_POLICY = "export_compat.yaml"
_USER_CODE: pytest.StashKey[UserCode] = pytest.StashKey()


def usage_error(text: str) -> pytest.UsageError:
    """An error that ends the run before any test, with the prefix that the command `jaxexport` has."""
    return pytest.UsageError(f"jaxexport: error: {text}")


def read_policy(config: pytest.Config) -> Policy:
    """The policy of the run, or the default one. Raises `pytest.UsageError` for a file that cannot be read."""
    from export_core.base.errors import ExportCompatError
    from export_core.policy import find_policy

    try:
        return find_policy(config.rootpath, _policy_file(config))
    except ExportCompatError as error:
        raise usage_error(str(error)) from error


def found_policy_file(config: pytest.Config) -> Path | None:
    """The file that the policy is read from; None where there is none."""
    from export_core.policy import policy_file

    return policy_file(config.rootpath, _policy_file(config))


def has_policy(config: pytest.Config) -> bool:
    """Whether there may be a policy, found without loading what reads one.

    In pyproject.toml the word must stand alone: a project that only depends on pytest-jaxexport names that there.
    """
    # export_compat.yml too, which the policy refuses by name: it must not go unnoticed here.
    if _policy_file(config) is not None or any(config.rootpath.glob(f"{Path(_POLICY).stem}.y*ml")):
        return True
    try:
        return bool(
            re.search(rb"\bjaxexport\b(?<!pytest-jaxexport)", (config.rootpath / "pyproject.toml").read_bytes())
        )
    except OSError:
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
