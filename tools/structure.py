"""The structure of a source tree in figures: rooms, floors, imports, and what makes it hard to read.

``python tools/structure.py [FOLDER]`` measures the packages of a checkout, or a single package.
``--compare BEFORE``, a commit or another checkout, prints the figures of both side by side as a Markdown table. Files
are parsed, never imported.
"""

from __future__ import annotations

import argparse
import ast
import functools
import io
import re
import subprocess
import tarfile
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

NOT_SHIPPED = {"benchmarks", "docs", "examples", "studies", "tests", "tools"}
LONG_FUNCTION, MANY_PARAMETERS, LONG_TEST_NAME, LARGEST_FOLDERS, COMMON_NAMES, NAMES_IN_CELL = 40, 8, 60, 5, 10, 16
RIDDLES = {"answer", "each", "found", "said", "some", "these", "told"}
FOR_TOOLS = re.compile(r"#!.*|# (noqa|type:)[^#]*")  # comments for a linter or a type checker, without a reason
VERDICTS = ("Verdict", "Judgement")
VERDICT_WORDS = {
    *("compiled", "converted", "crash", "error", "numerics", "refused", "timeout"),
    *("broken", "over-budget", "kept", "known", "outside", "owed"),
}
TITLE = re.compile(r"[A-Z][A-Z ]{3,}")  # of a finding
COMMAND = re.compile(r"(\w+\.)?command\(")  # the decorator of click, and that of ours
GROUPING = {"defaultdict", "groupby", "grouped", "setdefault"}
VERSIONS = {"jax", "jaxlib", "runtime", "version"}  # Fields that name a release.
ASKING = {"feature_commands", "hook_of", "hooks"}
"""The functions by which the kernel asks features for what they add. They take a hook and its type, or a type alone."""
MAY_IMPORT_LATE = ("cli", "features", "runtimes")
"""Rooms whose functions may import: what they load serves only one command, one feature or one reader."""
WALK = ("outcome_of", "judge", "html_page")
"""Functions from which `result_walk` follows calls, in order: they make results of replies, and a page of results."""
OUTCOME = {"stage", "message", "seconds"}
"""The fields of a type that holds the outcome of a cell."""
TO_THE_PAGE = (
    ("readers.cell.request_of", ("Cell", "Request")),
    ("readers.worker.client.ForkingWorker.submit", ("Request", "send")),
    ("readers.worker.client.ForkingWorker._read", ("decode", "Reply")),
    ("matrix.outcome.outcome_of", ("Reply", "Result")),
    ("run.session.run_matrix", ("safe_json", "result")),
    ("report.page_data.page_data", ("results", "tables")),
)
"""The functions that convert a cell into a different form on its way from the plan to the page.

Each is listed with words that its source must contain. The reverse conversions are not listed: a worker reads its
request and writes its reply by the same names, and results.jsonl is read as it is written. A function that is missing
here is still counted if it takes a type with an outcome and returns a different one.
"""
QUESTION = re.compile(r"([^.?!]|[.?!]\S)*\?(\s|$)")  # a first sentence that is a question
Function = ast.FunctionDef | ast.AsyncFunctionDef
Graph = Mapping[str, set[str]]


class Module(NamedTuple):
    """A parsed Python module. `folder` is the package that contains it; an ``__init__.py`` is in its own package."""

    name: str
    folder: str
    path: Path
    source: str
    tree: ast.Module


class Figure(NamedTuple):
    """A line of the table: what is counted, the figure, and the names of what was counted."""

    label: str
    value: object
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = ", ".join(self.names if len(self.names) <= NAMES_IN_CELL else ())
        return ": ".join(filter(None, (str(self.value), names)))


def parse_modules(checkout: Path) -> Iterator[Module]:
    """Yield every module, parsed, of the packages in a checkout, or of the folder itself if it is a package.

    Packages of `NOT_SHIPPED` are left out.
    """
    inits = [*checkout.glob("__init__.py")] or [*checkout.glob("*/__init__.py"), *checkout.glob("src/*/__init__.py")]
    for package in sorted(init.parent for init in inits if init.parent.name not in NOT_SHIPPED):
        for path in sorted(package.rglob("*.py")):
            folder = ".".join(path.parent.relative_to(package.parent).parts)
            name = folder if path.stem == "__init__" else f"{folder}.{path.stem}"
            source = path.read_text(encoding="utf-8")
            yield Module(name, folder, path, source, ast.parse(source))


def import_graph(modules: Iterable[Module]) -> dict[str, set[str]]:
    """Return, for each module, the other given modules that it imports, also inside functions or only for types."""
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
                imported |= {name if (name := f"{base}.{alias.name}") in known else base for alias in node.names}
        graph[module.name] = (imported & known) - {module.name}
    return graph


def room_graph(graph: Graph) -> dict[str, set[str]]:
    """Return the rooms that each room imports, given the imports between modules.

    A room is a folder or file directly inside a package. A package without folders is a single room.
    """
    with_folders = {name.split(".")[0] for name in graph if name.count(".") > 1}
    rooms = {name: ".".join(name.split(".")[: 2 if name.split(".")[0] in with_folders else 1]) for name in graph}
    between: dict[str, set[str]] = {room: set() for room in rooms.values() if room not in with_folders}
    for name in graph.keys() - with_folders:
        between[rooms[name]] |= {rooms[other] for other in graph[name] - with_folders} - {rooms[name]}
    return between


def count_floors(graph: Graph) -> int:
    """Return the number of nodes on the longest path of imports.

    Nodes that import each other, directly or not, count as a single node.
    """

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


def circles(graph: Graph) -> list[str]:
    """Return a text for each circle of modules that import each other: its first module, and the number of modules."""

    def below(start: str) -> set[str]:
        reached, waiting = set[str](), [start]
        while waiting:
            waiting += (new := graph[waiting.pop()] - reached)
            reached |= new
        return reached

    reached = {name: below(name) for name in graph}
    found = {frozenset(other for other in reached[name] if name in reached[other]) for name in graph}
    return sorted(f"{min(circle)} ({len(circle)} modules)" for circle in found if circle)


def annotated_fields(node: ast.ClassDef) -> dict[str, str]:
    """Return the annotated fields that a class declares itself, each with its annotation as text."""
    declared = (part for part in node.body if isinstance(part, ast.AnnAssign))
    return {part.target.id: ast.unparse(part.annotation) for part in declared if isinstance(part.target, ast.Name)}


def holds_run(node: ast.ClassDef) -> bool:
    """Return whether a class holds a whole run: its name ends in `Run`, or it has fields `results` and `summary`."""
    return re.fullmatch(r"[A-Z]\w*Run|Run", node.name) is not None or {"results", "summary"} <= {
        *annotated_fields(node)
    }


def carries_release(node: ast.ClassDef) -> bool:
    """Return whether a class declares both a version, which is a field of `VERSIONS`, and `built`, its build date.

    A class that contains or inherits a release declares neither itself. An entry of a calendar declares no version,
    since its version is its key.
    """
    fields = annotated_fields(node)
    return fields.get("built") in ("datetime.date", "date", "str") and not VERSIONS.isdisjoint(fields)


def verdict_tables(module: Module) -> Iterator[int]:
    """Yield the lines of dicts whose keys are verdicts, judgements or titles of findings, and of lists of verdicts."""

    def is_verdict(node: ast.AST | None) -> bool:
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in VERDICTS

    for node in ast.walk(module.tree):
        if isinstance(node, ast.Dict):
            words = {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
            parts = [part for key in node.keys for part in (key.elts if isinstance(key, ast.Tuple) else [key])]
            if any(map(is_verdict, parts)) or any(map(TITLE.fullmatch, words)) or len(words & VERDICT_WORDS) > 1:
                yield node.lineno
    for node in module.tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if value and not isinstance(value, ast.Dict) and sum(map(is_verdict, ast.walk(value))) > 1:
            yield node.lineno


def groupings(module: Module) -> Iterator[int]:
    """Yield the lines with calls of `GROUPING`, such as `setdefault`, in a module that imports `Result`."""
    imported = (node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom))
    if any(alias.name == "Result" for node in imported for alias in node.names):
        for node in ast.walk(module.tree):
            name = node.func if isinstance(node, ast.Call) else None
            if (name.id if isinstance(name, ast.Name) else getattr(name, "attr", "")) in GROUPING:
                yield node.lineno


def untyped_hooks(module: Module) -> Iterator[str]:
    """Yield the places where a module asks features for a hook without its type, as `module:line`.

    Functions of `ASKING` that are annotated to return `Any` are yielded too.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            behind = node.args if name == "feature_commands" else node.args[1:]
            if name in ASKING and all(isinstance(part, ast.Constant) for part in behind):
                yield f"{module.name}:{node.lineno}"
        elif isinstance(node, ast.FunctionDef) and node.name in ASKING and "Any" in ast.unparse(node.returns or node):
            yield f"{module.name}:{node.lineno}"


def late_imports(module: Module) -> Iterator[int]:
    """Yield the lines of imports inside the functions of a module; none for a package in `MAY_IMPORT_LATE`."""
    if module.name.partition(".")[2].split(".")[0] not in MAY_IMPORT_LATE:
        inside = (part for node in ast.walk(module.tree) if isinstance(node, Function) for part in ast.walk(node))
        yield from sorted({part.lineno for part in inside if isinstance(part, ast.Import | ast.ImportFrom)})


def with_outcome(modules: Sequence[Module]) -> dict[str, str]:
    """Return the types that hold the outcome of a cell, each with its module.

    Such a type has the fields of `OUTCOME`, or is a subclass of such a type.
    """
    classes = [(module.name, node) for module in modules for node in _classes(module.tree)]
    found: dict[str, str] = {}
    while True:
        new = {
            node.name: module
            for module, node in classes
            if node.name not in found
            and (
                annotated_fields(node).keys() >= OUTCOME
                or any(isinstance(base, ast.Name) and base.id in found for base in node.bases)
            )
        }
        if not new:
            return found
        found |= new


def conversions(modules: Sequence[Module]) -> Iterator[str]:
    """Yield the functions that convert a cell into a different form on its way from the plan to the page.

    The functions of `TO_THE_PAGE` come first, with a note if a function is missing, then functions that it does not
    list. Nothing is yielded for a package without cells.
    """
    core = next((module.name.split(".")[0] for module in modules if module.name.endswith(".readers.cell")), None)
    if core is None:
        return
    functions = {name: node for module in modules for name, node in _functions(module.name, module.tree)}
    for name, words in TO_THE_PAGE:
        node = functions.get(f"{core}.{name}")
        if node is None or not set(words) <= set(re.findall(r"\w+", ast.unparse(node))):
            yield f"{core}.{name} with {' and '.join(words)}: missing"
        else:
            yield f"{core}.{name}"
    types = with_outcome(modules)
    listed = {(words[0], words[1]) for _, words in TO_THE_PAGE}
    for name, node in functions.items():
        taken = {part for argument in node.args.args for part in _words(argument.annotation)} & types.keys()
        pairs = {(one, other) for one in taken for other in _words(node.returns) & types.keys() if one != other}
        # A pair that a listed function has too, such as a helper of it or `Future[Reply]` of a request, counts once.
        if not pairs <= listed:
            yield name


def _functions(name: str, tree: ast.AST) -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function | ast.ClassDef):
            if isinstance(node, Function):
                yield f"{name}.{node.name}", node
            yield from _functions(f"{name}.{node.name}", node)


def _classes(tree: ast.AST) -> Iterator[ast.ClassDef]:
    """Yield the classes of a module, also those inside statements. Expressions are not searched: they have none."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.expr):
            if isinstance(node, ast.ClassDef):
                yield node
            yield from _classes(node)


def _words(annotation: ast.expr | None) -> set[str]:
    return set(re.findall(r"\w+", ast.unparse(annotation))) if annotation else set()


def is_command(function: ast.AST) -> bool:
    """Return whether a function is a command of click, which has a parameter for each option."""
    return any(COMMAND.match(ast.unparse(part)) for part in getattr(function, "decorator_list", ()))


def result_walk(modules: Sequence[Module]) -> list[str]:
    """Return the rooms on the way of a result to the page, in the order in which calls from `WALK` enter them.

    A module counts only when it is entered for the first time. Calls are followed by the name of the function or class,
    and functions that are passed as arguments are followed too.
    """
    trees = {module.name: module.tree for module in modules}
    defined = {
        name: {part.name: part for part in tree.body if isinstance(part, Function | ast.ClassDef)}
        for name, tree in trees.items()
    }
    imported = {
        name: {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for name, tree in trees.items()
    }
    seen: set[tuple[str, str]] = set()
    stays: list[str] = []

    def resolve(module: str, name: str, hops: int = 6) -> tuple[str, str] | None:
        if name in defined.get(module, {}):
            return module, name
        if hops and name in imported.get(module, {}):
            return resolve(*imported[module][name], hops - 1)
        return None

    def target(module: str, node: ast.expr) -> tuple[str, str] | None:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return resolve(".".join(imported[module].get(node.value.id, ("", ""))), node.attr)
        return resolve(module, node.id) if isinstance(node, ast.Name) else None

    def visit(module: str, name: str) -> None:
        room = ".".join(module.split(".")[:2])
        if module not in {visited for visited, _ in seen} and room != (stays or [""])[-1]:
            stays.append(room)
        seen.add((module, name))
        calls = (node for node in ast.walk(defined[module][name]) if isinstance(node, ast.Call))
        used = [part for node in calls for part in (node.func, *node.args, *(word.value for word in node.keywords))]
        for part in sorted(used, key=lambda part: (part.lineno, part.col_offset)):
            if (found := target(module, part)) and found not in seen:
                visit(*found)

    for name in WALK:
        for module in [m for m, parts in defined.items() if name in parts and not is_command(parts[name])]:
            visit(module, name)
    return stays


def _folder_sizes(modules: list[Module], graph: Graph) -> Iterator[str]:
    for folder, files in Counter(module.folder for module in modules).most_common(LARGEST_FOLDERS):
        names = {module.name for module in modules if module.folder == folder}
        inside = {name: graph[name] & names - {folder} for name in names}
        yield f"{folder} {files} ({count_floors(inside)} floors, {sum(map(len, inside.values()))} imports)"


def _parameters(function: Function) -> int:
    nodes = ast.iter_child_nodes(function.args)
    return len({node.arg for node in nodes if isinstance(node, ast.arg)} - {"self", "cls"})


def _listed(label: str, names: Iterable[str]) -> Figure:
    return Figure(label, len(listed := tuple(names)), listed)


def _repeated(label: str, names: Iterable[str]) -> Figure:
    return _listed(label, (f"{name} ({count})" for name, count in sorted(Counter(names).items()) if count > 1))


def _bound_names(function: Function) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def measure(checkout: Path) -> list[Figure]:
    """Return the figures of the packages and tests in a checkout."""
    modules = list(parse_modules(checkout.resolve()))
    graph = import_graph(modules)
    rooms = room_graph(graph)
    lines = sum(len(module.source.splitlines()) for module in modules)
    return [
        Figure("files", len(modules)),
        Figure("lines", lines),
        *_design_figures(modules, graph, lines),
        Figure("rooms", len(rooms)),
        Figure("floors: longest path of imports between rooms", count_floors(rooms)),
        Figure("floors: longest path of imports between modules", count_floors(graph)),
        Figure("imports between modules", sum(map(len, graph.values()))),
        Figure("largest folders, in files", "", tuple(_folder_sizes(modules, graph))),
        *_code_figures(modules),
        *_test_figures(checkout),
    ]


def _design_figures(modules: Sequence[Module], graph: Graph, lines: int) -> Iterator[Figure]:
    entries = Counter(name.split(".")[0] for name in {".".join(m.name.split(".")[:2]) for m in modules} if "." in name)
    yield Figure("entries of the packages", "", tuple(f"{package} {count}" for package, count in entries.items()))
    yield _listed("circles of imports", circles(graph))
    classes = [(module.name, node) for module in modules for node in _classes(module.tree)]
    for label, counts in (("types that hold a run", holds_run), ("types with a version and its day", carries_release)):
        yield _listed(label, (f"{name}.{node.name}" for name, node in classes if counts(node)))
    types = with_outcome(modules)
    yield _listed("types with a cell's outcome", (f"{module}.{name}" for name, module in types.items()))
    yield _listed("conversions of a cell on the way to the page", conversions(modules))
    tables = [f"{module.name}:{line}" for module in modules for line in verdict_tables(module)]
    yield _listed("tables keyed by verdict, judgement or title of a finding", tables)
    outside = [module for module in modules if ".run." not in f"{module.name}."]
    grouped = [f"{module.name}:{line}" for module in outside for line in groupings(module)]
    yield _listed("groupings of results outside the run", grouped)
    yield _listed("hooks that return Any", (name for module in modules for name in untyped_hooks(module)))
    late = [f"{module.name}:{line}" for module in modules for line in late_imports(module)]
    yield _listed("imports inside functions, outside cli/, features/ and runtimes/", late)
    stays = result_walk(modules)
    yield _listed("rooms on the walk of a result to the page", dict.fromkeys(stays))
    yield Figure("returns on that walk", len(stays) - len(set(stays)))
    imports = [node for m in modules for node in ast.walk(m.tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    share = 100 * sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports) / lines
    yield Figure("import lines, of all lines", f"{share:.1f} %")


def _code_figures(modules: list[Module]) -> Iterator[Figure]:
    nodes = [(module.name, node) for module in modules for node in ast.walk(module.tree)]
    functions = [(f"{name}.{node.name}", node) for name, node in nodes if isinstance(node, Function)]
    long = [name for name, node in functions if (node.end_lineno or 0) - node.lineno + 1 > LONG_FUNCTION]
    wide = [(name, node) for name, node in functions if _parameters(node) >= MANY_PARAMETERS]
    commands = [name for name, node in wide if is_command(node)]
    yield _listed(f"functions over {LONG_FUNCTION} lines", long)
    yield _listed(f"functions with {MANY_PARAMETERS} or more parameters", [n for n, _ in wide if n not in commands])
    yield _listed("the same, click commands: a parameter an option", commands)
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
    for folder in ("tests", "studies"):
        sources = [path.read_text(encoding="utf-8") for path in (checkout / folder).rglob("*.py")]
        yield Figure(f"lines of Python in {folder}/", sum(len(source.splitlines()) for source in sources))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (checkout / "tests").rglob("test_*.py")}
    functions = [node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, Function)]
    long = [name for name in functions if name.startswith("test_") and len(name) > LONG_TEST_NAME]
    yield Figure(f"test names over {LONG_TEST_NAME} characters", len(long))
    layers = trees.get(checkout / "tests" / "test_layers.py", ast.Module([], []))
    exceptions = [ast.unparse(node).partition(" = ")[2] for node in layers.body if "SAME_FLOOR =" in ast.unparse(node)]
    yield Figure("entries in the same-floor list", sum(len(ast.literal_eval(entries)) for entries in exceptions))


def checked_out(commit: str, repository: Path, folder: Path) -> Path:
    """Write the Python files of a commit into a folder, and return the folder.

    Raises:
        SystemExit: the repository does not have the commit.
    """
    command = ["git", "-C", str(repository), "archive", commit, "*.py"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"--compare: expected a commit or a folder, found {commit!r}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def main() -> None:
    """Print the figures of a checkout with all names, or the figures of two checkouts side by side.

    Side by side, a figure has its names only if they are few.
    """
    parser = argparse.ArgumentParser(description="The structure of a source tree in figures.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="default: the current folder")
    parser.add_argument("--compare", metavar="BEFORE", help="a commit, or another checkout: both, as Markdown")
    options = parser.parse_args()
    if options.compare:
        with tempfile.TemporaryDirectory() as scratch:
            earlier = Path(options.compare)
            if not earlier.is_dir():
                earlier = checked_out(options.compare, options.folder, Path(scratch))
            figures = zip(measure(earlier), measure(options.folder), strict=True)
            print(f"| | {options.compare} | now |\n|---|---|---|")
            print(*(f"| {before.label} | {before} | {after} |" for before, after in figures), sep="\n")
    else:
        for label, value, names in measure(options.folder):
            print(f"{label:66} {value:>8}", *names, sep="\n    ")


if __name__ == "__main__":
    main()
