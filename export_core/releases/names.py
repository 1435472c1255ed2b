"""The names of readers: what options take, what people read, and how readers are ordered."""

import datetime


def title_of(names: str) -> str:
    """What people read for the names of readers, jaxlib's first: ``jaxlib 0.11.2, 0.12.0.1, tensorflow 2.21.0``."""
    return f"{'' if names[:1].isalpha() else 'jaxlib '}{names.replace('==', ' ')}"


class Titled:
    """The name and the title of a reader, by its `jaxlib` and its `runtime`, of which it has one."""

    __slots__ = ()
    jaxlib: str
    runtime: str

    @property
    def name(self) -> str:
        """What options take and policies name: ``0.12.0.1`` of jaxlib, ``tensorflow==2.21.0`` of another runtime."""
        return self.runtime or self.jaxlib

    @property
    def title(self) -> str:
        """What people read: ``jaxlib 0.12.0.1``, ``tensorflow 2.21.0``."""
        return title_of(self.name)


class Named(Titled):
    """All names of a reader, by its `jax` and its build date too."""

    __slots__ = ()
    jax: str
    built: datetime.date

    @property
    def label(self) -> str:
        """What a table of readers shows: ``0.12.0.1``, ``tensorflow 2.21.0``."""
        return self.name.replace("==", " ")

    @property
    def pair(self) -> str:
        """``0.11.2-jax0.12.0.1``: names both, as the folders of goldens do; ``tensorflow==2.21.0``."""
        return self.runtime or f"{self.jaxlib}-jax{self.jax}"

    @property
    def family(self) -> str:
        """The runtime without its version: empty for jaxlib."""
        return self.runtime.partition("==")[0]

    @property
    def version(self) -> str:
        """The version of its runtime, or of its jaxlib."""
        return self.runtime.partition("==")[2] or self.jaxlib

    @property
    def date_order(self) -> tuple[str, datetime.date, str, str]:
        """Sort key: jaxlib first, then each runtime, by build date; one jaxlib may be read with several jax."""
        return self.family, self.built, self.name, self.jax
