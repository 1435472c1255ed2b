"""The upkeep of a folder of goldens: renaming a case, and finding what belongs to no golden."""

import contextlib
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from export_core.base.atomic import REMOVED, STAGED, SWAPPED_OUT, is_abandoned
from export_core.base.text import did_you_mean, few
from export_core.base.untrusted import read_named
from export_core.goldens.arrays import GoldenError
from export_core.goldens.manifest import Manifest
from export_core.goldens.manifest_file import dump_manifest, problem_of_plain_name
from export_core.goldens.restoring import DIGEST
from export_core.goldens.store import MANIFEST, Golden, GoldenStore, content_of, has_content, readable_goldens


def rename_case(
    store: GoldenStore, old: str, new: str, test: str | None = None, *, dry_run: bool = False
) -> list[Golden]:
    """Rename a case, and return its goldens; with `dry_run`, return those that would be renamed.

    Everything is stored under the new name before anything under the old name is deleted. So the same call completes a
    rename that was killed.

    Args:
        store: all goldens.
        old: the case.
        new: its new name.
        test: the test that exports the new case. If it is None, the test is derived from the new name; if that cannot
            be done, it is left out: such goldens never count as unused.
        dry_run: whether to change nothing.

    Raises:
        GoldenError: The new case has goldens that the old case does not have with equal content.
    """
    if problem := problem_of_plain_name(new):
        raise GoldenError(f"expected the name of a case, such as tests.test_a.test_f, found {new!r}, {problem}.")
    goldens = store.existing(old)
    # One folder may have two names that differ in upper and lower case, where the disk ignores case.
    if (store.root / new).exists() and (store.root / old).samefile(store.root / new):
        raise GoldenError(f"{new}: expected another name than {old}; nothing was renamed.")
    test = test or exporting_test(goldens[-1].manifest, new)
    existing, done = store.generations(new), 0
    moved: list[tuple[Manifest, dict[str, bytes]]] = []
    for golden in goldens:
        golden.verify()
        manifest = msgspec.structs.replace(golden.manifest, case=new, test=test)
        moved.append((manifest, {**content_of(golden.folder), MANIFEST: dump_manifest(manifest)}))
        done += has_content(store.root / new / golden.folder.name, moved[-1][1])
    # The new case has goldens of a rename that was killed: while it wrote, and the new case has nothing else yet;
    # or while it deleted, and has everything.
    if done not in (len(existing), len(goldens)):
        raise GoldenError(
            f"{store.root / new}: expected no golden of the new case, found {len(existing)}, and nothing was renamed. "
            f"Choose another name; or delete {new} if `pytest --update-goldens` can write its goldens again."
        )
    if dry_run:
        return goldens
    for manifest, content in moved:
        store.write(manifest, content)
    for golden in (renamed := store.generations(new)):
        golden.verify()
    for golden in goldens:
        store.remove(golden)
    return renamed


def exporting_test(manifest: Manifest, case: str) -> str:
    """Return the id of the test that exports a renamed case, derived from its name and the test in its manifest.

    It is "" if the name does not tell the test.
    """
    if not manifest.test or DIGEST.search(case):
        return ""
    parts = case.partition("[")[0].split(".")
    modules = [parts[:count] for count in range(len(parts) - 1, 0, -1)]
    present = manifest.test.partition("::")[0]
    # The test files that the case may be from: the present one, or another that exists in the working folder.
    for module in sorted(modules, key=lambda module: f"{'/'.join(module)}.py" != present):
        file = f"{'/'.join(module)}.py"
        if file != present and not Path(file).is_file():
            continue
        names, bracket, parameters = case.removeprefix(f"{'.'.join(module)}.").partition("[")
        if manifest.name and not bracket:
            names = names.rpartition(".")[0]  # the last is the name= of the call
        elif manifest.name:
            parameters = f"{parameters.rpartition(']')[0]}]"
        if names:
            return "::".join((file, *names.split("."))) + bracket + parameters
    return ""


def missing_test(test: str) -> str:
    """Return what the working folder lacks of a test, as a sentence for a warning; empty if it lacks nothing.

    Only the text of the file is looked at, which need not name a test that is inherited or made by a decorator.
    """
    file, *names = test.partition("[")[0].split("::")
    try:
        text = read_named(file).decode(errors="replace")
    except OSError:
        return f"{file} is not here."
    defined = re.findall(r"^\s*(?:async\s+def|def|class)\s+(test\w*)", text, re.MULTILINE | re.IGNORECASE)
    absent = next((name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)), "")
    hint = did_you_mean(absent, defined) or (f" It has {few(defined, most=3)}." if defined else "")
    return absent and f"{file} does not name {absent}.{hint}"


@dataclass(frozen=True)
class Stray:
    """A file or folder in a folder of goldens that does not belong to any golden."""

    path: Path
    what: str
    leftover: bool = False
    """Whether a killed write or deletion left it behind, so that it can be deleted without loss."""

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def strays(root: Path) -> Iterator[Stray]:
    """Yield all strays that can be found without reading a manifest.

    A folder in a case's folder counts as a golden, whole or damaged. Beside the cases, a README and hidden files, such
    as .gitattributes, are the user's own and not strays.
    """
    for case in sorted(root.iterdir()) if root.is_dir() else ():
        if case.name.startswith("."):
            continue
        if not case.is_dir():
            if not case.name.upper().startswith("README"):
                yield Stray(case, "a file outside any golden's folder")
            continue
        entries = sorted(case.iterdir())
        if not entries:
            yield Stray(case, "a case without a golden", leftover=True)
        for path in entries:
            if path.name.startswith((STAGED, REMOVED)):
                if is_abandoned(path):  # otherwise a living process is at work in it
                    yield Stray(path, "left by a process that was killed", leftover=True)
            elif path.name.startswith(SWAPPED_OUT):
                # While its replacement is missing, this is the only copy of the golden.
                replaced = (case / path.name.removeprefix(SWAPPED_OUT)).exists()
                yield Stray(path, "the golden that a killed update was replacing", leftover=replaced)
            elif not path.is_dir():
                yield Stray(path, "a file outside any golden's folder")


def unlisted_files(store: GoldenStore) -> Iterator[Stray]:
    """Yield, as strays, the files in the folders of goldens that their manifests do not list.

    Goldens whose manifest cannot be read are left out: `verify_goldens` reports them.
    """
    for golden in readable_goldens(store)[0]:
        for path in sorted(golden.folder.iterdir()):
            if path.name not in {MANIFEST, *golden.manifest.files}:
                what = f"not one of the files of {golden.id}"
                if path.name == "__pycache__":
                    what += ": bytecode, which can be deleted; an earlier version of pytest-jaxexport left it"
                yield Stray(path, what)


def delete_leftovers(candidates: Iterable[Stray]) -> list[Stray]:
    """Delete those strays that are leftovers of a killed write or deletion, and return them."""
    leftovers = [stray for stray in candidates if stray.leftover]
    for stray in leftovers:
        # A case's folder is removed only if it is empty: a golden may have been written into it since it was listed.
        if stray.path.name.startswith("."):
            shutil.rmtree(stray.path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):  # another process writes a golden of this case by now
                stray.path.rmdir()
    return leftovers
