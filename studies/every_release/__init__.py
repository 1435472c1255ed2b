"""Every release writes small programs, and every release reads them: `nox -s every_release`."""
