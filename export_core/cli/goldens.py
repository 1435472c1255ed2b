"""The commands on goldens that every project needs: list, verify, rename, prune."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import click

from export_core.base.text import plural
from export_core.cli import click_options
from export_core.cli.completion import CASE, GOLDEN
from export_core.cli.help import group
from export_core.cli.output import echo

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from export_core.artifact import Artifact
    from export_core.goldens import Golden, GoldenStore


class CoverageText(Protocol):
    """The hook `coverage`: a table of what goldens cover, such as dtypes and primitives."""

    def __call__(self, goldens: Iterable[Golden]) -> str:
        """Return a table for people: how many cases cover each feature."""


@group("docs/reference/cases.md", "jaxexport goldens list", section="Goldens", name="goldens")
def goldens_group() -> None:
    """Write, list, verify, rename and prune goldens."""


@goldens_group.command("docs/reference/cases.md", "jaxexport goldens list", name="list")
@click_options.project_options
@click.option(
    "--coverage",
    is_flag=True,
    help="Count instead what they cover: custom-call targets, primitives, dtypes, effects, features and formats. A "
    "number counts cases: all of them, then those exported for each platform. Writers are jaxlib releases.",
)
def list_goldens(project: click_options.Project, coverage: bool) -> None:
    """List every golden: case, writer, build date, platforms, custom calls."""
    from export_core.goldens import GoldenError, no_goldens
    from export_core.goldens.manifest_file import UnreadableManifestError
    from export_core.goldens.store import MANIFEST, readable_goldens
    from export_core.report.wording import with_asked

    if coverage:
        goldens = project.store.goldens_so_far()
        if not goldens:  # an empty table would look like goldens that cover nothing
            raise GoldenError(no_goldens(project.store.root, "Name their folder with --goldens."))
        echo(click_options.hook_of("coverage", CoverageText, "--coverage")(goldens), nl=False)
        return
    goldens, unreadable = readable_goldens(project.store) if project.store.root.is_dir() else ([], {})
    for problem in unreadable.values():
        if not isinstance(problem, UnreadableManifestError):  # such as of a newer version, which is no damage
            raise problem
    lacking = unread = 0
    for golden in goldens:
        manifest = golden.manifest
        calls = ", ".join(manifest.custom_calls) or "no custom calls"
        outputs = "  no outputs" if manifest.options.without_outputs else ""
        platforms = ",".join(manifest.options.platforms)
        missing = [name for name in manifest.files if not (golden.folder / name).is_file()]
        lacking += bool(missing)
        damage = f"  lacks {', '.join(missing)}" if missing else ""
        echo(f"{golden.id}  built {manifest.writer.built}  for {platforms}  {calls}{outputs}{damage}")
    for name in unreadable:
        is_there = (project.store.root / name / MANIFEST).exists()
        lacking, unread = lacking + (not is_there), unread + is_there
        echo(f"{name}  {'has a damaged' if is_there else 'lacks'} {MANIFEST}")
    echo(plural(len(goldens) + len(unreadable), "golden"))
    for count, one, several in (
        (lacking, "lacks files", "lack files"),
        (unread, f"has a damaged {MANIFEST}", f"have a damaged {MANIFEST}"),
    ):
        if count:
            named = {"--goldens": project.goldens, "--policy": project.policy_file}
            asked = {option: value for option, value in named.items() if value}
            them = f"{plural(count, 'golden')} {one if count == 1 else several}"
            echo(with_asked(f"warning: {them}: `jaxexport goldens verify` says what to do", asked), err=True)
    if not goldens and not unreadable:
        echo(f"warning: {no_goldens(project.store.root)}", err=True)


@goldens_group.command(
    "docs/reference/matrix.md", "jaxexport goldens verify", "jaxexport goldens verify --noise tests.test_model.test_f"
)
@click.argument("names", metavar="[CASE[/WRITER]]...", nargs=-1, type=GOLDEN)
@click.option(
    "--noise",
    is_flag=True,
    help="Also measure the noise of goldens that have none: how far outputs move when inputs and rounding change.",
)
@click.option("--again", is_flag=True, help="With --noise: also measure goldens whose noise is known.")
@click_options.quiet_option
@click_options.project_options
def verify(project: click_options.Project, names: Sequence[str], noise: bool, again: bool, quiet: bool) -> None:
    """Compare every file with its SHA-256 in golden.yaml, audit every artifact, and find files of no golden.

    A file that was changed together with its SHA-256 in golden.yaml, or a tolerance there, is not found: `git log` of
    the folder shows it. An edit of golden.yaml is found where its form changes, or where the artifact contradicts it.
    The build date of each writer must be that of the calendar, and the summary of the noise that of noise.npz. A
    README and hidden files may lie beside the cases.

    With --noise, each golden is run again and again, with inputs and rounded intermediate results moved by one unit in
    the last place: in the environment of its writer, or of the oldest later release where that cannot be built.
    Artifact, inputs and outputs stay as they are.

    CASE, which may be a glob, chooses the goldens that are verified, and with --noise measured. Without CASE, all are.
    """
    from export_core.cli.steps import Steps
    from export_core.goldens import GoldenError
    from export_core.goldens.upkeep import Stray, strays, unlisted_files
    from export_core.goldens.verify import check_forms, verify_goldens
    from export_core.matrix.comparisons import under_policy
    from export_core.matrix.outcome import audit_problem
    from export_core.numbers.measuring_noise import add_noise
    from export_core.numbers.noise import check_noise

    if again and not noise:
        raise click.UsageError("--again measures noise that is stored already: it can only be used with --noise.")
    policy = project.policy

    def audited(golden: Golden, artifact: Artifact) -> str:
        return audit_problem(under_policy([golden], policy)[0], policy, artifact)

    # Before anything is opened: the store itself completes an update that was killed between two renames.
    stray_files = list(strays(project.store.root))
    chosen = _chosen(project.store, names)
    of_chosen = {folder for golden in chosen for folder in (golden.folder, golden.folder.parent)}

    def is_meant(stray: Stray) -> bool:
        return not chosen or stray.path.parent in of_chosen

    stray_files = [*filter(is_meant, stray_files)]
    belong = "  These files and folders belong to no golden: delete them, or move them elsewhere."
    with (steps := Steps(quiet=quiet)):
        try:
            goldens = verify_goldens(project.store, project.policy.calendar(), audited, chosen=chosen)
        except GoldenError as error:
            stray_files += filter(is_meant, unlisted_files(project.store))
            raise GoldenError(
                "\n".join([str(error), *map(str, stray_files), *([belong] if stray_files else [])])
            ) from error
        stray_files += filter(is_meant, unlisted_files(project.store))
    if noise:
        wanted = [golden for golden in goldens if again or golden.manifest.noise is None]
        for line in steps.over(add_noise(project.store, wanted, project.policy, steps)) if wanted else ():
            echo(line)
        if not wanted:
            echo(f"{plural(len(goldens), 'golden')}, all have their noise; --again measures it again")
        goldens = _chosen(project.store, names) or project.store.goldens()
    with steps:
        check_noise(goldens)
        check_forms(goldens)
    if stray_files:
        raise GoldenError(
            "\n".join(map(str, stray_files)) + f"\n{belong} "
            f"{plural(len(goldens), 'golden')}, every file as its golden.yaml lists it."
        )
    if not noise:
        echo(f"{plural(len(goldens), 'golden')}, every file as its golden.yaml lists it")


def _chosen(store: GoldenStore, names: Iterable[str]) -> list[Golden]:
    """Return the goldens that these names match, without duplicates.

    A name is CASE or CASE/WRITER, and both parts may be globs. WRITER may be a jaxlib version, which matches all
    writers with this jaxlib. Raises `GoldenError` for a name that matches no golden.
    """
    from export_core.policy.entries import matches

    cases = store.cases()
    chosen: dict[str, Golden] = {}
    for name in names:
        case, _, writer = store.name_of(name).partition("/")
        # A case that exists is meant itself: the brackets of its parameters are no part of a glob.
        alike = [case] if case in cases else [known for known in cases if matches(known, case)]
        own = [golden for known in alike for golden in store.generations(known)]
        own = [
            golden
            for golden in own
            if not writer or any(matches(each, writer) for each in golden.manifest.writer.names)
        ]
        chosen |= {golden.id: golden for golden in own or store.named(name)}
    return [*chosen.values()]


@goldens_group.command("docs/reference/cases.md", "jaxexport goldens rename tests.test_a.test_f tests.test_b.test_f")
@click.argument("old", type=CASE)
@click.argument("new")
@click.option("--test", metavar="TEST", help="The test that exports NEW, as in tests/test_a.py::test_f.")
@click_options.dry_run_option("Only show which goldens would be renamed.")
@click_options.project_options
def rename(project: click_options.Project, old: str, new: str, test: str | None, dry_run: bool) -> None:
    """Give the goldens of case OLD the name NEW, after its test was renamed.

    Artifacts and arrays stay as they are. A rename that was interrupted is completed by the same command.
    """
    from export_core.goldens.upkeep import exporting_test, missing_test, rename_case
    from export_core.judge.unmatched import entries_that_name

    old, new = project.store.name_of(old), project.store.name_of(new)
    there = project.store.generations(new) if new in project.store.cases() else []
    renamed = rename_case(project.store, old, new, test, dry_run=dry_run)
    writers = [golden.manifest.writer.id for golden in renamed]
    goldens = plural(len(renamed), "golden")
    if dry_run:
        echo(f"would rename {goldens} of {old} to {new}: {', '.join(writers)}")
    else:
        echo(f"{old} is now {new}: {goldens} ({', '.join(writers)})")
    if there:
        echo(f"There already, with equal content: {', '.join(golden.manifest.writer.id for golden in there)}.")
    named = test or exporting_test(renamed[-1].manifest, new)
    missing = missing_test(named) if named else ""
    if not named:
        echo("They belong to no test that is here: --test names one.")
    elif missing:
        belong = "They would belong" if dry_run else "They belong now"
        echo(f"warning: {missing} {belong} to {named}: rename the test too, or rename them again.", err=True)
    elif not dry_run:
        echo(f"They belong to the test {named}.")
    if dry_run:
        return
    for entry in entries_that_name(project.policy, old, new, writers):
        echo(f"{entry} names {old}: change it too.", err=True)


@goldens_group.command("docs/how-to/look-ahead.md", "jaxexport goldens prune --as-of 2026-10-25")
@click_options.project_options
@click_options.as_of_option
@click_options.dry_run_option("Only show which goldens would be deleted.")
@click_options.yes_option
@click.option("-q", "--quiet", is_flag=True, help="Do not list the goldens that are retained.")
def prune(project: click_options.Project, as_of: str | None, dry_run: bool, yes: bool, quiet: bool) -> None:
    """Delete goldens that are no longer needed.

    A golden is retained by a window, a live reader, a custom call that may not be deleted yet, a pin, or as the last
    of its case. The reasons are printed first. A reader is live while it is in use, and until the day on which it
    retires (`jaxexport forecast`). A retired one counts while `readers` lists it by version.
    """
    from export_core.cli.steps import Steps
    from export_core.goldens.verify import verify_goldens
    from export_core.judge.retention import retention_status
    from export_core.judge.unmatched import unmatched_pins
    from export_core.policy import PolicyError
    from export_core.policy.load import find_locations

    policy = project.policy
    calendar = policy.calendar()
    day = click_options.day_of(as_of, calendar)
    with Steps():
        goldens = verify_goldens(project.store, calendar)  # a golden with a wrong date would be pruned too early
    decisions = list(retention_status(goldens, policy, calendar, day))
    # A pin that matches nothing may be misspelled, and what it should protect is about to be deleted. A dry run
    # refuses as well: its list would be of goldens that are not deleted.
    location = find_locations(policy, project.policy_file)
    if problems := [pin.located(location) for pin in unmatched_pins(goldens, policy)]:
        raise PolicyError(
            f"{' '.join(problems)} Nothing was deleted. Correct each such pattern, or remove it from its pin."
        )
    for golden, reasons in decisions:
        if reasons and not quiet:
            echo(f"retains  {golden.id}  {'; '.join(reasons)}")
    prunable = [golden for golden, reasons in decisions if not reasons]
    for golden in prunable:
        echo(f"prunes   {golden.id}  built {golden.manifest.writer.built}")
    counted = f"{len(prunable)} of {plural(len(decisions), 'golden')}"
    if prunable and click_options.is_confirmed(f"Delete {counted}?", yes=yes, dry_run=dry_run):
        for golden in prunable:
            project.store.remove(golden)
        echo(f"deleted {counted}, as of {day}")
    else:
        echo(f"would delete {counted}, as of {day}")
