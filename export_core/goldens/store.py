"""Where do goldens lie on disk, and how do they get there all or nothing?

``<root>/<case>/<writer>/`` holds one golden. A golden is written into a hidden folder beside its place and swapped in by one
rename, so that whoever is killed leaves the old golden or the new one.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from export_core.goldens.arrays import Leaf, from_npz
from export_core.goldens.errors import GoldenError
from export_core.goldens.manifest import RESTORE, Manifest, dump_manifest, load_manifest, refuse_newer_format

MANIFEST = "golden.yaml"
ARTIFACT = "artifact.jaxexport"
INPUTS = "inputs.npz"
OUTPUTS = "outputs.npz"
GONE = ".gone-"
FOR_THE_EYE = ("module.mlir", "jaxpr.txt")


class Written(StrEnum):
    """What `GoldenStore.write` did."""

    NEW = "new"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Golden:
    """One golden on disk, its manifest read."""

    manifest: Manifest
    folder: Path

    @functools.cached_property
    def id(self) -> str:
        """``<case>/<writer>``, unique in a store."""
        return f"{self.manifest.case}/{self.manifest.writer.id}"

    @property
    def artifact(self) -> Path:
        """The serialized `jax.export.Exported`."""
        return self.folder / ARTIFACT

    def inputs(self) -> tuple[Leaf, ...]:
        """The flat arguments."""
        return from_npz(self.folder / INPUTS)

    def outputs(self) -> tuple[Leaf, ...]:
        """The flat results that the writer saw."""
        return from_npz(self.folder / OUTPUTS)

    def verify(self) -> None:
        """Compare each file with its SHA-256. Raises `GoldenError` for one that is missing, changed or was never listed."""
        for name, expected in self.manifest.files.items():
            path = self.folder / name
            try:
                found = sha256(path.read_bytes())
            except FileNotFoundError:
                raise GoldenError(f"{path}: expected a file of this golden, found none. {RESTORE}") from None
            if found != expected:
                raise GoldenError(f"{path}: damaged: expected SHA-256 {expected}, found {found}. {RESTORE}")
        for name in (ARTIFACT, INPUTS, OUTPUTS):
            if name not in self.manifest.files:
                raise GoldenError(f"{self.folder / MANIFEST}: expected {name} under `files`, found none. {RESTORE}")


@dataclass(frozen=True)
class GoldenStore:
    """All goldens below `root`."""

    root: Path

    def goldens(self) -> list[Golden]:
        """Every golden, by case, then by the build date of its writer. Raises `GoldenError` at the first unreadable one."""
        cases = sorted(path.name for path in self._folders(self.root))
        return [golden for case in cases for golden in self.generations(case)]

    def generations(self, case: str) -> list[Golden]:
        """The goldens of one case, oldest writer first."""
        self._recover(self.root / case)
        found = [self._load(folder) for folder in self._folders(self.root / case)]
        return sorted(found, key=lambda golden: (golden.manifest.writer.built, golden.manifest.writer.id))

    def write(self, manifest: Manifest, files: Mapping[str, bytes]) -> Written:
        """Write one golden atomically. A golden that is already there with the same bytes is not touched.

        Raises `GoldenError` when the disk refuses, or when a newer version of this tool wrote the golden that is there; then
        everything stored is as it was.
        """
        target = self.root / manifest.case / manifest.writer.id
        self._recover(target.parent)
        content = {MANIFEST: dump_manifest(manifest), **files}
        known = target.exists()
        if known and self._content(target) == content:
            return Written.UNCHANGED
        if known:
            refuse_newer_format(target / MANIFEST)
        staged = target.parent / f".new-{target.name}-{os.getpid()}-{secrets.token_hex(4)}"
        _clear_abandoned(target)
        try:
            staged.mkdir(parents=True)
            for name, data in content.items():
                _write_synced(staged / name, data)
            if known:
                _swap(staged, target)
            else:
                staged.rename(target)
            _sync_folder(target.parent)
        except OSError as error:
            raise GoldenError(
                f"{target}: cannot write this golden: {error.strerror or error}. Nothing stored was changed; "
                "make room or fix the permissions, then run `pytest --update-goldens` again."
            ) from error
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        return Written.REPLACED if known else Written.NEW

    def remove(self, golden: Golden) -> None:
        """Delete one golden all or nothing: it is renamed out of sight, then its files go. An empty case folder goes with it.

        Raises `GoldenError` when the disk refuses; then the golden is as it was.
        """
        gone = golden.folder.with_name(f"{GONE}{golden.folder.name}-{os.getpid()}-{secrets.token_hex(4)}")
        try:
            golden.folder.rename(gone)
            _sync_folder(golden.folder.parent)
        except OSError as error:
            raise GoldenError(
                f"{golden.folder}: cannot delete this golden: {error.strerror or error}. It is as it was."
            ) from error
        shutil.rmtree(gone, ignore_errors=True)
        with contextlib.suppress(OSError):  # other goldens, or somebody's file, are in it
            golden.folder.parent.rmdir()

    def _load(self, folder: Path) -> Golden:
        manifest = load_manifest(folder / MANIFEST)
        if (manifest.case, manifest.writer.id) != (folder.parent.name, folder.name):
            raise GoldenError(
                f"{folder / MANIFEST}: is the manifest of {manifest.case}/{manifest.writer.id}, but lies in "
                f"{folder.parent.name}/{folder.name}. Move the folder back to its place."
            )
        return Golden(manifest, folder)

    @staticmethod
    def _folders(parent: Path) -> Iterator[Path]:
        if parent.is_dir():
            yield from sorted(path for path in parent.iterdir() if path.is_dir() and not path.name.startswith("."))

    @staticmethod
    def _content(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    @staticmethod
    def _recover(case: Path) -> None:
        """Put back goldens whose replacement was killed between the two renames of a platform without an atomic swap."""
        for hidden in sorted(case.glob(".old-*")):
            place = case / hidden.name.removeprefix(".old-")
            if place.exists():
                shutil.rmtree(hidden, ignore_errors=True)
            else:
                hidden.rename(place)


def sha256(data: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clear_abandoned(target: Path) -> None:
    """Remove what a killed process staged for this golden."""
    for staged in target.parent.glob(f".new-{target.name}-*-*"):
        if is_abandoned(staged):
            shutil.rmtree(staged, ignore_errors=True)


def is_abandoned(hidden: Path) -> bool:
    """Whether a process that is gone left this folder, named ``.new-…-PID-…`` or ``.gone-…-PID-…``. False for what is not ours."""
    try:
        os.kill(int(hidden.name.rsplit("-", 2)[1]), 0)
    except ProcessLookupError:
        return True
    except (ValueError, IndexError, OverflowError, PermissionError):
        return False
    return False


def _swap(staged: Path, target: Path) -> None:
    """Exchange two folders: in one system call where the kernel can, else by two renames that `_recover` completes."""
    if _exchange(staged, target):
        return
    old = target.parent / f".old-{target.name}"
    target.rename(old)
    staged.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """renameat2(RENAME_EXCHANGE) of Linux 3.15. False where it does not exist."""
    at_working_folder, rename_exchange = -100, 2
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    result: int = renameat2(
        at_working_folder, os.fsencode(first), at_working_folder, os.fsencode(second), rename_exchange
    )
    return result == 0
