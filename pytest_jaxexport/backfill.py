"""How does a project that adopts the tool today get goldens of the last six months? By running its tests with older releases."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import click

from export_core.matrix.building import build, uv_command
from export_core.matrix.environments import cell_variables, requirements
from export_core.matrix.errors import EnvironmentFailed
from export_core.matrix.interpreters import find_python, python_for
from export_core.releases import Calendar, ReleaseError

_CHECK = "import jax, jaxlib.version, pytest_jaxexport; print(jax.__version__, jaxlib.version.__version__)"
INCOMPLETE = 3


def write_goldens(
    writers: Sequence[str], install: Sequence[str], pytest_args: Sequence[str], calendar: Calendar
) -> int:
    """Run the marked tests of the project in the working folder with each of these jaxlib releases, writing goldens.

    Args:
        writers: jaxlib versions.
        install: pip requirements of the tests; empty stands for the project in the working folder, where it has a pyproject.toml.
        pytest_args: handed to pytest after its own.
        calendar: which releases there are.

    Returns:
        0 when every writer wrote; 1 when tests failed in one; 3 when an environment could not be built.
    """
    if not writers:
        raise ReleaseError("--writers: expected jaxlib versions such as 0.9.2,0.10.2, found none.")
    releases = [calendar.release(writer) for writer in writers]
    codes = []
    for release in releases:
        click.echo(f"== writing goldens with jax {release.jax}, jaxlib {release.jaxlib} (built {release.built})")
        wanted = (*requirements(release, calendar), "pytest", this_package(), *(install or _project_here()))
        python = find_python(python_for(calendar.pythons(release.jaxlib)), uv_command())
        try:
            environment = build(f"writer-{release.jaxlib}", python, wanted, _CHECK, salt=_declared())
        except EnvironmentFailed as error:
            click.echo(f"jaxlib {release.jaxlib}: {error}", err=True)
            codes.append(INCOMPLETE)
            continue
        command = [
            str(environment.python),
            "-m",
            "pytest",
            "--update-goldens",
            "-m",
            "export_compat",
            "-q",
            *pytest_args,
        ]
        code = subprocess.run(command, env=cell_variables(), check=False).returncode
        codes.append(1 if code else 0)
    return max(codes)


def this_package() -> str:
    """A pip requirement for the pytest-jaxexport that is running: its folder where it was installed from one, else its version."""
    found = distribution("pytest-jaxexport")
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    url = str(origin.get("url", ""))
    if url.startswith("file://") and origin.get("dir_info") is not None:
        path = url2pathname(urlparse(url).path)
        if not Path(path).exists():
            return f"pytest-jaxexport=={found.version}"
        return f"-e{path}" if origin["dir_info"].get("editable") else path
    return f"pytest-jaxexport=={found.version}"


def _declared() -> str:
    """What the project declares, so that another dependency means another environment."""
    path = Path("pyproject.toml")
    return path.read_text() if path.exists() else ""


def _project_here() -> tuple[str, ...]:
    return (f"-e{Path.cwd()}",) if Path("pyproject.toml").exists() else ()
