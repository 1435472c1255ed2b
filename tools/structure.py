"""The structure of a source tree in figures: rooms, floors, imports, and what makes it hard to read.

``python tools/structure.py [FOLDER]`` measures the packages of a checkout, or one package;
``--compare BEFORE AFTER`` prints two checkouts as a Markdown table. Files are parsed, never imported.
"""

from __future__ import annotations

import argparse
import ast
import functools
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

NOT_SHIPPED = {"benchmarks", "docs", "examples", "tests", "tools"}
LONG_FUNCTION, MANY_PARAMETERS, LONG_TEST_NAME = 40, 8, 60
LARGEST_FOLDERS, COMMON_NAMES, NAMES_IN_A_CELL = 5, 10, 16
RIDDLES = {"answer", "each", "found", "said", "some", "these", "told"}
FOR_TOOLS = re.compile(r"#!.*|# (noqa|type:)[^#]*")  # comments for a linter or a type checker, without a reason
QUESTION = re.compile(r"([^.?!]|[.?!]\S)*\?(\s|$)")  # a first sentence that asks, instead of saying what the module is
Function = ast.FunctionDef | ast.AsyncFunctionDef
Graph = Mapping[str, set[str]]


class Module(NamedTuple):
    """A parsed file; `folder` is the package that holds it, which is itself for an ``__init__.py``."""

    name: str
    folder: str
    path: Path
    source: str
    tree: ast.Module


class Figure(NamedTuple):
    """One line of the table: what is counted, how much, and the names behind it."""

    label: str
    value: object
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = ", ".join(self.names if len(self.names) <= NAMES_IN_A_CELL else ())
        return ": ".join(filter(None, (str(self.value), names)))


def parse_modules(checkout: Path) -> Iterator[Module]:
    """Every file of the packages of a checkout, or of the folder itself where it is a package."""
    inits = [*checkout.glob("__init__.py")] or [*checkout.glob("*/__init__.py"), *checkout.glob("src/*/__init__.py")]
    for package in sorted(init.parent for init in inits if init.parent.name not in NOT_SHIPPED):
        for path in sorted(package.rglob("*.py")):
            folder = ".".join(path.parent.relative_to(package.parent).parts)
            name = folder if path.stem == "__init__" else f"{folder}.{path.stem}"
            source = path.read_text(encoding="utf-8")
            yield Module(name, folder, path, source, ast.parse(source))


def import_graph(modules: Iterable[Module]) -> dict[str, set[str]]:
    """Which module imports which of the same tree, also inside functions and for types."""
    known = {module.name for module in modules}
    graph: dict[str, set[str]] = {}
    for module in modules:
        imported = set()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                above = module.folder.rsplit(".", node.level - 1)[:1] if node.level else []
                base = ".".join([*above, *filter(None, [node.module])])
                names = (f"{base}.{alias.name}" for alias in node.names)
                imported |= {name if name in known else base for name in names}
        graph[module.name] = (imported & known) - {module.name}
    return graph


def room_graph(graph: Graph) -> dict[str, set[str]]:
    """The same imports between rooms: the folders and files just below a package. A package without folders is one room."""
    with_folders = {name.split(".")[0] for name in graph if name.count(".") > 1}
    rooms = {name: ".".join(name.split(".")[: 2 if name.split(".")[0] in with_folders else 1]) for name in graph}
    between: dict[str, set[str]] = {room: set() for room in rooms.values() if room not in with_folders}
    for name in graph.keys() - with_folders:
        between[rooms[name]] |= {rooms[other] for other in graph[name] - with_folders} - {rooms[name]}
    return between


def count_floors(graph: Graph) -> int:
    """The longest path of imports, in nodes; nodes that import each other in a circle stand on one floor."""

    @functools.cache
    def below(start: str) -> set[str]:
        reached, waiting = set[str](), [start]
        while waiting:
            waiting += (new := graph[waiting.pop()] - reached)
            reached |= new
        return reached

    @functools.cache
    def floor(name: str) -> int:
        return 1 + max((floor(lower) for lower in below(name) if name not in below(lower)), default=0)

    return max(map(floor, graph), default=0)


def _folder_sizes(modules: list[Module], graph: Graph) -> Iterator[str]:
    for folder, files in Counter(module.folder for module in modules).most_common(LARGEST_FOLDERS):
        names = {module.name for module in modules if module.folder == folder}
        inside = {name: graph[name] & names - {folder} for name in names}
        yield f"{folder} {files} ({count_floors(inside)} floors, {sum(map(len, inside.values()))} imports)"


def _parameters(function: Function) -> int:
    names = {node.arg for node in ast.iter_child_nodes(function.args) if isinstance(node, ast.arg)}
    return len(names - {"self", "cls"})


def _listed(label: str, names: Iterable[str]) -> Figure:
    return Figure(label, len(listed := tuple(names)), listed)


def _repeated(label: str, names: Iterable[str]) -> Figure:
    return _listed(label, (f"{name} ({count})" for name, count in sorted(Counter(names).items()) if count > 1))


def _bound_names(function: Function) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def measure(checkout: Path) -> list[Figure]:
    """The figures of a checkout."""
    modules = list(parse_modules(checkout.resolve()))
    graph = import_graph(modules)
    rooms = room_graph(graph)
    return [
        Figure("files", len(modules)),
        Figure("lines", sum(len(module.source.splitlines()) for module in modules)),
        Figure("rooms", len(rooms)),
        Figure("floors: longest path of imports between rooms", count_floors(rooms)),
        Figure("floors: longest path of imports between modules", count_floors(graph)),
        Figure("imports between modules", sum(map(len, graph.values()))),
        Figure("largest folders, in files", "", tuple(_folder_sizes(modules, graph))),
        *_code_figures(modules),
        *_test_figures(checkout),
    ]


def _code_figures(modules: list[Module]) -> Iterator[Figure]:
    nodes = [(module.name, node) for module in modules for node in ast.walk(module.tree)]
    functions = [(f"{name}.{node.name}", node) for name, node in nodes if isinstance(node, Function)]
    long = [name for name, node in functions if (node.end_lineno or 0) - node.lineno + 1 > LONG_FUNCTION]
    wide = [(name, node) for name, node in functions if _parameters(node) >= MANY_PARAMETERS]
    # A command of click has a parameter for every option.
    commands = [name for name, node in wide if any(".command" in ast.unparse(part) for part in node.decorator_list)]
    yield _listed(f"functions over {LONG_FUNCTION} lines", long)
    yield _listed(f"functions with {MANY_PARAMETERS} or more parameters", [n for n, _ in wide if n not in commands])
    yield _listed("the same, click commands", commands)
    yield _repeated("class names used twice", (node.name for _, node in nodes if isinstance(node, ast.ClassDef)))
    yield _repeated(
        "file names used twice", (m.path.stem for m in modules if m.path.stem not in ("__init__", "errors"))
    )
    code = "\n".join(module.source for module in modules)
    tokens = [token.string for token in tokenize.generate_tokens(io.StringIO(code).readline)]
    comments = [text for text in tokens if text.startswith("#") and not FOR_TOOLS.fullmatch(text)]
    share = 100 * len(comments) / sum(bool(line.strip()) for line in code.splitlines())
    yield Figure("comments for every 100 lines of code", f"{share:.1f}")
    docstrings = {module.name: ast.get_docstring(module.tree) or "" for module in modules}
    yield _listed("module docstrings that ask", [name for name, text in docstrings.items() if QUESTION.match(text)])
    bound = Counter(name for _, node in functions for name in _bound_names(node) - {"_"})
    yield Figure("common local names", "", tuple(f"{name} {count}" for name, count in bound.most_common(COMMON_NAMES)))
    yield Figure(f"local names such as {', '.join(sorted(RIDDLES))}", sum(bound[name] for name in RIDDLES))


def _test_figures(checkout: Path) -> Iterator[Figure]:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (checkout / "tests").rglob("test_*.py")}
    functions = [node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, Function)]
    long = sum(name.startswith("test_") and len(name) > LONG_TEST_NAME for name in functions)
    yield Figure(f"test names over {LONG_TEST_NAME} characters", long)
    layers = trees.get(checkout / "tests" / "test_layers.py", ast.Module([], []))
    exceptions = [ast.unparse(node).partition(" = ")[2] for node in layers.body if "SAME_FLOOR =" in ast.unparse(node)]
    yield Figure("entries in the same-floor list", sum(len(ast.literal_eval(entries)) for entries in exceptions))


def main() -> None:
    """Print the figures of one checkout with every name, or of two side by side with names where there are few."""
    parser = argparse.ArgumentParser(description="The structure of a source tree in figures.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="default: the current folder")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="two checkouts, as Markdown")
    options = parser.parse_args()
    if options.compare:
        print(f"| | {' | '.join(map(str, options.compare))} |\n|---|---|---|")
        for before, after in zip(*map(measure, options.compare), strict=True):
            print(f"| {before.label} | {before} | {after} |")
    else:
        for label, value, names in measure(options.folder):
            print(f"{label:64} {value:>8}", *names, sep="\n    ")


if __name__ == "__main__":
    main()
