"""Mutations of the modules that decide: does a fast test notice each? See `__main__`."""
