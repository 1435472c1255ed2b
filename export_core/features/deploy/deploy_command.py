"""The command `jaxexport can-i-deploy`: do artifacts run in the deployment targets of the policy."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from export_core.cli import click_options
from export_core.cli.completion import CASE_OR_FILE
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json


@command(
    "docs/how-to/keep-an-old-reader.md",
    "jaxexport can-i-deploy --to serving",
    "jaxexport can-i-deploy tests.test_model.test_attention --to all",
    "jaxexport can-i-deploy exported/attention.jaxexport --to serving",
    section="Days",
    name="can-i-deploy",
)
@click.argument("names", metavar="[CASE|FILE…]", nargs=-1, type=CASE_OR_FILE)
@click.option(
    "--to",
    metavar="NAME|all",
    required=True,
    help="A deployment target of the policy (`deployed`); all: every one that is in force and has to run the case.",
)
@click_options.results_option(
    "Folder of a finished run whose results count; runs in DIR/whole, DIR/reproduced and DIR/deploy too. [default: "
    ".jaxexport, where there is one]"
)
@click_options.goldens_option
@click_options.policy_option
@click_options.as_of_option
@click_options.json_option("Print JSON (schema/deploy.schema.json).")
def can_i_deploy(
    names: Sequence[str],
    to: str,
    results: str | None,
    goldens: str | None,
    policy_file: str | None,
    as_of: str | None,
    as_json: bool,
) -> None:
    """Say whether artifacts will work in a deployment target, without running them.

    A deployment target is an entry of `deployed` in the policy: a release that has to run some of your goldens. CASE is
    a case, which stands for all its goldens, or one golden, or a glob of either. FILE is an artifact. Without them, the
    question is about all goldens that the target has to run.

    The answer is yes if a stored result that is not flaky shows that the golden works there. It is no if a stored
    result other than a timeout shows that it fails, or if that release is known to refuse such an artifact. Otherwise
    it is unknown, and the command that answers it is printed. A stored result counts only if everything that decided it
    is still the same: this program, what the policy says about cells and comparisons, the source of your comparator,
    and the environment variables that cells get.

    A target has to run the goldens that its `cases` match, if they were exported for its platform. Other goldens are
    only listed. They are answered too if all goldens of an exact name, or of a pattern in `cases`, lack the platform,
    or if a case's newest golden lost it. A pattern that matches no golden is unknown. If CASE or FILE is named beside a
    target, `cases` does not count. Other entries of the policy that match nothing are warnings.

    Exit codes: 0 all answers are yes, 1 one is no, 2 bad input, 3 none is no, but one is unknown.
    """
    from msgspec.structs import replace

    from export_core.features.deploy import answers, asked
    from export_core.features.deploy.answer_lines import deploy_lines
    from export_core.goldens import GoldenStore
    from export_core.goldens.verify import check_claims, check_dates
    from export_core.judge.gate import calendar_age
    from export_core.judge.generations import notes_on_generations
    from export_core.judge.unmatched import unmatched_patterns
    from export_core.matrix.comparisons import under_policy
    from export_core.policy.entries import ALL
    from export_core.policy.known_issues import known_issues
    from export_core.policy.load import find_locations
    from export_core.policy.load import policy_file as named_file
    from export_core.policy.project_terms import terms_of
    from export_core.policy.run_options import RESULTS, ProjectOptions, option_words
    from export_core.run.results import unfinished_run

    policy = click_options.policy_of(policy_file)
    calendar = policy.calendar()
    day = click_options.day_of(as_of, calendar)
    targets = asked.targets_named(to, policy, day, named_file(Path(), policy_file))
    if not names:
        asked.require_obligation(targets, to, day)
    store = GoldenStore(goldens or policy.goldens)
    stored = store.goldens_so_far()
    check_dates(stored, calendar, all_known=False)
    unmatched = unmatched_patterns(policy, stored, calendar)
    answered = {target.name for target in targets}
    location = find_locations(policy, policy_file)
    for pattern in unmatched:
        if pattern.target not in answered:
            echo(f"warning: {pattern.located(location)}", err=True)
    compared = under_policy(asked.written_by(stored, names, day, partial(echo, err=True)), policy)
    folder = Path(results) if results else RESULTS
    # A folder that was named has to have a run; the usual one may not be there yet.
    folders, others = asked.evidence_folders(folder, is_named=bool(results))
    for path in others:
        if found := unfinished_run(path):
            echo(f"the results in {path} do not count: expected a finished run, found {found}", err=True)
    project = ProjectOptions(Path(goldens) if goldens else None, policy_file, day if as_of else None)
    evidence = asked.stored_evidence(folders, compared, policy, day, partial(echo, err=True))
    platforms = {target.platform for target in targets}
    question = answers.Question(
        calendar.as_of(day),
        terms_of(policy),
        evidence.results,
        {issue.id: issue for issue in known_issues(policy.known_issues)},
        project,
        folder,
        () if names else {one.manifest.case for one in compared if not platforms.isdisjoint(one.manifest.runs_on)},
        policy,
        evidence.of_other_content,
        evidence.folders,
        to,
    )
    if not names:
        asked.require_goldens(stored, compared, store.root, f"--to {to}", day)
    elif not stored and (unknown := [name for name in names if not os.path.lexists(name)]):
        asked.require_goldens(stored, compared, store.root, unknown[0], day)
    subjects = asked.subjects_named(names or asked.cases_of(targets, compared), compared)
    check_claims([subject.golden for subject in subjects if subject.golden], calendar, all_known=False)
    pairs, left_out = asked.asked_pairs(subjects, targets, to, names, compared)
    of_subjects = {subject.golden.id: subject.golden for subject, _ in pairs if subject.golden}
    for text in notes_on_generations(
        compared, policy, option_words(ProjectOptions(project.goldens, policy_file)), asked=of_subjects
    ):
        echo(text, err=True)
    lacking = [] if names and to != ALL else asked.unmatched_in(targets, unmatched, pairs)
    newest = question.calendar.newest()
    old = calendar_age(str(calendar.built(newest)), day, policy)
    deployability = answers.deployability(pairs, question, day, lacking)
    ended = asked.out_of_force(to, targets, policy, day)
    deployability = replace(deployability, old_calendar=old, out_of_force=ended, left_out=left_out)
    if as_json:
        echo_json(deployability)
    else:
        for line in deploy_lines(deployability, click_options.console().width):
            echo(line)
    raise click.exceptions.Exit(deployability.exit_code)
