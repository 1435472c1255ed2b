"""The names that the API of `jax.export` had before jax 0.4.30, in `jax.experimental.export`."""

from __future__ import annotations

MIGRATION = (
    ("module", "jax.experimental.export", "jax.export"),
    ("what is exported", "export(f)", "export(jax.jit(f))"),
    ("platforms to export for", "export(lowering_platforms=)", "export(platforms=)"),
    ("the platform if none is named", "default_lowering_platform", "default_export_platform"),
    (
        "constraints of symbolic shapes",
        "symbolic_args_specs(symbolic_constraints=)",
        "symbolic_args_specs(constraints=)",
    ),
    ("scope of symbolic shapes", "symbolic_args_specs(symbolic_scope=)", "symbolic_args_specs(scope=)"),
    ("specs of symbolic shapes", "symbolic_args_specs(polymorphic_shapes=)", "symbolic_args_specs(shapes_specs=)"),
    ("serialize", "serialize", "Exported.serialize"),
    ("call", "call", "Exported.call"),
    ("platforms of the artifact", "Exported.lowering_platforms", "Exported.platforms"),
    (
        "calling convention of the artifact",
        "Exported.mlir_module_serialization_version",
        "Exported.calling_convention_version",
    ),
    ("whether it has global constants", "Exported.uses_shape_polymorphism", "Exported.uses_global_constants"),
    (
        "oldest calling convention",
        "minimum_supported_serialization_version",
        "minimum_supported_calling_convention_version",
    ),
    (
        "newest calling convention",
        "maximum_supported_serialization_version",
        "maximum_supported_calling_convention_version",
    ),
    ("setting of the calling convention", "jax_serialization_version", "jax_export_calling_convention_version"),
)
"""Old and new names. Each row has the thing, its name from 0.4.24 to 0.4.29, and its name since 0.4.30.

Source: the migration guide in the documentation of jax.export, and the releases themselves, in which tests find the
names. 0.4.30 has the new names and most of the old names.
"""
