"""A golden on disk is complete: it is verified, written wholly or not at all, and found again."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from making import files, manifest, write_golden, writer
from msgspec import structs

from export_core.goldens import GoldenError, GoldenStore, Manifest, Options
from export_core.goldens.store import ARTIFACT, INPUTS, MANIFEST, OUTPUTS, WriteStatus, sha256
from export_core.goldens.upkeep import delete_leftovers, strays
from export_core.goldens.verify import MOST, verify_goldens
from export_core.releases import load_calendar

KILLS = {"exchange": 30, "two renames": 60}  # every third step of two replacements, and some more


@pytest.fixture
def store(tmp_path) -> GoldenStore:
    return GoldenStore(tmp_path / "golden")


def hashed(made, content):
    return structs.replace(made, files={name: sha256(data) for name, data in content.items()})


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_written_golden_is_found_and_verified(store):
    golden = write_golden(store, manifest())
    assert [found.id for found in store.goldens()] == ["tests.test_a.test_f/0.12.0.1-cpu"]
    golden.verify()
    assert [str(leaf) for leaf in golden.inputs()] == ["float32[2]"]
    assert golden.artifact.read_bytes() == files()[ARTIFACT]


def with_extension_version(made: Manifest, version: int) -> Manifest:
    return structs.replace(made, writer=structs.replace(made.writer, jaxlib_extension_version=version))


@pytest.mark.parametrize(
    "newer",
    [
        lambda made: made,
        lambda made: structs.replace(made, packages={"numpy": "2.3.1"}),
        lambda made: with_extension_version(made, 505),
    ],
    ids=["nothing new", "packages", "extension version"],
)
def test_writing_a_golden_again_touches_no_file(store, newer):
    plain = write_golden(store, manifest())
    text = (plain.folder / "golden.yaml").read_text()
    assert not any(word in text for word in ("packages", "extension_version")), (
        "the text has no key for missing evidence"
    )
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    assert store.write(newer(plain.manifest), files()) is WriteStatus.UNCHANGED
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before


def test_writing_a_golden_again_without_packages_changes_nothing(store):
    golden = write_golden(store, manifest(packages={"numpy": "2.3.1"}))
    assert golden.manifest.packages == {"numpy": "2.3.1"}
    assert store.write(structs.replace(golden.manifest, packages={}), files()) is WriteStatus.UNCHANGED
    assert store.goldens() == [golden]


def test_another_build_of_the_same_jaxlib_replaces_its_golden(store):
    golden = write_golden(store, with_extension_version(manifest(), 505))
    assert golden.manifest.writer.jaxlib_extension_version == 505
    assert golden.manifest.writer.id == manifest().writer.id, "not a part of the writer's name"
    assert store.write(golden.manifest, files()) is WriteStatus.UNCHANGED
    assert store.write(with_extension_version(golden.manifest, 506), files()) is WriteStatus.REPLACED


def test_a_new_golden_replaces_all_files_of_the_old_golden(store):
    other = write_golden(store, manifest(jaxlib="0.9.2"), files(1))
    old = write_golden(store, manifest(jaxlib="0.11.0"), {**files(2), "jaxpr.txt": b"old"})
    before, content = tree(other.folder), files(3)
    assert store.write(hashed(old.manifest, content), content) is WriteStatus.REPLACED
    assert old.outputs()[0].numpy().tolist() == [3, 3]
    assert tree(old.folder).keys() == {"golden.yaml", *content}
    assert tree(other.folder) == before
    assert list(store.root.rglob(".*")) == []


def test_generations_are_in_order_of_build_dates(store):
    for jaxlib in ("0.8.3", "0.12.0.1", "0.9.0"):
        write_golden(store, manifest(jaxlib=jaxlib))
    found = store.generations("tests.test_a.test_f")
    assert [golden.manifest.writer.jaxlib for golden in found] == ["0.9.0", "0.8.3", "0.12.0.1"]


def test_a_jaxlib_version_suffices_to_name_its_only_golden(store):
    other = structs.replace(writer("0.9.2"), platform="cuda")
    for made in (manifest(jaxlib="0.8.1"), manifest(jaxlib="0.9.2"), manifest(writer=other)):
        write_golden(store, made)
    case = manifest().case
    assert store.find(f"{case}/0.8.1")[1].manifest.writer.id == "0.8.1-cpu"
    assert store.find(f"{case}/0.9.2-cuda")[1].manifest.writer == other
    several = f"expected one golden, found 2 by this jaxlib. Name one of {case}/0.9.2-cpu, {case}/0.9.2-cuda."
    with pytest.raises(GoldenError, match=re.escape(several)):
        store.find(f"{case}/0.9.2")


def test_a_folder_that_does_not_exist_is_an_error(tmp_path, monkeypatch):
    """A script that verifies every golden would check none, and pass."""
    monkeypatch.chdir(tmp_path)
    store = GoldenStore("goldens")
    for read in (store.goldens, store.cases):
        with pytest.raises(GoldenError, match=f"^goldens: expected goldens, found none in {tmp_path}/goldens. "):
            read()
    assert store.goldens_so_far() == store.generations("none") == []
    store.root.mkdir()
    assert store.goldens() == store.cases() == []


@pytest.mark.parametrize(
    ("test", "how"),
    [
        (
            "tests/test_a.py::test_f[b c]",
            "write it again: `pytest --update-goldens 'tests/test_a.py::test_f[b c]'` with jaxlib 0.9.2 installed, "
            "else `jaxexport goldens backfill --writers 0.9.2 -- --update-goldens 'tests/test_a.py::test_f[b c]'`.",
        ),
        ("", "add it again with `jaxexport goldens add`."),
    ],
)
def test_the_error_for_a_missing_file_names_the_test_that_writes_it(store, test, how):
    golden = write_golden(store, manifest(jaxlib="0.9.2", test=test))
    (golden.folder / INPUTS).unlink()
    with pytest.raises(GoldenError) as raised:
        golden.verify()
    assert str(raised.value).endswith(f"found none. Restore the golden from version control, or {how}")


@pytest.mark.parametrize("name", [ARTIFACT, INPUTS, OUTPUTS])
def test_a_flipped_bit_or_a_missing_file_is_found(store, name):
    golden = write_golden(store, manifest())
    path = golden.folder / name
    good = path.read_bytes()
    for where in {0, len(good) // 3, len(good) - 1}:
        damaged = bytearray(good)
        damaged[where] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(GoldenError, match=f"{name}: damaged: expected SHA-256 {sha256(good)}, found .* Restore"):
            golden.verify()
    path.unlink()
    with pytest.raises(
        GoldenError, match=rf"{name}: expected a file of .* found none\. .*`jaxexport goldens backfill "
    ):
        golden.verify()
    path.write_bytes(good)
    golden.verify()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"module {\r\n}\r\n", r"damaged: its line ends were converted .*\.gitattributes"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid",
            r"expected the file, found a Git LFS pointer\. .*lfs pull",
        ),
    ],
)
def test_a_file_that_git_changed_is_an_error_with_a_remedy(store, data, message):
    golden = write_golden(store, manifest(), {**files(), "module.mlir": b"module {\n}\n"})
    (golden.folder / "module.mlir").write_bytes(data)
    with pytest.raises(GoldenError, match=rf"module\.mlir: {message}"):
        golden.verify()


def test_an_error_about_many_goldens_names_the_first_ten(store):
    for number in range(MOST + 2):
        write_golden(store, manifest(f"t.test_{number:02}")).artifact.write_bytes(b"")
    with pytest.raises(GoldenError) as refused:
        verify_goldens(store, load_calendar())
    first, *_, tenth, last = str(refused.value).splitlines()
    assert ("test_00" in first, "test_09" in tenth, last) == (True, True, "  and 2 more goldens")


def test_a_manifest_must_list_every_file_of_a_golden(store):
    content = files()
    outputs = content.pop(OUTPUTS)
    write_golden(store, manifest(options=Options(("tpu",), without_outputs="no TPU here")), content).verify()
    with pytest.raises(GoldenError, match=f"expected {OUTPUTS} under `files`"):
        write_golden(store, manifest(options=Options(("tpu",))), content).verify()
    with pytest.raises(GoldenError, match=f"expected {ARTIFACT} under `files`"):
        write_golden(store, manifest(), {INPUTS: outputs, OUTPUTS: outputs}).verify()


def test_a_golden_in_another_goldens_folder_is_refused(store):
    golden = write_golden(store, manifest())
    golden.folder.rename(golden.folder.with_name("0.9.2-cpu"))
    with pytest.raises(GoldenError, match=r"is the manifest of .*/0.12.0.1-cpu, but is in the folder .*/0.9.2-cpu"):
        store.goldens()


def test_the_error_for_an_outer_folder_names_the_goldens_inside(store):
    write_golden(GoldenStore(store.root / "0.9.2"), manifest("a"))
    with pytest.raises(GoldenError, match=r"`jaxexport convert` writes for several .* --goldens .*0\.9\.2\.$"):
        store.goldens()


@pytest.mark.parametrize(
    "where",
    [
        "golden.yaml",
        "extra/golden.yaml",
        ".x/golden.yaml",
        ".x/tests.test_a.test_f/0.9.2-cpu/golden.yaml",
        "tests.test_a.test_f/golden.yaml",
        "tests.test_a.test_f/.x/golden.yaml",
        "tests.test_a.test_f/0.12.0.1-cpu/more/golden.yaml",
        "tests.test_a.test_f/0.12.0.1-cpu/.x/deep/golden.yaml",
    ],
)
def test_a_manifest_in_a_wrong_folder_is_an_error(store, jaxexport, where):
    golden = write_golden(store, manifest())
    path = store.root / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((golden.folder / MANIFEST).read_bytes())
    for words in (("matrix", "--dry-run"), ("goldens", "list"), ("goldens", "verify"), ("policy", "check")):
        ended = jaxexport(*words, "--goldens", store.root, code=2)
        assert f"{path}: expected each golden in a folder {store.root}/CASE/WRITER, found one where none" in ended.err


# --- killed at any moment ---------------------------------------------------------------------------------------------

PREAMBLE = f"""
import itertools, json, os, resource, shutil, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from msgspec import structs
from making import files, manifest, write_golden
from export_core.base import atomic
from export_core.goldens import GoldenError, GoldenStore
from export_core.goldens.store import sha256
store = GoldenStore(Path(sys.argv[1]))
"""


def python(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a process that runs a script, with the folder of the store as its first argument."""
    command = [sys.executable, "-c", PREAMBLE + textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def output_of(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


# A process that has imported everything forks writers, and checks what each of them leaves. A writer replaces a golden
# of zeros by one of ones and back. It kills itself before one of its operations on files, each writer at a later one.
# The moment is no random time: on a busy machine, a writer may do nothing in any number of milliseconds.
KILLER = """
    kills, exchange = int(sys.argv[2]), sys.argv[3] == "exchange"
    if not exchange:
        atomic.exchange_folders = lambda first, second: False  # a platform without renameat2
    os.fsync = lambda descriptor: None  # a killed process loses nothing that the kernel has
    versions = []
    for fill in (0.0, 1.0):
        content = {**files(fill, 500), "jaxpr.txt": str(fill).encode()}
        hashes = {name: sha256(data) for name, data in content.items()}
        versions.append((structs.replace(manifest(), files=hashes), content))
    store.write(*versions[0])
    counts = {"kills": 0, "left": 0, "seen": []}
    for number in range(kills):
        pid = os.fork()
        if pid == 0:
            steps = itertools.count()

            def step(event, arguments):
                if event.startswith(("open", "os.", "shutil.")) and event != "os.kill" and next(steps) == 3 * number:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(step)
            for made, content in itertools.cycle(versions):
                store.write(made, content)
        counts["kills"] += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        counts["left"] += len(list(store.root.glob("*/.new-*"))) > 0
        (golden,) = store.goldens()
        golden.verify()
        found = {path.name: path.read_bytes() for path in golden.folder.iterdir()}
        found.pop("golden.yaml")
        (fill,) = {int(leaf.data[0]) for leaf in (*golden.inputs(), *golden.outputs())}
        assert found == versions[fill][1], "neither the old golden nor the new one"
        counts["seen"].append(fill)
    store.write(*versions[0]); store.write(*versions[1])
    counts["left at the end"] = [path.name for path in store.root.glob("*/.*")]
    print(json.dumps(counts))
"""


@pytest.mark.parametrize("how", ["exchange", "two renames"])
def test_a_killed_writer_leaves_the_old_or_new_golden(store, how):
    counts = json.loads(output_of(python(KILLER, store.root, KILLS[how], how)))
    assert counts["kills"] == KILLS[how]
    assert set(counts["seen"]) == {0, 1}, "kills left both the old and the new golden"
    assert counts["left"] >= 3, "some kills interrupted a write"
    assert counts["left at the end"] == [], "later writers remove what killed writers left"


def test_writing_removes_no_folder_of_a_running_writer_or_a_user(store):
    golden = write_golden(store, manifest())
    for name in (f".new-0.12.0.1-cpu-{os.getppid()}-abcd", ".new-0.12.0.1-cpu-mine-too"):
        golden.folder.with_name(name).mkdir()
    write_golden(store, manifest(), files(2))
    assert len(list(golden.folder.parent.glob(".new-*"))) == 2


def test_removing_the_last_golden_removes_its_case(store):
    one, other = (write_golden(store, manifest(jaxlib=jaxlib)) for jaxlib in ("0.9.2", "0.11.0"))
    store.remove(one)
    assert store.goldens() == [other]
    store.remove(other)
    assert list(store.root.iterdir()) == []


def test_a_failed_removal_leaves_the_golden_unchanged(store):
    golden = write_golden(store, manifest())
    shutil.rmtree(golden.folder)
    with pytest.raises(
        GoldenError, match=r"cannot delete this golden: No such file or directory\. Nothing was deleted"
    ):
        store.remove(golden)


def test_a_killed_removal_leaves_no_part_of_a_golden(store):
    """The folder is renamed before the first file is deleted: what is left cannot be taken for a golden."""
    golden = write_golden(store, manifest())
    killed = python("shutil.rmtree = lambda *_, **__: os._exit(9)\nstore.remove(store.goldens()[0])", store.root)
    killed.communicate(timeout=60)
    assert killed.returncode == 9
    assert store.goldens() == []
    (left,) = strays(store.root)
    assert (left.leftover, left.path.parent) == (True, golden.folder.parent)
    assert delete_leftovers(strays(store.root)) == [left]
    assert delete_leftovers(strays(store.root))[0].path == golden.folder.parent
    assert list(store.root.iterdir()) == []


# --- a full disk, and other refusals ----------------------------------------------------------------------------------


FILLER = """
    if limit := int(sys.argv[2]):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    for case in ("tests.test_a.test_f", "one.of.no.golden"):
        try:
            write_golden(store, manifest(case), files(2, 100_000))
        except GoldenError as error:
            print(error)
        else:
            sys.exit("it was written")
"""


@pytest.mark.parametrize("limited", [False, True], ids=["a small disk", "a file size limit"])
def test_a_full_disk_leaves_the_old_goldens_unchanged(small_disk, tmp_path, limited):
    where, limit = (tmp_path / "golden", 100_000) if limited else small_disk
    store = GoldenStore(where)
    for case in ("tests.test_a.test_f", "another"):
        write_golden(store, manifest(case), files(1))
    before = tree(where)
    why = "File too large" if limit else "No space left on device"
    message = f"cannot write this golden: {why}. Nothing stored was changed"
    assert output_of(python(FILLER, where, limit)).count(message) == 2
    assert tree(where) == before
    assert [golden.outputs()[0].numpy()[0] for golden in store.goldens()] == [1, 1]


def test_a_store_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "golden").write_text("a file")
    with pytest.raises(GoldenError, match="cannot write this golden"):
        GoldenStore(tmp_path / "golden").write(manifest(), files())


# --- two at once ------------------------------------------------------------------------------------------------------

WRITER_AND_READER = """
    for number in range(30):
        write_golden(store, manifest(jaxlib=sys.argv[2]), files(number))
        for golden in store.goldens():
            assert golden.manifest.writer.jaxlib in ("0.9.2", "0.11.0")
"""


def test_two_processes_write_and_read_a_case_at_once(store):
    both = [python(WRITER_AND_READER, store.root, jaxlib) for jaxlib in ("0.9.2", "0.11.0")]
    assert list(map(output_of, both)) == ["", ""]
    found = store.goldens()
    assert [golden.manifest.writer for golden in found] == [writer("0.9.2"), writer("0.11.0")]
    for golden in found:
        golden.verify()
        assert golden.outputs()[0].numpy().tolist() == [29, 29]
    assert list(store.root.rglob(".*")) == []
