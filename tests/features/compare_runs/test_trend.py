"""`jaxexport report --trend`: in which release outputs or costs of a golden changed, and by how much."""

import datetime
import json

import jsonschema
import msgspec
import pytest
from commands import assert_bad_input, finished
from making import day, of_runtime, result

from export_core.features.compare_runs.trend import Trend, cost_lines, cost_steps, number_drift, trend_lines
from export_core.judge import Judgement, Result
from export_core.judge.causes import failing_stretches
from export_core.judge.gate import RunIdentity
from export_core.matrix import Verdict
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Cost, Timings
from tools.schemas import schema

GOLDEN = "t.f/0.9.2-cpu"


def read(reader: str, outputs: str = "", noise: float | None = None, *, case: str = "t.f", **changes: object) -> Result:
    """Return a cell that gave these bits, by default those of the writer, 0.9.2."""
    bits = {"outputs": outputs or "w", "as_written": not outputs, "max_noise_error": noise, "max_abs_error": 3e-7}
    return result(case=case, reader=reader, **{**bits, **changes})


def lines(*results: Result) -> list[str]:
    return list(trend_lines(Trend(number_drift(results))))


def test_a_change_of_bits_shows_both_releases_and_their_errors():
    assert lines(
        read("0.10.0"), read("0.10.2", "a", 0.8), read("0.11.0", "a", 0.8), read("0.11.2", "b", 30183.0, case="t.g")
    ) == [
        "numbers of 2 goldens in 5 releases by build date, from jaxlib 0.9.2 (built 2026-03-18) to jaxlib 0.11.2 with "
        "jax 0.12.0.1 (built 2026-09-17); errors are those against the writer's outputs",
        "",
        "jaxlib 0.10.2 (built 2026-06-17) gives other bits than jaxlib 0.10.0 (built 2026-04-16): 1 golden",
        "  as written -> 0.8 x noise  t.f/0.9.2-cpu",
        "",
        "jaxlib 0.11.2 with jax 0.12.0.1 (built 2026-09-17) gives other bits than jaxlib 0.9.2 (built 2026-03-18): "
        "1 golden",
        "  as written -> 3.02e+04 x noise  t.g/0.9.2-cpu",
        "",
        "the same bits in all releases: 0 goldens, 0 of them as written",
    ]


def test_goldens_whose_bits_never_change_are_only_counted():
    other = [read(reader, "a", case="t.other", platform="cuda") for reader in ("0.10.0", "0.10.2")]
    alone = read("0.10.0", "a", case="t.alone", platform="cuda")
    assert lines(*other, alone)[-2:] == [
        "the same bits in all releases: 1 golden, 0 of them as written",
        "compared in one release only: 1 golden",
    ]


def test_goldens_are_counted_separately_by_runtime_and_platform():
    in_iree = of_runtime(read("0.10.0", "a"), "iree==3.13.0", "2026-11-05")
    on_gpu = [read(reader, "a", case="t.g", platform="cuda", device="H100") for reader in ("0.10.0", "0.10.2")]
    cells = [read("0.10.0"), read("0.10.0", "a", case="t.h"), in_iree, *on_gpu]
    first, *_, before, same, alone, also = lines(*cells)
    assert first.startswith("numbers of 3 goldens in ")
    assert first.endswith("; errors are those against the writer's outputs")
    assert (before, same, alone, also) == (
        "",
        "the same bits in all releases of jaxlib: 1 of 2 goldens, 1 of them as written",
        "compared in one release of iree only: 1 of 1 goldens",
        "the same bits in all releases of jaxlib on cuda H100: 1 of 1 goldens, 0 of them as written",
    )


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({}, "off by 3e-07"),
        ({"max_abs_error": 0.0}, "equal values"),
        ({"max_abs_error": None}, "not finite"),
        ({"noise": 4.0, "verdict": Verdict.NUMERICS, "judgement": Judgement.BROKEN}, "4 x noise, out of tolerance"),
    ],
    ids=["no noise", "signs of zeros", "not finite", "out of tolerance"],
)
def test_errors_are_shown_in_units_of_noise_if_noise_was_measured(changes, size):
    assert f"  as written -> {size}  t.f/0.9.2-cpu" in lines(read("0.10.0", "a", **changes))


def test_a_change_of_bits_names_the_platform_and_the_device():
    on_gpu = [
        read(reader, bits, 1.0, platform="cuda", device="H100") for reader, bits in (("0.10.0", "a"), ("0.10.2", "b"))
    ]
    assert "  1 x noise -> 1 x noise, in other bits  t.f/0.9.2-cpu on cuda H100" in lines(*on_gpu)


def test_the_caption_names_the_most_recently_built_release():
    cells = [read("0.12.0.1"), of_runtime(read("0.12.0.1", "a"), "tensorflow==2.21.0", "2026-03-05")]
    assert " to jaxlib 0.12.0.1 (built 2026-10-20); " in lines(*cells)[0]
    costs = [costing("0.9.2", temp_bytes=1), costing("0.12.0.1", temp_bytes=9)]
    costs.append(of_runtime(costing("0.9.2", temp_bytes=5), "tensorflow==2.21.0", "2026-03-05"))
    assert " to jaxlib 0.12.0.1 (built 2026-10-20): " in next(cost_lines(cost_steps(costs)))


def test_a_change_names_an_earlier_release_with_the_same_bits():
    steps = lines(read("0.9.0", "a"), read("0.9.2"), read("0.10.0", "a"), read("0.10.2", "b"))
    assert "  as written -> off by 3e-07, as in 0.9.0  t.f/0.9.2-cpu" in steps
    assert "  off by 3e-07, as in 0.9.0 -> off by 3e-07  t.f/0.9.2-cpu" in steps


def test_goldens_whose_writer_gives_other_bits_are_counted():
    assert lines(read("0.9.2", "a"), read("0.10.0", "a"))[-1] == (
        "other bits here than in the golden, by the writer's own release: 1 golden. Perhaps another processor wrote "
        "them, the program is not deterministic, or the stored outputs were changed"
    )
    assert "other bits here" not in lines(read("0.9.2"), read("0.10.0", "a"))[-1]


def test_a_single_release_has_no_trend():
    (line,) = lines(read("0.9.2"))
    assert line.startswith("Nothing to compare: no golden has outputs of two releases.")


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def trend(tmp_path, jaxexport):
    """The function that runs `jaxexport report --trend WORDS`, after a run whose numbers changed in 0.10.2."""
    finished(tmp_path / ".jaxexport", read("0.10.0"), read("0.10.2", "a", 0.8), read("0.10.2", case="t.g"))

    return lambda *words, **ends: jaxexport("report", "--trend", *words, **ends)


@pytest.mark.parametrize("words", [("--trend",), ("--trend", "numbers"), (".jaxexport", "--trend")], ids=" ".join)
def test_trend_shows_the_numbers_of_the_last_run(trend, words, jaxexport):
    ended = jaxexport("report", *words, code=0)
    assert "  as written -> 0.8 x noise  t.f/0.9.2-cpu\n" in ended.out
    assert "the same bits in all releases: 1 golden, 1 of them as written\n" in ended.out


def test_trend_shows_only_costs_when_asked_for_cost(trend, tmp_path):
    cells = [read(reader, cost=Cost(temp_bytes=size)) for reader, size in (("0.10.0", 80_000), ("0.10.2", 160_000))]
    finished(tmp_path / ".jaxexport", *cells)
    step = "  x2.00  temp_bytes  80.0 kB -> 160.0 kB  0.10.0 -> 0.10.2  t.f/0.9.2-cpu\n"
    assert trend("cost").out.endswith(step)
    assert "numbers of" not in trend("cost").out
    assert "numbers of" in trend().out.removesuffix(step)
    printed = json.loads(trend("cost", "--json").out)
    jsonschema.validate(printed, schema("trend"))
    assert [step["change"] for step in printed["cost"]["steps"]] == [
        {"figure": "temp_bytes", "was": 80_000, "now": 160_000}
    ]
    assert (printed["numbers"], json.loads(trend("numbers", "--json").out)["cost"]) == ([], None)


def test_a_folder_directly_after_the_trend_option_is_bad_input(trend):
    assert_bad_input(trend(".jaxexport"), "'--trend': '.jaxexport' is not one of 'numbers', 'cost', 'both'")


def test_cases_option_limits_the_trend(trend):
    assert "t.f" not in trend("--cases", "*.g").out
    hint = "--cases: no case of the run in .jaxexport matches 't.h'. Did you mean 't.g'?"
    assert_bad_input(trend("--cases", "t.h"), hint)
    assert_bad_input(trend("--cases", "g"), hint.replace("t.h", "g"))


def test_json_has_each_range_of_releases_with_equal_bits(trend):
    printed = json.loads(trend("--json").out)
    jsonschema.validate(printed, schema("trend"), format_checker=jsonschema.FormatChecker())
    readers = [
        [(drift["golden"], [reader["jaxlib"] for reader in stretch["readers"]]) for stretch in drift["stretches"]]
        for drift in printed["numbers"]
    ]
    assert readers == [
        [("t.f/0.9.2-cpu", ["0.9.2", "0.10.0"]), ("t.f/0.9.2-cpu", ["0.10.2"])],
        [("t.g/0.9.2-cpu", ["0.9.2", "0.10.2"])],
    ]


def test_trend_without_a_run_is_bad_input(jaxexport):
    assert_bad_input(
        jaxexport("report", "nowhere", "--trend"),
        "summary.json: expected the summary of a finished matrix run, found none in ",
    )


@pytest.fixture
def two_days(tmp_path):
    """Two runs of the same cells, in the folders `a` and `b`. In `b` one cell gave other bits, and cost more."""
    same = read("0.10.0", case="t.g")
    for name, outputs, noise, size in (("a", "x", 0.5, 80_000), ("b", "y", 3.0, 160_000)):
        moved = read("0.10.0", outputs, noise, cost=Cost(temp_bytes=size))
        finished(tmp_path / name, moved, same, as_of=day(f"2026-11-2{'ab'.index(name)}"))


@pytest.mark.usefixtures("two_days")
def test_several_runs_show_what_changed_between_them(jaxexport):
    printed = jaxexport("report", "b", "a", "--trend", code=0).out
    days = "1: as of 2026-11-20 -> 2: as of 2026-11-21"
    assert printed.splitlines()[-3:] == [
        "from run to run, 1: as of 2026-11-20 to 2: as of 2026-11-21: 2 changes in cells that both runs have",
        f"  bits   0.5 x noise -> 3 x noise        {days}  t.f/0.9.2-cpu in jaxlib 0.10.0",
        f"  x2.00  temp_bytes 80.0 kB -> 160.0 kB  {days}  t.f/0.9.2-cpu in jaxlib 0.10.0",
    ]
    assert "from run to run" not in jaxexport("report", "b", "--trend", code=0).out


def test_the_trend_of_several_runs_lists_changed_errors_and_verdicts(tmp_path, jaxexport):
    crashed = result(case="t.g", reader="0.10.0", verdict=Verdict.CRASH, judgement=Judgement.BROKEN)
    finished(tmp_path / "a", read("0.10.0", "x", 0.0), read("0.10.0", case="t.g"), as_of=day("2026-11-20"))
    finished(tmp_path / "b", read("0.10.0", "x", 412.0), crashed, as_of=day("2026-11-21"))
    printed = jaxexport("report", "a", "b", "--trend", "numbers", code=0).out
    days = "1: as of 2026-11-20 -> 2: as of 2026-11-21"
    assert printed.splitlines()[-4:] == [
        "from run to run, 1: as of 2026-11-20 to 2: as of 2026-11-21: 2 changes in cells that both runs have",
        f"  golden   0 x noise -> 412 x noise  {days}  t.f/0.9.2-cpu in jaxlib 0.10.0",
        f"  verdict  pass -> crash             {days}  t.g/0.9.2-cpu in jaxlib 0.10.0",
        "golden: 1 golden was written again between the runs, so the errors are against other outputs or another noise",
    ]
    steps = json.loads(jaxexport("report", "a", "b", "--trend", "numbers", "--json", code=0).out)["runs"]
    assert [(step["what"], step["verdicts"]) for step in steps] == [("golden", None), ("verdict", ["pass", "crash"])]
    assert json.loads(jaxexport("report", "a", "b", "--trend", "cost", "--json", code=0).out)["runs"] == []


@pytest.mark.parametrize(("second", "what"), [("h1", "bits"), ("h2", "golden")])
def test_a_changed_error_is_labelled_golden_if_the_golden_was_replaced(second, what, tmp_path, jaxexport):
    for name, digest, noise in (("a", "h1", 0.5), ("b", second, 3.0)):
        cells = read("0.10.0", name, noise), read("0.12.0", name, noise), read("0.12.0", name, noise)
        other = {"reader": msgspec.structs.replace(cells[2].reader, jax="0.12.0")}
        cells = (*cells[:2], msgspec.structs.replace(cells[2], **other))
        finished(tmp_path / name, *cells, as_of=day(f"2026-11-2{'ab'.index(name)}"), plan={"goldens": {GOLDEN: digest}})
    printed = jaxexport("report", "a", "b", "--trend", "numbers", code=0).out
    days = "1: as of 2026-11-20 -> 2: as of 2026-11-21"
    for reader in ("0.10.0", "0.12.0 (jax 0.12.0)", "0.12.0 (jax 0.12.0.1)"):
        assert f"  {what}  0.5 x noise -> 3 x noise  {days}  {GOLDEN} in jaxlib {reader}\n" in printed
    assert ("golden: 1 golden was written again" in printed) is (what == "golden")


def test_a_rewritten_golden_without_errors_is_counted_but_not_listed(tmp_path, jaxexport):
    for name in "ab":
        finished(tmp_path / name, read("0.10.0", name, 0.0, as_written=True), as_of=day(f"2026-11-2{'ab'.index(name)}"))
    printed = jaxexport("report", "a", "b", "--trend", "numbers", code=0).out
    assert ": 0 changes in cells that both runs have\ngolden: 1 golden was written again between the runs, " in printed
    assert printed.endswith("outputs or another noise; 1 cell as written before and after, not listed\n")


def test_runs_of_the_same_day_are_labelled_with_their_start_time(tmp_path, jaxexport):
    begun = [datetime.datetime(2026, 11, 20, 14, 5, 2, tzinfo=datetime.UTC)]
    begun += [begun[0] + datetime.timedelta(hours=1), begun[0] + datetime.timedelta(days=1)]
    for name, moment, outputs in zip("abc", begun, "xyz", strict=True):
        identity = RunIdentity(started=moment)
        finished(tmp_path / name, read("0.10.0", outputs, 0.5), as_of=day("2026-11-20"), identity=identity)
    printed = jaxexport("report", "c", "b", "a", "--trend", "numbers", code=0).out
    first, second = "1: as of 2026-11-20, begun 14:05:02", "2: as of 2026-11-20, begun 15:05:02"
    assert f"{first} -> {second}" in printed
    assert f"{second} -> 3: as of 2026-11-20, begun 2026-11-21 14:05:02" in printed
    page = jaxexport("report", "a", "b", "c", "--html", "-", code=0).out
    assert f'<option value="0">{first}</option>' in page
    assert f'<option value="1">{second}</option>' in page


def test_changed_bits_with_an_equal_error_are_shown_as_other_bits(tmp_path, jaxexport):
    for name in "ab":
        finished(tmp_path / name, read("0.10.0", name, 0.5), as_of=day(f"2026-11-2{'ab'.index(name)}"))
    printed = jaxexport("report", "a", "b", "--trend", "numbers", code=0).out
    assert "  bits  0.5 x noise -> 0.5 x noise, in other bits  " in printed


@pytest.mark.usefixtures("two_days")
def test_json_has_what_changed_between_runs(jaxexport):
    printed = json.loads(jaxexport("report", "a", "b", "--trend", "cost", "--json", code=0).out)
    jsonschema.validate(printed, schema("trend"))
    (step,) = printed["runs"]
    assert step["change"] == {"figure": "temp_bytes", "was": 80_000, "now": 160_000}
    assert (step["before"], step["after"]) == ("1: as of 2026-11-20", "2: as of 2026-11-21")


@pytest.mark.usefixtures("two_days")
def test_report_shows_the_newest_run_of_several_folders(jaxexport):
    for order in (("a", "b"), ("b", "a")):
        page = jaxexport("report", *order, "--html", "-", code=0).out
        assert "<span>as of</span> 2026-11-21" in page
        assert "<span>baseline</span> as of 2026-11-20" in page
    other = jaxexport("report", "a", "b", "--baseline", "a")
    assert_bad_input(other, "Several DIR are a history already: they cannot be combined with --baseline.")


# --- costs, by build date of the reader -------------------------------------------------------------------------------


def costing(reader: str, **figures: float) -> Result:
    return result(case="t.f", reader=reader, cost=Cost(**figures))


def steps(*results: Result) -> list[tuple[str, str, str, float, float]]:
    return [
        (step.before.jaxlib, step.after.jaxlib, step.change.figure, step.change.was, step.change.now)
        for step in cost_steps(results).steps
    ]


def test_a_cost_change_is_between_adjacent_releases_by_build_date():
    cells = [
        costing("0.10.2", temp_bytes=160_000),
        costing("0.9.2", temp_bytes=80_000),
        costing("0.10.1", temp_bytes=80_000),
    ]
    assert steps(*cells) == [("0.10.1", "0.10.2", "temp_bytes", 80_000, 160_000)]


def test_cost_changes_up_or_down_are_listed_largest_first():
    cells = [costing("0.9.2", flops=9e6, temp_bytes=10_000), costing("0.10.2", flops=3e6, temp_bytes=20_000)]
    assert [step[2] for step in steps(*cells)] == ["flops", "temp_bytes"]


def test_a_cost_change_below_one_percent_is_not_listed():
    assert steps(costing("0.9.2", flops=1e6), costing("0.10.2", flops=1.009e6)) == []


def test_a_release_without_a_measured_cost_is_skipped():
    cells = [costing("0.9.2", flops=1e6), costing("0.10.0"), costing("0.10.2", flops=2e6)]
    assert steps(*cells) == [("0.9.2", "0.10.2", "flops", 1e6, 2e6)]


def evenly_spaced(step: float, first: float, count: int = 10) -> list[float]:
    return [first + number * step for number in range(count)]


@pytest.mark.parametrize(
    ("before", "after", "figures"),
    [
        (evenly_spaced(1e-4, 0.01), evenly_spaced(1e-4, 0.03), ["run_seconds"]),
        ([*evenly_spaced(1e-4, 0.01, 6), *evenly_spaced(1e-4, 0.09, 4)], evenly_spaced(1e-4, 0.02), []),
        (evenly_spaced(1e-5, 0.01, 20), [0.0103, *evenly_spaced(1e-5, 0.03, 19)], []),
    ],
    ids=[
        "three times",
        "overlapping, though the median and the fastest are twice as slow",
        "a busy machine, whose fastest run is as fast",
    ],
)
def test_a_change_of_times_counts_if_the_rank_test_agrees(before, after, figures):
    runs = {"0.10.1": before, "0.10.2": after}
    found = steps(*(result(reader=reader, timings=Timings(runs=tuple(times))) for reader, times in runs.items()))
    assert [step[2] for step in found] == figures


def test_a_cost_line_has_ratio_field_releases_and_golden():
    cells = [costing("0.10.0", temp_bytes=84_493_152, flops=1e6), costing("0.10.2", temp_bytes=168_984_580, flops=1e6)]
    assert list(cost_lines(cost_steps(cells))) == [
        "costs of 1 golden in 2 releases by build date, from jaxlib 0.10.0 (built 2026-04-16) to jaxlib 0.10.2 (built "
        "2026-06-17): 1 step",
        "  x2.00  temp_bytes  84.5 MB -> 169.0 MB  0.10.0 -> 0.10.2  t.f/0.9.2-cpu",
    ]


def test_goldens_of_a_case_with_the_same_change_share_a_line():
    cells = [
        result(case="t.f", writer=writer, reader=reader, cost=Cost(flops=flops))
        for writer in ("0.9.2", "0.10.0")
        for reader, flops in (("0.10.0", 1e6), ("0.10.2", 2e6))
    ]
    assert list(cost_lines(cost_steps(cells)))[1:] == [
        "  x2.00  flops  1.0 M -> 2.0 M  0.10.0 -> 0.10.2  t.f, 2 goldens"
    ]


# --- outputs, by build date of the reader -----------------------------------------------------------------------------


def giving(reader: str, outputs: str = "", *, wrong: bool = False, writer: str = "0.9.2", **changes: object) -> Result:
    """Return a cell that gave these bits, by default those of the writer."""
    verdict, judgement = (Verdict.NUMERICS, Judgement.BROKEN) if wrong else (Verdict.PASS, Judgement.KEPT)
    bits = {"outputs": outputs or "as written", "as_written": not outputs, "max_noise_error": 0.5 if outputs else 0.0}
    return result(verdict, judgement, reader=reader, writer=writer, **{**bits, **changes})


def stretches(*results: Result) -> list[str]:
    """Return a text for each stretch of readers with the same bits: the releases, and the bits if not the writer's."""
    (drift,) = number_drift(results)
    return [
        " ".join((*(reader.jaxlib for reader in stretch.readers), *([] if stretch.as_written else [stretch.outputs])))
        for stretch in drift.stretches
    ]


def differing(*results: Result) -> list[tuple[str, str, str]]:
    """Return the releases before, in and after each stretch of readers whose outputs are wrong."""
    return [
        (
            found.before.jaxlib if found.before else "",
            " ".join(cell.reader.jaxlib for cell in found.results),
            found.after.jaxlib if found.after else "",
        )
        for found in failing_stretches(results)
    ]


def cells(text: str, **changes: object) -> list[Result]:
    """Build cells from a text such as ``0.10.0, 0.10.2 a``: readers, with bits that are not the writer's."""
    return [giving(*one.split(), **changes) for one in text.split(", ")]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("0.10.2 b, 0.8.3 a, 0.9.2, 0.9.0 a", ["0.9.0 0.8.3 a", "0.9.2", "0.10.2 b"]),
        ("0.10.0, 0.10.2 a", ["0.9.2 0.10.0", "0.10.2 a"]),
        ("0.10.0 a, 0.10.2 a", ["0.9.2", "0.10.0 0.10.2 a"]),
        ("0.9.2, 0.10.0 a, 0.10.2, 0.11.2 a", ["0.9.2", "0.10.0 a", "0.10.2", "0.11.2 a"]),
        # The releases around the writer agree with each other, so that no release changed anything.
        ("0.9.1 a, 0.10.0 a", ["0.9.1 0.10.0 a"]),
        ("0.9.1 a, 0.10.0 b", ["0.9.1 a", "0.9.2", "0.10.0 b"]),
        ("0.9.2 a, 0.10.0 a", ["0.9.2 0.10.0 a"]),
    ],
    ids=[
        *("by build date", "the writer, no reader", "none agrees with the writer", "bits that come back"),
        *("a writer on another processor", "a writer between others", "a writer that reads otherwise"),
    ],
)
def test_neighbouring_releases_with_the_same_bits_are_grouped(results, expected):
    assert stretches(*cells(results)) == expected


def test_the_trend_gives_a_writer_that_was_not_run_an_error_of_zero():
    (drift,) = number_drift([giving("0.10.0", "a")])
    assert drift.stretches[0].max_abs_error == 0


def test_the_trend_on_another_platform_omits_the_writer():
    assert stretches(*cells("0.10.0 a, 0.10.2 b", platform="cuda")) == ["0.10.0 a", "0.10.2 b"]


def test_each_golden_has_one_trend_for_each_platform_and_device():
    results = [
        giving("0.10.0"),
        giving("0.10.0", case="t.other"),
        giving("0.10.0", platform="cuda", device="H100"),
        giving("0.10.0", platform="cuda", device="L4"),
    ]
    assert [(drift.case, drift.platform, drift.device) for drift in number_drift(results)] == [
        ("t.other", "cpu", ""),
        ("tests.test_a.test_f", "cpu", ""),
        ("tests.test_a.test_f", "cuda", "H100"),
        ("tests.test_a.test_f", "cuda", "L4"),
    ]


def test_cells_without_a_comparison_have_no_trend():
    crash = result(Verdict.CRASH, Judgement.OUTSIDE, reader="0.10.0", outputs="a")
    compiled = giving("0.10.0", "", mode=Mode.COMPILE)
    by_an_earlier_version = result(reader="0.10.0")
    assert number_drift([crash, compiled, by_an_earlier_version]) == ()


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ("0.10.0", "0.10.2 a, 0.11.2 b", [("0.10.0", "0.10.2 0.11.2", "")]),
        ("0.10.0, 0.12.0.1", "0.10.2 a, 0.11.2 b", [("0.10.0", "0.10.2 0.11.2", "0.12.0.1")]),
        ("", "0.9.0 a, 0.9.1 a", [("", "0.9.0 0.9.1", "0.9.2")]),
        ("", "0.9.1 a, 0.10.0 b", [("", "0.9.1 0.10.0", "")]),
        ("0.10.0 a, 0.10.2 b", "", []),
    ],
    ids=["after one that agrees", "between two", "before the writer", "none agrees", "within the tolerance"],
)
def test_adjacent_releases_with_wrong_numbers_form_one_group(right, wrong, expected):
    assert differing(*(cells(right) if right else ()), *(cells(wrong, wrong=True) if wrong else ())) == expected
