"""The parts about the Python API: the names that `tools.public` lists, with their docstrings and types."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import griffe

from tools.public import INTERNAL, PROVISIONAL, STABLE

PACKAGES = ("export_core", "pytest_jaxexport")
FIELDS = {
    "Manifest": "[golden.yaml](files.md#goldenyaml)",
    "Result": "[results.jsonl](files.md#resultsjsonl)",
    "Summary": "[summary.json](files.md#summaryjson)",
    "Writer": "[golden.yaml](files.md#goldenyaml)",
    "Policy": "[the keys of a policy](policy.md)",
    "JaxlibRelease": "[JaxlibRelease](policy.md#jaxlibrelease)",
    "JaxRelease": "[JaxRelease](policy.md#jaxrelease)",
    "Verdict": "[verdicts](verdicts.md#verdicts)",
    "Judgement": "[judgements](verdicts.md#judgements)",
    "Direction": "[directions](verdicts.md#directions)",
}
"""Types whose fields are described on a different page, each with the link to it."""

BY_NAME = {
    "Envelope": "as jax names them",
    "Module": "of the bytecode",
    "RunOptions": "all with a default, as options of `jaxexport matrix`, but `memory` in bytes",
    "Selection": "all with a default, as options of `jaxexport matrix`",
    "Shard": "",
    **dict.fromkeys(("AbstractDevice", "AbstractMesh", "HloSharding", "NamedSharding", "PartitionSpec"), "as in jax"),
    **dict.fromkeys(("ArtifactError", "Constant", "DisabledCheck", "Function", "UnknownField"), ""),
}
"""Types whose attributes are listed by name and type only, each with a remark about these names."""


@functools.cache
def modules() -> griffe.ModulesCollection:
    """Return the source code of both packages, parsed without importing it."""
    loader = griffe.GriffeLoader(search_paths=["."], docstring_parser=griffe.Parser.google)
    for package in PACKAGES:
        loader.load(package)
    loader.resolve_aliases()
    return loader.modules_collection


def source_of(module: str, name: str) -> griffe.Object:
    """Return the function or class of a public name, as griffe found it in the source code."""
    found = modules()[f"{module}.{name}"]
    return found.final_target if isinstance(found, griffe.Alias) else found


def members_of(kind: griffe.Object) -> list[griffe.Object]:
    """Return the public attributes and methods of a class, in the order of the source.

    Members that it inherits from a class that is not public come first.
    """
    hidden = INTERNAL.get(kind.name, ())
    # Members that a public class inherits from a base class which is not public are described as its own.
    public = {name for listed in (STABLE, PROVISIONAL) for names in listed.values() for name in names}
    bases = [base for base in reversed(kind.mro()) if base.name not in public] if isinstance(kind, griffe.Class) else []
    members = {name: member for each in (*bases, kind) for name, member in each.members.items()}
    return [
        member
        for name, member in members.items()
        if not name.startswith("_") and name not in hidden and isinstance(member, (griffe.Attribute, griffe.Function))
    ]


def names(listed: Mapping[str, tuple[str, ...]]) -> str:
    """Return a section for each module, with a section inside it for each of the module's names."""
    return "\n".join(line for module, names in listed.items() for line in _module(module, names))


def documented(module: str, path: str, title: str) -> str:
    """Return the section about a function, with `title` in place of its name in the code.

    Args:
        module: the module that defines the function.
        path: the path of the function in the module, such as `Recorder.__call__`.
        title: the heading, which is also the name in the signature.
    """
    function = modules()[f"{module}.{path}"]
    return f"### {title}\n\n{_signature(function, title)}\n{_docstring(function)}"


def _module(module: str, names: tuple[str, ...]) -> Iterator[str]:
    yield f"### {module}\n"
    for name in names:
        found = source_of(module, name)
        yield f"#### {name}\n"
        if isinstance(found, griffe.Function):
            yield _signature(found)
        yield _docstring(found)
        if name in FIELDS:
            yield f"What is in it: {FIELDS[name]}.\n"
        if isinstance(found, griffe.Class):
            yield _members(found)


def _members(kind: griffe.Class) -> str:
    members = members_of(kind)
    attributes = [member for member in members if isinstance(member, griffe.Attribute) and kind.name not in FIELDS]
    if kind.name in BY_NAME:
        about = ", ".join(filter(None, ("Attributes", BY_NAME[kind.name])))
        lines = [f"{about}: {', '.join(f'`{_typed(member)}`' for member in attributes)}.\n\n"]
    else:
        lines = [f"- `{_typed(member)}`: {_line(meaning_of(member))}\n" for member in attributes]
    lines += [f"- `{signature_of(member)}`: {_paragraph(member)}\n" for member in members if member.is_function]
    return "".join(lines) + "\n"


def _typed(attribute: griffe.Attribute) -> str:
    """Return the name of an attribute, followed by its type if the code gives one."""
    return ": ".join(filter(None, (attribute.name, _type(annotation_of(attribute)))))


def _paragraph(method: griffe.Object) -> str:
    """Return the docstring of a method on one line."""
    return " ".join(_docstring(method).split())


def annotation_of(member: griffe.Attribute) -> griffe.Expr | str | None:
    """Return the type of an attribute, or None if the code gives none.

    If the attribute is set from a parameter of `__init__` and has no type itself, return the parameter's type.
    """
    made = member.parent.members.get("__init__") if member.parent else None
    if member.annotation is None and isinstance(made, griffe.Function) and str(member.value) in made.parameters:
        return made.parameters[str(member.value)].annotation
    return member.annotation


def meaning_of(member: griffe.Object) -> str:
    """Return the meaning of a member: the first paragraph of its docstring, or the comment behind it.

    If the member is an option, and has no docstring, return the code that defines the option, which has its help.
    """
    if member.docstring:
        return inspect.cleandoc(member.docstring.value).split("\n\n")[0]
    if isinstance(member, griffe.Attribute) and str(member.value).startswith("_option("):
        return str(member.value)
    return member.lines[-1].partition("  # ")[2] if member.lines else ""


def _type(annotation: griffe.Expr | str | None) -> str:
    """Return a type as text, in which each alias of these packages is replaced by its definition."""
    text = str(annotation or "")
    for name in names_in(annotation):
        meant = modules()[name.canonical_path] if name.canonical_path.split(".")[0] in PACKAGES else None
        if isinstance(meant, griffe.Attribute):
            text = re.sub(rf"\b{name.name}\b", str(meant.value), text)
    return text


def names_in(annotation: griffe.Expr | str | None) -> list[griffe.ExprName]:
    """Return the names that an annotation contains."""
    parts = annotation.iterate(flat=True) if isinstance(annotation, griffe.Expr) else ()
    return [part for part in parts if isinstance(part, griffe.ExprName)]


def signature_of(function: griffe.Function, name: str = "") -> str:
    """Return the signature of a function on one line."""
    return f"{name or function.name}({', '.join(_parameters(function))}) -> {_type(function.returns)}"


def _signature(function: griffe.Function, name: str = "") -> str:
    line = signature_of(function, name)
    if len(line) > 100:
        inside = "".join(f"    {parameter},\n" for parameter in _parameters(function))
        line = f"{name or function.name}(\n{inside}) -> {_type(function.returns)}"
    return f"```python\n{line}\n```\n"


def _parameters(function: griffe.Function) -> list[str]:
    hidden = ("self", "cls", *INTERNAL.get(function.name, ()))
    parameters = []
    star = False
    for parameter in (each for each in function.parameters if each.name not in hidden):
        star = star or parameter.kind is griffe.ParameterKind.var_positional
        if parameter.kind is griffe.ParameterKind.keyword_only and not star:
            star = True
            parameters.append("*")
        parameters.append(_parameter(parameter))
    return parameters


def _parameter(parameter: griffe.Parameter) -> str:
    kinds = griffe.ParameterKind
    stars = "*" if parameter.kind is kinds.var_positional else "**" if parameter.kind is kinds.var_keyword else ""
    default = f" = {parameter.default}" if parameter.default is not None and not stars else ""
    return f"{stars}{parameter.name}: {_type(parameter.annotation)}{default}"


def _docstring(found: griffe.Object) -> str:
    """Return the docstring of an object as Markdown, in which sections such as Args are lists."""
    return "\n".join(_section(section, INTERNAL.get(found.name, ())) for section in _sections(found)) + "\n"


def _sections(found: griffe.Object) -> list[griffe.DocstringSection]:
    return found.docstring.parse("google", returns_multiple_items=False) if found.docstring else []


def _section(section: griffe.DocstringSection, hidden: tuple[str, ...]) -> str:
    value: Any = section.value
    if section.kind is griffe.DocstringSectionKind.parameters:
        rows = [f"- `{item.name}`: {_line(item.description)}" for item in value if item.name not in hidden]
    elif section.kind is griffe.DocstringSectionKind.returns:
        rows = [f"\nReturns: {_line(item.description)}" for item in value]
    elif section.kind is griffe.DocstringSectionKind.raises:
        rows = [f"\nRaises `{item.annotation}`: {_line(item.description)}" for item in value]
    else:
        rows = [str(value).replace("``", "`")]
    return "\n".join(rows) + "\n"


def _line(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


PARTS = {"stable names": lambda: names(STABLE), "provisional names": lambda: names(PROVISIONAL)}
