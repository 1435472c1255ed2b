"""Where the cost of a golden changes, by build date of the reader."""

from making import result

from export_core.features.compare_runs.trend import cost_lines, cost_steps
from export_core.judge import Result
from export_core.readers.worker.protocol import Cost, Timings


def read(reader: str, **figures: float) -> Result:
    return result(case="t.f", reader=reader, cost=Cost(**figures))


def steps(*results: Result) -> list[tuple[str, str, str, float, float]]:
    return [
        (step.before.jaxlib, step.after.jaxlib, step.change.figure, step.change.was, step.change.now)
        for step in cost_steps(results).steps
    ]


def test_a_step_is_between_the_two_releases_in_which_it_happened():
    cells = [read("0.10.2", temp_bytes=160_000), read("0.9.2", temp_bytes=80_000), read("0.10.1", temp_bytes=80_000)]
    assert steps(*cells) == [("0.10.1", "0.10.2", "temp_bytes", 80_000, 160_000)]


def test_the_largest_step_comes_first_whichever_its_direction():
    cells = [read("0.9.2", flops=9e6, temp_bytes=10_000), read("0.10.2", flops=3e6, temp_bytes=20_000)]
    assert [step[2] for step in steps(*cells)] == ["flops", "temp_bytes"]


def test_less_than_a_hundredth_is_no_step():
    assert steps(read("0.9.2", flops=1e6), read("0.10.2", flops=1.009e6)) == []


def test_a_release_that_does_not_say_a_figure_is_left_out():
    cells = [read("0.9.2", flops=1e6), read("0.10.0"), read("0.10.2", flops=2e6)]
    assert steps(*cells) == [("0.9.2", "0.10.2", "flops", 1e6, 2e6)]


def test_times_are_a_step_where_the_rank_test_says_so():
    def runs(reader: str, first: float, step: float) -> Result:
        return result(reader=reader, timings=Timings(runs=tuple(first + number * step for number in range(10))))

    three_times = [runs("0.10.1", 0.01, 1e-4), runs("0.10.2", 0.03, 1e-4)]
    assert [step[2] for step in steps(*three_times)] == ["run_seconds"]
    overlapping = [runs("0.10.1", 0.01, 1e-4), runs("0.10.2", 0.001, 4e-3)]
    assert steps(*overlapping) == []


def test_a_busy_machine_is_no_step_where_the_fastest_run_is_as_fast():
    def runs(reader: str, *seconds: float) -> Result:
        return result(reader=reader, timings=Timings(runs=seconds))

    quiet = runs("0.10.1", *(0.0100 + number / 1e5 for number in range(20)))
    busy = runs("0.10.2", 0.0103, *(0.030 + number / 1e5 for number in range(19)))
    assert steps(quiet, busy) == []


def test_a_line_says_how_many_times_what_where_and_of_which_golden():
    cells = [read("0.10.0", temp_bytes=84_493_152, flops=1e6), read("0.10.2", temp_bytes=168_984_580, flops=1e6)]
    assert list(cost_lines(cost_steps(cells))) == [
        "costs of 1 golden in 2 releases by build date, from jaxlib 0.10.0 (built 2026-04-16) to jaxlib 0.10.2 (built "
        "2026-06-17): 1 step",
        "  x2.00  temp_bytes  84.5 MB -> 169.0 MB  0.10.0 -> 0.10.2  t.f/0.9.2-cpu",
    ]


def test_generations_of_a_case_that_change_alike_share_a_line():
    cells = [
        result(case="t.f", writer=writer, reader=reader, cost=Cost(flops=flops))
        for writer in ("0.9.2", "0.10.0")
        for reader, flops in (("0.10.0", 1e6), ("0.10.2", 2e6))
    ]
    assert list(cost_lines(cost_steps(cells)))[1:] == [
        "  x2.00  flops  1.0 M -> 2.0 M  0.10.0 -> 0.10.2  t.f, 2 goldens"
    ]
