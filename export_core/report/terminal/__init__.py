"""What a terminal shows: the end of a run, its progress, a plan, a forecast, a policy."""
