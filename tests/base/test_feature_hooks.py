"""The hooks of features: what a feature names is checked against what the kernel asks for when it is registered."""

import ast
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Protocol, get_type_hints, runtime_checkable

import click
import pytest

from export_core.base import feature
from export_core.base.feature import Feature, FeatureError, QuickStart, feature_commands, features, hooks
from export_core.cli.goldens import CoverageText
from export_core.cli.report import ShowTrend
from export_core.matrix.replay_options import ConvertCell, SayRemedy
from export_core.policy.feature_keys import FeatureKey
from export_core.report.document import CompareRuns, MakeFindings, MakePicture, MakeRowLine, MakeTable
from export_core.run.run import JudgeByRule
from export_core.run.session import ExtendResults, ReplayAt

KINDS = {
    "quick_start": QuickStart,
    "findings": MakeFindings,
    "table": MakeTable,
    "picture": MakePicture,
    "row_line": MakeRowLine,
    "compare": CompareRuns,
    "trend": ShowTrend,
    "coverage": CoverageText,
    "policy_key": FeatureKey,
    "rule": JudgeByRule,
    "after_replay": ExtendResults,
    "executor": ReplayAt,
    "remedy": SayRemedy,
    "converted": ConvertCell,
}


class Judge(Protocol):
    """A hook as the kernel declares one."""

    def __call__(self, results: list[str], policy: str, *baselines: str, strict: bool) -> list[str]:
        """Return the results as they are judged."""


@pytest.fixture
def named(monkeypatch) -> Callable[[object], object]:
    """Registers a feature `mine` whose rule is an object, and asks for it."""

    def ask(value: object, kind: type = Judge) -> object:
        module = ModuleType(f"{feature.FOLDER}.mine.rules")
        module.judge = value
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(feature, "features", lambda: {"mine": Feature(rule="rules:judge")})
        (function,) = hooks("rule", kind)
        return function

    return ask


def test_all_functions_of_features_fit_their_hooks():
    assert {name for name, kind in get_type_hints(Feature).items() if kind is str} - {"asked_by"} == KINDS.keys()
    assert all(hooks(name, kind) for name, kind in KINDS.items())
    commands = [words for _, feature in features().items() for words in feature.commands]
    assert [words for words, _ in feature_commands(click.Command)] == commands


def test_a_class_is_no_protocol_whatever_protocols_libraries_have():
    @runtime_checkable
    class Callback(Protocol):
        def __call__(self, *args): ...

    class Command:
        def __call__(self, *args): ...

    assert isinstance(Command(), Callback)
    with pytest.raises(FeatureError, match="expected a Command, found a function"):
        hooks("picture", Command)


def test_mypy_sees_every_function_of_a_feature():
    typed = ast.parse(Path(__file__).with_name("typed_hooks.py").read_text()).body
    seen = {part.id for line in typed if isinstance(line, ast.AnnAssign) for part in getattr(line.value, "elts", ())}
    of_functions = [hook for hook, kind in KINDS.items() if kind is not FeatureKey]
    named = [getattr(feature, hook) for feature in features().values() for hook in of_functions]
    assert seen == {where.partition(":")[2] for where in named if where}


def test_a_function_that_fits_is_returned(named):
    def judge(results, policy, *baselines, strict, notify=print): ...

    assert named(judge) is judge
    assert named(contextmanager(judge)).__wrapped__ is judge


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda results, rules, *baselines, strict: 0, "expected the argument policy, found rules"),
        (lambda results, *baselines, strict: 0, "expected the argument policy, found *baselines"),
        (lambda results, policy, baselines, strict: 0, "expected the argument *baselines, found baselines"),
        (lambda results, policy, *baselines: 0, "expected the argument strict=, found none"),
        (lambda results, policy, *baselines, strict, day: 0, "expected no argument day="),
        (lambda: 0, "expected the argument results, found none"),
        ("judge", "expected a function, found a str"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(named, function, problem):
    with pytest.raises(FeatureError) as raised:
        named(function)
    assert str(raised.value) == f"feature 'mine', hook 'rule', rules:judge: {problem}."


def test_an_object_of_another_class_is_refused(named):
    with pytest.raises(FeatureError, match="feature 'mine', hook 'rule', rules:judge: expected a FeatureKey, found a"):
        named("key", FeatureKey)
