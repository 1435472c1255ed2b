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
"""Variables that every process needs. None of them decides an outcome, and each machine has its own values."""
DEVICES = frozenset(
    ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_TF32_OVERRIDE", "GPU_DEVICE_ORDINAL")
)
KERNELS = frozenset(("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"))
"""Variables that tell OpenBLAS which kernels to take, on which LAPACK's rounding depends.

A machine sets them if OpenBLAS would take wrong kernels.
"""
PREFIXES = ("LC_", "LD_", "DYLD_", "CUDA_", "NCCL_", "ROCM_", "ROCR_", "HIP_", "HSA_", "MIOPEN_")
"""Beginnings of the variables of locales, of the loader of native libraries and of drivers of GPUs."""
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|_KEY", re.IGNORECASE)
"""Names that no prefix lets through: a variable with such a name is passed only if the policy names it in full."""


_GIT = (
    *("git", "--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit"),
    *("-c", f"core.hooksPath={os.devnull}"),
)
"""The start of a git command that runs no hooks or programs, which a repository's configuration may name."""

_ROUNDS = 1000  # About half a millisecond.


def passed_variables(
    added: Iterable[str] = (), prefixes: tuple[str, ...] = (), own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment variables for a process that runs somebody else's code.

    Settings of jax, XLA and Python are left out unless the policy adds them, since a reader must run like any plain
    process.

    Args:
        added: the names that the policy adds by its key `environment`.
        prefixes: the beginnings of the names of further variables that are passed.
        own: the variables to choose from; None for the current variables of this process.
    """
    names = SYSTEM | DEVICES | KERNELS | {*added}
    return {
        name: value
        for name, value in (os.environ if own is None else own).items()
        if name in names or (name.startswith(PREFIXES + prefixes) and not _SECRET.search(name))
    }


def kernel_settings(variables: Mapping[str, str]) -> list[str]:
    """Return the variables that decide which kernels OpenBLAS uses, each in the form in which a shell sets it."""
    return [f"{name}={shlex.quote(variables[name])}" for name in sorted(KERNELS & variables.keys())]


def shell_settings(variables: Mapping[str, str], added: Iterable[str] = ()) -> list[str]:
    """Return the variables that can change a cell's result, each in the form in which a shell sets it for a command.

    `added` are the names that the policy adds by its key `environment`. Variables of OpenBLAS, XLA and jax are shown
    with their values. The value of any other variable may be a secret, so it is written ``NAME="${NAME?}"``, which
    takes the value from the shell.
    """
    settings = {name: f'"${{{name}?}}"' for name in added if name in variables}
    for name in (KERNELS | settings.keys()) & variables.keys():
        if name in KERNELS or name == "XLA_FLAGS" or (name.startswith("JAX_") and not _SECRET.search(name)):
            settings[name] = shlex.quote(variables[name])
    return [f"{name}={value}" for name, value in sorted(settings.items())]


def kernels_in_words(variables: Mapping[str, str]) -> str:
    """Return a phrase for messages such as ``ran with OPENBLAS_CORETYPE=Haswell``; "" if no kernel is set."""
    settings = ", ".join(kernel_settings(variables))
    return f"ran with {settings}" if settings else ""


def deciding_variables(variables: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the variables that can change an outcome, with their values, sorted, for the keys of cached outcomes."""
    harmless = SYSTEM | {"PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"}  # else each process gets a random seed
    return sorted(item for item in variables.items() if item[0] not in harmless and not item[0].startswith("LC_"))


def is_of_machine(name: str) -> bool:
    """Return whether a variable naturally differs between machines, so that comparing runs ignores its value."""
    return name in SYSTEM | DEVICES | KERNELS or name.startswith(PREFIXES)


def salted_hash(value: str, salt: str) -> str:
    """Return the salt and a hash of the value of a variable, which may be a secret.

    The hash is slow to compute, so that short values cannot be guessed by trying many.
    """
    return f"{salt}:{hashlib.pbkdf2_hmac('sha256', os.fsencode(value), salt.encode(), _ROUNDS).hex()}"


@contextlib.contextmanager
def starting_processes() -> Iterator[None]:
    """Set this process's variables to those of `passed_variables` while multiprocessing starts an interpreter.

    PYTHONSAFEPATH is set too, so that the interpreter does not import from the working folder. Another thread that
    reads variables meanwhile misses some of them.
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
    """Run a git command that only reads, in a folder whose files somebody else may have made, and return its output.

    Git does not run commands that the repository's configuration names, and gets no variables that hold secrets.

    Args:
        words: the command, such as ``("ls-files", "-z")``.
        folder: the working folder.
        seconds: the time after which git is killed.

    Raises:
        OSError: There is no git.
        subprocess.SubprocessError: Git failed, or took longer than `seconds`.
    """
    command, variables = [*_GIT, *words], passed_variables()
    return subprocess.run(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=True
    ).stdout


def signal_name(number: int | None) -> str:
    """Return the name of a signal for messages, such as ``signal 11 (SIGSEGV)``."""
    try:
        return f"signal {number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return f"signal {number}"


def kill_group(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Kill a process that was started with ``start_new_session``, and all processes that it has started."""
    if process.poll() is None and hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def ask(process: subprocess.Popen[bytes], question: bytes, seconds: float, longest: int) -> bytes:
    """Send a line to a process, and return its answer, a line of at most `longest` bytes.

    A process that does not answer within `seconds` is killed. The answer is empty if the process has ended or was
    killed.
    """
    assert process.stdin
    assert process.stdout
    watch = threading.Timer(seconds, kill_group, (process,))
    watch.daemon = True
    watch.start()
    try:
        process.stdin.write(question + b"\n")
        process.stdin.flush()
        return process.stdout.readline(longest)
    except OSError:  # it has ended: its exit status is reported
        return b""
    finally:
        watch.cancel()
