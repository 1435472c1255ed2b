"""What the tests marked `browser` share: Chromium, and a place for its pictures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium as installed here, else Playwright's own. Never skipped: the marker says that a browser is there."""
    from playwright.sync_api import sync_playwright

    installed = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        # The sandbox of a browser needs rights that root in a container has not.
        launched = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, Any], None]:
    """Stores a picture in PAGE_IMAGES, as small as 256 colours make it."""
    folder = Path(os.environ.get("PAGE_IMAGES", tmp_path))
    return lambda name, picture: picture.convert("RGB").quantize(256).save(folder / f"{name}.png", optimize=True)
