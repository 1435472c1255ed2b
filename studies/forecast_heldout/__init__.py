"""Programs on which no forecast was tuned: `python -m tools.forecast_truth --heldout`.

They measure the knowledge base and must not shape it. `first` showed what had to be mended. `second` was written beside
it, before either was run, and was asked only after the mends. Who mends because of one of them writes a third.
"""
