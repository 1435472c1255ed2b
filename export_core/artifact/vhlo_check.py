"""Do the VHLO tables know every name that an installed jaxlib knows? Run as `python -m export_core.artifact.vhlo_check [JAXLIB]`."""

from __future__ import annotations

import mmap
import re
import sys
from pathlib import Path

from export_core.artifact.errors import ArtifactError
from export_core.artifact.vhlo import tables

# Attributes whose name in the dialect is not that of their class in small letters.
_SHORT = {"custom_call_api_version_v1": "api_version_v1", "dictionary_v1": "dict_v1"}


def known_names() -> frozenset[str]:
    """Return the names of operations, types and attributes in the tables, as they are behind the prefix."""
    data = tables()
    types = {name.partition("+")[0] for name, _, _ in data["types"].values()}
    attributes = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name, _, _ in data["attrs"].values()}
    return frozenset({*data["ops"], *types, *(_SHORT.get(name, name) for name in attributes)})


def names_in(jaxlib: Path) -> frozenset[str]:
    """Return the names that the largest library in an installed jaxlib's folder has.

    Raises:
        ArtifactError: there is no such library.
    """
    found: set[str] = set()
    libraries = [path for path in jaxlib.rglob("*") if path.name.endswith((".so", ".dylib", ".pyd", ".dll"))]
    for path in sorted(libraries, key=lambda path: -path.stat().st_size)[:3]:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found |= {name.decode() for name in re.findall(rb"vhlo\.([A-Za-z0-9_\-]+_v\d+)(?![A-Za-z0-9_])", data)}
    if not found:
        raise ArtifactError(
            "a jaxlib with VHLO names", "none", name=str(jaxlib), advice="Give the folder of an installed jaxlib."
        )
    return frozenset(found)


def main(arguments: list[str]) -> int:
    """Print the names that the tables lack, one a line; return 1 if there are any."""
    if arguments:
        folder = Path(arguments[0])
    else:
        import importlib.util

        spec = importlib.util.find_spec("jaxlib")
        folder = Path((spec.submodule_search_locations or ["."])[0] if spec else ".")
    missing = sorted(names_in(folder) - known_names())
    print(*missing, sep="\n") if missing else print(f"The tables know every VHLO name in {folder.name}.")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
