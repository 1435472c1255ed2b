"""The cells of a plan, the errors of an empty plan, and how a plan is cut into shards."""

import datetime
import functools
import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import NEWEST, day, golden, manifest, release

from export_core.goldens import Comparison, Golden, GoldenError, Options, Writer
from export_core.goldens.manifest import ConvertedFrom
from export_core.matrix import Cell, MatrixError, Plan, Selection, make_plan
from export_core.matrix.plan import of_later_writers, part_of, split
from export_core.matrix.selection import window_readers
from export_core.numbers import CompareError
from export_core.policy.run_options import OptionError, Shard, parse_shard
from export_core.readers.errors import PlacementError
from export_core.readers.placement import Mode
from export_core.releases import ReleaseError, Windows, load_calendar, promise

CALENDAR = load_calendar()
TODAY = day("2026-11-21")


def planned(goldens, as_of=TODAY, windows=Windows(), **selection) -> Plan:  # noqa: B008 - it is frozen
    return make_plan(goldens, CALENDAR, windows, Selection(**selection), as_of)


def readers(plan: Plan) -> list[str]:
    return [release.jaxlib for release in plan.readers]


# --- --readers, --only and --as-of ------------------------------------------------------------------------------------

CONVERTED = ConvertedFrom("0" * 64, NEWEST, "rewritten", (), "jaxexport")
WINDOW = ["0.9.1", "0.9.2", "0.10.0", "0.10.1", "0.10.2", "0.11.0", "0.11.1", NEWEST]
"""Of 0.9.2, built on 2026-03-18: promised from 02-25 to 09-14, and the newest."""


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({}, WINDOW),
        ({"as_of": day("2026-05-01")}, ["0.9.1", "0.9.2", "0.10.0"]),
        ({"readers": "all"}, CALENDAR.versions()),
        ({"readers": "0.8.3, 0.12.0.1,0.9.0,,0.8.3"}, ["0.9.0", "0.8.3", NEWEST]),  # each once, by build date
        ({"only": "promised"}, WINDOW[:-1]),  # the newest is 216 days younger
        ({"readers": "0.8.1,0.9.1,0.9.2,0.12.0.1", "only": "backward"}, ["0.9.1", "0.9.2", NEWEST]),
    ],
)
def test_selected_readers_are_ordered_by_build_date(selection, expected):
    assert readers(planned([golden(jaxlib="0.9.2")], **selection)) == expected


def test_a_converted_golden_is_planned_in_its_release():
    old = [golden(jaxlib="0.9.2", converted_from=CONVERTED)]
    assert readers(planned(old, readers="0.9.1,0.9.2,0.12.0.1", only="backward")) == ["0.9.2", "0.12.0.1"]


def test_the_reader_just_before_a_writer_is_included():
    plan = planned([golden(jaxlib="0.10.0")])  # 0.9.2 is 29 days older
    assert readers(plan)[:2] == ["0.9.2", "0.10.0"]
    assert not promise(CALENDAR.built("0.10.0"), CALENDAR.built("0.9.2"), Windows()).promised


def with_own_jax(**selection) -> set[tuple[str, str]]:
    """Return the cells that jaxlib 0.12.0 reads: the case of each, and the version of jax in its reader."""
    plan = planned([golden("a"), golden("b", jaxlib="0.11.0")], **selection)
    return {(cell.golden.manifest.case, cell.reader.jax) for cell in plan.cells if cell.reader.jaxlib == "0.12.0"}


@pytest.mark.parametrize(
    ("readers", "own"),
    [("window", {"a"}), ("window,0.12.0-jax0.12.0", {"a", "b"}), ("0.12.0", set())],
    ids=["goldens of the writer after it", "a pair that is named runs all", "a name brings no pair"],
)
def test_a_release_reads_older_goldens_with_its_own_jax(readers, own):
    assert with_own_jax(readers=readers) == {("a", "0.12.0.1"), ("b", "0.12.0.1"), *((case, "0.12.0") for case in own)}


def test_option_touching_selects_cells_of_a_writer_or_reader():
    goldens = [golden("a", jaxlib="0.9.2"), golden("b", jaxlib="0.10.2"), golden("c", jaxlib="0.11.0")]
    plan = planned(goldens, readers="0.9.2,0.10.2,0.11.0", touching="0.10.2")
    assert {(cell.golden.manifest.case, cell.reader.jaxlib) for cell in plan.cells} == {
        *(("a", "0.10.2"), ("b", "0.10.2"), ("c", "0.10.2")),
        *(("b", "0.9.2"), ("b", "0.11.0")),
    }


def test_goldens_of_an_old_writer_are_planned_in_the_newest_release():
    assert readers(planned([golden(jaxlib="0.4.31")]))[-1] == NEWEST


@given(
    st.sets(st.sampled_from(CALENDAR.versions()), min_size=1, max_size=4),
    st.integers(0, 200),
    st.integers(0, 60),
    st.dates(datetime.date(2026, 1, 1), datetime.date(2026, 11, 21)),
)
def test_all_readers_in_the_window_are_planned(writers, backward, forward, as_of):
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


def test_longer_windows_add_readers():
    shorter, longer = (planned([golden(jaxlib="0.9.2")], windows=Windows(days, days)) for days in (10, 300))
    assert set(readers(shorter)) < set(readers(longer))


# --- what cannot be planned -------------------------------------------------------------------------------------------

READERS = "--readers: expected window, all, newest, deployed, jaxlib versions"
PLATFORMS = "--platforms: expected some of cpu, cuda, rocm, tpu, found "
ONE = (golden(),)
OLD = (golden(jaxlib="0.9.2"),)
ELSEWHERE = (golden(options=Options(("tpu",))), golden("b", options=Options(("cuda", "tpu"))))
UNKNOWN = Golden(manifest("b", writer=Writer("9.9", "9.9", day("2026-01-01"), "3.12", "cpu")), golden().folder)


@pytest.mark.parametrize(
    ("goldens", "selection", "error", "message"),
    [
        *((ONE, {"readers": none}, MatrixError, READERS) for none in (" ", ",", " , ,")),
        (ONE, {"readers": "0.9.2,windows"}, MatrixError, "found 'windows'. Did you mean 'window'?"),
        (ONE, {"readers": "0.9.9"}, ReleaseError, "is not in the release calendar as of 2026-11-21"),
        (ONE, {"readers": "0.12.0.1;0.9.2"}, ReleaseError, "is not in the release calendar as of 2026-11-21"),
        (OLD, {"as_of": day("2026-05-01"), "readers": NEWEST}, ReleaseError, f"{NEWEST} is not in the release cal"),
        (ONE, {"as_of": day("2026-01-01")}, MatrixError, "The plan is empty: of 1 selected goldens none was written"),
        (ONE, {"as_of": day("2026-01-01")}, MatrixError, "by a jaxlib built on or before 2026-01-01. Choose"),
        (OLD, {"readers": NEWEST, "only": "promised"}, MatrixError, "--only promised: none of the 1 selected cells"),
        (OLD, {"readers": "0.8.1", "only": "backward"}, MatrixError, "inside its window, or has a younger reader"),
        (OLD, {"readers": "0.10.2", "touching": NEWEST}, MatrixError, f"golden was written by jaxlib {NEWEST}"),
        ((UNKNOWN,), {}, GoldenError, "jaxlib 9.9 is not in the release calendar"),
        (ELSEWHERE, {}, MatrixError, "the 2 selected goldens were exported for cuda, tpu, and none for cpu."),
        *((ONE, {"platforms": ("cpu", p)}, PlacementError, PLATFORMS + repr(p)) for p in ("gpu", "CPU", "metal", "")),
        ((), {}, MatrixError, "There is no golden to replay: "),
        ((), {}, MatrixError, "run `pytest --update-goldens`"),
        ((*ONE, *OLD), {"writers": ("0.9.1",)}, MatrixError, "no golden was written by jaxlib 0.9.1. There are"),
        ((*ONE, *OLD), {"writers": ("0.9.1",)}, MatrixError, "There are goldens by 0.9.2, 0.12.0.1"),
        (ONE, {"cases": ("nope*",)}, MatrixError, "no case matches 'nope*'. `jaxexport goldens list`"),
        (ONE, {"cases": ("T.TEST_F",)}, MatrixError, "no case matches 'T.TEST_F'."),
        ((golden(comparison=Comparison("close")),), {}, CompareError, "compare='close'"),
    ],
)
def test_an_empty_plan_is_an_error_with_the_reason(goldens, selection, error, message):
    with pytest.raises(error, match=re.escape(message)):
        planned(goldens, **selection)


@pytest.mark.parametrize(
    ("named", "patterns"),
    [
        ("tests/test_a.py", "tests.test_a.*"),
        ("test_a.py", "tests.test_a.*"),
        ("./tests/test_a.py", "tests.test_a.*"),
        ("tests/test_a.py::test_f", "tests.test_a.test_f*"),
        ("tests/test_a.py::test_f[a]", "tests.test_a.test_f[a]"),
        ("test_a.py::TestB", "tests.test_a.TestB*"),
        ("test_c.py", "a-b.test_c.test_g-01234567"),
        ("nothing_alike.py", ""),
    ],
)
def test_a_tests_name_given_as_a_case_gets_a_pattern_suggested(named, patterns):
    tests = {
        "tests.test_a.test_f[a]": "tests/test_a.py::test_f[a]",
        "tests.test_a.test_f[b]": "tests/test_a.py::test_f[b]",
        "tests.test_a.TestB.test_f": "tests/test_a.py::TestB::test_f",
        "a-b.test_c.test_g-01234567": "a b/test_c.py::test_g",
    }
    goldens = [golden(case, test=test) for case, test in tests.items()]
    with pytest.raises(MatrixError) as error:
        planned(goldens, cases=(named,))
    advice = "`jaxexport goldens list` shows all cases."
    if patterns:
        advice = f"It names a test: its cases are matched by {shlex.quote(patterns)}."
    assert str(error.value) == f"--cases: no case matches {named!r}. {advice}"
    if patterns:
        assert planned(goldens, cases=(patterns,)).goldens


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("test_blur", "'tests.test_physlib.test_blur[9]'"),
        ("test_attention", "'tests.test_other.test_attention' or 'tests.test_physlib.test_attention'"),
    ],
)
def test_the_name_of_a_test_function_gets_its_cases_as_a_suggestion(named, meant):
    cases = ("physlib.test_attention", "physlib.test_blur[9]", "other.test_attention")
    with pytest.raises(MatrixError) as error:
        planned([golden(f"tests.test_{case}") for case in cases], cases=(named,))
    assert f"Did you mean {meant}? " in str(error.value)


@pytest.mark.parametrize("named", ["tests.test_physlib.test_atention", "tests.test_physlib.test_atention*"])
def test_a_misspelled_case_gets_a_suggestion(named):
    goldens = [golden("tests.test_physlib.test_attention"), golden("tests.test_physlib.test_blur")]
    with pytest.raises(MatrixError) as error:
        planned(goldens, cases=(named,))
    hint = "Did you mean 'tests.test_physlib.test_attention'? `jaxexport goldens list` shows all cases."
    assert str(error.value) == f"--cases: no case matches {named!r}. {hint}"


def test_goldens_of_later_writers_are_named_and_left_out():
    goldens = [golden(jaxlib=jaxlib) for jaxlib in ("0.9.2", "0.10.2", "0.11.0", NEWEST)]
    built = {jaxlib: release(jaxlib).built for jaxlib in ("0.10.2", "0.11.0")}
    ids = [one.id for one in goldens]
    for last, later in (("0.10.2", ids[2:]), ("0.11.0", ids[3:])):  # the last writer was built on the day itself
        found = planned(goldens, as_of=built[last]).later
        assert sorted(found) == sorted(later)
        what = "1 golden was" if len(later) == 1 else "2 goldens were"
        text = of_later_writers(found, built[last])
        assert text.startswith(f"{what} written by releases after {built[last]}, and left out: ")
    assert of_later_writers({}, TODAY) == ""


def test_as_of_hides_later_writers():
    plan = planned([golden(jaxlib="0.9.2"), golden(jaxlib=NEWEST)], day("2026-10-19"))
    assert [one.manifest.writer.jaxlib for one in plan.goldens] == ["0.9.2"]
    assert planned([golden(jaxlib=NEWEST)], day("2026-10-20")).readers[-1].jaxlib == NEWEST, "on its day it is there"


def test_an_unselected_golden_may_be_by_an_unknown_writer():
    assert [one.manifest.case for one in planned([golden("a"), UNKNOWN], cases=("a",)).goldens] == ["a"]


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


def test_a_plan_counts_goldens_without_a_cell():
    cpu, both, tpu = exported_for("cpu", case="a"), exported_for("cpu", "tpu", case="b"), exported_for("tpu", case="c")
    every = planned([cpu, both, tpu], readers=NEWEST, platforms=("cpu", "tpu"))
    assert (dict(every.unexported), every.without_cells) == ({"cpu": 1, "tpu": 1}, "")
    one, two = (planned(goldens, readers=NEWEST) for goldens in ([cpu, both, tpu], [both, tpu, exported_for("rocm")]))
    assert (dict(one.unexported), dict(one.unexported_cases)) == ({"cpu": 1}, {"cpu": ["c"]})
    assert one.without_cells.startswith("1 golden has no cell on the platforms asked for (exported for tpu): ")
    assert one.without_cells.endswith(
        "this run does not test it. 1 golden was exported for tpu too, which this run does not test."
    )
    assert two.without_cells.startswith("2 goldens have no cell on the platforms asked for (exported for rocm, tpu): ")
    assert "this run does not test them. 1 golden was exported for tpu too" in two.without_cells


@pytest.mark.parametrize("platform", ["tpu", "tpu:run"])
def test_a_golden_without_outputs_is_only_compiled(platform):
    options = Options(("tpu",), without_outputs="no TPU here", refused_on=("cuda",))
    plan = planned([golden(options=options)], readers=NEWEST, platforms=(platform, "cuda:run"))
    assert {cell.platform: cell.mode for cell in plan.cells} == {"tpu": Mode.COMPILE, "cuda": Mode.RUN}


# --- cases and writers ------------------------------------------------------------------------------------------------


def test_only_goldens_of_named_writers_are_planned():
    goldens = [golden(), golden(jaxlib="0.9.2"), golden(jaxlib="0.10.2")]
    chosen = planned(goldens, writers=("0.9.2", "0.10.2"), readers=NEWEST).goldens
    assert [one.manifest.writer.jaxlib for one in chosen] == ["0.9.2", "0.10.2"]


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        (("t.test_f[x-2]",), ["t.test_f[x-2]"]),
        (("t.test_f*",), ["t.test_f[x-2]", "t.test_f[y]", "t.test_fx", "t.test_fy"]),
        (("t.test_f[[]*",), ["t.test_f[x-2]", "t.test_f[y]"]),
        (("*x*", "u.*"), ["t.test_f[x-2]", "t.test_fx", "u.test_g"]),
        (("t.test_f[xz]",), ["t.test_fx"]),
        (("t.test_f[y]",), ["t.test_f[y]"]),  # and not test_fy
        ((), ["t.test_f[x-2]", "t.test_f[y]", "t.test_fx", "t.test_fy", "u.test_g"]),
    ],
)
def test_cases_are_ids_or_globs_even_with_brackets(patterns, chosen):
    goldens = [golden(case) for case in ("t.test_f[x-2]", "t.test_f[y]", "t.test_fx", "t.test_fy", "u.test_g")]
    plan = planned(goldens, cases=patterns, readers=NEWEST)
    assert sorted(cell.golden.manifest.case for cell in plan.cells) == chosen


def test_a_plan_has_each_cell_once_ordered_by_reader():
    plan = planned([golden("b"), golden("a"), golden("a", "0.9.2")], readers="0.12.0.1,0.9.2")
    assert len({cell.key for cell in plan.cells}) == len(plan.cells) == 6
    built = [cell.reader.built for cell in plan.cells]
    assert built == sorted(built)
    assert [one.id for one in plan.goldens] == ["a/0.9.2-cpu", "a/0.12.0.1-cpu", "b/0.12.0.1-cpu"]


# --- shards -----------------------------------------------------------------------------------------------------------


RELEASES = ("0.6.2", "0.7.1", "0.8.1", "0.9.2", "0.10.2", "0.12.0.1")
READER = functools.cache(release)
GOLDEN = functools.cache(golden)


def cells(sizes) -> list[Cell]:
    """Return as many cells of each reader and platform as the sizes say."""
    return [
        Cell(GOLDEN(f"t.c{number}"), READER(reader), platform)
        for (reader, platform), size in sizes.items()
        for number in range(size)
    ]


sizes = st.dictionaries(
    st.tuples(st.sampled_from(RELEASES), st.sampled_from(["cpu", "tpu"])), st.integers(1, 9), min_size=1
)


@given(sizes, st.data())
def test_shards_have_all_cells_together_and_few_readers_each(sizes, data):
    every = cells(sizes)
    count = data.draw(st.integers(1, len(every)))
    parts = split(every, count)
    assert len(parts) == count
    assert all(parts)
    assert sorted(cell.key for part in parts for cell in part) == sorted(cell.key for cell in every)
    order = {cell.key: number for number, cell in enumerate(every)}
    assert all([order[cell.key] for cell in part] == sorted(order[cell.key] for cell in part) for part in parts)
    readers = [{(cell.reader.jaxlib, cell.platform) for cell in part} for part in parts]
    if count > len(sizes):
        assert all(len(own_readers) == 1 for own_readers in readers)
        return
    assert sum(map(len, readers)) == len(sizes)
    loads = sorted(map(len, parts))
    assert loads[-1] - loads[0] <= max(sizes.values()), "one could give a whole reader to another"


def test_unequal_readers_make_almost_equal_shards():
    every = cells({("0.9.2", "cpu"): 30, ("0.10.2", "cpu"): 10, ("0.12.0.1", "cpu"): 3})
    assert sorted(map(len, split(every, 9))) == [3, 5, 5, 5, 5, 5, 5, 5, 5]


def test_shards_are_the_same_on_every_machine():
    every = cells({("0.9.2", "cpu"): 3, ("0.10.2", "cpu"): 3, ("0.12.0.1", "cpu"): 2})
    assert [[cell.reader.jaxlib for cell in part] for part in split(every, 2)] == [
        ["0.9.2"] * 3 + ["0.12.0.1"] * 2,
        ["0.10.2"] * 3,
    ]


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", "1/3/2", ""])
def test_a_wrong_shard_is_refused_with_an_example(text):
    with pytest.raises(OptionError, match="--shard: expected I/N with I from 1 to N, such as 3/16, found"):
        parse_shard(text)


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_shard_is_printed_as_it_was_given(index, more):
    assert str(parse_shard(f"{index}/{index + more}")) == f"{index}/{index + more}"


def test_more_shards_than_cells_are_refused():
    plan = Plan(tuple(cells({("0.9.2", "cpu"): 2})), day("2026-11-21"), load_calendar(), Selection())
    assert len(part_of(plan, Shard(2, 2)).cells) == 1
    with pytest.raises(MatrixError, match="--shard 1/3: the plan has 2 cells, too few for 3 shards"):
        part_of(plan, Shard(1, 3))
