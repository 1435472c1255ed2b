"""A package index: its address, the files of a package, its nightlies, and reading parts of a file.

The page of a package is read as HTML (PEP 503), which every index has.
"""

import base64
import html.parser
import http.client
import io
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from export_core.base.text import printable, without_credentials
from export_core.releases.calendar import Calendar, JaxlibRelease, JaxRelease, date_in_version
from export_core.releases.errors import ReleaseError
from export_core.releases.wheels import Wheel, pythons_of, with_wheels

PUBLIC = "https://pypi.org/simple"
VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
END = 64 * 1024  # Bytes that are asked for at once: the list of a jaxlib wheel's 200 files takes 30 kB at its end.

_SET = ("1", "true", "yes", "on", "y", "t")  # The values by which uv takes a variable for set.
_TIMEOUT = 60.0  # seconds without a byte
_OTHER_INDEX = "Name another index with --index, or a folder with wheels with --wheels."


@dataclass
class IndexFile:
    """A file that a package index lists.

    `yanked` is the reason why the file was withdrawn: True if the index gives no reason, False if it was not withdrawn.
    """

    name: str
    url: str
    yanked: bool | str = False


def configured_index() -> str:
    """Return the URL of the package index that variables of uv or pip name, or else the public index."""
    return next((url for name in VARIABLES if (url := os.environ.get(name, "").strip())), PUBLIC)


def index_files(index: str, package: str) -> tuple[IndexFile, ...]:
    """Return the files of a package on an index.

    Raises `ReleaseError` if the index has no such page, or lists no files there.
    """
    url = f"{index.rstrip('/')}/{package}/"
    if urlsplit(url).scheme == "file":
        # Of a folder, urllib opens nothing: the list is the file in it.
        url += "index.html"
    with _open(url, {"Accept": "text/html"}) as response:
        body, base, charset = _read(response, url), response.geturl(), response.headers.get_content_charset()
    try:
        files = _Links(base, body.decode(charset or "utf-8")).files
    except (ValueError, LookupError) as error:
        raise ReleaseError(
            f"{url}: expected a page of a package index (PEP 503), found something else: {error}."
        ) from None
    if not files:
        wanted = f"a page of a package index (PEP 503) with the files of {package}"
        raise ReleaseError(f"{url}: expected {wanted}, found none listed there.")
    return tuple(files)


class _Links(html.parser.HTMLParser):
    """A parser for an index page, each link of which leads to a file. The text of a link is the file's name."""

    def __init__(self, base: str, text: str) -> None:
        super().__init__()
        self.base = base
        self.files: list[IndexFile] = []
        self._is_open = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a link, or store the address to which the page's links are relative."""
        values = dict(attrs)
        href = values.get("href")
        if tag == "base" and href:
            self.base = urljoin(self.base, href)
        elif tag == "a" and href:
            url = urldefrag(urljoin(self.base, href)).url  # the part after # is the file's hash
            # On one line, which every file of releases can hold.
            reason = printable(" ".join((values.get("data-yanked") or "").split()))
            self.files.append(IndexFile("", url, reason or "data-yanked" in values))
            self._is_open = True
        version = values.get("content") or ""
        # A page of another major version may mean something else by the same names: PEP 629 wants it refused.
        if values.get("name") == "pypi:repository-version" and version.partition(".")[0] != "1":
            raise ValueError(f"expected version 1 of the simple API, found {version!r}")

    def handle_data(self, data: str) -> None:
        """Store text inside a link, which may be a part of the link's text."""
        if self._is_open:
            self.files[-1].name += data.strip()

    def handle_endtag(self, tag: str) -> None:
        """End a link."""
        self._is_open = self._is_open and tag != "a"


def with_nightlies_of(indexes: Iterable[str], calendar: Calendar) -> Calendar:
    """Return the calendar with the nightlies of these indexes, which are URLs or folders.

    Only the lists of files are fetched. Raises `ReleaseError` for an index that does not answer.
    """
    for index in indexes:
        url = index if "://" in index else Path(index).resolve().as_uri()
        jax, jaxlib = _nightlies(url, "jax"), _nightlies(url, "jaxlib")
        new = {wheel.version for wheel in jax} & {wheel.version for wheel in jaxlib} - calendar.jaxlib.keys()
        calendar = with_wheels(calendar, (wheel for wheel in (*jax, *jaxlib) if wheel.version in new))
    return calendar


def _nightlies(url: str, package: str) -> list[Wheel]:
    """Return the nightly wheels of a package on an index, without withdrawn ones. A nightly's version names its day."""
    wheels = []
    for file in index_files(url, package):
        try:
            _, number, _, tags = parse_wheel_filename(file.name)
        except InvalidWheelFilename:  # such as a source distribution
            continue
        version = str(number)
        if file.yanked is False and (built := date_in_version(version)):
            # Which jaxlib it really needs is in its metadata: the installer refuses a pair that does not fit.
            entry = JaxRelease(built, version) if package == "jax" else JaxlibRelease(built, pythons_of(tags))
            wheels.append(Wheel(Path(file.name), package, version, entry))
    return wheels


class RemoteFile(io.RawIOBase):
    """A file of a package index that can be read from any position.

    Its parts are read by range requests; if the server does not support these, the whole file is fetched. `index` is
    the URL of the index that listed the file. The user and password in it are sent to the same server only.
    """

    def __init__(self, url: str, index: str = "") -> None:
        self._url = _with_credentials_of(index, url)
        self._position = 0
        # The end of the file comes first: a zip file has its list of files there. A server without range requests
        # answers 200 with the whole file; some answer 400, 416 or 501, and are asked again.
        with _open(self._url, {"Range": f"bytes=-{END}"}, also=(400, 416, 501)) as response:
            content_range = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", str(response.headers.get("Content-Range")))
            if response.status == 206 and content_range:
                self._block = _read(response, self._url)
                self._block_start, self._size = int(content_range[1]), int(content_range[2])
            else:
                self._block = _read(response, self._url) if response.status in (200, None) else self._whole()
                self._block_start, self._size = 0, len(self._block)

    def seekable(self) -> bool:
        """Return True, since `seek` always works."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position, and return it."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer from the current position, and return how many bytes were read."""
        view = memoryview(buffer).cast("B")
        end = min(self._position + len(view), self._size)
        if end <= self._position:
            return 0
        if not (self._block_start <= self._position and end <= self._block_start + len(self._block)):
            self._fetch(end)
        offset = self._position - self._block_start
        data = self._block[offset : offset + end - self._position]
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _fetch(self, end: int) -> None:
        # At least a whole block, since zipfile reads a few bytes at a time.
        last = min(max(end, self._position + END), self._size) - 1
        with _open(self._url, {"Range": f"bytes={self._position}-{last}"}) as response:
            self._block, self._block_start = _read(response, self._url), self._position
        # A server may answer with another range than was asked for; other bytes must not be read as these.
        if len(self._block) != last + 1 - self._position:
            wanted = last + 1 - self._position
            raise ReleaseError(f"{self._url}: expected {wanted} bytes, found {len(self._block)}. Try again.")

    def _whole(self) -> bytes:
        with _open(self._url, {}) as response:
            return _read(response, self._url)


def _open(url: str, headers: Mapping[str, str], also: tuple[int, ...] = ()) -> Any:
    """Return the response to a request for a URL.

    Raises `ReleaseError` for a wrong URL, if UV_OFFLINE forbids the network, or if the server cannot be reached or
    answers with an error status that is not in `also`.
    """
    parts = urlsplit(url)
    # urllib also opens ftp: and data:, which no index is.
    if parts.scheme not in ("https", "http", "file"):
        raise ReleaseError(f"{url}: expected the URL of a package index (https, http or file).")
    if parts.scheme != "file" and os.environ.get("UV_OFFLINE", "").lower() in _SET:
        raise ReleaseError(
            f"{url}: expected a network, found UV_OFFLINE, which forbids its use. Unset it, or name a folder with "
            "wheels with --wheels."
        )
    user, at, host = parts.netloc.rpartition("@")
    if not at and f"//{parts.netloc}" not in without_credentials(url):  # urllib would take the user for the host
        raise ReleaseError(f"{url}: expected user and password without / ? # in them. Write %2F, %3F and %23.")
    bare = urlunsplit(parts._replace(netloc=host))
    request = urllib.request.Request(bare, headers={"User-Agent": "pytest-jaxexport", **headers})
    if user:
        name, _, password = user.partition(":")
        login = f"{unquote(name)}:{unquote(password)}"
        # Unredirected: a redirection may lead to anybody's server, which must not get the password.
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    try:
        return urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code in also:
            return error
        error.close()  # it is a response with a connection
        raise ReleaseError(f"{url}: the index answers {error.code} {error.reason}. {_OTHER_INDEX}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = getattr(error, "reason", error)
        raise ReleaseError(f"{url}: cannot be reached: {why}. {_OTHER_INDEX}") from None


def _read(response: Any, url: str) -> bytes:
    """Return the whole body of a response.

    Raises `ReleaseError` if the connection is lost before its end.
    """
    try:
        data: bytes = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise ReleaseError(f"{url}: the connection was lost: {error}. Try again.") from None
    return data


def _with_credentials_of(index: str, url: str) -> str:
    """Return a URL with the user and password of an index on the same server; unchanged for another server."""
    own, listing = urlsplit(url), urlsplit(index)
    # An index may list files of other servers, which must not get its password.
    if listing.username and not own.username and own.hostname == listing.hostname:
        return urlunsplit(own._replace(netloc=listing.netloc.rpartition("@")[0] + "@" + own.netloc))
    return url
