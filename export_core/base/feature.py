"""The declaration of everything that a feature adds to the kernel, which itself names no feature.

`export_core.features.FEATURES` lists the features. The `FEATURE` of each names its functions as ``module:name``, with
the module in the feature's folder. A function is imported only when it is needed, since `jaxexport --help` must not
load what a matrix needs.
"""

from __future__ import annotations

import functools
import importlib
from itertools import zip_longest
from types import FunctionType

from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Protocol, TypeVar

    Kind = TypeVar("Kind")
else:

    class Protocol:
        """A stand-in for `typing.Protocol` as the base of `QuickStart`, so that `typing` need not be imported."""


FOLDER = "export_core.features"
_TAKES_MORE = 0x04  # The flag of code with ``*args``: `inspect.CO_VARARGS`.


class FeatureError(Exception):
    """An error for a function or object of a feature that does not fit its hook, a mistake that users cannot fix."""


class QuickStart(Protocol):
    """A function that answers a command without click and ends the process, or returns if click is needed."""

    def __call__(self, words: Sequence[str]) -> None:
        """Answer a command; `words` are its words after the name of the feature."""


# No dataclass, which takes 8 ms to import: `jaxexport inspect FILE` loads this, and reads an artifact in less.
class Feature(NamedTuple):
    """The commands, hooks, policy keys and other parts of one feature. A field is empty if there is no such part."""

    commands: Mapping[str, str] = {}
    """Commands, by what is typed after `jaxexport`: ``{"goldens add": "add_command:add"}``."""
    schemas: Mapping[str, tuple[str, str]] = {}
    """Types of files that other programs read, by the name of the schema: ``module:Type``, and what the file is.
    tools/schemas.py makes the schemas."""
    quick_start: str = ""
    """A function that may answer the feature's command without click: a `QuickStart`.

    It gets the words after the command, and ends the process, or returns if click is needed.
    """
    asked_by: str = ""
    """The option of a run, or the key of the policy, that the feature needs.

    If it is not set, `after_replay`, `rule` and `findings` have nothing to do, and are not imported. `rule` and
    `findings` are also called if results have the feature's `facts`.
    """
    facts: Mapping[str, str] = {}
    """Facts that the feature adds to results, by their key: where each `Fact` of base/facts.py is, as
    ``module:NAME``."""
    findings: str = ""  # Findings of a run: gets the `Run`.
    table: str = ""  # A table of the report in full: gets the `Run`, and returns its lines, or none.
    picture: str = ""  # A picture of the page: gets the `Run`, and returns a `Picture` or None.
    row_line: str = ""
    """The line beside a row of the page's table: gets the cells of the row, and returns a `RowLine` or None."""
    compare: str = ""
    """The differences from earlier runs: gets the `Run` and the folders of earlier runs, returns a `RunDifference`."""
    trend: str = ""
    """The function behind `report --trend`: gets results, and whether `numbers` and `cost` are asked for; returns what
    --json prints, and the lines for people."""
    coverage: str = ""  # What goldens cover: gets the goldens, and returns the text for people.
    policy_key: str = ""  # A key of the policy, a `FeatureKey` in its module `policy_key`.
    keywords: Mapping[str, tuple[str, str]] = {}
    """Keywords of the marker, named as their keys of the policy: the meaning and an example of each, which is all that
    `pytest --markers` needs."""
    rule: str = ""
    """A rule over a run that has ended: gets its results, its policy, and the results of an earlier run by cell, or
    None; returns the results with their judgements by this rule."""
    after_replay: str = ""
    """A step after all cells of a matrix have run, if `asked_by` is set: gets the results, the cells, the
    `ReplayOptions`, and a function to call with a line for people; returns the results."""
    executor: str = ""
    """A way to replay cells on other machines: gets what `--executor` names, and a function to call with a line for
    people; returns a context manager whose value replays cells as `matrix.replay.replay_here` does."""
    remedy: str = ""  # What may make a failing cell run: gets the cell and the `ReplayOptions`; returns a sentence.
    converted: str = ""
    """A cell whose reader gets the same program in another form: gets the cell, the `ReplayOptions`, a folder to make,
    and a function to call with a line for people; returns the cell of a converted golden, or None."""

    def is_asked(self, asked: Collection[str]) -> bool:
        """Return whether the feature has something to do in a run with these options, policy keys and facts."""
        return not self.asked_by or self.asked_by in asked or any(name in asked for name in self.facts)


@functools.cache
def features() -> Mapping[str, Feature]:
    """Return all features by the name of their folder, in the order of `FEATURES`."""
    names = importlib.import_module(FOLDER).FEATURES
    return {name: importlib.import_module(f"{FOLDER}.{name}").FEATURE for name in names}


def feature_commands(kind: type[Kind]) -> Iterator[tuple[str, Callable[[], Kind]]]:
    """Yield, for each command of a feature, the words after `jaxexport` and a function that imports the command.

    `kind` is the class of the imported object.
    """
    for name, feature in features().items():
        for words, where in feature.commands.items():
            yield words, functools.partial(_registered, name, words, where, kind)


def hooks(hook: str, kind: type[Kind], asked: Collection[str] | None = None) -> list[Kind]:
    """Import and return the functions or objects that features name in the field `hook`, in the order of `FEATURES`.

    Args:
        hook: The name of the field of `Feature`.
        kind: The caller's `Protocol` for the functions of this field, or the class of its objects.
        asked: The options and keys that are set, and the facts that results have. A feature that needs an option or key
            that is not among them (`asked_by`) is left out, and is not imported. None leaves out no feature.

    Raises:
        FeatureError: A feature names something that is not of this kind.
    """
    return [
        _registered(name, hook, where, kind)
        for name, feature in features().items()
        if (where := getattr(feature, hook)) and (asked is None or feature.is_asked(asked))
    ]


def start_quickly(words: Sequence[str]) -> None:
    """Let a feature answer the command `words` without click and end the process, or return if no feature can."""
    name = words[0] if words else ""
    if name in importlib.import_module(FOLDER).FEATURES:
        feature: Feature = importlib.import_module(f"{FOLDER}.{name}").FEATURE
        if feature.quick_start:
            _registered(name, "quick_start", feature.quick_start, QuickStart)(words[1:])


def _registered(feature: str, hook: str, where: str, kind: type[Kind]) -> Kind:
    """Import and return the function or object that a feature names for a hook, as ``module:name``.

    Raises `FeatureError` if it is not of the kind that the kernel asks for.
    """
    module, _, name = where.partition(":")
    named: Kind = getattr(importlib.import_module(f"{FOLDER}.{feature}.{module}"), name)
    # Not issubclass: before Python 3.12, a class with the methods of any protocol of a library is one of Protocol.
    is_protocol = any(base.__name__ == "Protocol" for base in kind.__mro__)
    asked: object = kind.__call__ if is_protocol else None
    if isinstance(asked, FunctionType) and isinstance(named, FunctionType):
        problem = unfitting_argument(named, asked)
    elif asked or not isinstance(named, kind):
        problem = f"expected a {'function' if asked else kind.__name__}, found a {type(named).__name__}"
    else:
        problem = ""
    if problem:
        raise FeatureError(f"feature {feature!r}, hook {hook!r}, {where}: {problem}.")
    return named


def unfitting_argument(function: FunctionType, asked: FunctionType) -> str:
    """Return how the arguments of a function differ from the arguments of the method `asked`; "" if they fit.

    An argument may be missing, have a different name, or be required although `asked` does not have it. Names count,
    since an argument with a different name likely means something else.
    """
    taken, given = _parameters(function), list(_parameters(asked))[1:]
    for found, expected in zip_longest(list(taken)[: len(given)], given):
        if found != expected:
            return f"expected the argument {expected}, found {found or 'none'}"
    return next((f"expected no argument {name}" for name in list(taken)[len(given) :] if taken[name]), "")


def _parameters(function: FunctionType) -> dict[str, bool]:
    """Return for each parameter of a function whether it is required.

    A parameter is written ``name``, ``name=`` if it is passed by keyword only, and ``*name`` if it takes further
    arguments. Parameters are read from the function's code, since importing `inspect` takes as long as `jaxexport
    inspect`.
    """
    function = getattr(function, "__wrapped__", function)  # that of a context manager
    code, names = function.__code__, function.__code__.co_varnames
    positional, by_keyword = names[: code.co_argcount], names[code.co_argcount :][: code.co_kwonlyargcount]
    needed = code.co_argcount - len(function.__defaults__ or ())
    parameters = {name: number < needed for number, name in enumerate(positional)}
    if code.co_flags & _TAKES_MORE:
        parameters[f"*{names[code.co_argcount + code.co_kwonlyargcount]}"] = False
    return parameters | {f"{name}=": name not in (function.__kwdefaults__ or ()) for name in by_keyword}
