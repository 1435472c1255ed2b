"""The names of releases: what options take, what people read, and the numbers in their versions."""

import functools

X64 = "JAX_ENABLE_X64"  # The setting of a jaxlib that turns 64-bit types on, or off.


def title_of(names: str) -> str:
    """Return the names of readers for a sentence, jaxlib's first: ``jaxlib 0.11.2, 0.12.0.1, tensorflow 2.21.0``.

    `names` is the text that options take, such as ``0.11.2, 0.12.0.1, tensorflow==2.21.0``.
    """
    return f"{'' if names[:1].isalpha() else 'jaxlib '}{names.replace('==', ' ')}"


@functools.lru_cache(maxsize=1024)
def parts_of(reader: str) -> tuple[str, str, str]:
    """Return the parts of a reader's name: runtime ``iree``, version ``3.13.0`` and settings ``[NAME=VALUE]``.

    A part that the name lacks is "". For a jaxlib, the first part is its version and the second is "".
    """
    named = reader.partition("[")[0]
    runtime, _, version = named.partition("==")
    return runtime, version, reader[len(named) :]


@functools.lru_cache(maxsize=1024)  # every artifact is compared with the same few dozen
def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, such as (0, 9, 2) for 0.9.2 and for its nightlies.

    Raises:
        InvalidVersion: the text is not a version. A `ValueError`.
    """
    parts = version.split(".")
    if version.isascii() and all(map(str.isdigit, parts)):
        return tuple(map(int, parts))
    from packaging.version import Version  # imported here: it takes 5 ms, and no known release has such a version

    return Version(version).release


class Titled:
    """A base class for releases, with the names that follow from `jaxlib`, its settings, and `runtime`."""

    __slots__ = ()
    jaxlib: str
    runtime: str
    with_settings: str

    @property
    def name(self) -> str:
        """The name that options take and policies use: ``0.12.0.1`` of jaxlib, ``tensorflow==2.21.0`` of a runtime."""
        # Not an f-string: where nothing is set this is the same text, of which a large run asks for each cell.
        return self.runtime or self.jaxlib + self.with_settings

    @property
    def title(self) -> str:
        """The name for people: ``jaxlib 0.12.0.1``, ``tensorflow 2.21.0``."""
        return title_of(self.name)

    @property
    def family(self) -> str:
        """The name of the release's runtime; empty for jaxlib."""
        return parts_of(self.runtime)[0]

    @property
    def version(self) -> str:
        """The version of the release's jaxlib or other runtime."""
        return parts_of(self.runtime)[1] or self.jaxlib

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings in brackets at the end of the name, each as `NAME=VALUE`."""
        own = self.with_settings or parts_of(self.runtime)[2]
        return tuple(own.strip("[]").split(";")) if own else ()

    @property
    def x64(self) -> bool | None:
        """Whether the settings turn 64-bit types on; None if they do not say."""
        given = [setting for setting in self.settings if setting.startswith(f"{X64}=")]
        return given[0] == f"{X64}=true" if given else None
