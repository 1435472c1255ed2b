#!/usr/bin/env python3
"""The hook jaxexport-verify-goldens: it compares every file of every golden with its manifest.

It needs nothing but Python 3.9, so that pre-commit installs nothing for it. `jaxexport goldens verify` also reads each
artifact, and checks what a golden says of its writer.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

MANIFEST = "golden.yaml"
RESTORE = "Restore it from version control, or write the golden again."
FILE = re.compile(r"  (?P<name>'[^']+'|\"[^\"]+\"|[^\s'\"].*): (?P<sha256>[0-9a-f]{64})")


def listed(manifest: str) -> dict[str, str]:
    """Return the files that a manifest lists, each with its SHA-256."""
    _, _, after = f"\n{manifest}".partition("\nfiles:\n")
    files = {}
    for line in after.splitlines():
        found = FILE.fullmatch(line)
        if not found:
            break  # the next key of the manifest
        files[found["name"].strip("'\"")] = found["sha256"]
    return files


def problems(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the files of one golden."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        yield f"{folder}: expected a golden, found no {MANIFEST}. {RESTORE}"
        return
    files = listed(manifest.read_text(encoding="utf-8", errors="replace"))
    if "artifact.jaxexport" not in files:
        yield f"{manifest}: expected the SHA-256 of artifact.jaxexport under `files`, found none. {RESTORE}"
    for name, expected in files.items():
        path = folder / name
        if path.parent != folder or path.is_symlink() or not path.is_file():
            yield f"{path}: expected a file of this golden, found none. {RESTORE}"
        elif (found := hashlib.sha256(path.read_bytes()).hexdigest()) != expected:
            yield f"{path}: expected SHA-256 {expected}, found {found}. {RESTORE}"
    for path in sorted(folder.iterdir()):
        if path.name != MANIFEST and path.name not in files:
            yield f"{path}: expected only files that {MANIFEST} lists, found another. Delete it."


def main() -> None:
    """Print what is wrong. The exit code is 1 where something is, or where there are no goldens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("goldens", nargs="?", type=Path, default=Path("golden"), help="the folder of goldens")
    root = parser.parse_args().goldens
    cases = [path for path in sorted(root.iterdir()) if path.is_dir()] if root.is_dir() else []
    folders = [path for case in cases for path in sorted(case.iterdir()) if path.is_dir()]
    found = [problem for folder in folders for problem in problems(folder)]
    if not folders:
        found = [f"{root}: expected goldens, found none. Name their folder: args: [FOLDER]"]
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
