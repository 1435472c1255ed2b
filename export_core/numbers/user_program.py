"""The program of the process in which users' functions run: it imports them, calls them, and answers as JSON lines.

An answer tells what a user's function returned or raised. If it ends or blocks this process, `user_code` notices that
from outside.
"""

import importlib
import json
import os
import queue
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)


class _UserError(Exception):
    """An error whose message says why a user's function cannot compare outputs, or did not compare them."""


def main() -> None:
    """Answer each request line of standard input with a line on the original standard output, until the input ends."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Neither requests nor answers are for the user's code, which may read and print what it likes.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    start = json.loads(requests.readline())
    sys.path[:] = start["path"]
    from export_core.goldens.arrays import Array, from_npz

    # After our own imports: no module of the project takes the place of one of ours.
    if start["root"] not in sys.path:
        sys.path.insert(0, start["root"])

    def arrays(path: str) -> list[Array]:
        return [leaf.numpy() for leaf in from_npz(Path(path))]

    def take() -> None:
        for line in requests:
            waiting.put(json.loads(line))
        os._exit(0)

    process = os.getpid()
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    # In a thread of its own: this process ends with its coordinator, whatever it is doing.
    threading.Thread(target=take, daemon=True).start()
    answer: dict[str, Any] = {"id": start["id"]}
    while True:
        if os.getpid() != process:  # the user's code has forked, and what it forked came back here
            os._exit(0)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()
        request = waiting.get()
        answer = {"id": request["id"]}
        try:
            function = _load(request["name"], start["root"])
            if "expected" in request:
                sides = arrays(request["expected"]), arrays(request["actual"])
                answer["message"] = _call(request["name"], function, *sides)
        except _UserError as problem:
            answer["problem"] = _plain(str(problem))


def _load(name: str, root: str) -> Callable[..., object]:
    """Import and return the function that ``module:function`` names.

    `root` is the folder of the project, for messages. Raises `_UserError` if the function cannot be imported, is not a
    function, or belongs to Python itself.
    """
    where = f"compare={name!r}"
    module_name, _, path = name.partition(":")
    try:
        value: Any = importlib.import_module(module_name)
    # Not only Exception, here and below: sys.exit(0) in a user's code is an error like any other.
    except BaseException as error:
        raise _UserError(
            f"{where}: cannot import {module_name}: {_described(error)}. "
            f"It must be installed, or be found from the folder {root} or through PYTHONPATH."
        ) from error
    file = getattr(value, "__file__", "")
    for attribute in path.split("."):
        if not hasattr(value, attribute):
            raise _UserError(f"{where}: {module_name} ({file}) has no {path}.")
        value = getattr(value, attribute)
    if not callable(value):
        raise _UserError(f"{where}: expected a function (expected, actual), found {type(value).__name__}.")
    # Also through another module, which imports it.
    own = sys.modules.get(value.__module__ or "") if isinstance(value, _FUNCTIONS) else sys.modules[module_name]
    file = getattr(own, "__file__", None)
    # A project may have a module with such a name, as `test`.
    in_library = not file or Path(file).is_relative_to(Path(os.__file__).parent)
    installed = {"site-packages", "dist-packages"} & set(Path(file or "").parts)
    if own and own.__name__.partition(".")[0] in sys.stdlib_module_names and in_library and not installed:
        raise _UserError(
            f"{where}: expected a function that compares outputs, found one of Python's own module {own.__name__}: it "
            "may return None for wrong outputs too, as `print` does."
        )
    function: Callable[..., object] = value
    return function


def _call(name: str, function: Callable[..., object], expected: list[Any], actual: list[Any]) -> str | None:
    """Return what a user's function finds wrong; None if it finds nothing wrong.

    An AssertionError counts as a finding, since numpy.testing and plain assert raise it. Any other error means that
    nothing was compared, and is raised as `_UserError`.
    """
    try:
        if (result := function(expected, actual)) is None:
            return None
        if isinstance(result, str) and result.strip():
            return _plain(result)
        returned = repr(result)
    except AssertionError as error:
        return _plain(str(error)) or "an assertion failed, without a message"
    except BaseException as error:
        raise _UserError(f"compare={name!r} raised {_described(error)}. Nothing was compared.") from error
    raise _UserError(
        f"compare={name!r} returned {returned}: expected None when the outputs are right, or text that says what is "
        "wrong."
    )


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # an error of a user's own class, whose text cannot be made
        return type(error).__name__


def _plain(text: str) -> str:
    """Return a text with lone surrogates escaped, so that JSON can represent it."""
    return text.encode(errors="backslashreplace").decode()


if __name__ == "__main__":
    main()
