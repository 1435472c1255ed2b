"""The sample of sentences that strangers grade."""

from tools.sentences import SIZES, drawn


def test_one_seed_draws_one_sample_and_another_a_different_one():
    sample = drawn(1)
    assert {kind: len(set(sentences)) for kind, sentences in sample.items()} == SIZES
    assert drawn(1) == sample != drawn(2)
