"""The sample of sentences that strangers grade."""

import re

import pytest

from tools import sentences
from tools.sentences import PACKAGE, SIZES, drawn

MODULE = '''"""A module."""


def multiplied{n}(x):
    """Return a number times {n}."""
    if not x:
        raise ValueError("expected a number, found none")
    raise KeyError("two words")


class Table{n}:
    """A table of {n} numbers."""
'''


@pytest.fixture
def in_small_repository(tmp_path, monkeypatch):
    """A repository with 80 docstrings, 40 messages and 60 test names."""
    for number in range(40):
        path = tmp_path / PACKAGE[number % len(PACKAGE)] / f"m{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(MODULE.format(n=number))
    (tmp_path / "tests").mkdir()
    names = [f"def test_{number}_holds():\n    'It is no docstring of the package.'\n" for number in range(60)]
    (tmp_path / "tests" / "test_a.py").write_text("def made(): 'A function.'\n" + "".join(names))
    monkeypatch.setattr(sentences, "ROOT", tmp_path)
    sentences._sentences.cache_clear()
    yield
    sentences._sentences.cache_clear()


def test_a_seed_always_draws_the_same_sample(in_small_repository):
    sample = drawn(1)
    assert {kind: len(set(sentences)) for kind, sentences in sample.items()} == SIZES
    assert drawn(1) == sample != drawn(2)


def test_each_drawn_sentence_has_its_file_line_and_name(in_small_repository):
    sample = drawn(1)
    of_package = re.compile(r"\w+/m\d+\.py:\d+: \w+\n    (Return a number times|A table of) .*")
    assert [sentence for sentence in sample["docstrings"] if not of_package.fullmatch(sentence)] == []
    assert {sentence.partition(": ")[2] for sentence in sample["messages"]} == {"'expected a number, found none'"}
    assert {sentence.rpartition(": ")[2] for sentence in sample["test names"]} == {
        f"test_{number}_holds" for number in range(60)
    }
