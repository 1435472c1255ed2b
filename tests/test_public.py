"""The public API: names that `tools.public` lists exist, have docstrings and use only public types."""

import importlib
import re
from collections.abc import Iterator

import griffe
import pytest

import export_core
from export_core.goldens import Manifest
from export_core.judge import Result, Summary
from export_core.policy import Policy
from tools.field_docs import types_in
from tools.public import INTERNAL, PROVISIONAL, STABLE
from tools.reference import api
from tools.reference.api import FIELDS, PACKAGES, annotation_of, meaning_of, members_of, modules, names_in, source_of

LISTED = [(module, name) for names in (STABLE, PROVISIONAL) for module in names for name in names[module]]
NAMES = pytest.mark.parametrize(("module", "name"), LISTED)

# The fields of these types are in the references of files and of the policy.
DATA = {kind for whole in (Manifest, Policy, Result, Summary) for kind in types_in(whole)}


def annotations(public: griffe.Object) -> Iterator[griffe.Expr | str | None]:
    """Yield the types of a function, or of the public members of a class."""
    if isinstance(public, griffe.Function):
        hidden = INTERNAL.get(public.name, ())
        yield public.returns
        yield from (parameter.annotation for parameter in public.parameters if parameter.name not in hidden)
    elif isinstance(public, griffe.Attribute):
        yield annotation_of(public)
    elif public.name not in FIELDS:
        yield from (annotation for member in members_of(public) for annotation in annotations(member))


@NAMES
def test_a_public_name_can_be_imported_and_is_documented(module, name):
    imported = importlib.import_module(module)
    assert hasattr(imported, name)
    assert name in getattr(imported, "__all__", (name,))
    public = source_of(module, name)
    assert public.docstring
    if isinstance(public, griffe.Class) and name not in FIELDS:
        assert [member.name for member in members_of(public) if not meaning_of(member)] == []


@NAMES
def test_a_public_name_has_public_types_only(module, name):
    public = {source_of(*listed).path for listed in LISTED} | {f"{kind.__module__}.{kind.__name__}" for kind in DATA}
    for annotation in annotations(source_of(module, name)):
        for part in names_in(annotation):
            if part.canonical_path.split(".")[0] in PACKAGES:
                found = modules()[part.canonical_path]
                found = found.final_target if isinstance(found, griffe.Alias) else found
                assert isinstance(found, griffe.Attribute) or found.path in public, part


def test_each_error_that_a_raises_line_names_is_public():
    text = api.names(STABLE) + api.names(PROVISIONAL)
    named = {name for line in text.splitlines() if "Raises " in line for name in re.findall(r"`([A-Z]\w+)`", line)}
    assert {"ArtifactError", "MatrixError"} <= named
    assert named - {name for _, name in LISTED} == set()


def test_members_listed_as_internal_exist():
    by_name = {name: source_of(module, name) for module, name in LISTED}
    for name, hidden in INTERNAL.items():
        public = by_name[name]
        members = public.parameters if isinstance(public, griffe.Function) else public.all_members
        assert [member for member in hidden if member not in members] == []


def test_no_public_name_is_listed_twice():
    assert len(set(LISTED)) == len(LISTED)


def test_export_core_exports_the_errors_that_its_functions_raise():
    """`except export_core.ArtifactError` fails at the moment when the first bad file comes."""
    for module, name in LISTED:
        if name in export_core.__all__:
            assert getattr(export_core, name) is getattr(importlib.import_module(module), name)
    named = {"ArtifactError", "ExportCompatError", "GoldenError", "PlatformError", "PolicyError", "ReleaseError"}
    assert named <= {*export_core.__all__}
