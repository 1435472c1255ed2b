"""A module on PYTHONPATH of a worker that makes each cell misbehave as its exported function is named.

No code of the worker is replaced: jax misbehaves, as with a faulty native library or wheel.
"""

import fcntl
import importlib.abc
import importlib.machinery
import os
import pathlib
import resource
import signal
import stat
import sys
import time

print("a library greets on stdout, without a line end", end="", flush=True)


def dies_by_segv():
    os.kill(os.getpid(), signal.SIGSEGV)


def exits_silently():
    os._exit(3)


def closes_its_pipes():
    os.closerange(3, 64)
    time.sleep(60)
    pathlib.Path(os.environ["JAXEXPORT_TEST_FLAKY"]).with_suffix(".awake").touch()


def kills_its_worker():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


def prints_on_stdout():
    print('{"id": 1, "stage": "run", "end": "ok"}')
    print("null\n7\n[1]\n" * 3)
    sys.stdout.flush()
    os.write(1, b'{"ready": true}\n\xff\xfe' * 100)


def reads_stdin():
    if sys.stdin.read() != "":
        raise AssertionError("a cell heard what was meant for its worker")


def says_on_stderr():
    os.write(2, b"error: native code says why\n")
    raise ValueError("jax says little")


def refused_by_version():
    raise NotImplementedError("deserialize unsupported version 9")


def refused_by_age():
    raise ValueError("it seems to be older than the 6-month backward-compatibility window")


def sleeps_a_second():
    pathlib.Path("/proc/self/comm").write_text("asleep")
    time.sleep(1)


def is_flaky():
    while pathlib.Path(os.environ["JAXEXPORT_TEST_FLAKY"]).exists():
        time.sleep(0.1)


def floods():
    for descriptor in (1, 2):
        for _ in range(256):
            os.write(descriptor, b"x" * (1 << 16))
    os.write(2, b"\nand this is the end of it\n")


def finds_a_full_disk():
    pathlib.Path("/dev/full").write_bytes(b"no room")


def keeps_nothing():
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


def says(data):
    """Write to each open pipe, since the cell sends its messages through one of them."""
    printed = os.fstat(2).st_ino
    for file in pathlib.Path("/proc/self/fd").iterdir():
        try:
            kind = file.stat()
            writes = fcntl.fcntl(int(file.name), fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
        except OSError:
            continue
        if stat.S_ISFIFO(kind.st_mode) and writes and kind.st_ino != printed:
            os.write(int(file.name), data)


GARBAGE = {
    "garbage_text": b"terminate called after throwing an instance of std::bad_alloc\n",
    "garbage_binary": bytes(range(256)) * 16,
    "garbage_shape": b'{"stage": ["run"], "end": 7}\n',
    "garbage_list": b"[" * 5000 + b"]" * 5000 + b"\n",
    "garbage_for_another": b'{"id": 1, "stage": "run", "end": "ok"}\n',
    "garbage_after_the_end": b'{"end": "ok"}\n',
}
"""What a cell of such a name says beside what it should."""


def garbage_half():
    says(b'{"stage": "ru')
    os._exit(0)


def garbage_without_end():
    for _ in range(512):
        says(b"7" * (1 << 16))


class Wrap(importlib.abc.MetaPathFinder):
    """Wraps `jax.export.deserialize` once the module has been loaded."""

    def find_spec(self, name, path, target=None):
        if name != "jax.export":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            deserialize = module.deserialize

            def misbehave(data):
                exported = deserialize(data)
                if exported.fun_name in GARBAGE:
                    says(GARBAGE[exported.fun_name])
                globals().get(exported.fun_name, lambda: None)()
                return exported

            module.deserialize = misbehave

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Wrap())
