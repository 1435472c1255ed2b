"""The reference and the schemas match the code, and each file that house.md and CONTRIBUTING.md name exists."""

import functools
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import jsonschema
import msgspec
import pytest
import referencing
import yaml
from making import day, manifest, result, summarize

from export_core.cli.app import jaxexport
from export_core.features import FEATURES
from export_core.goldens.manifest_file import dump_manifest
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.policy import Policy, load_policy
from export_core.policy.entries import CustomCallChange
from export_core.policy.load import FILE
from export_core.policy.model import policy_schema_file
from export_core.releases.index import VARIABLES
from export_core.report.wording import OTHER_POLICY, OUTDATED_RUN, UNREAD_POLICY
from tools.reference import PAGES, PARTS, pages, parts_of, renewed
from tools.reference.commands import common_options, every_command
from tools.reference.policy import EXAMPLES, key, keys
from tools.reference.variables import READ
from tools.schemas import KINDS, schema, written

ROOT = Path(__file__).parents[2]
PACKAGES = ("export_core", "pytest_jaxexport")


@pytest.mark.parametrize("kind", [OTHER_POLICY, OUTDATED_RUN, UNREAD_POLICY], ids=lambda kind: kind.title)
def test_a_page_explains_each_doubt_in_a_headline(kind):
    assert f"`{kind.title}`" in (ROOT / "docs" / "reference" / "reports.md").read_text()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_reference_page_matches_the_code(page):
    text = page.read_text(encoding="utf-8")
    assert text == renewed(text), "run `python -m tools.reference`"


def test_every_generated_part_is_on_exactly_one_page():
    assert Counter(name for page in pages() for name in parts_of(page.read_text(encoding="utf-8"))) == Counter([*PARTS])


def test_judgements_of_verdicts_are_those_without_policy():
    (row,) = (line for line in PARTS["verdicts"]().splitlines() if line.startswith("| `not_run`"))
    assert row.endswith("| incomplete | incomplete |")


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("docs/how-to/choose-tolerances.md", "run the matrix again: `jaxexport judge` refuses changed rules"),
        ("docs/reference/policy.md", "A change needs a new `jaxexport matrix`"),
        (
            "export_core/cli/judge.py",
            "tolerances, `numbers`, comparators, packages of readers or variables, is refused",
        ),
    ],
)
def test_the_page_says_that_a_new_rule_needs_a_new_run(page, says):
    assert says in " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_every_schema_is_on_one_page():
    linked = [
        name
        for page in ("files", "json-output", "policy")
        for name in set(re.findall(r"\(\.\./\.\./schema/(\w+)\.schema\.json\)", (PAGES / f"{page}.md").read_text()))
    ]
    assert Counter(linked) == Counter([*KINDS])


def test_the_reference_describes_each_type_in_one_place():
    headings = [
        name
        for page in pages()
        if page.stem != "api"
        for name in re.findall(r"^#{3,4} ([A-Z][a-z]+[A-Z]\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert {"WriterOf", "JaxlibRelease"} <= set(headings)
    assert [name for name, times in Counter(headings).items() if times > 1] == []


def test_an_option_of_several_commands_is_described_once():
    lines = re.findall(r"^- `-.*", common_options() + every_command(), re.MULTILINE)
    assert [line for line, times in Counter(lines).items() if times > 1] == []


def test_renewing_a_page_replaces_only_its_generated_part():
    text = "by hand\n<!-- from the code: exit codes -->\nold\n<!-- end -->\nby hand\n"
    assert "\nold\n" not in renewed(text)
    assert renewed(text).startswith("by hand\n")
    assert "Every promise is kept." in renewed(text)


def test_every_command_has_a_section():
    def paths(group: click.Group, path: str) -> Iterator[str]:
        for name, command in group.commands.items():
            if isinstance(command, click.Group):
                yield from paths(command, f"{path} {name}")
            else:
                yield f"{path} {name}"

    headings = re.findall(r"^### (jaxexport .*)$", every_command(), re.MULTILINE)
    assert sorted(headings) == sorted(paths(jaxexport, "jaxexport"))


def test_every_key_of_a_policy_has_an_example():
    examples = re.findall(r"```yaml\n(.*?)```", "".join(map(key, keys())), re.DOTALL)
    comments_and_spaces = re.compile(r"^#.*\n|\s+", re.MULTILINE)
    written = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    assert sorted(re.sub(r"\s+", "", "".join(examples))) == sorted(comments_and_spaces.sub("", written))


def test_every_environment_variable_the_code_reads_is_documented():
    found = set(VARIABLES)
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    # The variables of a runtime's worker are set by its YAML file, and by no user.
    for path in (path for path in files if path.parent.name != "runtimes"):
        code = path.read_text(encoding="utf-8")
        found |= set(re.findall(r"environ(?:ment)?(?:\.get\(|\[)[\"']([A-Z][A-Z0-9_]+)", code))
        for names in re.findall(r"for name in (\([^)]*\)) if name in (?:os\.)?environ\b", code):
            found |= set(re.findall(r"\"(\w+)\"", names))
    assert {name for names in READ for name in names} == found


HOUSE = ROOT / "docs" / "explanation" / "house.md"


@pytest.mark.parametrize("page", [HOUSE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_each_path_that_a_page_names_exists(page):
    names = re.findall(r"`(\w[\w./]+(?:\.py|\.css|\.yaml|\.md|/))`", page.read_text(encoding="utf-8"))
    assert len(names) > 15
    assert [name for name in names if not any((root / name).exists() for root in (ROOT, ROOT / "export_core"))] == []


def test_each_folder_and_each_feature_is_in_house_md():
    text = HOUSE.read_text(encoding="utf-8")
    rooms = [path.name for path in (ROOT / "export_core").iterdir() if (path / "__init__.py").exists()]
    assert [room for room in rooms if not re.search(rf"^ {{4}}.*\b{room}/", text, re.MULTILINE)] == []
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [*FEATURES]


# --- schemas ----------------------------------------------------------------------------------------------------------


RESULT = json.loads(msgspec.json.encode(result()))


def plain(value: object) -> object:
    """Return a value as JSON has it, with dates as text."""
    return json.loads(json.dumps(value, default=str))


@functools.cache
def checker_of(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(name), format_checker=jsonschema.FormatChecker())


def valid(name: str, value: object) -> None:
    checker_of(name).validate(value)


@pytest.mark.parametrize("name", KINDS)
def test_a_schema_is_current_and_describes_each_field(name):
    path = ROOT / "schema" / f"{name}.schema.json"
    assert path.read_bytes() == written(name), "run `python -m tools.schemas`"
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_bytes()))
    assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema(name)["$id"] == f"urn:jaxexport:schema:{name}"
    assert schema(name)["title"]
    tables = schema(name)["$defs"]
    fields = {(table, key): field for table in tables for key, field in tables[table].get("properties", {}).items()}
    assert fields
    assert [key for key, field in fields.items() if not field.get("description")] == []


def test_the_printed_schema_equals_the_committed_file():
    assert policy_schema_file() == (ROOT / "schema" / "policy.schema.json").read_bytes()


def test_every_schema_file_is_generated():
    written_files = {path.name for path in (ROOT / "schema").glob("*.schema.json")}
    assert written_files == {f"{name}.schema.json" for name in KINDS}


def test_the_schemastore_entry_names_file_and_schema():
    entry = json.loads((ROOT / "schema" / "schemastore.json").read_bytes())
    assert {*entry} == {"name", "description", "fileMatch", "url"}
    assert entry["fileMatch"] == [FILE]
    assert (ROOT / entry["url"].rpartition("/main/")[2]).samefile(ROOT / "schema" / "policy.schema.json")


def test_another_schema_can_refer_to_our_schema_by_its_id():
    registry = referencing.Registry().with_resources(
        (found["$id"], referencing.Resource.from_contents(found)) for found in map(schema, KINDS)
    )
    lines = {"type": "array", "items": {"$ref": "urn:jaxexport:schema:result"}}
    checker = jsonschema.Draft202012Validator(lines, registry=registry)
    checker.validate([RESULT])
    assert not checker.is_valid([{"case": "t.f"}])


def test_manifests_of_this_project_follow_the_schema():
    manifests = sorted((ROOT / "golden").glob("*/*/golden.yaml"))
    assert manifests
    for text in (dump_manifest(manifest()), *(path.read_bytes() for path in manifests)):
        valid("manifest", plain(yaml.load(text, yaml.CSafeLoader)))


def test_this_projects_policy_and_examples_of_every_key_are_valid():
    examples = [ROOT / "tests" / "policy" / "everything.yaml", *ROOT.glob("tests/features/*/policy.yaml")]
    for path in (ROOT / FILE, *examples):
        load_policy(path)
        valid("policy", plain(yaml.safe_load(path.read_bytes())))
    given = [name for path in examples for name in yaml.safe_load(path.read_bytes())]
    assert sorted(given) == sorted(Policy.__struct_fields__)
    valid("policy", {})


def test_the_policy_schema_omits_the_internal_field_place():
    tables = schema("policy")["$defs"]
    assert all("place" not in table["properties"] for table in tables.values()), "found when a policy is read"


def test_written_results_and_summaries_are_valid():
    results = [result(), result(Verdict.CRASH, Judgement.BROKEN, case="b", signal=11, max_abs_error=0.5)]
    for each in results:
        valid("result", json.loads(msgspec.json.encode(each)))
    change = CustomCallChange("t", "u", day("2026-10-01"), None, "r", "o", "i")
    policy = Policy(custom_call_changes=(change,))
    made = summarize(results, planned=2, policy=policy, as_of=day("2026-11-21"), selection={"whole": True}, seconds=1)
    valid("summary", json.loads(msgspec.json.encode(made)))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("policy", {"widnows": {}}, "'widnows' was unexpected"),
        ("policy", {"windows": {"backward": "long"}}, "'long' "),
        ("manifest", {}, "is a required property"),
        ("result", {}, "is a required property"),
        ("result", {**RESULT, "verdict": "passed"}, "'passed' is not one of"),
        ("summary", {}, "is a required property"),
    ],
)
def test_an_invalid_file_is_refused_by_its_schema(name, value, message):
    with pytest.raises(jsonschema.ValidationError, match=message):
        valid(name, value)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial/4-report.md"])
def test_pages_for_newcomers_have_the_words_kept_broken_and_owed(page):
    """A newcomer reads *owed* there before a matrix prints it: such a cell fails a run without a broken promise."""
    text = (ROOT / page).read_text(encoding="utf-8")
    words = (Judgement.KEPT, Judgement.BONUS, Judgement.BROKEN, Judgement.OUTSIDE, Judgement.OWED)
    assert [str(word) for word in words if not re.search(rf"(\*\*|\| ){word}\b", text)] == []
