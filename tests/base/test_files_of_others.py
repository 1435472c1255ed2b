"""Files from outside: each function that reads one refuses a wrong file at once, with one clear error.

`FILE_READERS` has all these functions. A test finds any other call in the source that opens a file without
`export_core.base.untrusted`.
"""

import ast
import functools
import io
import math
import os
import re
import signal
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from making import ARTIFACTS, golden, manifest, write_golden

import export_core
from export_core.artifact import ArtifactError, read, read_bytes
from export_core.artifact.folders import Found, LeftOut, artifact_in, read_folders
from export_core.base import untrusted, yaml_text
from export_core.base.atomic import write_whole
from export_core.base.errors import ExportCompatError
from export_core.base.untrusted import read_regular
from export_core.features.adopt.archive import Archive, Candidate, read_artifact_list
from export_core.features.convert.proof import given_evidence
from export_core.features.inspect import inventory
from export_core.goldens import Comparison, GoldenStore, adopt
from export_core.goldens.adopt import StatedFacts, adopt_artifact
from export_core.goldens.arrays import from_npz
from export_core.goldens.conversion_record import read_record
from export_core.goldens.manifest_file import load_manifest
from export_core.matrix.cache_keys import expected_content
from export_core.policy import PolicyError, find_policy
from export_core.policy.known_issues import known_issues
from export_core.policy.load import load_policy, read_releases
from export_core.policy.terms import Terms
from export_core.releases import ReleaseError, load_calendar
from export_core.releases.calendar_entries import shipped_entries
from export_core.releases.project_releases import read_calendar
from export_core.releases.wheels import read_wheel
from export_core.run import read_run
from export_core.run.errors import RunError
from export_core.run.plan_record import recorded_plan
from export_core.run.results import read_summary
from pytest_jaxexport.unused_goldens import is_named_in
from tools.stored_results import read_results

ROOT = Path(__file__).parents[2]
MLP = ARTIFACTS / "0.12.0.1" / "mlp.jaxexport"
WRITER = manifest().writer


def registered(path: Path) -> object:
    return adopt_artifact(read(MLP), arrays(), None, "t.a", WRITER, StatedFacts(register=[path]))


def arrays() -> list[np.ndarray[Any, Any]]:
    return [np.zeros(aval.shape, aval.dtype) for aval in read(MLP).envelope.in_avals]


def listed(path: Path) -> object:
    """Read a file as an entry of a list of artifacts, as `goldens add --from` does."""
    (path.parent / "list.yaml").write_text(f"artifacts: [{{file: {path.name!r}, register: [{path.name!r}]}}]")
    (candidate,) = Archive(path.parent, path.parent / "list.yaml").candidates(LeftOut())
    if isinstance(candidate, Candidate):
        return read(candidate.file)
    raise candidate


def inventory_row(path: Path) -> None:
    (file,) = read_folders(functools.partial(inventory.inventory_row, Terms(shipped_entries())), [str(path)], LeftOut())
    if file.error:
        raise ExportCompatError(f"{file.path}: {file.error}")


def conversion_record(path: Path) -> None:
    """Read the record of a conversion, whose name follows from that of its artifact."""
    read_record(read_bytes(MLP.read_bytes(), str(path).removesuffix(".converted.json")))


def plan_of(path: Path) -> None:
    if recorded_plan(path.parent) is None:
        raise ExportCompatError(f"{path}: none")


PUBLIC_READERS = {
    "read_run": read_run,
    "load_policy": load_policy,
    "GoldenStore": lambda root: GoldenStore(root).goldens(),
}


@pytest.mark.parametrize("function", PUBLIC_READERS.values(), ids=PUBLIC_READERS)
def test_a_path_given_as_a_string_gives_the_error_of_a_path_object(function, tmp_path):
    """A script may pass a text: the error is the same as for a `Path`, and no `AttributeError`."""
    texts = []
    for missing in (tmp_path / "none", str(tmp_path / "none")):
        with pytest.raises(ExportCompatError) as caught:
            function(missing)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_the_folder_of_a_policy_may_be_a_string(tmp_path):
    (tmp_path / "export_compat.yaml").write_text("goldens: there\n")
    assert find_policy(str(tmp_path)).goldens == find_policy(".", tmp_path / "export_compat.yaml").goldens == "there"


@pytest.mark.parametrize(
    ("function", "given", "other"), [(read, b"ML", "read_bytes"), (read_bytes, "a.jaxexport", "read")]
)
def test_read_and_read_bytes_suggest_each_other_on_a_wrong_type(function, given, other):
    found = f"{function.__name__}: expected .*, found {type(given).__name__}. Pass .* to `{other}` instead"
    with pytest.raises(ArtifactError, match=found):
        function(given)


FILE_READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "an artifact": ("a.jaxexport", read),
    "export_core.check": ("a.jaxexport", export_core.check),
    "a file of an archive": ("a.jaxexport", lambda path: artifact_in(Found(str(path), named=True))),
    "a row of an inventory": ("a.jaxexport", inventory_row),
    "an entry of a list": ("a.jaxexport", listed),
    "a list of artifacts": ("artifacts.yaml", read_artifact_list),
    "inputs": ("a.npz", lambda path: adopt_artifact(read(MLP), path, None, "t.a", WRITER)),
    "outputs": ("a.npz", lambda path: given_evidence(read(MLP), inputs_beside(path), path, load_calendar())),
    "a module to register": ("a.py", registered),
    "a policy": ("export_compat.yaml", load_policy),
    "a policy in TOML": ("pyproject.toml", load_policy),
    "a file of releases": ("export_releases.yaml", read_releases),
    "a calendar": ("releases.yaml", read_calendar),
    "a table of known issues": ("issues.yaml", lambda path: known_issues(str(path))),
    "a wheel": ("jaxlib-0.12.0-cp312-cp312-none-any.whl", read_wheel),
    "a manifest": ("golden.yaml", load_manifest),
    "arrays of a golden": ("inputs.npz", from_npz),
    "a summary": ("summary.json", lambda path: read_summary(path.parent)),
    "results": ("results.jsonl", lambda path: read_results(path.parent)),
    "a plan": ("plan.json", plan_of),
    "the record of a conversion": ("a.jaxexport.converted.json", conversion_record),
}
"""For each kind of file: a name that such a file may have, and the function that reads it."""

IN_A_FOLDER = ("manifest", "summary", "results", "plan", "record", "an entry", "arrays of a golden")
"""Kinds of files that are read by a fixed name in a folder, so that no user writes their path."""


def inputs_beside(path: Path) -> Path:
    own = path.parent / "own.npz"
    np.savez(own, *arrays())
    return own


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    """An alarm that fails a test after 20 seconds, for example a test that waits for a FIFO."""

    def late(*_: object) -> None:
        raise AssertionError("expected no waiting for a file, found a test of more than 20 seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, untrusted.LARGEST + 1)


def other_bytes(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\xfd: \x80\n")


def nothing(path: Path) -> None:
    """Make no file, so that the file is missing."""


def bomb(path: Path) -> None:
    """Write a small file that is much larger when it is unpacked: an array, and the metadata of a wheel."""
    path.write_bytes(packed())


@functools.cache
def packed() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in ("arr_0.npy", "x.dist-info/METADATA"):
            archive.writestr(name, bytes(1 << 24))
    return file.getvalue()


@pytest.mark.parametrize("make", [fifo, device, folder, huge, other_bytes, nothing, bomb])
@pytest.mark.parametrize("file_kind", FILE_READERS)
def test_a_special_huge_or_damaged_file_fails_at_once_and_is_named(cwd, monkeypatch, file_kind, make):
    monkeypatch.setattr(adopt, "LARGEST_UNPACKED", 1 << 20)
    name, enters = FILE_READERS[file_kind]
    make(cwd / name)
    with pytest.raises(ExportCompatError) as raised:
        enters(cwd / name)
    assert str(cwd) in str(raised.value), "it names the file"


@pytest.mark.parametrize("letter", ["\0", "\ud800"], ids=["NUL", "surrogate"])
@pytest.mark.parametrize(
    "file_kind", [file_kind for file_kind in FILE_READERS if not any(part in file_kind for part in IN_A_FOLDER)]
)
def test_an_impossible_path_gives_one_error(cwd, file_kind, letter):
    name, enters = FILE_READERS[file_kind]
    path = cwd / f"{letter}{name}"
    with pytest.raises(ExportCompatError):
        enters(path)


@pytest.mark.parametrize("follow", [True, False])
def test_a_fifo_that_replaces_a_file_is_refused(tmp_path, monkeypatch, follow):
    fifo(tmp_path / "a")
    regular = Path(__file__).stat()
    with monkeypatch.context() as seen:
        for name in ("stat", "lstat"):
            seen.setattr(os, name, lambda path: regular)
        with pytest.raises(OSError, match="expected a regular file, found a FIFO"):
            untrusted.read_regular(str(tmp_path / "a"), follow=follow)


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="no such file here")
def test_an_endless_regular_file_is_read_without_waiting():
    assert Path("/proc/kmsg").is_file(), "the kernel's messages: reading waits for the next one"
    assert untrusted.read_named("/proc/kmsg") == b""


@pytest.mark.parametrize("make", [fifo, device, folder, huge])
def test_a_pipe_in_place_of_a_goldens_test_file_blocks_nothing(tmp_path, make):
    make(tmp_path / "test_a.py")
    assert not is_named_in(tmp_path / "test_a.py", "test_a.py::test_f")
    assert not is_named_in(tmp_path / "\0", "\0::test_f")


@pytest.mark.parametrize("make", [fifo, device, huge])
@pytest.mark.parametrize("name", ["artifact.jaxexport", "inputs.npz", "outputs.npz", "golden.yaml"])
def test_a_pipe_device_or_huge_file_in_a_golden_is_an_error(tmp_path, jaxexport, name, make):
    golden = write_golden(GoldenStore(tmp_path / "golden"), manifest())
    (golden.folder / name).unlink()
    make(golden.folder / name)
    ended = jaxexport("goldens", "verify", "--goldens", str(golden.folder.parents[1]))
    assert (ended.code, str(golden.folder / name) in ended.err) == (2, True), ended


def test_a_file_given_by_name_may_be_a_link(tmp_path):
    (tmp_path / "a.jaxexport").symlink_to(MLP)
    assert read(tmp_path / "a.jaxexport").sha256 == read(MLP).sha256
    np.savez(tmp_path / "there.npz", *arrays())
    (tmp_path / "a.npz").symlink_to(tmp_path / "there.npz")
    assert adopt_artifact(read(MLP), tmp_path / "a.npz", None, "t.a", WRITER)


def test_an_npz_of_huge_arrays_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(adopt, "LARGEST_UNPACKED", 1 << 20)
    np.savez_compressed(tmp_path / "a.npz", np.zeros(1 << 20, np.float32))
    with pytest.raises(ExportCompatError, match="found compressed arrays of 4,194,432 bytes: save them without"):
        adopt_artifact(read(MLP), tmp_path / "a.npz", None, "t.a", WRITER)


def test_arrays_to_adopt_may_be_compressed(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", *arrays())
    assert adopt_artifact(read(MLP), tmp_path / "a.npz", None, "t.a", WRITER)


def test_compressed_arrays_of_a_golden_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", **{"0000.float32": np.zeros(9, np.float32)})
    with pytest.raises(ExportCompatError, match="expected an array that is not compressed"):
        from_npz(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_artifact_list, "artifacts:\n  - file: a\n    writer: 0.9.2\n    writer: 0.6.2\n"),
        (load_manifest, "format: 3\ncase: a\nwriter: {}\nwriter: {}\n"),
        (read_releases, "jaxlib:\n  0.9.2: {built: 2026-01-01}\njax: {}\njax: {}\n"),
        (read_calendar, "jaxlib:\n  0.9.2: {built: 2026-01-01}\njax: {}\njax: {}\n"),
        (known_issues, "- id: a\n  todo: b\n  link: c\n  id: d\n"),
        (load_policy, "goldens: a\nrtol: {float32: 1}\natol: 1\nrtol: {float32: 2}\n"),
    ],
    ids=["artifacts.yaml", "golden.yaml", "releases", "calendar", "known issues", "policy"],
)
def test_a_duplicate_key_is_an_error_with_its_line(read, text, tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(ExportCompatError) as raised:
        read(path)
    message = str(raised.value)
    assert str(path) in message
    assert re.search(r"expected each key once, found '\w+' again in line 4|:4: .*duplicate key", message), message


def test_tables_of_one_yaml_file_may_have_equal_keys(tmp_path):
    path = tmp_path / "artifacts.yaml"
    path.write_text("artifacts:\n  - {file: a, dims: {file: 2}}\n  - {file: b, dims: {b: 2}}\n")
    assert len(read_artifact_list(path).artifacts) == 2


OWN = {
    "data of the package": "artifact/unread knowledge/knowledge_base knowledge/measured readers/compiling "
    "readers/placement "
    "goldens/verify matrix/outcome releases/calendar releases/calendar_entries releases/stable_targets report/svg "
    "report/page policy/model",
    "data of a package that is installed": "releases/runtimes",
    "the package itself": "features/why/explain/bundle",
    "the package itself, and the system's": "matrix/cache_keys",
    "the system's": "readers/hardware readers/worker/program",
    "an open file": "goldens/adopt goldens/arrays readers/worker/calls releases/wheels",
    "what a program of ours wrote into a scratch folder": "features/convert/programs "
    "features/why/reduce/reduced_program",
    "a job in a scratch folder": "features/convert/rewriting/export_again features/convert/rewriting/rewriting_program "
    "features/why/reduce/editing/editing_program",
    "an environment in the user's cache": "readers/environment readers/installed readers/sharing "
    "features/why/bisect/bisection_report",
    "what is installed": "readers/packages",
    "files whose hashes were compared; the system's": "readers/worker/jaxlib_worker",
    "a module that the core has just written": "runtimes/litert_worker runtimes/pjrt_worker runtimes/stablehlo_worker "
    "runtimes/tensorflow_worker",
    "a file of one process in the user's cache, which it locks": "../pytest_jaxexport/dead_processes",
    "a module that the test itself has imported": "export/case",
    "files beside the program itself": "features/why/explain/bundle_script policy/model",
    "a page that it has written, in a browser": "cli/report",
    "pyproject.toml, which pytest itself has read": "../pytest_jaxexport/options",
    "the terminal": "../pytest_jaxexport/reviewing",
    "the modules that open files for all others": "base/untrusted base/yaml_text base/atomic",
}
"""What is opened without `untrusted`, and the modules of export_core/ that open it."""

READS = ("read_bytes", "read_text", "open", "load", "loadtxt", "fromfile", "memmap", "ZipFile", "mmap", "File")
WRITES = ("'w'", "'wb'", "'x'", "'ab'", "O_WRONLY", "O_CREAT", "devnull", "os.dup", "fdopen", "ZIP_STORED", "dir_fd")


def opens(text: str) -> bool:
    """Return whether a module opens a file to read it."""
    # Most have no such call: parsing all of them takes two seconds.
    return any(f"{name}(" in text for name in READS) and any(map(is_opening, ast.walk(ast.parse(text))))


def is_opening(node: ast.AST) -> bool:
    """Return whether a node is a call that opens a file to read it."""
    if not isinstance(node, ast.Call):
        return False
    is_ours = isinstance(node.func, ast.Name) and node.func.id in ("read_bytes", "read_text")
    name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
    return name in READS and not is_ours and not any(mark in ast.unparse(node) for mark in WRITES)


def test_only_listed_modules_open_files_themselves():
    modules = [path for package in ("export_core", "pytest_jaxexport") for path in (ROOT / package).rglob("*.py")]
    opening = {path for path in modules if opens(path.read_text("utf-8"))}
    named = {(ROOT / "export_core" / f"{name}.py").resolve() for names in OWN.values() for name in names.split()}
    assert opening == named


# Lists on lines of their own: on one line, PyYAML takes a second to look for the key that each may be.
LEVELS = yaml_text.FEW_MARKS + 1  # the fewest levels whose nesting is checked
DEEP = ["[\n" * LEVELS, "a: " + "{a: " * LEVELS, "- " * LEVELS + "x", "a: &a [1]\nb: &b [*a, *a]"]


@pytest.mark.parametrize("text", DEEP, ids=["lists", "tables", "blocks", "aliases"])
def test_a_deeply_nested_calendar_is_an_error(tmp_path, text):
    path = tmp_path / "releases.yaml"
    path.write_text(text)
    with pytest.raises(
        ReleaseError, match=r"releases\.yaml: .*(expected (lists and tables nested|no alias)|maximum nesting depth)"
    ):
        read_calendar(path)


@pytest.mark.parametrize("text", DEEP[:3], ids=["lists", "tables", "blocks"])
def test_a_deeply_nested_policy_is_an_error(tmp_path, text):
    path = tmp_path / "export_compat.yaml"
    path.write_text(text)
    for read_file in (load_policy, read_releases):
        with pytest.raises(PolicyError, match=r"export_compat\.yaml.*nested deeper than any policy needs"):
            read_file(path)


@pytest.mark.parametrize(
    "text", ["[" * LEVELS, '{"x":' + '{"a":' * LEVELS, '"\udcff"'], ids=["lists", "tables", "utf-8"]
)
def test_deeply_nested_results_are_an_error(tmp_path, text):
    data = text.encode(errors="surrogateescape")
    for name in ("results.jsonl", "summary.json", "plan.json"):
        (tmp_path / name).write_bytes(data)
    with pytest.raises(RunError, match=r"results\.jsonl:1: not a result: "):
        read_results(tmp_path)
    with pytest.raises(RunError, match=r"summary\.json: not a summary that this version reads: "):
        read_summary(tmp_path)
    with pytest.raises(RunError, match=r"plan\.json: not a plan that this version reads: "):
        recorded_plan(tmp_path)


def socket(path: Path) -> None:
    os.mknod(path, 0o140644)


@pytest.mark.parametrize(
    ("make", "kind"), [(fifo, "FIFO"), (device, "symbolic link"), (folder, "folder"), (socket, "socket")]
)
def test_a_special_file_is_refused_with_its_kind(tmp_path, make, kind):
    make(tmp_path / "x")
    with pytest.raises(OSError, match=f"expected a regular file, found a {kind}"):
        read_regular(tmp_path / "x")


def test_tolerances_of_infinity_and_nan_have_their_own_cache_keys():
    amounts = (None, math.inf, math.nan, -math.inf, 0.0, "null", {})
    keys = {expected_content(golden(comparison=Comparison(rtol=amount)).manifest) for amount in amounts}
    assert len(keys) == len(amounts)


def test_a_fifo_is_written_to_and_not_replaced(tmp_path):
    """As root, ``report --html /dev/null`` would otherwise replace the device by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, [b"one ", b"two"])
    assert os.read(descriptor, 100) == b"one two"
    os.close(descriptor)
    assert list(tmp_path.iterdir()) == [pipe]
    assert pipe.is_fifo()
