"""How the outputs of a golden move from reader to reader, by build date."""

import pytest
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


def cells(text: str, **changes: object) -> list[Result]:
    """``0.10.0, 0.10.2 a``: readers, each with its bits unless they are those of the writer."""
    return [read(*one.split(), **changes) for one in text.split(", ")]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("0.10.2 b, 0.8.3 a, 0.9.2, 0.9.0 a", ["0.9.0 0.8.3 a", "0.9.2", "0.10.2 b"]),
        ("0.10.0, 0.10.2 a", ["0.9.2 0.10.0", "0.10.2 a"]),
        ("0.10.0 a, 0.10.2 a", ["0.9.2", "0.10.0 0.10.2 a"]),
        ("0.9.2, 0.10.0 a, 0.10.2, 0.11.2 a", ["0.9.2", "0.10.0 a", "0.10.2", "0.11.2 a"]),
        # The releases around the writer agree with each other: none of them changed anything.
        ("0.9.1 a, 0.10.0 a", ["0.9.1 0.10.0 a"]),
        ("0.9.1 a, 0.10.0 b", ["0.9.1 a", "0.9.2", "0.10.0 b"]),
        ("0.9.2 a, 0.10.0 a", ["0.9.2 0.10.0 a"]),
    ],
    ids=[
        *("by build date", "the writer, no reader", "none agrees with the writer", "bits that come back"),
        *("a writer on another processor", "a writer between others", "a writer that reads otherwise"),
    ],
)
def test_the_bits_of_a_golden_are_stretches_of_releases(results, expected):
    assert stretches(*cells(results)) == expected


def test_a_writer_that_was_no_reader_has_its_own_outputs():
    (drift,) = number_drift([read("0.10.0", "a")])
    assert drift.stretches[0].max_abs_error == 0


def test_the_writer_is_no_point_on_another_platform():
    assert stretches(*cells("0.10.0 a, 0.10.2 b", platform="cuda")) == ["0.10.0 a", "0.10.2 b"]


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
def test_readers_that_differ_have_those_around_them(right, wrong, expected):
    assert differing(*(cells(right) if right else ()), *(cells(wrong, wrong=True) if wrong else ())) == expected
