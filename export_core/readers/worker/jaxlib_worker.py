"""The half of a worker that knows jax: takes an artifact of `jax.export` through its stages.

It runs in every reader's environment and imports the standard library, numpy, jax and the program beside it, which
loads it; it works on every Python and jax of the release calendar (CPython 3.10 or newer). What differs between
releases is adapted here and nowhere else; each place says which release.

It never starts a client of XLA before a cell has begun, or a process waits for one: after that a fork would hang.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import re
import signal
import sys
import time
from importlib.metadata import entry_points

import jax
import jaxlib.version
import numpy as np
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as Spec

from .calls import FILE_NAMES, load_arrays, save_arrays
from .program import (
    KINDS,
    NotRefusedError,
    few_digits,
    full_message,
    is_figure,
    is_machine_fault,
    load_module,
    peak_bytes,
    timed,
)

try:
    from jax._src.interpreters import mlir
except ImportError:  # it is private: a later release may have moved it
    mlir = None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .program import Say

HERE = os.path.dirname(os.path.abspath(__file__))
LEARNS_MODULES = True  # Whether cells report which modules they import, which the worker then imports for later cells.
LONGEST_DRIVER = 200
PLUGIN = re.compile(r"(jax_(?:cuda|rocm)\d+_(?:plugin|pjrt))-(.+)\.dist-info")
LONGEST_LIMITED = 2.0  # Seconds that all limited variants of a call may take together, plus ten times the call's own.
KEY_IMPLEMENTATIONS = {"key_fry": "threefry2x32", "key_rbg": "rbg", "key_urbg": "unsafe_rbg"}


class NotImportedError(Exception):
    """An error for a registration module that does not work in this reader."""


class NoDevicesError(Exception):
    """An error for a platform with fewer devices than the cell needs."""


# --- before a cell ----------------------------------------------------------------------------------------------------


def warm() -> None:
    """Import what every cell needs, without starting a client of XLA."""
    export_module()


def start_ahead(client: bool) -> None:
    """Do the steps that every process must do before its first artifact, so that no cell waits for them.

    MLIR registers its dialects, and jax looks for plugins among the installed packages. Doing this once in the worker
    saves each cell 5 of the 12 ms before it reads its artifact (docs/explanation/performance.md), and starts no thread.
    An error here, such as for a name that a release has moved in `jax._src`, is only printed: if it matters, the cell
    raises it again.

    Args:
        client: whether to start the client of XLA too, in a process that runs only one cell.
    """
    try:
        if client:
            jax.devices()
        else:
            entry_points(group="jax_plugins")
        mlir.make_ir_context()
    except Exception as error:
        print("not done ahead: %s" % error, file=sys.stderr)


def imported() -> dict[str, str]:
    """Return the versions of the imported jax and jaxlib, since an environment's metadata may name others."""
    return {"jax": jax.__version__, "jaxlib": jaxlib.version.__version__}


def has_client() -> bool:
    """Return whether this process has started a client of XLA, so that its forks would not be cold."""
    # No public function of jax says so without starting a client. If a release renames this table, its threads show.
    return bool(getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None))


# --- one cell: its stages ---------------------------------------------------------------------------------------------


def run_cell(request: dict[str, Any], say: Say) -> None:
    """Run a cell: take its artifact through all stages, each of which `say` reports before it begins.

    `request` is a `Request` of protocol.py as JSON.
    """
    started = time.perf_counter()
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
        # Until 0.9.2 LAPACK calls die in a process that has not lowered linear algebra.
        jax.jit(jax.numpy.linalg.cholesky).lower(np.eye(2, dtype=np.float32))
    later: list[Callable[[], None]] = []
    for check in request["checks"]:
        say({"stage": "lower", "check": check["name"]})
        if check["outputs"] is not None:
            run_variants = run_check(export, exported, check, devices, request, say)
            later += [run_variants] if run_variants else []
            continue
        try:
            run_check(export, exported, check, devices, request, lambda message: None)
        except Exception as error:
            if is_machine_fault(error):
                raise
            say({"refusals": {check["name"]: full_message(error)}})
        else:
            raise NotRefusedError
    if later:
        say({"ran": few_digits(time.perf_counter() - started)})
    # After all calls, which find the process as one without variants. No program stays longer than its variants.
    while later:
        later.pop(0)()


def prepare_devices(request: dict[str, Any], say: Say) -> Any:
    """Return the devices of the cell's platform; None for a CPU, whose devices each call looks up itself.

    Raises `NoDevicesError` if the platform has fewer devices than the cell needs.
    """
    platform, described, count = request["platform"], request["described"], request["devices"]
    configure(x64=request["x64"], devices=count if platform == "cpu" else 1)
    if platform == "cpu":
        return None
    say({"stage": "environment"})
    if described:
        from jax.experimental import topologies  # here: it is experimental, and a release may lack it

        name, options = described["name"], described["options"]
        devices = topologies.get_topology_desc(platform=platform, topology_name=name, **options).devices
    else:
        devices = jax.devices(platform)
    driver = [*other_plugins(), *([] if described else [driver_of(platform, devices[0])])]
    say({"device": devices[0].device_kind, "driver": ", ".join(filter(None, driver))[:LONGEST_DRIVER]})
    if len(devices) < count:
        raise NoDevicesError("expected %d devices of %s, found %d" % (count, platform, len(devices)))
    return devices


def register(module: str, path: str) -> None:
    """Import a golden's copy of a Python module, under the name `module`, from `path`.

    Raises `NotImportedError` if the module cannot be imported in this reader.
    """
    try:
        load_module(module, path)
    except BaseException as error:
        if is_machine_fault(error):
            raise
        reason = "%s: %s" % (type(error).__name__, error)
        raise NotImportedError("the module %s cannot be imported in this reader: %s" % (module, reason)) from error


def run_check(
    export: Any, exported: Any, check: dict[str, Any], devices: Any, request: dict[str, Any], say: Say
) -> Callable[[], None] | None:
    """Run one call of the artifact: lower, compile and run it, and write its outputs.

    For devices that this machine lacks, the call is only compiled. Returns a function that runs the variants of the
    call, or None if the call has no variants.
    """
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
        return None
    say({"stage": "run"})
    seconds, results = timed(lambda: jax.block_until_ready(jax.tree_util.tree_leaves(compiled(*args, **kwargs))))
    if check["outputs"] is None:
        return None
    if not check["name"]:
        say({"timings": {"run": few_digits(seconds), "peak_bytes": peak_bytes()}})
    save_leaves(check["outputs"], results)
    if check["mesh"]:
        layouts = [shard_layout(value) for value in results]
        say({"shardings_of": {check["name"]: layouts}} if check["name"] else {"shardings": layouts})
    # With ordered effects a compiled program takes a token from its first call that it lacks in the second.
    takes_token = bool(getattr(exported, "ordered_effects", ()))
    if request["repeat"] and not check["name"] and not takes_token:
        runs = [timed(lambda: jax.block_until_ready(compiled(*args, **kwargs)))[0] for _ in range(request["repeat"])]
        say({"timings": {"runs": runs}})
    if not check.get("variants"):
        return None
    programs = Variants(call_of(export, exported), lowered, compiled, again=takes_token)

    def run_variants() -> None:
        left = LONGEST_LIMITED + 10 * seconds
        for variant in check["variants"]:
            say({"variant": variant["name"]})
            started = time.perf_counter()
            try:
                with time_limit(left if variant["limited"] else None):
                    args, kwargs = placed_arguments(exported, load_leaves(variant["inputs"]), check, devices, None)
                    with mesh_around(check, leaves, devices):
                        results = programs.run(variant, args, kwargs)
                    save_leaves(variant["outputs"], jax.tree_util.tree_leaves(results))
                left -= time.perf_counter() - started if variant["limited"] else 0.0
            except Exception as error:
                if is_machine_fault(error):
                    raise
                say({"failed": {variant["name"]: full_message(error)}})

    return run_variants


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Any:
    """End this process if the block takes longer than `seconds`; None is no limit.

    Raises `TimeoutError` at once if no time is left. The system ends the process: Python would call a handler only when
    the compiled program returns, which may never happen.
    """
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return
    if seconds <= 0:
        raise TimeoutError("not run: the other runs that measure the noise of this call have used up their time")
    # As long again: the limit of all is not that of one.
    signal.setitimer(signal.ITIMER_REAL, seconds + LONGEST_LIMITED)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Variants:
    """The runner of a call's variants: repetitions with other inputs or other compiler options.

    Consecutive variants share a compiled program if their options are equal and both are rewritten, or neither is. With
    `again`, which is for programs that cannot run twice, each variant compiles its own.
    """

    def __init__(self, call: Callable[..., Any], lowered: Any, compiled: Any, *, again: bool) -> None:
        self.call = call
        self.lowered = lowered
        self.program = compiled
        self.again = again
        self.kind: tuple[bool, dict[str, Any]] = (False, {})
        self.problem: Exception | None = None

    def run(self, variant: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """Run a variant with these arguments and return its outputs. Errors of the compiler and the run are raised."""
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
        return self.program(np.array(variant["numbers"], np.int32), args, kwargs)


def without_links(path: str, flags: int) -> int:
    """Return the descriptor of a file, opened unless its path is a symbolic link: an `opener` for `open`."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def dump(check: dict[str, Any], name: str, text: Callable[[], Any]) -> None:
    """Write the text that `text` returns to a file `name` in the check's folder for dumped modules.

    An error is only printed, since it is not the artifact's fault.
    """
    try:
        with open(os.path.join(check["dump"], name), "w", encoding="utf-8", opener=without_links) as file:
            file.write(str(text() or ""))
    except Exception as error:
        print("no %s: %s" % (name, error), file=sys.stderr)


# --- one cell: what a program costs -----------------------------------------------------------------------------------


MEMORY = {
    "temp_bytes": "temp_size_in_bytes",
    "argument_bytes": "argument_size_in_bytes",
    "output_bytes": "output_size_in_bytes",
    "alias_bytes": "alias_size_in_bytes",
    "code_bytes": "generated_code_size_in_bytes",
}
ESTIMATES = {"flops": "flops", "transcendentals": "transcendentals", "bytes_accessed": "bytes accessed"}
# A line of HLO as text: "  ROOT %name = f32[2]{0} fusion(%other), kind=kLoop", where the shape may have T(8,128) in it.
INSTRUCTION = re.compile(r"^ +(?:ROOT )?%?[^ ]+ = .*? ([a-z][a-z0-9-]*)\(", re.MULTILINE)


def cost_of(compiled: Any) -> dict[str, Any]:
    """Return the compiler's figures for a compiled program by name, such as `temp_bytes`.

    A figure that this release or platform does not report is None.
    """

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


# --- one cell: devices, arguments and outputs -------------------------------------------------------------------------


def driver_of(platform: str, device: Any) -> str:
    """Return the versions of a device's driver: of its Linux kernel module (nvidia, amdgpu) and of its PJRT client."""
    versions = []
    module = {"cuda": "nvidia", "rocm": "amdgpu"}.get(platform)
    if module and os.path.exists("/sys/module/%s/version" % module):
        with open("/sys/module/%s/version" % module) as file:
            versions.append("%s %s" % (module, file.read().strip()))
    versions.append(" ".join(str(getattr(device.client, "platform_version", "")).split()))
    return ", ".join(filter(None, versions))


def other_plugins() -> list[str]:
    """Return the installed plugins of jax whose release is not that of jaxlib, in words.

    jax uses such a plugin after a warning: plain programs compile, but FFI calls do not find their handlers. jax does
    not warn of a wrong release of the plugin's PJRT package.
    """
    own = jaxlib.version.__version__
    found: dict[str, str] = {}
    for folder in sys.path:
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            match = PLUGIN.fullmatch(name)
            if match:
                found.setdefault(match[1].replace("_", "-"), match[2])  # the first on the path is imported
    return ["%s %s beside jaxlib %s" % (name, version, own) for name, version in found.items() if version != own]


def one_device(devices: Any) -> Any:
    """Return the sharding of an array that is on the first device only."""
    return SingleDeviceSharding(devices[0])


def placed_arguments(exported: Any, leaves: list[Any], check: dict[str, Any], devices: Any, described: Any) -> Any:
    """Return the arguments of a call, put on these devices, as (positional, by keyword).

    `leaves` are the arguments in order, as loaded. If `described` is set, the devices are not on this machine, and
    shapes without data are returned.
    """
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
    """Return the mesh of a call, built from the first of these devices, as many as it needs."""
    names, sizes = [axis for axis, _ in check["mesh"]], [size for _, size in check["mesh"]]
    chosen = list(devices)[: int(np.prod(sizes))]
    # Any but "own" stands for a caller whose mesh is not the exporter's: the same devices in another order.
    return Mesh(np.array(chosen if check["place"] == "own" else chosen[::-1]).reshape(sizes), tuple(names))


def mesh_around(check: dict[str, Any], leaves: list[Any], devices: Any) -> Any:
    """Return the context manager in which a call is run, which sets the mesh for a call without arguments.

    Other calls need no mesh there, since their arguments are on one. For them, and in jax until 0.6.2, which cannot
    set a mesh, the context manager does nothing.
    """
    if leaves or not check["mesh"] or not hasattr(jax, "set_mesh"):
        return contextlib.nullcontext()
    return jax.set_mesh(mesh_on(devices, check))


def shardings_on(devices: Any, exported: Any, leaves: list[Any], check: dict[str, Any]) -> list[Any]:
    """Return the sharding of each argument on the mesh of a call; None for a float0 argument.

    The call's `Place` of protocol.py decides between the shardings of the artifact and others.
    """
    mesh = mesh_on(devices, check)
    wanted: list[Any] = [None] * len(leaves)
    # JSON has lists for the tuples of axes.
    specs = [spec and [tuple(axes) if isinstance(axes, list) else axes for axes in spec] for spec in check["specs"]]
    given = [None if spec is None else NamedSharding(mesh, Spec(*spec)) for spec in specs]
    if check["place"] == "given":
        wanted = given
    elif check["place"] == "own":
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
    """Return in words which part of an array each device has, such as ``0:[0:8] 1:[8:16]``, and its unreduced axes."""
    described = []
    axes = unreduced_axes(value.sharding)
    for place, index in enumerate(without_unreduced(value.sharding).devices_indices_map(value.shape).values()):
        extents = [part.indices(size) for part, size in zip(index, value.shape, strict=True)]
        described.append("%d:[%s]" % (place, ",".join("%d:%d" % extent[:2] for extent in extents)))
    return " ".join(described) + (" unreduced over %s" % ", ".join(axes) if axes else "")


def load_leaves(path: str) -> list[Any]:
    """Return the arrays in a file, with PRNG keys and float0 as jax's own types."""
    leaves = []
    for dtype, data in load_arrays(path):
        if dtype in KEY_IMPLEMENTATIONS:
            data = jax.random.wrap_key_data(data, impl=KEY_IMPLEMENTATIONS[dtype])
        elif dtype == "float0":
            data = np.zeros(data.shape, jax.dtypes.float0)
        leaves.append(data)
    return leaves


def save_leaves(path: str, values: list[Any]) -> None:
    """Write the outputs of a call to a file that `load_leaves` can read.

    Raises `NotWrittenError` if the file cannot be written.
    """
    arrays = []
    for value in values:
        if unreduced_axes(getattr(value, "sharding", None)):  # jax gives nobody the terms of such a sum
            value = jax.sharding.reshard(value, jax.sharding.NamedSharding(value.sharding.mesh, jax.P()))
        dtype = str(value.dtype)
        if dtype.startswith("key<"):
            data = np.asarray(jax.random.key_data(value))
        elif value.dtype == jax.dtypes.float0:
            dtype, data = "float0", np.zeros(value.shape, np.bool_)
        else:
            data = np.asarray(value)
        arrays.append((FILE_NAMES.get(dtype, dtype), data))
    save_arrays(path, arrays)


# --- what differs between releases of jax -----------------------------------------------------------------------------


def export_module() -> Any:
    """Return the module `jax.export`, or `jax.experimental.export` before 0.4.30."""
    is_new = importlib.util.find_spec("jax.export")
    return importlib.import_module("jax.export" if is_new else "jax.experimental.export")


def parse_module(exported: Any) -> None:
    """Have jaxlib parse the StableHLO module of an artifact.

    The public method also prints the module until 0.10.0, which takes several times as long with large constants. So a
    private option is used, unless this release lacks it.
    """
    if not hasattr(mlir, "make_ir_context") or "serialized" not in inspect.signature(exported.mlir_module).parameters:
        exported.mlir_module()
        return
    with mlir.make_ir_context():
        exported.mlir_module(serialized=False)


def call_of(export: Any, exported: Any) -> Any:
    """Return the function that calls an artifact.

    It is a method of the artifact since 0.4.30. Before, `export.call` returns it, or `export.call_exported` until
    0.4.23.
    """
    if hasattr(exported, "call"):
        return exported.call
    old = getattr(export, "call", None) or export.call_exported
    return old(exported)


def artifact_shardings(exported: Any, mesh: Any) -> list[Any] | None:
    """Return the sharding that an artifact expects for each of its arguments, on the devices of this mesh.

    None if the shardings are not known: until 0.4.28, and for arguments on different meshes.
    """
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
    """Return the mesh axes over which an array with this sharding is still to be summed, since 0.7; mostly empty."""
    return sorted(getattr(getattr(sharding, "spec", None), "unreduced", None) or ())


def without_unreduced(sharding: Any) -> Any:
    """Return a sharding without its unreduced axes, those over which its array is still to be summed."""
    if not unreduced_axes(sharding):
        return sharding
    spec = sharding.spec
    return sharding.update(spec=type(spec)(*getattr(spec, "partitions", spec)))  # the attribute exists since 0.10


def configure(x64: bool, devices: int) -> None:
    """Set 64-bit types and the number of devices of the CPU, before jax starts its client of XLA."""
    if x64:
        jax.config.update("jax_enable_x64", True)
    if devices == 1:
        return
    if "jax_num_cpu_devices" in jax.config.values:  # since 0.5.0
        jax.config.update("jax_num_cpu_devices", devices)
    else:  # until 0.4.38 only XLA knows such a setting, and reads it when the client starts
        flags = os.environ.get("XLA_FLAGS", "").split()
        os.environ["XLA_FLAGS"] = " ".join([*flags, "--xla_force_host_platform_device_count=%d" % devices])
