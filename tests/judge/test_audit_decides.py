"""Artifacts that fail the audit: broken in every window, whatever failures a policy lists, in words of their own."""

import pytest
from making import day, document, result, summarize, with_causes

from export_core.judge import Judgement, judge_again
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.policy.entries import KnownFailure, Required
from export_core.readers.worker.protocol import Stage
from export_core.report.view import broken_cell
from export_core.report.wording import headline

MESSAGE = "my_kernel (custom call) is not guaranteed stable by jaxlib 0.9.2; called in main."
IN_EVERY_WINDOW = [("0.9.2", "0.9.2"), ("0.9.2", "0.10.2"), ("0.6.2", "0.12.0.1"), ("0.12.0.1", "0.6.2")]
"""Writer and reader: the same, inside the window, too old, too new."""


def stopped(writer: str = "0.9.2", reader: str = "0.10.2", policy: Policy | None = None, **changes: object):
    """Return the judged result of a cell that the audit stopped."""
    plain = result(Verdict.ERROR, writer=writer, reader=reader, stage=Stage.AUDIT, message=MESSAGE, **changes)
    return judge_again(plain, policy or Policy())


@pytest.mark.parametrize(("writer", "reader"), IN_EVERY_WINDOW)
def test_a_failed_audit_is_broken_in_every_window(writer, reader):
    cell = stopped(writer, reader)
    assert cell.judgement is Judgement.BROKEN
    made = summarize([result(case="t.other"), *with_causes([cell])])
    assert made.exit_code == 1
    assert "1 cell with an artifact that fails the audit" in headline(made)[0]
    assert "wrong numbers" not in headline(made)[0]


@pytest.mark.parametrize(("writer", "reader"), IN_EVERY_WINDOW)
def test_a_failed_audit_blames_no_writer_and_no_release(writer, reader):
    cells = with_causes([stopped(writer, reader), stopped(writer, writer)])
    finding = document(cells, summarize(cells)).findings[0]
    for text in (finding.text, broken_cell(cells[0]).text):
        assert "own writer" not in text
        assert "report it to JAX" not in text
        assert "my_kernel" in text
    assert [finding.title, broken_cell(cells[0]).title] == ["AUDIT FAILED"] * 2
    assert not any(cause.not_replayable for cause in summarize(cells).causes)


def test_no_listed_failure_excuses_a_failed_audit():
    listed = KnownFailure(("*",), ("*",), ("*",), "error", "audit", "my_kernel", "r", "o", "i", added=day("2026-10-01"))
    assert stopped(policy=Policy(known_failures=(listed,))).judgement is Judgement.BROKEN
    assert stopped("0.6.2", "0.12.0.1", Policy(required=Required(outside=False))).judgement is Judgement.BROKEN


def test_a_failure_after_a_passed_audit_can_be_outside():
    failed = result(Verdict.ERROR, writer="0.6.2", reader="0.12.0.1")
    assert judge_again(failed, Policy()).judgement is Judgement.OUTSIDE
