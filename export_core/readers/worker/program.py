"""The worker's program: runs goldens in the reader's own interpreter, each in a cold process.

This one file runs in every reader's environment. It imports the standard library, numpy and jax and nothing of this
project, and works on every Python and jax of the release calendar (CPython 3.10 or newer). What differs between
releases is adapted here and nowhere else; each place says which release.

``program.py serve FILE`` imports jax once and forks for every cell. It never starts a client itself: after that a fork
would hang. The processes of the next cells are forked ahead; while they wait they start their clients. Each still runs
one cell, and dies. FILE has the names of the modules that cells import, for the next worker; it may be empty, missing
or old.
``program.py cell`` runs a single cell, for systems that cannot fork.

Requests come as JSON lines on stdin, replies leave as JSON lines on the descriptor that stdout was at the start. Their
fields are those of `Request` and `Reply` in protocol.py, and the "id" of the cell.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import os
import re
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

HERE = os.path.dirname(os.path.abspath(__file__))  # not on the path: jax and the artifact must not find its modules
LONGEST_MESSAGE = 4000
LONGEST_STDERR = 4000
LONGEST_DRIVER = 200
LONGEST_LINE = 8 << 20  # of a cell's messages; the longest says where its outputs are on a large mesh
KEY_IMPLEMENTATIONS = {"key_fry": "threefry2x32", "key_rbg": "rbg", "key_urbg": "unsafe_rbg"}
FILE_NAMES = {"key<fry>": "key_fry", "key<rbg>": "key_rbg", "key<urbg>": "key_urbg"}


# --- one cell: its stages ---------------------------------------------------------------------------------------------


class NotRefusedError(Exception):
    """A call that must be refused, and was not."""


class NotWrittenError(Exception):
    """The outputs could not be written."""


class NotImportedError(Exception):
    """A registration module does not work in this reader."""


class NoDevicesError(Exception):
    """The platform has not as many devices as the cell needs."""


def run_cell(request: dict[str, Any], say: Say) -> None:
    """Take one artifact through its stages. `say` reports each stage before it starts."""
    devices = prepare_devices(request, say)
    say({"stage": "read"})
    data = bytearray(os.path.getsize(request["artifact"]))
    with open(request["artifact"], "rb") as file:
        file.readinto(data)
    for module, path in request["register"]:
        register(module, path)
    say({"stage": "deserialize"})
    export = export_module()
    seconds, exported = timed(export.deserialize, data)
    del data  # the largest thing in memory, of which jax has made a copy
    say({"stage": "module", "timings": {"deserialize": few_digits(seconds)}})
    parse_module(exported)
    if request.get("warm"):
        import jax
        import numpy as np

        # Until 0.9.2 LAPACK calls die in a process that has not traced linear algebra.
        jax.jit(jax.numpy.linalg.cholesky).lower(np.eye(2, dtype=np.float32))
    for check in request["checks"]:
        say({"stage": "lower", "check": check["name"]})
        if check["outputs"] is not None:
            run_check(export, exported, check, devices, request, say)
            continue
        try:
            run_check(export, exported, check, devices, request, lambda message: None)
        except Exception as error:
            if is_machine_fault(error):
                raise
            say({"refusals": {check["name"]: "%s: %s" % (type(error).__name__, whole_message(error))}})
        else:
            raise NotRefusedError("expected this call to be refused, and it was not")


def prepare_devices(request: dict[str, Any], say: Say) -> Any:
    """The devices of a platform other than the CPU; None for the CPU, whose devices a call finds by itself."""
    import jax

    platform, described, count = request["platform"], request["described"], request["devices"]
    configure(x64=request["x64"], devices=count if platform == "cpu" else 1)
    if platform == "cpu":
        return None
    say({"stage": "environment"})
    if described:
        from jax.experimental import topologies

        name, options = described["name"], described["options"]
        devices = topologies.get_topology_desc(platform=platform, topology_name=name, **options).devices
    else:
        devices = jax.devices(platform)
    say({"device": devices[0].device_kind, "driver": "" if described else driver_of(platform, devices[0])})
    if len(devices) < count:
        raise NoDevicesError("expected %d devices of %s, found %d" % (count, platform, len(devices)))
    return devices


def register(module: str, path: str) -> None:
    """Import the golden's copy of a module under the module's own name. Raises `NotImportedError`."""
    try:
        spec = importlib.util.spec_from_file_location(module, path, loader=SourceOnly(module, path))
        assert spec
        assert spec.loader
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[module] = loaded
        spec.loader.exec_module(loaded)
    except BaseException as error:
        if is_machine_fault(error):
            raise
        reason = "%s: %s" % (type(error).__name__, error)
        raise NotImportedError("the module %s cannot be imported in this reader: %s" % (module, reason)) from error


class SourceOnly(importlib.machinery.SourceFileLoader):
    """Compiles a module each time: a golden is never written to, and bytecode beside its files is not one of them."""

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


def run_check(
    export: Any, exported: Any, check: dict[str, Any], devices: Any, request: dict[str, Any], say: Say
) -> None:
    """One call of the artifact: lower, compile, run, and write what comes out. On described devices nothing runs."""
    import jax

    for _ in range(check["vjp"]):
        exported = exported.vjp()
    if check.get("dump"):
        jax.config.update("jax_dump_ir_to", check["dump"])
        dump(check, "exported.mlir", exported.mlir_module)
    leaves, devices, described = load_leaves(check["inputs"]), devices or jax.devices(), request["described"]
    args, kwargs = placed_arguments(exported, leaves, check, devices, described)
    # On described devices, a call without arguments compiles for those of its results.
    outputs = {"out_shardings": one_device(devices)} if described and not check["mesh"] else {}
    with mesh_around(check, leaves, devices):
        lowering, lowered = timed(jax.jit(call_of(export, exported), **outputs).lower, *args, **kwargs)
    say({"stage": "compile"})
    compiling, compiled = timed(lowered.compile)
    if not check["name"]:
        times = {"lower": few_digits(lowering), "compile": few_digits(compiling), "peak_bytes": peak_bytes()}
        say({"cost": cost_of(compiled), "timings": times})
    if check.get("dump"):
        dump(check, "compiled.hlo", compiled.as_text)
    if request.get("learn"):  # before the run: linear algebra may die there
        say({"modules": sorted(sys.modules)})
    if described:
        return
    say({"stage": "run"})
    seconds, results = timed(lambda: jax.block_until_ready(jax.tree_util.tree_leaves(compiled(*args, **kwargs))))
    if check["outputs"] is None:
        return
    if not check["name"]:
        say({"timings": {"run": few_digits(seconds), "peak_bytes": peak_bytes()}})
    save_leaves(check["outputs"], results)
    if not check["name"] and check["mesh"]:
        say({"shardings": [shard_layout(value) for value in results]})
    # With ordered effects a compiled program takes a token from its first call that it lacks in the second.
    takes_token = bool(getattr(exported, "ordered_effects", ()))
    if request["repeat"] and not check["name"] and not takes_token:
        runs = [timed(lambda: jax.block_until_ready(compiled(*args, **kwargs)))[0] for _ in range(request["repeat"])]
        say({"timings": {"runs": runs}})
    programs = Variants(call_of(export, exported), lowered, compiled, again=takes_token)
    compiled = None  # no name but one holds a program: its memory is free when the next one is compiled
    for variant in check.get("variants", ()):
        say({"variant": variant["name"]})
        try:
            args, kwargs = placed_arguments(exported, load_leaves(variant["inputs"]), check, devices, None)
            with mesh_around(check, leaves, devices):
                results = programs.run(variant, args, kwargs)
            save_leaves(variant["outputs"], jax.tree_util.tree_leaves(results))
        except Exception as error:
            if is_machine_fault(error):
                raise
            say({"failed": {variant["name"]: "%s: %s" % (type(error).__name__, whole_message(error))}})


class Variants:
    """Runs the variants of a call. A program is compiled once for those that follow each other with the same one.

    `again`: each run compiles anew, since a program cannot be called twice.
    """

    def __init__(self, call: Callable[..., Any], lowered: Any, compiled: Any, *, again: bool) -> None:
        self.call = call
        self.lowered = lowered
        self.program = compiled
        self.again = again
        self.kind: tuple[bool, dict[str, Any]] = (False, {})
        self.problem: Exception | None = None

    def run(self, variant: dict[str, Any], args: Any, kwargs: Any) -> Any:
        is_moved, options = kind = bool(variant["numbers"]), variant["options"]
        if self.again or kind != self.kind:
            self.program, self.kind, self.problem = None, kind, None
            try:
                lowered = self.lowered
                if is_moved:
                    if "moved_inside" not in sys.modules:
                        register("moved_inside", os.path.join(HERE, "moved_inside.py"))
                    lowered = sys.modules["moved_inside"].lower_moved(self.call, args, kwargs)
                self.program = lowered.compile(compiler_options=options or None)
            except Exception as error:
                self.problem = error
        if self.problem:  # it would fail again for each variant of this program
            raise self.problem
        if not is_moved:
            return self.program(*args, **kwargs)
        import numpy as np

        return self.program(np.array(variant["numbers"], np.uint32), args, kwargs)


def dump(check: dict[str, Any], name: str, text: Callable[[], Any]) -> None:
    """Write a text beside what jax dumps. That there is no text, or no room for it, is no fault of the artifact."""
    try:
        with open(os.path.join(check["dump"], name), "w", encoding="utf-8") as file:
            file.write(str(text() or ""))
    except Exception as error:
        print("no %s: %s" % (name, error), file=sys.stderr)


# --- one cell: what it costs ------------------------------------------------------------------------------------------

MEMORY = {
    "temp_bytes": "temp_size_in_bytes",
    "argument_bytes": "argument_size_in_bytes",
    "output_bytes": "output_size_in_bytes",
    "alias_bytes": "alias_size_in_bytes",
    "code_bytes": "generated_code_size_in_bytes",
}
ESTIMATES = {"flops": "flops", "transcendentals": "transcendentals", "bytes_accessed": "bytes accessed"}
KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys((*MEMORY, "instructions", "fusions", "peak_bytes"), (int,)),
    **dict.fromkeys((*ESTIMATES, "deserialize", "lower", "compile", "run"), (int, float)),
}
# A line of HLO as text: "  ROOT %name = f32[2]{0} fusion(%other), kind=kLoop", where the shape may have T(8,128) in it.
INSTRUCTION = re.compile(r"^ +(?:ROOT )?%?[^ ]+ = .*? ([a-z][a-z0-9-]*)\(", re.MULTILINE)


def timed(do: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[float, Any]:
    """How many seconds a call took, and what it returned."""
    started = time.perf_counter()
    result = do(*args, **kwargs)
    return time.perf_counter() - started, result


def few_digits(value: float) -> float:
    """Three digits of a number that differs each time anyway: results with equal numbers share them."""
    return float("%.3g" % value)


def peak_bytes() -> int | None:
    """The most resident memory that this process had so far; None where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(few_digits(peak * (1 if sys.platform == "darwin" else 1024)))


def cost_of(compiled: Any) -> dict[str, Any]:
    """What the compiler says of a program. What this release or platform does not say is None, and is no error."""

    def memory() -> dict[str, Any]:
        stats = compiled.memory_analysis()
        return {name: getattr(stats, field, None) for name, field in MEMORY.items()}

    def estimates() -> dict[str, Any]:
        estimate = compiled.cost_analysis()
        estimate = estimate[0] if isinstance(estimate, list) else estimate  # until 0.4.38, one for each program
        # XLA leaves zeros out, and has -1 for what it cannot estimate.
        return {name: estimate.get(key, 0.0) for name, key in ESTIMATES.items()} if estimate else {}

    def counts() -> dict[str, Any]:
        opcodes = INSTRUCTION.findall(compiled.as_text())  # which spells out no large constant
        return {"instructions": len(opcodes), "fusions": opcodes.count("fusion")} if opcodes else {}

    figures: dict[str, Any] = {}
    for figures_of in (memory, estimates, counts):
        try:
            figures.update(figures_of())
        except Exception:  # such as "Unimplemented", of some plugins
            continue
    return {name: value if is_figure(value, KINDS[name]) else None for name, value in figures.items()}


def is_figure(value: Any, kinds: tuple[type, ...] = (int, float)) -> bool:
    """Whether this is a number that a reply can hold: neither negative, nor NaN, nor infinite."""
    return type(value) in kinds and 0 <= value < 1 << 63


def are_figures(value: Any) -> bool:
    """Whether these are figures by name, as `Cost` and `Timings` of protocol.py have them."""
    return isinstance(value, dict) and all(
        figure is None
        or (name in KINDS and is_figure(figure, KINDS[name]))
        or (name == "runs" and isinstance(figure, list) and all(map(is_figure, figure)))
        for name, figure in value.items()
    )


# --- one cell: devices, arguments and outputs -------------------------------------------------------------------------


def driver_of(platform: str, device: Any) -> str:
    """The versions of the kernel module and of the client that drive a device."""
    versions = []
    module = {"cuda": "nvidia", "rocm": "amdgpu"}.get(platform)
    if module and os.path.exists("/sys/module/%s/version" % module):
        with open("/sys/module/%s/version" % module) as file:
            versions.append("%s %s" % (module, file.read().strip()))
    versions.append(" ".join(str(getattr(device.client, "platform_version", "")).split()))
    return ", ".join(filter(None, versions))[:LONGEST_DRIVER]


def one_device(devices: Any) -> Any:
    """The sharding of an array that is whole on the first device."""
    from jax.sharding import SingleDeviceSharding

    return SingleDeviceSharding(devices[0])


def placed_arguments(exported: Any, leaves: list[Any], check: dict[str, Any], devices: Any, described: Any) -> Any:
    """The arguments of a call, positional and by keyword, on these devices; on described ones without any data."""
    import jax

    shardings: list[Any] = [None] * len(leaves)
    if check["mesh"]:
        shardings = shardings_on(devices, exported, leaves, check)
    elif described:
        shardings = [None if leaf.dtype == jax.dtypes.float0 else one_device(devices) for leaf in leaves]

    def place(leaf: Any, sharding: Any) -> Any:
        if described:
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
        return jax.device_put(leaf, sharding)

    leaves = [leaf if at is None else place(leaf, at) for leaf, at in zip(leaves, shardings, strict=True)]
    return jax.tree_util.tree_unflatten(exported.in_tree, leaves)


def mesh_on(devices: Any, check: dict[str, Any]) -> Any:
    """The mesh of a check."""
    import numpy as np
    from jax.sharding import Mesh

    names, sizes = [axis for axis, _ in check["mesh"]], [size for _, size in check["mesh"]]
    chosen = list(devices)[: int(np.prod(sizes))]
    # "whole" and "spread" stand for a caller whose mesh is not the exporter's: the same devices in another order.
    return Mesh(np.array(chosen if check["place"] == "own" else chosen[::-1]).reshape(sizes), tuple(names))


def mesh_around(check: dict[str, Any], leaves: list[Any], devices: Any) -> Any:
    """The context in which an artifact is called: without arguments, its devices are those of the mesh around it.

    Until 0.6.2, which has no `jax.set_mesh`, such an artifact for several devices cannot be called.
    """
    import jax

    if leaves or not check["mesh"] or not hasattr(jax, "set_mesh"):
        return contextlib.nullcontext()
    return jax.set_mesh(mesh_on(devices, check))


def shardings_on(devices: Any, exported: Any, leaves: list[Any], check: dict[str, Any]) -> list[Any]:
    """The sharding of each argument on the mesh of a check; None for an argument without data.

    As the artifact wants it, whole on each device, or split along its first axis.
    """
    import jax
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as Spec

    mesh = mesh_on(devices, check)
    wanted: list[Any] = [None] * len(leaves)
    if check["place"] == "own":
        # JSON has lists for the tuples of axes.
        specs = [spec and [tuple(axes) if isinstance(axes, list) else axes for axes in spec] for spec in check["specs"]]
        given = [None if spec is None else NamedSharding(mesh, Spec(*spec)) for spec in specs]
        own = artifact_shardings(exported, mesh) or wanted
        wanted = [at or other for at, other in zip(own, given or wanted, strict=True)]
    elif check["place"] == "spread":
        split = NamedSharding(mesh, Spec(mesh.axis_names[0]))
        wanted = [split if leaf.ndim and leaf.shape[0] % mesh.size == 0 else None for leaf in leaves]
    whole = NamedSharding(mesh, Spec())
    return [
        None if leaf.dtype == jax.dtypes.float0 else sharding or whole
        for leaf, sharding in zip(leaves, wanted, strict=True)
    ]


def shard_layout(value: Any) -> str:
    """Which part of an array is on which device, by the device's place in the mesh: ``0:[0:8] 1:[8:16]``.

    Of an unreduced array also the axes over which it is to be summed.
    """
    described = []
    axes = unreduced_axes(value.sharding)
    for place, index in enumerate(without_unreduced(value.sharding).devices_indices_map(value.shape).values()):
        extents = [part.indices(size) for part, size in zip(index, value.shape, strict=True)]
        described.append("%d:[%s]" % (place, ",".join("%d:%d" % extent[:2] for extent in extents)))
    return " ".join(described) + (" unreduced over %s" % ", ".join(axes) if axes else "")


def load_leaves(path: str) -> list[Any]:
    """Arrays as the coordinator stores them. Members are called ``0000.DTYPE``: .npy knows no bfloat16, key, float0."""
    import jax
    import numpy as np

    leaves = []
    with np.load(path, allow_pickle=False) as archive:
        for name in sorted(archive.files, key=lambda name: int(name.partition(".")[0])):
            dtype, data = name.partition(".")[2], archive[name]
            if dtype in KEY_IMPLEMENTATIONS:
                data = jax.random.wrap_key_data(data, impl=KEY_IMPLEMENTATIONS[dtype])
            elif dtype == "float0":
                data = np.zeros(data.shape, jax.dtypes.float0)
            elif dtype != data.dtype.name:
                import ml_dtypes

                data = data.view(getattr(ml_dtypes, dtype))
            leaves.append(data)
    return leaves


def save_leaves(path: str, values: list[Any]) -> None:
    """Write outputs in the same form. Raises `NotWrittenError` where the disk refuses."""
    import jax
    import numpy as np

    members = {}
    for index, value in enumerate(values):
        if unreduced_axes(getattr(value, "sharding", None)):  # jax gives nobody the terms of such a sum
            value = jax.sharding.reshard(value, jax.sharding.NamedSharding(value.sharding.mesh, jax.P()))
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
    try:
        np.savez(path, **members)  # type: ignore[arg-type]  # its own keyword is no member name
    except OSError as error:  # numpy raises some without an errno, by which `is_machine_fault` knows them
        raise NotWrittenError("the outputs could not be written: %s" % error) from error


# --- one cell: what differs between releases of jax -------------------------------------------------------------------


def export_module() -> Any:
    """`jax.export` since 0.4.30, `jax.experimental.export` before."""
    is_new = importlib.util.find_spec("jax.export")
    return importlib.import_module("jax.export" if is_new else "jax.experimental.export")


def parse_module(exported: Any) -> None:
    """Have jaxlib parse the module. Until 0.10.0 jax then also prints it: large constants take several times as much.

    What is not public may be gone in a later release, and then it is printed.
    """
    try:
        from jax._src.interpreters import mlir

        if "serialized" not in inspect.signature(exported.mlir_module).parameters:
            raise AttributeError("mlir_module")
        context = mlir.make_ir_context()
    except (ImportError, AttributeError):
        exported.mlir_module()
        return
    with context:
        exported.mlir_module(serialized=False)


def call_of(export: Any, exported: Any) -> Any:
    """The function of an artifact: a method since 0.4.30; `call` until 0.4.29 and `call_exported` until 0.4.23."""
    if hasattr(exported, "call"):
        return exported.call
    old = getattr(export, "call", None) or export.call_exported
    return old(exported)


def artifact_shardings(exported: Any, mesh: Any) -> list[Any] | None:
    """The sharding that an artifact wants of each argument, on this mesh; None until 0.4.28, which cannot say it."""
    from jax.sharding import Mesh

    if not hasattr(exported, "in_shardings_jax"):
        return None

    def mesh_like(abstract: Any) -> Any:
        devices = mesh.devices.reshape(abstract.axis_sizes)
        return Mesh(devices, abstract.axis_names, axis_types=abstract.axis_types)

    # Since 0.9.0 shardings name their mesh, and jax places them on no other. Arguments may have different ones, and
    # meshes may have explicit axes: each is made of the same devices.
    named = getattr(exported, "_in_named_shardings", None) or ()
    meshes = [None if sharding is None else mesh_like(sharding.mesh) for sharding in named]
    if not any(meshes):
        return list(exported.in_shardings_jax(mesh))
    if len({at for at in meshes if at}) > 1:
        # Each argument is given whole on the golden's mesh, the one with the most axes. Else jax gives results that of
        # the first argument, which may have too few for them.
        return None
    # An unreduced argument is the sum of one that is whole on each device: jax makes it of that, and of nothing else.
    return [at and without_unreduced(sharding.update(mesh=at)) for sharding, at in zip(named, meshes, strict=True)]


def unreduced_axes(sharding: Any) -> list[str]:
    """The axes over which an array is a sum that was not made, since 0.7; none for most."""
    return sorted(getattr(getattr(sharding, "spec", None), "unreduced", None) or ())


def without_unreduced(sharding: Any) -> Any:
    """The sharding of an array whose sums are made."""
    if not unreduced_axes(sharding):
        return sharding
    spec = sharding.spec
    return sharding.update(spec=type(spec)(*getattr(spec, "partitions", spec)))  # the attribute exists since 0.10


def configure(x64: bool, devices: int) -> None:
    """Settings that a jax process takes before it starts its client."""
    import jax

    if x64:
        jax.config.update("jax_enable_x64", True)
    if devices == 1:
        return
    if "jax_num_cpu_devices" in jax.config.values:  # since 0.5.0
        jax.config.update("jax_num_cpu_devices", devices)
    else:  # until 0.4.38 only XLA knows such a setting, and reads it when the client starts
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=%d" % devices


def start_ahead(client: bool) -> None:
    """Do ahead what any process does for its first artifact. A spare process starts its client, too.

    MLIR registers its dialects, and Python reads which packages are installed, among which jax looks for plugins. In
    the worker, once for all its cells, this takes 5 ms of each one's 12 before it reads its artifact
    (docs/explanation/performance.md), and starts no thread. What fails here is no error, such as a release that has
    moved something in `jax._src`: what matters fails in the cell once more.
    """
    try:
        from importlib.metadata import entry_points

        import jax
        from jax._src.interpreters import mlir

        if client:
            jax.devices()
        else:
            entry_points(group="jax_plugins")
        mlir.make_ir_context()
    except Exception as error:
        print("not done ahead: %s" % error, file=sys.stderr)


def refuse_if_warm() -> None:
    """End a worker that has a client or a second thread: later cells would be warm, or hang."""
    # No public function of jax says so without starting a client. If a release renames this table, its threads show.
    bridge = sys.modules.get("jax._src.xla_bridge")
    if getattr(bridge, "_backends", None):
        raise SystemExit("the worker has started a jax client, so its forks would not be cold")
    tasks = "/proc/self/task"
    if os.path.isdir(tasks) and len(os.listdir(tasks)) > 1:
        raise SystemExit("the worker has %d threads, so its forks could hang" % len(os.listdir(tasks)))


# --- one cell: how it ends, and what it says --------------------------------------------------------------------------


def report_cell(request: dict[str, Any], say: Say, shared_memory: list[tuple[int, int]]) -> None:
    """Run a cell and say how it ended: a Python exception is reported here, any other end is seen by the parent.

    `shared_memory` is what the worker wants to know the written pages of. The last word comes last: whoever reads it
    need not wait until the process has ended, which takes the system 20 ms.
    """
    try:
        run_cell(request, say)
        if shared_memory:
            say({"pages": written_pages(shared_memory)})
        end = {"end": "ok"}
    except BaseException as error:  # the process ends here, whatever it was
        if request.get("learn"):
            say({"modules": sorted(sys.modules)})
        what = "fault" if is_machine_fault(error) else "error"
        end = {"end": what, "type": type(error).__name__, "message": whole_message(error)}
    for stream in (sys.stdout, sys.stderr):  # what Python still buffers of what was printed
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the artifact's code may have closed or replaced it
            continue
    say(end)


def is_machine_fault(error: BaseException) -> bool:
    """Whether the system refused something, such as room on a disk: jax raises no errors of its own with an errno."""
    return isinstance(error, NotWrittenError) or (isinstance(error, OSError) and error.errno is not None)


def whole_message(error: BaseException) -> str:
    """The message of an error and of those behind it: jax's own is often no more than "Error refining shapes"."""
    text, behind = str(error), error
    while len(text) < LONGEST_MESSAGE:
        cause = behind.__cause__ or (None if behind.__suppress_context__ else behind.__context__)
        if cause is None:
            break
        behind = cause
        if str(behind) not in text:
            text += "\n%s: %s" % (type(behind).__name__, behind)
    return text[:LONGEST_MESSAGE]


def writer_to(descriptor: int) -> Say:
    """A `say` that writes JSON lines to a descriptor."""

    def say(message: dict[str, Any]) -> None:
        # JSON cannot hold a surrogate, such as one of a file name that is not UTF-8.
        data = (json.dumps(message, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        while data:
            data = data[os.write(descriptor, data) :]

    return say


# --- what a cell has said: read by the worker, or by the coordinator for a single cell --------------------------------


class Transcript:
    """What a cell has said so far. `garbage` is the first part that was no message: then nothing that it said counts.

    Native code may write anything to any descriptor. However much that is, it takes no more than a line's memory.
    `has_begun`: anything came, a message or not.
    """

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {"stage": "read", "refusals": {}, "failed": {}}
        self.end: dict[str, Any] = {}
        self.modules: list[str] | None = None
        self.pages: list[int] | None = None
        self.garbage = ""
        self.has_begun = False
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        """Take the next bytes that came."""
        self.has_begun = self.has_begun or bool(data)
        if self.garbage:
            return
        self._rest += data
        if b"\n" in data:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._read_message(bytes(line))
        if len(self._rest) > LONGEST_LINE:
            self.garbage = "a line of more than %d bytes" % LONGEST_LINE
        if self.garbage:
            self._rest = bytearray()

    @property
    def is_complete(self) -> bool:
        """Whether the last word was said, and all was messages."""
        return bool(self.end) and not self._rest and not self.garbage

    def close(self) -> None:
        """Nothing comes after this."""
        if self._rest:
            self.garbage = "half a line: %.80r" % bytes(self._rest)

    def _read_message(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if self.garbage or not is_message(message) or self.end:
            self.garbage = self.garbage or "%.80r" % line
            return
        if message.get("end") == "ok" and self.fields["stage"] not in ("lower", "compile", "run"):
            self.garbage = "%.80r, in stage %s" % (line, self.fields["stage"])
            return
        self.fields.update((key, message[key]) for key in REPLIED if key in message)
        for name in ("refusals", "failed"):
            self.fields[name].update(message.get(name, {}))
        if "timings" in message:
            self.fields["timings"] = {**self.fields.get("timings", {}), **message["timings"]}
        self.modules = message.get("modules", self.modules)
        self.pages = message.get("pages", self.pages)
        self.end = message if "end" in message else {}


REPLIED = ("stage", "check", "variant", "shardings", "device", "driver", "cost")
"""What of a cell's messages goes into its reply, the latest of each."""
STAGES = ("environment", "read", "deserialize", "module", "lower", "compile", "run")

FORMS: dict[str, Callable[[Any], bool]] = {
    "stage": lambda value: value in STAGES,
    "end": lambda value: value in ("ok", "error", "fault"),
    **dict.fromkeys(("check", "variant", "device", "driver", "type", "message"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("modules", "shardings"), lambda value: isinstance(value, list) and are_all(value, str)),
    "pages": lambda value: isinstance(value, list) and are_all(value, int) and len(value) % 2 == 0,
    **dict.fromkeys(("refusals", "failed"), lambda value: isinstance(value, dict) and are_all(value.values(), str)),
    **dict.fromkeys(("cost", "timings"), are_figures),
}
"""What a cell's messages hold, and in which form."""


def are_all(values: Any, kind: type) -> bool:
    """Whether all of them are of one type."""
    return all(isinstance(value, kind) for value in values)


def is_message(value: Any) -> bool:
    """Whether this is a message as cells write them."""
    return isinstance(value, dict) and bool(value) and all(key in FORMS and FORMS[key](value[key]) for key in value)


def last_word(transcript: Transcript, status: int | None) -> dict[str, Any]:
    """How a cell ended whose process ended with this exit status, or by a signal: None."""
    if status is None:
        return {"end": "crash"}
    if transcript.garbage:
        return {"end": "fault", "message": "there was garbage in the pipe of its replies: %s" % transcript.garbage}
    return transcript.end or {"end": "crash", "message": "the process ended without a word, with status %d" % status}


# --- many cells: the worker that forks --------------------------------------------------------------------------------


class CellProcess:
    """A process that was forked for one cell: its three pipes (request, messages, stderr), its limits, how it ended.

    A `spare` one was forked ahead: its cell is not known yet, and meanwhile it copies the pages that it will write, and
    starts the client. Its time begins when the cell is given to it.
    """

    def __init__(self, spare: bool, not_its_own: list[int], pages: list[int] | None) -> None:
        self.spare = spare
        self.request: dict[str, Any] = {}
        self.transcript = Transcript()
        self.printed = b""
        self.killed_for: str | None = None
        self.silent = False  # it said its last word, closed the pipe or was killed: all that is left is that it ends
        self.status: int | None = None  # that its process ended with; None while it may still be ending
        self.started = time.monotonic()
        request, self.requests = os.pipe()
        self.messages, messages = os.pipe()
        self.stderr, stderr = os.pipe()  # a file would let a cell fill the disk
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:  # whatever happens, this process must not go on as a second worker
                die_with(parent)
                os.setpgid(0, 0)  # killing the group takes along what the cell has started itself
                for descriptor in (*not_its_own, self.requests):
                    os.close(descriptor)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the worker's stdin has requests, and not for a cell
                os.dup2(stderr, 2)
                os.dup2(2, 1)
                become_cell(request, messages, spare, pages)
            finally:
                os._exit(0)
        for descriptor in (request, messages, stderr):
            os.close(descriptor)
        os.set_blocking(self.stderr, False)

    def give(self, request: dict[str, Any]) -> None:
        """Give it the cell, which begins now."""
        self.request = request
        self.started = time.monotonic()
        try:
            with os.fdopen(self.requests, "wb") as pipe:
                pipe.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:  # it is dead, as its other pipes will show
            pass

    def read_stderr(self) -> bool:
        """Read what the cell printed, of which the end is stored. False when nothing more comes for now."""
        try:
            data = os.read(self.stderr, 1 << 16)
        except BlockingIOError:
            return False
        self.printed = (self.printed + data)[-LONGEST_STDERR:]
        return bool(data)

    def kill(self, reason: str) -> None:
        """Kill the cell: "timeout" and "memory" are what it then ended with."""
        if not self.killed_for:
            self.killed_for = reason
            self.silent = True  # a child of the cell may keep the pipe open
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except OSError:  # it has not got so far as to have a group
                os.kill(self.pid, signal.SIGKILL)

    def is_over(self) -> bool:
        """Whether its reply is complete, and its device is free. Never blocks.

        After its last word nobody needs to wait for the process to end, unless it has memory of a device that the next
        cell needs.
        """
        on_a_device = self.request and self.request["platform"] != "cpu" and not self.request["described"]
        if self.transcript.is_complete and not self.killed_for and not on_a_device:
            return True
        if not self.silent:
            return False
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        self.status = status if pid else None
        return bool(pid)

    def close(self) -> None:
        """Read the rest of what it printed and close its pipes."""
        ended = time.monotonic()
        while time.monotonic() < ended + 0.5 and self.read_stderr():  # a child of the cell may go on printing
            continue
        os.close(self.messages)
        os.close(self.stderr)
        if not self.request:
            os.close(self.requests)

    def reply(self) -> dict[str, Any]:
        """The reply of the cell, once it is over."""
        transcript, status = self.transcript, self.status
        transcript.close()
        # The worker's own SIGKILL says nothing about the artifact.
        died = status is not None and not self.killed_for and os.WIFSIGNALED(status)
        if self.killed_for:
            end = {"end": self.killed_for}
        else:
            end = last_word(transcript, None if died else os.WEXITSTATUS(status or 0))
        return {
            "id": self.request["id"],
            **transcript.fields,
            "signal": os.WTERMSIG(status or 0) if died else None,
            "stderr": self.printed.decode(errors="replace"),
            "seconds": round(time.monotonic() - self.started, 4),
            **end,
        }


def become_cell(request: int, messages: int, spare: bool, pages: list[int] | None) -> None:
    """Wait for the request of a cell on one descriptor, run it, and say on another what it says."""
    # Before the client, which adds memory of its own: what is asked for is what the worker shares.
    memory = writable_memory() if pages is None else []
    if spare:
        copy_pages(pages or [])
        start_ahead(True)
    with os.fdopen(request, "rb") as pipe:
        line = pipe.readline()
    if line:  # else the worker is gone, or needs no more cells
        report_cell(json.loads(line), writer_to(messages), memory)


class Server:
    """Forks a cold process for each request until stdin closes.

    The first cells teach it which modules to import beforehand. `notes` is the file in which earlier workers have noted
    them; empty for none.
    """

    def __init__(self, replies: int, notes: str = "") -> None:
        self.replies = replies
        self.notes = notes
        self.say = writer_to(replies)
        self.selector = selectors.DefaultSelector()
        self.waiting: list[dict[str, Any]] = []
        self.incoming = b""
        self.running: list[CellProcess] = []
        self.spares: list[CellProcess] = []
        self.ending: list[int] = []  # processes that have said their last word
        self.first_is_over = False  # until then, cells run one at a time
        self.modules_known = False  # those of a cell that was compiled are imported here
        self.forks_ahead = True
        self.pages: list[int] | None = None  # that each cell writes, whatever is in it; None before they are known

    def serve(self) -> None:
        """Run what comes in on stdin. When no more comes, all that runs is ended."""
        greeting = import_jax()
        if modules := read_notes(self.notes):
            self.prepare(modules)
            self.first_is_over = self.modules_known = True
        self.say(greeting)
        self.selector.register(0, selectors.EVENT_READ, None)
        while True:
            # The first cell goes alone: the modules that it imports are imported here, and no later fork pays for them.
            while self.waiting and (self.first_is_over or not self.running):
                self.begin(self.waiting.pop(0))
            # Also when no pipe says anything: a process ends, or is at its limits.
            is_ending = any(cell.silent for cell in (*self.running, *self.spares))
            for key, _ in self.selector.select(timeout=0.005 if is_ending else 0.05 if self.running else None):
                if key.data is None:
                    data = os.read(0, 1 << 16)
                    if not data:
                        for cell in (*self.running, *self.spares):
                            cell.kill("shutdown")
                            os.waitpid(cell.pid, 0)
                        return
                    *lines, self.incoming = (self.incoming + data).split(b"\n")
                    self.waiting.extend(json.loads(line) for line in lines)
                elif key.data in self.running or key.data in self.spares:  # else it ended in this very round
                    self.read_from(key.data, key.fd)
            self.ending = [pid for pid in self.ending if os.waitpid(pid, os.WNOHANG) == (0, 0)]
            for cell in (*self.running, *self.spares):
                if cell.is_over():
                    self.end(cell)
            for cell in self.running:
                if time.monotonic() - cell.started > cell.request["timeout"]:
                    cell.kill("timeout")
                elif cell.request["memory"] and resident_bytes(cell.pid) > cell.request["memory"]:
                    cell.kill("memory")

    def begin(self, request: dict[str, Any]) -> None:
        """Give a cell to a spare process, or to a new one; and have the next spare one ready soon."""
        # Nothing has to be done before its process starts the client, and it shares no device.
        is_plain = request["devices"] == 1 and not request["register"] and request["platform"] == "cpu"
        may_wait = is_plain and self.modules_known and self.forks_ahead
        cell = self.spares.pop(0) if may_wait and self.spares else self.fork(spare=False)
        # What a golden's own module imports is for its own cell: imported here, it could not be registered there.
        learn = not self.modules_known and not request["register"]
        cell.give(dict(request, learn=learn))
        self.running.append(cell)
        # Half as many as run: a cell takes longer than its spare process does to get ready, and each has memory.
        if may_wait and len(self.spares) < (len(self.running) + 1) // 2:
            self.spares.append(self.fork(spare=True))

    def fork(self, *, spare: bool) -> CellProcess:
        """A new process, to which we listen."""
        # A spare process that kept the pipe of another one open would keep it waiting after this worker was killed.
        not_its_own = [self.replies, *(other.requests for other in self.spares)]
        cell = CellProcess(spare, not_its_own, self.pages if self.modules_known else [])
        self.selector.register(cell.messages, selectors.EVENT_READ, cell)
        self.selector.register(cell.stderr, selectors.EVENT_READ, cell)
        return cell

    def read_from(self, cell: CellProcess, descriptor: int) -> None:
        """Read from one of a cell's pipes, and learn from it."""
        if descriptor == cell.stderr:
            if not cell.read_stderr():
                self.selector.unregister(cell.stderr)
            return
        data, transcript = os.read(cell.messages, 1 << 16), cell.transcript
        transcript.feed(data)
        if self.pages is None:
            self.pages = transcript.pages
        modules, transcript.modules = transcript.modules, None
        if modules and not self.modules_known:
            self.first_is_over, self.modules_known = True, transcript.fields["stage"] in ("compile", "run")
            self.prepare(modules)
            if self.modules_known:
                write_notes(self.notes, modules)
        if transcript.is_complete or not data:
            cell.silent = True
            self.selector.unregister(cell.messages)

    def prepare(self, modules: list[str]) -> None:
        """Import what cells import, so that they need not."""
        import_all(modules)
        start_ahead(False)
        refuse_if_warm()
        gc.collect()
        gc.freeze()  # else each cell walks, and so copies, all that was imported here

    def end(self, cell: CellProcess) -> None:
        """Send the reply of a cell, or begin it anew if it had not begun."""
        (self.running if cell.request else self.spares).remove(cell)
        for descriptor in (cell.messages, cell.stderr):
            if descriptor in self.selector.get_map():
                self.selector.unregister(descriptor)
        cell.close()
        if cell.status is None:
            self.ending.append(cell.pid)
        if cell.spare and not cell.transcript.has_begun:  # it died, or hung, while it started the client
            # Whatever killed it: a cell shows what is wrong with the client in the stage in which it starts one itself.
            self.forks_ahead = False
            if cell.request:
                self.waiting.insert(0, cell.request)
            return
        self.first_is_over = True
        self.say(cell.reply())


# --- modules that cells import ----------------------------------------------------------------------------------------


def import_jax() -> dict[str, Any]:
    """Import what every cell needs. The greeting of a worker that is ready."""
    import jax
    import jaxlib.version
    import numpy  # noqa: F401

    export_module()
    versions = {"jax": jax.__version__, "jaxlib": jaxlib.version.__version__, "python": sys.version.split()[0]}
    return {"ready": True, **versions}


def import_all(modules: list[str]) -> None:
    """Import what a cell had to import; what cannot be imported twice is left to the cells."""
    for name in modules:
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except Exception:  # whatever a module raises, its cell imports it itself
                continue


def read_notes(path: str) -> list[str]:
    """The modules that an earlier worker noted; empty if there is no such file, or it is damaged."""
    try:
        with open(path, encoding="utf-8") as file:
            names = json.load(file)
    except (OSError, ValueError, RecursionError):
        return []
    return names if isinstance(names, list) and are_all(names, str) else []


def write_notes(path: str, names: list[str]) -> None:
    """Note them for the next worker, all or nothing. Without room for it, that one learns them itself."""
    if not path:
        return
    unfinished = "%s.%d" % (path, os.getpid())
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            json.dump(names, file)
        os.replace(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)


# --- memory that a fork shares with its worker ------------------------------------------------------------------------
#
# A fork shares the pages of its worker until it writes to them; then the system copies each, one by one, while the cell
# waits. Any cell writes the same 4,000 or so (16 MB with 0.12.0.1), mostly for reference counts of what the worker has
# imported. So the first cell says which, and a spare process copies them in few calls before it has a cell. It keeps a
# cold cell within its budget of 1.4 times a warm one: 1.25 times with it, 1.43 without (benchmarks/cells.py, medians of
# the ratios of the goldens, both in turn on two cores). To copy all writable memory would be simpler: 50 ms a cell.


def writable_memory() -> list[tuple[int, int]]:
    """Start and end of the memory that this process shares with its forks until they write. Empty without /proc."""
    try:
        with open("/proc/self/maps") as file:
            fields = [line.split() for line in file]
    except OSError:
        return []
    spans = [words[0].partition("-") for words in fields if words[1] == "rw-p"]
    return [(int(start, 16), int(end, 16)) for start, _, end in spans]


def written_pages(memory: list[tuple[int, int]]) -> list[int]:
    """Address, length, address, length … of what this process no longer shares with the one that it was forked from.

    Empty where the system does not say. A page between two is taken along: another call costs more than its copy.
    """
    size = os.sysconf("SC_PAGE_SIZE")
    ranges: list[int] = []
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as file:
            for start, end in memory:
                file.seek(start // size * 8)
                entries = array.array("Q", file.read((end - start) // size * 8))
                for number, entry in enumerate(entries):
                    # Bit 63: present. 61: of a file. 56: mapped by this process alone.
                    # Source: Linux, Documentation/admin-guide/mm/pagemap.rst.
                    if entry >> 56 & 0b10100001 == 0b10000001:
                        address = start + number * size
                        if ranges and address <= ranges[-2] + ranges[-1] + size:
                            ranges[-1] = address + size - ranges[-2]
                        else:
                            ranges += [address, size]
    except Exception:  # whatever it is, the artifact did nothing wrong
        return []
    return ranges


def copy_pages(ranges: list[int]) -> None:
    """Have these pages copied now. Nothing in them changes. What is not mapped is left alone, and Linux before 5.14."""
    populate_write = 23
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for address, length in zip(ranges[::2], ranges[1::2], strict=True):
        madvise(address, length, populate_write)


# --- processes --------------------------------------------------------------------------------------------------------


def resident_bytes(pid: int) -> int:
    """Resident memory of a process; 0 where /proc is missing."""
    try:
        with open("/proc/%d/statm" % pid) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def die_with(parent: int) -> None:
    """On Linux, a cell does not outlive a worker that was killed, even if it had just been forked."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
        if os.getppid() != parent:  # it died before this process asked for the signal
            os._exit(1)


def main() -> None:
    """Serve, or run one cell; replies leave on what stdout was at the start."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a KeyboardInterrupt would look like an error of the artifact
    replies = os.dup(1)
    os.dup2(2, 1)  # what libraries print goes to stderr
    os.write(replies, b"\n")  # what was printed before this line must not run into the first reply
    if sys.argv[1] == "serve":
        Server(replies, *sys.argv[2:]).serve()
        return
    say = writer_to(replies)
    request = json.loads(sys.stdin.readline())
    coordinator = os.dup(0)

    def end_with_coordinator() -> None:
        while os.read(coordinator, 1 << 16):  # until its end of the pipe is closed
            continue
        os._exit(1)

    threading.Thread(target=end_with_coordinator, daemon=True).start()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    say(import_jax())
    report_cell(request, say, [])
    os._exit(0)


if __name__ == "__main__":
    main()
