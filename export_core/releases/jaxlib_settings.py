"""The settings of a jaxlib reader, which its name has in brackets: flags of jax and XLA, and versions of packages."""

import re
from collections.abc import Iterable

from export_core.releases.errors import ReleaseError
from export_core.releases.names import X64, Titled

_FLAG, _PACKAGE = r"(JAX_[A-Z][A-Z0-9_]*|--xla_[a-z0-9_]+)=[\w.:+-]+", r"(?!jax_)[a-z][a-z0-9_.-]*=\d[\w.+-]*"
_SETTING = f"(?a:{_FLAG}|{_PACKAGE})"
"""A setting as a regular expression. No value may have a path in it, since folders are named after readers."""
_ELSEWHERE = {
    "JAX_PLATFORMS": "each cell sets its own platform",
    "x64": "write JAX_ENABLE_X64=true",
    "jax": "write it into the name of the reader, such as 0.11.2-jax0.12.0.1",
    "jaxlib": "the name of the reader begins with the version of jaxlib",
}


def jaxlib_settings(texts: Iterable[str]) -> str:
    """Return the settings of a jaxlib as one text, as they end a reader's name: ``[NAME=VALUE;…]``; "" if none.

    Raises `ReleaseError` for a text that is not a setting, and for a setting that is given twice.
    """
    words = sorted(filter(None, texts))
    names = [_one_spelling(word.partition("=")[0]) for word in words]
    for name, word in zip(names, words, strict=True):
        if name in _ELSEWHERE:
            raise ReleaseError(f"Expected no setting {name}, found {word!r}: {_ELSEWHERE[name]}.")
        if not re.fullmatch(_SETTING, word):
            raise ReleaseError(
                "Expected a setting of jaxlib: a flag of jax such as JAX_ENABLE_X64=true, one of XLA such as "
                f"--xla_cpu_enable_fast_math=true, or a package such as scipy=1.14.1, found {word!r}."
            )
        if name == X64 and word not in (f"{X64}=true", f"{X64}=false"):
            raise ReleaseError(f"Expected {X64}=true or {X64}=false, found {word!r}.")
        if names.count(name) > 1:
            raise ReleaseError(f"Expected one value of the setting {name}, found {words}.")
    return f"[{';'.join(words)}]" if words else ""


def _one_spelling(name: str) -> str:
    """Return the normalized spelling of a package's name; the name of a flag is returned unchanged."""
    # https://packaging.python.org/en/latest/specifications/name-normalization/, since to import packaging takes 20 ms.
    return name if name.startswith(("JAX_", "--")) else re.sub(r"[-_.]+", "-", name)


def variables_of(reader: Titled) -> dict[str, str]:
    """Return the environment variables that set the flags of a jaxlib reader: those of jax, and XLA_FLAGS."""
    of_jax = dict(setting.split("=", 1) for setting in reader.settings if setting.startswith("JAX_"))
    flags = " ".join(setting for setting in reader.settings if setting.startswith("--"))
    return {**of_jax, **({"XLA_FLAGS": flags} if flags else {})}


def packages_of(reader: Titled) -> dict[str, str]:
    """Return the pip requirements among the settings of a jaxlib reader, by the name of the package."""
    named = (setting.split("=", 1) for setting in reader.settings if not setting.startswith(("JAX_", "--")))
    return {_one_spelling(name): f"{name}=={version}" for name, version in named}
