"""Whether two sets of outputs agree: comparators, factorizations, units in the last place."""
