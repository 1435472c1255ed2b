"""The one table of verdicts, judgements and exit codes: every entry is there, and none looks like another."""

import ast
import itertools
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

import export_core
from export_core.base.exit_code import ExitCode
from export_core.base.feature import hooks
from export_core.matrix import Verdict
from export_core.matrix.verdicts import VERDICTS as TABLE
from export_core.matrix.verdicts import WORST_FIRST, FindingKind, Judgement, is_expected
from export_core.report import view
from export_core.report.document import CompareRuns, MakeFindings

PACKAGE = Path(export_core.__file__).parent
HOOKS: dict[str, Any] = {"findings": MakeFindings, "compare": CompareRuns}
KINDS = {
    kind
    for module in (
        view,
        *(sys.modules[function.__module__] for hook, kind in HOOKS.items() for function in hooks(hook, kind)),
    )
    for value in vars(module).values()
    for kind in (value.values() if isinstance(value, dict) else [value])
    if isinstance(kind, FindingKind)
} | {judgement.facts.kind for judgement in Judgement if judgement.facts.kind}


def test_every_verdict_has_its_row_in_the_table():
    assert set(TABLE) == set(Verdict) == set(WORST_FIRST)
    for facts in TABLE.values():
        assert facts.phrase
        assert facts.short


def test_each_failing_verdict_has_a_next_step():
    assert {verdict for verdict in Verdict if TABLE[verdict].next_step} == {
        verdict for verdict in Verdict if TABLE[verdict].inside.is_urgent
    }


def test_only_broken_owed_incomplete_and_over_budget_fail_a_run():
    assert {name for name in Judgement if name.facts.works} == {"over-budget", "bonus", "kept"}
    assert {name for name in Judgement if name.fails_run} == {"broken", "owed", "incomplete", "over-budget"}
    assert {name for name in Judgement if name.is_urgent} == {"broken", "owed", "incomplete"}
    assert {name for name in Judgement if name.is_breach} == {"broken", "owed"}


def test_exit_codes_are_those_of_the_docs():
    assert [ExitCode.of(code) for code in range(5)] == [*ExitCode]
    names = ("KEPT", "BROKEN", "BAD_INPUT", "INCOMPLETE", "STALE")
    assert {code.name: code.value for code in ExitCode} == dict(zip(names, range(5), strict=True))


def test_judgements_are_ordered_by_badness():
    fine, excused, *worse = [{name for name in Judgement if name.facts.badness == badness} for badness in range(6)]
    assert (fine, excused) == ({"kept", "bonus"}, {"known", "outside"})
    assert worse == [{"over-budget"}, {"owed"}, {"broken"}, {"incomplete"}]


def test_findings_that_fail_a_run_are_shown_first():
    ranks = {code: {kind.rank for kind in KINDS if kind.exit_code is code} for code in ExitCode}
    assert [ranks[code] for code in (ExitCode.BROKEN, ExitCode.INCOMPLETE, ExitCode.STALE)] == [{0}, {1}, {2}]
    known, outside = Judgement.KNOWN.facts.kind, Judgement.OUTSIDE.facts.kind
    assert max(ranks[ExitCode.STALE]) < view.FLAKY.rank < known.rank < outside.rank < view.CUSTOM_CALL.rank
    assert {kind.title for kind in KINDS if kind.is_open} == {"REGRESSED", "fixed"}


def test_the_message_explains_all_but_numerics_crash_and_timeout():
    assert {verdict for verdict in Verdict if not TABLE[verdict].is_explained} == {"numerics", "crash", "timeout"}


def test_only_a_refusal_outside_the_window_counts_as_expected():
    assert [pair for pair in itertools.product(Judgement, Verdict) if is_expected(*pair)] == [("outside", "refused")]


@pytest.mark.parametrize("look", ["symbol", "meaning", "short"])
def test_no_two_judgements_look_alike(look):
    assert len({getattr(judgement.facts, look) for judgement in Judgement}) == len(Judgement)


def test_the_description_of_known_says_broken_or_owed():
    # A cell that is only owed, or that gives other numbers on any date, may be listed too.
    assert Judgement.KNOWN.facts.meaning.startswith("broken or owed, ")


def test_no_two_verdicts_or_judgements_share_a_mark():
    marks = [facts.mark for facts in TABLE.values()] + [name.facts.mark for name in Judgement if name.facts.mark]
    assert not [mark for mark, count in Counter(marks).items() if count > 1]


def test_no_two_kinds_of_finding_share_a_title():
    assert not [title for title, count in Counter(kind.title for kind in KINDS).items() if count > 1]


def test_failing_judgements_fail_or_are_errors_in_junit():
    outcomes = {ExitCode.KEPT: ("", "skipped"), ExitCode.BROKEN: ("failure",), ExitCode.INCOMPLETE: ("error",)}
    for judgement in Judgement:
        assert judgement.facts.junit in outcomes[judgement.facts.exit_code]
        if kind := judgement.facts.kind:
            assert kind.exit_code == judgement.facts.exit_code


def test_a_judgement_is_stored_as_its_name():
    assert msgspec.json.decode(msgspec.json.encode([*Judgement]), type=list[Judgement]) == list(Judgement)


def test_only_verdicts_py_has_a_table_keyed_by_verdict_or_title():
    titles = {kind.title for kind in KINDS}
    marks = ("Verdict.", "Judgement.", *(f'"{title}"' for title in titles))

    def is_key(node: ast.expr | None) -> bool:
        if isinstance(node, ast.Constant):
            return node.value in titles
        return isinstance(node, ast.Attribute) and f"{ast.unparse(node.value)}." in marks

    tables = [
        file.relative_to(PACKAGE).as_posix()
        for file in sorted(PACKAGE.rglob("*.py"))
        if sum(map((text := file.read_text(encoding="utf-8")).count, marks)) > 1  # most have none, and are not parsed
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Dict) and sum(map(is_key, node.keys)) > 1
    ]
    assert tables == ["matrix/verdicts.py"]
