"""The entries of the knowledge base: each is complete, has a range and a source, and is compiled as written."""

import re
from pathlib import Path

import msgspec
import pytest
from making import ARTIFACTS

from export_core.artifact import read
from export_core.knowledge.concerns import HOLDS, About, is_concerned
from export_core.knowledge.knowledge_base import FILE
from export_core.policy.known_issues import Concerns, Fixture, shipped_issues
from export_core.releases import load_calendar
from tools.knowledge import GOLDENS, lacking, mistakes, written

ROOT = Path(__file__).parents[2]


def test_shipped_entries_have_range_stage_source_and_day():
    assert [*mistakes()] == []


LAPACK = next(issue for issue in shipped_issues() if issue.id == "lapack-cold-process")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"mended_in": ""}, "a range of releases"),
        ({"stage": ""}, "`stage`"),
        ({"issue": "", "study": "", "mended_in": "0.10.0"}, "a source"),
        ({"measured": None}, "the day on which it was measured"),
        ({"fixture": None}, "`fixture`"),
        ({"fixture": Fixture("case/writer")}, "`why_none`"),
        ({"issue": ""}, "no `concerned` artifact, which ends other software"),
        ({"mended_in": "", "any_reader": "Each release."}, "no `concerned` artifact, which ends other software"),
    ],
)
def test_an_entry_without_a_required_field_is_refused(changes, expected):
    found = " ".join(lacking(msgspec.structs.replace(LAPACK, **changes)))
    assert expected in found
    assert bool(found) is bool(expected)


def test_the_shipped_file_of_entries_is_what_its_tool_writes():
    assert Path(FILE).read_bytes() == written(), "run `python -m tools.knowledge`"


def test_each_field_of_an_entrys_concerns_is_checked():
    assert {*HOLDS} == {*Concerns.__struct_fields__}


@pytest.mark.parametrize("issue", shipped_issues(), ids=lambda issue: issue.id)
def test_versions_pages_and_files_in_shipped_entries_exist(issue):
    built = load_calendar().built
    for version in re.findall(r"[Uu]pgrade.*?jaxlib (\d[\d.]*\d)", issue.todo):
        assert not issue.mended_in or issue.consumer != "jaxlib" or built(version) >= built(issue.mended_in)
    page, _, anchor = issue.study.partition("#")
    assert not page or (ROOT / page).is_file()
    if anchor and page.endswith(".md"):
        titles = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    for name in (issue.fixture.concerned, issue.fixture.neighbour) if issue.fixture else ():
        assert not name or path_of(name).is_file(), name


def path_of(fixture):
    """Return the path of the artifact of a golden, given its id, or else of a file in the repository."""
    own = [folder / fixture / "artifact.jaxexport" for folder in GOLDENS]
    return next((path for path in own if path.is_file()), ROOT / fixture)


WITH_FIXTURE = [issue for issue in shipped_issues() if issue.fixture is not None and issue.concerns is not None]


@pytest.mark.parametrize("issue", WITH_FIXTURE, ids=lambda issue: issue.id)
def test_an_entry_concerns_its_golden_but_not_a_similar_one(issue):
    for name, expected in ((issue.fixture.concerned, True), (issue.fixture.neighbour, False)):
        if name:
            about = About(read(path_of(name)))
            only_by_writer = issue.written_before and not expected  # a neighbour may be one by its writer alone
            assert only_by_writer or is_concerned(about, issue.concerns.given) is expected


@pytest.mark.parametrize(
    ("file", "concerns", "expected"),
    [
        ("cholesky", {"calls": ["lapack_*"]}, True),
        ("mlp", {"calls": ["lapack_*"]}, False),
        ("mlp", {"operations": ["stablehlo.dot_general"]}, True),
        ("mlp", {"operations": ["stablehlo.sort"]}, False),
        ("mlp", {"types": "tensor<.*f32>"}, True),
        ("mlp", {"types": "tensor<.*f32>", "operations": ["stablehlo.sort"]}, False),
        ("mlp", {"types": r"\(tensor<4x8xf32>"}, True),
        ("mlp", {"types": "f32>, tensor<8x3"}, True),
        ("mlp", {"types": "-> "}, True),
        ("mlp", {"types": "(?m)^tensor<8x3xf32>$"}, True),
        ("mlp", {"types": "f32>, tensor<9x3"}, False),
        ("sharded", {"dialects": ["sdy"]}, True),
        ("mlp", {"dialects": ["sdy"]}, False),
        ("sharded", {"devices": 2}, True),
        ("mlp", {"devices": 2}, False),
        ("symbolic", {"symbolic": True}, True),
        ("mlp", {"symbolic": True}, False),
        ("mlp", {"symbolic": False}, True),
        ("mlp", {"x64": True}, False),
        ("mlp", {"donated": True}, False),
        ("mlp", {"unreduced": True}, False),
        ("sharded", {"unreduced": False}, True),
        ("mlp", {"attributes": ["jax.uses_shape_polymorphism"]}, True),
        ("mlp", {"attributes": ["no such attribute"]}, False),
        ("mlp", {"lacks": ["no such attribute"]}, True),
        ("mlp", {"lacks": ["no such attribute", "jax.uses_shape_polymorphism"]}, False),
        ("sharded", {"attributes": ["sdy attribute 2"]}, True),
        ("mlp", {"attributes": ["sdy attribute 2"]}, False),
    ],
)
def test_an_entry_concerns_artifacts_with_its_calls_or_operations(file, concerns, expected):
    assert is_concerned(About(read(ARTIFACTS / "0.12.0.1" / f"{file}.jaxexport")), concerns) is expected
