"""How the outputs of a golden move from reader to reader, by build date."""

from __future__ import annotations

from making import result

from export_core.features.compare_runs.trend import number_drift
from export_core.judge import Judgement, Result
from export_core.judge.causes import failing_stretches
from export_core.matrix import Verdict
from export_core.readers.placement import Mode


def read(reader: str, outputs: str = "", *, wrong: bool = False, writer: str = "0.9.2", **changes: object) -> Result:
    """A cell that gave these bits; without any, those of the writer."""
    verdict, judgement = (Verdict.NUMERICS, Judgement.BROKEN) if wrong else (Verdict.PASS, Judgement.KEPT)
    bits = {"outputs": outputs or "as written", "as_written": not outputs, "max_noise_error": 0.5 if outputs else 0.0}
    return result(verdict, judgement, reader=reader, writer=writer, **{**bits, **changes})


def stretches(*results: Result) -> list[str]:
    """The stretches of the only golden: releases, and the digest where it is not the writer's."""
    (drift,) = number_drift(results)
    return [
        " ".join((*(reader.jaxlib for reader in stretch.readers), *([] if stretch.as_written else [stretch.outputs])))
        for stretch in drift.stretches
    ]


def differing(*results: Result) -> list[tuple[str, str, str]]:
    """The releases before, in and after each stretch of readers that differ."""
    return [
        (
            found.before.jaxlib if found.before else "",
            " ".join(cell.reader.jaxlib for cell in found.results),
            found.after.jaxlib if found.after else "",
        )
        for found in failing_stretches(results, lambda cell: cell.verdict is Verdict.NUMERICS)
    ]


def test_readers_are_in_order_of_their_build_dates():
    assert stretches(read("0.10.2", "b"), read("0.8.3", "a"), read("0.9.2"), read("0.9.0", "a")) == [
        "0.9.0 0.8.3 a", "0.9.2", "0.10.2 b",
    ]  # fmt: skip


def test_the_writer_is_a_point_though_it_was_no_reader():
    assert stretches(read("0.10.0"), read("0.10.2", "a")) == ["0.9.2 0.10.0", "0.10.2 a"]
    assert stretches(read("0.10.0", "a"), read("0.10.2", "a")) == ["0.9.2", "0.10.0 0.10.2 a"]
    (drift,) = number_drift([read("0.10.0", "a")])
    assert drift.stretches[0].max_abs_error == 0


def test_bits_that_come_back_are_a_stretch_of_their_own():
    found = stretches(read("0.9.2"), read("0.10.0", "a"), read("0.10.2"), read("0.11.2", "a"))
    assert found == ["0.9.2", "0.10.0 a", "0.10.2", "0.11.2 a"]


def test_a_writer_on_another_processor_is_no_step():
    """The releases around it agree with each other: none of them changed anything."""
    assert stretches(read("0.9.1", "a"), read("0.10.0", "a")) == ["0.9.1 0.10.0 a"]


def test_a_writer_between_readers_that_differ_is_a_step():
    assert stretches(read("0.9.1", "a"), read("0.10.0", "b")) == ["0.9.1 a", "0.9.2", "0.10.0 b"]


def test_a_golden_that_its_own_writer_reads_otherwise_has_no_bits_as_written():
    assert stretches(read("0.9.2", "a"), read("0.10.0", "a")) == ["0.9.2 0.10.0 a"]


def test_the_writer_is_no_point_on_another_platform():
    on_cuda = [read(reader, bits, platform="cuda") for reader, bits in (("0.10.0", "a"), ("0.10.2", "b"))]
    assert stretches(*on_cuda) == ["0.10.0 a", "0.10.2 b"]


def test_each_golden_platform_and_device_has_its_own_drift():
    results = [
        read("0.10.0"),
        read("0.10.0", case="t.other"),
        read("0.10.0", platform="cuda", device="H100"),
        read("0.10.0", platform="cuda", device="L4"),
    ]
    assert [(drift.case, drift.platform, drift.device) for drift in number_drift(results)] == [
        ("t.other", "cpu", ""),
        ("tests.test_a.test_f", "cpu", ""),
        ("tests.test_a.test_f", "cuda", "H100"),
        ("tests.test_a.test_f", "cuda", "L4"),
    ]


def test_what_was_not_compared_has_no_drift():
    crash = result(Verdict.CRASH, Judgement.OUTSIDE, reader="0.10.0", outputs="a")
    compiled = read("0.10.0", "", mode=Mode.COMPILE)
    by_an_earlier_version = result(reader="0.10.0")
    assert number_drift([crash, compiled, by_an_earlier_version]) == ()


def test_readers_that_differ_start_after_one_that_agrees():
    results = [read("0.10.0"), read("0.10.2", "a", wrong=True), read("0.11.2", "b", wrong=True)]
    assert differing(*results) == [("0.10.0", "0.10.2 0.11.2", "")]
    assert differing(*results, read("0.12.0.1")) == [("0.10.0", "0.10.2 0.11.2", "0.12.0.1")]


def test_older_readers_that_differ_end_before_one_that_agrees():
    assert differing(read("0.9.0", "a", wrong=True), read("0.9.1", "a", wrong=True)) == [("", "0.9.0 0.9.1", "0.9.2")]


def test_readers_of_which_none_agrees_have_nothing_around_them():
    around_the_writer = read("0.9.1", "a", wrong=True), read("0.10.0", "b", wrong=True)
    assert differing(*around_the_writer) == [("", "0.9.1 0.10.0", "")]


def test_a_change_of_bits_within_the_tolerance_is_no_difference():
    assert differing(read("0.10.0", "a"), read("0.10.2", "b")) == []
