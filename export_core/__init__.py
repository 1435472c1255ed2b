"""The core of pytest-jaxexport, with no pytest in it: artifacts, goldens, readers, the matrix and its judgement."""
