"""A study in which every release exports small programs, and every release reads them: `nox -s every_release`."""
