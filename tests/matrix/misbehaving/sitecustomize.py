"""On PYTHONPATH of a worker: its cells misbehave, each as the name of its exported function says.

Nothing of the worker is replaced. What misbehaves is jax, as a native library or a wheel gone wrong would.
"""

import importlib.abc
import importlib.machinery
import os
import signal
import sys
import time

print("a library greets on stdout, without a line end", end="", flush=True)


def dies_by_segv():
    os.kill(os.getpid(), signal.SIGSEGV)


def exits_silently():
    os._exit(3)


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
    time.sleep(1)


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
                globals().get(exported.fun_name, lambda: None)()
                return exported

            module.deserialize = misbehave

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Wrap())
