"""Write which Python files cells import, for `export_core.readers.compiling`: those with bytecode in environments.

`python -m tools.imported_files FOLDER…`, where each FOLDER is an environment that ran cells, as `jaxexport environments
list` names them. Take new ones, of the newest releases: an old one may have bytecode of files that few cells import.
"""

import sys
from pathlib import Path

from export_core.readers.compiling import FILES


def imported_files(folder: Path) -> set[str]:
    """Return the paths, relative to site-packages, of the Python files of an environment that have bytecode."""
    found = set()
    for compiled in folder.glob("lib/python*/site-packages/**/__pycache__/*.pyc"):
        source = compiled.parents[1] / f"{compiled.name.partition('.')[0]}.py"
        site = next(parent for parent in source.parents if parent.name == "site-packages")
        found.add(source.relative_to(site).as_posix())
    return found


def main() -> None:
    """Write the files of all environments that are named on the command line."""
    found = set().union(*map(imported_files, map(Path, sys.argv[1:])))
    if not found:
        raise SystemExit("expected folders of environments that ran cells, found no bytecode there")
    FILES.write_text("".join(f"{name}\n" for name in sorted(found)), encoding="utf-8")
    print(f"{len(found)} files: {FILES.name}")


if __name__ == "__main__":
    main()
