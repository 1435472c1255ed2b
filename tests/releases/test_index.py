"""Updates of the calendar from a package index, with range requests and without."""

import functools
import http.server
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import day, make_wheel
from shipped import CALENDAR, SHIPPED, calendar_of, measured, shortened

from export_core.base.text import without_credentials
from export_core.releases import ReleaseError
from export_core.releases.index import PUBLIC, IndexFile, RemoteFile, configured_index, index_files
from export_core.releases.project_releases import with_entries
from export_core.releases.refresh import calendar_update, published_on_index


class Server(http.server.ThreadingHTTPServer):
    """A package index with real HTTP on this machine, which counts the bytes that it sends."""

    def __init__(self, folder: Path, *, ranges: bool = True, login: str = "", yanked: dict[str, str] | None = None):
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.folder, self.ranges, self.login, self.yanked = folder, ranges, login, yanked or {}
        self.page = b""  # of every package, in the position of what the folder holds
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/simple"


class Handler(http.server.SimpleHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.server.login and self.headers["Authorization"] != self.server.login:
            self._send(401, b"", "text/plain")
        elif self.server.page:
            self._send(200, self.server.page, "text/html")
        elif self.path.startswith("/simple/"):
            package = self.path.removeprefix("/simple/").strip("/")
            names = sorted(path.name for path in self.server.folder.glob(f"{package}-*.whl"))
            self._send(200, _html(names, self.server.yanked), "text/html")
        else:
            self._file((self.server.folder / Path(self.path).name).read_bytes())

    def _file(self, data: bytes) -> None:
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers["Range"] or "")
        if not (asked and self.server.ranges):
            self._send(200, data, "application/zip")
            return
        first = int(asked[1]) if asked[1] else max(0, len(data) - int(asked[2]))
        last = min(int(asked[2]) if asked[1] else len(data) - 1, len(data) - 1)
        self._send(206, data[first : last + 1], "application/zip", f"bytes {first}-{last}/{len(data)}")

    def _send(self, code: int, body: bytes, kind: str, part: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if part:
            self.send_header("Content-Range", part)
        self.end_headers()
        self.wfile.write(body)
        self.server.sent += len(body)


def _html(names: list[str], yanked: dict[str, str]) -> bytes:
    attributes = {name: f'data-yanked="{reason}"' for name, reason in yanked.items()}
    rows = (f'<a href="/files/{name}#sha256=00" {attributes.get(name, "")}>{name}</a>' for name in names)
    return f"<!DOCTYPE html><body>{''.join(rows)}</body>".encode()


@pytest.fixture
def serve(wheels) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(**options) -> Server:
        server = Server(wheels, **options)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("ranges", [True, False])
def test_an_index_without_http_ranges_gives_the_same_calendar(serve, wheels, ranges):
    make_wheel(wheels, "jaxlib", "0.12.0", stamps=("2026-10-16",), modules={"big": "x" * 400_000}, python="cp312")
    server = serve(ranges=ranges)
    short = shortened()
    seen = published_on_index(server.url, calendar_of(short))
    update = calendar_update(calendar_of(short), seen, measured)
    assert with_entries(short, update.jaxlib, update.jax) == SHIPPED.read_text()
    assert (server.sent < 200_000) == ranges, "a wheel of 400 kB is among them"


def test_no_wheel_of_a_known_release_is_fetched(serve):
    seen = published_on_index(serve().url, CALENDAR)
    assert seen.wheels == ()
    assert calendar_update(CALENDAR, seen).changes == ()


def test_a_withdrawn_release_is_noted_with_its_reason(serve, wheels):
    yanked = {path.name: "crashes\n at import" for path in wheels.glob("jaxlib-0.12.0.1-*")}
    yanked["jax-0.12.0-py3-none-any.whl"] = ""
    yanked["jaxlib-0.12.0-cp312-none-any.whl"] = "one of several"
    update = calendar_update(CALENDAR, published_on_index(serve(yanked=yanked).url, CALENDAR))
    assert update.changes == (
        "changed  jaxlib 0.12.0.1  withdrawn: crashes at import",
        "changed  jax 0.12.0  withdrawn, no reason given",
    )
    calendar = calendar_of(with_entries(SHIPPED.read_text(), update.jaxlib, update.jax))
    assert calendar.newest() == "0.12.0"
    assert calendar.release("0.12.0").jax == "0.12.0.1"
    assert calendar.built("0.12.0.1") == day("2026-10-20"), "still dated"


def test_pre_releases_and_older_releases_are_left_out(serve, wheels):
    make_wheel(wheels, "jaxlib", "0.13.0.dev20261120")
    make_wheel(wheels, "jaxlib", "0.13.0rc1")
    make_wheel(wheels, "jax", "0.3.0", needs="jaxlib>=0.3.0")
    assert calendar_update(CALENDAR, published_on_index(serve().url, CALENDAR)).changes == ()


def test_credentials_of_an_index_go_only_to_its_own_server(serve):
    server = serve(login="Basic bWU6cC93")
    with pytest.raises(ReleaseError, match="the index answers 401"):
        index_files(server.url, "jaxlib")
    url = server.url.replace("//", "//me:p%2Fw@")
    assert (
        len(calendar_update(calendar_of(shortened()), published_on_index(url, calendar_of(shortened()))).changes) == 6
    )
    with pytest.raises(ReleaseError) as raised:
        index_files(url.replace("/simple", "/elsewhere"), "nothing")
    assert "p%2Fw" not in str(raised.value)
    assert without_credentials(url) == server.url


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("http://127.0.0.1:9", "cannot be reached: .* --index, or a folder with wheels with --wheels"),
        ("ftp://127.0.0.1/simple", "expected the URL of a package index"),
        ("not a url", "expected the URL of a package index"),
        ("file:///nowhere", "cannot be reached"),
    ],
)
def test_the_error_names_an_index_that_does_not_answer(index, message):
    with pytest.raises(ReleaseError, match=message):
        index_files(index, "jaxlib")


def test_a_folder_of_pages_can_be_the_index(tmp_path):
    (tmp_path / "simple" / "jax").mkdir(parents=True)
    page = (
        '<base href=".."><a href="../files/jax-1-py3-none-any.whl#sha256=00" data-yanked>jax-1-<b>py3</b>-none-any.whl'
        "</a> and more"
    )
    (tmp_path / "simple" / "jax" / "index.html").write_text(page)
    name = "jax-1-py3-none-any.whl"
    listed = index_files(f"file://{tmp_path}/simple/", "jax")
    assert listed == (IndexFile(name, f"file://{tmp_path}/files/{name}", yanked=True),)


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        (b'<a href="x">\xff</a>', "can't decode byte 0xff"),
        (b"<meta name='pypi:repository-version' content='2.0'>", "expected version 1 of the simple API, found '2.0'"),
        (b'{"files": []}', "with the files of jaxlib, found none listed there"),
    ],
)
def test_a_malformed_index_page_is_an_error(serve, page, problem):
    server = serve()
    server.page = page
    with pytest.raises(ReleaseError, match=r"^http\S+/simple/jaxlib/: expected a page of a package index") as error:
        index_files(server.url, "jaxlib")
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(positions=st.lists(st.tuples(st.integers(0, 300_000), st.integers(0, 70_000)), max_size=8))
def test_any_part_of_a_remote_wheel_is_read_like_a_local_file(serve, wheels, positions):
    (wheels / "jaxlib-9-any.whl").write_bytes(bytes(range(256)) * 1000)
    if not hasattr(serve, "server"):
        serve.server = serve()
    data = (wheels / "jaxlib-9-any.whl").read_bytes()
    with RemoteFile(f"{serve.server.url.removesuffix('/simple')}/files/jaxlib-9-any.whl") as remote:
        for position, length in positions:
            remote.seek(position)
            assert remote.read(length) == data[position : position + length]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, PUBLIC),
        ({"PIP_INDEX_URL": "https://pip/simple"}, "https://pip/simple"),
        ({"PIP_INDEX_URL": "https://pip/simple", "UV_INDEX_URL": "https://uv/simple"}, "https://uv/simple"),
        ({"UV_DEFAULT_INDEX": "https://default/simple", "UV_INDEX_URL": "https://uv"}, "https://default/simple"),
    ],
)
def test_variables_of_uv_and_pip_set_the_index(monkeypatch, variables, expected):
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert configured_index() == expected


def test_a_lost_connection_is_an_error_of_the_index():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9999\r\n\r\n<html>")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ReleaseError, match=r"/simple/jax/: the connection was lost: .*Try again"):
            index_files(f"http://127.0.0.1:{server.getsockname()[1]}/simple", "jax")
        thread.join()
