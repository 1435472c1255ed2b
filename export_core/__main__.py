"""`python -m export_core` is `jaxexport`."""

from export_core.cli.entry import main

main()
