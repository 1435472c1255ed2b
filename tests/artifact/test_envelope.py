import pytest
from stored_artifacts import DATA, FILES, NAMES, WRITERS, truth

from export_core.artifact import ArtifactError, HloSharding, NamedSharding, as_dict, read, read_bytes
from export_core.artifact.envelope.decode import MAX_DIMENSION, MAX_POWER
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import LONGEST_PATH, Aval, Tree
from export_core.artifact.envelope.formats import format_in_words
from export_core.artifact.envelope.schema import FIELDS


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_every_field_equals_what_jax_recorded_at_export(path):
    found, recorded = read(path).envelope, truth(path)
    while recorded is not None:
        assert found is not None
        for name in ("fun_name", "nr_devices", "calling_convention_version", "uses_global_constants"):
            assert getattr(found, name) == recorded[name]
        assert list(map(str, found.in_avals)) == recorded["in_avals"]
        assert list(map(str, found.out_avals)) == recorded["out_avals"]
        assert list(found.platforms) == recorded["platforms"]
        assert list(found.module_kept_var_idx) == recorded["module_kept_var_idx"]
        assert list(found.ordered_effects) == recorded["ordered_effects"]
        assert len(found.mlir_module_serialized) == recorded["module_bytes"]
        assert found.mlir_module_serialized[:4] == b"ML\xefR"
        if path.stem != "point":  # jax shows the class, the file has the name it was registered with
            assert (str(found.in_tree), str(found.out_tree)) == (recorded["in_tree"], recorded["out_tree"])
        found, recorded = found.vjp, recorded.get("vjp")
    assert found is None


@pytest.mark.parametrize(
    ("writer", "formats", "wire"),
    [
        ("0.4.30", (2, 4), 2),
        ("0.6.2", (2, 4), 2),
        ("0.8.1", (2, 4), 2),
        ("0.9.2", (5, 9), 3),
        ("0.12.0.1", (12, 12), 12),
    ],
)
def test_fields_in_an_envelope_decide_its_format_not_its_version(writer, formats, wire):
    found = read(DATA / writer / "symbolic.jaxexport").envelope
    assert found.format_range == formats
    assert found.serialization_version == wire


def test_a_field_of_a_newer_format_excludes_older_formats():
    assert read(DATA / "0.6.2" / "key.jaxexport").envelope.format_range == (4, 4)
    assert read(DATA / "0.6.2" / "point.jaxexport").envelope.format_range == (3, 4)
    assert read(DATA / "0.9.2" / "sharded.jaxexport").envelope.format == 8


def test_nested_derivatives_are_read_to_their_last_order():
    found = read(DATA / "0.12.0.1" / "mlp.jaxexport")
    assert found.envelope.vjp_order == 2
    assert len(found.modules) == 3
    assert [len(e.in_avals) for e in (found.envelope, found.envelope.vjp, found.envelope.vjp.vjp)] == [2, 3, 5]


@pytest.mark.parametrize("writer", WRITERS)
def test_symbolic_dimensions_are_read_as_expressions(writer):
    found = read(DATA / writer / "symbolic.jaxexport").envelope
    assert found.in_avals[0].shape == ("b", 4)
    assert found.out_avals[0].shape == ("b", "b")


def test_hlo_and_named_shardings_are_distinguished():
    old = read(DATA / "0.8.1" / "sharded.jaxexport").envelope.in_shardings[0]
    new = read(DATA / "0.12.0.1" / "sharded.jaxexport").envelope.in_shardings[0]
    assert isinstance(old, HloSharding)
    assert isinstance(new, NamedSharding)
    assert (new.mesh.axis_sizes, new.mesh.axis_names, new.mesh.axis_types) == ((2,), ("x",), ("Auto",))
    assert str(new.spec) == "PartitionSpec('x', None)"
    assert new.mesh.abstract_device.platform == "cpu"


def test_a_custom_node_keeps_its_registered_name():
    tree = read(DATA / "0.12.0.1" / "point.jaxexport").envelope.in_tree
    assert tree.children[0].children[0].custom_name == "tests.Point"
    assert str(tree) == "PyTreeDef(((CustomNode(tests.Point, [*, *]),), {}))"
    assert tree.num_leaves == 2


def test_trees_are_printed_as_jax_prints_them():
    leaf = Tree("leaf")
    tree = Tree("dict", (Tree("tuple", (leaf,)), Tree("list", (leaf, Tree("none")))), ("a", "b"))
    assert str(tree) == "PyTreeDef({'a': (*,), 'b': [*, None]})"
    assert str(Aval("float32", ("b", 4))) == "float32[b,4]"


def test_a_field_of_a_future_schema_is_reported(monkeypatch):
    written = encode(read(DATA / "0.12.0.1" / "symbolic.jaxexport").envelope._replace(serialization_version=13))
    monkeypatch.setitem(FIELDS, "Exported", FIELDS["Exported"][:26])
    found = read_bytes(written).envelope
    assert [(f.table, f.index) for f in found.unknown_fields] == [("Exported", 26)]
    assert found.format == 13
    with pytest.raises(ArtifactError, match=r"Exported\[26\]"):
        encode(found)


def test_a_bare_module_has_no_envelope():
    whole = read(DATA / "0.12.0.1" / "cholesky.jaxexport")
    bare = read_bytes(whole.envelope.mlir_module_serialized, "bare")
    assert bare.envelope is None
    assert bare.module.op_counts == whole.module.op_counts
    assert len(bare.sha256) == 64


def test_an_artifact_can_be_written_as_json():
    import json

    found = read(DATA / "0.12.0.1" / "sharded.jaxexport")
    recorded = json.loads(json.dumps(as_dict(found.envelope)))
    assert recorded["format"] == 12
    assert recorded["in_shardings"][0]["mesh"]["axis_names"] == ["x"]
    assert json.dumps(as_dict(found.module.functions))


def test_a_long_tree_path_is_cut_and_names_may_be_missing():
    leaf = Tree("leaf")
    deep = Tree("tuple", (leaf, leaf), names=("only one",))
    for _ in range(5):
        deep = Tree("dict", (deep,), names=("long" * 1000,))
    assert [len(path) for path in deep.paths("result")] == [LONGEST_PATH] * 2
    assert Tree("list", (leaf, Tree("dict", (leaf,), ("loss",)))).paths("result") == ["result[0]", "result[1]['loss']"]


def with_dimension(text: str):
    """Return an artifact whose argument has this symbolic dimension."""
    envelope = read(DATA / "0.12.0.1" / "symbolic.jaxexport").envelope
    return encode(envelope._replace(vjp=None, in_avals=(Aval("float32", (text,)),)))


@pytest.mark.parametrize("what", ["power", "powers", "long"])
def test_a_dimension_that_jax_parses_slowly_is_refused(what):
    """A dimension at the limit is read, and one above is refused. jax itself is never called."""

    def dimension(more: int) -> str:
        return {
            "power": f"b^{MAX_POWER + more}",
            "powers": f"b^2*c^{MAX_POWER + more - 2}",
            "long": "b" * (MAX_DIMENSION + more),
        }[what]

    (aval,) = read_bytes(with_dimension(dimension(0))).envelope.in_avals
    assert aval.shape == (dimension(0),)
    with pytest.raises(ArtifactError, match="a symbolic dimension that jax reads in a second"):
        read_bytes(with_dimension(dimension(1)))


@pytest.mark.parametrize(("formats", "text"), [((12, 12), "12"), ((10, 11), "10 or 11"), ((6, 8), "6, 7 or 8")])
def test_an_envelope_that_fits_several_formats_names_each(formats, text):
    assert format_in_words(*formats) == text
