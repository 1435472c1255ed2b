"""The rules of style for docstrings and names: `python -m tools.docstrings` prints each place that breaks a rule.

A function's docstring begins with a verb, a docstring's sentences are short, and no name has a word of `BANNED`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = (
    *("export_core", "pytest_jaxexport", "tools", "noxfile.py", "benchmarks", "examples", "hooks", "docs", "studies"),
    "tests",
)
"""The folders and the file in which the rules are checked."""
_VERBS = """
Add Adopt Answer Append Ask Attach Audit Begin Bisect Break Build Call Cancel Change Check Close Collect Compare
Compile Compute Connect Continue Convert Copy Count Cut Decode Define Delete Deserialize Do Draw Drop End Evaluate
Exchange Export Fail Find Finish Flush Follow Foresee Fork Free Give Have Import Install Join Judge Keep Kill Leave Let
List Load Lock Look Lower Make Measure Move Mutate Name Note Open Parse Plan Prepare Print Put Raise Read Record
Reduce Register Remove Rename Renew Replace Replay Report Request Restore Return Rewrite Run Say Select Send Serve Set
Show Skip Split Start Step Store Tabulate Take Tell Test Time Try Turn Use Wait Walk Wrap Write Yield
"""
VERBS = frozenset(_VERBS.split())
"""The first words of a function's docstring. A new word is added here, if it is a verb."""
NOT_A_VERB = frozenset({"export_core/cli/app.py:jaxexport"})
"""Functions whose docstring is printed for users, and so need not begin with a verb, by file and name."""
PROGRAMS = "studies/corpus/programs/"
"""The folder of the example programs. The docstring of a program says what it is, and need not begin with a verb."""
BANNED = frozenset({"go_on", "said", "told", "what_of"})
"""Words that no name may contain, since they do not tell what is named."""
MOST_WORDS = 30
"""The most words that a sentence of a docstring may have."""


def problems_of(path: str, source: str) -> Iterator[str]:
    """Yield a message for each place of a file that breaks a rule.

    Args:
        path: the path of the file, relative to the root of the checkout.
        source: the text of the file.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (text := ast.get_docstring(node)):
            where = f"{path}:{getattr(node, 'lineno', 1)}"
            if isinstance(node, ast.FunctionDef) and _needs_verb(node, path):
                first = re.split(r"[\s,:;.]", text, maxsplit=1)[0]
                if first not in VERBS:
                    yield f"{where}: {node.name}: expected a docstring that begins with a verb, found {first!r}."
            sentences = list(sentences_of(text))
            for sentence in {one: None for one in sentences if " " in one and sentences.count(one) > 1}:
                yield f"{where}: expected each sentence once, found twice: {sentence}"
            for sentence in sentences:
                if (words := len(sentence.split())) > MOST_WORDS:
                    yield f"{where}: expected sentences of at most {MOST_WORDS} words, found {words}: {sentence}"
        for name, line in _names(node):
            if found := BANNED & {name, *name.split("_")} or {word for word in BANNED if f"_{word}_" in f"_{name}_"}:
                yield f"{path}:{line}: {name}: expected a name that tells what it is, found {', '.join(found)}."


def sentences_of(text: str) -> Iterator[str]:
    """Yield the sentences of a docstring, without sections such as Args; inline code is replaced by the word `Name`."""
    text = re.sub(r"(?m)^(?: {4}.*| *(?:Args|Returns|Raises|Yields):.*)$", "", text)
    text = re.sub(r"(?m)^(?:\|.*|\{.*)$|Exit codes:[^\n]*(?:\n[^\n]+)*", "", text)
    text = re.sub(r"(`+)[^`]*\1", "Name", text)
    for part in re.split(r"\n\s*\n", text):
        yield from re.split(r"(?<=[.?!:;])\s+", " ".join(part.split()))


def _needs_verb(node: ast.FunctionDef, path: str) -> bool:
    """Return whether a function's docstring must begin with a verb.

    It need not if the function is a property, a fixture, a test, an example program, a method such as `__str__`, or
    listed in `NOT_A_VERB`.
    """
    if path.startswith(PROGRAMS) or f"{path}:{node.name}" in NOT_A_VERB:
        return False
    decorators = " ".join(map(ast.unparse, node.decorator_list))
    is_noun = re.search(r"property|fixture|overload", decorators) or re.fullmatch(r"__\w+__", node.name)
    return not is_noun and not node.name.startswith("test_")


def _names(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the name that a node of a syntax tree defines, if any, with its line."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name, node.lineno
    elif isinstance(node, ast.arg):
        yield node.arg, node.lineno
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node.lineno


def main() -> int:
    """Print what breaks a rule in all files of `ROOMS`; return 1 if there is anything, else 0."""
    files = [file for room in ROOMS for file in sorted(ROOT.glob(room if room.endswith(".py") else f"{room}/**/*.py"))]
    found = [
        problem
        for file in files
        for problem in problems_of(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8"))
    ]
    print("\n".join(found))
    print(f"{len(files)} files, {len(found)} problems")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
