"""Facts that features add to results: read by the feature's own type, and stored unchanged where it is absent."""

import enum

import msgspec
import pytest

from export_core.base import facts
from export_core.base.facts import Fact, check_facts, labelled_facts
from export_core.base.feature import Feature
from export_core.matrix.result import Result
from export_core.run.errors import RunError
from export_core.run.results import RESULTS
from tests.making import result
from tools.schemas import schema
from tools.stored_results import read_results


class Size(enum.StrEnum):
    SMALL = "small"


class Weight(msgspec.Struct, frozen=True):
    """An example of a feature's fact: the weight of a cell."""

    grams: int
    size: Size | None = None  # Its size.


WEIGHT = Fact("weight", Weight, "What the cell weighs.", "heavy", lambda weight: [f"{weight.grams} g"])


@pytest.fixture(autouse=True)
def scale(monkeypatch):
    """A feature with one fact."""
    monkeypatch.setattr(facts, "features", lambda: {"scale": Feature(facts={"weight": ":WEIGHT"})})
    monkeypatch.setattr(facts.pkgutil, "resolve_name", lambda _: WEIGHT)


def weighed(**values) -> Result:
    return result(facts=WEIGHT.put({"height": 3}, Weight(**values)))


def test_a_features_fact_is_read_from_a_result_as_it_was_stored():
    assert WEIGHT.of(weighed(grams=5, size=Size.SMALL).facts) == Weight(5, Size.SMALL)
    assert WEIGHT.of(result().facts) is None


def test_a_report_shows_only_facts_of_installed_features():
    assert labelled_facts(weighed(grams=5).facts) == [("heavy", ["5 g"])]
    assert labelled_facts(result().facts) == []


def test_removing_a_fact_from_a_result_leaves_its_other_facts():
    assert WEIGHT.put(weighed(grams=5).facts, None) == {"height": 3}


def test_facts_survive_writing_and_reading_results(tmp_path):
    before = weighed(grams=5)
    (tmp_path / RESULTS).write_bytes(msgspec.json.encode(before) + b"\n")
    (after,) = read_results(tmp_path)
    assert after == before
    assert WEIGHT.of(after.facts) == Weight(5)
    assert after.facts["height"] == 3, "a fact of no feature here"


def test_a_features_fact_of_a_wrong_type_is_an_error(tmp_path):
    line = msgspec.json.encode(weighed(grams=5)).replace(b'"grams":5', b'"grams":"5"')
    (tmp_path / RESULTS).write_bytes(line + b"\n")
    with pytest.raises(RunError, match=r"results.jsonl:1: not a result: `facts.weight.grams`: expected"):
        read_results(tmp_path)


def test_checking_facts_imports_only_features_that_have_one(monkeypatch):
    monkeypatch.setattr(facts.pkgutil, "resolve_name", lambda name: pytest.fail(f"{name} was imported"))
    check_facts({})
    check_facts({"height": 3})


def test_the_schema_of_results_describes_each_fact_of_a_feature():
    found = schema.__wrapped__("result")  # not the one that other tests share, which has the real facts
    assert found["$defs"]["Result"]["properties"]["facts"]["properties"] == {
        "weight": {"description": "What the cell weighs.", "$ref": "#/$defs/Weight"}
    }
    assert found["$defs"]["Weight"]["properties"]["size"]["description"] == "Its size."
