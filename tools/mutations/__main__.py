"""Mutate the modules that decide, one place at a time, and look whether their fast tests notice: `nox -s mutations`.

Cosmic Ray makes the mutations; modules.yaml says which modules there are, which tests belong to each, and which
mutations change nothing that anybody can see, with the reason. A sample of each module is tried, the same each time;
`--all` tries every mutation. Nothing in the checkout is changed: each worker has a copy.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import msgspec
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

ROOT = Path(__file__).parents[2]
OPERATORS = (
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "NumberReplacer", "ZeroIterationForLoop"),
    *("ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub"),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "BitAnd_BitOr")),
)
"""What Cosmic Ray does to a place. ``|`` stays: nearly all are in annotations."""
COPIED = ("export_core", "pytest_jaxexport", "tests", "golden", "schema", "docs", "changes", "tools", "pyproject.toml")
SECONDS = 300
"""After this long a mutated program hangs: it was noticed."""


class Unseen(msgspec.Struct, forbid_unknown_fields=True):
    """A mutation that changes nothing that anybody can see: part of the line as it is, its operator, and the reason."""

    line: str
    operator: str
    reason: str


class Module(msgspec.Struct, forbid_unknown_fields=True):
    """A module that decides, the fast tests that have to notice its mutations, and those that cannot be noticed."""

    path: str
    tests: tuple[str, ...]
    unseen: tuple[Unseen, ...] = ()


@dataclass(frozen=True)
class Mutation:
    """One change of one place of a module."""

    module: Module
    operator: str
    occurrence: int
    line: int
    text: str

    @property
    def reason(self) -> str:
        """Why nobody can see it; empty for one that has an effect."""
        listed = (one.reason for one in self.module.unseen if one.line in self.text and one.operator == self.operator)
        return next(listed, "")

    def __str__(self) -> str:
        return f"{self.module.path}:{self.line}: {self.operator}: {self.text.strip()}"


def mutations_of(module: Module) -> Iterator[Mutation]:
    """All mutations of a module."""
    source = (ROOT / module.path).read_text(encoding="utf-8")
    lines = source.splitlines()
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        places = (place for node in ast_nodes(get_ast(source)) for place in operator.mutation_positions(node))
        for occurrence, ((line, _), _) in enumerate(places):
            if not lines[line - 1].startswith("@dataclass("):  # that a class is frozen, no test has to show
                yield Mutation(module, name, occurrence, line, lines[line - 1])


def noticed(mutation: Mutation, folder: Path) -> bool:
    """Whether a test of the module fails where the copy in this folder is mutated."""
    target = folder / mutation.module.path
    original = target.read_text(encoding="utf-8")
    changed = mutate_code(original, get_operator(f"core/{mutation.operator}")(), mutation.occurrence)
    if changed is None or changed == original:
        raise SystemExit(f"{mutation}: Cosmic Ray has changed nothing")
    target.write_text(changed, encoding="utf-8")
    try:
        return not passes(mutation.module, folder)
    finally:
        target.write_text(original, encoding="utf-8")


def passes(module: Module, folder: Path) -> bool:
    """Whether the tests of a module pass in a copy."""
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *module.tests]
    given = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(words, cwd=folder, env=given, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1, 2):  # 2: it cannot be imported any longer
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout.decode()[-2000:]}")
    return done.returncode == 0


def main() -> None:
    """Try what the options say, print what no test notices, and end with 1 where that is too much."""
    parser = argparse.ArgumentParser(prog="tools.mutations", description=__doc__)
    parser.add_argument("--sample", type=int, default=4, help="mutations of each module. Default: 4")
    parser.add_argument("--seed", type=int, default=0, help="another sample")
    parser.add_argument("--all", action="store_true", help="every mutation, which takes hours")
    parser.add_argument("--modules", default="", help="only modules whose path matches this regular expression")
    options = parser.parse_args()
    listed = msgspec.yaml.decode((ROOT / "tools/mutations/modules.yaml").read_bytes(), type=list[Module])
    chosen: list[Mutation] = []
    for module in listed:
        if re.search(options.modules, module.path):
            found = list(mutations_of(module))
            count = len(found) if options.all else min(options.sample, len(found))
            chosen += random.Random(f"{options.seed} {module.path}").sample(found, count)
    with tempfile.TemporaryDirectory() as scratch:
        results = tried(chosen, [Path(scratch) / str(number) for number in range(os.cpu_count() or 1)])
    report(chosen, results)


def tried(mutations: Sequence[Mutation], folders: Sequence[Path]) -> list[bool]:
    """Whether each of these was noticed, as many at a time as there are folders for copies."""
    free: SimpleQueue[Path] = SimpleQueue()
    for folder in folders:
        for name in COPIED:
            source, target = ROOT / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("_build", "__pycache__", "atlas"))
            else:
                shutil.copy2(source, target)
        free.put(folder)

    def one(mutation: Mutation) -> bool:
        folder = free.get()
        try:
            was_noticed = bool(mutation.reason) or noticed(mutation, folder)
        finally:
            free.put(folder)
        if not was_noticed:
            print(f"not noticed: {mutation}", flush=True)
        return was_noticed

    with ThreadPoolExecutor(len(folders)) as pool:
        sound = {id(one.module): one.module for one in mutations}.values()
        if failing := [module.path for module in sound if not passes(module, folders[0])]:
            raise SystemExit(f"these modules' tests fail without any mutation: {', '.join(failing)}")
        return list(pool.map(one, mutations))


def report(mutations: Sequence[Mutation], results: Sequence[bool]) -> None:
    """Print what was noticed. Ends with 1 where less than 97 % of those with an effect were."""
    effective = [found for mutation, found in zip(mutations, results, strict=True) if not mutation.reason]
    share = sum(effective) / len(effective) if effective else 1.0
    unseen = len(mutations) - len(effective)
    print(f"{len(mutations)} mutations, {unseen} of them without an effect")
    print(f"noticed: {sum(effective)} of {len(effective)}, {share:.1%}")
    sys.exit(share < 0.97)


if __name__ == "__main__":
    main()
