"""The command `jaxexport goldens add`: goldens of artifacts whose source code is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_core.base.errors import with_prefix
from export_core.base.text import plural
from export_core.cli.click_options import PATH, Project, dry_run_option, project_options, quiet_option
from export_core.cli.completion import CASE, RELEASE
from export_core.cli.help import command
from export_core.cli.output import echo

if TYPE_CHECKING:
    from export_core.features.adopt.archive import Candidate
    from export_core.goldens import GoldenError

DONE, NOT_ALL_ADDED = 0, 2
_OF_ONE = ("case", "register", "mesh", "in_specs", "nothing_to_compare", "without_outputs")
"""Options that only a single artifact may have."""


@command(
    "docs/reference/artifacts.md",
    "jaxexport goldens add --artifact a.jaxexport --inputs in.npz --outputs out.npz --case attention",
    "jaxexport goldens add --from archive",
    name="add",
)
@click.option("--artifact", "file", metavar="FILE", type=PATH, help="The bytes of Exported.serialize().")
@click.option(
    "--from",
    "folder",
    metavar="FOLDER",
    type=PATH,
    help="Instead of --artifact: add every artifact below this folder, each as a case that is named by its path.",
)
@click.option(
    "--inputs",
    metavar="NPZ",
    type=PATH,
    help="The leaves of the arguments, in order: np.savez(file, *leaves). With --from, the name of that file beside "
    "each artifact. [default: inputs are made by rule; with --from {name}.inputs.npz]",
)
@click.option(
    "--outputs",
    metavar="NPZ",
    type=PATH,
    help="The leaves of the results that its writer computed, in the same form. [default: its writer computes them "
    "now; with --from {name}.outputs.npz]",
)
@click.option(
    "--list",
    "listed",
    metavar="FILE",
    type=PATH,
    help="With --from, a YAML file that says what belongs to each artifact. [default: artifacts.yaml in the folder, "
    "where there is one]",
)
@click.option("--case", metavar="NAME", help="The name for the new case, and for its folder.")
@click.option(
    "--writer",
    metavar="JAXLIB[-jaxJAX]",
    type=RELEASE,
    help="The jaxlib that wrote the artifact, with its jax where the artifact does not name it. [default: the only "
    "one that can have written it]",
)
@click.option(
    "--dims",
    metavar="NAME=SIZE,…",
    help="Sizes of symbolic dimensions, for inputs that are made: b=4,h=8. [default: 2, 3, 4 and so on, by name, "
    "or the first sizes that its constraints allow]",
)
@click.option(
    "--register",
    metavar="PY",
    multiple=True,
    help="A Python file that readers import first, to register tree nodes, effects or custom-call targets. It is "
    "copied into the golden; may be given several times.",
)
@click.option(
    "--mesh",
    metavar="AXIS=SIZE,…",
    help="The mesh of an artifact for several devices: data=2,model=4. [default: read from the artifact]",
)
@click.option(
    "--in-specs",
    metavar="SPECS",
    help="How each flat argument is sharded, where the artifact does not say so: \"P('data'), None\". [default: "
    "replicated]",
)
@click.option("--no-replay", is_flag=True, help="Store it unchecked: do not run it first in the release that wrote it.")
@click.option(
    "--replace",
    metavar="CASE",
    type=CASE,
    multiple=True,
    help="With --from, a case whose golden by the same writer is replaced; may be given several times. Otherwise, one "
    "by a test, of another artifact or with other arrays stays.",
)
@dry_run_option("Only show what would be added: nothing is run, and nothing is stored.")
@quiet_option
@click.option(
    "--nothing-to-compare",
    metavar="REASON",
    default="",
    help="The reason to store this golden although it has no output, only empty ones or only NaN.",
)
@click.option(
    "--without-outputs",
    metavar="REASON",
    default="",
    help="Instead of --outputs, for an artifact that does not run on cpu: the reason. It will only be compiled.",
)
@project_options
def add(project: Project, file: str | None, folder: str | None, quiet: bool, dry_run: bool, **stated: Any) -> None:
    """Make goldens from artifacts whose source code is lost.

    --artifact adds one artifact, --from all artifacts in a folder. Before a golden is stored, the release that wrote
    the artifact runs it once, in an environment of its own. If it fails there, or gives other numbers than --outputs,
    it is not stored. If it crashes there, or that release cannot be installed, it is stored unchecked, with a remark:
    run `jaxexport matrix` next. The noise of its outputs is measured in the same environment, or in the oldest later
    release that can be installed.

    Without --inputs, inputs are made by a rule that never changes. Without --outputs, the release that wrote the
    artifact computes them; if it cannot, nothing is stored. `origin` in golden.yaml says what was given and what was
    made.

    With --from, an artifact that cannot be added does not stop the others. The exit code is 2 then.
    """
    from export_core.artifact.folders import LeftOut, no_artifacts
    from export_core.cli.steps import Steps
    from export_core.features.adopt.adoption import NOT_ADDED, Adoption
    from export_core.features.adopt.archive import INPUTS, OUTPUTS, Archive
    from export_core.goldens.made_inputs import parse_sizes

    _check_options(file, folder, stated)
    dims, replace, listed = (stated.pop(name) for name in ("dims", "replace", "listed"))
    problem = f"--dims {dims}: expected symbolic dimensions and their sizes, such as b=4,h=8."
    sizes = parse_sizes(dims, problem) if dims else {}
    steps = Steps(quiet=quiet)
    # The case of a single artifact is named by --case.
    may_go, of_all = (replace, sizes) if folder else ((stated["case"],), {})
    replay = not stated.pop("no_replay")
    adoption = Adoption(project.store, project.policy, steps, replay, may_go, of_all)
    left_out = LeftOut()
    counts: Counter[str] = Counter()
    candidates: Iterable[Candidate | GoldenError]
    if folder:
        names = (stated["inputs"] or INPUTS, stated["outputs"] or OUTPUTS)
        archive = Archive(Path(folder), Path(listed) if listed else None, *names, stated["writer"])
        candidates = archive.candidates(left_out)
    else:
        candidates = [_stated_candidate({"file": str(file), "dims": sizes, **stated})]

    def fail(problem: str) -> None:
        counts[NOT_ADDED] += 1
        echo(with_prefix(problem), err=True)

    for adopted in adoption.preview(candidates) if dry_run else steps.over(adoption.adopt(candidates)):
        if adopted.problem:
            fail(adopted.problem)
            continue
        counts[adopted.status] += 1
        if adopted.golden:
            writer = adopted.golden.manifest.writer.jaxlib
            echo(f"{adopted.golden.folder}: {adopted.status}, by jaxlib {writer}")
        for remark in adopted.remarks:
            echo(f"  {remark}" if adopted.golden else remark)
    if folder:
        if not counts:
            raise no_artifacts([folder], left_out)
        if not dry_run and (unknown := sorted(adoption.dims.keys() - adoption.symbols)):
            expected = "expected symbolic dimensions of artifacts whose inputs are made"
            fail(f"--dims {', '.join(unknown)}: {expected}, found none of this name.")
        for line in left_out.lines():
            echo(line, err=True)
        numbers = ", ".join(f"{count:,} {what}" for what, count in counts.items())
        others = f"; left out: {plural(left_out.total(), 'other file')}" if left_out else ""
        echo(f"{plural(counts.total(), 'artifact')}: {numbers}{others}")
    click.get_current_context().exit(NOT_ALL_ADDED if counts[NOT_ADDED] else DONE)


def _check_options(file: str | None, folder: str | None, stated: Mapping[str, Any]) -> None:
    """Raise `click.UsageError` for options that cannot be combined, or that lack another one."""
    if (file is None) == (folder is None):
        raise click.UsageError("expected either --artifact FILE or --from FOLDER.")
    if file and stated["case"] is None:
        raise click.UsageError("--artifact FILE: expected the name of its case too: --case NAME.")
    of_an_archive = {"--list": stated["listed"], "--replace": stated["replace"]}
    of_one = {f"--{name.replace('_', '-')}": stated[name] for name in _OF_ONE}
    if wrong := [name for name, value in (of_one if folder else of_an_archive).items() if value]:
        other, where = ("--from", " Write it into artifacts.yaml, for one artifact.") if folder else ("--artifact", "")
        raise click.UsageError(f"{wrong[0]} cannot be combined with {other}.{where}")


def _stated_candidate(stated: Mapping[str, Any]) -> Candidate:
    """Return the single artifact that options describe; an option has the name of the field in artifacts.yaml."""
    from export_core.features.adopt.archive import Candidate, ListedArtifact, candidate_of
    from export_core.goldens.adopted_mesh import parse_mesh

    mesh = parse_mesh(stated["mesh"]) if stated["mesh"] else {}
    entry = ListedArtifact(**{name: value for name, value in {**stated, "mesh": mesh}.items() if value})
    return candidate_of(entry, Candidate(Path(entry.file), ""))
