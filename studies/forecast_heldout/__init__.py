"""Forecasts of programs from which none was made: `python -m tools.forecast_truth --heldout first`.

The programs measure the knowledge base, so nothing in it may come from them. `first` showed mistakes, which were
mended. `second` was written at the same time, before either was run, and was run only after that. Whoever mends an
entry because of one of them has to write a third set.
"""
