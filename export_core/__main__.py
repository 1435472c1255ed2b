"""`python -m export_core` is `jaxexport`."""

from export_core.entry import main

main()
