"""Ten real breaks, bisected and reduced: `nox -s why`."""
