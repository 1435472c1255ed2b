"""The cost of an install on a machine that has only Python: a table of the seconds and megabytes of each step.

``python -m tools.bare_install WHEEL [--suite trixie] [--root FOLDER]`` makes a minimal Debian by debootstrap and runs
the steps in it, with an empty cache. It needs root, debootstrap, unshare and a network. `nox -s package` makes WHEEL.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HOME = "root"
TEST = """\
import jax
import jax.numpy as jnp
import pytest


@pytest.mark.export_compat
def test_wave(export_golden):
    export_golden(jax.jit(lambda x: jnp.sin(x) * 2), jnp.arange(4.0))
"""
# What people have already comes first: the step after it is what pytest-jaxexport adds.
STEPS = {
    "an empty virtual environment": "python3 -m venv venv",
    "`pip install jax pytest`": "venv/bin/pip install --quiet jax pytest",
    "`pip install pytest-jaxexport`": "venv/bin/pip install --quiet /*.whl",
    "`pytest --update-goldens`, one marked test": "venv/bin/pytest -q --update-goldens test_wave.py",
    "`pytest`, the same test": "venv/bin/pytest -q test_wave.py",
    "`jaxexport inspect` of its artifact": "venv/bin/jaxexport inspect golden/*/*/artifact.jaxexport",
}


def bare_debian(root: Path, suite: str) -> None:
    """Make a Debian in the folder `root` that has Python, pip and venv, and this machine's DNS and certificates.

    Args:
        root: the folder.
        suite: the name of Debian's release, such as trixie.
    """
    needed = "--include=python3,python3-venv,ca-certificates"
    subprocess.run(["debootstrap", "--variant=minbase", needed, suite, root], check=True, stdout=subprocess.DEVNULL)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs/ca-certificates.crt")


def run(root: Path, command: str) -> str:
    """Run a command in the Debian at `root`, without this machine's environment variables; return what it printed.

    Raises:
        SystemExit: the command fails.
    """
    proc = f"--mount-proc={root / 'proc'}"
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", proc, "chroot", root, "sh", "-c", f"cd /{HOME} && {command}"],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": f"/{HOME}", "LANG": "C.UTF-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def megabytes(folder: Path) -> float:
    """Return the megabytes that a folder takes on the disk, without pip's cache."""
    options = ["--summarize", "--block-size=1", "--exclude=.cache"]
    return int(subprocess.check_output(["du", *options, folder], text=True).split()[0]) / 1e6


def measured(root: Path) -> Iterator[str]:
    """Run `STEPS` in the Debian at `root`; yield a table row for each, with its seconds and the megabytes it added."""
    before = 0.0
    for title, command in STEPS.items():
        began = time.perf_counter()
        run(root, command)
        seconds, now = time.perf_counter() - began, megabytes(root / HOME)
        yield f"| {title} | {seconds:.1f} | {now - before:.1f} |"
        before = now


def main() -> None:
    """Print the machine, the table, and the largest packages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--suite", default="trixie")
    parser.add_argument("--root", type=Path, help="a bare Debian that exists already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root: Path = options.root or Path(folder, "debian")
        if not options.root:
            bare_debian(root, options.suite)
        shutil.copy(options.wheel, root)
        (root / HOME / "test_wave.py").write_text(TEST)
        print(
            f"{run(root, 'python3 --version').strip()} in a minimal Debian ({options.suite}), {os.cpu_count()} cores\n"
        )
        print("| step | seconds | MB |\n|---|---|---|", *measured(root), sep="\n")
        (packages,) = (root / HOME).glob("venv/lib/python3*/site-packages")
        sizes = {path.name: megabytes(path) for path in packages.iterdir() if path.is_dir()}
        sizes["uv"] = megabytes(root / HOME / "venv" / "bin" / "uv")
        largest = sorted(sizes, key=lambda name: -sizes[name])[:6]
        print("\nThe largest:", ", ".join(f"{name} {sizes[name]:.0f} MB" for name in largest))


if __name__ == "__main__":
    main()
