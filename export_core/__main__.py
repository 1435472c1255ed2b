"""`python -m export_core` is `jaxexport`."""

from export_core.cli import main

main()
