"""A process that has imported pytest and jax, and whose forks are runs of pytest.

Importing them takes longer than the rest of most runs. A fork differs from a new interpreter: jax is imported before
pytest starts, and all forks hash strings alike. Workers of readers (warm_worker.py) and of pytest-xdist are forks too.
One of the texts below sets how the noise of goldens is measured.
"""

import atexit
import contextlib
import fnmatch
import functools
import gc
import importlib
import inspect
import json
import os
import re
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

import msgspec
import pytest
from _pytest import config
from _pytest.assertion.rewrite import AssertionRewritingHook
from _pytest.config import default_plugins
from shared_process import shared_process
from warm_worker import share_compiled, share_mlir_context, use_warm_workers

IMPORTED = (
    *(f"_pytest.{name}" for name in default_plugins if name != "pytester_assertions"),
    *("execnet.gateway", "platformdirs", "scipy.optimize", "jaxlib.mlir.dialects.mhlo", "jaxlib.mlir.dialects.builtin"),
    *("export_core.export.golden_checks", "export_core.run.session", "export_core.run.golden_writing"),
    *("export_core.artifact.export_changes", "export_core.goldens.upkeep", "export_core.report.document"),
    *("pytest_jaxexport.plugin", "pytest_jaxexport.recording", "pytest_jaxexport.recorder", "pytest_jaxexport.summary"),
    *("faulthandler", "pdb", "readline", "urllib.request"),
    *("_pytest._argcomplete", "platformdirs.pytest_plugin", "xdist.looponfail", "xdist.newhooks", "xdist.plugin"),
)

ARTIFACT = Path(__file__).parent / "artifact" / "data" / "0.12.0.1" / "mlp.jaxexport"
PATTERNS = (
    *("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}"),
    *("test*.txt", "test_*.py", "*_test.py", "test*", "*.old-*", "golden.yaml", "export_compat.y*ml"),
)
"""Patterns of file names that each run compiles."""
EXPRESSIONS = (
    *("(A)", "(-*[A-]*)", "()", "(-*-*)"),  # of argparse, for the words of a run
    *(r"[^A-Za-z0-9_.+=\[\],-]+", r"[.\[\]]", r"\[.*\](?=\.|\Z)", r"(?<!\S)--xla_cpu_max_isa=(\S+)", r"_v\d+$"),
    *("_test.py$", ".*", r"\.py$"),  # of jax, and of pytest's XML
)
"""Regular expressions that most runs with a marked test compile where they use them."""

WHOLE_NOISE = ""  # noise is measured as in a user's run


NO_NOISE = """
from export_core.numbers import measuring_noise
from export_core.run.golden_writing import OwnReader

measuring_noise.not_measured = lambda golden: "left out"
OwnReader.noise = lambda reader, golden: "left out"  # and starts no worker
"""
"""Code that leaves the noise of goldens out, for tests of something else."""


WITH_AND_WITHOUT = [
    pytest.param(NO_NOISE, id="without noise"),
    pytest.param(WHOLE_NOISE, id="noise", marks=pytest.mark.matrix),
]
"""Parameters of tests with goldens of many kinds: only tests marked `matrix` measure their noise."""


# If one of these is set, pytest repeats whole messages in its summary.
SEEN_BY_PYTEST = frozenset({"CI", "BUILD_NUMBER"})


def own_variables() -> dict[str, str]:
    """Return the variables of a user's run: those of this process without those of its own pytest and jax."""
    foreign = ("PYTEST_", "PYTHONDONTWRITEBYTECODE", "JAX_", "XLA_", "COV_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {name: value for name, value in own.items() if name not in SEEN_BY_PYTEST} | {
        "JAX_PLATFORMS": "cpu",
        "COLUMNS": "200",
    }


class WarmPytest:
    """The process as tests use it: `run` sends a run as a line of JSON to its socket, and reads the exit code back."""

    def __init__(self, path: Path, workers: Path) -> None:
        self.workers_too = (
            f"import sys; sys.path.append({str(Path(__file__).parent)!r})\n"
            f"from warm_worker import use_warm_workers; use_warm_workers({str(workers)!r})\n"
        )
        """Code for the conftest of a project, by which workers are forks also in a new interpreter."""
        self.path = path

    def run(self, words: Sequence[str], folder: Path, variables: Mapping[str, str], output: Path, noise: str) -> int:
        """Run ``python -m pytest WORDS`` in a folder with its output in a file, and return the exit code.

        Where the output is a terminal, it is also the run's input, and the terminal of its session.
        """
        request = [list(words), str(folder), dict(variables), str(output), noise]
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            return int(connection.makefile().readline())


@contextlib.contextmanager
def warm_pytest(folder: Path, variables: Mapping[str, str], workers: Path, compiled: Path) -> Iterator[WarmPytest]:
    """Start the process whose forks run pytest, unless it runs already; yield an object that asks it for runs.

    Args:
        folder: the folder that its users share.
        variables: its variables; each run has its own.
        workers: the socket of a process of warm_worker.py.
        compiled: the folder for what XLA has compiled.
    """
    path, variables = folder / "socket", {**variables, "OPENBLAS_NUM_THREADS": "1"}  # threads would be lost in a fork
    with shared_process(folder, [__file__, path, workers, compiled], variables, own_session=True):
        yield WarmPytest(path, workers)


def main(path: str, workers: str, compiled: str) -> None:
    import jax
    from _pytest.junitxml import bin_xml_escape

    from export_core.matrix.cache_keys import hash_of_code
    from export_core.readers.installed import hash_of_this_interpreter

    for name in IMPORTED:
        importlib.import_module(name)
    hash_of_this_interpreter()  # computed once for all forks
    hash_of_code()
    bin_xml_escape("")  # compiles its pattern
    look_up_facts_once()
    read_packages_once()
    look_for_hooks_once()
    prepare_config_once()
    AssertionRewritingHook.mark_rewrite = mark_rewrite
    use_warm_workers(workers)
    share_compiled(compiled)
    share_mlir_context()
    jax.clear_caches()  # as each first export does, which would copy the pages of what importing jax has cached
    os.fsync = lambda descriptor: None  # as in conftest.py
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    print("ready", flush=True)
    running: dict[int, tuple[int, socket.socket]] = {}  # by the descriptors of their processes
    while 0 not in (ready := select.select([listening, 0, *running], [], [])[0]):  # until stdin is at its end
        for number in set(ready) - {listening}:
            answer(*running.pop(number))
            os.close(number)
        if listening not in ready:
            continue
        connection, _ = listening.accept()
        with connection.makefile() as lines:
            request = json.loads(lines.readline())
        if (pid := os.fork()) == 0:
            for opened in (listening, connection, *(other for _, other in running.values())):
                opened.close()
            for number in running:
                os.close(number)
            run_pytest(*request)
        if sys.platform == "linux":
            running[os.pidfd_open(pid)] = pid, connection
        else:  # other systems have no such descriptors: one run after the other
            answer(pid, connection)


def mark_rewrite(hook: AssertionRewritingHook, *names: str) -> None:
    """Note these modules, as pytest does, without warning of plugins that are imported already.

    To find those, pytest looks through the names of all modules, once for each plugin. In a fork, each name that is
    looked at copies a page of memory, which takes a twentieth of a run.
    """
    hook._must_rewrite.update(names)
    hook._marked_for_rewrite_cache.clear()


def answer(pid: int, connection: socket.socket) -> None:
    """Send the exit code of a fork that has ended, or that this waits for."""
    with connection, contextlib.suppress(OSError):  # the other side is gone
        connection.sendall(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())


def look_up_facts_once() -> None:
    """Compute what every run computes and caches: facts of this machine, versions, patterns, decoders of types.

    That is a tenth of a run with one marked test.
    """
    import jax
    import jaxlib
    from jax._src import source_info_util

    from export_core.artifact import read
    from export_core.base.text import shown
    from export_core.goldens import Manifest
    from export_core.matrix import Result, cache_keys
    from export_core.policy import Policy
    from export_core.readers.hardware import instruction_set
    from export_core.readers.worker.protocol import Reply
    from export_core.releases import load_calendar
    from export_core.releases.stable_targets import promised_by

    load_calendar().all_matching_jax(jaxlib.__version__)
    cache_keys.machine()
    promised_by(jax.__version__, jaxlib.__version__)
    assert not read(ARTIFACT).unread
    instruction_set()
    for kind in (Manifest, Policy, Reply, Result):
        with contextlib.suppress(msgspec.ValidationError):
            msgspec.convert({}, kind)
    for pattern in PATTERNS:
        fnmatch.filter((), pattern)
    for expression in EXPRESSIONS:
        re.compile(expression)
    source_info_util.is_user_filename("")
    shown("")
    list(Path(__file__).parent.glob(".old-*"))


def read_packages_once() -> None:
    """Read the metadata of installed packages, which each run of pytest would read three times."""
    for name in ("entry_points", "files", "metadata"):
        once = functools.cached_property(getattr(metadata.Distribution, name).fget)
        once.__set_name__(metadata.Distribution, name)
        setattr(metadata.Distribution, name, once)
    installed, anew = tuple(metadata.distributions()), metadata.distributions
    for package in installed:
        if any(point.group == "pytest11" for point in package.entry_points):
            assert package.metadata
            for file in package.files or ():
                str(file)  # pathlib stores it
    metadata.distributions = lambda **where: anew(**where) if where else iter(installed)
    metadata.Distribution.from_name = staticmethod(functools.cache(metadata.Distribution.from_name))
    for name in ("jax", "jaxlib", "ml_dtypes", "numpy", "pluggy", "pytest", "pytest-jaxexport"):
        metadata.version(name)


def look_for_hooks_once() -> None:
    """Find the hooks and fixtures of plugins, since each run of pytest would look at every name of each plugin."""
    from _pytest.fixtures import FixtureFunctionDefinition, FixtureManager

    packages = ("_pytest.", "platformdirs.", "xdist.", "pytest_")
    plugins = [module for name, module in sys.modules.items() if name.startswith(packages)]
    for module in plugins:
        found = [
            name
            for name, value in vars(module).items()
            if name.startswith("pytest_") or type(value) is FixtureFunctionDefinition
        ]
        module.__dir__ = functools.partial(list, found)  # what `dir` returns
    classes = {value for module in plugins for value in vars(module).values() if inspect.isclass(value)}
    without = {
        kind
        for kind in classes
        if not any(
            type(value) is FixtureFunctionDefinition for owner in inspect.getmro(kind) for value in vars(owner).values()
        )
    }
    parse = FixtureManager.parsefactories

    def parse_some(manager: FixtureManager, *words: object, **named: object) -> None:
        holder = named.get("holder")
        if inspect.ismodule(holder) or type(holder) not in without:
            parse(manager, *words, **named)

    FixtureManager.parsefactories = parse_some


def prepare_config_once() -> None:
    """Register pytest's own plugins, which is a sixth of a run with one test. A run with `-p` may leave some out."""
    anew = config.get_config
    prepared = [anew(prog="python -m pytest")]

    def get_config(args: list[str], plugins: None = None, **named: str) -> config.Config:
        if "-p" in args or not prepared:
            return anew(args, plugins, **named)
        own = prepared.pop()
        own.invocation_params = config.Config.InvocationParams(args=args, plugins=plugins, dir=Path.cwd())
        return own

    config.get_config = get_config


def run_pytest(words: list[str], folder: str, variables: dict[str, str], output: str, noise: str) -> None:
    exec(noise)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    if is_terminal := Path(output).is_char_device():
        os.setsid()  # the first terminal that a session opens is its own, /dev/tty
    os.dup2(os.open(output, os.O_RDWR | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(1 if is_terminal else os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(1, 2)
    sys.argv, sys.path[0] = ["pytest", *words], folder
    if "-n" in words:
        use_forks_in_xdist(int(words[words.index("-n") + 1]))
    try:
        runpy.run_module("pytest", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        # What else an interpreter does at its end is to take apart all that is imported: half of a short run.
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(ended.code or 0))


class ForkedGateway:
    """A fork of this process with the interface of `subprocess.Popen`, for a worker of xdist."""

    def __init__(self) -> None:
        (theirs, ours), (our_end, their_end) = os.pipe(), os.pipe()
        if (pid := os.fork()) == 0:
            for number, descriptor in enumerate((theirs, their_end)):
                os.dup2(descriptor, number)
            os.closerange(3, their_end + 1)
            if line := os.fdopen(0, closefd=False).readline():  # it ends without one if xdist needs no such worker
                exec(eval(line), {})  # as execnet starts an interpreter
            os._exit(0)
        self.pid = pid
        self.stdin, self.stdout = os.fdopen(ours, "wb"), os.fdopen(our_end, "rb")
        os.close(theirs)
        os.close(their_end)

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def use_forks_in_xdist(count: int) -> None:
    """Make workers of xdist forks that are made before pytest starts, so that they are like new interpreters."""
    from execnet import gateway_base, gateway_io

    forks = [ForkedGateway() for _ in range(count + 1)]  # xdist replaces a worker that has died

    class WarmIO(gateway_io.Popen2IOMaster):
        def __init__(self, args: list[str], execmodel: gateway_base.ExecModel) -> None:
            self.popen = forks.pop()
            gateway_base.Popen2IO.__init__(self, self.popen.stdin, self.popen.stdout, execmodel)

    gateway_io.Popen2IOMaster = WarmIO


if __name__ == "__main__":
    main(*sys.argv[1:])
