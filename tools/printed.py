"""A check of pages that show commands with their output: `python -m tools.printed PAGE…` writes the real output.

A block ```` ```console ```` is a session: lines that begin with `$ ` are commands (a backslash at the end of a line
continues them), the lines below are their output. `[...]` alone on a line stands for any lines, within a line for any
text. A block with `title="PATH"` is a file, written before the next block runs unless it is a part of a file that
exists. Comments set:

    <!-- run in: FOLDER -->    first in a page: empty (the default), repository, a path in it (copied), or
                               the name of a function of tools/page_folders.py
    <!-- run with: wheel -->   first in a page: pip finds a wheel of this repository, and no outcome is cached yet
    <!-- continues: PAGE -->   first in a page: it runs in the folder and the shell that this page left, after it
    <!-- group: matrix -->     first in a page: the mark of its test, matrix or weekly, as pyproject.toml explains them
    <!-- exit: 1 -->           exit code of the last command of the next block; default 0
    <!-- columns: 120 -->      width of the terminal, from the next block on; default 100
    <!-- not run: REASON -->   the next block is not run: no test can do it
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.wheel import variables_of_a_user

ROOT = Path(__file__).parents[1]
ANY = "[...]"
FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?[^\n`]*\n(?P<text>.*?)^(?P=fence)$",
    re.M | re.S,
)
COMMENT = re.compile(r"<!-- (run in|run with|continues|group|exit|columns|not run): (.+?) -->")
# Variables of whoever runs the tests that change what commands print or do: pytest prints more where CI is set.
FOREIGN = ("PYTEST_", "JAX_", "XLA_", "COV_", "CI", "BUILD_NUMBER", "GITHUB_", "GITLAB_", "NO_COLOR", "FORCE_COLOR")
STEP = """
[ -f "$PRINTED_STATE" ] && . "$PRINTED_STATE"
export COLUMNS={columns}
{command}
code=$?
{{ declare -px; printf 'cd %q\\n' "$PWD"; }} > "$PRINTED_STATE"
exit $code
"""


@dataclass(frozen=True)
class Step:
    """A command and its output as the page shows them. The output is at `start` to `end` of the page's text."""

    command: str
    output: str
    line: int
    start: int
    end: int


@dataclass(frozen=True)
class Block:
    """A code block of a page: a session of commands, or a file, whose path is its `title`.

    `exit` is the expected exit code of the last command, `columns` the width of the terminal, and `not_run` the reason
    why the block is not run, or empty.
    """

    title: str
    text: str
    steps: tuple[Step, ...]
    exit: int
    columns: int
    not_run: str


@dataclass(frozen=True)
class Page:
    """A page with its blocks, and how they run. `before` is the page whose folder and shell it continues, if any."""

    path: Path
    text: str
    before: Page | None
    folder: str
    run_with: str
    group: str
    blocks: tuple[Block, ...]

    @property
    def runs(self) -> bool:
        """Whether the page has a command that is run."""
        return any(block.steps and not block.not_run for block in self.blocks)

    @property
    def session(self) -> tuple[Page, ...]:
        """The pages that run one after the other in the same folder, of which this page is the last."""
        return (*(self.before.session if self.before else ()), self)


@dataclass(frozen=True)
class Done:
    """A step that has run, with its page and block, what it printed, and its exit code."""

    page: Page
    block: Block
    step: Step
    printed: str
    code: int


Runner = Callable[[str], tuple[str, int]]
"""A function that runs a bash script, and returns what the script printed and its exit code."""


class PrintedError(AssertionError):
    """An error: the output or the exit code of a command is not what its page says."""


def read(path: Path) -> Page:
    """Read a page from a file, and the page that it continues, if any.

    Raises:
        ValueError: a block of commands does not begin with a command.
    """
    text = path.read_text(encoding="utf-8")
    blocks, at, whole = [], 0, {"run in": "empty", "run with": "", "continues": "", "group": "", "columns": "100"}
    for fence in FENCE.finditer(text):
        comments = dict(COMMENT.findall(text[at : fence.start()]))
        whole |= {key: comments[key] for key in whole if key in comments}
        at = fence.end()
        session = fence["language"] == "console"
        block = Block(
            title=fence["title"] or "",
            text=fence["text"],
            steps=tuple(_steps(text, fence.start("text"), fence.end("text"))) if session else (),
            exit=int(comments.get("exit", 0)),
            columns=int(whole["columns"]),
            not_run=comments.get("not run", ""),
        )
        if block.steps or block.title:
            blocks.append(block)
    before = read(path.with_name(whole["continues"])) if whole["continues"] else None
    first = before.session[0] if before else None
    folder, run_with = (first.folder, first.run_with) if first else (whole["run in"], whole["run with"])
    return Page(path, text, before, folder, run_with, whole["group"], tuple(blocks))


def _steps(text: str, start: int, end: int) -> Iterator[Step]:
    lines, at = text[start:end].splitlines(keepends=True), start
    while lines:
        command, first = "", text.count("\n", 0, at) + 1
        if not lines[0].startswith("$ "):
            raise ValueError(f"line {first}: expected a console block that begins with a command, found {lines[0]!r}")
        while lines:
            line = lines.pop(0)
            at += len(line)
            command += line
            if not line.rstrip("\n").endswith("\\"):
                break
        begun = at
        while lines and not lines[0].startswith("$ "):
            at += len(lines.pop(0))
        yield Step(command.removeprefix("$ ").rstrip("\n"), text[begun:at], first, begun, at)


def matches(shown: str, printed: str) -> bool:
    """Return whether the output on a page is what a command printed.

    Each `[...]` of the page stands for any text or any lines. Spaces at the ends of lines do not count.
    """
    wanted = [line.rstrip() for line in shown.rstrip().splitlines()]
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == ANY else f"{'.*?'.join(map(re.escape, line.split(ANY)))}\n" for line in wanted
    )
    return re.fullmatch(pattern, _plain(printed)) is not None


def _plain(printed: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").rstrip().splitlines())


def renewed(shown: str, printed: str) -> str:
    """Return the output as a page should show it, with each `[...]` of the page that still fits.

    If the page has several lines `[...]`, their new positions are unknown. Then the whole output is returned, and
    somebody has to cut it by hand.

    Args:
        shown: the output on the page.
        printed: what the command prints now.
    """
    if matches(shown, printed):
        return shown
    had, lines = shown.splitlines(), _plain(printed).splitlines()
    new = [
        next((old for old in had if old.strip() != ANY and ANY in old and matches(old, line)), line) for line in lines
    ]
    gaps = [number for number, line in enumerate(had) if line.strip() == ANY]
    if len(gaps) == 1 and len(new) > len(had) - 1:
        tail = len(had) - 1 - gaps[-1]
        new = [*new[: gaps[0]], had[gaps[0]], *new[len(new) - tail :]]
    return "".join(f"{line}\n" for line in new)


def play(page: Page, folder: Path, run: Runner | None = None, programs: Path | None = None) -> Iterator[Done]:
    """Run the blocks of a page in a folder, after the blocks of the pages that it continues; yield each step.

    Args:
        page: the page.
        folder: the folder.
        run: runs a script; if None, bash in a process on this machine does.
        programs: a folder of programs that this bash finds before all others.
    """
    with tempfile.TemporaryDirectory() as private:
        run = run or _runner(folder, Path(private), programs, wheel=page.run_with == "wheel")
        for part in page.session:
            for block in part.blocks:
                if block.not_run:
                    continue
                if block.title:
                    _write(folder / block.title, block.text)
                for step in block.steps:
                    yield Done(part, block, step, *run(STEP.format(command=step.command, columns=block.columns)))


def _runner(folder: Path, private: Path, programs: Path | None, *, wheel: bool) -> Runner:
    variables = _variables() | {"PRINTED_STATE": str(private / "state")}
    if programs:
        variables["PATH"] = f"{programs}{os.pathsep}{variables['PATH']}"
    if wheel:
        variables |= variables_of_a_user(private)
        # Until the first release, pages install from a checkout beside their folder.
        checkout = folder.parent / "pytest-jaxexport"
        if not checkout.exists():
            checkout.symlink_to(ROOT)
    return runner_of(["bash", "-c"], variables, folder)


def runner_of(words: Sequence[str], variables: Mapping[str, str], folder: Path, before: str = "") -> Runner:
    """Return a function that runs scripts, each in a new process.

    Args:
        words: the command that runs a script, such as `bash -c`.
        variables: the environment variables of each script.
        folder: the folder in which each script starts.
        before: lines that are put before each script.
    """

    def run(script: str) -> tuple[str, int]:
        done = subprocess.run(
            [*words, before + script],
            cwd=folder,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        return done.stdout, done.returncode

    return run


def _write(path: Path, text: str) -> None:
    if path.exists() and text.strip() in path.read_text(encoding="utf-8"):
        return  # a part of a file that exists
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _variables() -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    path = os.pathsep.join([str(Path(sys.executable).parent), variables.get("PATH", "")])
    return variables | {"PATH": path, "JAX_PLATFORMS": "cpu", "TERM": "dumb"}


def check(page: Page, folder: Path, programs: Path | None = None) -> None:
    """Run a page in a folder, and raise PrintedError at the first command that does not do what the page shows.

    Commands find the programs of the folder `programs` before all others.
    """
    for done in play(page, folder, programs=programs):
        check_done(done)


def check_done(done: Done) -> None:
    """Raise PrintedError if the output or the exit code of a step is not what its page shows."""
    _check_code(done)
    if not matches(done.step.output, done.printed):
        raise PrintedError(f"{_address(done)}\nexpected as on the page:\n{done.step.output}\nfound:\n{done.printed}")


def _address(done: Done) -> str:
    return f"{done.page.path}:{done.step.line}: $ {done.step.command}"


def _check_code(done: Done) -> None:
    wanted = done.block.exit if done.step is done.block.steps[-1] else 0
    if done.code != wanted:
        raise PrintedError(
            f"{_address(done)}\nexpected exit code {wanted}, found {done.code}; it printed:\n{done.printed}"
        )


def renew(page: Page, folder: Path) -> dict[Path, str]:
    """Run a page in a folder; return its text with what its commands print now, by path.

    The texts of the pages that it continues are returned too.

    Raises:
        PrintedError: an exit code is not what the page says.
    """
    texts = {part.path: part.text for part in page.session}
    steps = list(play(page, folder))
    for done in steps:
        _check_code(done)
    for done in reversed(steps):
        text, step = texts[done.page.path], done.step
        texts[done.page.path] = text[: step.start] + renewed(step.output, done.printed) + text[step.end :]
    return texts


def main(paths: list[str]) -> None:
    """Run the pages at these paths, and write what their commands print now into them."""
    sys.path.insert(0, str(ROOT / "tests"))
    from tools.page_folders import make

    for path in map(Path, paths):
        page = read(path)
        with tempfile.TemporaryDirectory() as folder:
            try:
                texts = renew(page, make(page.folder, Path(folder) / "project"))
            except PrintedError as error:
                raise SystemExit(str(error)) from None
        for part in page.session:
            print(f"{part.path}: {'unchanged' if texts[part.path] == part.text else 'renewed'}")
            part.path.write_text(texts[part.path], encoding="utf-8")
            read(part.path)


if __name__ == "__main__":
    main(sys.argv[1:])
