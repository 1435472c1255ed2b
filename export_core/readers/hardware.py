"""The hardware of this machine: probed in a process of its own, since a driver that starts in this one would stay."""

import functools
import json
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from export_core.base.processes import kernel_settings
from export_core.readers.placement import Mode

ANSWER_SECONDS = 60.0  # How long the probe may take: a driver may have to wake a device.

_PROBE = r"""
import ctypes, glob, json, pathlib, sys

def cuda():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return "the CUDA driver is not installed (%s)" % error
    status, count = driver.cuInit(0), ctypes.c_int()
    if status:
        return "the CUDA driver does not start (cuInit answers %d)" % status
    driver.cuDeviceGetCount(ctypes.byref(count))
    return "" if count.value else "the CUDA driver knows no device"

def rocm():
    # A node without compute units is a processor.
    nodes = map(pathlib.Path, glob.glob("/sys/class/kfd/kfd/topology/nodes/*/properties"))
    counts = [line for node in nodes for line in node.read_text().splitlines() if line.startswith("simd_count")]
    return "" if any(line.split()[1] != "0" for line in counts) else "/sys/class/kfd has no AMD GPU"

def tpu():
    # PCI numbers of Google's TPUs, v2 to 7x. Source: jax/_src/hardware_utils.py.
    chips = {"0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"}
    for device in pathlib.Path("/sys/bus/pci/devices").glob("*"):
        try:
            if (device / "vendor").read_text().strip() == "0x1ae0" and (device / "device").read_text().strip() in chips:
                return ""
        except OSError:
            continue
    return "no TPU is on the PCI bus"

print(json.dumps({"cuda": cuda, "rocm": rocm, "tpu": tpu}[sys.argv[1]]()))
"""


@functools.cache
def missing_hardware(platform: str) -> str:
    """Return why cells of this platform cannot run on this machine; "" if they can, as on a CPU."""
    if platform == "cpu":
        return ""
    try:
        probe = subprocess.run(
            # -I: no module of the working folder or of PYTHONPATH takes the place of one that the probe imports.
            [sys.executable, "-I", "-c", _PROBE, platform],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
        return str(json.loads(probe.stdout))
    except subprocess.TimeoutExpired:
        return f"its driver has not answered for {ANSWER_SECONDS:.0f} s"
    except ValueError:
        return f"its driver ended the process that asked, with status {probe.returncode}"


def resolve_mode(mode: Mode, platform: str) -> Mode:
    """Return a cell's mode on this machine: `auto` becomes run if the platform's hardware is here, else compile."""
    if mode is not Mode.AUTO:
        return mode
    return Mode.COMPILE if missing_hardware(platform) else Mode.RUN


# The values of XLA's option xla_cpu_max_isa, widest first, each with the flag in /proc/cpuinfo that it needs.
_INSTRUCTION_SETS = {
    "AMX_FP16": "amx_fp16",
    "AMX": "amx_tile",
    "AVX512_BF16": "avx512_bf16",
    "AVX512_VNNI": "avx512_vnni",
    "AVX512": "avx512f",
    "AVX2": "avx2",
    "AVX": "avx",
    "SSE4_2": "sse4_2",
}


_MAX_ISA = "--xla_cpu_max_isa"
_NOT_OF_NUMBERS = ("--xla_force_host_platform_device_count", "--xla_dump", "--xla_gpu", "--xla_tpu")
"""The beginnings of XLA's flags that do not change the numbers that a processor computes."""


@functools.cache
def instruction_set() -> str:
    """Return the processor and, if known, the widest instruction set that XLA can use: ``x86_64 AVX512_BF16``."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    widest = next((name for name, flag in _INSTRUCTION_SETS.items() if flag in flags), "")
    return f"{platform.machine()} {widest}".strip()


def instructions_used(variables: Mapping[str, str]) -> str:
    """Return the processor and the widest instruction set that XLA uses in a process with these variables.

    `--xla_cpu_max_isa` in XLA_FLAGS may limit it.
    """
    processor, _, widest = instruction_set().partition(" ")
    # As for XLA, the last one counts.
    limits = re.findall(rf"(?<!\S){_MAX_ISA}=(\S+)", variables.get("XLA_FLAGS", ""))
    limit, known = limits[-1].upper() if limits else "", list(_INSTRUCTION_SETS)
    if limit not in known or widest not in known or known.index(limit) <= known.index(widest):
        return instruction_set()
    return f"{processor} {limit}"


def flags_of_numbers(variables: Mapping[str, str]) -> list[str]:
    """Return the flags in XLA_FLAGS that may change the numbers that a processor computes, as fast math does."""
    flags = variables.get("XLA_FLAGS", "").split()
    return [flag for flag in flags if not flag.startswith((_MAX_ISA, *_NOT_OF_NUMBERS))]


def processors(written: str, variables: Mapping[str, str]) -> str:
    """Return in words how the processor that wrote a golden differs from this one, if numbers may depend on that.

    Return "" if the writer's processor is unknown, or if both have the same instruction set and no setting of the
    reading process may change numbers.

    Args:
        written: the processor and instruction set that wrote the golden; "" if unknown.
        variables: the environment variables of the process that reads the golden.
    """
    used, others = instructions_used(variables), flags_of_numbers(variables)
    settings = [*kernel_settings(variables), *([f"XLA_FLAGS={shlex.quote(' '.join(others))}"] if others else [])]
    if not written or (used == written and not settings):
        return ""
    limited = f" ({_MAX_ISA} on {instruction_set()})" if used != instruction_set() else ""
    return f"written on {written}, read on {used}{limited}{' with ' if settings else ''}{', '.join(settings)}"


# Kernels of the OpenBLAS in SciPy's wheels, whose LAPACK jaxlib calls, each with the instruction set that it needs.
_OPENBLAS_CORES = {"SkylakeX": "AVX512", "Haswell": "AVX2", "Sandybridge": "AVX"}


def other_openblas_core(variables: Mapping[str, str]) -> str | None:
    """Return a value of OPENBLAS_CORETYPE that this processor can run, other than the one that OpenBLAS uses now.

    It is the widest one that fits, but never SkylakeX. None if the processor can run no other. `variables` are the
    environment variables, which may choose the present one.
    """
    processor, _, widest = instruction_set().partition(" ")
    if processor not in ("x86_64", "AMD64") or not widest:
        return None
    runs = list(_INSTRUCTION_SETS)[list(_INSTRUCTION_SETS).index(widest) :]
    cores = [core for core, needed in _OPENBLAS_CORES.items() if needed in runs]
    own = variables.get("OPENBLAS_CORETYPE", next(iter(cores), "")).lower()
    own = {"zen": "haswell"}.get(own, own)  # of which this OpenBLAS has no kernels of its own
    return next((core for core in cores if core != "SkylakeX" and core.lower() != own), None)
