"""The commands `jaxexport policy init|check|show`: write a first policy, check it, show what is in use."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core.base.text import did_you_mean, few, plural
from export_core.cli import click_options
from export_core.cli.help import group
from export_core.cli.output import echo

if TYPE_CHECKING:
    from export_core.policy import Policy
    from export_core.policy.feature_keys import Problems
    from export_core.releases import Calendar

SCHEMA = "export_compat.schema.json"


@group("docs/reference/policy.md", "jaxexport policy show", section="Project", name="policy")
def policy_group() -> None:
    """Write, check and show the policy of this project."""


@policy_group.command("docs/reference/policy.md", "jaxexport policy init")
@click.option("--goldens", metavar="DIR", help="Folder of goldens. [default: golden]")
@click_options.dry_run_option("Only print it, even beside another.")
def init(goldens: str | None, dry_run: bool) -> None:
    """Write a commented export_compat.yaml from the goldens here, and its JSON Schema for editors.

    Nothing is overwritten.
    """
    from export_core.base.atomic import write_new
    from export_core.goldens import GoldenStore
    from export_core.policy import Policy, PolicyError, load
    from export_core.policy.model import policy_schema_file
    from export_core.report.first_policy import first_policy

    if (present := load.policy_file(Path())) is not None and not dry_run:
        raise PolicyError(
            f"{present}: this project already has a policy. Nothing was written; `jaxexport policy show` shows every "
            "value in use."
        )
    folder = goldens or Policy().goldens
    stored = GoldenStore(Path(folder)).goldens_so_far()
    text, schema_bytes = first_policy(stored, folder, SCHEMA), policy_schema_file()
    if dry_run:
        echo(text, nl=False)
        return
    try:
        # A file that somebody else has made since the check above is not overwritten.
        write_new(Path(load.FILE), [text.encode()])
        with contextlib.suppress(FileExistsError):
            write_new(Path(SCHEMA), [schema_bytes])
    except OSError as error:
        raise PolicyError(f"{error.filename}: cannot write there: {error.strerror}.") from None
    echo(f"{load.FILE}: written from {plural(len(stored), 'golden')} in {folder}. {SCHEMA} tells editors its keys.")


@policy_group.command("docs/reference/policy.md", "jaxexport policy check")
@click_options.policy_option
@click_options.goldens_option
@click_options.as_of_option
@click.option(
    "--stable-targets",
    metavar="PATTERN",
    multiple=True,
    help="Name each custom-call target on the newest stable list of jax that this matches and no golden here calls, "
    "such as 'lapack_*', or '*' for all. Can be repeated.",
)
def check(policy_file: str | None, goldens: str | None, as_of: str | None, stable_targets: Sequence[str]) -> None:
    """Check the policy; list its expired entries, and those that match no golden here and no release.

    Exit codes: 0 no problems found, or warnings only; 2 the policy or a golden's build date has errors; 3 no golden
    calls a target that --stable-targets names; else 4 an entry has expired.
    """
    from export_core.base.exit_code import ExitCode
    from export_core.goldens import GoldenStore
    from export_core.goldens.verify import check_dates
    from export_core.judge.known import added_later, expired
    from export_core.judge.unmatched import (
        PINNED,
        READERS,
        keys_without_goldens,
        targets_without_golden,
        unmatched_patterns,
    )
    from export_core.policy import load
    from export_core.policy.feature_keys import feature_keys
    from export_core.policy.known_issues import known_issues

    file, policy = load.policy_file(Path(), policy_file), load.find_policy(Path(), policy_file)
    known_issues(policy.known_issues)
    store, calendar = GoldenStore(Path(goldens or policy.goldens)), policy.calendar()
    # Without goldens, no golden calls any target, which would say nothing of the project's.
    stored = store.goldens() if goldens or stable_targets else store.goldens_so_far()
    check_dates(stored, calendar, all_known=False)  # a run may know more writers: those of --wheels and --index
    location = load.find_locations(policy, policy_file)
    wrong = []
    for unmatched in unmatched_patterns(policy, stored, calendar):
        if unmatched.key[: len(PINNED)] == PINNED:  # an error of `goldens prune` too
            advice = "Correct the pattern, or remove it from its pin."
            wrong.append((unmatched.key, f"{unmatched.problem} {advice}"))
        elif unmatched.key != READERS:  # those are errors here
            echo(f"warning: {unmatched.located(location)}")
    if not stored and (keys := keys_without_goldens(policy)):
        echo(f"warning: {', '.join(keys)}: no name in them was checked, since there is no golden in {store.root} yet.")
    if file and (wrong := [*wrong, *_problems_in_project(policy, calendar, with_goldens=goldens is None)]):
        raise load.read_policy(file)[1].error(wrong)
    day = click_options.day_of(as_of, calendar)
    uncalled = targets_without_golden(stable_targets, stored, calendar, day)
    for problem in uncalled:
        echo(problem)
    stale, early = expired(policy, day), added_later(policy, day)
    for problem in (*stale, *early):
        echo(problem)
    later = f", {len(early)} added in the future" if early else ""
    counts = ", ".join(
        # Reports count the cells of known failures, of which an entry may cover many.
        plural(len(entries), noun)
        for entries, noun in (
            (policy.known_failures, "known-failure entry"),
            (policy.quirks, "quirk"),
            (policy.numbers, "comparison rule"),
            (policy.allow, "allowed custom call"),
            *((key.of(policy), key.noun) for key in feature_keys() if key.of(policy)),
            *([(policy.deployed, "deployment target")] if policy.deployed else []),
        )
    )
    if ended := [target.name for target in policy.deployed if target.has_ended(day)]:
        counts += f" ({few(ended)}: ended)"
    none = "" if stored else f"; no golden in {store.root} yet"
    echo(f"{file or 'no policy file here, every key has its default'}: {counts}; {len(stale)} expired{later}{none}")
    fails = ExitCode.STALE if stale or early else ExitCode.KEPT
    raise click.exceptions.Exit(ExitCode.INCOMPLETE if uncalled else fails)


def _problems_in_project(policy: "Policy", calendar: "Calendar", *, with_goldens: bool) -> "Problems":
    """Yield each of the policy's readers, comparators and goldens that would end a run here, as (key, message).

    The goldens are checked only if `with_goldens`, and only if the policy sets their folder: a new project may not have
    the default folder yet.
    """
    from export_core.goldens import GoldenError, GoldenStore
    from export_core.judge.unmatched import READERS, unknown_readers
    from export_core.numbers import CompareError
    from export_core.numbers.user_code import UserCode

    for problem in unknown_readers(policy, calendar):
        yield READERS, problem
    if with_goldens and policy.goldens != type(policy)().goldens:
        try:
            GoldenStore(Path(policy.goldens)).cases()
        except GoldenError as error:
            yield ("goldens",), str(error)
    with contextlib.closing(UserCode(variables=policy.environment)) as user_code:
        for number, rule in enumerate(policy.numbers):
            try:
                user_code.check(rule.compare)
            except CompareError as error:
                yield ("numbers", number, "compare"), str(error)


@policy_group.command(
    "docs/reference/policy.md",
    "jaxexport policy show",
    "jaxexport policy show --known",
    "jaxexport policy show --schema > export_compat.schema.json",
)
@click_options.policy_option
@click.option(
    "--known",
    is_flag=True,
    help="Show instead the known upstream issues that explain failing cells: the shipped table, and that of the "
    "policy, in the form of a file that its key `known_issues` names. They excuse no cell; only `known_failures` does.",
)
@click.option(
    "--schema",
    is_flag=True,
    help="Print instead the policy's JSON Schema, by which editors check and complete keys.",
)
@click.option("--without", metavar="KEY", multiple=True, help="Leave out a key, such as required. Can be repeated.")
def show(policy_file: str | None, known: bool, schema: bool, without: Sequence[str]) -> None:
    """Show every key with its value as YAML, and the line that sets it."""
    from export_core.policy import Policy, load
    from export_core.policy.known_issues import known_issues
    from export_core.policy.model import policy_schema_file
    from export_core.report.policy_text import issues_text, policy_text

    if schema:
        if known:
            raise click.UsageError("--schema cannot be combined with --known.")
        echo(policy_schema_file().decode(), nl=False)
        return
    for key in without:
        if key not in (keys := Policy.__struct_fields__):
            raise click.UsageError(f"--without: expected a key of the policy, found {key!r}.{did_you_mean(key, keys)}")
    policy = load.find_policy(Path(), policy_file)
    if known:
        echo(issues_text(known_issues(policy.known_issues)), nl=False)
        return
    file = load.policy_file(Path(), policy_file)
    written, source = load.read_policy(file) if file else (Policy(), None)
    origins = {name: source.location((name,)) for name in source.data or ()} if source else {}
    if policy.releases != written.releases:
        more = str(load.releases_file(Path(), policy_file))
        origins["releases"] = ", ".join(filter(None, (origins.get("releases"), more)))
    echo(policy_text(policy, origins, str(file or "no policy file here"), without), nl=False)
