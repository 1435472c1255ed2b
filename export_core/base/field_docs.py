"""What the fields of a type mean: the comments behind them, or docstrings below. Both cost nothing when it is used."""

import ast
import functools
import inspect
import io
import itertools
import sys
import tokenize
from collections.abc import Iterable, Mapping
from typing import Any


@functools.cache
def field_docs(kind: type) -> dict[str, str]:
    """What is said of each field of a class or enumeration, in one line: the comment behind it, or the text below."""
    package = __name__.partition(".")[0]
    inherited = {
        name: text
        for base in kind.__bases__
        if base.__module__.startswith(package)
        for name, text in field_docs(base).items()
    }
    # Of the module and not of the class, which may be made of another one with its name: see `with_feature_keys`.
    try:
        source = inspect.getsource(sys.modules[kind.__module__])
    except OSError:  # an installation without source code
        return {}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    classes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))
    body = next(node.body for node in classes if node.name == kind.__name__)
    docs: dict[str, str] = {}
    for statement, below in itertools.zip_longest(body, body[1:]):
        text = comments.get(statement.end_lineno or 0, "").removeprefix("# ")
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            text = " ".join(below.value.value.split())
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        names = (target.id for target in targets if isinstance(target, ast.Name))
        docs |= {name: text for name in names if text and not text.startswith(("fmt:", "noqa", "type:"))}
    return inherited | docs


def add_field_docs(schema: Mapping[str, Any], kinds: Iterable[type]) -> None:
    """Say in a JSON Schema what the fields of these types mean, unless it says so already."""
    for kind in (kind for kind in kinds if kind.__name__ in schema["$defs"]):
        fields, docs = schema["$defs"][kind.__name__].get("properties", {}), field_docs(kind)
        fields |= {name: {"description": docs[name], **fields[name]} for name in docs.keys() & fields.keys()}
