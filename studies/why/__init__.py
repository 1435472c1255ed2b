"""Real breaks, bisected and reduced: `nox -s why`."""
