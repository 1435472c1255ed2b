"""Environments of readers: how they are built, checked, found again and rebuilt, and which variables cells get.

The hash of what is installed in this interpreter changes with everything that a cell can depend on.
"""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import filelock
import pytest
from commands import is_alive, wait_for
from making import make_wheel, release

from export_core.base.processes import deciding_variables, kernels_in_words
from export_core.readers import build as module
from export_core.readers import cached_environments, hardware, installed
from export_core.readers import environment as environments
from export_core.readers.build import Built, EnvironmentLocks, Recipe, cache_folder
from export_core.readers.environment import (
    ReaderEnvironments,
    Sources,
    cell_variables,
    requirements,
    this_interpreter,
    with_variables,
    writer_variables,
)
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.installed import hash_of_this_interpreter
from export_core.readers.placement import Placement
from export_core.readers.uv_settings import CommandPlace
from export_core.releases import load_calendar
from export_core.releases.runtimes import runtime_readers
from export_core.releases.wheels import read_wheel

ROOT = Path(__file__).parents[2]
CHECK = "import sys, tiny; print(sys.prefix)"


def build(*content: object, salt: str = "", **options: object) -> Built:
    """Build an environment from a recipe with this content, and let go of its lock."""
    with EnvironmentLocks() as locks:
        return module.build(Recipe(*content, salt=salt), locks, **options)


@pytest.fixture
def tiny(tmp_path) -> tuple[str]:
    """The requirement of a wheel that is made here, so that nothing is downloaded."""
    return (str(make_wheel(tmp_path, "tiny", "1.0")),)


class Interrupting(threading.Event):
    """An event that is asked whether to stop, and raises KeyboardInterrupt as soon as a file is there."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def is_set(self) -> bool:
        if self._file.exists():
            raise KeyboardInterrupt
        return False


def test_ctrl_c_kills_what_builds_an_environment_in_this_thread(tmp_path):
    file = tmp_path / "pid"
    program = f"import os, time; open({str(file)!r} + '.new', 'w').write(str(os.getpid())); "
    program += f"os.rename({str(file)!r} + '.new', {str(file)!r}); time.sleep(600)"
    place = CommandPlace(tmp_path, dict(os.environ))
    with pytest.raises(KeyboardInterrupt):
        module._run([sys.executable, "-c", program], "installing", Interrupting(file), place)
    wait_for(lambda: not is_alive(int(file.read_text())), "its end", 20)


def test_a_reader_requires_jax_and_its_dependencies():
    newest = ("jax==0.12.0.1", "jaxlib==0.12.0.1", "numpy", "flatbuffers")
    assert requirements(release("0.12.0.1"), load_calendar()) == newest
    assert requirements(release("0.10.1"), load_calendar())[:2] == ("jax==0.10.2", "jaxlib==0.10.1")


def test_a_local_jaxlib_wheel_changes_only_pjrt_of_its_release(tmp_path):
    sources = Sources(held=(read_wheel(make_wheel(tmp_path, "jaxlib", "0.12.0.1")),))
    contents = {
        name: sources.content(runtime_readers(name, load_calendar())[0])
        for name in ("pjrt==0.12.0.1", "pjrt==0.11.2", "tensorflow==2.21.0")
    }
    assert {name: bool(content) for name, content in contents.items()} == {
        "pjrt==0.12.0.1": True,
        "pjrt==0.11.2": False,
        "tensorflow==2.21.0": False,
    }


@pytest.mark.parametrize(
    ("name", "version", "decides"),
    [
        ("jax_cuda12_plugin", "0.12.0.1", ["0.12.0.1"]),
        ("jax_cuda12_pjrt", "0.12.0.1", ["0.12.0.1"]),
        ("jaxlib", "0.12.0.1", ["0.12.0.1"]),
        ("jax_cuda12_plugin", "0.12.0", []),
        ("ml_dtypes", "0.5.4", ["0.12.0.1", "0.11.2"]),
    ],
)
def test_a_rebuilt_local_wheel_gets_a_new_environment(tmp_path, name, version, decides):
    held = (read_wheel(make_wheel(tmp_path, "jaxlib", "0.12.0.1")),)
    (tmp_path / "none.whl").write_text("")  # which uv ignores

    def contents() -> dict[str, str]:
        return {reader: Sources(held=held).content(release(reader)) for reader in ("0.12.0.1", "0.11.2")}

    make_wheel(tmp_path, name, version)
    before = contents()
    time.sleep(0.01)
    make_wheel(tmp_path, name, version, modules={"more.py": "built again"})
    assert [reader for reader, content in contents().items() if content != before[reader]] == decides


@pytest.mark.parametrize(("printed", "found"), [("", "nothing"), ("a line\n2.20.0\n", "2.20.0")])
def test_a_runtimes_version_is_the_last_line_that_its_check_prints(printed, found, tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "build", lambda *_, **__: Built(tmp_path, printed, ""))
    (reader,) = runtime_readers("tensorflow==2.21.0", load_calendar())
    message = rf"expected 2\.21\.0, found {found}\. Delete the folder"
    with ReaderEnvironments(load_calendar()) as built, pytest.raises(EnvironmentFailed, match=message):
        built.build(Placement(reader))


SETTINGS = ("JAX_ENABLE_X64", "XLA_FLAGS", "PYTHONPATH", "PYTHONHOME", "TF_CPP_MIN_LOG_LEVEL", "LIBTPU_INIT_ARGS")
SECRETS = (
    *("GITHUB_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "CI_JOB_TOKEN", "AWS_SECRET_ACCESS_KEY", "UV_INDEX_URL"),
    *("HTTPS_PROXY", "NVIDIA_API_KEY", "CUDA_ACCESS_TOKEN", "SSH_AUTH_SOCK"),
)


def test_cells_get_no_variables_with_settings_or_secrets(monkeypatch):
    for name in (*SETTINGS, *SECRETS):
        monkeypatch.setenv(name, "s3cret")
    kernels = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_L2_SIZE": "0x100"}
    needed = {"PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "LD_LIBRARY_PATH": "/cuda", "CUDA_VISIBLE_DEVICES": "1"}
    for name, value in {**needed, **kernels}.items():
        monkeypatch.setenv(name, value)
    variables = cell_variables()
    assert {**needed, **kernels, "JAX_PLATFORMS": "cpu"}.items() <= variables.items()
    assert not [name for name, value in variables.items() if "s3cret" in value]
    passed_on = {name for name, value in writer_variables().items() if value == "s3cret"}
    assert passed_on == {*SECRETS}, "tests that write goldens are the project's own, and get all but settings"
    assert kernels_in_words(variables) == "ran with OPENBLAS_CORETYPE=Haswell, OPENBLAS_L2_SIZE=0x100"
    here = this_interpreter(release("0.12.0.1"))
    assert {**kernels, "PYTHONPATH": "s3cret"}.items() <= here.variables.items(), "here it is part of the interpreter"
    other = with_variables(here, OPENBLAS_CORETYPE="Sandybridge")
    assert other.variables == {**here.variables, "OPENBLAS_CORETYPE": "Sandybridge"}


@pytest.mark.parametrize(
    ("processor", "variables", "other"),
    [
        ("x86_64 AVX512_BF16", {}, "Haswell"),
        ("x86_64 AVX512", {"OPENBLAS_CORETYPE": "haswell"}, "Sandybridge"),
        ("x86_64 AVX2", {}, "Sandybridge"),
        ("x86_64 AVX2", {"OPENBLAS_CORETYPE": "Zen"}, "Sandybridge"),
        ("x86_64 AVX2", {"OPENBLAS_CORETYPE": "Sandybridge"}, "Haswell"),
        ("x86_64 AVX", {}, None),
        ("x86_64 SSE4_2", {}, None),
        ("x86_64", {}, None),
        ("aarch64", {}, None),
    ],
)
def test_the_second_openblas_kernel_is_one_the_processor_can_run(monkeypatch, processor, variables, other):
    monkeypatch.setattr(hardware, "instruction_set", lambda: processor)
    assert hardware.other_openblas_core(variables) == other


@pytest.mark.parametrize(
    ("processor", "written", "variables", "used", "message"),
    [
        ("x86_64 AVX2", "x86_64 AVX2", {}, "x86_64 AVX2", ""),
        ("x86_64 AVX2", "", {}, "x86_64 AVX2", ""),
        ("x86_64 AMX", "x86_64 AVX2", {}, "x86_64 AMX", "written on x86_64 AVX2, read on x86_64 AMX"),
        ("aarch64", "x86_64 AVX2", {}, "aarch64", "written on x86_64 AVX2, read on aarch64"),
        (
            *("x86_64 AVX2", "x86_64 AVX2", {"XLA_FLAGS": "--xla_a --xla_cpu_max_isa=sse4_2"}, "x86_64 SSE4_2"),
            "written on x86_64 AVX2, read on x86_64 SSE4_2 (--xla_cpu_max_isa on x86_64 AVX2) with XLA_FLAGS=--xla_a",
        ),
        ("x86_64 AVX2", "x86_64 SSE4_2", {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}, "x86_64 SSE4_2", ""),
        ("x86_64 AVX2", "x86_64 AVX2", {"XLA_FLAGS": "--xla_cpu_max_isa=AMX"}, "x86_64 AVX2", ""),
        ("x86_64 AVX2", "x86_64 AVX2", {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}, "x86_64 AVX2", ""),
        (
            *("x86_64 AVX2", "x86_64 AVX2", {"OPENBLAS_CORETYPE": "Prescott"}, "x86_64 AVX2"),
            "written on x86_64 AVX2, read on x86_64 AVX2 with OPENBLAS_CORETYPE=Prescott",
        ),
    ],
)
def test_processors_that_differ_from_the_writers_are_named(monkeypatch, processor, written, variables, used, message):
    monkeypatch.setattr(hardware, "instruction_set", lambda: processor)
    assert hardware.instructions_used(variables) == used
    assert hardware.processors(written, variables) == message


def test_variables_named_in_the_policy_are_passed_to_cells(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    assert cell_variables(added=("MY_TOKEN", "MISSING"))["MY_TOKEN"] == "s3cret"
    assert "MISSING" not in cell_variables(added=("MY_TOKEN", "MISSING"))
    assert this_interpreter(release("0.12.0.1"), ("MY_TOKEN",)).variables["MY_TOKEN"] == "s3cret"


def test_path_home_and_locale_do_not_count_as_deciding_an_outcome(monkeypatch):
    variables = {"PATH": "/bin", "HOME": "/x", "LC_ALL": "C", "LD_LIBRARY_PATH": "/cuda", "MY_FLAG": "1"}
    assert deciding_variables(variables) == [("LD_LIBRARY_PATH", "/cuda"), ("MY_FLAG", "1")]


def test_the_variable_jaxexport_cache_sets_the_cache_folder(cache, monkeypatch):
    assert cache_folder() == cache.parent
    monkeypatch.delenv("JAXEXPORT_CACHE")
    assert "jaxexport" in str(cache_folder())


def test_an_environment_is_built_once_and_found_again(cache, tiny):
    notes: list[str] = []
    first = build("empty", sys.executable, tiny, CHECK, announcement="about 7 MB", notify=notes.append)
    assert (Path(first.checked), notes) == (first.folder, ["about 7 MB"])
    stamp = (first.folder / "ready.json").stat().st_mtime_ns
    assert build("empty", sys.executable, tiny, CHECK, announcement="nothing", notify=notes.append) == first
    assert notes == ["about 7 MB"]
    assert (first.folder / "ready.json").stat().st_mtime_ns == stamp
    assert build("empty", sys.executable, tiny, CHECK, salt="other").folder != first.folder


def lose(file: Path) -> None:
    file.unlink()
    (file.parent / "half").write_text("left by a killed build")


def cut_in_place(file: Path) -> None:
    """Cut a file in place, so that the installer's cache loses its content too, by the hard link."""
    os.truncate(file, 1)


@pytest.mark.parametrize(
    ("breaks", "what"),
    [
        (lose, "lib/python*/site-packages/tiny/__init__.py"),
        (lose, "lib/python*/site-packages/tiny-1.0.dist-info/RECORD"),
        (lose, "bin/python"),
        (lose, "ready.json"),
        (cut_in_place, "lib/python*/site-packages/tiny/__init__.py"),
        (cut_in_place, "ready.json"),
    ],
    ids=["a file gone", "a record gone", "the interpreter gone", "killed", "a file cut", "half a note of the build"],
)
def test_a_damaged_environment_is_rebuilt(cache, tiny, breaks, what):
    first = build("tiny", sys.executable, tiny, "import tiny; print(tiny.__version__)")
    assert first.checked == "1.0"
    (file,) = first.folder.glob(what)
    breaks(file)
    again = build("tiny", sys.executable, tiny, "import tiny; print(tiny.__version__)")
    assert again == first
    assert (module.damage_in(first.folder), list(first.folder.rglob("half"))) == ("", [])


def test_an_environment_with_another_release_is_rebuilt(cache, tmp_path):
    wheels = make_wheel(tmp_path, "tiny", "1.0").parent
    recipe = ("tiny", sys.executable, ("tiny==1.0",), "import tiny; print(tiny.__version__)")
    options = ("--no-index", f"--find-links={wheels}")

    def build() -> Built:
        with EnvironmentLocks() as locks:
            return module.build(Recipe(*recipe, options=options), locks)

    first = build()
    (metadata,) = first.folder.glob("lib/python*/site-packages/tiny-1.0.dist-info")
    metadata.rename(metadata.with_name("tiny-2.0.dist-info"))
    assert installed.other_release_in(first.folder, ["tiny==1.0"]).endswith("expected tiny==1.0, found 2.0")
    assert build() == first
    assert metadata.exists()
    shutil.rmtree(first.folder / "lib")
    assert installed.damage_in(first.folder).endswith("no package is installed")
    assert build() == first
    assert metadata.exists()


NO_NOTES = ("null", "[]", "3", "{}", '{"checked": "", "lock": [1]}', '{"checked": "", "lock": "x", "packages": 3}')


@pytest.mark.parametrize("text", [*NO_NOTES, "[" * 3000])
def test_an_environment_with_a_malformed_ready_file_is_not_built(tmp_path, text):
    (tmp_path / "ready.json").write_text(text)
    with EnvironmentLocks() as locks:
        assert module.find_built(tmp_path, locks) is None
    assert cached_environments._describe(tmp_path).is_built is False


@pytest.mark.parametrize("checked", ["null", "", "[1, 2]"])
def test_an_environment_whose_check_prints_garbage_fails(tmp_path, monkeypatch, checked):
    monkeypatch.setattr(environments, "build", lambda *_, **__: Built(tmp_path, checked, ""))
    with ReaderEnvironments(load_calendar()) as built, pytest.raises(EnvironmentFailed, match="found something else"):
        built.build(Placement(release("0.12.0.1")))


def test_only_installed_py_reads_the_ready_file_of_environments():
    modules = (Path(module.__file__).parents[1]).rglob("*.py")
    reading = [path.name for path in modules if re.search(r"read_\w+\(.*READY|READY\)\.read", path.read_text())]
    assert reading == ["installed.py"]


def test_a_build_that_fails_twice_names_both_reasons(cache, tiny, tmp_path):
    file = f"n = pathlib.Path({str(tmp_path / 'count')!r})"
    count = f"import pathlib; {file}; n.write_text(n.read_text() + 'x' if n.exists() else 'x')"
    with pytest.raises(EnvironmentFailed) as raised:
        build("broken", sys.executable, tiny, f"{count}; raise ImportError('try ' + n.read_text())")
    first, then = str(raised.value).split("\nthen ")
    assert first.startswith("infrastructure: tried twice, first importing ")
    assert first.endswith("ImportError: try x")
    assert then.endswith("ImportError: try xx")
    assert [path for path in cache.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("start_new_session", [False, True])
def test_a_stopped_build_ends_though_a_child_holds_its_pipes(cache, tiny, start_new_session):
    stopping = threading.Event()
    threading.Timer(1.0, stopping.set).start()
    sleeper = f"[sys.executable, '-c', 'import time; time.sleep(20)'], start_new_session={start_new_session}"
    code = f"import subprocess, sys, time; subprocess.Popen({sleeper}); time.sleep(60)"
    started = time.monotonic()
    with pytest.raises(EnvironmentFailed, match="the run was stopped"):
        build("held", sys.executable, tiny, code, stopping=stopping)
    assert time.monotonic() - started < 15
    assert [path for path in cache.iterdir() if path.is_dir()] == []


def test_a_check_that_hangs_fails_the_environment(cache, tiny, monkeypatch):
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.3)
    with pytest.raises(EnvironmentFailed, match=r"tried twice, and each time importing .* took longer than 0\.3 s"):
        build("hangs", sys.executable, tiny, "import time; time.sleep(60)")


def test_waiting_long_for_another_builder_is_reported_once(cache, tiny, monkeypatch):
    monkeypatch.setattr(module, "LONG_WAIT_SECONDS", 0.3)
    folder = Recipe("taken", sys.executable, tiny, CHECK).folder
    folder.parent.mkdir(parents=True)
    notes: list[str] = []
    with filelock.FileLock(f"{folder}.lock", thread_local=False) as lock:
        threading.Timer(1.0, lock.release).start()
        build("taken", sys.executable, tiny, CHECK, notify=notes.append)
    assert notes == [f"waiting for another process that builds {folder}, and holds {folder}.lock"]


def test_a_cache_folder_that_cannot_be_made_is_an_error(cache, tiny):
    cache.parent.write_text("a file where the folder should be")
    with pytest.raises(EnvironmentFailed, match=r"infrastructure: the cache cannot be written, .*JAXEXPORT_CACHE"):
        build("tiny", sys.executable, tiny, CHECK)


def test_a_failed_build_gives_the_reason_of_uv(cache):
    with pytest.raises(EnvironmentFailed) as raised:
        build("missing", sys.executable, ("/nowhere/missing-1.0-py3-none-any.whl",), CHECK)
    failed = "installing failed with status 1: "
    reason, _, requirements = str(raised.value).partition("\n")
    assert reason.startswith(f"infrastructure: tried twice, and each time {failed}")
    assert "missing-1.0" in reason.partition(failed)[2]
    assert requirements == "It was to install /nowhere/missing-1.0-py3-none-any.whl."


NO_NETWORK = """
  × No solution found when resolving dependencies:
  ╰─▶ Because jax was not found in the cache and you require jax==0.9.2, we
      can conclude that your requirements are unsatisfiable.

      hint: Packages were unavailable because the network was disabled.
"""
CONFLICT = f"""
  × No solution found when resolving dependencies:
  ╰─▶ Because only these are available:
{"".join(f"          dep=={number}{chr(10)}" for number in range(20))}
      and jax==0.9.2 depends on dep>=20, we can conclude that jax==0.9.2
      cannot be used.
      And because you require jax==0.9.2, we can conclude that your
      requirements are unsatisfiable.
"""
TODAY = """Using Python 3.12.1 environment at: v
error: No solution found when resolving dependencies
  cause: Because jax was not found in the cache and you require jax==0.9.2, \
we can conclude that your requirements are unsatisfiable.

hint: Packages were unavailable because the network was disabled.
"""
NO_ANSWER = """error: Failed to fetch: `https://user:secret@packages.example/simple/jax/`
  Caused by: dns error: failed to lookup address information
"""
NOT_IN_THE_CACHE = (
    "jax was not found in the cache and you require jax==0.9.2. Packages were unavailable because the network was "
    "disabled."
)
NO_FILE = """Traceback (most recent call last):
  File "<string>", line 1, in <module>
ImportError: libmissing.so: cannot open shared object file
"""


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (NO_NETWORK, NOT_IN_THE_CACHE),
        (TODAY, NOT_IN_THE_CACHE),
        (
            CONFLICT,
            f"Because only these are available: {' '.join(f'dep=={number}' for number in range(20))} and jax==0.9.2 "
            "depends on dep>=20, we can conclude that jax==0.9.2 cannot be used. And because you require jax==0.9.2, "
            "we can conclude that your requirements are unsatisfiable.",
        ),
        (
            NO_ANSWER,
            "Failed to fetch: `https://packages.example/simple/jax/` Caused by: dns error: failed to lookup address "
            "information",
        ),
        (
            "  × Failed to build `mine`\nerror: Multiple top-level packages discovered\n" + "advice\n" * 12,
            "Multiple top-level packages discovered" + " advice" * 12,
        ),
        (NO_FILE, f"ImportError: libmissing.so: cannot open shared object file\n{NO_FILE.strip()}"),
    ],
    ids=["offline", "uv 0.13", "conflict", "no answer", "build backend", "import"],
)
def test_the_reason_of_a_uv_failure_is_extracted(printed, reason):
    assert module._reason(printed) == reason


@pytest.mark.parametrize("error", [ImportError("no module uv"), FileNotFoundError("uv")], ids=["module", "command"])
def test_a_missing_uv_is_an_error_that_says_what_to_do(error, monkeypatch):
    def find_uv_bin():
        raise error

    monkeypatch.setattr("uv.find_uv_bin", find_uv_bin)
    with pytest.raises(EnvironmentFailed, match=r"expected the command uv, .* found none\. .*`pip install uv`"):
        module.uv_command()


def test_an_offline_run_shows_uvs_reason_and_advice(jaxexport, cache, cwd, monkeypatch):
    case = "tests.compat.test_dtypes.test_donated"
    shutil.copytree(ROOT / "golden" / case, cwd / "golden" / case)
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(cwd / "empty"))
    ended = jaxexport("matrix", "--readers", "0.11.0", "--as-of", "2026-11-21", code=3)
    shown = ended.out.split("failed with status 1: ")[1:]
    reason = "in the cache and you require jax==0.11.0. Packages were unavailable because the network was disabled."
    assert [reason in " ".join(text.split()) for text in shown] == [True, True], "while it runs, and in the report"
    advice = "Unset UV_OFFLINE, or `offline` in uv's configuration."
    assert advice in " ".join(shown[1].split())
    jaxexport("report", "--markdown", "report.md", code=0)
    table = Path("report.md").read_text()
    assert "installing failed with status 1: jax was not found in the cache and you require jax" in table


def test_an_environment_where_another_jax_is_found_is_an_error(cache, monkeypatch):
    monkeypatch.setattr(module, "_install", lambda recipe, stopping: _fake(recipe.folder))
    monkeypatch.setattr(environments, "_CHECK", "import json; print(json.dumps(['0.1', '0.2']))")
    with pytest.raises(
        EnvironmentFailed, match=r"expected jax 0\.12\.0\.1 and jaxlib 0\.12\.0\.1, found jax 0\.1 and jaxlib 0\.2"
    ):
        ReaderEnvironments(load_calendar()).build(Placement(release("0.12.0.1")))


def _fake(folder: Path) -> None:
    subprocess.run(
        [module.uv_command(), "venv", "--quiet", "--allow-existing", "--python", sys.executable, folder], check=True
    )


def test_two_processes_build_one_environment_once(cache, tiny):
    script = (
        "from export_core.readers.build import EnvironmentLocks, Recipe, build\n"
        f"build(Recipe('empty', {sys.executable!r}, {tiny!r}, {CHECK!r}), EnvironmentLocks())"
    )
    both = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    (ready,) = cache.glob("empty-*/ready.json")
    assert json.loads(ready.read_text())["requirements"] == list(tiny)


def test_messages_of_uv_are_shown_without_passwords(cache, tmp_path):
    nowhere = Recipe(
        "none", sys.executable, ("jaxexport-none",), CHECK, options=("--index=http://me:p/s3@127.0.0.1:9/x",)
    )
    with EnvironmentLocks() as locks, pytest.raises(EnvironmentFailed) as raised:
        module.build(nowhere, locks)
    assert "127.0.0.1:9" in str(raised.value)
    assert "s3" not in str(raised.value)


def test_a_build_can_leave_its_check_to_the_worker(cache, tiny, monkeypatch, tmp_path):
    """Such an environment is found again by builds with a check, and none of its packages was imported."""
    raises = ("tiny", sys.executable, tiny, "raise ImportError")
    with EnvironmentLocks() as locks:
        first = module.build(Recipe(*raises, expected="as expected"), locks)
    assert (build(*raises), first.checked, [*first.folder.rglob("*.pyc")]) == (first, "as expected", [])


@pytest.mark.parametrize(
    ("reader", "for_workers", "expected"),
    [
        (release("0.10.1"), True, '["0.10.2", "0.10.1"]'),
        (release("0.10.1"), False, ""),
        (runtime_readers("tensorflow==2.21.0", load_calendar())[0], True, ""),
    ],
)
def test_only_a_build_for_a_jax_worker_leaves_its_check_to_the_worker(reader, for_workers, expected):
    environments = ReaderEnvironments(load_calendar(), for_workers=for_workers)
    assert environments._recipe(Placement(reader), module.CPython(sys.executable)).expected == expected


def test_a_file_shared_by_environments_is_hashed_once(tmp_path):
    (tmp_path / "file").write_bytes(b"one")
    (tmp_path / "link").hardlink_to(tmp_path / "file")
    (tmp_path / "other").write_bytes(b"one")
    hashed, before = installed.HashedFiles(), (tmp_path / "file").stat().st_mtime_ns
    one = hashed.digest(str(tmp_path / "file"))
    (tmp_path / "file").write_bytes(b"two")
    os.utime(tmp_path / "file", ns=(before, before))
    assert hashed.digest(str(tmp_path / "link")) == one == hashed.digest(str(tmp_path / "other"))
    assert installed.HashedFiles().digest(str(tmp_path / "link")) != one


def test_two_environments_built_at_once_read_a_shared_file_once(cache, tiny, monkeypatch):
    folder, read = build("tiny", sys.executable, tiny, "import tiny").folder, []

    class Slow(installed.HashedFiles):
        def digest(self, path):
            read.append(path)
            time.sleep(0.01)  # meanwhile another thread would hash the same file
            return super().digest(path)

    hashed = Slow()
    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(lambda _: module.changed_in(folder, hashed), range(2))] == ["", ""]
    half = len(read) // 2
    assert half > 1
    assert read[:half] == read[half:], "the second thread begins when the first one has ended"


def test_files_of_a_rebuilt_environment_are_hashed_again(cache, tiny):
    with EnvironmentLocks() as locks:
        recipe = Recipe("tiny", sys.executable, tiny, "import tiny")
        folder = module.build(recipe, locks).folder
        (source,) = folder.glob("lib/python*/site-packages/tiny/__init__.py")
        before, changed = source.read_bytes(), source.stat().st_mtime_ns
        source.write_bytes(before.replace(b"1", b"2"))  # the installer's cache has it too
        os.utime(source, ns=(changed, changed))
        (folder / "ready.json").unlink()
        module.build(recipe, locks)
        assert source.read_bytes() == before


def test_a_large_file_of_a_new_environment_is_read_only_if_written_to(cache, tiny, monkeypatch):
    monkeypatch.setattr(installed, "_LARGE", 1)
    folder = build("tiny", sys.executable, tiny, "import tiny").folder
    (source,) = folder.glob("lib/python*/site-packages/tiny/__init__.py")
    unpacked = source.stat().st_mtime
    source.write_bytes(source.read_bytes().replace(b"1", b"2"))
    os.utime(source, (unpacked, unpacked))
    assert module.changed_in(folder, is_new=True) == ""
    assert "__init__.py: expected the content" in module.changed_in(folder)
    os.utime(source, (unpacked, unpacked + 2 * installed._UNPACKING_SECONDS))
    assert "__init__.py: expected the content" in module.changed_in(folder, is_new=True)


def test_checking_a_rebuilt_environment_reads_large_files_too(cache, tiny, monkeypatch):
    monkeypatch.setattr(installed, "_LARGE", 1)
    asked = []
    changed_in = module.changed_in
    monkeypatch.setattr(module, "changed_in", lambda *args, **how: asked.append(how) or changed_in(*args, **how))
    folder = build("tiny", sys.executable, tiny, "import tiny").folder
    (folder / "ready.json").unlink()
    build("tiny", sys.executable, tiny, "import tiny")
    assert asked == [{"is_new": True}, {"is_new": False}]


def test_a_file_that_two_packages_list_may_have_either_hash(cache, tmp_path, monkeypatch):
    both = [make_wheel(tmp_path, name, "1.0", modules={"docs/conf.py": f"{name = }"}) for name in ("tiny", "small")]
    folder = build("tiny", sys.executable, tuple(map(str, both)), "import tiny, small").folder
    assert (module.damage_in(folder), module.changed_in(folder)) == ("", "")
    with monkeypatch.context() as patched:
        patched.setattr(installed, "_LARGE", 1)
        assert module.changed_in(folder, is_new=True) == ""
    (conf,) = folder.glob("lib/python*/site-packages/docs/conf.py")
    conf.write_text("name = 'TINY'")
    assert "conf.py: expected the content" in module.changed_in(folder)
    conf.write_text("longer than both")
    assert "conf.py: expected 13 or 14 bytes" in module.damage_in(folder)


def test_an_unlisted_file_that_python_may_run_counts_as_damage(cache, tiny):
    folder = build("tiny", sys.executable, tiny, "import tiny").folder
    (site,) = folder.glob("lib/python*/site-packages")
    harmless = ("tiny/__pycache__/other.pyc", "tiny.libs/notes.txt")
    runs = ("sitecustomize.py", "sitecustomize.pyc", "evil.pth", "evil/__init__.py", "tiny/evil.py")
    for name in (*harmless, *runs, "evil-1.0.dist-info/entry_points.txt"):
        assert module.changed_in(folder) == ""
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text("")
        assert (name.partition("/")[0] in module.changed_in(folder)) is (name not in harmless), name
        (site / name).unlink()


# --- this interpreter -------------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of packages, one of which has its files in the hash of this interpreter."""
    (tmp_path / "decides").mkdir()
    (tmp_path / "decides" / "__init__.py").write_text("A = 1\n")
    (tmp_path / "other-1.0.dist-info").mkdir()
    (tmp_path / "other-1.0.dist-info" / "RECORD").write_text("other.py,sha256=abc,1\n")
    monkeypatch.setattr(installed, "_DECIDING", ("decides", "not_installed"))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    yield tmp_path
    hash_of_this_interpreter.cache_clear()


def hashed() -> str:
    hash_of_this_interpreter.cache_clear()
    return hash_of_this_interpreter()


def test_an_interpreters_hash_ignores_pyc_files(site):
    before = hashed()
    (site / "decides" / "__pycache__").mkdir()
    (site / "decides" / "__pycache__" / "__init__.pyc").write_bytes(b"made here")
    assert hashed() == before != ""


def test_an_interpreters_hash_is_the_same_in_another_folder(site, tmp_path, monkeypatch):
    before = hashed()
    other = site.rename(tmp_path.with_name(f"{tmp_path.name}-other"))
    (other / "project.pth").write_text("/home/user/project\n")
    monkeypatch.setattr(sys, "path", [str(other)])
    importlib.invalidate_caches()
    assert hashed() == before


def edited(site):
    (site / "decides" / "__init__.py").write_text("A = 2\n")  # of the same size
    os.utime(site / "decides" / "__init__.py", ns=(1, 1))


def upgraded(site):
    (site / "other-1.0.dist-info").rename(site / "other-1.1.dist-info")


def with_startup_code(site):
    (site / "run.pth").write_text("import run\n")


def with_another_file(site):
    (site / "decides" / "more.py").write_text("")


def with_another_path(site):
    os.environ["PYTHONPATH"] = "elsewhere"


@pytest.mark.parametrize("change", [edited, upgraded, with_startup_code, with_another_file, with_another_path])
def test_an_interpreters_hash_changes_with_its_packages(site, change, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "here")
    before = hashed()
    change(site)
    assert hashed() != before


def test_an_unreadable_file_leaves_the_hash_empty(site):
    (site / "decides" / "gone.py").symlink_to(site / "nowhere")
    assert hashed() == ""
