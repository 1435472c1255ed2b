"""Held-out programs, to measure forecasts with them: `python -m tools.forecast_truth --heldout first`.

The programs measure the knowledge base, so no entry of it may be made from them. The set `first` showed mistakes, which
were then corrected. The set `second` was written before either set was run, and was run only after the corrections. If
an entry is corrected because of `second`, a third set has to be written. The set `third` is that one: its author had
read neither the knowledge base nor its tests, and it measures what both other sets led to.
"""
