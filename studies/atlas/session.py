"""The atlas: every part of the corpus by many writers, in every reader since 0.4.30.

`nox -s atlas [-- --parts own,programs --writers V,V --readers V,V --docs docs/atlas] [-- MATRIX OPTIONS]`

Goldens are in .nox/atlas/golden and results in .nox/atlas/results, so every other command can use them:
`jaxexport explain --results .nox/atlas/results --goldens .nox/atlas/golden CAUSE`. A part that a writer has written is
not written again unless its files have changed, and cells with a cached outcome are not run again. So an interrupted
session continues where it was, and an additional writer costs only the cells of its goldens.

All other options are given to `jaxexport matrix`: `--executor dask:tcp://…`, `--resume`, and with `--only replay`
`--shard 2/8 --results DIR`. `jaxexport judge DIR… --results .nox/atlas/results` joins the shards.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from export_core.goldens import GoldenStore
from export_core.policy import find_policy, load_policy
from export_core.releases import load_calendar
from export_core.run.results import read_run
from studies.atlas.pages import write_pages
from studies.atlas.parts import FIRST, JAX, OWN
from studies.atlas.scores import atlas_of
from studies.atlas.tables import atlas_markdown
from studies.corpus.choosing import ROOT, Group, choose
from studies.from_jax.jax_goldens import store_goldens

WORK = ROOT / ".nox" / "atlas"
GOLDENS = WORK / "golden"
RESULTS = WORK / "results"
WRITTEN = WORK / "written"
POLICY = Path(__file__).with_name("export_compat.yaml")
WRITERS = "0.4.31,0.5.3,0.7.2,0.9.0.1,0.10.1,0.12.0.1"
"""The writers, about three for each year. Every release since July 2024, except 0.5.1, is in the window of a writer."""


def main() -> None:
    """Write the missing goldens, replay all goldens, and print the tables; with `--only`, do one of these steps."""
    made = choose("atlas")
    names = (OWN, JAX, *(part.name for part in made))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(names), help="some parts of the corpus, with commas")
    parser.add_argument("--writers", default=WRITERS, help="jaxlib releases that write them")
    parser.add_argument("--readers", default="", help="jaxlib releases. All since 0.4.30 unless given")
    parser.add_argument("--docs", type=Path, help="write data, page and tables into this folder")
    parser.add_argument("--only", choices=["write", "replay", "pages"], help="one of the three steps alone")
    options, matrix = parser.parse_known_args()
    parts = options.parts.split(",")
    if unknown := set(parts) - set(names):
        parser.error(f"--parts: expected some of {', '.join(names)}; found {', '.join(sorted(unknown))}")
    if options.only in (None, "write"):
        write_others(parts)
        for part in made:
            if part.name in parts:
                for writer in writers_of(part, options.writers.split(",")):
                    write_part(part, writer)
    if options.only in (None, "replay"):
        replay(options.readers or ",".join(readers()), matrix)
    if options.only in (None, "pages"):
        run = read_run(RESULTS)
        print(atlas_markdown(atlas_of(run.results, run.summary.as_of)))
        if options.docs:
            write_pages(RESULTS, options.docs)


def readers() -> list[str]:
    """Return the jaxlib versions since `FIRST`, by build date."""
    calendar = load_calendar()
    return [version for version in calendar.versions() if calendar.built(version) >= calendar.built(FIRST)]


def writers_of(part: Group, asked: Sequence[str]) -> Sequence[str]:
    """Return the releases that write a part of the corpus.

    They are the part's own writers if it has any, else the releases in `asked` that are not older than `part.since`.
    """
    calendar = load_calendar()
    return part.writers or [writer for writer in asked if calendar.built(writer) >= calendar.built(part.since)]


def write_others(parts: Sequence[str]) -> None:
    """Copy the goldens that exist already, of this project and of jax, if these parts are among `parts`."""
    GOLDENS.mkdir(parents=True, exist_ok=True)
    WRITTEN.mkdir(exist_ok=True)
    if OWN in parts:
        for folder in sorted((ROOT / "golden").iterdir()):
            if folder.is_dir():
                shutil.copytree(folder, GOLDENS / folder.name, dirs_exist_ok=True)
    if JAX in parts and not (stamp := WRITTEN / JAX).exists():
        # It prints those of JAX's goldens that are refused, and continues.
        store_goldens(readers()[-1], GOLDENS, find_policy(ROOT))
        stamp.touch()


def write_part(part: Group, writer: str) -> None:
    """Write the goldens of a part by a writer, unless they are written and the part has not changed since.

    Raises:
        SystemExit: there is no golden by the writer afterwards.
    """
    stamp, digest = WRITTEN / f"{part.name}-{writer}", digest_of(part)
    if stamp.exists() and stamp.read_text() == digest:
        return
    started, before = time.monotonic(), count()
    install = [word for package in (".", "pytest-xdist", *part.packages) for word in ("--install", package)]
    # Exit code 1 is expected: a release that lacks a function, or cannot export it, writes no golden of it.
    jaxexport(
        *("goldens", "backfill", "--policy", str(POLICY), "--writers", writer, *install, "--"),
        # The text of the module is not needed, and a library's warning must not fail a test.
        *("-n", "2", "-q", "--tb=no", "-W", "ignore", "-o", "export_module_text=no"),
        *(f"--goldens={GOLDENS}", *part.paths),
        good=(0, 1),
        variables=part.variables,
    )
    print(f"== {part.name} by {writer}: {count() - before} goldens, {time.monotonic() - started:.0f} s", flush=True)
    if not any(golden.manifest.writer.jaxlib == writer.partition("-")[0] for golden in GoldenStore(GOLDENS).goldens()):
        raise SystemExit(f"{part.name} by {writer}: expected goldens, found none")
    stamp.write_text(digest)


def digest_of(part: Group) -> str:
    """Return a SHA-256 of the files, the packages and the environment variables of a part."""
    named = [ROOT / path for path in part.paths]
    files = sorted(file for path in named for file in (path.rglob("*.py") if path.is_dir() else [path]))
    text = "".join(hashlib.sha256(file.read_bytes()).hexdigest() for file in files)
    return hashlib.sha256(f"{text}{part.packages}{sorted(part.variables.items())}".encode()).hexdigest()


def count() -> int:
    return sum(1 for _ in GOLDENS.glob("*/*/golden.yaml"))


def replay(named: str, options: Sequence[str]) -> None:
    """Replay all goldens in these readers, and judge them by a policy without known failures.

    Args:
        named: the readers, separated by commas.
        options: more options of `jaxexport matrix`.
    """
    load_policy(POLICY)
    # Relative paths, since the page has the commands that repeat a cell.
    here = {"--goldens": GOLDENS, "--policy": POLICY, "--results": RESULTS}
    words = [word for option, path in here.items() for word in (option, str(path.relative_to(ROOT)))]
    # Only backward: that an old release cannot read a young golden says nothing of a promise or a lifetime.
    jaxexport("matrix", *words, "--readers", named, "--only", "backward", *options, good=(0, 1, 3))


def jaxexport(*words: str, good: tuple[int, ...], variables: dict[str, str] | None = None) -> None:
    command = [sys.executable, "-m", "export_core", *words]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **(variables or {})}, check=False)
    if done.returncode not in good:
        raise SystemExit(f"{' '.join(command)}: expected an exit code in {good}, found {done.returncode}")


if __name__ == "__main__":
    main()
