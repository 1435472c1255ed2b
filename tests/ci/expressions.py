"""An evaluator of the expressions that the workflows here use. Any other expression is an error."""

import json
import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)|(?P<sign>\|\||&&|==|!=|[!(),]))"
)
_SIGNS = {"||": "or", "&&": "and", "!": "not"}
_EXPRESSION = re.compile(r"\$\{\{((?:(?!\}\}).)*)\}\}")
_STATUS = re.compile(r"\b(success|failure|always|cancelled)\(\)")
_MAY_BE_EMPTY = ("vars", "outputs")


def evaluate(text: str, contexts: Mapping[str, Any], status: str = "success") -> Any:
    """Return the value of an expression. `status` is that of the job so far."""
    words, at = [], 0
    while text[at:].strip():
        token = _TOKEN.match(text, at)
        assert token, f"expected a known expression, found {text!r}"
        at = token.end()
        if token["text"]:
            words.append(repr(token["text"][1:-1].replace("''", "'")))
        elif token["name"] and text[at : at + 1] != "(":
            words.append(f"value({token['name']!r})")
        else:
            words.append(token["name"] or _SIGNS.get(token["sign"], token["sign"]))
    known = {
        "value": lambda name: _looked_up(name, contexts),
        "fromJSON": json.loads,
        "always": lambda: True,
        "cancelled": lambda: False,
        "success": lambda: status == "success",
        "failure": lambda: status == "failure",
    }
    return eval(" ".join(words), {"__builtins__": {}}, known)


def _looked_up(name: str, contexts: Mapping[str, Any]) -> Any:
    *path, last = name.split(".")
    value: Any = contexts
    for key in path:
        assert key in value, f"a context that this does not know: {name}"
        value = value[key]
    # GitHub evaluates an unknown name to an empty text. Here only an output or a variable may be missing.
    assert last in value or path[-1] in _MAY_BE_EMPTY, f"a context that this does not know: {name}"
    return value.get(last, "")


def filled(value: Any, contexts: Mapping[str, Any]) -> Any:
    """Return a value of YAML with its expressions evaluated. A text that is one expression gets its value's type."""
    if isinstance(value, Mapping):
        return {key: filled(each, contexts) for key, each in value.items()}
    if not isinstance(value, str):
        return value
    whole = _EXPRESSION.fullmatch(value)
    if whole:
        return evaluate(whole[1], contexts)
    return _EXPRESSION.sub(lambda found: str(evaluate(found[1], contexts)), value)


def wanted(condition: Any, contexts: Mapping[str, Any], status: str) -> bool:
    """Return whether an `if:` lets a job or a step run. Without a status function, the job must not have failed."""
    text = _EXPRESSION.sub(r"\1", str(condition))
    well = bool(_STATUS.search(text)) or status == "success"
    return well and (not text or bool(evaluate(text, contexts, status)))
