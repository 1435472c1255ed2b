"""The forecast: what happens to the goldens here on which day, as text and JSON, and the picture of their windows."""

import datetime
import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from making import day, golden, manifest, result, run_of, write_golden

from export_core.base.text import few
from export_core.cli.app import jaxexport
from export_core.features.forecast.forecast import (
    DaysAhead,
    EventKind,
    ForeseenReader,
    forecast,
    forecast_lines,
    foreseen_line,
)
from export_core.features.forecast.windows_svg import windows_picture
from export_core.goldens import Golden, GoldenError, GoldenStore
from export_core.knowledge import YES, YES_BUT
from export_core.knowledge import forecast as forecast_of
from export_core.policy import Policy
from export_core.policy.entries import CustomCallChange, DeploymentTarget, KnownFailure, Quirk, Retention, WindowDays
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.releases import ReleaseError, load_calendar, promise
from export_core.releases.calendar_entries import calendar_entries
from tools.schemas import schema

CALENDAR = load_calendar()
VERSIONS = CALENDAR.versions()
TODAY = day("2026-11-21")
GOLDENS = [golden("a", "0.9.2"), golden("a", "0.12.0.1"), golden("b", "0.11.0"), golden("b", "0.12.0.1")]


def look_ahead(goldens=GOLDENS, policy: Policy | None = None, when=TODAY, days=400, **options) -> DaysAhead:
    return forecast(goldens, policy or Policy(), CALENDAR, when, days, **options)


def events(found: DaysAhead) -> list[tuple[str, str, str]]:
    return [(str(each.day), str(event.kind), event.subject) for each in found.days for event in each.events]


def test_each_day_lists_its_events():
    found = look_ahead(days=183, when=day("2026-11-01"))
    assert events(found) == [
        ("2026-11-07", "closes", "0.12.0"),
        ("2026-11-11", "closes", "0.12.0.1"),
        ("2026-11-15", "retires", "0.10.1"),
        ("2026-12-15", "retires", "0.10.2"),
        ("2027-01-13", "leaves", "0.11.0"),
        ("2027-01-13", "retires", "0.11.0"),
        ("2027-02-14", "retires", "0.11.1"),
        ("2027-02-14", "prunable", "goldens"),
        ("2027-03-17", "retires", "0.11.2"),
        ("2027-04-19", "leaves", "0.12.0.1"),
        ("2027-04-19", "retires", "0.12.0"),
        ("2027-04-19", "retires", "0.12.0.1"),
        ("2027-04-19", "prunable", "goldens"),
    ]
    by_day = {str(each.day): {event.kind: event.goldens for event in each.events} for each in found.days}
    assert by_day["2027-01-13"][EventKind.LEAVES] == ("b/0.11.0-cpu",)
    assert by_day["2027-02-14"][EventKind.PRUNABLE] == ("a/0.9.2-cpu",), "0.11.1 was its last reader"
    assert by_day["2027-04-19"][EventKind.PRUNABLE] == ("b/0.11.0-cpu",), "the last of a case stays"
    assert [each.in_days for each in found.days] == [(each.day - day("2026-11-01")).days for each in found.days]


def test_the_forecast_advises_to_keep_a_release_for_adopted_goldens():
    adopted = msgspec.structs.replace(GOLDENS[2].manifest, test="")
    found = look_ahead([*GOLDENS[:2], Golden(adopted, GOLDENS[2].folder)], when=day("2026-11-01"))
    texts = {
        event.subject: event.text for each in found.days for event in each.events if event.kind is EventKind.LEAVES
    }
    assert texts["0.11.0"].endswith(
        "; no test can export 1 of them again: keep a release that runs them, since `jaxexport convert` rewrites what "
        "a later one refuses, and extends no promise"
    )
    assert "again" not in texts["0.12.0.1"]


def test_each_day_has_the_obligations_of_a_release_built_then():
    found = look_ahead(when=day("2026-11-01"))
    assert (found.goldens, found.cases) == (4, 2)
    first = found.release
    assert (first.runs, first.goldens, first.cases) == (("0.11.0", "0.12.0.1"), 3, 2)
    assert first.readers == ("0.12.0", "0.12.0.1"), "built in the 21 days before"
    assert first.unwritten == {"0.10.1": 2, "0.10.2": 2, "0.11.0": 1, "0.11.1": 2, "0.11.2": 2, "0.12.0": 2}
    after = {str(each.day): each.release for each in found.days}
    assert after["2026-11-07"].readers == ("0.12.0.1",)
    assert after["2026-11-11"].readers == ()
    assert after["2027-01-13"].runs == ("0.12.0.1",)
    assert after["2027-04-19"].runs == ()


@pytest.mark.parametrize(
    ("when", "reader", "expected"),
    [
        (TODAY, "0.11.0", ("2026-08-06", "0.12.0.1", False, -75, "0.11.0")),
        (TODAY, "0.12.0", ("2026-11-06", "0.12.0.1", True, 17, "0.12.0.1")),
        (day("2026-08-01"), "0.11.0", ("2026-08-06", "0.11.0", True, 21, "0.11.0")),
    ],
)
def test_the_last_promised_writer_of_a_deployed_reader_is_reported(when, reader, expected):
    (found,) = look_ahead(when=when, deployed=[reader]).deployed
    assert (str(found.promised_until), found.writer, found.promised, found.days, found.last_writer) == expected
    assert found.built == CALENDAR.built(reader)
    assert found.promised_until == found.built + datetime.timedelta(days=21)


@pytest.fixture
def stored_goldens():
    store = GoldenStore(Path(__file__).parents[3] / "golden")
    cases = ("test_accelerators.test_lu", "test_linear_algebra.test_cholesky", "test_models.test_mlp_with_gradients")
    return [golden for case in cases for golden in store.generations(f"tests.compat.{case}")]


def test_the_forecast_counts_goldens_a_runtime_cannot_read(stored_goldens):
    found = look_ahead(stored_goldens, deployed=["tensorflow==2.21.0"])
    (tensorflow,) = found.foreseen
    assert found.deployed == ()
    cpu = [one for one in stored_goldens if "cpu" in one.manifest.options.platforms]
    assert (tensorflow.reader, tensorflow.targets, tensorflow.goldens) == ("tensorflow==2.21.0", (), len(cpu))
    ((reason, unread),) = tensorflow.unread.items()
    assert reason == "tensorflow 2.21.0 has StableHLO 1.13.7, and custom_call_v2 came with 1.18"
    cholesky = "tests.compat.test_linear_algebra.test_cholesky/"
    ((why, not_run),) = tensorflow.not_run.items()
    assert why.startswith("only jax registers lapack_")
    assert all(name.startswith(cholesky) for name in (*unread, *not_run))
    assert f"{cholesky}0.12.0.1-cpu" in unread
    assert len(not_run) + len(unread) == sum(one.id.startswith(cholesky) for one in cpu)
    assert foreseen_line(tensorflow) == (
        f"tensorflow 2.21.0 is foreseen to read {len(cpu) - len(unread)} of {len(cpu)} goldens, and to run "
        f"{len(cpu) - len(unread) - len(not_run)}. Not read: {len(unread)} ({reason}). "
        f"Read, but not run: {len(not_run)} ({why}). "
        "It promises to read what jaxlibs built from 2025-09-06 to 2026-04-04 export"
    )


@pytest.mark.parametrize("as_target", [True, False])
def test_the_forecast_names_goldens_that_a_jaxlib_cannot_read(stored_goldens, as_target):
    target = DeploymentTarget(name="serving", jaxlib="0.10.2")
    policy, deployed = (Policy(deployed=(target,)), ()) if as_target else (Policy(), ("0.10.2", "0.12.0.1"))
    goldens = [one for one in stored_goldens if "/0.12.0.1" in one.id]
    (found,) = look_ahead(goldens, policy, deployed=deployed).foreseen  # not 0.12.0.1, which runs all of them
    assert (found.reader, found.not_run, found.in_doubt) == ("0.10.2", {}, {})
    ((reason, unread),) = found.unread.items()
    assert reason == "jaxlib 0.10.2 has StableHLO 1.17.0, and custom_call_v2 came with 1.18"
    assert "tests.compat.test_linear_algebra.test_cholesky/0.12.0.1-cpu" in unread


def test_a_runtime_forecast_to_read_no_golden_is_reported_with_reasons():
    reasons = {f"reason {number}": [f"a{number}", *["b"] * number] for number in range(5)}
    nothing = ForeseenReader("litert==2.3.0", ("phone",), None, 15, reasons, {}, {})
    assert foreseen_line(nothing) == (
        "phone: litert 2.3.0 is foreseen to read none of 15 goldens, and to run none. "
        "Not read: 5 (reason 4), 4 (reason 3), 3 (reason 2), 3 for other reasons"
    )


def test_a_runtime_target_is_forecast_only_for_its_cases(stored_goldens):
    target = DeploymentTarget(name="phone", reader="litert==2.3.0", cases=("*.test_mlp_with_gradients",))
    policy = Policy(deployed=(target,))
    (litert,) = look_ahead(stored_goldens, policy).foreseen
    assert litert.targets == ("phone",)
    named = [one.id for one in stored_goldens if one.manifest.case.endswith(".test_mlp_with_gradients")]
    assert litert.goldens == len(named) > 0
    assert foreseen_line(litert).startswith("phone: litert 2.3.0 is foreseen to read")
    assert litert.promised is None
    assert look_ahead(stored_goldens, policy, day("2026-10-01")).foreseen == (), "it was not built yet"
    with pytest.raises(ReleaseError, match=r"litert 2\.3\.0 is not in the calendar of litert as of 2026-10-01"):
        look_ahead(stored_goldens, when=day("2026-10-01"), deployed=["litert==2.3.0"])


def test_the_forecast_counts_goldens_that_may_not_run():
    goldens = GoldenStore(Path(__file__).parents[3] / "golden").generations("tests.compat.test_models.test_attention")
    target = DeploymentTarget(name="phone", reader="litert==2.3.0")
    (litert,) = look_ahead(goldens, Policy(deployed=(target,))).foreseen
    assert foreseen_line(litert) == (
        f"phone: litert 2.3.0 is foreseen to read {len(goldens)} of {len(goldens)} goldens, and to run none. Read, "
        f"but perhaps not run: {len(goldens)} (Branches that read or give different types are refused "
        "(litert-branches))"
    )


def test_a_runtime_that_skips_size_checks_is_forecast_to_run_a_golden():
    store = GoldenStore(Path(__file__).parents[3] / "golden")
    goldens = store.generations("tests.compat.test_symbolic_shapes.test_one_dimension")[-1:]
    target = DeploymentTarget(name="robot", reader="iree==3.13.0")
    (iree,) = look_ahead(goldens, Policy(deployed=(target,))).foreseen
    assert foreseen_line(iree) == (
        "robot: iree 3.13.0 is foreseen to read 1 of 1 golden, and to run 1. Run, but perhaps not as by the writer: 1 "
        "(Sizes that break a constraint of a symbolic shape are accepted (iree-unchecked-sizes))"
    )
    reader = find_reader("iree==3.13.0", Terms(calendar_entries(CALENDAR)), CALENDAR)
    known = forecast_of(goldens[0].read_artifact(), reader)
    assert (known.runs.answer, known.numbers.answer, known.doubt) == (YES, YES_BUT, "accept what it should refuse")


def test_deployed_readers_and_their_goldens_never_retire():
    policy = Policy(retention=Retention(deployed=("0.11.0",)))
    for found in (look_ahead(policy=policy), look_ahead(deployed=["0.11.0"])):
        assert [each.jaxlib for each in found.deployed] == ["0.11.0"]
        assert not [event for event in events(found) if event[1:] == ("retires", "0.11.0")]
        assert "a/0.9.2-cpu" not in {name for each in found.days for event in each.events for name in event.goldens}
    with pytest.raises(ReleaseError, match=r"jaxlib 0\.12\.0 is not in the release calendar as of 2026-08-01"):
        look_ahead(when=day("2026-08-01"), deployed=["0.12.0"])


def test_known_failures_and_quirks_expire_unless_permanent():
    entry = ("a",), ("*",), ("*",), "crash", "run", "m"
    policy = Policy(
        known_failures=(
            KnownFailure(*entry, "it crashes", "me", "issue/1", TODAY, expires=day("2026-12-24")),
            KnownFailure(*entry, "for ever", "me", "issue/2", TODAY, permanent=True, approver="you"),
            KnownFailure(*entry, "over", "me", "issue/3", TODAY, expires=day("2026-11-20")),
        ),
        quirks=(Quirk("a", "0.9.2", "rounded", "me", "issue/4", TODAY, rtol=0.1, expires=day("2026-12-30")),),
    )
    found = [
        event for each in look_ahead(policy=policy).days for event in each.events if event.kind is EventKind.EXPIRES
    ]
    assert len(found) == 2
    assert ("2026-12-30", "expires", "issue/4 a/0.9.2") in events(look_ahead(policy=policy))
    assert "known_failures[0] (it crashes; owner me, issue/1)" in found[0].text
    assert ("2026-12-24", "expires", "issue/1 a by * in * on cpu: crash in run") in events(look_ahead(policy=policy))


def test_the_deadlines_of_a_custom_call_are_reported():
    change = CustomCallChange("v1", "v2", day("2026-12-01"), day("2026-12-31"), "r", "o", "i")
    found = [
        event for event in events(look_ahead(policy=Policy(custom_call_changes=(change,)))) if event[1] == "custom_call"
    ]
    assert found == [
        ("2026-12-01", "custom_call", "v1 → v2 introduced"),
        ("2026-12-22", "custom_call", "v1 → v2 exports"),
        ("2026-12-31", "custom_call", "v1 → v2 release"),
        ("2027-06-30", "custom_call", "v1 → v2 deletion"),
    ]
    gone = CustomCallChange("v1", None, day("2026-12-01"), None, "r", "o", "i")
    found = [
        event for event in events(look_ahead(policy=Policy(custom_call_changes=(gone,)))) if event[1] == "custom_call"
    ]
    assert found == [("2026-12-01", "custom_call", "v1 → nothing exports")]


def test_a_day_before_the_first_release_is_an_error():
    with pytest.raises(ReleaseError, match="No jaxlib release is known on 2020-01-01"):
        look_ahead(when=day("2020-01-01"))


@settings(max_examples=20)
@given(
    st.lists(st.sampled_from(VERSIONS), min_size=1, max_size=5, unique=True),
    st.dates(day("2024-06-01"), day("2027-12-31")),
    st.integers(0, 250),
    st.integers(0, 40),
    st.integers(0, 60),
)
def test_obligations_change_only_on_listed_days(writers, when, back, forward, days):
    goldens = [golden(jaxlib=version) for version in writers]
    policy = Policy(windows=WindowDays(back, forward))
    found = look_ahead(goldens, policy, when, days)
    windows, then = policy.window_lengths(), CALENDAR.as_of(when)
    there = [each.manifest.writer for each in goldens if each.manifest.writer.built <= when]
    readers = [(version, then.built(version)) for version in then.versions()]
    listed = {each.day: each.release for each in found.days}
    bound = found.release
    for ahead in range(days + 1):
        date = when + datetime.timedelta(days=ahead)
        bound = listed.get(date, bound)
        assert set(bound.runs) == {w.jaxlib for w in there if promise(w.built, date, windows).promised}
        assert list(bound.readers) == [v for v, built in readers if promise(date, built, windows).promised]
    assert all(each.events and when <= each.day <= found.until for each in found.days)


# --- for people -------------------------------------------------------------------------------------------------------


OF_ONE_CASE = [golden("a", "0.9.2"), golden("a", "0.11.0"), golden("a", "0.12.0.1")]


def made(when: datetime.date = TODAY) -> DaysAhead:
    return forecast(OF_ONE_CASE, Policy(), load_calendar(), when, 200, ["0.11.0"])


def figure() -> Xml.Element:
    writers = ("0.9.2", "0.11.0", "0.12.0.1")
    picture = windows_picture(run_of([result(writer=writer, reader="0.12.0.1") for writer in writers]))
    return Xml.fromstring(picture.svg)


def run(*words: str):
    return CliRunner().invoke(jaxexport, ["forecast", *words])


@pytest.fixture
def project(tmp_path) -> Path:
    for jaxlib in ("0.9.2", "0.11.0", "0.12.0.1"):
        write_golden(GoldenStore(tmp_path / "golden"), manifest("t.test_f", jaxlib))
    return tmp_path


def test_the_forecast_names_first_a_target_not_in_force_yet():
    policy = Policy(deployed=(DeploymentTarget("next", jaxlib="0.9.2", since=day("2030-01-01")),))
    assert "next: left out, since its obligation begins on 2030-01-01" in forecast_lines(look_ahead(policy=policy))
    assert look_ahead(policy=policy, deployed=["next"]).left_out == {}


def test_json_follows_its_schema_and_is_the_whole_forecast(project):
    done = run("--json", "--as-of", "2026-11-21", "--deployed", "0.11.0")
    parsed = json.loads(done.stdout)
    checker = jsonschema.Draft202012Validator(schema("forecast"), format_checker=jsonschema.FormatChecker())
    checker.validate(parsed)
    assert msgspec.convert(parsed, DaysAhead).deployed[0].jaxlib == "0.11.0"
    assert parsed["days"][0]["day"] == "2026-12-15"


def test_the_printed_command_prunes_the_goldens_that_were_asked_about(project):
    Path("p.yaml").write_text("goldens: elsewhere\n")
    done = run("--goldens", "golden", "--policy", "p.yaml", "--as-of", "2027-08-01", "--days", "1")
    assert "`jaxexport goldens prune --goldens golden --policy p.yaml --as-of 2027-08-01`" in done.stdout


def test_the_last_line_says_if_nothing_will_happen(project):
    done = run("--as-of", "2026-11-21", "--days", "3")
    assert done.stdout.splitlines()[-1] == "nothing happens until 2026-11-24"


def test_a_negative_number_of_days_is_a_usage_error(project):
    done = run("--days", "-1")
    assert (done.exit_code, "Invalid value for '--days'" in done.output) == (2, True)


def test_a_folder_without_goldens_is_an_error(project):
    with pytest.raises(GoldenError, match="none: expected goldens, found none"):
        raise run("--goldens", "none").exception


def test_obligations_are_listed_only_on_days_they_change():
    # 0.9.2 has left its window, and is not the last of its case.
    ahead = forecast(OF_ONE_CASE, Policy(), load_calendar(), day("2027-06-01"), 30)
    written = "\n".join(forecast_lines(ahead))
    assert f"may be pruned (`jaxexport goldens prune`): {few(ahead.prunable)}\n" in written
    assert "  a jaxlib built on this day does not have to run any golden that exists\n" in written
    lines = [*forecast_lines(look_ahead(days=30, when=day("2026-11-01")))]
    built = "  a jaxlib built on this day"
    days, exports = [line[:10] for line in lines if line[:2] == "20"], "  what a jaxlib built on this day exports"
    assert days == ["2026-11-01", "2026-11-07", "2026-11-11", "2026-11-15"]
    assert [line for line in lines if line.startswith((built, exports, "  with"))] == [
        f"{built} has to run the 3 goldens by 0.11.0, 0.12.0.1",
        f"{exports} has to run in 0.12.0, 0.12.0.1",
        f"{built} also has to run what these writers export, though no golden of it exists: 0.10.1 (2 cases), 0.10.2 "
        "(2 cases), 0.11.0 (1 case), 0.11.1 (2 cases), 0.11.2 (2 cases), 0.12.0 (2 cases); `jaxexport goldens backfill "
        "--writers 0.10.1,0.10.2,0.11.0,0.11.1,0.11.2,0.12.0` writes them",
        "  with each new jaxlib, write a golden of each case, now 2: later ones have to run them",
        f"{exports} has to run in 0.12.0.1",
        f"{exports} does not have to run in any release that exists",
        f"{built} also has to run what these writers export, though no golden of it exists: 0.10.2 (2 cases), 0.11.0 "
        "(1 case), 0.11.1 (2 cases), 0.11.2 (2 cases), 0.12.0 (2 cases)",
    ]


def test_a_retirement_names_the_obligations_that_end():
    found = look_ahead(days=183, when=day("2026-11-01"))
    happening = [event for each in found.days for event in each.events]
    (text,) = (each.text for each in happening if (each.kind, each.subject) == (EventKind.RETIRES, "0.10.2"))
    assert text == (
        "you may stop testing with reader 0.10.2, unless it is in use (then list it under `deployed`): from this day "
        "on, new jaxlibs need not run the goldens that 0.10.2 has to run, nor what 0.10.2 exports"
    )


@pytest.mark.parametrize(
    ("readers", "retired"),
    [
        ("all", ["0.10.1", "0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.12.0.1"]),
        ("0.9.2,0.10.2,0.11.1-jax0.11.2,0.12.0.1", ["0.10.2", "0.11.1", "0.12.0.1"]),
        (">=0.10,<0.11,iree", ["0.10.1", "0.10.2"]),
        ("newest", []),
    ],
)
def test_a_reader_retires_only_if_the_policy_selects_it(readers, retired):
    found = look_ahead(policy=Policy(readers=readers), days=183, when=day("2026-11-01"))
    assert [subject for _, kind, subject in events(found) if kind == "retires"] == retired
    prunable = {str(each.day) for each in found.days for event in each.events if event.kind is EventKind.PRUNABLE}
    assert ("2027-02-14" in prunable) is ("0.11.1" not in readers), (
        "0.11.1 was the last reader of a golden, tested or not"
    )
    assert all(each.events for each in found.days)


def test_readers_that_have_retired_are_listed_under_today():
    when = day("2026-12-20")
    found = look_ahead(policy=Policy(readers="0.10.1,0.10.2,0.12.0.1"), days=9, when=when)
    assert found.retired == ("0.10.1", "0.10.2")
    lines = [*forecast_lines(found)]
    below = lines[lines.index("2026-12-20  today") + 1]
    assert below.startswith(
        "  retires: you may already stop testing with readers 0.10.1, 0.10.2, unless they are in use (then list them"
    )
    hint = "`goldens prune` keeps those goldens while `readers` lists them by version"
    assert below.endswith(hint), below
    kept = Policy(readers="0.10.1,0.12.0.1", retention=Retention(deployed=("0.10.1",)))
    assert look_ahead(policy=kept, days=9, when=when).retired == ()


def test_a_retirement_is_an_event_before_its_day_and_listed_after():
    policy, last = Policy(readers="0.10.2"), day("2026-12-15")
    for when, is_retired in ((last - datetime.timedelta(1), False), (last, True)):
        found = look_ahead(policy=policy, days=1, when=when)
        assert found.retired == (("0.10.2",) if is_retired else ())
        assert (("2026-12-15", "retires", "0.10.2") in events(found)) is not is_retired


def test_a_writers_bar_ends_on_the_day_its_goldens_leave_the_window():
    wide = figure()
    bars = {bar.find("title").text: bar.find("rect") for bar in wide.iter("g") if bar.find("title") is not None}
    ends = {title.split(",")[0]: float(bar.get("x")) + float(bar.get("width")) for title, bar in bars.items()}
    today = float(next(line for line in wide.iter("line") if line.get("class") == "today").get("x1"))
    assert ends["writer 0.9.2"] < today < ends["writer 0.11.0"] < ends["writer 0.12.0.1"]
    # 96 days lie between the two last ones, and 52 between today and the first of them.
    scale = (ends["writer 0.12.0.1"] - today) / 148
    assert ends["writer 0.11.0"] == pytest.approx(today + 52 * scale, abs=0.3)


def test_the_picture_labels_windows_that_have_ended():
    texts = [text.text for text in figure().iter("text")]
    assert "left on 2026-09-15" in texts
    assert "leaves on 2027-04-19, in 148 days" in texts


def test_known_failures_of_the_same_issue_are_separate_events():
    entries = [
        KnownFailure(
            ("a",), (writer,), ("*",), "crash", "run", "m", "r", "me", "issue/1", TODAY, expires=day("2026-12-24")
        )
        for writer in ("0.9.2", "0.11.0")
    ]
    ahead = forecast(OF_ONE_CASE, Policy(known_failures=tuple(entries)), load_calendar(), TODAY, 60)
    subjects = [event.subject for each in ahead.days for event in each.events if "issue/1" in event.subject]
    assert len(set(subjects)) == 2


def test_the_end_of_a_promise_is_shown_for_untested_readers_too():
    (closing, *_) = [each for one in look_ahead(days=30, when=day("2026-11-01")).days for each in one.events]
    assert closing.text.startswith("reader 0.12.0 (built 2026-10-16), whether you test with it or not, is outside")
