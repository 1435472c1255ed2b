"""The time of the tutorial in a Debian that has only Python: a table of the seconds and megabytes of each page.

`nox -s tutorial -- [--docs PAGE] [--root FOLDER]` needs root, debootstrap, unshare and a network. What the commands
print is compared with the pages, as in the tests.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tools.bare_install import bare_debian
from tools.printed import Done, Page, Runner, check_done, play, read, runner_of
from tools.wheel import wheel_folder

ROOT = Path(__file__).parents[1]
LAST_PAGE = ROOT / "docs" / "tutorial" / "5-gate.md"
PROJECT = "root/project"
FIRST_GOLDEN = "pytest -q --update-goldens"
MARKED = re.compile(r"(<!-- times: begin -->\n).*?(<!-- times: end -->)", re.DOTALL)


def runner(root: Path) -> Runner:
    """Return a function that runs scripts in the Debian at `root`, without this machine's environment variables."""
    variables = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PRINTED_STATE": "/root/.state",
        "PIP_FIND_LINKS": "/wheels",
        "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
    }
    inside = ["unshare", "--mount", "--pid", "--fork", f"--mount-proc={root / 'proc'}"]
    return runner_of([*inside, "chroot", str(root), "bash", "-c"], variables, root, f"cd /{PROJECT}\n")


def megabytes(root: Path) -> int:
    """Return the megabytes of all files in the Debian at `root`; a file with several names counts once."""
    used = subprocess.check_output(["du", "--summarize", "--one-file-system", "--block-size=1000000", root], text=True)
    return int(used.split()[0])


def cpu_seconds() -> float:
    """Return the processor seconds of all children of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(page: Page, root: Path) -> Iterator[tuple[Done, float, float, int]]:
    """Run the commands of the tutorial; yield each with its seconds, its processor seconds and the megabytes it added.

    Args:
        page: the last page of the tutorial.
        root: the folder of the Debian.

    Raises:
        PrintedError: a command did not do what its page shows.
    """
    used, began, computed = megabytes(root), time.perf_counter(), cpu_seconds()
    for done in play(page, root / PROJECT, runner(root)):
        seconds, cpu, now = time.perf_counter() - began, cpu_seconds() - computed, megabytes(root)
        check_done(done)
        yield done, seconds, cpu, now - used
        used, began, computed = now, time.perf_counter(), cpu_seconds()


def table(page: Page, root: Path) -> Iterator[str]:
    """Run the tutorial; yield a table line for each of its pages, then how long it takes to the first golden."""
    pages: dict[str, list[float]] = {}
    first = 0.0
    for done, *numbers in measured(page, root):
        command = " ".join(done.step.command.split())
        print(done.page.path.stem[0], command, *numbers, file=sys.stderr, flush=True)
        so_far = pages.setdefault(done.page.path.stem[0], [0.0, 0.0, 0.0])
        pages[done.page.path.stem[0]] = [sum(pair) for pair in zip(so_far, numbers, strict=True)]
        if command == FIRST_GOLDEN:
            first = sum(seconds for seconds, _, _ in pages.values())
    yield "| page | seconds | of CPU | MB |\n|---|--:|--:|--:|"
    every = [sum(column) for column in zip(*pages.values(), strict=True)]
    for name, numbers in (*pages.items(), ("all", every)):
        yield "| {} | {:.0f} | {:.0f} | {:.0f} |".format(name, *numbers)
    yield f"\nThe commands up to the first golden took {first:.0f} seconds."


def main() -> None:
    """Run the tutorial, print the table, and write it into the page of `--docs` if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, help="the page whose table is renewed")
    parser.add_argument("--suite", default="trixie")
    parser.add_argument("--root", type=Path, help="a bare Debian with DNS settings and certificates")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root: Path = options.root or Path(folder, "debian")
        if not options.root:
            bare_debian(root, options.suite)
        shutil.copytree(wheel_folder(), root / "wheels", dirs_exist_ok=True)
        (root / PROJECT).mkdir(parents=True)
        # Until the first release, the tutorial installs from a checkout beside its folder.
        (checkout := (root / PROJECT).with_name("pytest-jaxexport")).mkdir()
        files = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "--extract", "--directory", checkout], input=files, check=True)
        lines = []
        for line in table(read(LAST_PAGE), root):
            print(line, flush=True)
            lines.append(line)
    if options.docs:
        text = options.docs.read_text(encoding="utf-8")
        options.docs.write_text(MARKED.sub(lambda found: found[1] + "\n".join(lines) + "\n" + found[2], text))


if __name__ == "__main__":
    main()
