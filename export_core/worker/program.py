"""Runs goldens in the reader's own interpreter, each in a cold process.

This one file runs in every reader's environment: it imports the standard library, numpy and jax, nothing else, and works on every
Python and jax of the release calendar. What differs between releases is adapted here and nowhere else.

``worker.py serve FILE`` imports jax once and forks for every cell. It never starts a client itself: after that a fork would hang. The
processes of the next cells are forked ahead, and while they wait they copy the pages that any cell writes, and start their clients: each
still runs one cell, and dies. FILE keeps the names of the modules that cells import, for the next worker; it may be empty, missing or old.
``worker.py cell`` runs a single cell, for systems that cannot fork.

Requests come as JSON lines on stdin, replies leave as JSON lines on the descriptor that stdout was at the start:

    {"id": 1, "artifact": PATH, "checks": [CHECK, ...], "register": [[MODULE, PATH], ...], "devices": 1, "x64": false,
     "timeout": 60.0, "memory": BYTES, "platform": "cpu", "described": {"name": ..., "options": {...}} or null}
    {"id": 1, "stage": "run", "check": "", "end": "ok"|"error"|"fault"|"crash"|"timeout"|"memory", "type": ..., "message": ...,
     "refusals": {NAME: MESSAGE}, "shardings": [...], "device": ..., "driver": ..., "signal": ..., "stderr": ..., "seconds": ...}

Where a device is described, the cell ends when it is compiled for such devices: nothing runs. What goes wrong in the stage "environment",
in which the devices are looked for, is no fault of the artifact.

A "fault" is one of the machine: what it is says nothing about the artifact.

A CHECK is one call of the artifact, in this order, the plain one first and with the name "":

    {"name": "vjp1", "vjp": 1, "inputs": PATH, "outputs": PATH or null where the call must be refused,
     "mesh": [[AXIS, SIZE], ...], "place": "own"|"whole"|"spread", "dump": a folder for the modules as text, or null}
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import selectors
import signal
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Say = Callable[[dict[str, Any]], None]

LONGEST_MESSAGE = 4000
LONGEST_STDERR = 4000
LONGEST_DRIVER = 200
MOST_TO_COPY = 64 << 20  # bytes: a cell of 0.12.0.1 writes 19 MB of what its worker has imported
LONGEST_LINE = 8 << 20  # of what a cell says: where its outputs lie on a large mesh takes most
KEY_IMPLEMENTATIONS = {"key_fry": "threefry2x32", "key_rbg": "rbg", "key_urbg": "unsafe_rbg"}
FILE_NAMES = {"key<fry>": "key_fry", "key<rbg>": "key_rbg", "key<urbg>": "key_urbg"}


# --- one cell, in the child -------------------------------------------------------------------------------------------


class NotRefusedError(Exception):
    """A call that must be refused, and was not."""


class NotKeptError(Exception):
    """What came out could not be written."""


class NotImportedError(Exception):
    """A registration module does not work in this reader."""


class NoDevicesError(Exception):
    """The platform has not as many devices as the cell needs."""


def run_cell(request: dict[str, Any], say: Say) -> None:
    """Take one artifact through its stages. `say` is told each stage before it starts."""
    platform, described = request["platform"], request["described"]
    if request["x64"] or request["devices"] > 1:
        configure(x64=request["x64"], devices=request["devices"] if platform == "cpu" else 1)
    devices = None
    if platform != "cpu":
        say({"stage": "environment"})
        devices = described_devices(platform, described) if described else attached_devices(platform)
        driver = "" if described else driver_of(platform, devices[0])
        say({"device": devices[0].device_kind, "driver": driver})
        if len(devices) < request["devices"]:
            raise NoDevicesError("expected %d devices of %s, found %d" % (request["devices"], platform, len(devices)))
    say({"stage": "read"})
    with open(request["artifact"], "rb") as file:
        data = bytearray(file.read())
    for module, path in request["register"]:
        try:
            register(module, path)
        except BaseException as error:
            if of_the_machine(error):
                raise
            said = "%s: %s" % (type(error).__name__, error)
            raise NotImportedError("the module %s cannot be imported in this reader: %s" % (module, said)) from error
    say({"stage": "deserialize"})
    export = export_module()
    exported = export.deserialize(data)
    say({"stage": "module"})
    mlir_module = exported.mlir_module
    if callable(mlir_module):
        mlir_module()

    def one(check: dict[str, Any], say: Say, *, learn: bool = False) -> None:
        if described:
            compile_check(export, exported, check, devices, say, learn=learn)
        else:
            run_check(export, exported, check, say, learn=learn)

    for check in request["checks"]:
        say({"stage": "lower", "check": check["name"]})
        if check["outputs"] is not None:
            one(check, say, learn=request.get("learn", False))
            continue
        try:
            one(check, lambda message: None)
        except Exception as error:
            if of_the_machine(error):
                raise
            say({"refusals": {check["name"]: "%s: %s" % (type(error).__name__, whole_message(error))}})
        else:
            raise NotRefusedError("expected this call to be refused, and it was not")


def run_check(export: Any, exported: Any, check: dict[str, Any], say: Say, *, learn: bool = False) -> None:
    """One call of the artifact: lower, compile, run, and keep what comes out."""
    import jax

    exported, leaves = called(exported, check)
    if check["mesh"]:
        placements = shardings_on(jax.devices(), exported, leaves, check)
        leaves = [leaf if at is None else jax.device_put(leaf, at) for leaf, at in zip(leaves, placements, strict=True)]
    args, kwargs = jax.tree_util.tree_unflatten(exported.in_tree, leaves)
    lowered = jax.jit(call_of(export, exported)).lower(*args, **kwargs)
    compiled = compiled_from(lowered, check, say, learn=learn)
    say({"stage": "run"})
    results = jax.tree_util.tree_leaves(compiled(*args, **kwargs))
    if check["outputs"] is None:
        return
    try:
        save_leaves(check["outputs"], results)
    except OSError as error:  # numpy leaves out the number of some
        raise NotKeptError("the outputs could not be written: %s" % error) from error
    if not check["name"] and check["mesh"]:
        say({"shardings": [parts(value) for value in results]})


def compile_check(
    export: Any, exported: Any, check: dict[str, Any], devices: Any, say: Say, *, learn: bool = False
) -> None:
    """One call of the artifact on arguments that lie on described devices: lower and compile. There is nothing to run it on."""
    import jax
    from jax.sharding import SingleDeviceSharding

    exported, leaves = called(exported, check)
    one = SingleDeviceSharding(devices[0])
    placements = shardings_on(devices, exported, leaves, check) if check["mesh"] else [one] * len(leaves)
    leaves = [
        leaf if leaf.dtype == jax.dtypes.float0 else jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=at)
        for leaf, at in zip(leaves, placements, strict=True)
    ]
    args, kwargs = jax.tree_util.tree_unflatten(exported.in_tree, leaves)
    # Where no argument says for which devices it is, the results do.
    outputs = {} if check["mesh"] else {"out_shardings": one}
    lowered = jax.jit(call_of(export, exported), **outputs).lower(*args, **kwargs)
    compiled_from(lowered, check, say, learn=learn)


def called(exported: Any, check: dict[str, Any]) -> tuple[Any, list[Any]]:
    """What a check calls, and the arguments."""
    import jax

    for _ in range(check["vjp"]):
        exported = exported.vjp()
    if check.get("dump"):
        jax.config.update("jax_dump_ir_to", check["dump"])
        dump(check, "exported.mlir", exported.mlir_module)
    return exported, load_leaves(check["inputs"])


def compiled_from(lowered: Any, check: dict[str, Any], say: Say, *, learn: bool) -> Any:
    """The stage between lowering and running."""
    say({"stage": "compile"})
    compiled = lowered.compile()
    if check.get("dump"):
        dump(check, "compiled.hlo", compiled.as_text)
    if learn:  # before the run: linear algebra may die there
        say({"modules": sorted(sys.modules)})
    return compiled


def described_devices(platform: str, described: dict[str, Any]) -> Any:
    """Devices that compile and cannot run."""
    from jax.experimental import topologies

    return topologies.get_topology_desc(
        platform=platform, topology_name=described["name"], **described["options"]
    ).devices


def attached_devices(platform: str) -> Any:
    """The devices that are there."""
    import jax

    return jax.devices(platform)


def driver_of(platform: str, device: Any) -> str:
    """What drives a device, as the system's module and the client say it."""
    found = []
    module = {"cuda": "nvidia", "rocm": "amdgpu"}.get(platform)
    if module and os.path.exists("/sys/module/%s/version" % module):
        with open("/sys/module/%s/version" % module) as file:
            found.append("%s %s" % (module, file.read().strip()))
    found.append(" ".join(str(getattr(device.client, "platform_version", "")).split()))
    return ", ".join(filter(None, found))[:LONGEST_DRIVER]


def dump(check: dict[str, Any], name: str, text_of: Any) -> None:
    """Write a text beside what jax dumps. That there is no text, or no room for it, is no fault of the artifact."""
    try:
        with open(os.path.join(check["dump"], name), "w", encoding="utf-8") as file:
            file.write((text_of() if callable(text_of) else text_of) or "")
    except Exception as error:
        print("no %s: %s" % (name, error), file=sys.stderr)


def whole_message(error: BaseException) -> str:
    """What an error says, and what the one behind it said: jax's own words are often "Error refining shapes" only."""
    text = str(error)
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while behind is not None and len(text) < LONGEST_MESSAGE:
        if str(behind) not in text:
            text += "\n%s: %s" % (type(behind).__name__, behind)
        behind = behind.__cause__ or (None if behind.__suppress_context__ else behind.__context__)
    return text[:LONGEST_MESSAGE]


def configure(x64: bool, devices: int) -> None:
    """Settings that a jax process takes before it starts its client."""
    import jax

    if x64:
        jax.config.update("jax_enable_x64", True)
    if devices == 1:
        return
    if "jax_num_cpu_devices" in jax.config.values:  # since 0.5.0
        jax.config.update("jax_num_cpu_devices", devices)
    else:
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=%d" % devices


def register(module: str, path: str) -> None:
    """Import the golden's copy of a module under the module's own name."""
    spec = importlib.util.spec_from_file_location(module, path)
    assert spec
    assert spec.loader
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module] = loaded
    spec.loader.exec_module(loaded)


def shardings_on(devices: Any, exported: Any, leaves: list[Any], check: dict[str, Any]) -> list[Any]:
    """Where arguments lie on the mesh of a check: as the artifact wants them, whole on each device, or in pieces of their first axis.

    None for what lies nowhere.
    """
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    names, sizes = [axis for axis, _ in check["mesh"]], [size for _, size in check["mesh"]]
    count = int(np.prod(sizes))
    # Another mesh has other devices in other places.
    chosen = list(devices)[:count] if check["place"] == "own" else list(devices)[:count][::-1]
    mesh = Mesh(np.array(chosen).reshape(sizes), tuple(names))
    wanted = [None] * len(leaves)
    if check["place"] == "own" and hasattr(exported, "in_shardings_jax"):
        wanted = exported.in_shardings_jax(mesh)
    elif check["place"] == "spread":
        wanted = [
            NamedSharding(mesh, PartitionSpec(names[0])) if leaf.ndim and leaf.shape[0] % count == 0 else None
            for leaf in leaves
        ]
    whole = NamedSharding(mesh, PartitionSpec())
    return [
        None if leaf.dtype == jax.dtypes.float0 else sharding or whole
        for leaf, sharding in zip(leaves, wanted, strict=True)
    ]


def parts(value: Any) -> str:
    """Which part of an array lies on which device, by the device's place in the mesh: ``0:[0:8] 1:[8:16]``."""
    described = []
    for place, index in enumerate(value.sharding.devices_indices_map(value.shape).values()):
        extents = [part.indices(size) for part, size in zip(index, value.shape, strict=True)]
        described.append("%d:[%s]" % (place, ",".join("%d:%d" % extent[:2] for extent in extents)))
    return " ".join(described)


def export_module() -> Any:
    """`jax.export` since 0.4.30, `jax.experimental.export` before."""
    found = importlib.util.find_spec("jax.export")
    return importlib.import_module("jax.export" if found else "jax.experimental.export")


def call_of(export: Any, exported: Any) -> Any:
    """`Exported.call` since 0.4.30; a function of the module before."""
    if hasattr(exported, "call"):
        return exported.call
    old = getattr(export, "call", None) or export.call_exported
    return old(exported)


def load_leaves(path: str) -> list[Any]:
    """Arrays as the coordinator stores them: the member's name ends with the dtype that is meant."""
    import jax
    import numpy as np

    leaves = []
    with np.load(path, allow_pickle=False) as archive:
        for name in sorted(archive.files, key=lambda name: int(name.partition(".")[0])):
            dtype, data = name.partition(".")[2], archive[name]
            if dtype in KEY_IMPLEMENTATIONS:
                leaves.append(jax.random.wrap_key_data(data, impl=KEY_IMPLEMENTATIONS[dtype]))
            elif dtype == "float0":
                leaves.append(np.zeros(data.shape, jax.dtypes.float0))
            elif dtype == data.dtype.name:
                leaves.append(data)
            else:
                import ml_dtypes

                leaves.append(data.view(getattr(ml_dtypes, dtype)))
    return leaves


def save_leaves(path: str, values: list[Any]) -> None:
    """The same form, for what came out."""
    import jax
    import numpy as np

    members = {}
    for index, value in enumerate(values):
        dtype = str(value.dtype)
        if dtype.startswith("key<"):
            data = np.asarray(jax.random.key_data(value))
        elif value.dtype == jax.dtypes.float0:
            dtype, data = "float0", np.zeros(value.shape, np.bool_)
        else:
            data = np.asarray(value)
            if data.dtype.kind == "V" or data.dtype.isbuiltin == 2:  # a dtype that NumPy itself lacks
                data = data.view("u%d" % data.dtype.itemsize)
        members["%04d.%s" % (index, FILE_NAMES.get(dtype, dtype))] = data
    np.savez(path, **members)  # type: ignore[arg-type]  # its own keyword is no member name


def cell_process(request: dict[str, Any], say: Say) -> None:
    """Run a cell and tell how it ended; what escapes as a Python exception is told, what does not the parent sees.

    The last word comes last: whoever hears it needs not wait until the process is gone, which takes the system 20 ms.
    """
    try:
        run_cell(request, say)
        if request.get("mappings"):
            say({"pages": copied_pages(request["mappings"])})
        end = {"end": "ok"}
    except BaseException as error:  # the process ends here, whatever it was
        if request.get("learn"):
            say({"modules": sorted(sys.modules)})
        what = "fault" if of_the_machine(error) else "error"
        end = {"end": what, "type": type(error).__name__, "message": whole_message(error)}
    flush()
    say(end)


def flush() -> None:
    """Hand on what Python has kept back of what was printed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the artifact's code may have closed or replaced it
            continue


def start_client() -> None:
    """Do ahead what any process does for its first artifact, whatever is in it: start the client, make a context for MLIR.

    What fails here fails in the cell once more, and is told there.
    """
    try:
        import jax
        from jax._src.interpreters import mlir

        jax.devices()
        mlir.make_ir_context()
    except Exception as error:
        print("not started ahead: %s" % error, file=sys.stderr)


def of_the_machine(error: BaseException) -> bool:
    """Whether the system refused something, such as room on a disk or a file: jax raises errors with such numbers for nothing else."""
    return isinstance(error, NotKeptError) or (isinstance(error, OSError) and error.errno is not None)


def writer_to(descriptor: int) -> Say:
    """A `say` that writes JSON lines to a descriptor."""

    def say(message: dict[str, Any]) -> None:
        # A surrogate, such as of a file's name that is no UTF-8, is nothing that JSON can hold.
        data = (json.dumps(message, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        while data:
            data = data[os.write(descriptor, data) :]

    return say


class Heard:
    """What a cell has said so far. `garbage` says what of it was no message: then nothing that it said counts.

    Native code may write anything to any descriptor. However much that is, it takes no more than a line's memory.
    """

    def __init__(self) -> None:
        self.told: dict[str, Any] = {"stage": "read", "refusals": {}}
        self.end: dict[str, Any] = {}
        self.modules: list[str] | None = None
        self.pages: list[list[int]] | None = None
        self.garbage = ""
        self._words = 0
        self._rest = bytearray()

    def take(self, data: bytes) -> None:
        """Take the next bytes that came."""
        if self.garbage:
            return
        self._rest += data
        if b"\n" in data:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._message(bytes(line))
        if len(self._rest) > LONGEST_LINE:
            self.garbage = "a line of more than %d bytes" % LONGEST_LINE
        if self.garbage:
            self._rest = bytearray()

    @property
    def anything(self) -> bool:
        """Whether there was a word, or what is none."""
        return bool(self._words or self._rest or self.garbage)

    @property
    def whole(self) -> bool:
        """Whether the last word was said, and all were words."""
        return bool(self.end) and not self._rest and not self.garbage

    def close(self) -> None:
        """Nothing comes after this."""
        if self._rest:
            self.garbage = "half a line: %.80r" % bytes(self._rest)

    def _message(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if self.garbage or not said_by_a_cell(message) or self.end:
            self.garbage = self.garbage or "%.80r" % line
            return
        if message.get("end") == "ok" and self.told["stage"] not in ("lower", "compile", "run"):
            self.garbage = "%.80r, in stage %s" % (line, self.told["stage"])
            return
        self._words += 1
        self.told.update((key, message[key]) for key in TOLD if key in message)
        self.told["refusals"].update(message.get("refusals", {}))
        self.modules = message.get("modules", self.modules)
        self.pages = message.get("pages", self.pages)
        self.end = message if "end" in message else {}


TOLD = ("stage", "check", "shardings", "device", "driver")
STAGES = ("environment", "read", "deserialize", "module", "lower", "compile", "run")
FORMS: dict[str, Callable[[Any], bool]] = {
    "stage": lambda value: value in STAGES,
    "end": lambda value: value in ("ok", "error", "fault"),
    "check": lambda value: isinstance(value, str),
    "device": lambda value: isinstance(value, str),
    "driver": lambda value: isinstance(value, str),
    "type": lambda value: isinstance(value, str),
    "message": lambda value: isinstance(value, str),
    "modules": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "pages": lambda value: isinstance(value, list) and all(is_a_range(each) for each in value),
    "shardings": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "refusals": lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
}
"""What a cell's messages hold, and in which shape."""


def is_a_range(value: Any) -> bool:
    """Whether these are an address and a length."""
    return isinstance(value, list) and len(value) == 2 and all(isinstance(n, int) and 0 <= n < 1 << 63 for n in value)


def said_by_a_cell(message: Any) -> bool:
    """Whether this is a message as cells say them."""
    return (
        isinstance(message, dict)
        and bool(message)
        and all(key in FORMS and FORMS[key](value) for key, value in message.items())
    )


# --- many cells, in the server ----------------------------------------------------------------------------------------


class Running:
    """A process that was forked for one cell: the pipes that it is told through, speaks through and prints to, its limits.

    `ahead`: its cell is not known yet, and meanwhile it copies the pages that it will write, and starts the client. Its time begins when
    the cell is given to it.
    """

    def __init__(self, ahead: bool, others: list[int], pages: list[list[int]]) -> None:
        self.ahead = ahead
        self.request: dict[str, Any] = {}
        self.on_a_device = False
        self.heard = Heard()
        self.printed = b""
        self.killed_for: str | None = None
        self.speechless = False  # it said its last word, closed the pipe or was killed: what is left is to end
        self.status: int | None = None  # that its process ended with; None where it may still be ending
        self.started = time.monotonic()
        request, self.requests = os.pipe()
        self.pipe, descriptor = os.pipe()
        self.stderr, stderr = os.pipe()  # a file would let it fill the disk
        self.pid = os.fork()
        if self.pid == 0:
            self._become_cell(request, descriptor, stderr, [*others, self.requests], pages)
        for each in (request, descriptor, stderr):
            os.close(each)
        os.set_blocking(self.stderr, False)

    def _become_cell(
        self, request: int, descriptor: int, stderr: int, others: list[int], pages: list[list[int]]
    ) -> None:
        try:
            die_with_parent()
            os.setpgid(0, 0)  # who is killed takes its own children along
            for each in others:  # those are the worker's
                os.close(each)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # what waits there are requests, and not for a cell
            os.dup2(stderr, 2)
            os.dup2(2, 1)
            if self.ahead:
                copy_pages(pages)
                start_client()
            with os.fdopen(request, "rb") as told:
                line = told.readline()
            if line:  # else the worker is gone, or needs no more cells
                cell_process(json.loads(line), writer_to(descriptor))
        finally:
            os._exit(0)

    def give(self, request: dict[str, Any]) -> None:
        """Give it the cell, which begins now."""
        self.request = request
        self.on_a_device = request["platform"] != "cpu" and not request["described"]
        self.started = time.monotonic()
        try:
            with os.fdopen(self.requests, "wb") as told:
                told.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:  # it is dead, as its other pipes will say
            pass

    def hear(self) -> bool:
        """Read what the cell said. Answers whether it has closed the pipe."""
        data = os.read(self.pipe, 1 << 16)
        self.heard.take(data)
        return not data

    def hear_stderr(self) -> bool:
        """Read what the cell printed, of which the end is kept. Answers whether more may come."""
        try:
            data = os.read(self.stderr, 1 << 16)
        except BlockingIOError:
            return False
        self.printed = (self.printed + data)[-LONGEST_STDERR:]
        return bool(data)

    def enforce_limits(self) -> None:
        """Kill the cell when its time or its memory is used up."""
        if time.monotonic() - self.started > self.request["timeout"]:
            self._kill("timeout")
        elif self.request["memory"] and resident_bytes(self.pid) > self.request["memory"]:
            self._kill("memory")

    def _kill(self, reason: str) -> None:
        if not self.killed_for:
            self.killed_for = reason
            self.speechless = True  # a child of the cell may keep the pipe open
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except OSError:  # it has not got so far as to have a group
                os.kill(self.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the process, without a result."""
        self._kill("shutdown")
        os.waitpid(self.pid, 0)

    @property
    def began(self) -> bool:
        """Whether it got as far as its cell. One that was forked ahead may die, or hang, while it starts the client."""
        return not self.ahead or self.heard.anything

    def over(self) -> bool:
        """Whether it is known what came of it, and its device is free. Nobody ever blocks.

        Who heard the last word needs not wait for the process to end, unless that has memory of a device which the next cell needs.
        """
        if self.heard.whole and not self.killed_for and not self.on_a_device:
            return True
        if not self.speechless:
            return False
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        self.status = status if pid else None
        return bool(pid)

    def close(self) -> None:
        """Read what it printed and close its pipes."""
        ended = time.monotonic()
        while time.monotonic() < ended + 0.5 and self.hear_stderr():  # a child of the cell may go on printing
            continue
        os.close(self.pipe)
        os.close(self.stderr)
        if not self.request:
            os.close(self.requests)

    def reply(self) -> dict[str, Any]:
        """What came of the cell, once it is over."""
        heard, status = self.heard, self.status
        heard.close()
        reply: dict[str, Any] = {
            "id": self.request["id"],
            **heard.told,
            # The worker's own SIGKILL says nothing about the artifact.
            "signal": None if status is None or self.killed_for or not os.WIFSIGNALED(status) else os.WTERMSIG(status),
            "stderr": self.printed.decode(errors="replace"),
            "seconds": round(time.monotonic() - self.started, 4),
        }
        if self.killed_for:
            return {**reply, "end": self.killed_for}
        return {**reply, **last_word(heard, os.WEXITSTATUS(status or 0) if reply["signal"] is None else None)}


def last_word(heard: Heard, status: int | None) -> dict[str, Any]:
    """How a cell ended whose process ended with this exit status, or by a signal where that is None."""
    if status is None:
        return {"end": "crash"}
    if heard.garbage:
        return {"end": "fault", "message": "there was garbage in the pipe of its replies: %s" % heard.garbage}
    return heard.end or {"end": "crash", "message": "the process ended without a word, with status %d" % status}


class Server:
    """Forks a cold process for each request until stdin closes. The first cells teach which modules to import beforehand.

    `notes` is the file in which earlier workers have noted them; empty for none.
    """

    def __init__(self, replies: int, notes: str = "") -> None:
        self.replies = replies
        self.notes = notes
        self.say = writer_to(replies)
        self.selector = selectors.DefaultSelector()
        self.waiting: list[dict[str, Any]] = []
        self.incoming = b""
        self.running: list[Running] = []
        self.ahead: list[Running] = []
        self.ending: list[int] = []
        self.heard = False  # of any cell's modules
        self.learned = False  # of those of a cell that was compiled
        self.starts_ahead = True
        self.mappings: list[list[int]] = []  # of this process, when it forks; empty once their pages are known
        self.pages: list[list[int]] = []  # that each cell writes, whatever is in it

    def serve(self) -> None:
        """Run what comes in on stdin."""
        found = imported()
        if noted := read_notes(self.notes):
            self.prepare(noted)
            self.heard = self.learned = True
        self.say(found)
        self.selector.register(0, selectors.EVENT_READ, None)
        while True:
            # The first cell goes alone: the modules that it imports are imported here, and no later fork pays for them.
            while self.waiting and (self.heard or not self.running):
                self.begin(self.waiting.pop(0))
            for key, _ in self.selector.select(timeout=self.patience()):
                if key.data is None:
                    if not self.take_requests():
                        return
                elif key.data in self.running or key.data in self.ahead:  # else it ended in this very round
                    self.hear(key.data, key.fd)
            self.ending = [pid for pid in self.ending if os.waitpid(pid, os.WNOHANG) == (0, 0)]
            for cell in (*self.running, *self.ahead):
                if cell.over():
                    self.end(cell)
            for cell in self.running:
                cell.enforce_limits()

    def patience(self) -> float | None:
        """Seconds until a process must be looked at that says nothing."""
        if any(cell.speechless for cell in (*self.running, *self.ahead)):
            return 0.005
        return 0.05 if self.running else None

    def take_requests(self) -> bool:
        """Read requests. False when there will be no more: then all that runs is ended."""
        data = os.read(0, 1 << 16)
        if not data:
            for each in (*self.running, *self.ahead):
                each.kill()
            return False
        *lines, self.incoming = (self.incoming + data).split(b"\n")
        self.waiting.extend(json.loads(line) for line in lines)
        return True

    def begin(self, request: dict[str, Any]) -> None:
        """Give a cell to a process that was forked ahead, or to a new one; and have the next one ready soon."""
        ready = may_start_before(request) and self.learned and self.starts_ahead
        cell = self.ahead.pop(0) if ready and self.ahead else self.fork(ahead=False)
        # What a golden's own module imports is for its own cell: registered here, it could not be registered there.
        learn = not self.learned and not request["register"]
        cell.give(dict(request, learn=learn, mappings=self.mappings if ready else []))
        self.running.append(cell)
        if ready and len(self.ahead) < (len(self.running) + 1) // 2:
            self.ahead.append(self.fork(ahead=True))

    def fork(self, *, ahead: bool) -> Running:
        """A new process, to which we listen."""
        cell = Running(ahead, [self.replies, *(other.requests for other in self.ahead)], self.pages)
        self.selector.register(cell.pipe, selectors.EVENT_READ, cell)
        self.selector.register(cell.stderr, selectors.EVENT_READ, cell)
        return cell

    def hear(self, cell: Running, descriptor: int) -> None:
        """Read from one of a cell's pipes."""
        if descriptor == cell.stderr:
            if not cell.hear_stderr():
                self.selector.unregister(cell.stderr)
            return
        closed = cell.hear()
        if self.mappings and cell.heard.pages is not None:  # none where the system does not tell: nobody is asked again
            self.mappings, self.pages = [], cell.heard.pages
        modules, cell.heard.modules = cell.heard.modules, None
        if modules and not self.learned:
            self.heard, self.learned = True, cell.heard.told["stage"] in ("compile", "run")
            self.prepare(modules)
            if self.learned:
                write_notes(self.notes, modules)
        if closed or cell.heard.whole:
            cell.speechless = True
            self.selector.unregister(cell.pipe)

    def prepare(self, names: list[str]) -> None:
        """Import what cells import, so that they need not."""
        import_all(names)
        refuse_if_warm()
        gc.collect()
        gc.freeze()  # else each cell walks, and copies, all that was imported here
        self.mappings, self.pages = private_mappings(), []

    def end(self, cell: Running) -> None:
        """Tell what came of a cell, or begin it anew where it had not begun."""
        (self.running if cell.request else self.ahead).remove(cell)
        for descriptor in (cell.pipe, cell.stderr):
            if descriptor in self.selector.get_map():
                self.selector.unregister(descriptor)
        cell.close()
        if cell.status is None:
            self.ending.append(cell.pid)
        if not cell.began:
            # Whatever killed it: a cell shows what is wrong with the client in the stage where it starts one itself.
            self.starts_ahead = False
            if cell.request:
                self.waiting.insert(0, cell.request)
            return
        self.heard = True
        self.say(cell.reply())


def may_start_before(request: dict[str, Any]) -> bool:
    """Whether nothing that this cell asks for must be done before its process starts the client, and no device is shared."""
    return request["devices"] == 1 and not request["register"] and request["platform"] == "cpu"


def imported() -> dict[str, Any]:
    """Import what every cell needs, and say what was found."""
    import jax
    import jaxlib.version
    import numpy  # noqa: F401

    export_module()
    found = {"jax": jax.__version__, "jaxlib": jaxlib.version.__version__, "python": sys.version.split()[0]}
    return {"ready": True, **found}


def import_all(modules: list[str]) -> None:
    """Import what a cell had to import; what cannot be imported twice is left to the cells."""
    for name in modules:
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except Exception:  # whatever a module raises, its cell imports it itself
                continue


def read_notes(path: str) -> list[str]:
    """The modules that an earlier worker noted; none where the file is not there, or is none."""
    try:
        with open(path, encoding="utf-8") as file:
            names = json.load(file)
    except (OSError, ValueError, RecursionError):
        return []
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []


def write_notes(path: str, names: list[str]) -> None:
    """Note them for the next worker, all or nothing. Without room for it, that one learns them itself."""
    if not path:
        return
    beside = "%s.%d" % (path, os.getpid())
    try:
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(names, file)
        os.replace(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(beside)


def refuse_if_warm() -> None:
    """A client or a second thread here would make later cells warm, or hang them."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if getattr(bridge, "_backends", None):
        raise SystemExit("the worker has started a jax client, so its forks would not be cold")
    tasks = "/proc/self/task"
    if os.path.isdir(tasks) and len(os.listdir(tasks)) > 1:
        raise SystemExit("the worker has %d threads, so its forks could hang" % len(os.listdir(tasks)))


def resident_bytes(pid: int) -> int:
    """Resident memory of a process; 0 where /proc is missing."""
    try:
        with open("/proc/%d/statm" % pid) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def private_mappings() -> list[list[int]]:
    """Start and end of what a fork of this process shares with it until one of them writes. None where /proc is missing."""
    try:
        with open("/proc/self/maps") as file:
            fields = [line.split() for line in file]
    except OSError:
        return []
    return [[int(end, 16) for end in each[0].split("-")] for each in fields if each[1] == "rw-p"]


def copied_pages(mappings: list[list[int]]) -> list[list[int]]:
    """Address and length of what this process no longer shares with the one that it was forked from, by /proc/self/pagemap.

    The bits of an entry (Linux, Documentation/admin-guide/mm/pagemap.rst): 63 present, 61 of a file, 56 mapped by this process alone. A
    page between two is taken along: to ask for it costs more than to copy it.
    """
    import numpy as np

    size = os.sysconf("SC_PAGE_SIZE")
    ranges: list[list[int]] = []
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as file:
            for start, end in mappings:
                file.seek(start // size * 8)
                entries = np.frombuffer(file.read((end - start) // size * 8), np.uint64)
                own = np.flatnonzero(entries >> np.uint64(56) & np.uint64(0b10100001) == 0b10000001)
                for address in (start + own * size).tolist():
                    if ranges and address <= sum(ranges[-1]) + size:
                        ranges[-1][1] = address + size - ranges[-1][0]
                    else:
                        ranges.append([address, size])
    except Exception:  # whatever it is, it is nothing that the artifact did
        return []
    return ranges


def copy_pages(ranges: list[list[int]]) -> None:
    """Write-fault these pages now, in few calls, and not one by one while a cell waits. Nothing in them changes.

    Since Linux 5.14. What is no longer mapped is left out.
    """
    if not ranges or sum(length for _, length in ranges) > MOST_TO_COPY:
        return
    populate_write = 23
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for address, length in ranges:
        madvise(address, length, populate_write)


def die_with_parent() -> None:
    """On Linux, a cell does not outlive a worker that was killed."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def end_with(descriptor: int) -> None:
    """End this process when the other end of a pipe is closed: who asked is gone."""

    def wait() -> None:
        while os.read(descriptor, 1 << 16):
            continue
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """Serve, or run one cell; replies leave on what stdout was at the start."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an exception would look like one of the artifact's
    replies = os.dup(1)
    os.dup2(2, 1)
    os.write(replies, b"\n")  # what was printed before this line must not run into the first reply
    if sys.argv[1] == "serve":
        Server(replies, *sys.argv[2:]).serve()
    else:
        say = writer_to(replies)
        request = json.loads(sys.stdin.readline())
        end_with(os.dup(0))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        say(imported())
        cell_process(request, say)
        os._exit(0)


if __name__ == "__main__":
    main()
