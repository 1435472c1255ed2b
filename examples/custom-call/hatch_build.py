"""The build hook that compiles the custom-call targets into the wheel: one library, which Python loads with ctypes."""

import subprocess
import sysconfig
from pathlib import Path

import jaxlib
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HEADERS = Path(jaxlib.__file__).with_name("include")
"""The folder that `jax.ffi.include_dir()` returns. In the new environment of a build, importing jax takes seconds."""


class Compile(BuildHookInterface):
    """A build hook of hatchling, which runs g++ for each wheel."""

    def initialize(self, version, build_data):
        """Compile the library, and tag the wheel for this system and every Python: the library does not use Python."""
        package = Path(self.root, "src", "rms_norm")
        command = ["g++", "-std=c++17", "-O2", "-shared", "-fPIC", f"-I{HEADERS}"]
        subprocess.run([*command, *package.glob("*.cc"), "-o", package / "targets.so"], check=True)
        build_data["artifacts"].append("*.so")  # hatchling leaves out what git ignores
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().translate(str.maketrans('-.', '__'))}"
        build_data["pure_python"] = False
