import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_artifacts import DATA, FILES, NAMES

from export_core.artifact import Aval, DisabledCheck, Tree, read, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.schema import FIELDS
from studies.artifact.taken_apart import take_apart

FLATC = str(Path(sys.executable).with_name("flatc"))
SCHEMA = Path(__file__).parents[2] / "schema" / "exported.fbs"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_real_envelope_is_written_back_unchanged(path):
    before = read(path).envelope
    assert read_bytes(encode(before)).envelope == before


def test_each_field_of_an_envelope_is_written_back():
    base = read(DATA / "0.12.0.1" / "sharded.jaxexport").envelope
    before = base._replace(
        ordered_effects=("tests.Ordered", "tests.OtherOrdered"),
        unordered_effects=("tests.Unordered",),
        disabled_checks=(DisabledCheck("platform"), DisabledCheck("custom_call", "a_target")),
        uses_global_constants=True,
        vjp=base,
    )
    empty = [name for name in before._fields if not getattr(before, name)]
    assert empty == ["unknown_fields"], "what is empty here could be lost"
    # jax leaves out a field that is zero, and no derivative of this artifact has another.
    slots = {*base.slots, "uses_global_constants", "vjp"}
    after = read_bytes(encode(before, slots)).envelope
    assert after._replace(slots=base.slots, format_range=base.format_range, vjp=base) == before
    assert after.vjp._replace(slots=base.slots, format_range=base.format_range) == base


def test_an_envelope_is_written_with_chosen_fields():
    before = read(DATA / "0.12.0.1" / "sharded.jaxexport").envelope
    after = read_bytes(encode(before, {*before.slots, "nr_devices_short"} - {"jax_version"})).envelope
    assert "nr_devices_short" in after.slots
    assert after.jax_version is None
    assert after.in_shardings == before.in_shardings


names = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
avals = st.builds(
    Aval,
    st.sampled_from(["float32", "bfloat16", "key<fry>", "float4_e2m1fn", "int4"]),
    st.lists(st.integers(0, 9) | st.sampled_from(["b", "2*b + 1"]), max_size=3).map(tuple),
    st.sampled_from([None, "device", "host"]),
)
trees = st.recursive(
    st.just(Tree("leaf")) | st.just(Tree("none")),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda c: Tree("tuple", tuple(c)))
        | st.lists(inner, max_size=3).map(lambda c: Tree("list", tuple(c)))
        | st.dictionaries(names, inner, max_size=3).map(lambda d: Tree("dict", tuple(d.values()), tuple(d)))
        | st.builds(lambda c, n, b: Tree("custom", (c,), (), n, b), inner, names, st.binary(max_size=9))
    ),
    max_leaves=8,
)


@given(tree=trees, inputs=st.lists(avals, max_size=4), name=names, target=names)
def test_any_envelope_survives_being_written_and_read(tree, inputs, name, target):
    base = read(DATA / "0.12.0.1" / "platforms.jaxexport").envelope
    changed = base._replace(
        fun_name=name,
        in_tree=tree,
        in_avals=tuple(inputs),
        disabled_checks=(DisabledCheck("custom_call", target), DisabledCheck("platform")),
        module_kept_var_idx=tuple(range(len(inputs))),
        vjp=base,
    )
    found = read_bytes(encode(changed)).envelope
    assert found._replace(slots=changed.slots) == changed


def test_the_schema_file_has_the_fields_of_the_reader():
    text = re.sub(r"//.*", "", SCHEMA.read_text())
    tables = re.findall(r"table (\w+) \{(.*?)\}", text, re.DOTALL)
    assert {name: tuple(re.findall(r"(\w+)\s*:", body)) for name, body in tables} == FIELDS


def test_fields_are_only_added_at_the_end_of_their_table():
    for body in re.findall(r"table \w+ \{(.*?)\n\}", SCHEMA.read_text(), re.DOTALL):
        since = [int(number) for number in re.findall(r"// since (\d+)", body)]
        assert len(since) == len(body.strip().splitlines())
        assert since == sorted(since)


@pytest.mark.skipif(shutil.which(FLATC) is None, reason="no flatc here: it comes with the group schema")
@pytest.mark.parametrize("newest", range(1, 12))
def test_the_schema_evolves_by_the_rules_of_flatbuffers(newest, tmp_path):
    lines = SCHEMA.read_text().splitlines()
    fields = [line for line in lines if line.startswith("  ")]
    older = [
        line
        for line in lines
        if line not in fields or not (since := re.search("// since ([0-9]+)", line)) or int(since[1]) <= newest
    ]
    assert len(older) < len(lines)
    (tmp_path / "older.fbs").write_text("\n".join(older))
    done = subprocess.run(
        [FLATC, "--conform", str(tmp_path / "older.fbs"), str(SCHEMA)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_parsed_module_is_encoded_to_the_same_bytes(path):
    for module in read(path).modules:
        data = module.serialized()
        assert take_apart(data).encode() == data
