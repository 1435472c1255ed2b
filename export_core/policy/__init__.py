"""The policy of a project, what it asks of its goldens: export_compat.yaml, or [tool.jaxexport] in pyproject.toml.

A name is imported from its module when it is first used: `jaxexport inspect` loads `terms`, and must not load msgspec.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from export_core.policy.entries import (
        CustomCallChange,
        ExtraReleases,
        KnownFailure,
        NumbersRule,
        Pin,
        Place,
        Quirk,
        Required,
        Retention,
        WindowDays,
    )
    from export_core.policy.load import FILE, PROJECT_FILE, find_policy, load_policy, policy_file, read_policy
    from export_core.policy.load import releases_file as releases_file
    from export_core.policy.model import PlatformMode, Policy
    from export_core.policy.source import PolicyError

__all__ = [
    "FILE",
    "PROJECT_FILE",
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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from export_core.policy import entries, load, model, source

    return next(getattr(module, name) for module in (entries, load, model, source) if hasattr(module, name))
