"""Measurements of the budgets, each of both of its sides in the same run: `nox -s bench`."""
