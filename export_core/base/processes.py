"""Processes that run code of a golden, of a comparator or of a package: the variables that they get, and how they end.

Such code comes with the goldens of a pull request. It gets what Python, jax and its devices need and nothing else: no
token of a CI system, no password of an index, no key of a cloud.
"""

import contextlib
import hashlib
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence

SYSTEM = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "TZ"),
        # Windows: without some of these, no interpreter starts.
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA"),
        *("PROGRAMDATA", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE"),
    }
)
"""What every process needs. None of it decides an outcome, and each machine has its own."""
DEVICES = frozenset(
    ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_TF32_OVERRIDE", "GPU_DEVICE_ORDINAL")
)
KERNELS = frozenset(("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"))
"""Which kernels OpenBLAS takes, in which LAPACK rounds: a machine sets them where it would take wrong ones."""
PREFIXES = ("LC_", "LD_", "DYLD_", "CUDA_", "NCCL_", "ROCM_", "ROCR_", "HIP_", "HSA_", "MIOPEN_")
"""Of locales, of the loader of native libraries, of the drivers of GPUs and what they find."""
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|_KEY", re.IGNORECASE)
"""What no prefix lets through: a variable of such a name is passed only where the policy names it in full."""


_GIT = (
    *("git", "--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit"),
    *("-c", f"core.hooksPath={os.devnull}"),
)
"""How git starts. A folder of a checkout may be a bare repository with a configuration that names commands."""

_ROUNDS = 1000  # About half a millisecond.


def passed_variables(
    added: Iterable[str] = (), prefixes: tuple[str, ...] = (), own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables of this process that such a process gets, those that the policy adds by `environment` included.

    Settings of jax, XLA and Python are not among them: each would make a reader unlike a plain process. `own` are the
    variables of this process if they are not those of now.
    """
    names = SYSTEM | DEVICES | KERNELS | {*added}
    return {
        name: value
        for name, value in (os.environ if own is None else own).items()
        if name in names or (name.startswith(PREFIXES + prefixes) and not _SECRET.search(name))
    }


def kernel_settings(variables: Mapping[str, str]) -> list[str]:
    """Which kernels OpenBLAS is told to take, as a shell sets them: ``OPENBLAS_CORETYPE=Haswell``."""
    return [f"{name}={shlex.quote(variables[name])}" for name in sorted(KERNELS & variables.keys())]


def shell_settings(variables: Mapping[str, str], added: Iterable[str] = ()) -> list[str]:
    """Which variables decide a cell beside its command, as a shell sets them: ``XLA_FLAGS=--xla_cpu_max_isa=AVX``.

    They are the kernels of OpenBLAS and what the policy adds by `environment`, where it is set. Those of XLA and jax
    have their values. Any other may be a secret: ``NAME="${NAME?}"`` takes the shell's own, and ends where it has none.
    """
    settings = {name: f'"${{{name}?}}"' for name in added if name in variables}
    for name in (KERNELS | settings.keys()) & variables.keys():
        if name in KERNELS or name == "XLA_FLAGS" or (name.startswith("JAX_") and not _SECRET.search(name)):
            settings[name] = shlex.quote(variables[name])
    return [f"{name}={value}" for name, value in sorted(settings.items())]


def kernels_in_words(variables: Mapping[str, str]) -> str:
    """``ran with OPENBLAS_CORETYPE=Haswell``, for messages; empty where nothing is set."""
    settings = ", ".join(kernel_settings(variables))
    return f"ran with {settings}" if settings else ""


def deciding_variables(variables: Mapping[str, str]) -> list[tuple[str, str]]:
    """Those that can change what a process does: a part of the key of everything that is cached of it."""
    harmless = SYSTEM | {"PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"}  # without one of its own, a process has any seed
    return sorted(item for item in variables.items() if item[0] not in harmless and not item[0].startswith("LC_"))


def is_of_machine(name: str) -> bool:
    """Whether each machine has a value of its own of a variable: runs are compared whatever it is."""
    return name in SYSTEM | DEVICES | KERNELS or name.startswith(PREFIXES)


def salted_hash(value: str, salt: str) -> str:
    """Return a hash of the value of a variable, which may be a secret: slow, and behind its salt.

    That it is slow keeps short values from being guessed by trying many.
    """
    return f"{salt}:{hashlib.pbkdf2_hmac('sha256', os.fsencode(value), salt.encode(), _ROUNDS).hex()}"


@contextlib.contextmanager
def starting_processes() -> Iterator[None]:
    """Let a module that starts interpreters itself, as multiprocessing does, start them as this package does.

    Meanwhile this process has the variables that such an interpreter gets, and PYTHONSAFEPATH: it does not import from
    the working folder. What reads variables in another thread meanwhile would miss some.
    """
    before = {**os.environ}
    own = {name: before[name] for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE") if name in before}
    try:
        os.environ.clear()
        os.environ.update(passed_variables(own=before) | own | {"PYTHONSAFEPATH": "1"})
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run_git(words: Sequence[str], folder: str | os.PathLike[str], seconds: float) -> bytes:
    """Return what a git command prints that only reads, in a folder whose files somebody else may have made.

    It runs no command of the repository's configuration, and sees no variable that holds a secret.

    Raises:
        OSError: There is no git.
        subprocess.SubprocessError: It failed, or took longer.
    """
    command, variables = [*_GIT, *words], passed_variables()
    return subprocess.run(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=True
    ).stdout


def signal_name(number: int | None) -> str:
    """``signal 11 (SIGSEGV)``, for messages."""
    try:
        return f"signal {number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return f"signal {number}"


def kill_group(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Kill a process that was started with ``start_new_session``, and what it has started itself."""
    if process.poll() is None and hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def ask(process: subprocess.Popen[bytes], question: bytes, seconds: float, longest: int) -> bytes:
    """The line by which a process answers a line; empty where it has ended, and where it is killed after `seconds`."""
    assert process.stdin
    assert process.stdout
    watch = threading.Timer(seconds, kill_group, (process,))
    watch.daemon = True
    watch.start()
    try:
        process.stdin.write(question + b"\n")
        process.stdin.flush()
        return process.stdout.readline(longest)
    except OSError:  # it is gone: its exit status says more
        return b""
    finally:
        watch.cancel()
