"""The names of releases: what options take, what people read, and the numbers in their versions."""

import functools

X64 = "JAX_ENABLE_X64"  # The setting of a jaxlib that turns 64-bit types on, or off.


def title_of(names: str) -> str:
    """Return the names of readers in a sentence, jaxlib's first: ``jaxlib 0.11.2, 0.12.0.1, tensorflow 2.21.0``."""
    return f"{'' if names[:1].isalpha() else 'jaxlib '}{names.replace('==', ' ')}"


def parts_of(reader: str) -> tuple[str, str, str]:
    """Return the parts of a reader's name: ``iree``, ``3.13.0`` and ``[NAME=VALUE]``, empty where nothing is set."""
    named = reader.partition("[")[0]
    runtime, _, version = named.partition("==")
    return runtime, version, reader[len(named) :]


@functools.lru_cache(maxsize=1024)  # every artifact is compared with the same few dozen
def version_numbers(version: str) -> tuple[int, ...]:
    """Return (0, 9, 2) for 0.9.2 and for its nightlies.

    Raises:
        InvalidVersion: it is no version. A `ValueError`.
    """
    parts = version.split(".")
    if version.isascii() and all(map(str.isdigit, parts)):
        return tuple(map(int, parts))
    from packaging.version import Version  # imported here: it takes 5 ms, and no known release has such a version

    return Version(version).release


class Titled:
    """The names of a release, by its `jaxlib` with what is set in it, or by its `runtime`."""

    __slots__ = ()
    jaxlib: str
    runtime: str
    with_settings: str

    @property
    def name(self) -> str:
        """What options take and policies name: ``0.12.0.1`` of jaxlib, ``tensorflow==2.21.0`` of another runtime."""
        # Not an f-string: where nothing is set this is the same text, of which a large run asks for each cell.
        return self.runtime or self.jaxlib + self.with_settings

    @property
    def title(self) -> str:
        """What people read: ``jaxlib 0.12.0.1``, ``tensorflow 2.21.0``."""
        return title_of(self.name)

    @property
    def family(self) -> str:
        """The runtime without its version: empty for jaxlib."""
        return parts_of(self.runtime)[0]

    @property
    def version(self) -> str:
        """The version of its runtime, or of its jaxlib."""
        return parts_of(self.runtime)[1] or self.jaxlib

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that differ from the defaults, each as `NAME=VALUE`, which its name has in brackets."""
        own = self.with_settings or parts_of(self.runtime)[2]
        return tuple(own.strip("[]").split(";")) if own else ()

    @property
    def x64(self) -> bool | None:
        """Whether its settings turn 64-bit types on or off; None where they say nothing of them."""
        given = [setting for setting in self.settings if setting.startswith(f"{X64}=")]
        return given[0] == f"{X64}=true" if given else None
