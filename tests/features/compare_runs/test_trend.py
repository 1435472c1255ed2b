"""What `jaxexport trend` says: in which release which outputs changed, and by how much."""

import json

import jsonschema
import pytest
from commands import assert_bad_input, finished
from making import result

from export_core.features.compare_runs.trend import Trend, number_drift, trend_lines
from export_core.judge import Judgement, Result
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Cost
from tools.schemas import schema


def read(reader: str, outputs: str = "", noise: float | None = None, *, case: str = "t.f", **changes: object) -> Result:
    """A cell that gave these bits; without any, those of the writer, 0.9.2."""
    bits = {"outputs": outputs or "w", "as_written": not outputs, "max_noise_error": noise, "max_abs_error": 3e-7}
    return result(case=case, reader=reader, **{**bits, **changes})


def lines(*results: Result) -> list[str]:
    return list(trend_lines(Trend(number_drift(results))))


def test_a_step_says_its_releases_and_the_errors_on_both_sides():
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


def test_goldens_without_a_step_are_only_counted():
    other = [read(reader, "a", case="t.other", platform="cuda") for reader in ("0.10.0", "0.10.2")]
    alone = read("0.10.0", "a", case="t.alone", platform="cuda")
    assert lines(read("0.10.0"), *other, alone)[-2:] == [
        "the same bits in all releases: 2 goldens, 1 of them as written",
        "compared in one release only: 1 golden",
    ]


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
def test_an_error_is_in_units_of_noise_where_there_are_any(changes, size):
    assert f"  as written -> {size}  t.f/0.9.2-cpu" in lines(read("0.10.0", "a", **changes))


def test_a_golden_on_another_platform_or_device_says_which():
    on_gpu = [
        read(reader, bits, 1.0, platform="cuda", device="H100") for reader, bits in (("0.10.0", "a"), ("0.10.2", "b"))
    ]
    assert "  1 x noise -> 1 x noise  t.f/0.9.2-cpu on cuda H100" in lines(*on_gpu)


def test_bits_of_an_earlier_release_are_told():
    steps = lines(read("0.9.0", "a"), read("0.9.2"), read("0.10.0", "a"), read("0.10.2", "b"))
    assert "  as written -> off by 3e-07, as in 0.9.0  t.f/0.9.2-cpu" in steps
    assert "  off by 3e-07, as in 0.9.0 -> off by 3e-07  t.f/0.9.2-cpu" in steps


def test_goldens_of_another_processor_are_counted():
    assert lines(read("0.9.2", "a"), read("0.10.0", "a"))[-1] == (
        "other bits here than in the golden, by the writer's own release: 1 golden. Another processor wrote them, or "
        "the program is not deterministic"
    )
    assert "other bits here" not in lines(read("0.9.2"), read("0.10.0", "a"))[-1]


def test_one_release_has_nothing_to_be_compared_with():
    (line,) = lines(read("0.9.2"))
    assert line.startswith("Nothing to compare: no golden has outputs of two releases.")


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def trend(tmp_path, jaxexport):
    """Runs `jaxexport trend WORDS` beside a run whose numbers changed in 0.10.2."""
    finished(tmp_path / ".jaxexport", read("0.10.0"), read("0.10.2", "a", 0.8), read("0.10.2", case="t.g"))

    return lambda *words, **ends: jaxexport("trend", *words, **ends)


@pytest.mark.parametrize("words", [(), ("--numbers",), ("--numbers", ".jaxexport")], ids=" ".join)
def test_the_numbers_of_the_last_run_are_shown(trend, words):
    ended = trend(*words, code=0)
    assert "  as written -> 0.8 x noise  t.f/0.9.2-cpu\n" in ended.out
    assert "the same bits in all releases: 1 golden, 1 of them as written\n" in ended.out


def test_costs_alone_or_with_the_numbers(trend, tmp_path):
    cells = [read(reader, cost=Cost(temp_bytes=size)) for reader, size in (("0.10.0", 80_000), ("0.10.2", 160_000))]
    finished(tmp_path / ".jaxexport", *cells)
    step = "  x2.00  temp_bytes  80.0 kB -> 160.0 kB  0.10.0 -> 0.10.2  t.f/0.9.2-cpu\n"
    assert trend("--cost").out.endswith(step)
    assert "numbers of" not in trend("--cost").out
    assert "numbers of" in trend().out.removesuffix(step)
    told = json.loads(trend("--cost", "--json").out)
    jsonschema.validate(told, schema("trend"))
    assert [step["change"] for step in told["cost"]["steps"]] == [
        {"figure": "temp_bytes", "was": 80_000, "now": 160_000}
    ]
    assert (told["numbers"], json.loads(trend("--numbers", "--json").out)["cost"]) == ([], None)


def test_other_cases_are_left_out(trend):
    assert "t.f" not in trend("--cases", "*.g").out
    assert_bad_input(trend("--cases", "t.h"), "--cases: no case of the run in .jaxexport is called or matches 't.h'.")


def test_json_has_every_stretch_of_every_golden(trend):
    told = json.loads(trend("--json").out)
    jsonschema.validate(told, schema("trend"), format_checker=jsonschema.FormatChecker())
    readers = [
        [(drift["golden"], [reader["jaxlib"] for reader in stretch["readers"]]) for stretch in drift["stretches"]]
        for drift in told["numbers"]
    ]
    assert readers == [
        [("t.f/0.9.2-cpu", ["0.9.2", "0.10.0"]), ("t.f/0.9.2-cpu", ["0.10.2"])],
        [("t.g/0.9.2-cpu", ["0.9.2", "0.10.2"])],
    ]


def test_no_run_is_bad_input(trend):
    assert_bad_input(trend("nowhere"), "summary.json: expected the summary of a finished matrix run, found none. Run ")
