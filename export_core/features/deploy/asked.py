"""The artifacts and the deployment targets that a question names, and the stored results that count for it."""

import contextlib
import datetime
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from export_core.artifact import Artifact, read
from export_core.artifact.artifact import saved_model_in
from export_core.base.errors import ExportCompatError
from export_core.base.subfolders import found_above
from export_core.base.text import did_you_mean, few
from export_core.goldens import Golden, GoldenError, GoldenStore, hint_at_cases, no_goldens
from export_core.goldens.conversion_record import CONVERTED, read_record
from export_core.goldens.manifest import ConvertedFrom
from export_core.goldens.store import ARTIFACT, MANIFEST
from export_core.judge import Result
from export_core.judge.known import matching_entry
from export_core.judge.unmatched import Unmatched
from export_core.matrix import Verdict
from export_core.matrix.comparisons import quirks_of
from export_core.matrix.plan import of_later_writers
from export_core.matrix.selection import reader_named
from export_core.policy import Policy
from export_core.policy.entries import ALL, DeploymentTarget, matches
from export_core.policy.load import FILE
from export_core.policy.model import left_out_targets
from export_core.policy.run_options import REPRODUCED
from export_core.readers.placement import Mode
from export_core.run.plan_record import by_another_tool, hash_of
from export_core.run.results import FINISHED, SUMMARY, WHOLE, read_run

ASKED = "deploy"
"""The folder inside the results folder for the runs that answer what is unknown, each in a folder of its own: in one
folder, the run of a second question would replace the first's."""
_EARLIER = (FINISHED, WHOLE)
"""Folders inside that of a run, for an earlier run. It is no evidence, except for a whole run that a run of a part of
its cells has moved out of the results folder."""

Place = tuple[str, str, str]  # A golden, a jaxlib and a platform.
StoredResults = dict[Place, Result]


class StoredEvidence(NamedTuple):
    """The stored results that count, and the cells of results of a golden whose content is another one now.

    `folders` has the results folder of each result that counts.
    """

    results: StoredResults
    of_other_content: frozenset[Place]
    folders: Mapping[Place, Path]


class DeployingError(ExportCompatError):
    """An error for a question about something that does not exist, or that no deployment target has to run."""


@dataclass(frozen=True)
class Subject:
    """An artifact that is asked about: `golden` is None if no golden has it, `file` is empty if no file was named.

    `stored` is the golden that has the file in another folder of goldens. Otherwise `original` is the golden of which
    `jaxexport convert` made the file. The record of the conversion says how (`origin`), and what it verified.
    """

    artifact: Artifact
    golden: Golden | None = None
    file: str = ""
    original: Golden | None = None
    origin: ConvertedFrom | None = None
    stored: Golden | None = None
    verified: str = ""

    @property
    def name(self) -> str:
        """The named file, the id of the golden, or both: ``file (golden)``."""
        golden = self.golden.id if self.golden else ""
        return f"{self.file} ({golden})" if self.file and golden else self.file or golden


def _folder_of_answers(results: Path) -> Path:
    """Return the folder of the runs that answer questions; `results` itself if it is that folder."""
    return results if results.name == ASKED else results / ASKED


def answer_folder(results: Path, name: str, words: Sequence[str]) -> Path:
    """Return the folder for the run that answers a question, which no other command writes to.

    A run replaces the last one in its folder, whose answers would be unknown again.

    Args:
        results: The results folder that was asked about.
        name: The value of `--to`.
        words: The command that runs it, without the results folder.
    """
    safe = re.sub(r"[^a-z0-9_-]+", "_", name.lower())
    digest = hashlib.sha256("\0".join((name, *words)).encode(errors="surrogateescape")).hexdigest()
    return _folder_of_answers(results) / f"{safe}-{digest[:8]}"


def evidence_folders(results: Path, *, is_named: bool) -> tuple[list[Path], list[Path]]:
    """Return the folders whose runs are evidence, and others that may have an unfinished run.

    They are a results folder, and those inside it: of the last whole run that was moved there, of a cell that was run
    again by its printed command, and of the runs that answered questions. A folder that the user named (`is_named`) has
    to have a run, or hold runs that answered questions; otherwise reading it raises `RunError`.
    """
    answers = _folder_of_answers(results)
    inside = sorted(path for path in answers.iterdir() if path.name not in _EARLIER) if answers.is_dir() else []
    own = (results,) if results == answers else (results / WHOLE, results, results / REPRODUCED)
    folders = list(dict.fromkeys((*own, answers, *inside)))
    found = [folder for folder in folders if (folder / SUMMARY).exists()]
    if is_named and results not in found and not (results == answers and found):
        found.insert(0, results)
    return found, [folder for folder in folders if folder not in found]


def stored_evidence(
    folders: Iterable[Path],
    goldens: Sequence[Golden],
    policy: Policy,
    day: datetime.date,
    notify: Callable[[str], None],
) -> StoredEvidence:
    """Return the results in these folders about goldens; for the same cell, the run that ended last counts.

    A timeout that shows nothing takes no earlier result away.

    A run counts only if all that decides its verdicts is unchanged, such as the policy's comparisons, as in `jaxexport
    judge`. Results count only if their golden is unchanged and none of its quirks has expired by `day`. `notify` gets a
    sentence about each folder or golden that does not count, and about a folder that has only one shard of a run.

    Raises:
        RunError: A folder has no finished run, or its files were changed.
    """
    runs = []
    for folder in folders:
        changed = by_another_tool(folder)  # which may write its files in another form
        if not changed:
            run = read_run(folder)
            changed = run.changed_since(policy)
        if changed:
            notify(f"the results in {folder} do not count: they were made by {changed}")
        else:
            if run.summary.shard:
                notify(
                    f"the results in {folder} are those of shard {run.summary.shard} alone, and no others count: "
                    "`jaxexport judge` joins the shards of a run"
                )
            runs.append((run, folder))
    hashes: dict[str, str] = {}
    for golden in goldens:
        if any(quirk.expires and quirk.expires < day for quirk in quirks_of(golden.manifest, policy.quirks)):
            notify(f"results of {golden.id} do not count: a quirk of it has expired")
        else:
            hashes[golden.id] = hash_of(golden.manifest)
    evidence: StoredResults = {}
    found_in: dict[Place, Path] = {}
    others: set[Place] = set()
    before_all = datetime.datetime.min.replace(tzinfo=datetime.UTC)
    for run, folder in sorted(runs, key=lambda pair: pair[0].summary.identity.ended or before_all):
        counted = [one for one in run.results if run.goldens.get(one.golden) == hashes.get(one.golden, "")]
        counted = [one for one in counted if one.verdict is not Verdict.NOT_RUN]  # It takes no earlier result away.
        # A jaxlib that was read with several jax is as good as the worst of them, which comes last.
        counted.sort(key=lambda result: 0 if ran(result) else 2 if shows_failure(result) else 1)
        new = {place_of(result): result for result in counted}
        shown = {place for place, one in evidence.items() if ran(one) or shows_failure(one)}
        new = {place: one for place, one in new.items() if place not in shown or not _shows_nothing(one, policy)}
        evidence |= new
        found_in |= dict.fromkeys(new, folder)
        other = [one for one in run.results if run.goldens.get(one.golden) != hashes.get(one.golden)]
        others |= {place_of(one) for one in other if one.golden in hashes and one.golden in run.goldens}
    return StoredEvidence(evidence, frozenset(others), found_in)


def place_of(result: Result) -> Place:
    """Return the golden, the reader and the platform of a result."""
    return result.golden, result.reader.name, result.platform


def ran(result: Result) -> bool:
    """Return whether a cell was executed and gave its golden's outputs each time; a converted artifact counts too."""
    return result.verdict in (Verdict.PASS, Verdict.CONVERTED) and result.mode is Mode.RUN and not result.flaky


def shows_failure(result: Result | None) -> bool:
    """Return whether a stored result shows that a golden does not run in a release.

    A cell that ended by its time limit shows nothing unless a known issue explains it: the machine may have been busy.
    """
    return (
        result is not None and result.verdict.fails and (result.verdict is not Verdict.TIMEOUT or bool(result.upstream))
    )


def _shows_nothing(result: Result, policy: Policy) -> bool:
    """Return whether a cell ended by its time limit, and neither a known issue nor the policy's list explains it."""
    timed_out = result.verdict is Verdict.TIMEOUT and not result.upstream
    return timed_out and matching_entry(result, policy.known_failures) is None


def require_goldens(
    stored: Sequence[Golden], written: Sequence[Golden], root: Path, name: str, day: datetime.date
) -> None:
    """Raise `DeployingError` if there is no golden to ask about, with what to do first.

    Args:
        stored: All goldens of the folder.
        written: The goldens whose writers were built by the day.
        root: The folder of goldens.
        name: What was asked for, for the error: a case, or the value of `--to`.
        day: The day as of which is asked.
    """
    if not stored:
        raise DeployingError(f"{name}: expected goldens of the cases that have to run there. {no_goldens(root)}")
    if not written:
        raise DeployingError(
            f"{name}: expected goldens by releases built on or before {day}, found only later ones. Choose a later day "
            "with --as-of."
        )


def cases_of(targets: Sequence[DeploymentTarget], goldens: Sequence[Golden]) -> list[str]:
    """Return the cases that these targets have to run, of those that have goldens.

    Args:
        targets: The deployment targets.
        goldens: The goldens of the project.
    """
    cases = dict.fromkeys(golden.manifest.case for golden in goldens)
    return [case for case in cases if any(target.has_case(case) for target in targets)]


def unmatched_in(
    targets: Sequence[DeploymentTarget],
    unmatched: Sequence[Unmatched],
    pairs: Iterable[tuple[Subject, DeploymentTarget]],
) -> list[tuple[Unmatched, DeploymentTarget]]:
    """Return the patterns of these targets that match no golden, each with its target.

    A target's platform for which there is no golden is left out if the answer for an artifact in `pairs` says so.
    """
    answered = {(target.name, target.platform) for subject, target in pairs if not _runs_on_platform(subject, target)}
    return [
        (pattern, target)
        for target in targets
        for pattern in unmatched
        if pattern.target == target.name and (target.name, pattern.pattern) not in answered
    ]


def written_by(
    goldens: Sequence[Golden], names: Iterable[str], day: datetime.date, notify: Callable[[str], None]
) -> list[Golden]:
    """Return the goldens whose writers were built by a day; `notify` gets a sentence about the others.

    Raises:
        DeployingError: A name means only goldens whose writers were built later.
    """
    later = {golden.id: golden.manifest.writer.built for golden in goldens if golden.manifest.writer.built > day}
    existing = [golden for golden in goldens if golden.id not in later]
    for name in names:
        others = [golden.id for golden in goldens if _has_name(golden, name)]
        if others and later.keys() >= {*others}:
            raise DeployingError(
                f"{name}: expected a golden by a release built on or before {day}, found {few(others)}, built on "
                f"{later[others[0]]}. Choose that day or a later one with --as-of."
            )
    if later:
        notify(of_later_writers(later, day))
    return existing


def _has_name(golden: Golden, name: str) -> bool:
    """Return whether a golden has a name that the user gave: one of its names, a glob of one, or its folder."""
    return any(matches(own, name) for own in golden.names) or _is_folder_of(golden, Path(name))


def _is_folder_of(golden: Golden, path: Path) -> bool:
    """Return whether a path is the folder of a golden, or that of its case."""
    return path.name in (golden.folder.name, golden.folder.parent.name) and path.resolve() in (
        golden.folder.resolve(),
        golden.folder.resolve().parent,
    )


def subjects_named(names: Iterable[str], goldens: Sequence[Golden]) -> list[Subject]:
    """Return the artifacts that the user names: by case, by golden, by a glob of either, by folder, or by file.

    A file that is the artifact of some goldens stands for those goldens; the folder of a golden that is not among
    `goldens` stands for its artifact.

    Raises:
        DeployingError: Names are neither a case, a golden, a matching glob nor a file.
        GoldenError: A golden was changed after it was written.
        ArtifactError: A file cannot be read.
    """
    subjects: list[Subject] = []
    unknown: list[str] = []
    for name in names:
        meant = [golden for golden in goldens if _has_name(golden, name)]
        meant.sort(key=lambda golden: (golden.manifest.case, golden.manifest.writer.built, golden.id))
        for golden in meant:
            golden.verify()
            subjects.append(Subject(golden.read_artifact(), golden))
        if not meant and (Path(name) / MANIFEST).is_file():
            name = str(Path(name) / ARTIFACT)
        if not meant and not Path(saved_model_in(name)).is_file():
            cases = dict.fromkeys(golden.manifest.case for golden in goldens)
            problem = f"{name}: expected a case, a golden or an artifact file, found none of this name."
            unknown.append(f"{problem}{hint_at_cases(name, cases)}")
        elif not meant:
            artifact = read(name)
            same = [golden for golden in goldens if golden.manifest.files.get(ARTIFACT) == artifact.sha256]
            subjects += [Subject(artifact, golden, name) for golden in same] or [
                _without_golden(artifact, name, goldens)
            ]
    if unknown:
        raise DeployingError("\n".join(unknown))
    return list({subject.name: subject for subject in subjects}.values())


def _without_golden(artifact: Artifact, name: str, goldens: Sequence[Golden]) -> Subject:
    """Return what is asked about, for an artifact file that is in no golden of the project.

    A golden in another folder of goldens that holds the same file belongs to it. Otherwise, so does the golden that the
    file was converted from, if the record beside the file names one.
    """
    if stored := _stored_elsewhere(artifact, Path(name)):
        return Subject(artifact, None, name, stored=stored)
    try:
        record = read_record(artifact)
    except GoldenError:  # most files have no record
        return Subject(artifact, None, name)
    made, verified = record.converted_from, record.message if record.verdict == CONVERTED else ""
    originals = [golden for golden in goldens if golden.manifest.files.get(ARTIFACT) == made.sha256]
    return Subject(artifact, None, name, originals[0] if originals else None, made, verified=verified)


def _stored_elsewhere(artifact: Artifact, path: Path) -> Golden | None:
    """Return the golden in whose folder an artifact is; None if it is in none that can be read."""
    folder = path.parent
    if path.name != ARTIFACT or not folder.parent.name or not (folder / MANIFEST).is_file():
        return None
    with contextlib.suppress(GoldenError):
        for golden in GoldenStore(folder.parents[1]).generations(folder.parent.name):
            if golden.folder == folder and golden.manifest.files.get(ARTIFACT) == artifact.sha256:
                return golden
    return None


def targets_named(
    name: str, policy: Policy, day: datetime.date, file: Path | None = None
) -> tuple[DeploymentTarget, ...]:
    """Return the deployment target with this name, even if it is not in force; for `all`, those in force on a day.

    `file` is where the policy is; None if there is none.

    Raises:
        DeployingError: No target has this name, or none is in force.
        ReleaseError: The target's release was not built by that day.
    """
    known = {target.name: target for target in policy.deployed}
    if not known:
        above = "" if file else found_above("There is a policy in", Path(), FILE)
        added = f"Add one to {file or f'{FILE}, which `jaxexport policy init` writes'}: {_example(name, file)}"
        raise DeployingError(
            f"--to {name}: expected a deployment target of the policy, found none there. {above or added}"
        )
    if name == ALL:
        targets = policy.targets_on(day)
        if not targets:
            left_out = "; ".join(f"{each}: {why}" for each, why in left_out_targets(policy, day).items())
            raise DeployingError(
                f"--to {ALL}: expected a deployment target in force on {day}, found none ({left_out}). Name one: "
                f"{', '.join(known)}."
            )
        return targets
    if name not in known:
        raise DeployingError(
            f"--to: expected {ALL} or a deployment target of the policy ({', '.join(known)}), found {name!r}."
            f"{_hint(name, known)}"
        )
    reader_named(known[name].release, policy.calendar().as_of(day))  # raises for a release that is not there yet
    return (known[name],)


def out_of_force(name: str, targets: Sequence[DeploymentTarget], policy: Policy, day: datetime.date) -> dict[str, str]:
    """Return why deployment targets are not in force on a day, by the name of the target.

    They are the target that --to names, or for `--to all` those that it leaves out. `targets` are the targets that
    `name`, the value of --to, means.
    """
    if name == ALL:
        return left_out_targets(policy, day)
    return {target.name: reason for target in targets if (reason := target.out_of_force(day))}


def require_obligation(targets: Sequence[DeploymentTarget], name: str, day: datetime.date) -> None:
    """Raise `DeployingError` if `--to` names a target whose obligation has ended: it has to run nothing.

    Args:
        targets: The deployment targets that `--to` names.
        name: The value of `--to`.
        day: The day as of which is asked.
    """
    for target in targets:
        if target.has_ended(day):
            raise DeployingError(
                f"--to {name}: expected a deployment target that has to run something on {day}, found that "
                f"{target.out_of_force(day)}. To ask all the same, name a case, a golden or a file."
            )


def _example(name: str, file: Path | None) -> str:
    """Return a deployment target as the policy's file has it, with the name or the release that the user typed.

    What the user did not type is a word in capital letters: an invented release, pasted unread, would be tested as if
    it were in use.
    """
    key, release, target = "jaxlib", "RELEASE", "NAME"
    if "==" in name:
        key, release = "reader", name
    elif name[:1].isdigit():
        release = name
    elif name != ALL:
        target = name
    missing = {"NAME": "a name", "RELEASE": "the release that runs there"}
    own = " and ".join(f"{what} for {word}" for word, what in missing.items() if word in (target, release))
    if file and file.suffix == ".toml":
        return f'deployed = [{{name = "{target}", {key} = "{release}"}}], with {own}.'
    return f'deployed: [{{name: {target}, {key}: "{release}"}}], with {own}.'


def _hint(name: str, known: Mapping[str, DeploymentTarget]) -> str:
    """Return a hint at the deployment target that runs a release, or whose name is similar; empty without either."""
    running = [target.name for target in known.values() if name in (target.release, target.jaxlib)]
    return f" That release runs in {few(running)}." if running else did_you_mean(name, known)


def asked_pairs(
    subjects: Sequence[Subject],
    targets: Sequence[DeploymentTarget],
    name: str,
    named: Sequence[str],
    goldens: Sequence[Golden],
) -> tuple[list[tuple[Subject, DeploymentTarget]], dict[str, list[str]]]:
    """Return each artifact with each target to ask about, and by target the goldens that are left out.

    A golden that does not run on the target's platform is left out, with two exceptions. It is asked about if an exact
    name that the user gave, or a pattern in the `cases` of the target, means no golden that runs there. The newest
    golden of a case is asked about if an older one runs there: the next deployment lacks the platform.

    Args:
        subjects: The artifacts.
        targets: The deployment targets that `--to` names.
        name: The value of `--to`. For `all`, a target is asked only about cases that its `cases` include, and about
            files without a golden.
        named: What the user named; nothing for all that the `cases` of the targets match.
        goldens: The goldens of the project.

    Raises:
        DeployingError: No target in force has to run an artifact, or the user's globs match none that runs there.
    """
    pairs = []
    for subject in subjects:
        case = subject.golden.manifest.case if subject.golden else ""
        own = [target for target in targets if name != ALL or not case or target.has_case(case)]
        if not own:
            raise DeployingError(
                f"--to {ALL}: expected a deployment target in force whose `cases` include {case}, found none. Name a "
                f"target ({', '.join(target.name for target in targets)}), or add the case to its `cases`."
            )
        pairs += [(subject, target) for target in own]
    # Whatever the user names: what a target has to run does not depend on it.
    unmet = {target.name: _unmet_patterns(target, goldens) for target in targets}
    asked = {
        (subject.name, target.name)
        for subject, target in pairs
        if _runs_on_platform(subject, target)
        or _is_in(subject, unmet[target.name])
        or _has_lost(subject, target, goldens)
    }
    for each in named:
        exact = [pair for pair in pairs if _is_named(pair[0], each, exactly=True)]
        if not any(_runs_on_platform(*pair) for pair in exact):
            asked.update((subject.name, target.name) for subject, target in exact)
    if pairs and not asked:
        platforms = few(sorted({target.platform for target in targets}))
        raise DeployingError(
            f"{few(named)}: expected goldens that were exported for {platforms}, found {len(subjects)} for other "
            "platforms. Name a case or a golden exactly to have its answer, or name another target."
        )
    left_out: dict[str, list[str]] = {}
    for subject, target in pairs:
        if (subject.name, target.name) not in asked:
            left_out.setdefault(target.name, []).append(subject.name)
    return [pair for pair in pairs if (pair[0].name, pair[1].name) in asked], left_out


def _unmet_patterns(target: DeploymentTarget, goldens: Sequence[Golden]) -> list[str]:
    """Return the patterns in the `cases` of a target that match goldens, but none that runs on its platform."""
    found = {
        pattern: [golden.manifest for golden in goldens if matches(golden.manifest.case, pattern)]
        for pattern in target.cases
    }
    return [
        pattern
        for pattern, own in found.items()
        if own and not any(target.platform in manifest.runs_on for manifest in own)
    ]


def _is_named(subject: Subject, name: str, *, exactly: bool = False) -> bool:
    """Return whether a name means an artifact: its case, its golden or its file; a glob counts unless `exactly`."""
    names = [subject.file, *(subject.golden.names if subject.golden else ())]
    return name in names or (not exactly and any(matches(each, name) for each in names[1:]))


def _is_in(subject: Subject, patterns: Iterable[str]) -> bool:
    return subject.golden is not None and any(matches(subject.golden.manifest.case, each) for each in patterns)


def _has_lost(subject: Subject, target: DeploymentTarget, goldens: Sequence[Golden]) -> bool:
    """Return whether a golden may have lost a target's platform: it is its case's newest, and an older one runs there.

    Only goldens by writers on the same platform are compared.
    """
    if subject.golden is None or not target.has_case(subject.golden.manifest.case):
        return False
    own = subject.golden.manifest
    manifests = (golden.manifest for golden in goldens)
    alike = [each for each in manifests if (each.case, each.writer.platform) == (own.case, own.writer.platform)]
    is_newest = all(each.writer.built <= own.writer.built for each in alike)
    return is_newest and any(target.platform in each.runs_on for each in alike)


def _runs_on_platform(subject: Subject, target: DeploymentTarget) -> bool:
    return subject.golden is None or target.platform in subject.golden.manifest.runs_on
