"""The size of a download: the bytes of the wheels that uv would choose, by their index."""

from __future__ import annotations

import http.client
import subprocess
import tomllib
import urllib.parse
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from export_core.readers.build import uv_command

ANSWER_SECONDS = 20.0
RESOLVE_SECONDS = 60.0
_MEGABYTE = 1e6
_LARGE = 50e6
"""A wheel of at least this many bytes is named."""


def download_sizes(requirements: Sequence[str], python: str, options: Sequence[str] = ()) -> dict[str, int]:
    """Bytes of each wheel that these requirements take, by package; uv's own cache may have some of them already.

    Empty where uv or the index does not say: building the environment reports what is wrong.
    """
    # A lock file names one wheel for each package, the one for this interpreter, with its URL and often its size.
    command = [uv_command(), "pip", "compile", "--quiet", "--no-header", "--format", "pylock.toml", "--python", python]
    try:
        resolved = subprocess.run(
            [*command, *options, "-"],
            input="\n".join(requirements),
            capture_output=True,
            text=True,
            check=False,
            timeout=RESOLVE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {}
    if resolved.returncode:
        return {}
    try:
        packages = tomllib.loads(resolved.stdout)["packages"]
        wheels = {package["name"]: package["wheels"][0] for package in packages if package.get("wheels")}
        with ThreadPoolExecutor(8) as pool:
            return dict(zip(wheels, pool.map(_size, wheels.values()), strict=True))
    # A URL with a password is one that http.client takes for a bad port.
    except (OSError, ValueError, KeyError, http.client.HTTPException):
        return {}


def describe_download(sizes: dict[str, int]) -> str:
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
    request = urllib.request.Request(url, method="HEAD")
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:
        return int(response.headers.get("Content-Length", 0))
