"""The schemas in schema/ say what the types say, and real data follow them."""

import functools
import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
import referencing
import yaml
from making import day, manifest, result, summarize

from export_core.goldens.manifest_file import dump_manifest
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.policy import FILE, CustomCallChange, Policy, load_policy
from tools.schemas import KINDS, schema, written

ROOT = Path(__file__).parents[2]


def plain(value: object) -> object:
    """As JSON has it: dates are text."""
    return json.loads(json.dumps(value, default=str))


@functools.cache
def checker_of(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(name), format_checker=jsonschema.FormatChecker())


def valid(name: str, value: object) -> None:
    checker_of(name).validate(value)


@pytest.mark.parametrize("name", KINDS)
def test_the_committed_schema_is_what_the_types_say(name):
    path = ROOT / "schema" / f"{name}.schema.json"
    assert path.read_bytes() == written(name), "run `python -m tools.schemas`"
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_bytes()))
    assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema(name)["$id"] == f"urn:jaxexport:schema:{name}"
    assert schema(name)["title"]


def test_there_is_no_schema_that_nothing_writes():
    written_files = {path.name for path in (ROOT / "schema").glob("*.schema.json")}
    assert written_files == {f"{name}.schema.json" for name in KINDS}


def test_the_entry_for_schemastore_names_the_policy_and_its_schema():
    entry = json.loads((ROOT / "schema" / "schemastore.json").read_bytes())
    assert {*entry} == {"name", "description", "fileMatch", "url"}
    assert entry["fileMatch"] == [FILE]
    assert (ROOT / entry["url"].partition("/main/")[2]).samefile(ROOT / "schema" / "policy.schema.json")


def test_another_schema_can_refer_to_one_of_ours_by_its_id():
    registry = referencing.Registry().with_resources(
        (found["$id"], referencing.Resource.from_contents(found)) for found in map(schema, KINDS)
    )
    lines = {"type": "array", "items": {"$ref": "urn:jaxexport:schema:result"}}
    checker = jsonschema.Draft202012Validator(lines, registry=registry)
    checker.validate([plain(msgspec.to_builtins(result()))])
    assert not checker.is_valid([{"case": "t.f"}])


def test_a_manifest_as_it_is_written_is_valid():
    valid("manifest", plain(yaml.safe_load(dump_manifest(manifest()))))


def test_the_goldens_of_this_project_are_valid():
    manifests = sorted((ROOT / "golden").glob("*/*/golden.yaml"))
    assert manifests
    for path in manifests:
        valid("manifest", plain(yaml.load(path.read_bytes(), yaml.CSafeLoader)))


def test_this_projects_policy_and_one_with_everything_are_valid():
    examples = [ROOT / "tests" / "policy" / "everything.yaml", *ROOT.glob("tests/features/*/policy.yaml")]
    for path in (ROOT / FILE, *examples):
        load_policy(path)
        valid("policy", plain(yaml.safe_load(path.read_bytes())))
    keys = [key for path in examples for key in yaml.safe_load(path.read_bytes())]
    assert sorted(keys) == sorted(Policy.__struct_fields__)
    valid("policy", {})


@pytest.mark.parametrize("name", KINDS)
def test_every_field_has_a_description(name):
    tables = schema(name)["$defs"]
    fields = {(table, key): field for table in tables for key, field in tables[table].get("properties", {}).items()}
    assert fields
    assert [key for key, field in fields.items() if not field.get("description")] == []


def test_a_policy_has_no_key_for_its_place():
    tables = schema("policy")["$defs"]
    assert all("place" not in table["properties"] for table in tables.values()), "found when a policy is read"


def test_results_and_summaries_as_they_are_written_are_valid():
    results = [result(), result(Verdict.CRASH, Judgement.BROKEN, case="b", signal=11, max_abs_error=0.5)]
    for each in results:
        valid("result", json.loads(msgspec.json.encode(each)))
    change = CustomCallChange("t", "u", day("2026-10-01"), None, "r", "o", "i")
    policy = Policy(custom_call_changes=(change,))
    made = summarize(results, planned=2, policy=policy, as_of=day("2026-11-21"), selection={"whole": True}, seconds=1)
    valid("summary", json.loads(msgspec.json.encode(made)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy", {"widnows": {}}),
        ("policy", {"windows": {"backward": "long"}}),
        ("manifest", {}),
        ("result", {}),
        ("summary", {}),
    ],
)
def test_what_is_none_of_them_is_not_valid(name, value):
    with pytest.raises(jsonschema.ValidationError):
        valid(name, value)


def test_a_verdict_that_nobody_knows_is_not_valid():
    with pytest.raises(jsonschema.ValidationError, match="'passed' is not one of"):
        valid("result", {**json.loads(msgspec.json.encode(result())), "verdict": "passed"})
