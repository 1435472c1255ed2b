"""Studies that only this repository runs: programs written and read by many releases, and the pages about the results.

Each study has a nox session (`nox --list`), and is not in the wheel. The fast tests of all are in `tests/` here.
"""
