"""The folder of goldens: ``<root>/<case>/<writer>/`` holds one golden, written and deleted all or nothing.

`base.atomic` does that: a process that is killed at any moment leaves the old golden or the new one.
"""

import contextlib
import datetime
import functools
import glob
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from io import BufferedReader
from itertools import starmap
from pathlib import Path

from export_core.artifact import Artifact, ArtifactError, read_bytes
from export_core.artifact.numerics import factored_outputs, has_factorization
from export_core.base import atomic
from export_core.base.checked_arguments import path_of
from export_core.base.scratch import scratch_folder
from export_core.base.subfolders import found_above
from export_core.base.text import close_match, few
from export_core.base.tolerances import Sources
from export_core.base.untrusted import LARGEST, open_regular, read_named, read_regular
from export_core.goldens import manifest_file
from export_core.goldens.arrays import GoldenError, Leaf, Noise, from_npz, noise_from_npz
from export_core.goldens.manifest import Check, Comparison, FactorGroup, Manifest, as_stored
from export_core.goldens.restoring import restoring, restoring_unread

_THERE = "There are goldens in"  # Begins a sentence about a folder above.
MANIFEST = "golden.yaml"
ARTIFACT = "artifact.jaxexport"
INPUTS = "inputs.npz"
OUTPUTS = "outputs.npz"
NOISE = "noise.npz"
MODULE_TEXT = "module.mlir"
JAXPR_TEXT = "jaxpr.txt"
LFS_POINTER = b"version https://git-lfs"  # How a pointer of Git LFS begins, which stands for a file not fetched.
FOR_THE_EYE = (MODULE_TEXT, JAXPR_TEXT)
_EXPORT_GOLDENS = re.compile(r"""^[ \t]*export_goldens[ \t]*=[ \t]*["']?([^"'#;\s][^"'#;\n]*)""", re.MULTILINE)
_OWN_FOLDERS = (
    atomic.STAGED,
    atomic.SWAPPED_OUT,
    atomic.REMOVED,
)  # Folders that are hidden while a golden is written, replaced or deleted.


class WriteStatus(StrEnum):
    """What `GoldenStore.write` did with a golden."""

    NEW = "new"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class ComparedAs:
    """How the outputs of a golden are compared, and which custom calls are allowed."""

    comparison: Comparison  # Comparator and tolerances.
    allow: Mapping[str, str]  # Custom-call targets that are accepted beside the stable list, each with its reason.
    sources: Sources = field(default_factory=dict)  # What set each part of the comparison that the golden did not set.


@dataclass(frozen=True)
class Golden:
    """A golden as it is stored, with its manifest read."""

    manifest: Manifest  # The manifest, as it is on disk.
    folder: Path  # The folder of the golden.

    @property
    def compared_as(self) -> ComparedAs:
        """How the golden is compared: as its manifest says, unless it is a `ComparedGolden`."""
        return ComparedAs(self.manifest.comparison, self.manifest.options.allow)

    def compared(self, how: ComparedAs) -> "ComparedGolden":
        """Return this golden, to be compared as `how` says."""
        return ComparedGolden(self.manifest, self.folder, how)

    @functools.cached_property
    def id(self) -> str:
        """The name ``<case>/<writer>``, unique in a store."""
        return f"{self.manifest.case}/{self.manifest.writer.id}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names that people use for the golden: the case, ``<case>/<writer>``, and ``<case>/<jaxlib>``."""
        case, writer = self.manifest.case, self.manifest.writer
        return case, *(f"{case}/{name}" for name in writer.names)

    @property
    def artifact(self) -> Path:
        """The path of the serialized `jax.export.Exported`."""
        return self.folder / ARTIFACT

    def content(self, name: str) -> bytes:
        """Return the bytes of the golden's file with this name.

        Raises `GoldenError` for a file that is missing, or is not regular.
        """
        with self._opened(name) as file:
            return file.read()

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[BufferedReader]:
        path = self.folder / name
        try:
            with open_regular(path) as file:
                yield file
        except FileNotFoundError:
            raise GoldenError(
                f"{path}: expected a file of this golden, found none. {restoring(self.manifest)}"
            ) from None
        except OSError as error:
            raise GoldenError(f"{path}: cannot read this file: {error.strerror}. {restoring(self.manifest)}") from None

    def files(self) -> dict[str, bytes]:
        """Return the bytes of every file that the manifest lists, by name."""
        return {name: self.content(name) for name in self.manifest.files}

    def read_artifact(self) -> Artifact:
        """Read the artifact and return it. Raises `GoldenError` if it is missing, `ArtifactError` if it is damaged."""
        return read_bytes(self.content(ARTIFACT), str(self.artifact))

    @functools.cached_property
    def factors(self) -> tuple[FactorGroup, ...]:
        """The outputs that come straight from factorizations, by the manifest or the artifact's custom calls."""
        if self.manifest.factors or not has_factorization(self.manifest.custom_calls):
            return self.manifest.factors
        try:
            return tuple(starmap(FactorGroup, factored_outputs(self.read_artifact())))
        except (GoldenError, ArtifactError):  # verifying and auditing it report that
            return ()

    def inputs(self) -> tuple[Leaf, ...]:
        """Return the flat arguments, in order."""
        return from_npz(self.folder / INPUTS)

    def outputs(self) -> tuple[Leaf, ...]:
        """Return the flat results that the writer computed, in order."""
        return from_npz(self.folder / OUTPUTS)

    @property
    def calls(self) -> dict[str, Check]:
        """For each file of outputs, by name, the first call that must give it."""
        calls: dict[str, Check] = {}
        for check in (Check("", inputs=INPUTS, outputs=OUTPUTS), *self.manifest.checks):
            if check.outputs:
                calls.setdefault(check.outputs, check)
        return calls

    def outputs_of_calls(self) -> dict[str, tuple[Leaf, ...]]:
        """Return the arrays of each file of outputs, by the file's name."""
        return {file: from_npz(self.folder / file) for file in self.calls}

    def noise(self, outputs: Mapping[str, Sequence[Leaf]] | None = None) -> dict[str, Noise]:
        """Return the noise of each file of outputs, by the file's name; an empty dict if none was measured.

        `outputs` are those of `outputs_of_calls`, if they have been read. Raises `GoldenError` for a noise.npz that
        does not belong to them.
        """
        if self.manifest.noise is None:
            return {}
        outputs = self.outputs_of_calls() if outputs is None else outputs
        noise = noise_from_npz(self.content(NOISE), f"{self.folder / NOISE}", list(outputs.values()))
        return dict(zip(outputs, noise, strict=True))

    def verify(self) -> None:
        """Compare each file that the manifest lists with its SHA-256.

        Raises `GoldenError` for listed files that are missing or changed. It is also raised if the artifact, the inputs
        or the outputs are not listed; a golden without outputs need not list them.
        """
        problems = []
        for name, expected in self.manifest.files.items():
            try:
                with self._opened(name) as file:
                    actual = hashlib.file_digest(file, "sha256").hexdigest()
            except GoldenError as error:
                problems.append(str(error))
                continue
            if actual != expected:
                path, content = self.folder / name, self.content(name)
                # These two are of the whole checkout: one file of each golden says it.
                if sha256(content.replace(b"\r\n", b"\n")) == expected:
                    problems.append(
                        f"{path}: damaged: its line ends were converted to CR LF, as git's core.autocrlf does. Put "
                        "`* -text` into a file .gitattributes in the folder of goldens, and check them out again."
                    )
                    break
                if content.startswith(LFS_POINTER):
                    problems.append(
                        f"{path}: expected the file, found a Git LFS pointer. Fetch it with `git lfs pull`."
                    )
                    break
                problems.append(
                    f"{path}: damaged: expected SHA-256 {expected}, found {actual}. {restoring(self.manifest)}"
                )
        for name in (ARTIFACT, INPUTS, *(() if self.manifest.options.without_outputs else (OUTPUTS,))):
            if name not in self.manifest.files:
                problems.append(
                    f"{self.folder / MANIFEST}: expected {name} under `files`, found none. {restoring(self.manifest)}"
                )
        if problems:
            raise GoldenError("\n".join(problems))


@dataclass(frozen=True)
class ComparedGolden(Golden):
    """A golden as a run compares it: by its test's marker, and by rules and quirks of the policy."""

    how: ComparedAs  # How this run compares it.

    @property
    def compared_as(self) -> ComparedAs:
        """How the golden is compared in this run."""
        return self.how


def similar_cases(name: str, cases: Iterable[str], *, globs: bool = False) -> list[str]:
    """Return the cases, at most three, that a name or glob without a case probably means.

    Reports name cases without their module, and a parametrized test has a case for each of its parameters: cases that
    end with the name, or whose test function has it, are the most similar. Next are those whose function contains it.

    Args:
        name: ``CASE`` or ``CASE/WRITER``, of which only the case counts.
        cases: The names of all cases.
        globs: Whether a glob is returned if it takes more than three cases.
    """
    from export_core.policy.entries import matches  # only a mistake needs it

    cases, (case, slash, _) = list(cases), name.partition("/")
    functions = {known: known.partition("[")[0].rpartition(".")[2] for known in cases}
    meant = [
        known
        for known in cases
        if case in (functions[known], known.partition("[")[0])
        or any(matches(known.split(".", dots)[-1], case) for dots in range(1, known.count(".") + 1))
    ]
    meant = meant or [known for known in cases if case and not slash and case in functions[known]]
    if 0 < len(meant) <= 3:
        return meant
    # Of one parametrized test all cases are meant; else a glob has to begin with the module, too.
    tests = {known.partition("[")[0] for known in meant}
    glob_of_all = f"{tests.pop()}[*]" if len(tests) == 1 else f"*.{case}"
    if globs and meant and all(matches(known, glob_of_all) for known in meant):
        return [glob_of_all]
    return list(filter(None, [close_match(case, cases)]))


def cases_meant(names: Iterable[str], cases: Iterable[str], *, globs: bool = False) -> str:
    """Return a hint such as `` Did you mean 'tests.test_a.test_f'?`` at the `similar_cases` of names; "" if none."""
    cases = list(cases)
    similar = [" or ".join(map(repr, similar_cases(name, cases, globs=globs))) for name in names]
    meant = list(dict.fromkeys(filter(None, similar)))
    return f" Did you mean {few(meant)}?" if meant else ""


def hint_at_cases(name: str, cases: Iterable[str]) -> str:
    """Return the end of a message about a name that no case has: similar cases, and the command that lists cases."""
    return f"{cases_meant([name], cases)} `jaxexport goldens list` shows all cases."


@dataclass(frozen=True)
class GoldenStore:
    """The goldens below a folder, `root`."""

    root: Path  # The folder of goldens.

    def __init__(self, root: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "root", path_of(root, "GoldenStore", "a folder of goldens", GoldenError))

    def goldens(self) -> list[Golden]:
        """Return every golden, by case, then by the build date of its writer.

        Replacements that were killed halfway are completed first, so even reading may rename folders. Raises
        `GoldenError` for an unreadable golden or folder.
        """
        return [golden for case in self.cases() for golden in self.generations(case)]

    def goldens_so_far(self) -> list[Golden]:
        """Return every golden as `goldens` does; an empty list if there is no folder yet."""
        return self.goldens() if self.root.is_dir() else []

    def cases(self) -> list[str]:
        """Return the names of all cases.

        Raises `GoldenError` without a folder, and for a golden.yaml outside a golden's folder.
        """
        if not self.root.is_dir():
            raise GoldenError(no_goldens(self.root))
        return [folder.name for folder in self._folders(self.root)]

    def generations(self, case: str) -> list[Golden]:
        """Return the goldens of a case, the oldest writer first; an empty list for an unknown case."""
        return self._generations(case, lambda _: True)

    def readable(self, case: str) -> list[Golden]:
        """Return the goldens of a case as `generations` does, without those that can only be written again."""
        return self._generations(case, lambda writer: not self.is_unreadable(case, writer))

    def _generations(self, case: str, is_wanted: Callable[[str], bool]) -> list[Golden]:
        goldens = [self._load(folder) for folder in self._folders_of(case) if is_wanted(folder.name)]
        return sorted(goldens, key=_by_writer)

    def is_unreadable(self, case: str, writer: str) -> bool:
        """Return whether there is a golden by this writer whose manifest is missing or damaged."""
        folder = self.root / case / writer
        try:
            if folder.is_dir():
                self._load(folder)
        except manifest_file.UnreadableManifestError:
            return True
        except GoldenError:  # it is more than a damaged file, such as a link: no golden is to replace it
            pass
        return False

    def existing(self, case: str) -> list[Golden]:
        """Return the goldens of a case whose name a person gave, the oldest writer first.

        Raises `GoldenError` if there is no such case.
        """
        # A case such as `..` must not lead out of the folder of goldens.
        goldens = self.generations(case) if manifest_file.is_plain_name(case) else []
        if not goldens:
            raise GoldenError(f"{self.root}: no case is called {case!r}.{hint_at_cases(case, self.cases())}")
        return goldens

    def find(self, name: str) -> tuple[list[Golden], Golden]:
        """Return all goldens of a case that a person names, and the golden by the named writer, or else the newest.

        Args:
            name: ``CASE`` or ``CASE/WRITER``; or the path of its folder, as a shell completes it. The jaxlib
                suffices as the writer if it wrote one golden of the case.

        Raises:
            GoldenError: no case has this name, or the case has no golden by this writer, or several by this jaxlib.
        """
        case, _, writer = self.name_of(name).partition("/")
        generations = self.existing(case)
        if not writer:
            return generations, generations[-1]
        own = [golden for golden in generations if writer in golden.manifest.writer.names]
        if len(own) == 1:
            return generations, own[0]
        if own:
            raise GoldenError(
                f"{name}: expected one golden, found {len(own)} by this jaxlib. Name one of {few([x.id for x in own])}."
            )
        known = ", ".join(golden.manifest.writer.id for golden in generations)
        raise GoldenError(f"{self.root / case}: no writer is called {writer!r}. There are goldens by {known}.")

    def meant(self, name: str) -> tuple[list[Golden], Golden] | None:
        """Return what `find` returns for a name; None if the name means no case.

        Raises `GoldenError` for a writer that the case does not have, and for a misspelled case.
        """
        case, cases = self.name_of(name).partition("/")[0], self.cases() if self.root.is_dir() else []
        if case in cases:
            return self.find(name)
        if hint := cases_meant([name], cases):
            raise GoldenError(f"{name}: expected a file, a folder, or a golden in {self.root}, found none.{hint}")
        if case and (above := found_above(_THERE, self.root, f"{glob.escape(case)}/*/{MANIFEST}")):
            raise GoldenError(f"{name}: expected a file, a folder, or a golden in {self.root}, found none. {above}")
        return None

    def named(self, name: str) -> list[Golden]:
        """Return all goldens of a case that a person names, or, if the name has a writer, that writer's golden only.

        The names are those of `find`, which also says what is raised.
        """
        generations, golden = self.find(name)
        return [golden] if "/" in self.name_of(name) else generations

    def name_of(self, path: str) -> str:
        """Return the name of a case or a golden from the path of its folder; a name is returned unchanged."""
        return path.rstrip("/").removeprefix(f"{self.root.as_posix()}/")

    def with_artifact(self, sha256: str) -> Golden | None:
        """Return the golden whose artifact has this SHA-256, or None.

        Raises `GoldenError` if its manifest cannot be read.
        """
        for path in sorted(self.root.glob(f"*/*/{MANIFEST}")):
            try:
                # As bytes: only the manifest of the right golden is parsed.
                if sha256.encode() not in read_regular(path):
                    continue
            except OSError:  # a link or a pipe, which no golden has
                continue
            for golden in self.generations(path.parent.parent.name):
                if golden.manifest.files.get(ARTIFACT) == sha256:
                    return golden
        return None

    def write(self, manifest: Manifest, files: Mapping[str, bytes]) -> WriteStatus:
        """Write one golden atomically. A stored golden with the same bytes is not touched (`as_stored`).

        Raises:
            GoldenError: The disk refuses, a newer version of this tool wrote the stored golden, or the manifest could
                not be loaded again. Nothing stored has changed then, or the message says what has.
        """
        # First: `..` as a case would lead out of the root.
        manifest_file.check_manifest(manifest, f"{self.root / manifest.case}")
        target = self.root / manifest.case / manifest.writer.id
        if outer := golden_around(self.root):
            raise GoldenError(f"{self.root}: expected a folder of goldens, found a part of the golden {outer}.")
        _refuse_links(target)
        atomic.recover(target.parent)  # first, or a golden that waits to be put back would count as missing
        content = {MANIFEST: manifest_file.dump_manifest(manifest), **files}
        replaced = target.exists()
        if replaced:
            if self._holds(manifest, content):
                return WriteStatus.UNCHANGED
            manifest_file.refuse_newer_format(target / MANIFEST)
        try:
            atomic.put_folder(target, content)
        except OSError as error:
            raise GoldenError(
                f"{target}: cannot write this golden: {error.strerror or error}. Nothing stored was changed; "
                "make room or fix the permissions, then write it again, such as with `pytest --update-goldens`."
            ) from error
        try:
            atomic.sync_folder(target.parent)
        except OSError as error:
            raise GoldenError(
                f"{target}: this golden is written and complete, but the disk did not confirm it: "
                f"{error.strerror or error}. A power failure may still undo it: check the disk, then run "
                "`jaxexport goldens verify`."
            ) from error
        return WriteStatus.REPLACED if replaced else WriteStatus.NEW

    def holds(self, manifest: Manifest, files: Mapping[str, bytes]) -> bool:
        """Return whether this golden is stored already with these bytes. Its recorded packages may differ."""
        return self._holds(manifest, {MANIFEST: manifest_file.dump_manifest(manifest), **files})

    def _holds(self, manifest: Manifest, content: Mapping[str, bytes]) -> bool:
        """Return whether a golden is stored already with this content: its files, and its manifest as bytes."""
        target = self.root / manifest.case / manifest.writer.id
        same = [content]
        with contextlib.suppress(GoldenError):  # it is damaged, and written again
            as_it_was = as_stored(manifest, self._load(target).manifest)
            if as_it_was != manifest:
                same.append({**content, MANIFEST: manifest_file.dump_manifest(as_it_was)})
        return any(has_content(target, files) for files in same)

    def remove(self, golden: Golden) -> None:
        """Delete one golden all or nothing.

        A rename hides its folder, then its files are deleted, and the case's folder if it is empty. Raises
        `GoldenError` if the disk refuses the rename; then the golden is unchanged.
        """
        removed = atomic.hidden_name(atomic.REMOVED, golden.folder)
        try:
            golden.folder.rename(removed)
            atomic.sync_folder(golden.folder.parent)
        except OSError as error:
            raise GoldenError(
                f"{golden.folder}: cannot delete this golden: {error.strerror or error}. Nothing was deleted."
            ) from error
        shutil.rmtree(removed, ignore_errors=True)
        with contextlib.suppress(OSError):  # it is not empty: other goldens, or a file of the user's
            golden.folder.parent.rmdir()

    def _folders_of(self, case: str) -> list[Path]:
        """Return the folders of a case's goldens, after completing replacements that were killed halfway."""
        atomic.recover(self.root / case)
        return list(self._folders(self.root / case, own=_OWN_FOLDERS))

    def _load(self, folder: Path) -> Golden:
        _refuse_links(folder)
        if not (folder / MANIFEST).exists() and next(folder.glob(f"*/{MANIFEST}"), None):
            raise GoldenError(
                f"{self.root}: expected goldens in folders CASE/WRITER, found other folders of goldens, such as "
                f"`jaxexport convert` writes for several readers. Name one of them: --goldens {folder.parent}."
            )
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir() and entry.name != MANIFEST:
                    self._refuse_below(Path(entry.path))
        manifest = manifest_file.load_manifest(folder / MANIFEST)
        if (manifest.case, manifest.writer.id) != (folder.parent.name, folder.name):
            raise GoldenError(
                f"{folder / MANIFEST}: is the manifest of {manifest.case}/{manifest.writer.id}, but is in the folder "
                f"{folder.parent.name}/{folder.name}. Move the folder back to its place."
            )
        return Golden(manifest, folder)

    def _folders(self, parent: Path, own: tuple[str, ...] = ()) -> Iterator[Path]:
        """Yield the visible folders in a folder.

        Raises `GoldenError` for a stray golden.yaml, in the folder itself or below a hidden folder. Hidden folders
        whose names begin with one of `own` are not searched.
        """
        if not parent.is_dir():
            return
        for path in sorted(parent.iterdir()):
            if path.name == MANIFEST:
                raise self._misplaced(path)
            if not path.name.startswith("."):
                if path.is_dir():
                    yield path
            elif not path.name.startswith(own or "/"):
                self._refuse_below(path)

    def _refuse_below(self, folder: Path) -> None:
        if path := next(folder.rglob(MANIFEST), None):
            raise self._misplaced(path)

    def _misplaced(self, path: Path) -> GoldenError:
        return GoldenError(
            f"{path}: expected each golden in a folder {self.root}/CASE/WRITER, found one where none is read. Move its "
            "folder to that of its case and writer, or delete it."
        )


def readable_goldens(store: GoldenStore) -> tuple[list[Golden], dict[str, GoldenError]]:
    """Return every golden that can be read, in the order of `GoldenStore.goldens`, and why each other one cannot.

    The reasons are by the id of the golden, or by the case if its folder cannot be searched.

    Raises `GoldenError` for a golden.yaml outside the folders of all cases.
    """
    goldens: list[Golden] = []
    problems: dict[str, GoldenError] = {}
    for case in store.cases():
        try:
            folders = store._folders_of(case)
        except GoldenError as error:
            problems[case] = error
            continue
        of_case = []
        for folder in folders:
            try:
                of_case.append(store._load(folder))
            except GoldenError as error:
                problems[f"{case}/{folder.name}"] = error
        goldens += sorted(of_case, key=_by_writer)
    return goldens, problems


def _by_writer(golden: Golden) -> tuple[datetime.date, str]:
    """Return the key that sorts goldens by the build dates of their writers."""
    return golden.manifest.writer.built, golden.manifest.writer.id


def _refuse_links(folder: Path) -> None:
    """Raise `GoldenError` if a golden's folder, or that of its case, is a symbolic link."""
    for path in (folder.parent, folder):
        if path.is_symlink():
            raise GoldenError(f"{path}: expected a folder, found a symbolic link. {restoring_unread(folder)}")


def no_goldens(root: Path, advice: str = "") -> str:
    """Return the message for a folder without goldens, with what to do: `advice`, or how goldens are made."""
    expected = f"{root}: expected goldens, found none{'' if root.is_absolute() else f' in {root.absolute()}'}."
    if above := found_above(_THERE, root, f"*/*/{MANIFEST}"):
        return f"{expected} {above}"
    if written := _written_by_pytest():
        folder, file = written
        if folder != root.as_posix():
            return (
                f"{expected} pytest writes to {folder} (export_goldens in {file}), which only pytest reads: "
                f"set `goldens: {folder}` in the policy."
            )
    made = "Mark a test with @pytest.mark.export_compat and run `pytest --update-goldens`, or name the folder with"
    return f"{expected} {advice or f'{made} `goldens:` in the policy or with --goldens.'}"


def _written_by_pytest() -> tuple[str, str] | None:
    """Return the goldens folder that pytest's configuration names, and the file that names it; None if none does."""
    for file in ("pytest.toml", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"):  # pytest takes the first
        with contextlib.suppress(OSError):
            if found := _EXPORT_GOLDENS.search(read_named(file).decode(errors="replace")):
                return found[1].strip().rstrip("/"), file
    return None


@contextlib.contextmanager
def staged_goldens(*drafts: tuple[Manifest, Mapping[str, bytes]]) -> Iterator[list[Golden]]:
    """Yield goldens in a temporary folder, so that they can be replayed before they are stored."""
    with scratch_folder() as folder:
        store = GoldenStore(folder)
        for manifest, files in drafts:
            store.write(manifest, files)
        yield store.goldens()


def golden_around(folder: Path) -> Path | None:
    """Return the folder of the golden that a path names or is inside of, or None. The path need not exist."""
    real = folder.resolve()
    return next((around for around in (real, *real.parents) if (around / MANIFEST).is_file()), None)


def check_output_folder(folder: Path, option: str) -> None:
    """Raise `GoldenError` for an output folder that is, holds, or is inside a golden. Messages name `option`."""
    inside = (path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/{MANIFEST}"))
    if golden := golden_around(folder) or next(inside, None):
        raise GoldenError(
            f"{option} {folder}: expected a folder without goldens, found {golden}. Nothing is written into a golden: "
            "name another folder."
        )


def content_of(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file in a golden's folder, whether or not its manifest lists them."""
    return {path.name: read_named(path, LARGEST) for path in folder.iterdir() if path.is_file()}


def has_content(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Return whether a folder exists with exactly these files, given as name and content.

    Files are read in pieces, since a file may be larger than the memory that is left.
    """
    paths = {path.name: path for path in (folder.iterdir() if folder.is_dir() else ()) if path.is_file()}
    if {name: path.stat().st_size for name, path in paths.items()} != {name: len(data) for name, data in files.items()}:
        return False
    for name, path in paths.items():
        with open_regular(path, follow=True) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256(files[name]):
                return False
    return True


def sha256(data: bytes) -> str:
    """Return the SHA-256 of a file's content, as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
