"""Mutations of the Python modules that decide a verdict; fast tests have to notice them. `__main__` runs the check."""
