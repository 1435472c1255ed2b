"""A study of ten real breaks, each of which is bisected and reduced: `nox -s why`."""
