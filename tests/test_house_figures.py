"""The figures about the package's structure (`tools/structure.py`), here of an example with known ones."""

from pathlib import Path

import pytest

from tools import structure

FILES = {
    "__init__.py": "",
    "judge.py": """
from collections import defaultdict
from house.cell import Verdict
from house.result import Result
MARKS = {Verdict.PASS: "+"}
WORKS = (Verdict.PASS, Verdict.COMPILED)
def outcome_of(reply): return judge(reply)
def judge(outcome): return Result(outcome)
def by_reader(results): return defaultdict(list)
""",
    "cell.py": "class Verdict: ...",
    "result.py": "from house import judge\nclass Result: ...\nclass MatrixRun: ...\nclass _Run: ...",
    "page.py": """
from house import judge
from house.text import shown
TITLES = {"BROKEN": 1}
NAMES = {"other": 1}
def html_page(results): return shown(judge.by_reader(results)), helper(results)
def helper(results): return judge.judge(results)
""",
    "releases.py": """
class Release:
    version: str
    built: datetime.date
class Writer(Release):
    platform: str
class Line:
    built: str
class Environments:
    jaxlib: str
    built: int
""",
    "text.py": "from house.judge import judge\ndef shown(text): return judge(text)",
    "feature.py": """
def hooks(hook, kind): return []
def hook_of(hook) -> Any: return hooks(hook, Rule)
def first():
    import json
    def second(): from house import cell
    return hooks("rule"), hooks("rule", Rule)
""",
}


@pytest.fixture
def figures(tmp_path: Path) -> dict[str, structure.Figure]:
    (tmp_path / "house").mkdir()
    for name, source in FILES.items():
        (tmp_path / "house" / name).write_text(source)
    return {figure.label: figure for figure in structure.measure(tmp_path)}


@pytest.mark.parametrize(
    ("label", "value", "names"),
    [
        ("circles of imports", 1, ("house.judge (2 modules)",)),
        ("types that hold a run", 1, ("house.result.MatrixRun",)),
        ("types with a version and its day", 1, ("house.releases.Release",)),
        (
            "tables keyed by verdict, judgement or title of a finding",
            3,
            ("house.judge:5", "house.judge:6", "house.page:4"),
        ),
        ("groupings of results outside the run", 1, ("house.judge:9",)),
        ("rooms on the walk of a result to the page", 4, ("house.judge", "house.result", "house.page", "house.text")),
        ("returns on that walk", 0, ()),
        ("hooks that return Any", 2, ("house.feature:3", "house.feature:7")),
        (
            "imports inside functions, outside cli/, features/ and runtimes/",
            2,
            ("house.feature:5", "house.feature:6"),
        ),
        ("entries of the packages", "", ("house 7",)),
        ("import lines, of all lines", "22.0 %", ()),
    ],
)
def test_each_figure_of_structure_is_right_for_a_made_up_package(figures, label, value, names):
    assert (figures[label].value, figures[label].names) == (value, names)


ANOTHER = {
    "readers/cell.py": "def request_of(cell: Cell) -> Request: ...",
    "reply.py": "class Reply:\n    stage: str\n    message: str\n    seconds: float",
    "outcome.py": """
class Outcome:
    stage: str
    message: str
    seconds: float
class Numbered(Outcome): ...
class Cause:
    stage: str
    message: str
def judge(reply: Reply) -> Outcome: ...
""",
}


def test_unlisted_types_and_conversions_of_outcomes_are_found(tmp_path: Path):
    (tmp_path / "house" / "readers").mkdir(parents=True)
    for name, source in {"__init__.py": "", "readers/__init__.py": "", **ANOTHER}.items():
        (tmp_path / "house" / name).write_text(source)
    figures = {figure.label: figure for figure in structure.measure(tmp_path)}
    assert figures["types with a cell's outcome"].names == (
        "house.outcome.Outcome",
        "house.reply.Reply",
        "house.outcome.Numbered",
    )
    conversions = figures["conversions of a cell on the way to the page"].names
    assert (conversions[0], conversions[-1]) == ("house.readers.cell.request_of", "house.outcome.judge")
    assert [name.endswith(": missing") for name in conversions] == [False, *[True] * 5, False]


def test_functions_that_convert_a_cells_result_are_as_listed():
    modules = list(structure.parse_modules(Path(structure.__file__).parents[1]))
    assert set(structure.with_outcome(modules)) == {"Reply", "Result"}
    assert [name.split(".", 1)[1] for name in structure.conversions(modules)] == [
        name for name, _ in structure.TO_THE_PAGE
    ]


def test_comparing_the_structure_with_an_unknown_commit_is_an_error(tmp_path: Path):
    with pytest.raises(SystemExit, match="expected a commit or a folder, found 'no-such-commit'"):
        structure.checked_out("no-such-commit", Path(structure.__file__).parent, tmp_path)
