"""A golden.yaml is read with the values that were written, or refused."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import manifest, writer

from export_core.base.platforms import PLATFORMS
from export_core.base.tolerances import COMPARATORS, FLOATS
from export_core.goldens import Check, Comparison, GoldenError, Manifest, Options, Writer
from export_core.goldens.manifest import FORMAT, Signature
from export_core.goldens.manifest_file import dump_manifest, load_manifest

OLD_GOLDENS = Path(__file__).parents[2] / "studies" / "every_release" / "golden"

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
NAMES = st.from_regex(r"[A-Za-z0-9_=\[\],+-][A-Za-z0-9_.=\[\],+-]{0,20}[A-Za-z0-9]", fullmatch=True)
VERSIONS = st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}(\.dev[0-9]+)?(\+[a-z0-9.]+)?", fullmatch=True)
AMOUNTS = st.none() | st.floats(0, 1) | st.dictionaries(st.sampled_from(FLOATS), st.floats(0, 1), min_size=1)
MANIFESTS = st.builds(
    Manifest,
    case=NAMES,
    test=TEXT,
    name=st.none() | TEXT,
    writer=st.builds(
        Writer, jax=VERSIONS, jaxlib=VERSIONS, built=st.dates(), python=TEXT, platform=st.sampled_from(PLATFORMS)
    ),
    flags=st.dictionaries(TEXT, st.none() | st.booleans() | st.integers(1 - 2**63, 2**63 - 1) | TEXT, max_size=4),
    options=st.builds(
        Options,
        platforms=st.lists(st.sampled_from(PLATFORMS), max_size=3).map(tuple),
        allow=st.dictionaries(TEXT, TEXT, max_size=3),
    ),
    comparison=st.builds(
        Comparison,
        compare=st.sampled_from(COMPARATORS) | st.just("module.inner:function"),
        rtol=AMOUNTS,
        atol=st.none() | st.floats(0, 1e-300),
        ulp=st.none() | st.integers(0, 2**63),
    ),
    signature=st.builds(
        Signature, inputs=st.lists(TEXT, max_size=3).map(tuple), outputs=st.just(()), in_tree=TEXT, out_tree=TEXT
    ),
    custom_calls=st.lists(TEXT, max_size=3).map(tuple),
    files=st.dictionaries(NAMES, st.binary(min_size=32, max_size=32).map(bytes.hex), max_size=3),
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=MANIFESTS)
def test_any_manifest_reads_as_it_was_written(tmp_path, made):
    path = tmp_path / "golden.yaml"
    path.write_bytes(dump_manifest(made))
    assert load_manifest(path) == made
    assert dump_manifest(load_manifest(path)) == dump_manifest(made)


@pytest.mark.parametrize(
    "text", ["yes", "null", "1e3", "2026-10-20", "0x1f", "=", "<<", "", " ", "a: b", "- x", "\u2028", "\x85"]
)
def test_strings_with_a_meaning_in_yaml_stay_strings(tmp_path, text):
    path = tmp_path / "golden.yaml"
    made = manifest(name=text, flags={text: text}, custom_calls=(text,))
    path.write_bytes(dump_manifest(made))
    assert load_manifest(path) == made


def test_a_manifest_begins_with_its_format():
    assert dump_manifest(manifest()).decode().splitlines()[0] == f"format: {FORMAT}"


def changed(tmp_path, old: str, new: str):
    path = tmp_path / "golden.yaml"
    text = dump_manifest(manifest()).decode()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def test_a_future_format_is_refused_with_advice_to_upgrade(tmp_path):
    path = changed(tmp_path, f"format: {FORMAT}", f"format: {FORMAT + 1}\nsomething_new: 1")
    with pytest.raises(GoldenError, match=f"manifest format {FORMAT + 1}; .* reads up to {FORMAT}. Upgrade"):
        load_manifest(path)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("case:", "sace: 1\ncase:", "`sace`: unknown key"),
        ("  jaxlib:", "  jaxlab: 1\n  jaxlib:", r"`writer\.jaxlab`: unknown key"),
        ("case: tests.test_a.test_f\n", "", "expected the key `case`, found none"),
        ("built: 2026-10-20", "built: soon", r"`writer\.built`"),
        ("format: 1", "format: one", "`format`: expected a whole number, found text"),
        ("format: 1", "{[", "while parsing"),
        ("format: 1\n", "", "expected the key `format`, found none"),
        ("custom_calls: []", "custom_calls: none", "custom_calls"),
        ("rtol: null", "rtol: 1.0e308", r"`comparison\.rtol`: expected a number or a table or nothing, found text"),
    ],
)
def test_an_invalid_manifest_is_refused_with_its_field(tmp_path, old, new, problem):
    path = changed(tmp_path, old, new)
    with pytest.raises(GoldenError, match=rf"^{path}: not a golden's manifest: .*{problem}.*\. Restore") as raised:
        load_manifest(path)
    assert "\n" not in str(raised.value)


def test_a_merge_conflict_is_named_with_its_line(tmp_path):
    path = changed(tmp_path, "case:", "<<<<<<< HEAD\nsame: 1\n=======\nsame: 2\n>>>>>>> branch\ncase:")
    line = path.read_text(encoding="utf-8").splitlines().index("<<<<<<< HEAD") + 1
    with pytest.raises(GoldenError) as raised:
        load_manifest(path)
    found = f"{path}: not a golden's manifest: found a merge conflict in line {line}. Restore the golden"
    assert str(raised.value).startswith(found)


def test_bad_yaml_is_reported_with_its_line(tmp_path):
    path = tmp_path / "golden.yaml"
    for data, place in ((b"a: 1\nb\nc: 2\n", " in line 2 "), (b"a: \x00", " at position ")):
        path.write_bytes(data)
        with pytest.raises(GoldenError, match=place) as raised:
            load_manifest(path)
        assert "byte string" not in str(raised.value)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"\x00", b"- 1", b"a\n  b: [", b"\x80abc"])
def test_a_golden_yaml_that_is_not_a_manifest_is_refused(tmp_path, data):
    path = tmp_path / "golden.yaml"
    path.write_bytes(data)
    with pytest.raises(GoldenError, match="not a golden's manifest"):
        load_manifest(path)


def test_a_missing_or_unreadable_manifest_is_an_error(tmp_path):
    path = tmp_path / "golden.yaml"
    with pytest.raises(GoldenError, match=r"golden\.yaml: expected a golden's manifest, found no such file\. Restore"):
        load_manifest(path)
    path.mkdir()
    with pytest.raises(GoldenError, match=r"golden\.yaml: cannot read this manifest: expected a regular file"):
        load_manifest(path)


def test_a_writer_id_names_jax_only_if_its_version_differs():
    assert writer("0.9.2").id == "0.9.2-cpu"
    assert writer("0.11.2", "cuda").id == "0.11.2-jax0.12.0.1-cuda"


def test_a_0_4_writer_records_the_xla_extension_version():
    case = "tests.compat.test_safety_checks.test_without_shape_assertions"
    old = load_manifest(OLD_GOLDENS / case / "0.4.24-jax0.4.27-cpu" / "golden.yaml").writer
    assert (old.xla_extension_version, old.jaxlib_extension_version) == (237, None)
    assert old.id == "0.4.24-jax0.4.27-cpu", "not a part of the writer's name"


def test_a_manifest_has_only_the_listed_fields_and_no_time():
    assert set(msgspec.to_builtins(manifest())) == {
        *("case", "test", "name", "writer", "flags", "options", "comparison", "signature", "custom_calls", "files"),
        *("checks", "out_shardings", "jaxpr", "packages", "factors", "flattened", "inputs_made", "inputs_rule"),
        *("origin", "instruction_set", "noise", "converted_from", "reproducible", "format"),
    }
    assert set(msgspec.to_builtins(manifest())["writer"]) == {"jax", "jaxlib", "built", "python", "platform"}


def test_a_refusal_is_not_found_in_source_code_quoted_by_an_error():
    check = Check("refused1", refused="b >= 2")
    message = (
        "Error refining shapes.\nx.py:3:4: error: does not fit\n    f(x, match='b >= 2')\n    ^\n"
        "x.py:5:1: note: called from\nf()\n^\n"
    )
    assert not check.expects(message)
    assert check.expects(message.replace("does not fit", "the constraint b >= 2"))
    assert check.expects("ValueError: Input shapes do not match b >= 2. Expected")
