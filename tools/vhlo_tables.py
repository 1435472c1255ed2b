"""A check that the VHLO tables have every name of VHLO that an installed jaxlib knows.

Run as `python -m tools.vhlo_tables [--renew] [JAXLIB]`.
"""

from __future__ import annotations

import mmap
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import export_core.artifact
from export_core.artifact.errors import ArtifactError
from export_core.artifact.unread import vhlo_tables

TABLES = Path(export_core.artifact.__file__).with_name("data") / "vhlo_versions.json"

# Attributes whose name in the dialect is not that of their class in small letters.
_SHORT = {"custom_call_api_version_v1": "api_version_v1", "dictionary_v1": "dict_v1"}


def known_names() -> frozenset[str]:
    """Return the names of operations, types and attributes in the tables, as VHLO writes them after `vhlo.`."""
    data = vhlo_tables()
    types = {name.partition("+")[0] for name, _, _ in data["types"].values()}
    attributes = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name, _, _ in data["attrs"].values()}
    return frozenset({*data["ops"], *types, *(_SHORT.get(name, name) for name in attributes)})


def names_in(jaxlib: Path) -> frozenset[str]:
    """Return the VHLO names in the three largest shared libraries of an installed jaxlib.

    Args:
        jaxlib: the folder of the installed jaxlib.

    Raises:
        ArtifactError: no library contains a VHLO name.
    """
    names: set[str] = set()
    libraries = [path for path in jaxlib.rglob("*") if path.name.endswith((".so", ".dylib", ".pyd", ".dll"))]
    for path in sorted(libraries, key=lambda path: -path.stat().st_size)[:3]:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            names |= {name.decode() for name in re.findall(rb"vhlo\.([A-Za-z0-9_\-]+_v\d+)(?![A-Za-z0-9_])", data)}
    if not names:
        raise ArtifactError(
            "a jaxlib with VHLO names", "none", name=str(jaxlib), advice="Give the folder of an installed jaxlib."
        )
    return frozenset(names)


def stablehlo_of_installed() -> str | None:
    """Return the StableHLO version that the installed jaxlib states, or None if it states none.

    A new process imports jaxlib, so that this one need not.
    """
    code = "from jaxlib.mlir.dialects import stablehlo; print(stablehlo.get_current_version())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def with_operations(text: str, names: Iterable[str], since: str) -> str:
    """Return the text of the tables with more operations; every other line stays as it is.

    Args:
        text: the text of vhlo_versions.json.
        names: the operations to add.
        since: the version of StableHLO in which they appeared.
    """
    lines = text.splitlines()
    first = lines.index(' "ops": {') + 1
    last = lines.index(" },", first)
    operations = [line.rstrip(",") for line in lines[first:last]] + [
        f'  "{name}": ["{since}", "current"]' for name in names
    ]
    return "\n".join([*lines[:first], ",\n".join(sorted(operations)), *lines[last:]]) + "\n"


def main(arguments: list[str]) -> int:
    """Print each name that the tables lack, one on each line; return 1 if there are any, else 0.

    `--renew` adds the names as operations that appeared in the StableHLO version of the installed jaxlib. An attribute
    or a type has to be moved by hand, with its code in the bytecode from StableHLO's VhloBytecode.cpp. `through` is set
    by hand too, since a rule may change without a new name.
    """
    folders = [word for word in arguments if word != "--renew"]
    version = None if folders else stablehlo_of_installed()
    if folders:
        folder = Path(folders[0])
    else:
        import importlib.util

        spec = importlib.util.find_spec("jaxlib")
        folder = Path((spec.submodule_search_locations or ["."])[0] if spec else ".")
    print(
        f"{folder}: StableHLO {version or 'unknown'}; "
        f"the tables were made from the source code up to {vhlo_tables()['through']}"
    )
    missing = sorted(names_in(folder) - known_names())
    if "--renew" in arguments and missing and version:
        # Only an operation may be used as one: jaxlib's names do not say which are, and an unused line of the table
        # does no harm.
        TABLES.write_text(with_operations(TABLES.read_text(), missing, version))
        print(f"added as operations of {version}; move each type or attribute to its table by hand, with its code:")
    print(*missing, sep="\n") if missing else print("The tables have every VHLO name in it.")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
