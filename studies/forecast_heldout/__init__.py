"""Forecasts of programs on which none was tuned: `python -m tools.forecast_truth --heldout first`.

The programs measure the knowledge base and must not shape it. `first` showed what to mend. `second` was written
beside it, before either was run, and was asked only after the mends. Who mends because of one of them writes a third.
"""
