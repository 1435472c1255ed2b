"""The Python API: what `export_core.public` lists, with the docstrings and types of the code."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import griffe

from export_core.public import INTERNAL, PROVISIONAL, STABLE
from tools.reference.markdown import code, table

PACKAGES = ("export_core", "pytest_jaxexport")
FIELDS = {
    "Manifest": "[golden.yaml](files.md#goldenyaml)",
    "Result": "[results.jsonl](files.md#resultsjsonl)",
    "Summary": "[summary.json](files.md#summaryjson)",
    "Writer": "[golden.yaml](files.md#writer)",
    "Policy": "[the keys of a policy](policy-keys.md)",
    "JaxlibRelease": "[JaxlibRelease](policy-keys.md#jaxlibrelease)",
    "JaxRelease": "[JaxRelease](policy-keys.md#jaxrelease)",
    "Verdict": "[verdicts](verdicts.md#verdicts)",
    "Judgement": "[judgements](verdicts.md#judgements)",
    "Direction": "[directions](verdicts.md#directions)",
}
"""Types of data whose fields another page has."""


@functools.cache
def modules() -> griffe.ModulesCollection:
    """The source code of both packages, read and not imported."""
    loader = griffe.GriffeLoader(search_paths=["."], docstring_parser=griffe.Parser.google)
    for package in PACKAGES:
        loader.load(package)
    loader.resolve_aliases()
    return loader.modules_collection


def source_of(module: str, name: str) -> griffe.Object:
    """A public name as the source code has it."""
    found = modules()[f"{module}.{name}"]
    return found.final_target if isinstance(found, griffe.Alias) else found


def members_of(kind: griffe.Object) -> list[griffe.Object]:
    """The public members of a class, in the order of the source."""
    hidden = INTERNAL.get(kind.name, ())
    return [
        member
        for name, member in kind.members.items()
        if not name.startswith("_") and name not in hidden and isinstance(member, (griffe.Attribute, griffe.Function))
    ]


def names(listed: Mapping[str, tuple[str, ...]]) -> str:
    """A section for each module, and in it one for each name."""
    return "\n".join(line for module, names in listed.items() for line in _module(module, names))


def _module(module: str, names: tuple[str, ...]) -> Iterator[str]:
    yield f"## {module}\n"
    for name in names:
        found = source_of(module, name)
        yield f"### {name}\n"
        if isinstance(found, griffe.Function):
            yield _signature(found)
        yield _docstring(found)
        if name in FIELDS:
            yield f"Its fields: {FIELDS[name]}.\n"
        if isinstance(found, griffe.Class):
            yield _members(found)


def _members(kind: griffe.Class) -> str:
    # The docstring of a class of an error describes what is in its message.
    attributes = [
        (code(member.name), code(str(member.annotation or "")), _first(member))
        for member in members_of(kind)
        if isinstance(member, griffe.Attribute) and kind.name not in FIELDS
    ]
    methods = [member for member in members_of(kind) if isinstance(member, griffe.Function)]
    parts = [table(("attribute", "type", "what"), attributes)] if attributes else []
    parts += [f"#### {kind.name}.{method.name}\n\n{_signature(method)}\n{_docstring(method)}" for method in methods]
    return "\n".join(parts)


def _first(member: griffe.Object) -> str:
    return inspect.cleandoc(member.docstring.value).split("\n\n")[0] if member.docstring else ""


def _signature(function: griffe.Function) -> str:
    hidden = ("self", "cls", *INTERNAL.get(function.name, ()))
    shown = [parameter for parameter in function.parameters if parameter.name not in hidden]
    parameters = []
    keyword_only = False
    for parameter in shown:
        if parameter.kind is griffe.ParameterKind.keyword_only and not keyword_only:
            keyword_only = True
            parameters.append("*")
        default = f" = {parameter.default}" if parameter.default is not None else ""
        parameters.append(f"{parameter.name}: {parameter.annotation}{default}")
    line = f"{function.name}({', '.join(parameters)}) -> {function.returns}"
    if len(line) > 100:
        inside = "".join(f"    {parameter},\n" for parameter in parameters)
        line = f"{function.name}(\n{inside}) -> {function.returns}"
    return f"```python\n{line}\n```\n"


def _docstring(found: griffe.Object) -> str:
    """The docstring with its sections as lists."""
    return "\n".join(_section(section, INTERNAL.get(found.name, ())) for section in found.docstring.parsed) + "\n"


def _section(section: griffe.DocstringSection, hidden: tuple[str, ...]) -> str:
    value: Any = section.value
    if section.kind is griffe.DocstringSectionKind.parameters:
        rows = [f"- `{item.name}`: {_line(item.description)}" for item in value if item.name not in hidden]
    elif section.kind is griffe.DocstringSectionKind.returns:
        rows = [f"- returns {_line(item.description)}" for item in value]
    elif section.kind is griffe.DocstringSectionKind.raises:
        rows = [f"- raises `{item.annotation}`: {_line(item.description)}" for item in value]
    else:
        rows = [str(value).replace("``", "`")]
    return "\n".join(rows) + "\n"


def _line(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


PARTS = {"stable names": lambda: names(STABLE), "provisional names": lambda: names(PROVISIONAL)}
