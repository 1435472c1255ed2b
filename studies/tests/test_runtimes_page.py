"""The page of runtimes is what the session writes from its record, and every difference of numbers is explained."""

import re

import msgspec
import pytest

from export_core.releases.runtimes import known_runtimes
from studies.runtimes.page import PAGE, REASONS, page_text
from studies.runtimes.record import (
    EXPLAINED,
    LETTERS,
    RECORD,
    UNKNOWN,
    Explained,
    load_explained,
    problems_of,
    read_record,
)

MOST_WORDS = 1000


@pytest.fixture(scope="module")
def record():
    return read_record(RECORD)


def test_the_page_of_runtimes_is_what_its_session_writes(record):
    text = PAGE.read_text(encoding="utf-8")
    assert text == page_text(text, record, load_explained(EXPLAINED)), "nox -s runtimes -- --only page"


def test_the_page_of_runtimes_has_few_enough_words():
    words = re.findall(r"[^\s|]*\w[^\s|]*", PAGE.read_text(encoding="utf-8"))
    assert len(words) <= MOST_WORDS


def test_every_difference_of_numbers_is_explained(record):
    assert problems_of(record, load_explained(EXPLAINED)) == []


def test_missing_and_unused_explanations_are_problems(record):
    (name, reader), *_ = record.readers.items()
    planted = {"a.test_case/0.12.0.1-cpu": "output 0 differs"}
    readers = {name: msgspec.structs.replace(reader, numerics=planted)}
    explained = [Explained((name,), (record.goldens[0],), "runtime", "It drops it.", "Nothing.")]
    problems = problems_of(msgspec.structs.replace(record, readers=readers), explained)
    assert [problem.split(" gives other numbers")[0] for problem in problems] == [
        "explained.yaml: expected why a.test_case/0.12.0.1-cpu",
        "explained.yaml: no golden",
    ]


def test_each_golden_has_a_verdict_in_each_reader(record):
    for name, reader in record.readers.items():
        assert len(reader.verdicts) == len(record.goldens), name
        assert set(reader.verdicts) <= {*LETTERS.values(), UNKNOWN}, name
        assert reader.verdicts.count("r") == sum(reader.refusals.values()), name
        letters = dict(zip(record.goldens, reader.verdicts, strict=True))
        assert {golden for golden, letter in letters.items() if letter == "n"} == set(reader.numerics), name


def test_each_reason_for_a_refusal_is_in_one_row_of_the_table():
    meanings = {refusal.meaning for runtime in known_runtimes().values() for refusal in runtime.known_refusals}
    assert [one for one in meanings if sum(bool(re.match(start, one)) for start, _, _ in REASONS) != 1] == []
