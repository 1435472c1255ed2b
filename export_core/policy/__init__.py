"""The policy of a project, what it asks of its goldens: export_compat.yaml, or [tool.jaxexport] in pyproject.toml."""

from export_core.policy.budgets import Budget
from export_core.policy.deployed import Place
from export_core.policy.entries import (
    CustomCallChange,
    ExtraReleases,
    KnownFailure,
    Pin,
    Quirk,
    Required,
    Retention,
    WindowDays,
)
from export_core.policy.errors import PolicyError
from export_core.policy.load import (
    FILE,
    PROJECT_FILE,
    find_policy,
    load_policy,
    policy_file,
    read_policy,
    releases_file,
)
from export_core.policy.model import PlatformMode, Policy
from export_core.policy.numbers import NumbersRule

__all__ = [
    "FILE",
    "PROJECT_FILE",
    "Budget",
    "CustomCallChange",
    "ExtraReleases",
    "KnownFailure",
    "NumbersRule",
    "Pin",
    "Place",
    "PlatformMode",
    "Policy",
    "PolicyError",
    "Quirk",
    "Required",
    "Retention",
    "WindowDays",
    "find_policy",
    "load_policy",
    "policy_file",
    "read_policy",
    "releases_file",
]
