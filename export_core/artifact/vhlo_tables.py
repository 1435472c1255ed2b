"""The shipped tables of VHLO: operations, attributes and types with the StableHLO versions that know them."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def tables() -> dict[str, Any]:
    """Return the tables: `ops`, `types`, `attrs`, `inherent`, and the StableHLO version they go `through`."""
    import json
    import os.path

    # Paths by os.path: pathlib takes 5 ms to import.
    path = os.path.join(os.path.dirname(__file__), "data", "vhlo_versions.json")  # noqa: PTH118, PTH120
    with open(path, "rb") as file:  # noqa: PTH123
        data: dict[str, Any] = json.loads(file.read())
    return data
