"""A random sample of what people read: `python -m tools.sentences SEED` draws docstrings, test names and messages.

Two readers who do not know the code grade it: at most 3 docstrings, 3 test names and 1 message may be riddles.
"""

from __future__ import annotations

import argparse
import ast
import functools
import random
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ("export_core", "pytest_jaxexport")
"""The folders whose docstrings and messages are drawn."""
SIZES = {"docstrings": 60, "test names": 60, "messages": 40}
"""The number of sentences of each kind that are drawn."""


def drawn(seed: int) -> dict[str, list[str]]:
    """Return the sample of a seed: the drawn sentences of each kind, each with its file and line.

    Args:
        seed: any number that the reader chooses. The same commit and the same seed give the same sample.
    """
    chance = random.Random(seed)
    return {kind: chance.sample(_sentences()[kind], size) for kind, size in SIZES.items()}


@functools.cache
def _sentences() -> dict[str, list[str]]:
    """Return all sentences of each kind, each with its file and line."""
    found: dict[str, list[str]] = {kind: [] for kind in SIZES}
    for folder in PACKAGE:
        for path, node in _nodes(folder):  # No list of all nodes: Python would look through it again and again.
            found["docstrings"] += _docstrings(path, node)
            found["messages"] += _messages(path, node)
    found["test names"] += (name for path, node in _nodes("tests") for name in _test_names(path, node))
    return found


def _docstrings(path: str, node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and (text := ast.get_docstring(node)):
        yield f"{path}:{node.lineno}: {node.name}\n    " + text.replace("\n", "\n    ")


def _test_names(path: str, node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
        yield f"{path}:{node.lineno}: {node.name}"


def _messages(path: str, node: ast.AST) -> Iterator[str]:
    """Yield each message of more than two words that is written in a `raise` statement, with its file and line."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        for text in node.exc.args:
            written = ast.unparse(text)
            if isinstance(text, ast.JoinedStr | ast.Constant) and len(written.split()) > 2:
                yield f"{path}:{node.lineno}: {written}"


def _nodes(folder: str) -> Iterator[tuple[str, ast.AST]]:
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            yield file.relative_to(ROOT).as_posix(), node


def main() -> None:
    """Print the sample of the seed that the command line gives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int, help="any number: one commit and one seed give one sample")
    for kind, sample in drawn(parser.parse_args().seed).items():
        print(f"\n== {len(sample)} {kind}\n")
        print("\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sample, 1)))


if __name__ == "__main__":
    main()
