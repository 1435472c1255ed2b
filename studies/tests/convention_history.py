"""The versions of the calling convention of jax.export, and the versions that each release of jax writes.

docs/reference/calling-conventions.md has the same two tables. Sources: for the changes and their days, JAX's export
documentation; for what each release writes, the minimum, default and maximum in its source code.
"""

from __future__ import annotations

from typing import NamedTuple

from packaging.version import Version


class Convention(NamedTuple):
    """A version of the calling convention, its change, and the day or month since which JAX can write it."""

    version: int
    since: str
    change: str


class Supported(NamedTuple):
    """The versions that releases of jax from `jax` on can write: the oldest, the default, and the newest."""

    jax: str
    oldest: int
    default: int
    newest: int


HISTORY = (
    Convention(1, "before 2022-10", "MHLO and CHLO operations, without any promise"),
    Convention(2, "2022-10", "StableHLO operations in place of MHLO"),
    Convention(3, "2023-02", "platforms are checked; with several, `main` takes the platform's index first"),
    Convention(4, "2023-03-15", "StableHLO as a portable artifact, which newer releases promise to read"),
    Convention(5, "2023-05-03", "calls into TensorFlow graphs (`call_tf_graph`)"),
    Convention(6, "2023-06-13", "`disabled_checks`; the platforms must be named"),
    Convention(7, "2023-07-20", "shape assertions in the module, and in `disabled_checks`"),
    Convention(8, "2023-07-26", "`jax.uses_shape_polymorphism` says whether shapes are refined before compilation"),
    Convention(9, "2023-10-20", "a token of `main` for each ordered effect; `jax.global_constant` on arguments"),
    Convention(10, "2025-07-14", "the module says whether Shardy partitions it (`jax_use_shardy_partitioner`)"),
)

SUPPORTED = (
    Supported("0.4.14", 6, 6, 8),
    Supported("0.4.15", 6, 7, 8),
    Supported("0.4.20", 6, 8, 9),
    Supported("0.4.24", 6, 9, 9),
    Supported("0.4.26", 9, 9, 9),
    Supported("0.7.0", 9, 10, 10),
)
"""The versions that releases write, oldest jax first. Each row holds until the jax of the next row, the last until
today."""


def supported_by(jax: str) -> Supported | None:
    """Return the versions that a jax release can write, or None before 0.4.14, which had no such choice."""
    return next((row for row in reversed(SUPPORTED) if Version(row.jax) <= Version(jax)), None)


def writable_by(version: int) -> tuple[str, str | None] | None:
    """Return the first jax that can write a version, and the first that no longer can.

    The second is None if today's jax can write the version. Return None if no jax of `SUPPORTED` ever could.
    """
    return _span([row.oldest <= version <= row.newest for row in SUPPORTED])


def default_of(version: int) -> tuple[str, str | None] | None:
    """Return the first jax that writes a version by default, and the first that no longer does.

    The second is None if today's jax does. Return None if no jax of `SUPPORTED` ever did.
    """
    return _span([row.default == version for row in SUPPORTED])


def _span(rows: list[bool]) -> tuple[str, str | None] | None:
    if True not in rows:
        return None
    first = rows.index(True)
    after = rows.index(False, first) if False in rows[first:] else len(rows)
    return SUPPORTED[first].jax, SUPPORTED[after].jax if after < len(rows) else None
