"""Messages that are refusals, each only in the releases that are known to print it."""

import datetime

import pytest
from making import day

from export_core.matrix.outcome import find_refusal, load_refusals
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar

CALENDAR = load_calendar()
VERSION = ("deserialize", "NotImplementedError", "deserialize unsupported version 3")
AGE = (
    "deserialize",
    "ValueError",
    "artifact seems to be older than the 6-month backward-compatibility window. Re-export it.",
)
CHECK = ("deserialize", "ValueError", "Cannot deserialize DisabledSafetyCheck with unknown kind: 2")
PLATFORM = ("lower", "ValueError", "Function 'f' was exported for platforms '('tpu',)' but it is used on '('cpu',)'.")


@pytest.mark.parametrize(
    ("failure", "jax", "refused"),
    [
        (VERSION, "0.4.30", True),
        (VERSION, "0.8.1", True),
        (VERSION, "0.8.2", False),
        (VERSION, "0.12.0.1", False),
        (AGE, "0.11.0", False),
        (AGE, "0.11.1", True),
        (AGE, "0.12.0.1", True),
        (CHECK, "0.9.2", False),
        (CHECK, "0.10.0", True),
        (PLATFORM, "0.4.30", True),
        (PLATFORM, "0.12.0.1", True),
    ],
)
def test_a_message_is_a_refusal_only_in_listed_releases(failure, jax, refused):
    assert (find_refusal(*failure, CALENDAR.jax[jax].built) is not None) == refused


@pytest.mark.parametrize("entry", load_refusals(), ids=lambda entry: entry.meaning)
def test_each_refusal_entry_begins_and_ends_on_its_day(entry):
    examples = {"^deserialize": VERSION, "seems to": AGE, "^Cannot": CHECK, "was (exp": PLATFORM}
    (message,) = (failure[2] for start, failure in examples.items() if entry.message.startswith(start))
    one = datetime.timedelta(days=1)
    for edge, outside in ((entry.since, -one), (entry.until, one)):
        if edge is not None:
            assert entry.is_from(message, edge)
            assert not entry.is_from(message, edge + outside)
    assert entry.is_from(message, entry.since or entry.until or day("2026-01-01"))


@pytest.mark.parametrize(
    "failure",
    [
        ("compile", "NotImplementedError", VERSION[2]),  # another stage
        ("deserialize", "ValueError", VERSION[2]),  # another exception
        ("deserialize", "NotImplementedError", "unsupported"),  # another message
        ("deserialize", "NotImplementedError", "cannot deserialize unsupported version x"),
        ("lower", "ValueError", "was exported for fun"),
        ("run", "JaxRuntimeError", "INTERNAL: " + AGE[2]),
        ("deserialize", "ValueError", ""),
    ],
)
def test_a_message_that_only_resembles_a_refusal_is_not_a_refusal(failure):
    assert find_refusal(*failure, CALENDAR.jax["0.8.1"].built) is None
    assert find_refusal(*failure, CALENDAR.jax["0.12.0.1"].built) is None


def test_every_refusal_entry_has_a_known_stage_and_a_meaning():
    assert {entry.stage for entry in load_refusals()} <= set(Stage)
    assert all(entry.meaning for entry in load_refusals())
