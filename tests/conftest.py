"""What all tests have: pytester, and the fixtures of shared_fixtures.py, replaying.py and browsing.py."""

from __future__ import annotations

from contextlib import suppress

# Releases that write the corpus load this file too, in environments that lack what this project's own tests need.
with suppress(ModuleNotFoundError):
    from hypothesis import settings

    # How fast the machine is decides no test, but for those of hostile input, which name a limit of their own.
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")

pytest_plugins = ["pytester", "shared_fixtures", "replaying", "browsing"]
