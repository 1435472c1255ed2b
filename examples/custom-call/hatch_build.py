"""Compiles the custom-call targets into the wheel: one library, which Python loads with ctypes."""

import subprocess
import sysconfig
from pathlib import Path

import jax.ffi
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Compile(BuildHookInterface):
    """Runs g++ whenever hatchling builds a wheel."""

    def initialize(self, version, build_data):
        """The wheel is for this system and every Python, since the library does not use Python."""
        package = Path(self.root, "src", "rms_norm")
        command = ["g++", "-std=c++17", "-O2", "-shared", "-fPIC", f"-I{jax.ffi.include_dir()}"]
        subprocess.run([*command, *package.glob("*.cc"), "-o", package / "targets.so"], check=True)
        build_data["artifacts"].append("*.so")  # although git ignores it
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().translate(str.maketrans('-.', '__'))}"
        build_data["pure_python"] = False
