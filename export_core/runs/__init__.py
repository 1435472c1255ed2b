"""The files of a run: plan, journal, results and summary; continuing one, merging shards, comparing with an earlier run."""
