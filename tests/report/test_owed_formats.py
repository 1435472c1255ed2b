"""Cells that are owed to a deployment target: headline, tables, findings, a baseline and a proposal."""

import io
import re
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from browsing import expect
from commands import finished
from making import NEWEST, day, document, result, summarize, with_causes
from msgspec import structs
from rich.console import Console

from export_core.cli.app import jaxexport as application
from export_core.features.compare_runs.comparison import Change, change_of
from export_core.features.deploy.answer_lines import target_findings
from export_core.judge import Judgement, Result, Summary, judge_again
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget, Required
from export_core.policy.run_options import Shard
from export_core.readers.worker.protocol import Stage
from export_core.report.badge import badge
from export_core.report.markdown import markdown_text
from export_core.report.page import html_page
from export_core.report.policy_text import proposal
from export_core.report.terminal import print_report, table_lines
from export_core.report.view import broken_cell, view
from export_core.report.wording import _TAKES, asked_of, cell_mark, headline, with_asked
from export_core.run.run import Run

POLICY = Policy(
    deployed=(DeploymentTarget(name="serving", jaxlib="0.9.2"), DeploymentTarget(name="edge", jaxlib="0.10.2"))
)
TODAY = day("2026-11-21")


def cell(verdict: Verdict, reader: str = "0.9.2", writer: str = "0.12.0.1", policy: Policy = POLICY) -> Result:
    message = "" if verdict is Verdict.PASS else "died by signal 11"
    plain = result(verdict, writer=writer, reader=reader, stage=Stage.RUN, message=message)
    return judge_again(plain, policy, TODAY)


CELLS = with_causes(
    [
        cell(Verdict.CRASH),
        cell(Verdict.PASS, "0.10.2"),
        cell(Verdict.PASS, "0.9.2", "0.9.2"),
        cell(Verdict.PASS, "0.12.0.1"),
    ]
)


TYPO = Policy(deployed=(*POLICY.deployed, DeploymentTarget(name="typo", jaxlib="0.12.0.1", cases=("*.test_atention",))))


@pytest.fixture(scope="module")
def summary() -> Summary:
    chosen = {"whole": True, "platforms": ("cpu",)}
    return summarize(CELLS, policy=POLICY, selection=chosen)


def test_the_headline_and_the_badge_name_the_owed_target(summary):
    assert headline(summary)[0] == "OWED: 1 cell that deployment target serving must run; only reader affected 0.9.2."
    assert badge(summary)["message"] == "owed: 1 cell that deployment target serving must run"


def test_the_headline_of_a_kept_run_counts_cells_of_deployment_targets():
    chosen = {"whole": False, "platforms": ("cpu",)}
    for cells, words in (
        ([cell(Verdict.PASS)], "KEPT: 1 of 1 cell that deployment target serving must run."),
        (
            [cell(Verdict.PASS), cell(Verdict.PASS, "0.12.0.1")],
            "KEPT: the 1 promised cell, and 1 of 1 cell that deployment target serving must run.",
        ),
    ):
        made = summarize(cells, policy=POLICY, selection=chosen)
        assert headline(made)[0].replace("; partial: only readers window", "") == words


@pytest.mark.parametrize("cases", [("*",), ("t.slover",)], ids=["other readers", "misspelled cases"])
def test_the_finding_on_a_target_without_cells_names_a_command(cases):
    policy = Policy(deployed=(DeploymentTarget(name="serving", jaxlib="0.9.2", cases=cases),))
    results = [judge_again(result(reader="0.12.0.1"), policy, TODAY)]
    chosen = {"readers": "0.12.0.1", "whole": False, "platforms": ("cpu",)}
    (finding,) = target_findings(Run(results, summarize(results, policy=policy, selection=chosen)))
    assert finding.sentence == (
        "serving (jaxlib 0.9.2, cpu): no cell of it was in this run"
        + ("." if cases == ("t.slover",) else "; `jaxexport matrix --readers deployed` runs them.")
    )


@pytest.mark.parametrize(
    ("made_by", "options", "end"),
    [
        ([], "", ""),
        ([], "--policy ../p1.yaml --fail-on outside", " --policy ../p1.yaml"),
        (["--policy", "p 0.yaml", "--jobs", "2"], "", " --policy 'p 0.yaml'"),
        (["--goldens", "g", "--policy", "p0.yaml"], "--policy p1.yaml --as-of 2026-12-01", ""),
    ],
    ids=["by itself", "judged", "made", "both"],
)
def test_advised_commands_have_the_policy_of_the_run(made_by, options, end):
    policy = Policy(deployed=(DeploymentTarget(name="edge", jaxlib="0.9.2"),))
    own = result(Verdict.CRASH, Judgement.BROKEN, case="t.b", reader=NEWEST, writer=NEWEST)
    results = with_causes([judge_again(result(reader="0.12.0.1"), policy, TODAY), own])
    chosen = {"readers": "0.12.0.1", "whole": False, "platforms": ("cpu",)}
    plan = SimpleNamespace(options=made_by)
    run = Run(results, summarize(results, policy=policy, selection=chosen), plan, options=options)
    text = "\n".join(finding.text for finding in view(run).findings)
    store = end or " --goldens g --policy p1.yaml" * bool(made_by)
    day = " --as-of 2026-12-01" if "--as-of" in options else ""
    assert f"`jaxexport matrix --readers deployed{store}{day}` runs them." in text
    assert f"`jaxexport goldens verify{store}` checks the files" in text
    shown = dict(next(one for one in view(run).findings if one.title == "NOT REPLAYABLE").details)
    assert "--policy" not in shown["reproduce"], "results have their own commands"


def test_advice_names_a_results_folder_other_than_the_default():
    run = SimpleNamespace(plan=None, options="", folder=Path("out"))
    text = "`jaxexport can-i-deploy` names it; `jaxexport matrix` and `jaxexport audit t.f/0.9.2-cpu --policy p` do not"
    assert with_asked(text, asked_of(run)) == text.replace("can-i-deploy`", "can-i-deploy --results out`")


@pytest.mark.parametrize("command", [name for name in _TAKES if name not in ("explain", "reduce")])
def test_advised_commands_get_only_options_that_they_accept(command):
    found = application
    for name in command.split():
        found = found.get_command(click.Context(found), name)
    taken = {option for parameter in found.params for option in parameter.opts}
    assert {*_TAKES[command]} <= taken


def test_options_are_not_added_where_a_sentence_only_names_a_command():
    asked = {"--policy": "p.yaml", "--goldens": "g", "--as-of": "2026-11-22"}
    text = "`jaxexport convert FILE -o OUT`; `jaxexport convert` extends no promise; `jaxexport forecast`"
    completed = with_asked(text, asked)
    assert completed == (
        "`jaxexport convert FILE -o OUT --policy p.yaml`; `jaxexport convert` extends no promise; `jaxexport forecast "
        "--goldens g --policy p.yaml --as-of 2026-11-22`"
    )


def test_explain_and_reduce_commands_get_the_folder_of_the_run():
    text = "`jaxexport explain --case t.f` and `XLA_FLAGS='--a b' jaxexport reduce --case t.f`, not `jaxexport diff`"
    expected = text.replace("explain --case t.f", "explain --case t.f --results out")
    expected = expected.replace("reduce --case t.f", "reduce --case t.f --results out")
    assert with_asked(text, {"--results": "out", "--as-of": "2026-11-22"}) == expected


def test_targets_without_cells_are_named_in_one_sentence():
    targets = tuple(DeploymentTarget(name=f"t{number}", jaxlib="0.9.2") for number in (1, 2, 3))
    policy = Policy(deployed=(*targets, DeploymentTarget(name="serving", jaxlib="0.12.0.1")))
    results = [judge_again(result(reader="0.12.0.1"), policy, TODAY)]
    (finding,) = target_findings(Run(results, summarize(results, policy=policy)))
    assert finding.sentence == (
        "serving (jaxlib 0.12.0.1, cpu): 1 of 1 cell works. t1 (jaxlib 0.9.2, cpu), t2 (jaxlib 0.9.2, cpu), t3 (jaxlib "
        "0.9.2, cpu): no cell of these was in this run; `jaxexport matrix --readers deployed` runs them."
    )


def test_a_shard_names_no_command_for_a_target_without_cells():
    policy = Policy(deployed=(DeploymentTarget(name="serving", jaxlib="0.9.2"),))
    results = [judge_again(result(reader="0.12.0.1"), policy, TODAY)]
    (finding,) = target_findings(Run(results, summarize(results, policy=policy, shard=Shard(1, 2))))
    assert finding.sentence == "serving (jaxlib 0.9.2, cpu): no cell of it was in this shard."


def test_headline_badge_and_page_say_which_target_has_no_cell():
    made = summarize(CELLS, policy=TYPO, selection={"whole": True, "platforms": ("cpu",)})
    what = "deployed typo: it has no cell, since its `cases` match no case of this run"
    owed = "1 cell that deployment target serving must run"
    assert headline(made)[0].startswith(f"OWED: {owed}; incomplete: {what}; only reader affected ")
    assert badge(made)["message"] == f"owed: {owed}"
    header = html_page(document(CELLS, made)).partition("<main>")[0]
    title, _, below = header.partition("</h1>")
    assert title.endswith(owed)
    assert what.replace("`cases`", "<code>cases</code>") in header
    assert below.strip().startswith('<p class="note"><b>Correct the entry, or write such goldens.</b></p>')


def test_the_page_names_the_first_of_several_unmet_requirements():
    chosen = {"whole": True, "platforms": ("cpu",)}
    made = summarize(CELLS, policy=structs.replace(TYPO, required=Required(cells=9)), selection=chosen)
    what = "incomplete: required.cells: expected at least 9 cells that ran, found 4; 1 more requirement is not met; "
    assert what in headline(made)[0]
    header = html_page(document(CELLS, made)).partition("<main>")[0]
    note = "required.cells: expected at least 9 cells that ran, found 4."
    assert f'<p class="note"><b>{note}</b> <a href="#cause=incomplete">All 2</a></p>' in header


@pytest.mark.parametrize(
    ("days", "why"),
    [
        ({"until": day("2026-11-20")}, "its obligation ended on 2026-11-20"),
        ({"until": day("2026-11-21")}, ""),
        ({"since": day("2026-11-21")}, ""),
        ({"since": day("2026-11-22")}, "its obligation begins on 2026-11-22"),
    ],
)
def test_a_target_that_has_to_run_nothing_is_named_once(days, why):
    policy = Policy(deployed=(DeploymentTarget(name="serving", jaxlib="0.9.2", **days),))
    cells = [cell(Verdict.PASS, policy=policy)]
    texts = [finding.sentence for finding in document(cells, summarize(cells, policy=policy)).findings]
    named = [text for text in texts if text.startswith("Deployment target")]
    assert named == ([f"Deployment target serving is left out: {why}."] if why else [])


def test_the_findings_name_the_owed_cell_and_each_target(summary):
    owed, targets = (
        finding for finding in document(CELLS, summary).findings if finding.title in ("OWED", "deployment targets")
    )
    assert owed.sentence.startswith("tests.test_a.test_f, written by jax 0.12.0.1")
    assert ", crashed, and deployment target serving must run it." in owed.sentence
    assert dict(owed.details)["deployed"] == "serving"
    assert targets.sentence == (
        "serving (jaxlib 0.9.2, cpu): 1 of 2 cells work; 1 owed. edge (jaxlib 0.10.2, cpu): 1 of 1 cell works."
    )


def test_the_page_names_every_deployment_target():
    names = [f"place-{number}" for number in range(9)]
    policy = Policy(deployed=tuple(DeploymentTarget(name=name, jaxlib="0.9.2") for name in names))
    cells = [judge_again(result(reader="0.9.2"), policy, TODAY)]
    page = html_page(document(cells, summarize(cells, policy=policy)))
    (row,) = re.findall(r'<p class="finding"[^>]*><b>deployment targets</b>(.*)</p>', page)
    assert all(f"{name} (jaxlib 0.9.2, cpu): 1 of 1 cell works." in row for name in names)


def test_a_command_in_a_finding_is_set_as_code_on_the_page():
    policy = Policy(deployed=(DeploymentTarget(name="robot", jaxlib="0.8.1"),))
    cells = [result(reader="0.9.2")]
    page = html_page(document(cells, summarize(cells, policy=policy)))
    (row,) = re.findall(r'<p class="finding"[^>]*><b>deployment targets</b>(.*)</p>', page)
    assert "<code>jaxexport matrix --readers deployed</code> runs them" in row
    assert "`" not in row


def test_each_owed_cause_names_its_target_in_every_report():
    policy = Policy(
        deployed=tuple(DeploymentTarget(name=f"place-{reader}", jaxlib=reader) for reader in ("0.9.2", "0.10.2"))
    )
    readers = ("0.9.2", "0.9.2", "0.10.2", "0.10.2")
    owed = [
        judge_again(
            result(Verdict.ERROR, case=f"t.{case}", writer="0.12.0.1", reader=reader, message=reader), policy, TODAY
        )
        for case, reader in zip("abab", readers, strict=True)
    ]
    owed = [structs.replace(one, verdict=Verdict.CRASH) if one.reader.jaxlib == "0.9.2" else one for one in owed]
    shown = document(owed, summarize(owed, policy=policy, selection={"whole": True, "platforms": ("cpu",)}))
    page, text = html_page(shown), printed(shown)
    for name, phrase in (("place-0.9.2", "crashed"), ("place-0.10.2", "failed")):
        assert re.search(rf"^OWED  (and )?2 cells of 2 cases, owed to {name}, {phrase}", text, re.MULTILINE)
        assert f">owed to {name} · written by 0.12.0.1 · " in page.partition("<main>")[0]
        assert f"<dt>owed to</dt><dd>{name}</dd>" in page
        assert f", owed to {name}**: " in markdown_text(shown)


def printed(shown):
    file = io.StringIO()
    print_report(Console(file=file, width=80), shown)
    return file.getvalue()


def test_tables_mark_owed_cells(summary):
    assert [cell_mark(each) for each in CELLS] == ["[crash] o", "[ok]", "ok", "ok"]
    assert "1 of 2 ok, 1 owed" in "\n".join(line.plain for line in table_lines(Run(CELLS, summary), 100))


def test_a_failing_cell_of_a_target_is_titled_owed():
    assert broken_cell(CELLS[0]).title == "OWED"


def test_proposed_known_failures_list_an_owed_cell(summary):
    assert "verdict: crash" in proposal(CELLS, summary)


@pytest.mark.parametrize(
    ("then", "now", "change"),
    [
        (cell(Verdict.PASS), cell(Verdict.CRASH), Change.REGRESSED),
        (cell(Verdict.CRASH, policy=Policy()), cell(Verdict.CRASH), Change.REGRESSED),
        (cell(Verdict.CRASH), cell(Verdict.PASS), Change.FIXED),
        (cell(Verdict.CRASH), cell(Verdict.NUMERICS), Change.REGRESSED),
        (cell(Verdict.CRASH), cell(Verdict.CRASH), Change.UNCHANGED),
    ],
)
def test_owed_ranks_between_over_budget_and_broken(then, now, change):
    assert change_of(then, now) is change


def test_judging_again_uses_the_targets_in_force_that_day(cwd, jaxexport):
    finished(cwd / "run", *CELLS, policy=POLICY, as_of=TODAY, selection={"whole": True})
    assert jaxexport("judge", "run").code == 1
    (cwd / "export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.9.2, until: 2026-11-30}]\n")
    for when, code in (("2026-11-30", 1), ("2026-12-01", 0)):
        ended = jaxexport("judge", "run", "--as-of", when)
        assert (ended.code, "owed" in ended.out) == (code, code == 1)
    printed = jaxexport("judge", "run", "--as-of", "2026-12-01", "--full").out
    assert Judgement.OUTSIDE in printed


@pytest.mark.browser
def test_a_cell_on_the_page_names_its_target(opened, summary):
    page = opened(shown=document(CELLS, summary))
    page.locator("#grid .cell.owed").click()
    expect(page.locator("#cell-facts dt", has_text="deployed")).to_have_count(1)
    expect(page.locator("#cell-facts")).to_contain_text("serving")
