"""Renaming a case: all of its goldens go to another name, and only what they say of their case and test changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from export_core.goldens.errors import GoldenError
from export_core.goldens.manifest import Manifest
from export_core.goldens.manifest_file import dump_manifest
from export_core.goldens.rules import is_plain_name
from export_core.goldens.store import MANIFEST, Golden, GoldenStore, content_of

_DIGEST = re.compile(r"-[0-9a-f]{8}$")


@dataclass(frozen=True)
class _Move:
    """One golden of the old case, and what is stored for it under the new one."""

    golden: Golden
    manifest: Manifest
    files: Mapping[str, bytes]

    def is_done(self, store: GoldenStore) -> bool:
        """Whether the new case has exactly this golden."""
        folder = store.root / self.manifest.case / self.manifest.writer.id
        return folder.is_dir() and content_of(folder) == {MANIFEST: dump_manifest(self.manifest), **self.files}


def rename_case(store: GoldenStore, old: str, new: str, test: str | None = None) -> list[Golden]:
    """Give all goldens of a case another name, and return them. A rename that was killed is completed by the same call.

    Everything is stored under the new name before anything of the old one is deleted. `test` is the test that exports
    the new case; without it, it follows from the name where it can, and is else left out: such goldens never count as
    unused. Raises `GoldenError` where the new case has other goldens.
    """
    if not is_plain_name(new):
        raise GoldenError(f"{new!r}: expected the name of a case, such as tests.test_a.test_f.")
    goldens = store.existing(old)
    # Also by a name that only differs in its letters' case, where the disk makes no difference between them.
    if (store.root / new).exists() and (store.root / old).samefile(store.root / new):
        raise GoldenError(f"{new}: expected another name than {old}; nothing was renamed.")
    test = test or exporting_test(goldens[-1].manifest, new)
    moves = [_move(golden, new, test) for golden in goldens]
    _refuse_other_goldens(store, moves, store.generations(new))
    for move in moves:
        store.write(move.manifest, move.files)
    renamed = store.generations(new)
    for golden in renamed:
        golden.verify()
    for move in moves:
        store.remove(move.golden)
    return renamed


def _move(golden: Golden, new: str, test: str) -> _Move:
    golden.verify()
    files = {name: data for name, data in content_of(golden.folder).items() if name != MANIFEST}
    return _Move(golden, msgspec.structs.replace(golden.manifest, case=new, test=test), files)


def _refuse_other_goldens(store: GoldenStore, moves: list[_Move], existing: list[Golden]) -> None:
    """Raise `GoldenError` unless what the new case has comes from a rename that was killed.

    It was killed while it wrote, and the new case has nothing else yet; or while it deleted, and has everything.
    """
    done = [move for move in moves if move.is_done(store)]
    if len(done) not in (len(existing), len(moves)):
        new = moves[0].manifest.case
        raise GoldenError(
            f"{store.root / new}: expected no golden of the new case, found {len(existing)}, and nothing was renamed. "
            f"Choose another name; or delete {new} if `pytest --update-goldens` can write its goldens again."
        )


def exporting_test(manifest: Manifest, case: str) -> str:
    """The test that exports a case, like the one of this manifest; empty where it does not follow from the name."""
    if not manifest.test or _DIGEST.search(case):  # the digest stands for what a folder's name cannot have
        return ""
    for file in _files_of(manifest, case):
        names, bracket, parameters = case.removeprefix(f"{_module(file)}.").partition("[")
        if manifest.name and not bracket:
            names = names.rpartition(".")[0]  # the last is the name= of the call
        elif manifest.name:
            parameters = f"{parameters.rpartition(']')[0]}]"
        if names:
            return "::".join((file, *names.split("."))) + bracket + parameters
    return ""


def _files_of(manifest: Manifest, case: str) -> Iterator[str]:
    """The test files that a case may be from: the present one, or another that exists in the working folder."""
    parts = case.partition("[")[0].split(".")
    candidates = [f"{'/'.join(parts[:count])}.py" for count in range(len(parts) - 1, 0, -1)]
    present = manifest.test.partition("::")[0]
    if present in candidates:
        yield present
    yield from (file for file in candidates if Path(file).is_file())


def _module(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".")
