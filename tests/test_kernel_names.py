"""Names in the kernel: it names no feature, neither its folder nor its policy keys and facts of results."""

import ast
from collections.abc import Iterator
from pathlib import Path

from export_core.base.feature import features
from export_core.features import FEATURES
from export_core.policy.feature_keys import feature_keys

ROOT = Path(__file__).parents[1]
KERNEL = [
    path
    for package in ("export_core", "pytest_jaxexport")
    for path in sorted((ROOT / package).rglob("*.py"))
    if "features" not in path.relative_to(ROOT).parts
]
ADDED = {key.name for key in feature_keys()} | {name for feature in features().values() for name in feature.facts}
HOMONYMS = {"convert", "inspect", "why", "remote", "forecast"}
"""Features whose names are also words of Python, of msgspec, or of any file: as names in code they say nothing.

`forecast` is also what the kernel says of one artifact and one reader; the feature says it of the coming months.
"""
REASONS = {
    "export_core.numbers.factorizations costs": "those of an assignment of eigenvalues",
    "pytest_jaxexport.nox_sessions backfill": "the session of nox that users borrow; it calls the command",
}


def names_in(path: Path) -> Iterator[str]:
    """Yield the identifiers of a module, and its texts that are single words or paths of modules."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=aliases):
                yield from (part for alias in aliases for part in alias.name.split("."))
            case ast.ImportFrom(module=str(module), names=aliases):
                yield from (*module.split("."), *(alias.name for alias in aliases))
            case ast.Constant(value=str(text)) if " " not in text:
                yield from text.replace("/", ".").split(".")


def test_the_kernel_names_no_feature():
    named = {
        f"{'.'.join(path.relative_to(ROOT).with_suffix('').parts)} {name}"
        for path in KERNEL
        for name in {*names_in(path)} & ({*FEATURES} - HOMONYMS | ADDED)
    }
    assert named == REASONS.keys()


def test_the_kernel_imports_no_feature():
    texts = {path: path.read_text() for path in KERNEL}
    importing = [path for path, text in texts.items() if any(f"features.{name}" in text for name in FEATURES)]
    assert importing == []
