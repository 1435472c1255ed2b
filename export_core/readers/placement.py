"""Placements: where cells run, or what they are compiled for.

A placement is a reader, a platform, a mode and, without hardware, a device. The libtpu of each jaxlib, which its jax
wheel pins, is in data/libtpu.yaml; `tools/libtpu_pins.py` renews it.
"""

import functools
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

from export_core.base.platforms import PLATFORMS, similar_platform
from export_core.readers.errors import PlacementError
from export_core.releases import Release
from export_core.releases.runtimes import runtime_of


class Mode(StrEnum):
    """Whether a cell is run or only compiled."""

    RUN = "run"  # It is executed and its outputs are compared.
    COMPILE = "compile"  # It is compiled for a described device, and not executed.
    AUTO = "auto"
    """Run where the hardware is, else compile: what a policy or a command asks for, and never what a cell has."""


class Device(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device to compile for: the number of devices in each of its topologies, or the configuration file of a GPU."""

    topologies: dict[str, int] = {}
    config: str = ""


class Platform(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plugins and devices of a platform for which cells can be compiled without hardware, each default first."""

    plugins: tuple[str, ...]
    devices: dict[str, Device]


class Described(msgspec.Struct, frozen=True):
    """A device that this machine lacks, in the form that a worker passes to `get_topology_desc` of jax."""

    name: str
    options: dict[str, str]


@dataclass(frozen=True)
class Target:
    """A plugin and the device that it compiles for, such as ``cuda12/h100``."""

    platform: str
    plugin: str
    device: str

    def __str__(self) -> str:
        return f"{self.plugin}/{self.device}"

    def described(self, devices: int) -> Described:
        """Return the description of the smallest known topology that has this many devices.

        Raises `PlacementError` if no topology has that many devices.
        """
        device = load_devices()[self.platform].devices[self.device]
        if device.config:
            text = _data("gpus", device.config).read_text()
            return Described(self.device, {"target_config": text, "topology": f"1x{devices}x1"})
        for name, count in device.topologies.items():
            if count >= devices:
                return Described(name, {})
        raise PlacementError(
            f"{self.platform}: no topology of {self.device} with {devices} devices is known. Name another device with "
            "--target."
        )


@dataclass(frozen=True)
class Placement:
    """A reader on a platform, whose cells share an environment and a worker. A CPU needs no target."""

    reader: Release
    platform: str = "cpu"
    mode: Mode = Mode.RUN
    target: Target | None = None

    @property
    def name(self) -> str:
        """The plugin of jax in the placement's environment, with ``-run`` if cells are run; "" for a CPU."""
        if self.target is None or self.reader.runtime:
            return ""
        return self.target.plugin + ("" if self.mode is Mode.COMPILE else "-run")

    @property
    def title(self) -> str:
        """The placement as messages name it, such as ``jaxlib 0.12.0.1 for libtpu``."""
        return f"{self.reader.title} for {self.name}" if self.name else self.reader.title

    @property
    def shares_device(self) -> bool:
        """Whether cells of this placement run on a device with memory for only one cell at a time."""
        return self.platform != "cpu" and self.mode is Mode.RUN

    def requirements(self) -> tuple[str, ...]:
        """Return the pip requirements of the plugin that this placement needs; none for a CPU.

        If cells run on CUDA, they include the CUDA libraries, which are 2 GB of wheels.
        """
        if self.target is None:
            return ()
        plugin = self.target.plugin
        if plugin == "libtpu":
            # The extra of the jax wheel names the libtpu of that jax, which may be another release than the jaxlib.
            pin = load_pins().get(self.reader.jaxlib)
            return (f"libtpu=={pin}" if pin else f"jax[tpu]=={self.reader.jax}",)
        extra = "[with-cuda]" if plugin.startswith("cuda") and self.mode is not Mode.COMPILE else ""
        return tuple(f"jax-{plugin}-{part}=={self.reader.jaxlib}" for part in (f"plugin{extra}", "pjrt"))

    def variables(self) -> dict[str, str]:
        """Return the environment variables that cells get because of their platform and mode."""
        if self.platform == "cpu":
            return {}
        if self.mode is not Mode.COMPILE:
            return {"JAX_PLATFORMS": f"{self.platform},cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        if self.platform == "tpu":
            # libtpu asks the machine for these, and warns; what it compiles for is the described topology.
            return {
                "TPU_SKIP_MDS_QUERY": "1",
                "TPU_ACCELERATOR_TYPE": "v5litepod-4",
                "TPU_WORKER_HOSTNAMES": "localhost",
                "TPU_WORKER_ID": "0",
                "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # it guards chips, and none is touched
            }
        if self.platform != "cuda":
            return {}
        # Until 0.9.2 jax asks the driver for versions when it loads the plugin, and drops it if there is none.
        # Until 0.8.3 XLA would measure which kernel is the fastest, and there is nothing to measure on.
        return {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "XLA_FLAGS": "--xla_gpu_autotune_level=0"}


class Figures(msgspec.Struct, frozen=True):
    """The size of an environment in megabytes, on disk and to download. None means unknown."""

    megabytes: int | None = None
    download: int | None = None


TYPICAL = {
    "": Figures(530, 140),
    "libtpu": Figures(1270, 355),
    "cuda12": Figures(1050, 340),
    "cuda13": Figures(None, 285),
    "cuda12-run": Figures(None, 3365),
    "cuda13-run": Figures(None, 2635),
}
"""The sizes of environments by `Placement.name`, measured for jaxlib 0.9.2 to 0.12.0.1 on Linux.

On disk as `jaxexport environments` shows them; the downloads are announced before a build.
"""


def typical(placement: Placement) -> Figures:
    """Return the typical size of the environment for a reader on its platform; None for a size never measured."""
    if placement.reader.runtime:
        runtime = runtime_of(placement.reader.runtime)
        return Figures(runtime.megabytes, runtime.download_megabytes)
    return TYPICAL.get(placement.name, Figures())


def parse_platform(text: str) -> tuple[str, Mode]:
    """Return the platform and the mode that a text such as ``cuda:run`` names. A missing mode is `Mode.AUTO`.

    A CPU always has the mode run. Raises `PlacementError` for any other text, such as ``cpu:compile``.
    """
    platform, _, mode = text.partition(":")
    if platform not in PLATFORMS:
        raise PlacementError(
            f"--platforms: expected some of {', '.join(PLATFORMS)}, found {platform!r}.{similar_platform(platform)}"
        )
    if mode not in ("", *Mode):
        raise PlacementError(
            f"--platforms {text}: expected {platform}, {platform}:run (incomplete without the hardware) or "
            f"{platform}:compile, found {mode!r}."
        )
    if platform == "cpu":
        if mode == Mode.COMPILE:
            raise PlacementError(
                "--platforms cpu:compile: expected cpu: every machine has a CPU, so cells for cpu are always run."
            )
        return platform, Mode.RUN
    return platform, Mode(mode or Mode.AUTO)


def parse_targets(texts: tuple[str, ...]) -> dict[str, Target]:
    """Return the target of each platform except the CPU, which is the default target where no text names another.

    Texts are such as ``tpu=v6e``, ``cuda=a100``, ``cuda=cuda13`` and ``cuda=cuda13/b200``. Raises `PlacementError` for
    any other text.
    """
    platforms = load_devices()
    targets = {
        name: Target(name, platform.plugins[0], next(iter(platform.devices))) for name, platform in platforms.items()
    }
    for text in texts:
        name, _, words = text.partition("=")
        if name not in platforms or not words:
            raise PlacementError(
                f"--target: expected a platform ({', '.join(platforms)}) and a device, such as cuda=a100 or "
                f"cuda=cuda13/b200, found {text!r}.{similar_platform(name) if name not in platforms else ''}"
            )
        plugins, devices = platforms[name].plugins, platforms[name].devices
        for word in words.split("/"):
            if word in plugins:
                targets[name] = replace(targets[name], plugin=word)
            elif word in devices:
                targets[name] = replace(targets[name], device=word)
            else:
                raise PlacementError(
                    f"--target {text}: expected a device of {', '.join(devices)}, or a plugin of {', '.join(plugins)}, "
                    f"found {word!r}."
                )
    return targets


@functools.cache
def load_devices() -> dict[str, Platform]:
    """Return each platform other than the CPU, by its name, from the table of devices that this package ships."""
    return msgspec.yaml.decode(_data("devices.yaml").read_bytes(), type=dict[str, Platform])


@functools.cache
def load_pins() -> dict[str, str]:
    """Return the version of libtpu published with each jaxlib, from the table that ships with this package."""
    return msgspec.yaml.decode(_data("libtpu.yaml").read_bytes(), type=dict[str, str])


def _data(*names: str) -> Traversable:
    return resources.files("export_core.readers").joinpath("data", *names)
