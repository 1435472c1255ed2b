"""The sample of sentences that strangers grade."""

from tools.sentences import SIZES, drawn


def test_a_seed_always_draws_the_same_sample():
    sample = drawn(1)
    assert {kind: len(set(sentences)) for kind, sentences in sample.items()} == SIZES
    assert drawn(1) == sample != drawn(2)
