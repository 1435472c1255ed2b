"""Are these numbers the same: comparators, factorizations, units in the last place."""
