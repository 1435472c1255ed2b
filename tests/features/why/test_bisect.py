"""`jaxexport bisect`: since which release a cell fails, with a fake replay."""

import dataclasses
import math
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from bisecting import CRASH, NOT_RUN, PASS, REFUSED, TIMEOUT, Ending, FakeReplay, error, off
from commands import Ended, assert_bad_input, stored
from hypothesis import given
from hypothesis import strategies as st
from making import golden, make_wheel, manifest, release, result, write_golden

from export_core.features.why.bisect.bisection import edge_in, find_edge
from export_core.features.why.bisect.bisection_report import (
    BisectBy,
    Bisection,
    IsBad,
    changes_between,
    commits_between,
)
from export_core.features.why.reduce.failing_alike import Failure
from export_core.goldens import GoldenStore
from export_core.judge import judge_again
from export_core.matrix import Cell, Verdict, cached_replay
from export_core.matrix.result import new_result
from export_core.policy import Policy
from export_core.readers.environment import Environment, this_interpreter
from export_core.readers.placement import Placement
from export_core.readers.worker.protocol import Stage
from export_core.releases import ReleaseError, load_calendar
from export_core.releases.index import with_nightlies_of

CASE = "tests.test_a.test_f"
GOLDEN = f"{CASE}/0.9.2-cpu"
DAY = ("--as-of", "2026-11-21")
built = load_calendar().built


def since(version: str, then: Ending = CRASH, before: Ending = PASS) -> Callable[[str], Ending]:
    return lambda jaxlib: then if built(jaxlib) >= built(version) else before


def among(endings: dict[str, Ending], others: Ending = PASS) -> Callable[[str], Ending]:
    return lambda jaxlib: endings.get(jaxlib, others)


@pytest.fixture
def bisect(jaxexport, tmp_path, monkeypatch) -> Callable[..., Ended]:
    """The function that runs `jaxexport bisect WORDS` with a fake replay, on a golden by 0.9.2."""
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "cache"))
    write_golden(GoldenStore(tmp_path / "golden"), manifest(CASE, "0.9.2"))

    def run(replay: FakeReplay, *words: str) -> Ended:
        monkeypatch.setattr(cached_replay, "replay_here", replay)
        return jaxexport("bisect", GOLDEN, *DAY, *words)

    return run


def found(ended: Ended) -> Bisection:
    bisection = msgspec.json.decode(ended.out, type=Bisection)
    assert bisection.exit_code == ended.code
    return bisection


def edge(bisection: Bisection) -> tuple[str, str]:
    assert bisection.last_good
    assert bisection.first_bad
    return bisection.last_good.jaxlib, bisection.first_bad.jaxlib


def test_few_releases_are_all_run_to_find_the_first_bad_release(bisect):
    replay = FakeReplay(since("0.11.1"))
    ended = bisect(replay, "--reader", "0.12.0.1")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        f"{GOLDEN} on cpu, by message, as of 2026-11-21",
        "",
        "  0.9.2 to 0.11.0 (5)     2026-03-18 to 2026-07-16  pass",
        "  0.11.1 to 0.12.0.1 (4)  2026-08-17 to 2026-10-20  crash in stage run: died by signal 11 (SIGSEGV)",
        "",
        "first bad  jaxlib 0.11.1 (built 2026-08-17)",
        "last good  jaxlib 0.11.0 (built 2026-07-16)",
        "changed    jax 0.11.0 → 0.11.1, jaxlib 0.11.0 → 0.11.1, StableHLO 1.18.0 → 1.19.0",
        "commits    jax and jaxlib: https://github.com/jax-ml/jax/compare/jax-v0.11.0...jax-v0.11.1",
        "FOUND: first bad is jaxlib 0.11.1. Exit code 0.",
    ]
    assert sorted(replay.ran) == sorted({*replay.ran}), "each release once"
    assert "jaxlib 0.11.0 (built 2026-07-16): pass" in ended.err.splitlines()


def test_an_intermittent_failure_is_shown_in_ranges_of_releases(bisect):
    history = {"0.8.1": REFUSED, "0.8.2": REFUSED} | dict.fromkeys(
        ("0.9.0", "0.8.3", "0.9.0.1", "0.9.1", "0.9.2"), CRASH
    )
    ended = bisect(FakeReplay(among(history)), "--reader", "0.8.1", "--good", "0.10.2")
    assert [line.split()[0] for line in ended.out.splitlines()[2:5]] == ["0.8.1,", "0.9.0", "0.10.0"]
    assert "last bad   jaxlib 0.8.2 with jax 0.8.3 (built 2025-12-18)" in ended.out
    assert "after it   jaxlib 0.9.0 (built 2026-01-20)" in ended.out, "which crashes"


def test_many_releases_are_searched_unless_option_all_is_given(bisect):
    replay = FakeReplay(since("0.6.1"))
    words = ("--reader", "0.12.0.1", "--good", "0.5.0")
    ended = bisect(replay, *words, "--json")
    bisection = found(ended)
    assert edge(bisection) == ("0.6.0", "0.6.1")
    assert (bisection.releases, len(bisection.tried)) == (25, len(replay.ran))
    assert len(replay.ran) <= 2 + 5, "both ends, and the logarithm of 25"
    printed = " ".join(bisect(FakeReplay(since("0.6.1")), *words).out.split())
    assert f"{len(replay.ran)} of 25 releases were run, by binary search" in printed
    assert len(found(bisect(FakeReplay(since("0.6.1")), *words, "--all", "--json")).tried) == 25


def test_bisect_finds_the_first_good_after_a_bad_release(bisect):
    ended = bisect(FakeReplay(since("0.10.0", PASS, CRASH)), "--reader", "0.9.2")
    assert "last bad   jaxlib 0.9.2 (built 2026-03-18)" in ended.out, "its writer fails too: the newest works"
    assert "first good jaxlib 0.10.0 (built 2026-04-16)" in ended.out
    assert "compare/jax-v0.9.2...jax-v0.10.0" in ended.out, "from the older to the younger"


def test_an_old_reader_is_bisected_towards_the_writer(bisect):
    bisection = found(bisect(FakeReplay(since("0.8.2", PASS, REFUSED)), "--reader", "0.7.2", "--json"))
    assert edge(bisection) == ("0.8.2", "0.8.1")


def test_a_bisection_starts_at_the_nearest_stored_pass(bisect):
    reader = {"case": CASE, "writer": "0.9.2"}
    stored(
        *(result(reader=version, **reader) for version in ("0.9.2", "0.10.0", "0.10.2")),
        result(Verdict.CRASH, reader="0.11.1", message="died by signal 11 (SIGSEGV)", **reader),
        result(reader="0.11.2", **reader),
    )
    replay = FakeReplay(among({"0.11.0": CRASH, "0.11.1": CRASH}))
    assert edge(found(bisect(replay, "--json"))) == ("0.10.2", "0.11.0")
    assert sorted(replay.ran) == ["0.10.2", "0.11.0", "0.11.1"], "on the side of the writer"


def test_a_stored_pass_that_fails_in_the_replay_is_not_used_as_good(bisect):
    stored(result(reader="0.10.2"), result(Verdict.CRASH, reader="0.11.0"))
    bisection = found(bisect(FakeReplay(since("0.10.1")), "--json"))
    assert edge(bisection) == ("0.10.0", "0.10.1")


def test_a_failure_not_reproduced_here_exits_1(bisect):
    stored(result(Verdict.CRASH, reader="0.11.0", message="died by signal 11"))
    ended = bisect(FakeReplay(among({})))
    assert ended.code == 1
    assert "the cell does not fail here in jaxlib 0.11.0: pass. The results say crash in stage compare" in ended.out


@pytest.mark.parametrize(
    ("endings", "message"),
    [
        ({"0.11.0": NOT_RUN}, "jaxlib 0.11.0 could not be run: the index does not answer"),
        (
            {**dict.fromkeys(load_calendar().versions(), CRASH), "0.9.2": REFUSED},
            "tried: 0.9.2 (refused), 0.12.0.1 (crash). Name one with --good",
        ),
    ],
)
def test_bisect_exits_3_without_a_good_and_a_bad_release(endings, message, bisect):
    bisection = found(bisect(FakeReplay(among(endings)), "--reader", "0.11.0", "--json"))
    assert bisection.exit_code == 3
    assert message in bisection.message
    assert bisection.first_bad is None


@pytest.mark.parametrize("reader", ["0.9.2", "0.11.0"])
def test_bisect_finds_no_good_release_if_the_writer_fails_alike(reader, bisect):
    everywhere = FakeReplay(among({}, CRASH))
    message = found(bisect(everywhere, "--reader", reader, "--json")).message
    assert "No release can be good: jaxlib 0.9.2 wrote the golden, and it fails there too, so that no" in message
    assert f"instead: `jaxexport explain '{GOLDEN} in 0.9.2-jax0.9.2 on cpu'" in message
    assert "--good" not in message
    if reader != "0.9.2":
        ended = bisect(everywhere, "--reader", reader, "--quiet", "--good", "0.9.2")
        assert_bad_input(ended, "No release can be good: jaxlib 0.9.2 wrote the golden")
        assert "Name another release" not in ended.err


@pytest.mark.parametrize("ending", [NOT_RUN, TIMEOUT], ids=["not run", "timed out"])
def test_bisect_exits_3_if_a_release_between_gives_no_answer(bisect, ending):
    replay = FakeReplay(among({"0.10.2": ending, "0.11.0": CRASH}))
    bisection = found(bisect(replay, "--reader", "0.11.0", "--json"))
    assert (bisection.exit_code, edge(bisection)) == (3, ("0.10.1", "0.11.0"))
    assert bisection.message == "not narrowed down further: no answer from jaxlib 0.10.2"


def test_bisecting_a_timeout_finds_the_first_release_that_times_out(bisect):
    replay = FakeReplay(among({"0.10.2": TIMEOUT, "0.11.0": TIMEOUT}))
    assert edge(found(bisect(replay, "--reader", "0.11.0", "--json"))) == ("0.10.1", "0.10.2")


def test_a_release_that_times_out_is_not_accepted_as_good(bisect):
    replay = FakeReplay(among({"0.9.2": TIMEOUT, "0.11.0": CRASH}))
    ended = bisect(replay, "--reader", "0.11.0", "--good", "0.9.2")
    assert (ended.code, "tried: 0.9.2 (timeout)" in ended.out + ended.err) == (3, True), ended


@pytest.mark.parametrize(
    ("by", "messages", "expected"),
    [
        ("message", ("KeyError: 1", "TypeError: no"), ("0.10.2", "0.11.0")),
        ("verdict", ("KeyError: 1", "TypeError: no"), ("0.10.1", "0.10.2")),
        ("message", ("bad pointer 0x7f01 of 12", "bad pointer 0xab of 9"), ("0.10.1", "0.10.2")),
    ],
)
def test_the_by_option_decides_which_failures_are_alike(by, messages, expected, bisect):
    replay = FakeReplay(among(dict(zip(("0.10.2", "0.11.0"), map(error, messages), strict=True))))
    assert edge(found(bisect(replay, "--reader", "0.11.0", "--by", by, "--json"))) == expected


def test_numbers_are_bisected_in_units_of_noise(bisect):
    sizes = {
        "0.9.2": off(0.0),
        "0.10.0": off(0.5),
        "0.10.1": off(3.0),
        "0.10.2": off(9.0),
        "0.11.0": off(10, Verdict.NUMERICS),
    }
    words = ("--reader", "0.11.0", "--by", "numbers")
    replay = FakeReplay(among(sizes))
    bisection = found(bisect(replay, *words, "--json"))
    assert (edge(bisection), bisection.threshold) == (("0.10.1", "0.10.2"), 5.0), "the middle between both ends"
    assert "numerics in stage compare, 10 x noise" in bisect(replay, *words).out
    alike = bisect(FakeReplay(among({}, off(10))), *words)
    assert alike.code == 1
    assert "their errors are 10 and 10 in units of noise, and only more than 10 is bad" in " ".join(alike.out.split())


def test_an_infinite_error_still_gives_a_threshold_to_bisect_by(bisect):
    sizes = {"0.10.1": off(3.0), "0.10.2": off(3.5), "0.11.0": off(math.inf, Verdict.NUMERICS)}
    bisection = found(bisect(FakeReplay(among(sizes, off(1.0))), "--reader", "0.11.0", "--by", "numbers", "--json"))
    assert (edge(bisection), bisection.threshold) == (("0.10.1", "0.10.2"), 3.0)


def test_bisecting_numbers_without_noise_is_bad_input(bisect):
    ended = bisect(FakeReplay(among({})), "--reader", "0.11.0", "--by", "numbers", "--quiet")
    assert_bad_input(ended, "no error in units of noise", f"`jaxexport goldens verify --noise {GOLDEN}` measures it")
    ended = bisect(FakeReplay(among({"0.11.0": CRASH}, off(0))), "--reader", "0.11.0", "--by", "numbers", "--quiet")
    assert_bad_input(ended, "in jaxlib 0.11.0 on cpu ended in crash, so it has no numbers to compare")


def test_bisect_exits_3_if_a_release_between_gives_no_numbers(bisect):
    sizes = {"0.10.1": off(0), "0.10.2": CRASH, "0.11.0": off(10, Verdict.NUMERICS)}
    bisection = found(bisect(FakeReplay(among(sizes, off(0))), "--reader", "0.11.0", "--by", "numbers", "--json"))
    assert (edge(bisection), bisection.exit_code) == (("0.10.1", "0.11.0"), 3), "0.10.2 gave no numbers"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--good", "0.10.0"), "--good 0.10.0: the cell fails in this release as it does in 0.11.0: crash"),
        (("--good", "0.10.9"), "jaxlib 0.10.9 is not in the release calendar"),
    ],
)
def test_a_failing_or_unknown_good_release_is_bad_input(words, message, bisect):
    assert_bad_input(bisect(FakeReplay(since("0.10.0")), "--reader", "0.11.0", "--quiet", *words), message)


def test_release_candidates_from_wheels_are_bisected(bisect, tmp_path):
    for version, day in (("0.13.0rc0", "2026-11-10"), ("0.13.0rc1", "2026-11-17")):
        make_wheel(tmp_path, "jaxlib", version, stamps=(day,))
        make_wheel(tmp_path, "jax", version, stamps=(day,), needs=f"jaxlib>=0.12.0,<={version}")
    bad = {"0.13.0rc0": CRASH, "0.13.0rc1": CRASH}
    bisection = found(bisect(FakeReplay(among(bad)), "--reader", "0.13.0rc1", "--wheels", str(tmp_path), "--json"))
    assert edge(bisection) == ("0.12.0.1", "0.13.0rc0")
    assert [(each.name, each.good, each.bad) for each in bisection.changes][:1] == [("jax", "0.12.0.1", "0.13.0rc0")]
    assert bisection.first_bad
    assert str(bisection.first_bad.built) == "2026-11-10"


def test_nightlies_are_tried_only_between_good_and_bad_release(bisect, tmp_path):
    days = [f"0.13.0.dev202611{day:02}" for day in range(1, 21)]
    old = "0.12.1.dev20261001"
    tags = {"jax": "py3-none-any", "jaxlib": "cp312-cp312-manylinux_2_27_x86_64"}
    files = {name: [f"{name}-{version}-{tag}.whl" for version in (*days, old)] for name, tag in tags.items()}
    bad = dict.fromkeys(days[6:], CRASH)
    replay = FakeReplay(among(bad))
    ended = bisect(replay, "--reader", days[-1], "--index", index(tmp_path / "index", **files), "--json")
    bisection = found(ended)
    assert edge(bisection) == (days[5], days[6])
    assert bisection.first_bad
    assert bisection.first_bad.jax == days[6]
    assert old not in replay.ran
    assert len([version for version in replay.ran if "dev" in version]) <= 6
    assert bisection.commits == (), "nightlies have no tags"


def test_an_interrupted_bisection_runs_no_cell_twice(bisect, jaxexport, monkeypatch):
    """The cache of outcomes is real. Only the replay is a fake, which Ctrl-C interrupts."""
    fake, most = FakeReplay(since("0.11.0")), 3

    def replay(cells, environment_for, options, **_):
        for cell in cells:
            if len(fake.ran) == most:
                signal.raise_signal(signal.SIGINT)
            environment_for(cell.placement)  # its content is a part of the key in the cache
            yield from fake([cell], options)

    def find(_: object, placement: Placement) -> Environment:
        return dataclasses.replace(this_interpreter(placement.reader), content_hash=placement.reader.jaxlib)

    monkeypatch.setattr(cached_replay, "replay", replay)
    for name in ("find", "build"):
        monkeypatch.setattr(cached_replay.ReaderEnvironments, name, find)
    words = ("bisect", GOLDEN, *DAY, "--reader", "0.12.0.1", "--json")
    stopped = jaxexport(*words)
    assert (stopped.code, stopped.out, len(fake.ran)) == (130, "", most)
    assert "The same command runs only what is not in the cache." in stopped.err
    most = 100
    assert edge(found(jaxexport(*words))) == ("0.10.2", "0.11.0")
    assert len(fake.ran) == len({*fake.ran}) == 9
    most = len(fake.ran) + 1
    again = jaxexport(*words, "--no-cache", code=130)
    assert "The same command begins anew, since --no-cache stores no outcome." in again.err


# --- the search for an edge -------------------------------------------------------------------------------------------


ANSWERS = st.sampled_from([True, False, None])
ROWS = st.lists(ANSWERS, max_size=60).map(lambda inner: [False, *inner, True])
"""Any answers between a good end and a bad one."""


def is_edge(row: list[IsBad], edge: tuple[int, int]) -> bool:
    """Return whether one side is good, the other one bad, and no release between them has an answer."""
    last_good, first_bad = edge
    between = row[last_good + 1 : first_bad]
    return row[last_good] is False and row[first_bad] is True and set(between) <= {None}


@given(ROWS)
def test_trying_all_releases_finds_the_last_good_to_bad_change(row):
    edge = edge_in(row)
    assert is_edge(row, edge)
    assert False not in row[edge[1] :]


@given(ROWS)
def test_a_search_finds_a_change_and_runs_no_release_twice(row):
    asked: list[int] = []

    def ask(place: int) -> IsBad:
        asked.append(place)
        return row[place]

    edge = find_edge(len(row), ask)
    assert is_edge(row, edge)
    assert len(asked) == len(set(asked))
    assert not {0, len(row) - 1} & {*asked}


@given(st.integers(1, 200), st.integers(1, 200))
def test_the_search_finds_where_a_lasting_failure_begins(good, bad):
    row: list[IsBad] = [False] * good + [True] * bad
    asked: list[int] = []
    edge = find_edge(len(row), lambda place: asked.append(place) or row[place])
    assert edge == edge_in(row) == (good - 1, good)
    assert len(asked) <= math.ceil(math.log2(len(row)))


@given(st.lists(ANSWERS.filter(lambda answer: answer is not True), max_size=20), st.integers(1, 20))
def test_the_search_skips_releases_without_an_answer(before, bad):
    row = [False, *before, *[True] * bad]
    assert find_edge(len(row), row.__getitem__) == edge_in(row)


COMMITS = {"0.11.1": "a" * 40, "0.11.2": "b" * 40}


def environment_folder(tmp_path: Path, version: str, package: str = "jaxlib") -> Path:
    """Write the part of an environment that bisection reads: a package's metadata and its version.py."""
    site = tmp_path / version / "lib" / "python3.12" / "site-packages"
    (site / f"{package}-{version}.dist-info").mkdir(parents=True)
    (site / package).mkdir()
    (site / package / "version.py").write_text(f"_git_hash: str | None = '{COMMITS[version]}'\n")
    return tmp_path / version


def test_commit_links_come_from_the_version_file_of_jaxlib(tmp_path):
    good, bad = release("0.11.1"), release("0.11.2")
    folders = {each: environment_folder(tmp_path, each.jaxlib) for each in (good, bad)}
    links = commits_between(good, bad, folders)
    assert [(link.name, link.link.removeprefix("https://github.com/jax-ml/jax/")) for link in links] == [
        ("jax", "compare/jax-v0.11.1...jax-v0.12.0.1"),
        ("jaxlib", f"compare/{'a' * 40}...{'b' * 40}"),
        ("XLA of jaxlib 0.11.1", f"tree/{'a' * 40}/third_party/xla"),
        ("XLA of jaxlib 0.11.2", f"tree/{'b' * 40}/third_party/xla"),
    ]
    assert commits_between(bad, good, folders) == links, "from the older to the younger"


def test_packages_unchanged_between_good_and_bad_are_not_listed():
    calendar = load_calendar()
    changes = changes_between(release("0.12.0"), release("0.12.0.1"), calendar)
    assert [change.name for change in changes] == ["jaxlib"]
    assert [link.name for link in commits_between(release("0.12.0"), release("0.12.0.1"), {})] == ["jaxlib"]


# --- failures that are alike ------------------------------------------------------------------------------------------


WRONG = "ValueError: no 'x' in Function f of 0x12"
FAILED = {
    "segv": (Verdict.CRASH, Stage.RUN, "died by signal 11 (SIGSEGV)", 11),
    "killed": (Verdict.CRASH, Stage.RUN, "killed", 9),
    "killed otherwise": (Verdict.CRASH, Stage.RUN, "killed", 15),
    "error": (Verdict.ERROR, Stage.LOWER, WRONG, None),
    "of another case": (Verdict.ERROR, Stage.LOWER, "ValueError: no 'abc' in Function g of 0x3f\nand more", None),
    "other words": (Verdict.ERROR, Stage.LOWER, "TypeError: no 'x'", None),
    "another stage": (Verdict.ERROR, Stage.COMPILE, WRONG, None),
    "numbers": (Verdict.NUMERICS, Stage.COMPARE, "3 of 4 elements differ", None),
    "other numbers": (Verdict.NUMERICS, Stage.COMPARE, "outputs are NaN", None),
}
ALIKE = [{"error", "of another case"}, {"numbers", "other numbers"}]


def label_of(name: str) -> str:
    verdict, stage, message, signal = FAILED[name]
    return BisectBy.MESSAGE.label(judge_again(result(verdict, stage=stage, message=message, signal=signal), Policy()))


def failure_of(name: str) -> Failure:
    verdict, stage, message, signal = FAILED[name]
    cell = Cell(golden("t.f", "0.9.2"), release("0.10.2"), "cpu")
    return Failure.of(new_result(cell, verdict=verdict, stage=stage, message=message, signal=signal))


@pytest.mark.parametrize(("one", "other"), [(one, other) for one in FAILED for other in FAILED if one <= other])
def test_bisect_and_reduce_agree_on_failures_that_are_alike(one, other):
    alike = one == other or {one, other} in ALIKE
    assert (label_of(one) == label_of(other), failure_of(one) == failure_of(other)) == (alike, alike)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("segv", "crash in stage run: died by signal _ (SIGSEGV)"),
        ("killed", "crash in stage run: killed: signal 9 (SIGKILL)"),
        ("error", "error in stage lower: ValueError: no _ in Function _ of _"),
        ("numbers", "numerics in stage compare"),
    ],
)
def test_the_label_of_a_failure_omits_details_that_vary(name, label):
    assert label_of(name) == label


# --- nightlies --------------------------------------------------------------------------------------------------------


def index(folder: Path, **packages: list[str]) -> str:
    for name, files in packages.items():
        (folder / name).mkdir(parents=True)
        links = "".join(f'<a href="{file}">{file}</a>' for file in files)
        (folder / name / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
    return str(folder)


def test_a_nightly_needs_a_jax_of_the_same_day(tmp_path):
    days = ("20261101", "20261102", "20261103")
    jaxlib = [
        f"jaxlib-0.13.0.dev{day}-cp3{minor}-cp3{minor}-manylinux_2_27_x86_64.whl" for day in days for minor in (12, 13)
    ]
    jax = [f"jax-0.13.0.dev{day}-py3-none-any.whl" for day in days[1:]]
    folder = index(
        tmp_path, jax=[*jax, "jax-0.13.0.dev20261103.tar.gz"], jaxlib=[*jaxlib, "jaxlib-0.12.0-cp312-cp312-any.whl"]
    )
    calendar = with_nightlies_of([folder], load_calendar())
    assert calendar.versions()[-2:] == ["0.13.0.dev20261102", "0.13.0.dev20261103"]
    assert str(calendar.built("0.13.0.dev20261102")) == "2026-11-02"
    assert calendar.pythons("0.13.0.dev20261102") == ("3.12", "3.13")
    assert calendar.release("0.13.0.dev20261103").jax == "0.13.0.dev20261103"
    assert calendar.versions()[:-2] == load_calendar().versions()


def test_an_unreachable_index_is_an_error(tmp_path):
    with pytest.raises(ReleaseError, match="cannot be reached"):
        with_nightlies_of([str(tmp_path / "nowhere")], load_calendar())
