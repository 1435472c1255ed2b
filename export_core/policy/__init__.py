"""The policy of a project, what it asks of its goldens: export_compat.yaml, or [tool.jaxexport] in pyproject.toml.

A name is imported from its module when it is first used: `jaxexport inspect` loads `terms`, and must not load msgspec.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from export_core.features.costs.policy_key import Budget
    from export_core.features.deploy.policy_key import Place
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

_MODULES = {
    **dict.fromkeys(("Budget",), "export_core.features.costs.policy_key"),
    **dict.fromkeys(("Place",), "export_core.features.deploy.policy_key"),
    **dict.fromkeys(
        (
            "CustomCallChange",
            "ExtraReleases",
            "KnownFailure",
            "Pin",
            "Quirk",
            "Required",
            "Retention",
            "WindowDays",
        ),
        "export_core.policy.entries",
    ),
    **dict.fromkeys(("PolicyError",), "export_core.policy.errors"),
    **dict.fromkeys(
        (
            "FILE",
            "PROJECT_FILE",
            "find_policy",
            "load_policy",
            "policy_file",
            "read_policy",
            "releases_file",
        ),
        "export_core.policy.load",
    ),
    **dict.fromkeys(
        (
            "PlatformMode",
            "Policy",
        ),
        "export_core.policy.model",
    ),
    **dict.fromkeys(("NumbersRule",), "export_core.policy.numbers"),
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_MODULES[name]), name)
