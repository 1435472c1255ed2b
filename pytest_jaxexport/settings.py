"""Which value holds: the marker's, the command line's, the ini file's or the policy file's? In this order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_jaxexport.marker import Marked, parse_platforms, parse_tolerance

if TYPE_CHECKING:
    from export_core.goldens import Comparison
    from export_core.policy import Policy


@dataclass(frozen=True)
class Settings:
    """What a pytest run was told, beside its markers."""

    goldens: Path
    update: bool
    policy: Policy
    platforms: tuple[str, ...] | None
    rtol: float | None
    atol: float | None

    def platforms_for(self, marked: Marked) -> tuple[str, ...] | None:
        """Platforms to export for; None stands for that of this process."""
        return marked.platforms or self.platforms

    def comparison_for(self, marked: Marked) -> Comparison:
        """Comparator and tolerances of a test."""
        from export_core.goldens import Comparison

        return Comparison(
            compare=marked.compare or "allclose",
            rtol=_first(marked.rtol, self.rtol, self.policy.rtol),
            atol=_first(marked.atol, self.atol, self.policy.atol),
        )

    def allow_for(self, marked: Marked) -> dict[str, str]:
        """Accepted custom-call targets with their reasons."""
        return {**self.policy.allow, **(marked.allow or {})}


def add_options(parser: pytest.Parser) -> None:
    """The plugin's part of `pytest --help` and of the ini file."""
    group = parser.getgroup("jaxexport", "jax.export compatibility")
    group.addoption(
        "--update-goldens",
        action="store_true",
        help="Write the goldens of the selected marked tests that pass, for the jaxlib of this run; other writers' stay.",
    )
    group.addoption("--goldens", metavar="DIR", help="Folder of goldens. Default: golden in the root directory.")
    group.addoption("--export-platforms", metavar="P,P", help="Platforms to export for where a marker names none.")
    group.addoption("--export-rtol", metavar="R", help="Relative tolerance where a marker names none.")
    group.addoption("--export-atol", metavar="A", help="Absolute tolerance where a marker names none.")
    group.addoption(
        "--export-policy", metavar="FILE", help="Policy file. Default: export_compat.yaml in the root directory."
    )
    parser.addini("export_goldens", "Folder of goldens, relative to the root directory.")
    parser.addini("export_platforms", "Platforms to export for where a marker names none.", type="args")
    parser.addini("export_rtol", "Relative tolerance where a marker names none.")
    parser.addini("export_atol", "Absolute tolerance where a marker names none.")
    parser.addini("export_policy", "Policy file, relative to the root directory.")


def goldens_folder(config: pytest.Config, policy_says: str | None = None) -> Path:
    """Where goldens lie. Paths of the command line start where pytest was called, all others at the root directory."""
    if named := config.getoption("goldens"):
        return config.invocation_params.dir / str(named)
    return config.rootpath / str(config.getini("export_goldens") or policy_says or "golden")


def read_settings(config: pytest.Config) -> Settings:
    """Collect what holds for a run. Raises `pytest.UsageError` for values that cannot be."""
    from export_core.errors import ExportCompatError
    from export_core.policy import find_policy

    try:
        policy = find_policy(config.rootpath, _policy_file(config))
    except ExportCompatError as error:
        raise pytest.UsageError(str(error)) from error
    platforms = config.getoption("export_platforms")
    chosen = platforms.split(",") if platforms else config.getini("export_platforms")
    return Settings(
        goldens=goldens_folder(config, policy.goldens),
        update=bool(config.getoption("update_goldens")),
        policy=policy,
        platforms=parse_platforms(chosen, "--export-platforms") if chosen else None,
        rtol=_tolerance(config, "export_rtol"),
        atol=_tolerance(config, "export_atol"),
    )


def _policy_file(config: pytest.Config) -> str | None:
    if named := config.getoption("export_policy"):
        return str(config.invocation_params.dir / str(named))
    in_ini = config.getini("export_policy")
    return str(config.rootpath / str(in_ini)) if in_ini else None


def _tolerance(config: pytest.Config, name: str) -> float | None:
    value = config.getoption(name) or config.getini(name)
    return parse_tolerance(value, f"--{name.replace('_', '-')}") if value else None


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)
