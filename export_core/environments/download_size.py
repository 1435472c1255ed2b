"""How many bytes would an environment fetch? The sizes of the wheels that uv would choose, asked of their index."""

from __future__ import annotations

import subprocess
import tomllib
import urllib.parse
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from export_core.environments.build import uv_command

ANSWER_SECONDS = 20.0
RESOLVE_SECONDS = 60.0
_MEGABYTE = 1e6
_LARGE = 50e6
"""Bytes from which a wheel is named."""


def download(wanted: Sequence[str], python: str, options: Sequence[str] = ()) -> dict[str, int]:
    """Bytes of each wheel that these requirements take, by package. Empty where uv or the index does not say: it is no reason to fail.

    uv's own cache may have some of them already.
    """
    command = [uv_command(), "pip", "compile", "--quiet", "--no-header", "--format", "pylock.toml", "--python", python]
    try:
        asked = subprocess.run(
            [*command, *options, "-"],
            input="\n".join(wanted),
            capture_output=True,
            text=True,
            check=False,
            timeout=RESOLVE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {}
    if asked.returncode:
        return {}
    try:
        packages = tomllib.loads(asked.stdout)["packages"]
        wheels = {each["name"]: each["wheels"][0] for each in packages if each.get("wheels")}
        with ThreadPoolExecutor(8) as asking:
            return dict(zip(wheels, asking.map(_size, wheels.values()), strict=True))
    except (OSError, ValueError, KeyError):
        return {}


def told(sizes: dict[str, int]) -> str:
    """``612 MB to fetch (libtpu 204 MB, jaxlib 110 MB)``; empty for none."""
    if not sizes:
        return ""
    large = sorted((size, name) for name, size in sizes.items() if size >= _LARGE)
    named = ", ".join(f"{name} {size / _MEGABYTE:.0f} MB" for size, name in reversed(large))
    return f"{sum(sizes.values()) / _MEGABYTE:.0f} MB to fetch{f' ({named})' if named else ''}"


def _size(wheel: dict[str, object]) -> int:
    if isinstance(size := wheel.get("size"), int):
        return size
    url = str(wheel.get("url", ""))
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        return 0
    asked = urllib.request.Request(url, method="HEAD")
    with urllib.request.urlopen(asked, timeout=ANSWER_SECONDS) as answer:
        return int(answer.headers.get("Content-Length", 0))
