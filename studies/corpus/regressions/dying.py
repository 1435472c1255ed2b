"""The releases that a program crashes: tests leave them out as writers, since a crash would end all tests."""

from __future__ import annotations

import jaxlib
import pytest


def dies_in(*releases: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test in these jaxlibs, since writing its golden would end their process."""
    reason = f"jaxlib {jaxlib.__version__} dies of it: no golden"
    return pytest.mark.skipif(jaxlib.__version__ in releases, reason=reason)
