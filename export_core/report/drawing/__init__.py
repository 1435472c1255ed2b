"""Pictures of a run: the map of writers and readers, windows over time, badges."""
