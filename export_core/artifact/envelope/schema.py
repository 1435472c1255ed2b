"""The fields of an artifact's tables in wire order, and their enums: schema/exported.fbs as Python data."""

# Field names by table, in wire order: a field's index here is its index in the vtable. schema/exported.fbs says
# since when and until when each is written, and a test compares the names.
FIELDS: dict[str, tuple[str, ...]] = {
    "Exported": (
        "serialization_version", "function_name", "in_tree", "in_avals", "out_tree", "out_avals", "nr_devices_short",
        "in_shardings", "out_shardings", "platforms", "ordered_effects", "unordered_effects", "disabled_checks",
        "mlir_module_serialized", "calling_convention_version", "module_kept_var_idx", "uses_global_constants", "vjp",
        "nr_devices", "unique_avals", "unique_abstract_meshes", "unique_named_shardings", "in_avals_idxs",
        "out_avals_idxs",
        "in_shardings_idxs", "out_shardings_idxs", "jax_version",
    ),
    "PyTreeDef": ("kind", "children", "children_names", "custom_name", "custom_auxdata"),
    "AbstractValue": ("kind", "shape", "dtype", "memory_space"),
    "Sharding": ("kind", "hlo_sharding_proto", "named_sharding"),
    "NamedSharding": ("mesh", "spec", "memory_kind", "abstract_mesh_idx"),
    "AbstractMesh": ("axis_sizes", "axis_names", "axis_types", "abstract_device"),
    "AbstractDevice": ("device_kind", "num_cores", "platform"),
    "PartitionSpec": ("partitions", "reduced", "unreduced"),
    "PartitionSpecOneAxis": ("axes",),
    "Effect": ("type_name",),
    "DisabledSafetyCheck": ("kind", "custom_call_target"),
}  # fmt: skip

# Positions in Exported, by name for the reader.
(
    VERSION, FUN_NAME, IN_TREE, IN_AVALS, OUT_TREE, OUT_AVALS, NR_DEVICES_SHORT, IN_SHARDINGS, OUT_SHARDINGS, PLATFORMS,
    ORDERED_EFFECTS, UNORDERED_EFFECTS, DISABLED_CHECKS, MODULE, CALLING_CONVENTION, KEPT_VARS, GLOBAL_CONSTANTS, VJP,
    NR_DEVICES, UNIQUE_AVALS, UNIQUE_MESHES, UNIQUE_SHARDINGS, IN_AVALS_IDXS, OUT_AVALS_IDXS, IN_SHARDINGS_IDXS,
    OUT_SHARDINGS_IDXS, JAX_VERSION,
) = range(27)  # fmt: skip

TREE_KINDS = ("leaf", "none", "tuple", "list", "dict", "custom")

# The wire's dtype ids as jax prints the dtypes. 22 since format 2, 23 to 26 without a new format, 27 to 29 since
# format 4.
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "bfloat16", "int4", "uint4", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float0", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn",
    "key<fry>", "key<rbg>", "key<urbg>",
)  # fmt: skip

MEMORY_SPACES = (None, "device", "host", "any")  # 0 is what every format before 5 writes: nothing
AXIS_TYPES = ("Missing", "Auto", "Explicit", "Manual")
CHECK_KINDS = ("platform", "custom_call", "shape_assertions")
