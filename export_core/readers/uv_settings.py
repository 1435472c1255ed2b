"""The place where uv runs when it builds an environment: the configuration that it reads, and its variables.

Environments of readers are shared by all projects of a user, so no file of a project may decide what is in them. uv
would find ``uv.toml``, ``pyproject.toml`` and ``.python-version`` in the working folder and above it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export_core.base.atomic import write_new
from export_core.base.processes import SYSTEM
from export_core.base.scratch import scratch_folder
from export_core.base.text import without_credentials
from export_core.base.untrusted import read_named
from export_core.readers.errors import EnvironmentFailed

INDEX_KEYS = ("index", "index-url", "extra-index-url", "no-index", "find-links", "index-strategy")
"""Keys of uv's configuration that decide what is installed: they are a part of an environment's name."""
OTHER_KEYS = (
    *("keyring-provider", "allow-insecure-host", "native-tls", "system-certs"),
    *("http-proxy", "https-proxy", "no-proxy", "offline"),
    *("cache-dir", "link-mode", "python-downloads", "python-install-mirror"),
)
"""Keys that say how packages are fetched and where they are stored."""

INDEX_VARIABLES = (
    *("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_NO_INDEX", "UV_FIND_LINKS"),
    "UV_INDEX_STRATEGY",
)
"""Variables that decide what is installed, as `INDEX_KEYS` do."""
PATH_VARIABLES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "NETRC", "UV_CREDENTIALS_DIR"),
    *("UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME"),
)
"""Variables that hold a path. A relative path is resolved against the user's working folder, not the one of uv."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
OTHER_VARIABLES = (
    *("UV_KEYRING_PROVIDER", "UV_INSECURE_HOST", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_OFFLINE"),
    *("UV_HTTP_TIMEOUT", "UV_HTTP_CONNECT_TIMEOUT", "UV_HTTP_RETRIES", "UV_REQUEST_TIMEOUT", "UV_LINK_MODE"),
    *("UV_CONCURRENT_DOWNLOADS", "UV_CONCURRENT_BUILDS", "UV_CONCURRENT_INSTALLS"),
    *("UV_PYTHON_DOWNLOADS", "UV_PYTHON_INSTALL_MIRROR"),
)
_OFFLINE = re.compile(r"(?i)network (?:connectivity )?(?:is|was) disabled")
"""The words of uv by which `UV_OFFLINE` or the key `offline` is known to forbid the network."""
_CACHE_HINT = " When the network is disabled, registry packages may only be read from the cache."
CREDENTIALS = ("_USERNAME", "_PASSWORD")
"""The endings of ``UV_INDEX_NAME_USERNAME`` and ``UV_INDEX_NAME_PASSWORD``, which uv reads for the index NAME."""

# An activated environment, or variables of the caller's jax, must not leak into another release's.
_DROPPED = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True)
class CommandPlace:
    """The working folder and the environment variables of a command that builds an environment."""

    folder: Path
    variables: Mapping[str, str]


@contextlib.contextmanager
def shared_place() -> Iterator[CommandPlace]:
    """Yield a new folder with a copy of the user's ``uv.toml``, and the variables that an installation needs.

    In this folder uv finds no file of a project. Raises `EnvironmentFailed` if the user's configuration cannot be read.
    """
    configuration = _user_configuration()
    with scratch_folder() as folder:
        # With a file that is named, uv looks for no other, neither in a working folder nor above it.
        write_new(folder / "uv.toml", [_as_toml(configuration).encode()])
        yield CommandPlace(folder, {**_variables(), "UV_CONFIG_FILE": str(folder / "uv.toml")})


@contextlib.contextmanager
def project_place(project: str) -> Iterator[CommandPlace]:
    """Yield a project's folder, and this process's variables without the user's settings of Python and jax.

    If setuptools builds the project, it leaves no ``*.egg-info`` in the folder, unless DIST_EXTRA_CONFIG is set.
    """
    passed = {name: os.environ[name] for name in os.environ if name not in _DROPPED and not name.startswith("JAX_")}
    with scratch_folder() as folder:
        # setuptools reads the file that this variable names after the project's own setup.cfg.
        write_new(folder / "setup.cfg", [f"[egg_info]\negg_base = {folder}\n".encode()])
        elsewhere = {"DIST_EXTRA_CONFIG": str(folder / "setup.cfg")}
        yield CommandPlace(Path(project), {**elsewhere, **passed, "JAX_PLATFORMS": "cpu"})


def index_settings() -> list[tuple[str, str]]:
    """Return the user's settings that decide what is installed, as sorted pairs of name and value, without passwords.

    Raises `EnvironmentFailed` if the user's configuration cannot be read.
    """
    configuration = _user_configuration()
    pip = configuration.get("pip", {})
    settings = {name: os.environ[name] for name in INDEX_VARIABLES if os.environ.get(name)}
    settings |= {key: json.dumps(configuration[key]) for key in INDEX_KEYS if key in configuration}
    settings |= {f"pip.{key}": json.dumps(pip[key]) for key in INDEX_KEYS if key in pip}
    return [(name, without_credentials(value)) for name, value in sorted(settings.items())]


def with_advice(reason: str) -> str:
    """Return the reason why uv failed, followed by what to do if a setting forbids uv the network."""
    if _OFFLINE.search(reason):
        # Reports show the first 300 characters of a message: uv's hint about its cache would leave no room for ours.
        reason = reason.replace(_CACHE_HINT, "").rstrip(".")
        return f"{reason}. Unset UV_OFFLINE, or `offline` in uv's configuration."
    return reason


def _variables() -> dict[str, str]:
    """Return the environment variables that an installation gets from this process, with absolute paths."""
    names = {*SYSTEM, *INDEX_VARIABLES, *OTHER_VARIABLES, *PROXIES, *map(str.lower, PROXIES)}
    variables = {
        name: value
        for name, value in os.environ.items()
        if name in names or name.startswith("LC_") or (name.startswith("UV_INDEX_") and name.endswith(CREDENTIALS))
    }
    paths = {name: str(Path(os.environ[name]).absolute()) for name in PATH_VARIABLES if os.environ.get(name)}
    return {**variables, **paths}


def _user_configuration() -> dict[str, Any]:
    """Return uv's configuration of this user, merged from the user's file and the machine's file.

    Only `INDEX_KEYS` and `OTHER_KEYS` are read. The user's value replaces the machine's; of two lists, the user's items
    come first. https://docs.astral.sh/uv/concepts/configuration-files/ says where the files are.
    """
    merged: dict[str, Any] = {}
    for path in _configuration_files():
        for key, value in _settings_in(path).items():
            first = merged.get(key)
            if isinstance(first, list) and isinstance(value, list):
                merged[key] = [*first, *value]
            elif isinstance(first, dict) and isinstance(value, dict):
                merged[key] = {**value, **first}
            else:
                merged.setdefault(key, value)
    return merged


def _configuration_files() -> list[Path]:
    """Return the user's ``uv.toml``, then the machine's, if they exist.

    If UV_CONFIG_FILE is an absolute path, that file is the only one.
    """
    named = os.environ.get("UV_CONFIG_FILE", "")
    if Path(named).is_absolute():
        return [Path(named)]
    if os.name == "nt":
        user, machine = os.environ.get("APPDATA", ""), [os.environ.get("PROGRAMDATA", "")]
    else:
        user = os.environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
        machine = [*(os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep), "/etc"]
    # A relative folder would be one of the working folder.
    places = [
        [Path(folder) / "uv" / "uv.toml" for folder in folders if Path(folder).is_absolute()]
        for folders in ([user], machine)
    ]
    return [path for paths in places for path in [path for path in paths if path.is_file()][:1]]


def _settings_in(path: Path) -> dict[str, Any]:
    """Return the settings of a ``uv.toml`` that this program uses; "pip" has those of the table ``pip``.

    Raises `EnvironmentFailed` if the file is not TOML or cannot be read.
    """
    try:
        content = tomllib.loads(read_named(path).decode())
    except (OSError, ValueError) as error:
        raise EnvironmentFailed(f"{path}: expected uv's configuration in TOML: {error}") from error
    settings = _used_settings(content, path.parent)
    pip = content.get("pip")
    return {**settings, "pip": _used_settings(pip, path.parent)} if isinstance(pip, dict) else settings


def _used_settings(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the entries of a table whose keys are in `INDEX_KEYS` or `OTHER_KEYS`, with absolute paths.

    A relative path in uv's configuration is relative to `folder`, which holds the configuration file.
    """
    counting = {key: table[key] for key in (*INDEX_KEYS, *OTHER_KEYS) if key in table}
    for key, value in counting.items():
        if key in ("index-url", "cache-dir"):
            counting[key] = _absolute(value, folder)
        elif key in ("find-links", "extra-index-url") and isinstance(value, list):
            counting[key] = [_absolute(item, folder) for item in value]
        elif key == "index" and isinstance(value, list):
            counting[key] = [
                {**entry, "url": _absolute(entry["url"], folder)} if "url" in entry else entry
                for entry in value
                if isinstance(entry, dict)
            ]
    return counting


def _absolute(value: Any, folder: Path) -> Any:
    is_path = isinstance(value, str) and "://" not in value and not value.startswith("file:")
    return str(folder / value) if is_path else value


def _as_toml(value: Mapping[str, Any]) -> str:
    """Return a configuration as TOML.

    Each table is written on one line, so that JSON's form of strings, numbers and lists is valid TOML.
    """
    return "".join(f"{json.dumps(key)} = {_value(item)}\n" for key, item in value.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)  # a date, which no such key has, is an error
