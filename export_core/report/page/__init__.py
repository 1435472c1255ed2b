"""HTML pages that load nothing else: a run, its difference from an earlier one, a forecast."""
