"""The pytest-jaxexport that is running, as a requirement: another environment gets the same code."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePosixPath
from urllib.parse import urlparse
from urllib.request import url2pathname

from export_core.base.atomic import write_whole
from export_core.readers.build import cache_folder
from export_core.readers.errors import EnvironmentFailed

_OF_THE_INSTALLER = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json")
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a zip file: the same files must give the same bytes


def own_requirement(package: Distribution | None = None) -> str:
    """A pip requirement for the code that runs here: its folder if it is editable, else a wheel of what is installed.

    A name and a version would be looked up in an index, which may have other code under them, or none: a fork, a branch
    or a wheel that was never published. Raises `EnvironmentFailed` where a part of the installed package is missing.
    """
    package = package or distribution("pytest-jaxexport")
    # The form of direct_url.json is that of PEP 610.
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        return f"-e{url2pathname(urlparse(origin['url']).path)}"
    name = f"{package.metadata['Name'].replace('-', '_')}-{package.version}"
    try:
        files = dict(installed_files(package))
        if not files:
            raise OSError(f"{name} has no RECORD of its files")
        wheel = wheel_of(f"{name}.dist-info/RECORD", files)
    except OSError as error:
        raise EnvironmentFailed(
            f"backfill installs a copy of this pytest-jaxexport, and one of its files cannot be read: {error}. Install "
            "pytest-jaxexport again."
        ) from error
    path = cache_folder() / "wheels" / hashlib.sha256(wheel).hexdigest()[:16] / f"{name}-py3-none-any.whl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [wheel])
    return str(path)


def installed_files(package: Distribution) -> Iterator[tuple[str, bytes]]:
    """The files that a wheel had, as they are now: not the commands, which name an interpreter, and no bytecode."""
    # Not `package.files`, which leaves out what is lost since CPython 3.12.
    for name in sorted(row[0] for row in csv.reader((package.read_text("RECORD") or "").splitlines()) if row):
        file = PurePosixPath(name)
        is_info = file.parent.name.endswith(".dist-info")
        if ".." in file.parts or file.suffix == ".pyc" or (is_info and file.name in _OF_THE_INSTALLER):
            continue
        yield name, Path(str(package.locate_file(name))).read_bytes()


def wheel_of(record: str, files: dict[str, bytes]) -> bytes:
    """A wheel of these files. Its RECORD, of the form in PEP 427, is the last of them."""
    lines = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in files.items()
    ]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in (*files.items(), (record, "".join([*lines, f"{record},,\n"]).encode())):
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), data, zipfile.ZIP_DEFLATED)
    return content.getvalue()
