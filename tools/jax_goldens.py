"""The writer of the table of JAX's own goldens: `python -m tools.jax_goldens FOLDER…` adds lines.

A line has the day and the SHA-256 of a golden's StableHLO module. Each FOLDER has the goldens of one release of jax, at
`jax/_src/internal_test_util/export_back_compat_test_data` in an environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

from export_core.goldens.store import sha256
from export_core.goldens.verify import JAX_GOLDENS, days_of_jax_goldens
from studies.from_jax.jax_data import DataError, read_data
from tools import renew


def main(folders: list[str]) -> None:
    """Add the goldens in these folders, and in folders below them, to the table."""
    table = {module: set(days) for module, days in days_of_jax_goldens().items()}
    for folder in map(Path, folders):
        for path in sorted(folder.rglob("*.py")):
            for record in read_data(path.name, path.read_bytes()):
                if not isinstance(record, DataError) and "mlir_module_serialized" in record.fields:
                    module = sha256(record.fields["mlir_module_serialized"])
                    table.setdefault(module, set()).add(record.fields["serialized_date"])
    rows = sorted(f"{day} {module}\n" for module, days in table.items() for day in days)
    renew(JAX_GOLDENS, "".join(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
