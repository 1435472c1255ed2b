"""A check of one example: it runs the commands of its README in a copy of its folder, as a user would.

`python -m tools.examples FOLDER COPY [--renew]`; `nox -s examples` makes the copy, and an environment for it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tools.printed import check, read, renew


def main(folder: Path, copy: Path, *, renewing: bool) -> None:
    """Run the commands of an example's README, and compare what they print with the README.

    Args:
        folder: the folder of the example, whose README is read.
        copy: a copy of the folder, in which the commands run.
        renewing: whether to write what the commands print into the README, instead of comparing it.
    """
    page = read(folder / "README.md")
    start = time.monotonic()
    if renewing:
        page.path.write_text(renew(page, copy), encoding="utf-8")
    else:
        check(page, copy)
    done = "its README has what they print" if renewing else "they print what its README shows"
    count = sum(len(block.steps) for block in page.blocks if not block.not_run)
    print(f"{folder}: {count} commands, {time.monotonic() - start:.0f} s; {done}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), renewing="--renew" in sys.argv[3:])
