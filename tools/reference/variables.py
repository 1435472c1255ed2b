"""The parts about environment variables: which are read, which a cell inherits, and which a cell is given."""

from __future__ import annotations

from export_core.base import processes
from export_core.readers import environment, uv_settings
from tools.reference.markdown import code, table

READ: dict[tuple[str, ...], str] = {
    ("JAXEXPORT_CACHE",): "Folder of what is cached (environments, outcomes, terms of policies), instead of the user's "
    "cache folder.",
    ("XDG_CACHE_HOME", "HOME"): "Where the user's cache folder is, as platformdirs finds it.",
    ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"): "The package index that `jaxexport releases refresh` asks, "
    "the first that is set. uv, which builds environments, gets those of [an installation](#of-an-installation).",
    ("UV_OFFLINE",): "If set, no index is asked.",
    ("PATH", "PYENV_ROOT", "UV_PYTHON_INSTALL_DIR"): "Where the CPythons of readers are looked for.",
    ("UV_CONFIG_FILE", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "APPDATA", "PROGRAMDATA"): "Where uv's configuration of "
    "the user and of the machine is looked for. A relative `UV_CONFIG_FILE` does not count.",
    ("XLA_FLAGS",): "With the ini key `export_devices`, the number of devices is added to it, unless it has one.",
    ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"): "Inherited by cells that pytest replays in its own interpreter.",
    ("GITHUB_SHA", "CI_COMMIT_SHA"): "The commit of a run, where git does not say it.",
    ("GITHUB_REPOSITORY", "CI_PROJECT_PATH"): "The name of the project in `summary.json`, where its folder has none.",
    ("GITHUB_SERVER_URL", "GITHUB_RUN_ID", "CI_PROJECT_URL", "CI_JOB_URL"): "Links of a report to the source code and "
    "to the job.",
    ("JAXEXPORT_SESSION_ENDED",): "Internal: how `jaxexport goldens backfill` knows that pytest ended.",
}
"""All environment variables that the code reads; tests/docs/test_reference.py compares this list with the code."""

BY_LIBRARIES = {
    ("NO_COLOR", "FORCE_COLOR", "COLUMNS"): "Colours and width of the terminal, as rich reads them.",
    ("_JAXEXPORT_COMPLETE",): "Shell completion, as click reads it: [the terminal](terminal.md).",
}


def read() -> str:
    """Return a table of the environment variables that the program or its libraries read."""
    return table(
        ("variable", "what"), [(", ".join(map(code, names)), text) for names, text in (READ | BY_LIBRARIES).items()]
    )


def inherited() -> str:
    """Return a table of the environment variables that a cell inherits from its parent process."""
    rows = [
        ("the system", sorted(processes.SYSTEM)),
        ("devices", sorted(processes.DEVICES)),
        ("linear algebra", sorted(processes.KERNELS)),
        ("names that begin so", [f"{prefix}*" for prefix in processes.PREFIXES]),
    ]
    return table(("of", "variables"), [(what, ", ".join(map(code, names))) for what, names in rows])


def given() -> str:
    """Return a table of the environment variables that each cell is given, with their values."""
    return table(
        ("variable", "value"), [(code(name), code(value)) for name, value in environment.CELL_VARIABLES.items()]
    )


def of_an_installation() -> str:
    """Return a table of the variables and keys of uv.toml that count when a reader's environment is built."""
    credentials = [f"UV_INDEX_*{ending}" for ending in uv_settings.CREDENTIALS]
    rows = [
        ("the package index, which decides what is installed", uv_settings.INDEX_VARIABLES),
        ("its passwords", credentials),
        ("proxies, in capitals or not", uv_settings.PROXIES),
        ("paths of certificates, of passwords and of uv's own folders", uv_settings.PATH_VARIABLES),
        ("how uv fetches and stores", uv_settings.OTHER_VARIABLES),
        ("keys of uv.toml that decide what is installed", uv_settings.INDEX_KEYS),
        ("other keys of uv.toml", uv_settings.OTHER_KEYS),
    ]
    return table(("of", "names"), [(what, ", ".join(map(code, names))) for what, names in rows])


PARTS = {
    "variables read": read,
    "variables inherited": inherited,
    "variables given": given,
    "variables of an installation": of_an_installation,
}
