"""What other programs may import of these packages, and how stable it is. docs/reference/api.md is made from it.

Everything else is internal and may change in any release. `tests/test_public.py` shows that each name exists, has a
docstring, and uses no type that is not public too.
"""

from __future__ import annotations

STABLE: dict[str, tuple[str, ...]] = {
    "export_core": ("check", "LoadCheck", "export_artifact", "write_golden", "WrittenGolden"),
    "export_core.artifact": (
        *("read", "read_bytes", "as_dict", "Artifact", "Envelope", "Module", "CustomCall", "Function", "Constant"),
        *("Aval", "Tree", "DisabledCheck", "UnknownField", "NamedSharding", "HloSharding", "PartitionSpec"),
        *("AbstractMesh", "AbstractDevice", "ArtifactError"),
    ),
    "export_core.releases": (
        *("load_calendar", "Calendar", "Release", "JaxlibRelease", "JaxRelease"),
        *("promise", "Promise", "Windows", "Direction", "ReleaseError"),
    ),
    "export_core.policy": ("find_policy", "load_policy", "Policy", "PolicyError"),
    "export_core.goldens": ("GoldenStore", "Golden", "Leaf", "Manifest", "Writer", "GoldenError"),
    "export_core.run": ("read_run", "Run", "RunError", "IncompleteResults"),
    "export_core.judge": ("Result", "Summary", "Judgement"),
    "export_core.matrix": ("Verdict",),
    "export_core.base.errors": ("ExportCompatError",),
    "pytest_jaxexport.nox_sessions": ("register",),
}
"""By module. These stay as they are until a release says under "Breaking" in the changelog that they changed."""

PROVISIONAL: dict[str, tuple[str, ...]] = {
    "export_core.run.session": ("run_matrix", "Observer"),
    "export_core.policy.run_options": ("RunOptions",),
    "export_core.matrix": ("Selection",),
}
"""By module. These can be used, and may change in any release, which then says so in the changelog."""

INTERNAL: dict[str, tuple[str, ...]] = {
    "Artifact": ("saved_model", "unread"),
    "ArtifactError": ("message",),
    "Calendar": ("all_matching_jax", "extended", "extra_requirements", "requirements"),
    "Envelope": ("levels", "module_source", "shown", "slots"),
    "ExportCompatError": ("about", "message", "problems"),
    "Function": ("shown",),
    "Golden": ("compared", "compared_as", "noise", "outputs_of_calls"),
    "GoldenStore": ("existing", "find", "name_of", "named", "remove", "with_artifact", "write"),
    "IncompleteResults": ("exit_code",),
    "Module": ("contents", "tables"),
    "Observer": ("planned", "started"),
    "Policy": ("located", "replayed", "replays_otherwise", "without_locations"),
    "Result": ("golden_order", "key"),
    "Run": (
        *("plan", "options", "changed", "changed_since", "goldens", "readers", "writers", "platforms"),
        *("by_cell", "by_golden", "by_reader", "by_writer", "by_cause", "by_judgement"),
    ),
    "RunOptions": ("shard",),
    "Selection": ("as_recorded", "named", "whole"),
    "run_matrix": ("interpreter",),
}
"""Members of public classes, and a parameter, that are not public."""
