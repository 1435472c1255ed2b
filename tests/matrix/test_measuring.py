"""Which release measures the noise of stored goldens: that of the writer, or the oldest later one that runs them."""

import threading

import pytest
from making import manifest, write_golden

from export_core.goldens import GoldenStore
from export_core.goldens.manifest import NoiseRecord
from export_core.matrix import Limits
from export_core.numbers import measuring_noise
from export_core.numbers.measuring_noise import MeasuredNoise
from export_core.policy import Policy
from export_core.readers.environment import this_interpreter
from export_core.readers.errors import EnvironmentFailed


class Worker:
    def close(self) -> None:
        """Nothing to close."""


def in_these_readers(monkeypatch, noise, build=lambda _, placement: this_interpreter(placement.reader)) -> None:
    monkeypatch.setattr(measuring_noise.ReaderEnvironments, "build", build)
    monkeypatch.setattr(measuring_noise, "start_worker", lambda *_, **__: Worker())
    monkeypatch.setattr(measuring_noise, "measure_noise", noise)


def measured_by(jaxlib: str) -> MeasuredNoise:
    return MeasuredNoise(NoiseRecord(jaxlib, "", 6, ()), b"", False)


@pytest.fixture
def measured_in(tmp_path, monkeypatch):
    """A function: in which release a golden by 0.9.2 is measured, where some cannot be built and some cannot run it."""

    def measure(unbuilt: set[str], not_run: set[str]) -> tuple[list[str], object]:
        tried = []

        def build(self, placement):
            tried.append(placement.reader.jaxlib)
            if tried[-1] in unbuilt:
                raise EnvironmentFailed(f"no {tried[-1]}")
            return this_interpreter(placement.reader)

        def noise(golden, environment, worker, limits, other):
            jaxlib = environment.release.jaxlib
            return f"fails in {jaxlib}" if jaxlib in not_run else measured_by(jaxlib)

        in_these_readers(monkeypatch, noise, build)
        golden = write_golden(GoldenStore(tmp_path / "golden"), manifest(jaxlib="0.9.2"))
        ((_, found),) = measuring_noise.measure_goldens([golden], Policy(), Limits(), lambda text: None)
        return tried, found if isinstance(found, str) else found.record.jaxlib

    return measure


@pytest.mark.parametrize(
    ("unbuilt", "not_run", "tried", "by"),
    [
        (set(), set(), ["0.9.2"], "0.9.2"),
        (set(), {"0.9.2"}, ["0.9.2"], "fails in 0.9.2"),
        ({"0.9.2"}, set(), ["0.9.2", "0.10.0"], "0.10.0"),
        ({"0.9.2"}, {"0.10.0"}, ["0.9.2", "0.10.0", "0.10.1"], "0.10.1"),
    ],
    ids=["its writer", "nobody else where its writer fails", "the oldest later release", "that runs it"],
)
def test_the_oldest_release_from_its_writer_on_that_runs_it_measures_it(unbuilt, not_run, tried, by, measured_in):
    assert measured_in(unbuilt, not_run) == (tried, by)


def test_where_nothing_can_be_built_the_reason_is_that_of_its_writer(measured_in):
    tried, reason = measured_in({*measuring_noise.Policy().calendar().versions()}, set())
    assert (tried[:2], reason) == (["0.9.2", "0.10.0"], "no 0.9.2")


def test_each_golden_is_known_before_the_next_one_has_ended(tmp_path, monkeypatch):
    """So that an interruption loses none that was measured."""
    is_first_known = threading.Event()

    def noise(golden, *_):
        assert golden.manifest.case == "t.a" or is_first_known.wait(20)
        return measured_by("0.9.2")

    in_these_readers(monkeypatch, noise)
    store = GoldenStore(tmp_path / "golden")
    goldens = [write_golden(store, manifest(case=case, jaxlib="0.9.2")) for case in ("t.a", "t.b")]
    found = measuring_noise.measure_goldens(goldens, Policy(), Limits(), lambda text: None)
    assert next(found)[0] is goldens[0]
    is_first_known.set()
    assert next(found)[0] is goldens[1]


def test_a_line_says_which_golden_is_measured(tmp_path, monkeypatch):
    in_these_readers(monkeypatch, lambda *_: "not now")
    store, lines = GoldenStore(tmp_path / "golden"), []
    goldens = [write_golden(store, manifest(case=case, jaxlib="0.9.2")) for case in ("t.a", "t.b")]
    list(measuring_noise.measure_goldens(goldens, Policy(), Limits(), lines.append))
    assert sorted(lines) == [
        "measuring the noise of t.a/0.9.2-cpu (1 of 2 by this writer)",
        "measuring the noise of t.b/0.9.2-cpu (2 of 2 by this writer)",
    ]
