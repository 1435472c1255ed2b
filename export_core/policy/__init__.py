"""The policy of a project, what it asks of its goldens: export_compat.yaml, or [tool.jaxexport] in pyproject.toml.

A name is imported from its module when it is first used: `jaxexport inspect` loads `terms`, and must not load msgspec.
"""

from __future__ import annotations

from export_core.base.named_tuple import TYPE_CHECKING

if TYPE_CHECKING:
    from export_core.policy.load import find_policy, load_policy
    from export_core.policy.model import Policy
    from export_core.policy.source import PolicyError

__all__ = ["Policy", "PolicyError", "find_policy", "load_policy"]

if not TYPE_CHECKING:  # else every misspelled name would have a type

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from export_core.policy import load, model, source

        # All names at once: each later import finds its name here, and does not ask again.
        modules = (load, model, source)
        globals().update({one: getattr(module, one) for module in modules for one in __all__ if hasattr(module, one)})
        return globals()[name]
