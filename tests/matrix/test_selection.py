"""Readers named by release, by a pair of jaxlib and jax, or by wheel file; cells that a candidate touches."""

import datetime
import re
from pathlib import Path

import pytest
from making import NEWEST, day, golden, make_wheel

from export_core.matrix import MatrixError, Plan, Selection, make_plan
from export_core.matrix.selection import is_whole, problem_of_reader, readers_left_out, unused_jax
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget
from export_core.policy.run_options import comma_separated
from export_core.readers.environment import requirements
from export_core.releases import Release, ReleaseError, Windows, load_calendar
from export_core.releases.runtimes import runtime_readers

TODAY = day("2026-11-21")
NIGHTLY = "0.13.0.dev20261120"
GOLDENS = [golden("t.a", "0.9.2"), golden("t.a", "0.11.0"), golden("t.b", NEWEST)]


def planned(as_of=TODAY, goldens=GOLDENS, **selection) -> Plan:
    return make_plan(goldens, load_calendar(), Windows(), Selection(**selection), as_of)


def pairs(plan: Plan) -> list[tuple[str, str]]:
    return [(release.jaxlib, release.jax) for release in plan.readers]


# --- a jaxlib with a jax of another version ---------------------------------------------------------------------------


def test_a_reader_may_name_the_jax_that_goes_with_it():
    plan = planned(readers="0.11.2-jax0.11.2,0.11.2,0.10.1-jax0.10.1")
    assert pairs(plan) == [("0.10.1", "0.10.1"), ("0.11.2", "0.11.2"), ("0.11.2", "0.12.0.1")]
    assert len({cell.key for cell in plan.cells}) == len(plan.cells) == 9
    assert pairs(planned(readers="0.11.2,0.11.2-jax0.12.0.1")) == [("0.11.2", "0.12.0.1")], "the same pair twice"


def test_planning_a_pair_that_jax_refuses_is_an_error():
    with pytest.raises(ReleaseError, match=r"jax 0\.12\.0\.1 needs jaxlib 0\.11\.2 or newer"):
        planned(readers="0.11.1-jax0.12.0.1")


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({"readers": "newest,0.11.0"}, [("0.11.0", "0.11.0"), (NEWEST, NEWEST)]),
        ({"readers": "newest", "as_of": day("2026-10-17")}, [("0.12.0", "0.12.0")]),
        ({"touching": "0.6.2"}, [("0.6.2", "0.6.2")]),  # no window holds it
        ({"touching": "0.6.2", "readers": "0.11.2,window"}, [("0.6.2", "0.6.2")]),
        ({"touching": NEWEST, "readers": "0.11.2,0.10.2"}, [("0.10.2", "0.10.2"), ("0.11.2", NEWEST)]),
    ],
)
def test_newest_is_the_newest_release_of_the_day_or_a_candidate(selection, expected):
    assert pairs(planned(**selection)) == expected


@pytest.mark.parametrize(
    ("selection", "error", "message"),
    [
        ({"readers": "0.11.2-jax0.12.0.1", "as_of": day("2026-10-17")}, ReleaseError,
         "jax 0.12.0.1 is not in the release calendar as of 2026-10-17"),
        ({"touching": "0.6.2", "readers": "0.11.2"}, MatrixError,
         "--touching 0.6.2: no selected golden was written by jaxlib 0.6.2, and it is not"),
        ({"readers": NIGHTLY}, ReleaseError, "is not in the release calendar"),
        ({"readers": "latest"}, MatrixError, "found 'latest'. Did you mean 'newest'?"),
        ({"readers": ">=99"}, MatrixError, "--readers: no known jaxlib is in the range >=99. The newest known is "),
        ({"readers": "~0.11"}, MatrixError, "expected a range of jaxlib releases such as '>=0.11', found '~0.11'."),
        ({"readers": "0.13.0rc1", "indexes": ("https://nightlies.example",)}, ReleaseError,
         "jaxlib 0.13.0rc1 is not in the release calendar"),
        ({"indexes": ("user:secret@nightlies.example/simple",)}, MatrixError, "in 'nightlies.example/simple'"),
    ],
)  # fmt: skip
def test_an_unavailable_reader_is_an_error_without_secrets(selection, error, message):
    with pytest.raises(error, match=re.escape(message)) as raised:
        planned(**selection)
    assert "secret" not in str(raised.value)


# --- window and all, with more ----------------------------------------------------------------------------------------


def test_a_reader_named_beside_window_is_added_to_the_window():
    window = planned()
    wider = planned(readers="0.6.2,window")
    assert set(wider.readers) - set(window.readers) == {load_calendar().release("0.6.2")}
    assert is_whole(wider.selection, Policy())


def test_a_range_names_all_releases_in_it():
    assert planned(readers=">=0.11,<0.12, 0.9.2").readers == planned(readers="0.9.2,0.11.0,0.11.1,0.11.2").readers
    assert comma_separated("window,>=0.11, <0.12,iree>=3,<4,all") == ("window", ">=0.11,<0.12", "iree>=3,<4", "all")


SERVING = DeploymentTarget(name="serving", jaxlib="0.9.2")
AT_THE_EDGE = DeploymentTarget(name="edge", jaxlib=load_calendar().newest())
IN_IREE = DeploymentTarget(name="iree", reader=runtime_readers("iree", load_calendar())[-1].name)


@pytest.mark.parametrize(
    ("readers", "policy", "whole"),
    [
        ("window", Policy(), True),
        ("all", Policy(), True),
        ("0.9.2", Policy(), False),
        ("0.9.2,0.11.0", Policy(readers="0.11.0,0.9.2"), True),
        ("0.9.2", Policy(readers="0.11.0,0.9.2"), False),
        ("window", Policy(readers="0.11.0,0.9.2"), True),
        ("0.11.0", Policy(readers="0.11.0", deployed=(SERVING,)), False),  # the policy selects its target as well
        ("0.11.0,deployed", Policy(readers="0.11.0", deployed=(SERVING,)), True),
        ("0.11.0,0.9.2", Policy(readers="0.11.0,0.9.2", deployed=(SERVING,)), True),
        (">=0.9,<0.10", Policy(readers=">=0.9,<0.10", deployed=(SERVING,)), True),  # the range has it
        (">=0.11", Policy(readers=">=0.11", deployed=(SERVING,)), False),
        ("newest", Policy(readers="newest", deployed=(AT_THE_EDGE,)), True),
        ("newest", Policy(readers="newest", deployed=(SERVING,)), False),
        ("newest,iree", Policy(readers="newest,iree", deployed=(IN_IREE,)), True),
        ("newest,iree>=99", Policy(readers="newest,iree>=99", deployed=(IN_IREE,)), False),
    ],
)
def test_a_selection_is_whole_unless_narrower_than_the_policys(readers, policy, whole):
    assert is_whole(Selection(readers), policy) is whole
    for part in ({"cases": ("a",)}, {"writers": ("a",)}, {"touching": "0.9.2"}, {"only": "promised"}):
        assert not is_whole(Selection(readers, **part), policy)


@pytest.mark.parametrize(
    ("readers", "policy", "left_out"),
    [
        ("all", Policy(readers="window,0.9.2"), set()),
        ("all", Policy(readers="window,iree>=3"), {"iree>=3"}),  # `all` is every jaxlib, and no other runtime
        ("window,iree>=3", Policy(readers="all,iree>=3"), {"all"}),
    ],
)
def test_readers_of_the_policy_that_a_selection_lacks_are_found(readers, policy, left_out):
    assert readers_left_out(readers, policy) == left_out


def test_a_deployment_target_is_left_out_only_while_in_force():
    ended = DeploymentTarget(name="serving", jaxlib="0.9.2", until=datetime.date(2026, 6, 1))
    policy = Policy(readers="0.11.0", deployed=(ended,))
    assert not is_whole(Selection("0.11.0"), policy, datetime.date(2026, 6, 1))
    assert is_whole(Selection("0.11.0"), policy, datetime.date(2026, 6, 2))


@pytest.mark.parametrize(("day", "whole"), [("2026-04-01", True), ("2026-11-21", False)])
def test_a_run_of_newest_is_whole_if_the_newest_release_is_deployed(day, whole):
    policy = Policy(readers="newest", deployed=(SERVING,))
    assert is_whole(Selection("newest"), policy, datetime.date.fromisoformat(day)) is whole


@pytest.mark.parametrize(
    ("text", "is_wrong"), [("0.9.2", False), ("window", False), ("w/jaxlib-0.9.2.whl", False), ("0.99.0", True)]
)
def test_a_reader_that_no_plan_can_have_is_reported(text, is_wrong):
    assert bool(problem_of_reader(text, load_calendar())) is is_wrong


# --- --touching -------------------------------------------------------------------------------------------------------


def test_a_candidate_selects_cells_as_writer_and_as_reader():
    plan, every = planned(touching="0.11.0"), planned()
    assert {cell.key for cell in plan.cells} == {
        cell.key for cell in every.cells if "0.11.0" in (cell.reader.jaxlib, cell.golden.manifest.writer.jaxlib)
    }
    read = {cell.golden.manifest.writer.jaxlib for cell in plan.cells if cell.reader.jaxlib == "0.11.0"}
    assert read == {"0.9.2", "0.11.0", NEWEST}


@pytest.mark.parametrize("readers", ["window", "tensorflow==2.21.0"])
def test_a_candidate_may_be_a_release_of_another_runtime(readers):
    plan = planned(readers=readers, touching="tensorflow==2.21.0")
    assert {cell.reader.name for cell in plan.cells} == {"tensorflow==2.21.0"}
    with pytest.raises(MatrixError, match=r"no selected golden was written by iree 3\.13\.0, and it is not among"):
        planned(readers="newest", touching="iree==3.13.0")


# --- releases that are not published ----------------------------------------------------------------------------------


@pytest.fixture
def wheel(tmp_path) -> Path:
    """The wheel of the nightly's jaxlib."""
    return make_wheel(tmp_path, "jaxlib", NIGHTLY)


@pytest.fixture
def wheels(tmp_path) -> Path:
    """A folder with the wheel of the nightly's jax."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    make_wheel(folder, "jax", NIGHTLY, needs="jaxlib>=0.12.0")
    return folder


def test_a_wheel_file_is_a_reader_with_its_build_date(wheel, wheels):
    plan = planned(readers=f"0.12.0.1-jax0.12.0.1,{wheel}", wheels=(str(wheels),))
    assert plan.readers[-1] == Release(jax=NIGHTLY, jaxlib=NIGHTLY, built=day("2026-11-20"))
    assert plan.spelled[plan.readers[-1]] == str(wheel)
    assert requirements(plan.readers[-1], plan.calendar, plan.sources)[:2] == (
        f"jax=={NIGHTLY}",
        f"jaxlib @ {wheel.resolve().as_uri()}",
    )
    assert plan.sources.options() == (f"--find-links={wheels}",)
    assert requirements(plan.readers[0], plan.calendar, plan.sources)[1] == "jaxlib==0.12.0.1"


def test_a_wheel_file_can_go_with_a_published_jax(wheel, wheels, tmp_path):
    candidate = make_wheel(tmp_path, "jaxlib", "0.12.0.0", stamps=("2026-10-12",))
    assert pairs(planned(readers=f"{candidate}-jax0.12.0.1")) == [("0.12.0.0", "0.12.0.1")]
    with pytest.raises(ReleaseError, match="a jaxlib must not be newer than its jax"):
        planned(readers=f"{wheel}-jax0.12.0.1")


def test_a_wheel_too_new_or_without_its_jax_is_refused(wheel, wheels):
    with pytest.raises(ReleaseError, match=rf"No jax release goes with jaxlib {NIGHTLY}.*--wheels"):
        planned(readers=str(wheel))
    with pytest.raises(ReleaseError, match="is not in the release calendar as of 2026-11-19"):
        planned(readers=str(wheel), wheels=(str(wheels),), as_of=day("2026-11-19"))
    with pytest.raises(MatrixError, match=r"expected a wheel of jaxlib, found one of jax\. .*--wheels DIR"):
        planned(readers=str(next(wheels.glob("jax-*"))))


def test_the_bytes_of_a_wheel_decide_its_environment(wheel, wheels):
    def content() -> str:
        plan = planned(readers=str(wheel), wheels=(str(wheels),))
        return plan.sources.content(plan.readers[0])

    first = content()
    make_wheel(wheel.parent, "jaxlib", NIGHTLY, modules={"jaxlib/more.py": ""})
    assert content() != first


def test_a_wheel_whose_build_date_contradicts_the_calendar_fails(tmp_path):
    same = make_wheel(tmp_path, "jaxlib", "0.11.2", stamps=("2026-09-17",))
    assert pairs(planned(readers=str(same))) == [("0.11.2", NEWEST)]
    other = make_wheel(tmp_path, "jaxlib", "0.11.2", stamps=("2026-11-01",))
    message = r"built on 2026-11-01, but the release calendar has 2026-09-17 for jaxlib 0\.11\.2"
    with pytest.raises(MatrixError, match=message):
        planned(readers=str(other))


def test_a_wheel_folder_adds_releases_to_the_window(wheel, wheels):
    wheel.rename(wheels / wheel.name)
    plan = planned(wheels=(str(wheels),))
    assert plan.readers[-1].jaxlib == NIGHTLY
    assert planned(touching=NIGHTLY, wheels=(str(wheels),)).readers == (plan.readers[-1],)


def test_a_candidates_jax_wheel_is_not_replaced_by_a_published_jax(tmp_path):
    candidate = "0.11.2rc1"  # jax 0.12.0.1 works on it too
    path = make_wheel(tmp_path, "jaxlib", candidate, stamps=("2026-09-10",))
    make_wheel(tmp_path, "jax", candidate, stamps=("2026-09-10",), needs="jaxlib>=0.11.2")
    for named in (candidate, path):
        plan = planned(readers=str(named), wheels=(str(tmp_path),))
        assert pairs(plan) == [(candidate, candidate)]
    assert unused_jax(plan.readers, plan.sources, load_calendar().jax) == []
    for other in (candidate, "0.11.2"):
        other_jax = planned(readers=f"{other}-jax0.12.0.1", wheels=(str(tmp_path),))
        (warning,) = unused_jax(other_jax.readers, other_jax.sources, load_calendar().jax)
        assert f"no reader of this run has jax {candidate}. It works with jaxlib 0.11.2 to {candidate}" in warning


def test_a_jax_wheel_that_is_not_the_published_release_is_refused(tmp_path):
    make_wheel(tmp_path, "jax", NEWEST, stamps=("2026-11-01",), needs="jaxlib>=0.12.0")
    with pytest.raises(
        MatrixError, match=r"jax-.*built on 2026-11-01, but the .* for jax 0\.12\.0\.1: .* another version"
    ):
        planned(readers=NEWEST, wheels=(str(tmp_path),))


def test_a_jax_wheel_a_day_after_its_release_is_accepted(tmp_path):
    built = load_calendar().jax[NEWEST].built + datetime.timedelta(days=1)
    make_wheel(tmp_path, "jax", NEWEST, stamps=(str(built),), needs="jaxlib>=0.12.0")
    assert pairs(planned(readers=NEWEST, wheels=(str(tmp_path),))) == [(NEWEST, NEWEST)]


def test_a_nightly_is_paired_with_the_jax_of_its_day():
    nightly = "0.12.0.dev20261001"  # jax 0.12.0.1 works on it too
    plan = planned(readers=nightly, indexes=("https://nightlies.example",))
    assert pairs(plan) == [(nightly, nightly)]


def test_a_nightly_of_an_index_is_dated_by_its_version():
    plan = planned(readers=NIGHTLY, indexes=("https://user:secret@nightlies.example/simple",))
    assert plan.readers == (Release(jax=NIGHTLY, jaxlib=NIGHTLY, built=day("2026-11-20")),)
    assert plan.sources.options()[0] == "--index=https://user:secret@nightlies.example/simple"
    assert "secret" not in str(plan.recorded_selection)
    newer = planned(readers=f"{NIGHTLY}-jax0.13.0.dev20261121", indexes=("https://nightlies.example",))
    assert pairs(newer) == [(NIGHTLY, "0.13.0.dev20261121")]


def test_a_stored_selection_omits_options_that_were_not_given():
    usual = {"readers", "platforms", "cases", "writers", "whole"}
    assert Selection().as_recorded(whole=True).keys() == usual
    assert Selection(cases=("a",)).as_recorded(whole=True).keys() == usual
    assert Selection(touching="0.9.2", wheels=("w",)).as_recorded(whole=True).keys() == usual | {"touching", "wheels"}


def dated(folder: Path, *days: str) -> None:
    """Write wheels of jaxlib 0.11.2, built on 2026-09-17, each for another CPython."""
    folder.mkdir()
    for number, stamp in enumerate(days, 10):
        make_wheel(folder, "jaxlib", "0.11.2", stamps=(stamp,), python=f"cp3{number}")


@pytest.mark.parametrize(
    "days", [["2026-09-17"], ["2026-09-18"], ["2026-09-16"], ["2026-11-01", "2026-09-17"], ["2026-09-17", "2026-11-01"]]
)
def test_a_wheel_folder_may_have_later_builds_of_a_release(days, tmp_path):
    dated(tmp_path / "w", *days)
    assert pairs(planned(readers="0.11.2", wheels=(str(tmp_path / "w"),))) == [("0.11.2", NEWEST)]


@pytest.mark.parametrize("days", [["2026-09-19"], ["2026-11-01", "2026-11-02"]])
def test_a_wheel_folder_without_the_release_is_refused(days, tmp_path):
    dated(tmp_path / "w", *days)
    make_wheel(tmp_path / "w", "jax", "0.12.0.1", needs="jaxlib>=0.11.2")
    with pytest.raises(MatrixError, match=f"cp310.*: this wheel was built on {days[0]}, but the rel"):
        planned(readers="0.11.2", wheels=(str(tmp_path / "w"),))
