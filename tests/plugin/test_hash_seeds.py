"""The hash seeds in which a test is exported again before it fails, since an order of names may be all that differs."""

import subprocess
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from export_core.export.produce import ProducedGolden
from pytest_jaxexport.second_export import MORE_SEEDS, SEEDS, exports_again_otherwise, try_more_seeds

PRODUCED = cast(
    "ProducedGolden",
    SimpleNamespace(case=SimpleNamespace(id="test_a.test_a"), artifact=None, manifest=SimpleNamespace(flags={})),
)

ORDERS = "print(*(min({f'a{number}', f'b{number}'}, key=lambda _: 0)[0] for number in range(200)), sep='')"
"""Prints which of two names comes first, for 200 sets of two names."""


@dataclass
class Process:
    """A stand-in for a second process, with a fixed answer; it records that it was asked."""

    answer: bool | None
    asked: list[str] = field(default_factory=list)

    def begin(self, _test: str) -> None:
        self.asked.append("begin")

    def differs(self, *_: Any) -> bool | None:
        return self.answer


def ask(*answers: bool | None) -> tuple[bool | None, list[Process]]:
    processes = [Process(answer) for answer in answers]
    differs = exports_again_otherwise(cast("Any", processes), "test_a.py::test_a", PRODUCED)
    return differs, processes


def test_the_hash_seeds_give_almost_each_pair_of_names_both_orders():
    orders = [
        subprocess.run(
            [sys.executable, "-S", "-c", ORDERS],
            env={"PYTHONHASHSEED": str(seed)},
            text=True,
            check=True,
            capture_output=True,
        ).stdout.strip()
        for seed in range(1, MORE_SEEDS + 1)
    ]
    one_way = sum(len(set(by_seed)) == 1 for by_seed in zip(*orders, strict=True))
    assert one_way <= 2  # 0.1 are expected; with five seeds, 12 of 200


def test_a_change_of_the_export_under_the_last_hash_seed_is_found():
    assert ask(False, True)[0] is True


def test_hash_seeds_that_export_alike_show_no_dependence():
    differs, processes = ask(False, False)
    assert differs is False
    assert all(process.asked for process in processes)


def test_two_hash_seeds_are_tried_before_a_test_fails():
    assert len(SEEDS) == 2


def test_the_printed_command_stops_at_the_first_passing_hash_seed(tmp_path):
    program = tmp_path / "pytest"
    program.write_text('#!/bin/sh\necho "$PYTHONHASHSEED $*"\ntest "$PYTHONHASHSEED" = 11\n', encoding="utf-8")
    program.chmod(0o755)
    command = try_more_seeds(f"{program} test_a.py::test_a")
    done = subprocess.run(["sh", "-c", command], text=True, capture_output=True, check=True)
    assert done.stdout.splitlines() == [f"{seed} test_a.py::test_a --no-second-export" for seed in range(1, 12)]
