"""The calendar's few facts that reading an artifact needs, without the libraries that the whole calendar loads.

`load_calendar` takes 150 ms with its YAML and its types, ten times what reading an artifact takes. This reads the same file, line by
line; a test keeps both equal.
"""

from __future__ import annotations

import os.path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from export_core.releases.calendar import Calendar

FILE = os.path.join(os.path.dirname(__file__), "data", "releases.yaml")  # noqa: PTH118, PTH120


class Dated:
    """One jaxlib that can be had: the day it was built (2026-10-20), the jax that goes with it, its three StableHLO versions."""

    __slots__ = ("built", "jax", "jaxlib", "stablehlo")

    def __init__(self, jaxlib: str, built: str, jax: str, stablehlo: tuple[str | None, ...]) -> None:
        self.jaxlib = jaxlib
        self.built = built
        self.jax = jax
        self.stablehlo = stablehlo

    def __repr__(self) -> str:
        return f"Dated({self.jaxlib!r}, {self.built!r}, {self.jax!r}, {self.stablehlo!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dated) and repr(other) == repr(self)

    __hash__ = None  # type: ignore[assignment]


def shipped_dates() -> tuple[Dated, ...]:
    """Every jaxlib of the shipped calendar that can be had, oldest build first."""
    lines: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    with open(FILE, encoding="utf-8") as file:  # noqa: PTH123
        for line in file:
            if line.startswith('  "'):
                version, _, said = line[3:].partition('": {')
                section[version] = said
            elif line[0].isalpha():
                section = lines.setdefault(line.partition(":")[0], {})
    jax = [
        (_between(said, "built: ", ","), version_key(name), version_key(_between(said, 'minimum_jaxlib: "', '"')), name)
        for name, said in lines["jax"].items()
        if "yanked: " not in said
    ]
    found = []
    for version, said in lines["jaxlib"].items():
        own = version_key(version)
        fitting = [(built, number, name) for built, number, least, name in jax if least <= own <= number]
        if fitting and "yanked: " not in said:
            words = _between(said, "stablehlo: [", "]").replace('"', "").split(", ")
            three = tuple(None if word == "null" else word for word in words) if len(words) == 3 else (None,) * 3
            found.append(Dated(version, _between(said, "built: ", ","), max(fitting)[-1], three))
    return tuple(sorted(found, key=lambda dated: (dated.built, version_key(dated.jaxlib))))


def dates_of(calendar: Calendar) -> tuple[Dated, ...]:
    """The same facts of a calendar that was read whole, such as one with a project's own releases."""
    versions = [(version, calendar.jaxlib[version], calendar.release(version).jax) for version in calendar.versions()]
    return tuple(Dated(version, str(entry.built), jax, entry.stablehlo) for version, entry, jax in versions)


def _between(text: str, before: str, after: str) -> str:
    return text.partition(before)[2].partition(after)[0].strip(" }\n")


def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; of 0.13.0.dev20261201, those before the first that is none."""
    parts = version.split(".")
    numbers = next((at for at, part in enumerate(parts) if not part.isdigit()), len(parts))
    return tuple(map(int, parts[:numbers]))
