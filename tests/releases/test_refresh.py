"""The calendar is brought up to date from an index or a folder of wheels: what is known never changes silently."""

from __future__ import annotations

import functools
import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import day, make_wheel

from export_core.cli import jaxexport
from export_core.policy import ExtraReleases, Policy, find_policy
from export_core.releases import Calendar, JaxlibRelease, JaxRelease, ReleaseError, load_calendar
from export_core.releases.calendar import CalendarFile
from export_core.releases.index import PUBLIC, RemoteFile, configured_index, listed, shown
from export_core.releases.kept import HEADER, jax_line, jaxlib_line, read_releases, renewed
from export_core.releases.refresh import Measured, refreshed, seen_in_folder, seen_on_index

SHIPPED = Path(__file__).parents[2] / "export_core" / "releases" / "data" / "releases.yaml"
LAST = ("0.11.2", "0.12.0", "0.12.0.1")
CALENDAR = load_calendar()


def shortened() -> str:
    """The shipped calendar without its last three releases."""
    gone = tuple(f'  "{version}": ' for version in LAST)
    return "".join(line for line in SHIPPED.read_text().splitlines(keepends=True) if not line.startswith(gone))


def calendar_of(text: str) -> Calendar:
    file = msgspec.yaml.decode(text, type=CalendarFile)
    return Calendar(file.jaxlib, file.jax, file.requirements)


def measured(calendar: Calendar, jaxlib: str) -> Measured:
    """What the real releases answered when the shipped calendar was made; the matrix test asks them again."""
    entry = CALENDAR.jaxlib[jaxlib]
    return Measured(entry.stablehlo, entry.calling_convention, entry.serialization_constant)


@pytest.fixture
def wheels(tmp_path) -> Path:
    """The last three releases as small wheels, stamped as the published ones are."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in LAST:
        for python in CALENDAR.pythons(version):
            tag = f"cp{python.replace('.', '')}"
            make_wheel(folder, "jaxlib", version, stamps=("1980-01-01", str(CALENDAR.built(version))), python=tag)
        jax = CALENDAR.jax[version]
        make_wheel(folder, "jax", version, stamps=(str(jax.built),), needs=f"jaxlib<={version},>={jax.minimum_jaxlib}")
    return folder


# --- from a folder ------------------------------------------------------------------------------------------------------


def test_the_last_three_releases_come_back_line_by_line(wheels):
    short = shortened()
    found = refreshed(calendar_of(short), seen_in_folder(wheels), measured)
    assert len(found.said) == 6
    assert renewed(short, found.jaxlib, found.jax) == SHIPPED.read_text()


def test_what_is_not_measured_is_null_and_all_else_as_shipped(wheels):
    found = refreshed(calendar_of(shortened()), seen_in_folder(wheels))
    for version in LAST:
        shipped = CALENDAR.jaxlib[version]
        assert (found.jaxlib[version].built, found.jaxlib[version].python) == (shipped.built, shipped.python)
        assert found.jaxlib[version].stablehlo == (None, None, None)
        assert found.jax[version] == CALENDAR.jax[version]


def test_nothing_new_is_nothing_to_write(wheels):
    found = refreshed(CALENDAR, seen_in_folder(wheels))
    assert (found.jaxlib, found.jax, found.said) == ({}, {}, ())


@pytest.mark.parametrize(
    ("package", "version", "stamp", "said"),
    [
        (
            "jaxlib",
            "0.12.0",
            "2026-10-17",
            r"jaxlib 0\.12\.0: expected built 2026-10-16, .* found built 2026-10-17 in jaxlib-0",
        ),
        ("jax", "0.12.0", "2026-10-15", r"jax 0\.12\.0: expected built 2026-10-16, .* found built 2026-10-15"),
    ],
)
def test_a_known_release_built_on_another_day_is_an_error(tmp_path, package, version, stamp, said):
    make_wheel(tmp_path, package, version, stamps=(stamp,), needs="jaxlib>=0.11.2" if package == "jax" else "")
    with pytest.raises(ReleaseError, match=f"{said}.*Nothing was written"):
        refreshed(CALENDAR, seen_in_folder(tmp_path))


def test_a_known_jax_with_another_oldest_jaxlib_is_an_error(tmp_path):
    make_wheel(tmp_path, "jax", "0.12.0", stamps=("2026-10-16",), needs="jaxlib>=0.12.0")
    with pytest.raises(ReleaseError, match=r"expected with the oldest jaxlib 0\.11\.2, .* found .* 0\.12\.0 in"):
        refreshed(CALENDAR, seen_in_folder(tmp_path))


def test_a_new_wheel_of_a_known_release_adds_its_cpython_and_says_so(tmp_path):
    make_wheel(tmp_path, "jaxlib", "0.12.0", stamps=("2026-10-16",), python="cp316")
    found = refreshed(CALENDAR, seen_in_folder(tmp_path))
    assert found.jaxlib["0.12.0"].python == ("3.12", "3.13", "3.14", "3.15", "3.16")
    assert found.jaxlib["0.12.0"].stablehlo == CALENDAR.jaxlib["0.12.0"].stablehlo
    assert found.said == ("changed  jaxlib 0.12.0  wheels for CPython 3.16",)


@pytest.mark.parametrize(
    ("stamp", "note"),
    [("2026-11-30", ", built up to 2026-11-30: its day stays 2026-10-16"), ("2026-10-15", "")],
)
def test_a_new_wheel_of_a_known_release_does_not_change_its_day(tmp_path, stamp, note):
    make_wheel(tmp_path, "jaxlib", "0.12.0", stamps=(stamp,), python="cp316")
    found = refreshed(CALENDAR, seen_in_folder(tmp_path))
    assert found.jaxlib["0.12.0"].built == day("2026-10-16")
    assert found.said == (f"changed  jaxlib 0.12.0  wheels for CPython 3.16{note}",)


def test_some_wheels_of_a_known_release_may_be_older_than_the_one_that_dated_it(tmp_path):
    make_wheel(tmp_path, "jaxlib", "0.12.0", stamps=("2026-10-15",), python="cp313")
    assert refreshed(CALENDAR, seen_in_folder(tmp_path)).said == ()


def test_a_patch_on_an_old_branch_is_put_by_its_number_and_ordered_by_its_day(tmp_path):
    make_wheel(tmp_path, "jaxlib", "0.8.4", stamps=("2026-11-19",))
    make_wheel(tmp_path, "jax", "0.8.4", stamps=("2026-11-19",), needs="jaxlib>=0.8.2")
    found = refreshed(CALENDAR, seen_in_folder(tmp_path))
    text = renewed(SHIPPED.read_text(), found.jaxlib, found.jax)
    versions = re.findall(r'^  "([^"]+)"', text, re.MULTILINE)
    assert versions[versions.index("0.8.4") - 1] == "0.8.3"
    calendar = calendar_of(text)
    assert calendar.newest() == "0.8.4"
    assert calendar.release("0.8.4").jax == "0.8.4"


def test_wheels_of_other_machines_do_not_date_a_release(tmp_path):
    made = make_wheel(tmp_path, "jaxlib", "0.12.1")
    made.rename(tmp_path / "jaxlib-0.12.1-cp312-cp312-macosx_11_0_arm64.whl")
    with pytest.raises(ReleaseError, match="expected wheels for x86-64 Linux"):
        seen_in_folder(tmp_path)


VERSIONS = st.builds(
    lambda numbers, rest: ".".join(map(str, numbers)) + rest,
    st.lists(st.integers(0, 40), min_size=2, max_size=4),
    st.sampled_from(["", "rc1", ".dev20261120", ".post1"]),
)
DATES = st.dates(day("2019-01-01"), day("2040-12-31"))
YANKED = st.sampled_from([False, True, 'crashes: at "import"', "yanked: {no} #1, 𐀀"])
JAXLIBS = st.builds(
    JaxlibRelease,
    DATES,
    python=st.lists(st.sampled_from(["3.9", "3.12", "3.13"]), unique=True).map(tuple),
    stablehlo=st.tuples(*[st.one_of(st.none(), st.sampled_from(["1.2.3", "1.10.0"]))] * 3),
    calling_convention=st.tuples(st.one_of(st.none(), st.integers(1, 12)), st.one_of(st.none(), st.integers(1, 12))),
    serialization_constant=st.one_of(st.none(), st.integers(0, 99)),
    yanked=YANKED,
)
JAXES = st.builds(JaxRelease, DATES, minimum_jaxlib=VERSIONS, yanked=YANKED)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(VERSIONS, JAXLIBS, max_size=4), st.dictionaries(VERSIONS, JAXES, max_size=4), st.data())
def test_a_line_is_read_as_it_was_written_wherever_it_comes_in(jaxlib, jax, data):
    """In two parts, so that lines come before, between and after others."""
    text = HEADER
    first = data.draw(st.sets(st.sampled_from(sorted(jaxlib)))) if jaxlib else set()
    for part in (first, set(jaxlib) - first):
        text = renewed(text, {version: jaxlib[version] for version in part}, {})
    text = renewed(text, {}, jax)
    found = msgspec.yaml.decode(text, type=CalendarFile | None) or CalendarFile()
    assert (dict(found.jaxlib), dict(found.jax)) == (jaxlib, jax)
    assert text.startswith(HEADER)
    assert renewed(text, jaxlib, jax) == text


def test_the_shipped_calendar_is_in_the_form_that_refresh_writes():
    lines = SHIPPED.read_text().splitlines()
    for version, entry in CALENDAR.jaxlib.items():
        assert jaxlib_line(version, entry) in lines
    for version, other in CALENDAR.jax.items():
        assert jax_line(version, other) in lines


# --- from an index ------------------------------------------------------------------------------------------------------


class Server(http.server.ThreadingHTTPServer):
    """A package index with real HTTP on this machine: it keeps what it was asked."""

    def __init__(self, folder: Path, *, form: str, ranges: bool, login: str = "", yanked: dict[str, str] | None = None):
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.folder, self.form, self.ranges, self.login, self.yanked = folder, form, ranges, login, yanked or {}
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
        elif self.path.startswith("/simple/"):
            package = self.path.removeprefix("/simple/").strip("/")
            names = sorted(path.name for path in self.server.folder.glob(f"{package}-*.whl"))
            self._send(200, *(_json if self.server.form == "json" else _html)(names, self.server.yanked))
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


def _json(names: list[str], yanked: dict[str, str]) -> tuple[bytes, str]:
    files = [{"filename": name, "url": f"../../files/{name}", "yanked": yanked.get(name, False)} for name in names]
    return json.dumps({"files": files}).encode(), "application/vnd.pypi.simple.v1+json"


def _html(names: list[str], yanked: dict[str, str]) -> tuple[bytes, str]:
    told = {name: f'data-yanked="{reason}"' for name, reason in yanked.items()}
    rows = (f'<a href="/files/{name}#sha256=00" {told.get(name, "")}>{name}</a>' for name in names)
    return f"<!DOCTYPE html><body>{''.join(rows)}</body>".encode(), "text/html"


@pytest.fixture
def serve(wheels) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(**options) -> Server:
        server = Server(wheels, **{"form": "json", "ranges": True, **options})
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("form", ["json", "html"])
@pytest.mark.parametrize("ranges", [True, False])
def test_an_index_of_either_form_gives_the_same_lines_with_range_requests_and_without(serve, wheels, form, ranges):
    make_wheel(wheels, "jaxlib", "0.12.0", stamps=("2026-10-16",), modules={"big": "x" * 400_000}, python="cp312")
    server = serve(form=form, ranges=ranges)
    short = shortened()
    seen = seen_on_index(server.url, calendar_of(short))
    found = refreshed(calendar_of(short), seen, measured)
    assert renewed(short, found.jaxlib, found.jax) == SHIPPED.read_text()
    assert seen.size > 400_000
    assert (seen.fetched < 100_000) == ranges
    assert server.sent >= seen.fetched


def test_an_index_is_asked_for_no_wheel_of_what_is_known(serve):
    seen = seen_on_index(serve().url, CALENDAR)
    assert (seen.wheels, seen.fetched) == ((), 0)
    assert refreshed(CALENDAR, seen).said == ()


@pytest.mark.parametrize("form", ["json", "html"])
def test_what_an_index_withdrew_is_noted_with_its_reason_and_what_it_took_back_partly_is_not(serve, wheels, form):
    yanked = {path.name: "crashes\n at import" for path in wheels.glob("jaxlib-0.12.0.1-*")}
    yanked["jax-0.12.0-py3-none-any.whl"] = ""
    yanked["jaxlib-0.12.0-cp312-none-any.whl"] = "one of several"
    found = refreshed(CALENDAR, seen_on_index(serve(form=form, yanked=yanked).url, CALENDAR))
    assert found.said == (
        "changed  jaxlib 0.12.0.1  withdrawn: crashes at import",
        "changed  jax 0.12.0  withdrawn, no reason given",
    )
    calendar = calendar_of(renewed(SHIPPED.read_text(), found.jaxlib, found.jax))
    assert calendar.newest() == "0.12.0"
    assert calendar.release("0.12.0").jax == "0.12.0.1"
    assert calendar.built("0.12.0.1") == day("2026-10-20"), "still dated"


def test_pre_releases_and_what_is_older_than_the_calendar_are_left_on_the_index(serve, wheels):
    make_wheel(wheels, "jaxlib", "0.13.0.dev20261120")
    make_wheel(wheels, "jaxlib", "0.13.0rc1")
    make_wheel(wheels, "jax", "0.3.0", needs="jaxlib>=0.3.0")
    assert refreshed(CALENDAR, seen_on_index(serve().url, CALENDAR)).said == ()


def test_user_and_password_of_an_index_go_to_its_own_server_and_into_no_message(serve):
    server = serve(login="Basic bWU6cC93")
    with pytest.raises(ReleaseError, match="the index answers 401"):
        listed(server.url, "jaxlib")
    url = server.url.replace("//", "//me:p%2Fw@")
    assert len(refreshed(calendar_of(shortened()), seen_on_index(url, calendar_of(shortened()))).said) == 6
    with pytest.raises(ReleaseError) as told:
        listed(url.replace("/simple", "/elsewhere"), "nothing")
    assert "p%2Fw" not in str(told.value)
    assert shown(url) == server.url


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("http://127.0.0.1:9", "cannot be reached: .* --index, or a folder with wheels with --wheels"),
        ("ftp://127.0.0.1/simple", "expected the URL of a package index"),
        ("not a url", "expected the URL of a package index"),
        ("file:///nowhere", "cannot be reached"),
    ],
)
def test_an_index_that_does_not_answer_is_an_error_that_names_it(index, said):
    with pytest.raises(ReleaseError, match=said):
        listed(index, "jaxlib")


def test_an_index_without_the_package_is_an_error(serve):
    with pytest.raises(ReleaseError, match="expected the files of numpy, found none listed there"):
        listed(serve().url, "numpy")


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places=st.lists(st.tuples(st.integers(0, 300_000), st.integers(0, 70_000)), max_size=8))
def test_a_remote_file_reads_as_the_file_does(serve, wheels, places):
    (wheels / "jaxlib-9-any.whl").write_bytes(bytes(range(256)) * 1000)
    if not hasattr(serve, "server"):
        serve.server = serve()
    data = (wheels / "jaxlib-9-any.whl").read_bytes()
    with RemoteFile(f"{serve.server.url.removesuffix('/simple')}/files/jaxlib-9-any.whl") as remote:
        for place, length in places:
            remote.seek(place)
            assert remote.read(length) == data[place : place + length]


@pytest.mark.parametrize(
    ("variables", "files", "expected"),
    [
        ({}, {}, PUBLIC),
        ({"PIP_INDEX_URL": "https://pip/simple"}, {}, "https://pip/simple"),
        ({"PIP_INDEX_URL": "https://pip/simple", "UV_INDEX_URL": "https://uv/simple"}, {}, "https://uv/simple"),
        (
            {"UV_DEFAULT_INDEX": "https://default/simple"},
            {"uv.toml": 'index-url = "https://file"'},
            "https://default/simple",
        ),
        ({}, {"uv.toml": 'index-url = "https://file"'}, "https://file"),
        ({}, {"uv.toml": '[[index]]\nurl="https://other"\n[[index]]\nurl="https://own"\ndefault=true'}, "https://own"),
        ({}, {"pyproject.toml": '[[tool.uv.index]]\nurl = "https://own"\ndefault = true'}, "https://own"),
        ({}, {"pyproject.toml": "[tool.other]", "config/uv/uv.toml": 'index-url = "https://user"'}, "https://user"),
    ],
)
def test_the_index_is_the_one_that_uv_installs_from(tmp_path, monkeypatch, variables, files, expected):
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert configured_index(tmp_path) == expected


# --- the command, and the file of a project ---------------------------------------------------------------------------


def run(*words: str | Path):
    return CliRunner().invoke(jaxexport, ["releases", *map(str, words)])


def test_a_projects_file_takes_what_the_shipped_calendar_lacks_and_the_policy_reads_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "dist"
    folder.mkdir()
    make_wheel(folder, "jaxlib", "0.12.1", stamps=("2026-11-19",))
    make_wheel(folder, "jax", "0.12.1", stamps=("2026-11-20",), needs="jaxlib>=0.12.0")
    done = run("refresh", "--wheels", folder)
    assert done.output.splitlines() == [
        f"{folder}: read 2 wheels",
        "new  jaxlib 0.12.1  built 2026-11-19",
        "new  jax 0.12.1  built 2026-11-20",
        "wrote 2 releases into export_releases.yaml",
    ]
    calendar = find_policy(tmp_path).calendar()
    assert (calendar.newest(), calendar.release("0.12.1").jax) == ("0.12.1", "0.12.1")
    assert calendar.release("0.12.0").jax == "0.12.1"
    again = run("refresh", "--wheels", folder)
    assert again.output.splitlines()[-1] == "nothing new: the newest jaxlib is 0.12.1, built 2026-11-19"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dist", "export_releases.yaml"]


def test_a_refused_refresh_leaves_every_file_as_it_was(tmp_path, monkeypatch, wheels):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cal.yaml").write_text(shortened().replace("built: 2026-08-17, minimum", "built: 2026-08-18, minimum"))
    before = (tmp_path / "cal.yaml").read_bytes()
    make_wheel(wheels, "jax", "0.11.1", stamps=("2026-08-17",), needs="jaxlib>=0.11.1")
    done = run("refresh", "--wheels", wheels, "--into", "cal.yaml")
    assert isinstance(done.exception, ReleaseError)
    assert (tmp_path / "cal.yaml").read_bytes() == before


def test_a_calendar_in_another_form_is_not_written_into(tmp_path, monkeypatch, wheels):
    """Block style reads well and has no line for a release: it would get a second one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cal.yaml").write_text('jax: {}\njaxlib:\n    "0.11.0":\n        built: 2026-07-16\n')
    before = (tmp_path / "cal.yaml").read_bytes()
    done = run("refresh", "--wheels", wheels, "--into", "cal.yaml")
    assert isinstance(done.exception, ReleaseError)
    assert "expected one release a line, as `jaxexport releases refresh` writes them" in str(done.exception)
    assert (tmp_path / "cal.yaml").read_bytes() == before


def test_a_release_that_the_shipped_calendar_has_by_now_keeps_what_was_measured_of_it(tmp_path):
    entry = JaxlibRelease(day("2026-10-16"), ("3.12", "3.16"), yanked="crashes")
    (tmp_path / "export_releases.yaml").write_text(renewed(HEADER, {"0.12.0": entry}, {}))
    found = find_policy(tmp_path).calendar().jaxlib["0.12.0"]
    assert found.stablehlo == CALENDAR.jaxlib["0.12.0"].stablehlo
    assert (found.yanked, found.python) == ("crashes", ("3.12", "3.13", "3.14", "3.15", "3.16"))


def test_a_day_that_contradicts_the_shipped_calendar_is_an_error(tmp_path):
    (tmp_path / "export_releases.yaml").write_text(renewed(HEADER, {"0.12.0": JaxlibRelease(day("2026-10-17"))}, {}))
    with pytest.raises(ReleaseError, match=r"jaxlib 0\.12\.0 was built on 2026-10-17 there, and on 2026-10-16"):
        find_policy(tmp_path)


def test_the_policys_own_entry_comes_before_the_file(tmp_path):
    (tmp_path / "export_releases.yaml").write_text(renewed(HEADER, {"0.13.0": JaxlibRelease(day("2026-11-20"))}, {}))
    (tmp_path / "export_compat.yaml").write_text("releases: {jaxlib: {0.13.0: {built: 2026-11-21}}}")
    assert find_policy(tmp_path).calendar().built("0.13.0") == day("2026-11-21")
    assert Policy(releases=ExtraReleases()).calendar() == CALENDAR


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jaxlib: []", "Expected `object`, got `array`"),
        ('jaxlib: {"0.13.0": {built: soon}}', "built"),
        ("jaxlib: {nightly: {built: 2026-11-20}}", "found 'nightly'"),
    ],
)
def test_a_file_of_releases_that_is_none_is_an_error(tmp_path, text, said):
    (tmp_path / "export_releases.yaml").write_text(text)
    with pytest.raises(ReleaseError, match=said):
        read_releases(tmp_path / "export_releases.yaml")


@pytest.mark.matrix
def test_the_index_gives_the_last_three_releases_back_as_they_are_shipped(tmp_path, monkeypatch):
    """The real thing: the ends of 21 published wheels, and three installed releases that say their formats."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cal.yaml").write_text(shortened())
    done = run("refresh", "--measure", "--into", "cal.yaml")
    assert done.exit_code == 0, done.exception
    now = (tmp_path / "cal.yaml").read_text().splitlines()
    # What was published after the shipped calendar was made comes too.
    assert [line for line in SHIPPED.read_text().splitlines() if line not in now] == []
    read, whole = (int(text.replace(",", "")) for text in re.findall(r"([\d,]+) of ([\d,]+) bytes", done.output)[0])
    assert read < whole / 100
