"""Studies that only this repository runs: programs written and read by many releases, and the pages made of them.

Each has a nox session (`nox --list`) and is in no wheel. Its fast tests are in `tests/` of this folder.
"""
