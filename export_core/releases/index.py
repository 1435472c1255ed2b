"""Which files does a package index list for a package, and what is in a wheel there, without fetching the whole of it?"""

from __future__ import annotations

import base64
import http.client
import io
import os
import re
import tomllib
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import msgspec

from export_core.releases.errors import ReleaseError

PUBLIC = "https://pypi.org/simple"
VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
JSON = "application/vnd.pypi.simple.v1+json"
END = 64 * 1024
"""Bytes that are asked for at once: the list of a jaxlib wheel's 200 files takes 30 kB at its end."""

_TIMEOUT = 60.0  # seconds without a byte


@dataclass(frozen=True)
class Listed:
    """One file that an index lists. `yanked` is the reason why it was withdrawn, true where none is given."""

    name: str
    url: str
    yanked: bool | str


def configured_index(project: Path) -> str:
    """The index that uv installs from here: by its variables (or pip's), the project's or the user's uv.toml, else the public one."""
    for variable in VARIABLES:
        if url := os.environ.get(variable, "").strip():
            return url
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for path, table in (
        (project / "uv.toml", ()),
        (project / "pyproject.toml", ("tool", "uv")),
        (config / "uv" / "uv.toml", ()),
        (Path("/etc/uv/uv.toml"), ()),
    ):
        if url := _index_in(path, table):
            return url
    return PUBLIC


def listed(index: str, package: str) -> tuple[Listed, ...]:
    """The files of a package, from an index of PEP 691 (JSON) or PEP 503 (HTML). Raises `ReleaseError` where it does not answer."""
    url = f"{index.rstrip('/')}/{package}/"
    if urlsplit(url).scheme == "file":
        url += "index.html"
    with _open(url, {"Accept": f"{JSON}, text/html;q=0.5"}) as response:
        body, kind = response.read(), str(response.headers.get("Content-Type"))
        base = response.geturl()
    try:
        found = _from_json(body, base) if kind.startswith(JSON) else _from_html(body.decode(), base)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ReleaseError(
            f"{shown(url)}: expected a page of a package index, found something else: {error}."
        ) from None
    if not found:
        raise ReleaseError(f"{shown(url)}: expected the files of {package}, found none listed there.")
    return found


def shown(url: str) -> str:
    """A URL without the user and password in it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


class RemoteFile(io.RawIOBase):
    """A file of an index that can be read from anywhere, by range requests where its server answers those, else fetched whole.

    `size` is the file's, `fetched` how many bytes came over the network. `login` has the user and password of the index.
    """

    def __init__(self, url: str, login: str = "") -> None:
        self._url = _with_login(url, login)
        self._place = 0
        with _open(self._url, {"Range": f"bytes=-{END}"}, also=(400, 416, 501)) as response:
            part = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", str(response.headers.get("Content-Range")))
            if response.status == 206 and part:
                self._held = response.read()
                self._start, self.size = int(part[1]), int(part[2])
            else:
                self._held = response.read() if response.status in (200, None) else self._whole()
                self._start, self.size = 0, len(self._held)
        self.fetched = len(self._held)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self.size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def tell(self) -> int:
        """Where it stands."""
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Read on from where it stands."""
        view = memoryview(buffer).cast("B")
        end = min(self._place + len(view), self.size)
        if end <= self._place:
            return 0
        if not (self._start <= self._place and end <= self._start + len(self._held)):
            self._fetch(end)
        at = self._place - self._start
        data = self._held[at : at + end - self._place]
        view[: len(data)] = data
        self._place += len(data)
        return len(data)

    def _fetch(self, end: int) -> None:
        last = min(max(end, self._place + END), self.size) - 1
        with _open(self._url, {"Range": f"bytes={self._place}-{last}"}) as response:
            self._held, self._start = response.read(), self._place
        self.fetched += len(self._held)
        if len(self._held) != last + 1 - self._place:
            raise ReleaseError(
                f"{shown(self._url)}: expected {last + 1 - self._place} bytes of it, found {len(self._held)}. Try again."
            )

    def _whole(self) -> bytes:
        with _open(self._url, {}) as response:
            data: bytes = response.read()
        return data


def _open(url: str, headers: Mapping[str, str], also: tuple[int, ...] = ()) -> Any:
    """The answer to a request; one with a status in `also` is no error."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http", "file"):
        raise ReleaseError(f"{shown(url)}: expected the URL of a package index (https, http or file).")
    request = urllib.request.Request(shown(url), headers={"User-Agent": "pytest-jaxexport", **headers})
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        # Not to where a redirection leads: that may be anybody's.
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    try:
        return urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code in also:
            return error
        raise ReleaseError(f"{shown(url)}: the index answers {error.code} {error.reason}.") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = getattr(error, "reason", error)
        raise ReleaseError(
            f"{shown(url)}: cannot be reached: {why}. Name another index with --index, or a folder with wheels with --wheels."
        ) from None


def _with_login(url: str, login: str) -> str:
    """The URL with the user and password of the index, where it is on the same server."""
    own, index = urlsplit(url), urlsplit(login)
    if index.username and not own.username and own.hostname == index.hostname:
        return urlunsplit(own._replace(netloc=index.netloc.rpartition("@")[0] + "@" + own.netloc))
    return url


def _index_in(path: Path, table: tuple[str, ...]) -> str:
    try:
        said: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return ""  # uv itself says what is wrong with it
    for name in table:
        said = said.get(name, {})
    default = next((each.get("url") for each in said.get("index", []) if each.get("default")), "")
    return str(default or said.get("index-url", "") or said.get("pip", {}).get("index-url", ""))


class _JsonFile(msgspec.Struct, frozen=True):
    filename: str
    url: str
    yanked: bool | str = False


class _JsonPage(msgspec.Struct, frozen=True):
    files: tuple[_JsonFile, ...]


def _from_json(body: bytes, base: str) -> tuple[Listed, ...]:
    files = msgspec.json.decode(body, type=_JsonPage).files
    return tuple(
        Listed(file.filename, urljoin(base, file.url), file.yanked is not False and _reason(file.yanked))
        for file in files
    )


def _reason(said: str | bool | None) -> str | bool:
    """Why a file was withdrawn, on one line that every file of releases can hold; True where nothing is said."""
    text = "".join(letter if letter.isprintable() else " " for letter in said) if isinstance(said, str) else ""
    return " ".join(text.split()) or True


class _Links(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self.found: list[Listed] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a link. Its file is the last part of its path: an index must call it so (PEP 503)."""
        said = dict(attrs)
        if tag == "a" and (href := said.get("href")):
            url = urljoin(self._base, href).partition("#")[0]
            yanked = _reason(said["data-yanked"]) if "data-yanked" in said else False
            self.found.append(Listed(unquote(url.rpartition("/")[2]), url, yanked))


def _from_html(text: str, base: str) -> tuple[Listed, ...]:
    links = _Links(base)
    links.feed(text)
    return tuple(links.found)
