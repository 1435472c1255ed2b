"""The parts of each artifact of an archive: its case, its inputs and outputs, by artifacts.yaml or a naming rule."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Annotated

import msgspec

from export_core.artifact import ArtifactError
from export_core.artifact.folders import LeftOut, artifact_in, files_of
from export_core.base.errors import Problem
from export_core.base.text import schema_problem
from export_core.base.untrusted import LARGEST_TEXT, read_regular
from export_core.base.yaml_text import decode_yaml
from export_core.goldens import GoldenError
from export_core.goldens.adopt import StatedFacts
from export_core.goldens.adopted_mesh import parse_specs
from export_core.goldens.manifest_file import is_plain_name
from export_core.goldens.store import MANIFEST

NAME = "{name}"
INPUTS, OUTPUTS = f"{NAME}.inputs.npz", f"{NAME}.outputs.npz"
"""The naming rule for files in the artifact's own folder. `{name}` is the artifact's name without its ending."""

IN_A_FOLDER = "artifact"
"""A file of this name, with any ending, gets its folder's name; `inputs.npz` and `outputs.npz` are beside it."""

FILE = "artifacts.yaml"  # A person's facts about the artifacts of an archive that file names do not show.

Size = Annotated[int, msgspec.Meta(ge=1)]


class ListedArtifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An entry of artifacts.yaml. Paths are relative to the archive's folder, and stay inside it."""

    file: str  # What `Exported.serialize()` returned.
    case: str = ""  # The name of the case; empty for the name that follows from the path.
    inputs: str | None = None
    """An .npz with its flat arguments. Null: the one that the naming rule names, else they are made."""
    outputs: str | None = None
    """An .npz with its flat results. Null: the one that the naming rule names, else its writer computes them."""
    writer: str | None = None
    """The jaxlib that wrote it, such as `0.9.2` or `0.11.2-jax0.12.0`. Null: the only possible one."""
    dims: dict[str, Size] = {}  # Sizes of symbolic dimensions, for inputs that are made.
    register: tuple[str, ...] = ()  # Python files that readers import first.
    mesh: dict[str, Size] = {}  # The mesh of an artifact for several devices, if the artifact does not say it.
    in_specs: str = ""  # How each flat argument is sharded, if the artifact does not say it: `P('data'), None`.
    nothing_to_compare: str = ""
    """The reason to store this golden although it has no output, only empty ones or only NaN."""
    without_outputs: str = ""  # Why an artifact for other platforms than cpu has no outputs.


class ArtifactList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of artifacts.yaml. Artifacts that it does not list are not added."""

    artifacts: tuple[ListedArtifact, ...]  # The artifacts, in the order in which they are added.


def read_artifact_list(path: Path) -> ArtifactList:
    """Return the content of a list of artifacts.

    Raises `GoldenError`, which names the file and the field, if it cannot be read.
    """
    try:
        artifacts: ArtifactList = decode_yaml(read_regular(path, most=LARGEST_TEXT), ArtifactList)
    except OSError as error:
        problem = f"cannot read this list of artifacts: {error.strerror or error}."
        raise GoldenError.about(Problem(path, problem)) from None
    except msgspec.MsgspecError as error:
        problem = f"not a list of artifacts: {schema_problem(error)}."
        advice = "schema/artifacts.schema.json describes it."
        raise GoldenError.about(Problem(path, problem, advice=advice)) from None
    return artifacts


@dataclass(frozen=True)
class Candidate(StatedFacts):
    """An artifact that is to become a golden, with what is stated about it.

    If `inputs` is None, inputs are made; if `outputs` is None, the writer computes them. `dims` has sizes of symbolic
    dimensions, for inputs that are made. `function` is the index of a function in a SavedModel.
    """

    file: Path
    case: str
    inputs: Path | None = None
    outputs: Path | None = None
    writer: str | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    function: int = 0


@dataclass(frozen=True)
class Archive:
    """The folder of an archive, and how its files are named.

    `listed` is the file of its list; if it is None, the list in the folder is used, if there is one. `inputs` and
    `outputs` are the rule by which the files of arrays are named after an artifact's file. `writer` wrote all artifacts
    for which the list names no writer.
    """

    folder: Path
    listed: Path | None = None
    inputs: str = INPUTS
    outputs: str = OUTPUTS
    writer: str | None = None

    def candidates(self, left_out: LeftOut) -> Iterator[Candidate | GoldenError]:
        """Yield a candidate for each artifact, or an error that says what is wrong with it or its entry in the list.

        Files that are not artifacts are counted in `left_out`.

        Raises:
            GoldenError: There is no such folder, or the list cannot be read.
        """
        if not self.folder.is_dir():
            raise GoldenError(f"--from {self.folder}: expected a folder with artifacts, found none.")
        listed = self.listed or (self.folder / FILE if os.path.lexists(self.folder / FILE) else None)
        if listed:
            for entry in read_artifact_list(listed).artifacts:
                try:
                    yield candidate_of(entry, self._named(self._inside(entry.file)), self._inside)
                except GoldenError as error:
                    yield GoldenError(f"{listed}: {entry.file}: {error}")
            return
        for file in sorted(files_of([str(self.folder)])):
            path = Path(file.path)
            if not file.error and (path.parent / MANIFEST).exists():
                left_out.add(file.path, "a golden")
                continue
            try:
                artifact = artifact_in(file)
            except ArtifactError as error:
                yield GoldenError(str(error))
                continue
            if isinstance(artifact, str):
                left_out.add(file.path, artifact)
            else:
                yield self._named(path)

    def _named(self, path: Path) -> Candidate:
        """Return the candidate with the case, the inputs and the outputs that the naming rule derives from a path."""
        arrays = []
        for pattern in (self.inputs, self.outputs):
            name = pattern.replace(f"{NAME}.", "") if path.stem == IN_A_FOLDER else pattern
            file = path.parent / name.replace(NAME, path.stem)
            arrays.append(file if file.exists() else None)
        case = case_of(path.relative_to(self.folder))
        return Candidate(path, case, arrays[0], arrays[1], self.writer)

    def _inside(self, name: str) -> Path:
        """Return the path of a file that the list names.

        Raises `GoldenError` if it leads out of the folder.
        """
        path = self.folder / name
        if not name or "\0" in name or not path.resolve().is_relative_to(self.folder.resolve()):
            raise GoldenError(f"expected a path inside {self.folder}, found {name!r}.")
        return path


def candidate_of(entry: ListedArtifact, named: Candidate, path: Callable[[str], Path] = Path) -> Candidate:
    """Return the candidate that an entry of artifacts.yaml describes.

    What the entry does not state is taken from `named`, the candidate by the naming rule. `path` makes a path of a
    name in the entry. Raises `GoldenError` for specs that cannot be read.
    """
    return replace(
        named,
        case=entry.case or named.case,
        inputs=named.inputs if entry.inputs is None else path(entry.inputs),
        outputs=named.outputs if entry.outputs is None else path(entry.outputs),
        writer=entry.writer or named.writer,
        dims=entry.dims,
        register=[path(name) for name in entry.register],
        mesh=entry.mesh,
        in_specs=parse_specs(entry.in_specs) if entry.in_specs else (),
        nothing_to_compare=entry.nothing_to_compare.strip(),
        without_outputs=entry.without_outputs.strip(),
    )


def case_of(path: PurePath) -> str:
    """Return the name of a case for an artifact, from the artifact's path below the archive's folder.

    Names of folders and file are joined by dots, without the ending: ``models/attention.bin`` is ``models.attention``.
    A file ``artifact`` gets its folder's name. A character that a folder's name must not have becomes ``_``.
    """
    parts = [*path.parts[:-1], path.stem]
    if path.stem == IN_A_FOLDER and len(parts) > 1:
        parts.pop()
    name = ".".join(parts).strip(". ")
    return "".join(letter if is_plain_name(f"a{letter}a") else "_" for letter in name)
