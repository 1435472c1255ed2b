"""The names that other programs may import from these packages, and how stable they are.

docs/reference/api.md is made from these lists. Everything else is internal and may change in any release.
`tests/test_public.py` checks that each name exists, has a docstring, and uses only types that are public too.
"""

from __future__ import annotations

STABLE: dict[str, tuple[str, ...]] = {
    "export_core": (
        *("check", "LoadCheck", "PlatformError"),
        *("export_artifact", "write_golden", "WrittenGolden", "KeywordError", "ExportError"),
    ),
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
"""The stable names by module. A name stays as it is until a release says in its changelog, under "Breaking", that it
changed."""

PROVISIONAL: dict[str, tuple[str, ...]] = {
    "export_core.run.session": ("run_matrix", "Observer"),
    "export_core.policy.run_options": ("RunOptions", "Shard"),
    "export_core.matrix": ("Selection", "MatrixError"),
    "export_core.run": ("ResultsNotWritten",),
}
"""The provisional names by module. A name may change in any release, whose changelog then says so."""

INTERNAL: dict[str, tuple[str, ...]] = {
    "Artifact": ("saved_model", "unread"),
    "ArtifactError": ("message",),
    "Calendar": ("about_unknown", "all_matching_jax", "extended", "extra_requirements", "requirements"),
    "Envelope": ("argument_paths", "levels", "module_source", "result_paths", "shown", "slots"),
    "ExportCompatError": ("about", "message", "problems"),
    "Function": ("shown",),
    "Golden": ("compared", "compared_as", "noise", "outputs_of_calls"),
    "GoldenStore": (
        "existing",
        "find",
        "goldens_so_far",
        "is_unreadable",
        "meant",
        "name_of",
        "named",
        "readable",
        "remove",
        "with_artifact",
        "write",
    ),
    "IncompleteResults": ("exit_code",),
    "Module": ("contents", "tables", "types_of_values"),
    "Observer": ("planned", "started"),
    "Policy": ("located", "replayed", "replays_otherwise", "without_locations"),
    "Result": ("golden_order", "key"),
    "ResultsNotWritten": ("exit_code",),
    "Run": (
        *("plan", "options", "changed", "changed_since", "goldens", "readers", "writers", "platforms"),
        *("by_cell", "by_golden", "by_reader", "by_writer", "by_cause", "by_judgement"),
    ),
    "Selection": ("as_recorded", "has_every_golden", "has_group", "named", "or_else"),
    "run_matrix": ("interpreter",),
}
"""Members of public classes, by class, and a parameter, by function, that are not public."""
