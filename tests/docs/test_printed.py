"""Every command in README and docs prints the output that is shown with it. tools/printed.py describes the form."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from export_core.base.processes import signal_name
from export_core.matrix import Verdict
from export_core.run import read_run
from tools.page_folders import make
from tools.printed import FENCE, PrintedError, check, matches, read, renew, renewed

ROOT = Path(__file__).parents[2]
PATHS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [read(path) for path in PATHS if "_build" not in path.parts]
RUN = [
    pytest.param(
        page, id=page.path.relative_to(ROOT).as_posix(), marks=[getattr(pytest.mark, page.group)] if page.group else []
    )
    for page in PAGES
    if page.runs and page.path.parent.name != "tutorial"  # test_tutorial.py runs those
]
# Pages with blocks that no test can run, and how many. A comment at each block gives the reason.
NOT_RUN: dict[str, int] = {
    "docs/how-to/add-a-runtime.md": 1,
    "docs/how-to/gate-a-release.md": 1,
    "docs/how-to/run-on-a-gpu.md": 2,
    "docs/how-to/serve-from-tensorflow.md": 1,
    "docs/how-to/store-goldens.md": 3,
    "docs/how-to/upgrade-jax.md": 2,
    "docs/index.md": 2,
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A copy of the repository for the pages whose commands only read it."""
    return make("repository", tmp_path_factory.mktemp("repository") / "project")


@pytest.mark.parametrize("page", RUN)
def test_commands_print_what_the_page_shows(page, tmp_path, request):
    only_reads = page.folder == "repository" and not page.group
    folder = request.getfixturevalue("repository") if only_reads else make(page.folder, tmp_path / "project")
    check(page, folder, programs=request.getfixturevalue("warm_programs"))


def test_a_real_run_could_report_the_example_crash(tmp_path):
    results = read_run(make("api-example", tmp_path / "project") / ".jaxexport").results
    (crash,) = [result for result in results if result.verdict is Verdict.CRASH]
    assert crash.message == f"died by {signal_name(crash.signal)}"
    # The one crash that README and messages tell of is fixed in 0.10.0.
    assert Version(crash.reader.jaxlib) < Version("0.10.0")


def test_the_blocks_that_are_not_run_are_counted_for_each_page():
    found = {
        page.path.relative_to(ROOT).as_posix(): sum(bool(block.not_run) for block in page.blocks) for page in PAGES
    }
    assert {name: count for name, count in found.items() if count} == NOT_RUN


def test_the_home_page_shows_the_example_of_the_readme():
    readme, home = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/index.md"))
    blocks = [fence[0] for fence in FENCE.finditer(home) if fence["language"] in ("python", "console")]
    assert len(blocks) == 3
    assert [block for block in blocks if block not in readme] == []


def test_commands_on_the_guides_index_page_create_the_guides_project(tmp_path):
    (block,) = (
        fence["text"]
        for fence in FENCE.finditer((ROOT / "docs" / "how-to" / "index.md").read_text(encoding="utf-8"))
        if fence["language"] == "sh"
    )
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "golden").symlink_to(ROOT / "golden")
    expected = make("model", tmp_path / "expected")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = os.environ | {"PATH": path}
    subprocess.run(["bash", "-ec", block], cwd=tmp_path, env=variables, check=True, capture_output=True)
    made, wanted = (
        {file.relative_to(top): file.read_bytes() for file in top.rglob("*") if file.is_file()}
        for top in (tmp_path / "guides", expected)
    )
    assert made
    assert made == wanted


def test_a_block_titled_with_a_file_is_a_part_of_that_file():
    folders = {page: ROOT if page.folder == "repository" else ROOT / page.folder for page in PAGES}
    parts = [(folders[page] / block.title, block.text) for page in PAGES for block in page.blocks if block.title]
    existing = [(path, text) for path, text in parts if path.exists()]
    assert existing
    assert [path for path, text in existing if text.strip() not in path.read_text(encoding="utf-8")] == []


GUIDES = [page for page in PAGES if page.path.name == "README.md" or page.path.parent.name in ("how-to", "tutorial")]


def test_a_file_is_named_before_it_is_shown():
    """GitHub and package indexes do not show the title of a block, so the text before it names the file."""
    titles = re.compile(r' title="[^"]+"')
    for page in GUIDES:
        shown = ((match["title"], page.text[: match.start()]) for match in FENCE.finditer(page.text) if match["title"])
        unnamed = [title for title, before in shown if Path(title).name not in titles.sub("", before)]
        assert unnamed == [], page.path


def test_a_command_after_a_prompt_is_always_in_a_console_block():
    def outside(text: str) -> str:
        return FENCE.sub(lambda fence: "" if fence["language"] == "console" else fence[0], text)

    commands = {page.path: re.findall(r"^ *\$ .*", outside(page.text), re.MULTILINE) for page in PAGES}
    assert {path: shown for path, shown in commands.items() if shown} == {}


@pytest.mark.parametrize(
    ("page_shows", "printed", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("", "a\n", False),
        ("", "", True),
        ("[...]\n", "", True),
        ("[...]\nb\n", "1\n2\nb\n", True),
        ("a\n[...]\n", "b\n1\n", False),
        ("in [...] s\n", "in 3.1 s\n", True),
        ("in [...] s\n", "in 3\n s\n", False),
        ("a  \n", "a\n\n", True),
    ],
)
def test_an_ellipsis_matches_lines_or_text(page_shows, printed, same):
    assert matches(page_shows, printed) is same


def test_renewed_output_keeps_ellipses():
    assert renewed("in [...] s\nold\n", "in 4 s\nnew\n") == "in [...] s\nnew\n"
    assert renewed("a\n[...]\nz\n", "b\n1\n2\ny\n") == "b\n[...]\ny\n"
    assert renewed("[...]\nold\n[...]\nz\n", "1\nnew\n2\nz\n") == "1\nnew\n2\nz\n", "nothing is lost"


PAGE = """\
```yaml title="data/a.txt"
one
```

<!-- exit: 3 -->
```console
$ cat data/a.txt
{shown}
$ exit 3
```
"""


def test_a_page_that_shows_other_output_than_is_printed_fails(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE.format(shown="one"))
    check(read(path), make("empty", tmp_path / "right"))
    path.write_text(PAGE.format(shown="two"))
    with pytest.raises(PrintedError, match=r"page\.md:7: "):
        check(read(path), make("empty", tmp_path / "wrong"))
    path.write_text(PAGE.format(shown="one").replace("exit: 3", "exit: 0"))
    with pytest.raises(PrintedError, match="expected exit code 0, found 3"):
        check(read(path), make("empty", tmp_path / "code"))


def test_a_continued_page_shares_the_earlier_pages_folder_and_variables(tmp_path):
    (tmp_path / "1.md").write_text("```console\n$ mkdir inner && cd inner && WHO=1 && export WHO\n```\n")
    (tmp_path / "2.md").write_text("<!-- continues: 1.md -->\n```console\n$ echo $WHO in $(basename $PWD)\nold\n```\n")
    page = read(tmp_path / "2.md")
    assert [part.path.name for part in page.session] == ["1.md", "2.md"]
    texts = renew(page, make("empty", tmp_path / "run"))
    assert "\n1 in inner\n" in texts[tmp_path / "2.md"]


def test_a_columns_comment_sets_the_width_of_later_blocks(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(
        "```console\n$ echo $COLUMNS\n100\n```\n<!-- columns: 80 -->\n```console\n$ echo $COLUMNS\n80\n```\n"
    )
    check(read(path), make("empty", tmp_path / "run"))
