"""Mutations of the modules that decide, each of which a fast test has to notice. See `__main__`."""
