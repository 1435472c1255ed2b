"""The entries of the policy's table `deployed`: places where artifacts have to run, whatever the window says."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from export_core.base.phrases import did_you_mean
from export_core.policy.patterns import matches

if TYPE_CHECKING:
    from export_core.policy.toml_lines import Key
    from export_core.releases import Calendar

ALL = "all"
"""What stands for every place, and is no name of one."""


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place where artifacts run, such as a server: every generation of its cases has to run there.

    A cell of it that works is judged as any other. One that fails outside its window is `owed`, which fails a run as a
    broken promise does; inside the window it is `broken`.
    """

    name: Annotated[
        str,
        Meta(
            description="What reports call the place: a letter, then letters, digits, `.`, `_` and `-`.",
            pattern=r"^[A-Za-z][A-Za-z0-9._-]*$(?!\n)",
            max_length=60,
            examples=["serving"],
        ),
    ]
    jaxlib: Annotated[str, Meta(description="The jaxlib release that runs there.")]
    platform: Annotated[str, Meta(description="The platform on which it runs: one of the policy's `platforms`.")] = (
        "cpu"
    )
    since: Annotated[
        datetime.date | None, Meta(description="The first day of the obligation; without it, since that release.")
    ] = None
    until: Annotated[
        datetime.date | None, Meta(description="The last day of the obligation; without it, there is no end.")
    ] = None
    cases: Annotated[tuple[str, ...], Meta(description="The cases that have to run there: ids or globs.")] = ("*",)
    location: str = msgspec.field(default="", name="place")  # ``export_compat.yaml:12``: set when a file is read

    def in_force(self, day: datetime.date | None) -> bool:
        """Whether artifacts have to run there on a day; without a day, whether they ever have to."""
        return day is None or ((self.since or day) <= day <= (self.until or day))

    def runs(self, case: str, jaxlib: str, platform: str) -> bool:
        """Whether a cell with this case, reader and platform is one of this place."""
        return (jaxlib, platform) == (self.jaxlib, self.platform) and self.has_case(case)

    def has_case(self, case: str) -> bool:
        """Whether artifacts of a case have to run there."""
        return any(matches(case, pattern) for pattern in self.cases)

    def __str__(self) -> str:
        return f"{self.name} (jaxlib {self.jaxlib}{'' if self.platform == 'cpu' else f', {self.platform}'})"


def names_of(
    places: Iterable[Place], case: str, jaxlib: str, platform: str, day: datetime.date | None
) -> tuple[str, ...]:
    """The names of the places in force on a day in which a cell has to run."""
    return tuple(place.name for place in places if place.in_force(day) and place.runs(case, jaxlib, platform))


def problems_of_places(places: Sequence[Place], platforms: Collection[str]) -> Iterator[tuple[Key, str]]:
    """What is wrong with places beside their types, each problem with its key. `platforms` are those of the policy."""
    for number, place in enumerate(places):
        key: Key = ("deployed", number)
        if place.name == ALL:
            yield (*key, "name"), f"expected another name than {ALL!r}, which stands for every place."
        for earlier, other in enumerate(places[:number]):
            if other.name == place.name:
                yield (*key, "name"), f"expected a name of its own, found that of deployed[{earlier}], {place.name!r}."
        if place.platform not in platforms:
            yield (
                (*key, "platform"),
                f"expected one of the policy's platforms ({', '.join(platforms)}), found {place.platform!r}."
                f"{did_you_mean(place.platform, platforms)} No run would have such a cell: add it to `platforms`.",
            )
        if place.since and place.until and place.until <= place.since:
            yield (*key, "until"), f"expected a day after {place.since} (since), found {place.until}."


def problems_of_releases(places: Sequence[Place], calendar: Calendar) -> Iterator[tuple[Key, str]]:
    """What is wrong with the releases of places, with the calendar that has all releases of the project."""
    for number, place in enumerate(places):
        key: Key = ("deployed", number)
        release = calendar.jaxlib.get(place.jaxlib)
        if release is None:
            hint = did_you_mean(place.jaxlib, calendar.versions())
            yield (
                (*key, "jaxlib"),
                f"expected a jaxlib of the release calendar, found {place.jaxlib!r}.{hint} `jaxexport releases list` "
                "shows all.",
            )
        elif place.until and place.until < release.built:
            yield (
                (*key, "until"),
                f"expected {release.built} or later, the day on which jaxlib {place.jaxlib} was built, found "
                f"{place.until}.",
            )
        elif place.since and place.since < release.built:
            yield (
                (*key, "since"),
                f"expected {release.built} or later, the day on which jaxlib {place.jaxlib} was built, found "
                f"{place.since}.",
            )
