"""Which cells are there to run, and what is said when there are none."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import NEWEST, day, golden

from export_core.goldens import Comparison, GoldenError, Options
from export_core.goldens.manifest import ConvertedFrom
from export_core.matrix import MatrixError, Plan, Selection, make_plan
from export_core.matrix.selection import window_readers
from export_core.numbers.errors import CompareError
from export_core.readers.errors import PlacementError
from export_core.readers.placement import Mode
from export_core.releases import ReleaseError, Windows, load_calendar, promise

CALENDAR = load_calendar()
TODAY = day("2026-11-21")


def planned(goldens, as_of=TODAY, windows=Windows(), **selection) -> Plan:  # noqa: B008 - it is frozen
    return make_plan(goldens, CALENDAR, windows, Selection(**selection), as_of)


def readers(plan: Plan) -> list[str]:
    return [release.jaxlib for release in plan.readers]


# --- --readers window -------------------------------------------------------------------------------------------------


def test_window_readers_are_promised_newest_or_before_writers():
    plan = planned([golden(jaxlib="0.9.2")])  # built 2026-03-18: promised from 02-25 to 09-14
    assert readers(plan) == ["0.9.1", "0.9.2", "0.10.0", "0.10.1", "0.10.2", "0.11.0", "0.11.1", "0.12.0.1"]
    assert promise(CALENDAR.built("0.9.2"), CALENDAR.built("0.9.1"), Windows()).promised, "18 days before"


def test_the_reader_just_before_a_writer_is_included():
    plan = planned([golden(jaxlib="0.10.0")])  # 0.9.2 is 29 days older
    assert readers(plan)[:2] == ["0.9.2", "0.10.0"]
    assert not promise(CALENDAR.built("0.10.0"), CALENDAR.built("0.9.2"), Windows()).promised


def with_own_jax(**selection) -> set[tuple[str, str]]:
    """The cells of jaxlib 0.12.0, which goes with jax 0.12.0.1 since that is there: cases by the jax of the reader."""
    plan = planned([golden("a"), golden("b", jaxlib="0.11.0")], **selection)
    return {(cell.golden.manifest.case, cell.reader.jax) for cell in plan.cells if cell.reader.jaxlib == "0.12.0"}


def test_goldens_meet_the_release_before_with_its_own_jax():
    assert with_own_jax() == {("a", "0.12.0.1"), ("b", "0.12.0.1"), ("a", "0.12.0")}


def test_a_named_pair_runs_the_goldens_of_all_writers():
    named = {"readers": "window,0.12.0-jax0.12.0"}
    assert with_own_jax(**named) == {("a", "0.12.0.1"), ("b", "0.12.0.1"), ("a", "0.12.0"), ("b", "0.12.0")}


def test_named_readers_bring_no_pair_of_their_own():
    assert with_own_jax(readers="0.12.0") == {("a", "0.12.0.1"), ("b", "0.12.0.1")}


def test_only_promised_leaves_the_cells_inside_their_window():
    old = [golden(jaxlib="0.9.2")]
    assert readers(planned(old, only="promised")) == readers(planned(old))[:-1], "0.12.0.1 is 216 days younger"
    with pytest.raises(MatrixError, match="--only promised: none of the 1 selected cells is inside its window"):
        planned(old, readers=NEWEST, only="promised")


def test_only_backward_leaves_promised_cells_and_those_of_younger_readers():
    old = [golden(jaxlib="0.9.2")]
    named = {"readers": "0.8.1,0.9.1,0.9.2,0.12.0.1"}
    assert readers(planned(old, **named, only="backward")) == ["0.9.1", "0.9.2", "0.12.0.1"], "0.9.1 is promised"
    with pytest.raises(MatrixError, match=r"none of the 1 selected cells is inside its window, or has a younger reade"):
        planned(old, readers="0.8.1", only="backward")


def test_only_backward_has_the_own_release_of_a_converted_golden_which_is_promised_to_nobody():
    converted = ConvertedFrom("0" * 64, NEWEST, "rewritten", (), "jaxexport")
    old = [golden(jaxlib="0.9.2", converted_from=converted)]
    assert readers(planned(old, readers="0.9.1,0.9.2,0.12.0.1", only="backward")) == ["0.9.2", "0.12.0.1"]


def test_touching_leaves_the_cells_of_a_release_as_writer_or_reader():
    goldens = [golden("a", jaxlib="0.9.2"), golden("b", jaxlib="0.10.2"), golden("c", jaxlib="0.11.0")]
    plan = planned(goldens, readers="0.9.2,0.10.2,0.11.0", touching="0.10.2")
    assert {(cell.golden.manifest.case, cell.reader.jaxlib) for cell in plan.cells} == {
        *(("a", "0.10.2"), ("b", "0.10.2"), ("c", "0.10.2")),
        *(("b", "0.9.2"), ("b", "0.11.0")),
    }
    with pytest.raises(MatrixError, match=r"no selected golden was written by jaxlib 0\.12\.0\.1"):
        planned(goldens, readers="0.10.2", touching="0.12.0.1")


def test_an_old_writer_still_meets_the_newest():
    assert readers(planned([golden(jaxlib="0.4.31")]))[-1] == NEWEST


@given(
    st.sets(st.sampled_from(CALENDAR.versions()), min_size=1, max_size=4),
    st.integers(0, 200),
    st.integers(0, 60),
    st.dates(datetime.date(2026, 1, 1), datetime.date(2026, 11, 21)),
)
def test_the_window_rule_holds_for_any_writers_windows_and_day(writers, backward, forward, as_of):
    windows, then = Windows(backward, forward), CALENDAR.as_of(as_of)
    dates = [CALENDAR.built(version) for version in writers]
    versions = then.versions()
    expected = {then.newest()}
    for date in dates:
        expected |= {version for version in versions if promise(date, then.built(version), windows).promised}
        older = [version for version in versions if then.built(version) < date]
        exists = any(then.built(version) >= date for version in versions)
        expected |= {older[-1]} if older and exists else set()
    assert window_readers(dates, then, windows) == [version for version in versions if version in expected]


def test_longer_windows_of_a_policy_bring_more_readers():
    shorter, longer = (planned([golden(jaxlib="0.9.2")], windows=Windows(days, days)) for days in (10, 300))
    assert set(readers(shorter)) < set(readers(longer))


# --- --readers all, and by name ---------------------------------------------------------------------------------------


def test_all_readers_are_every_release_that_can_be_had():
    assert readers(planned([golden()], readers="all")) == CALENDAR.versions()


def test_named_readers_are_unique_and_ordered_by_build_date():
    plan = planned([golden()], readers="0.8.3, 0.12.0.1,0.9.0,,0.8.3")
    assert readers(plan) == ["0.9.0", "0.8.3", "0.12.0.1"]
    assert len(plan.cells) == 3


@pytest.mark.parametrize("asked", ["0.9.9", "0.12.0.1;0.9.2"])
def test_a_reader_that_does_not_exist_is_an_error(asked):
    with pytest.raises(ReleaseError, match="is not in the release calendar as of 2026-11-21"):
        planned([golden()], readers=asked)


@pytest.mark.parametrize("asked", ["", " ", ",", " , ,"])
def test_no_reader_at_all_is_an_error(asked):
    with pytest.raises(MatrixError, match="--readers: expected window, all, newest, deployed or jaxlib versions"):
        planned([golden()], readers=asked)


def test_a_misspelled_group_of_readers_is_named():
    with pytest.raises(MatrixError, match=r"found 'windows'\. Did you mean 'window'\?"):
        planned([golden()], readers="0.9.2,windows")


# --- --as-of ----------------------------------------------------------------------------------------------------------


def test_as_of_hides_later_readers():
    assert readers(planned([golden(jaxlib="0.9.2")], day("2026-05-01"))) == ["0.9.1", "0.9.2", "0.10.0"]
    with pytest.raises(ReleaseError, match=r"jaxlib 0\.12\.0\.1 is not in the release calendar as of 2026-05-01"):
        planned([golden(jaxlib="0.9.2")], day("2026-05-01"), readers="0.12.0.1")


def test_as_of_hides_later_writers():
    plan = planned([golden(jaxlib="0.9.2"), golden(jaxlib=NEWEST)], day("2026-10-19"))
    assert [found.manifest.writer.jaxlib for found in plan.goldens] == ["0.9.2"]
    assert planned([golden(jaxlib=NEWEST)], day("2026-10-20")).readers[-1].jaxlib == NEWEST, "on its day it is there"


def test_a_plan_with_no_writer_left_says_so():
    with pytest.raises(
        MatrixError, match=r"The plan is empty: of 1 selected goldens none was written .* before 2026-01-01"
    ):
        planned([golden()], day("2026-01-01"))


def test_a_golden_that_was_not_selected_may_be_by_an_unknown_writer():
    from making import manifest

    from export_core.goldens import Golden, Writer

    unknown = Golden(manifest("b", writer=Writer("9.9", "9.9", day("2026-01-01"), "3.12", "cpu")), golden().folder)
    assert [found.manifest.case for found in planned([golden("a"), unknown], cases=("a",)).goldens] == ["a"]


def test_a_golden_whose_writer_is_in_no_calendar_is_an_error():
    from making import manifest

    from export_core.goldens import Golden, Writer

    made = manifest(writer=Writer("9.9", "9.9", day("2026-01-01"), "3.12", "cpu"))
    with pytest.raises(GoldenError, match=r"jaxlib 9\.9 is not in the release calendar"):
        planned([Golden(made, golden().folder)])


# --- platforms --------------------------------------------------------------------------------------------------------


def exported_for(*platforms: str, case: str = "c"):
    return golden(case, options=Options(platforms))


def test_a_golden_has_cells_on_its_exported_platforms_only():
    goldens = [exported_for("cpu", case="a"), exported_for("cpu", "tpu", case="b"), exported_for("tpu", case="c")]
    plan = planned(goldens, readers=NEWEST, platforms=("cpu", "tpu", "cpu"))
    assert [(cell.golden.manifest.case, cell.platform) for cell in plan.cells] == [
        ("a", "cpu"), ("b", "cpu"), ("b", "tpu"), ("c", "tpu"),
    ]  # fmt: skip
    assert len({cell.key for cell in plan.cells}) == 4


def test_a_plan_says_how_many_goldens_have_no_cell_on_each_platform_and_at_all():
    cpu, both, tpu = exported_for("cpu", case="a"), exported_for("cpu", "tpu", case="b"), exported_for("tpu", case="c")
    every = planned([cpu, both, tpu], readers=NEWEST, platforms=("cpu", "tpu"))
    assert (dict(every.unexported), every.without_cells) == ({"cpu": 1, "tpu": 1}, "")
    one, two = (planned(goldens, readers=NEWEST) for goldens in ([cpu, both, tpu], [both, tpu, exported_for("rocm")]))
    assert dict(one.unexported) == {"cpu": 1}
    assert one.without_cells.startswith("1 golden has no cell on the platforms asked for (exported for tpu): ")
    assert one.without_cells.endswith("this run says nothing about it.")
    assert two.without_cells.startswith("2 goldens have no cell on the platforms asked for (exported for rocm, tpu): ")
    assert two.without_cells.endswith("this run says nothing about them.")


@pytest.mark.parametrize("platform", ["tpu", "tpu:run"])
def test_a_golden_without_outputs_is_compiled_where_it_could_run(platform):
    options = Options(("tpu",), without_outputs="no TPU here", refused_on=("cuda",))
    plan = planned([golden(options=options)], readers=NEWEST, platforms=(platform, "cuda:run"))
    assert {cell.platform: cell.mode for cell in plan.cells} == {"tpu": Mode.COMPILE, "cuda": Mode.RUN}


def test_goldens_for_other_platforms_make_an_empty_plan():
    goldens = [exported_for("tpu", case="a"), exported_for("cuda", "tpu", case="b")]
    with pytest.raises(
        MatrixError, match=r"The plan is empty: the 2 selected goldens were exported for cuda, tpu, and none for cpu\."
    ):
        planned(goldens)


@pytest.mark.parametrize("platform", ["gpu", "CPU", "metal", ""])
def test_an_unknown_platform_is_an_error_with_the_known_ones(platform):
    with pytest.raises(PlacementError, match=f"--platforms: expected some of cpu, cuda, rocm, tpu, found {platform!r}"):
        planned([golden()], platforms=("cpu", platform))


# --- cases and writers ------------------------------------------------------------------------------------------------


def test_no_goldens_at_all_is_an_error_that_says_how_to_make_one():
    with pytest.raises(MatrixError, match=r"There is no golden to replay: .*pytest --update-goldens"):
        planned([])


def test_an_unknown_writer_is_an_error_with_the_known_ones():
    with pytest.raises(
        MatrixError, match=r"no golden was written by jaxlib 0\.9\.1\. There are goldens by 0\.9\.2, 0\.12\.0\.1"
    ):
        planned([golden(), golden(jaxlib="0.9.2")], writers=("0.9.1",))


def test_writers_are_those_that_are_named():
    goldens = [golden(), golden(jaxlib="0.9.2"), golden(jaxlib="0.10.2")]
    chosen = planned(goldens, writers=("0.9.2", "0.10.2"), readers=NEWEST).goldens
    assert [found.manifest.writer.jaxlib for found in chosen] == ["0.9.2", "0.10.2"]


def test_an_unknown_case_is_an_error_that_says_where_to_look():
    with pytest.raises(MatrixError, match=r"no case is called or matches 'nope\*'\. `jaxexport goldens list`"):
        planned([golden()], cases=("nope*",))


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        (("t.test_f[x-2]",), ["t.test_f[x-2]"]),
        (("t.test_f*",), ["t.test_f[x-2]", "t.test_f[y]", "t.test_fx", "t.test_fy"]),
        (("t.test_f[[]*",), ["t.test_f[x-2]", "t.test_f[y]"]),
        (("*x*", "u.*"), ["t.test_f[x-2]", "t.test_fx", "u.test_g"]),
        (("t.test_f[xz]",), ["t.test_fx"]),
        (("t.test_f[y]",), ["t.test_f[y]"]),  # and not test_fy
        (("T.TEST_FX", "u.test_g"), None),
        ((), ["t.test_f[x-2]", "t.test_f[y]", "t.test_fx", "t.test_fy", "u.test_g"]),
    ],
)
def test_cases_are_ids_or_globs_also_with_brackets(patterns, chosen):
    goldens = [golden(case) for case in ("t.test_f[x-2]", "t.test_f[y]", "t.test_fx", "t.test_fy", "u.test_g")]
    if chosen is None:
        with pytest.raises(MatrixError, match=r"T.TEST_FX"):
            planned(goldens, cases=patterns)
    else:
        plan = planned(goldens, cases=patterns, readers=NEWEST)
        assert sorted(cell.golden.manifest.case for cell in plan.cells) == chosen


def test_an_unknown_comparator_is_an_error_before_any_run():
    with pytest.raises(CompareError, match="compare='close'"):
        planned([golden(comparison=Comparison("close"))])


def test_a_plan_is_ordered_by_reader_and_holds_each_cell_once():
    plan = planned([golden("b"), golden("a"), golden("a", "0.9.2")], readers="0.12.0.1,0.9.2")
    assert len({cell.key for cell in plan.cells}) == len(plan.cells) == 6
    built = [cell.reader.built for cell in plan.cells]
    assert built == sorted(built)
    assert [found.id for found in plan.goldens] == ["a/0.9.2-cpu", "a/0.12.0.1-cpu", "b/0.12.0.1-cpu"]


@pytest.mark.parametrize(
    ("selection", "whole"),
    [
        ({}, True),
        ({"readers": "all"}, True),
        ({"readers": "0.9.2"}, False),
        ({"cases": ("a",)}, False),
        ({"writers": ("b",)}, False),
    ],
)
def test_a_run_is_whole_when_nothing_was_left_out(selection, whole):
    assert Selection(**selection).described()["whole"] is whole
