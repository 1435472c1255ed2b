import re

import pytest
from forge import CUSTOM_CALL, FUNC, MODULE, RETURN, UNKNOWN, bytecode, op, region, section, varint
from stored_artifacts import DATA, FILES, NAMES, counts, jax_goldens, truth

from export_core.artifact import read, read_bytes


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_module_has_the_contents_that_jaxlib_finds(path):
    recorded = truth(path)
    for module in read(path).modules:
        assert counts(module.op_counts) == recorded["op_counts"]
        assert sorted(call.target for call in module.custom_calls for _ in range(call.count)) == recorded["targets"]
        types = {}
        for f in module.functions:
            results = f.outputs[0] if len(f.outputs) == 1 else f"({', '.join(f.outputs)})"
            types[f.name] = f"({', '.join(f.inputs)}) -> {results}"
        assert types == recorded["functions"]
        recorded = recorded.get("vjp")


@pytest.mark.skipif(not jax_goldens(), reason="no jax is installed here to take goldens from")
def test_custom_calls_found_in_jax_goldens_match_their_mlir_text():
    goldens = jax_goldens()
    assert len(goldens) >= 142
    for name, golden in goldens.items():
        found = {call.target for call in read_bytes(golden["mlir_module_serialized"], name).custom_calls}
        shown = re.findall(r"stablehlo.custom_call\s*@([^\(]+)\(", golden["mlir_module_text"])
        assert found == {target.strip('"') for target in shown}, name


def test_a_custom_call_has_its_location_and_config():
    call = read(DATA / "0.12.0.1" / "cholesky.jaxexport").custom_calls[0]
    assert (call.target, call.api_version, call.has_side_effect) == ("lapack_spotrf_ffi", 1, False)
    assert call.backend_config == {"uplo": 76}
    assert call.where == "@cholesky at cholesky"


def test_calls_in_nested_derivatives_are_found():
    calls = read(DATA / "0.12.0.1" / "cholesky.jaxexport").custom_calls
    assert {call.vjp_order for call in calls} == {0, 1}


def test_attributes_of_the_module_and_of_arguments_are_read():
    module = read(DATA / "0.12.0.1" / "symbolic.jaxexport").module
    assert module.attributes["jax.uses_shape_polymorphism"] is True
    platforms = read(DATA / "0.12.0.1" / "platforms.jaxexport").module
    assert {"jax.global_constant": "_platform_index"} in platforms.main.arg_attrs
    assert platforms.main.result_attrs == ({"jax.result_info": "result"},)


def test_reading_header_and_tables_does_not_read_operations():
    module = read(DATA / "0.12.0.1" / "cholesky.jaxexport").module
    assert (module.producer, module.stablehlo_version, module.bytecode_version) == ("StableHLO_v1.18.0", "1.18.0", 6)
    assert "vhlo.custom_call_v2" in module.op_names
    assert "contents" not in vars(module)


FUNCTION = [
    (1, UNKNOWN),
    (0, varint(17) + varint(0)),
    (0, varint(14) + varint(7)),
    (0, varint(1) + varint(0)),
    (0, varint(14) + varint(8)),
]
TYPES = [(0, varint(8) + varint(0) + varint(0))]
PROPERTIES = [varint(3) + varint(1) + varint(3) + varint(2) + varint(4)]


def _small(**more):
    body = region(op(FUNC, props=0, regions=region(op(RETURN), op(RETURN))))
    parts = {"attributes": FUNCTION, "types": TYPES, "properties": PROPERTIES, **more}
    return bytecode(op(MODULE, regions=body), **parts)


@pytest.mark.parametrize(
    "layout",
    [
        *({"order": order} for order in [(1, 3, 2, 4, 8, 0), (0, 1, 2, 3, 4, 8), (8, 4, 3, 2, 1, 0)]),
        {"align": {3: 8, 4: 16, 0: 64}},
        {"extra": (section(5, b"\x2a" * 1000), section(6, b"\x01\x03\x05"))},  # resources are stepped over
    ],
    ids=str,
)
def test_sections_may_be_in_any_order_and_aligned(layout):
    module = read_bytes(_small(**layout)).module
    assert module.num_operations == 4
    assert module.main.name == "main"


def test_nested_regions_without_their_own_section_are_walked():
    loop = op(RETURN, regions=region(op(RETURN), isolated=False))
    body = region(op(FUNC, props=0, regions=region(loop)))
    found = read_bytes(bytecode(op(MODULE, regions=body), attributes=FUNCTION, types=TYPES, properties=PROPERTIES))
    assert found.module.op_counts == {"builtin.module": 1, "vhlo.func_v1": 1, "vhlo.return_v1": 2}


def test_constants_have_sizes_and_offsets_without_a_copy():
    import tracemalloc

    blob = bytes(1 << 20)
    value = (0, varint(15) + varint(1) + varint(len(blob)) + blob)
    tensor = (0, varint(20) + varint(1) + varint(2 << 18) + varint(2))
    names = [b"vhlo", b"builtin", b"module", b"func_v1", b"return_v1", b"constant_v1", b"", b"main", b"private"]
    data = bytecode(
        op(MODULE, regions=region(op(FUNC, props=0, regions=region(op(CUSTOM_CALL, props=1))))),
        texts=names,
        attributes=[*FUNCTION, value],
        types=[*TYPES, tensor, (0, varint(4))],
        properties=[*PROPERTIES, varint(5)],
    )
    tracemalloc.start()
    (found,) = read_bytes(data).module.constants
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.type, found.nbytes, found.function) == ("tensor<262144xf32>", 1 << 20, "main")
    assert data[found.at : found.at + found.nbytes] == blob
    assert peak < 100_000
