"""The functions that a feature names for its hooks are checked against the types that the kernel declares."""

import ast
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Protocol, runtime_checkable

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
"""The type of each hook that a feature may name."""


class Judge(Protocol):
    """An example of a protocol by which the kernel declares what a feature's hook takes and returns."""

    def __call__(self, results: list[str], policy: str, *baselines: str, strict: bool) -> list[str]:
        """Return the judged results."""


@pytest.fixture
def registered_rule(monkeypatch) -> Callable[[object], object]:
    """A function that makes an object the rule of a feature `mine`, and returns the rule that `hooks` finds."""

    def ask(value: object, kind: type = Judge) -> object:
        module = ModuleType(f"{feature.FOLDER}.mine.rules")
        module.judge = value
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(feature, "features", lambda: {"mine": Feature(rule="rules:judge")})
        (function,) = hooks("rule", kind)
        return function

    return ask


def test_every_function_of_a_feature_has_the_type_of_its_hook():
    assert {name for name, kind in Feature.__annotations__.items() if kind == "str"} - {"asked_by"} == KINDS.keys()
    assert all(hooks(name, kind) for name, kind in KINDS.items())
    commands = [words for _, feature in features().items() for words in feature.commands]
    assert [words for words, _ in feature_commands(click.Command)] == commands


def test_a_function_is_refused_where_a_hook_takes_a_class():
    @runtime_checkable
    class Callback(Protocol):
        def __call__(self, *args): ...

    class Command:
        def __call__(self, *args): ...

    assert isinstance(Command(), Callback)
    with pytest.raises(FeatureError, match="expected a Command, found a function"):
        hooks("picture", Command)


def test_typed_hooks_py_lists_all_feature_functions():
    typed = ast.parse(Path(__file__).with_name("typed_hooks.py").read_text()).body
    seen = {part.id for line in typed if isinstance(line, ast.AnnAssign) for part in getattr(line.value, "elts", ())}
    of_functions = [hook for hook, kind in KINDS.items() if kind is not FeatureKey]
    listed = [getattr(feature, hook) for feature in features().values() for hook in of_functions]
    assert seen == {where.partition(":")[2] for where in listed if where}


def test_a_hook_with_the_right_arguments_is_returned(registered_rule):
    def judge(results, policy, *baselines, strict, notify=print): ...

    assert registered_rule(judge) is judge
    assert registered_rule(contextmanager(judge)).__wrapped__ is judge


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
def test_a_hook_with_wrong_arguments_is_refused(registered_rule, function, problem):
    with pytest.raises(FeatureError) as raised:
        registered_rule(function)
    assert str(raised.value) == f"feature 'mine', hook 'rule', rules:judge: {problem}."


def test_a_function_is_refused_where_a_hook_takes_a_policy_key(registered_rule):
    with pytest.raises(FeatureError, match="feature 'mine', hook 'rule', rules:judge: expected a FeatureKey, found a"):
        registered_rule("key", FeatureKey)
