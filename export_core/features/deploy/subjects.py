"""What is asked about: the goldens of a case or an artifact file, and the deployment targets of the policy."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from export_core.artifact import Artifact, read
from export_core.base.errors import ExportCompatError
from export_core.base.phrases import did_you_mean
from export_core.goldens import Golden
from export_core.goldens.store import ARTIFACT
from export_core.policy import DeploymentTarget, Policy
from export_core.policy.entries import ALL, matches


class DeployingError(ExportCompatError):
    """What was asked about does not exist, or is in no deployment target."""


@dataclass(frozen=True)
class Subject:
    """An artifact that may be deployed: of a golden, or of a `file`, whose golden is None where there is no such."""

    artifact: Artifact
    golden: Golden | None = None
    file: str = ""

    @property
    def name(self) -> str:
        """The id of the golden, after the name of the file where there is one."""
        golden = self.golden.id if self.golden else ""
        return f"{self.file} ({golden})" if self.file and golden else self.file or golden


def subjects_named(names: Iterable[str], goldens: Sequence[Golden]) -> list[Subject]:
    """The artifacts that are meant by cases, goldens, globs of either, and artifact files.

    A file that is the artifact of goldens stands for these. Raises `DeployingError` for a name that is none of them,
    `GoldenError` for a golden that was changed, and `ArtifactError` for a file that cannot be read.
    """
    subjects: list[Subject] = []
    for name in names:
        meant = [golden for golden in goldens if matches(golden.manifest.case, name) or matches(golden.id, name)]
        meant.sort(key=lambda golden: (golden.manifest.case, golden.manifest.writer.built, golden.id))
        for golden in meant:
            golden.verify()
            subjects.append(Subject(golden.read_artifact(), golden))
        if not meant and not Path(name).is_file():
            cases = dict.fromkeys(golden.manifest.case for golden in goldens)
            raise DeployingError(
                f"{name}: expected a case, a golden or an artifact file, found none of this name."
                f"{did_you_mean(name, cases)} `jaxexport goldens list` shows the cases."
            )
        if not meant:
            artifact = read(name)
            same = [golden for golden in goldens if golden.manifest.files.get(ARTIFACT) == artifact.sha256]
            subjects += [Subject(artifact, golden, name) for golden in same] or [Subject(artifact, None, name)]
    return list({subject.name: subject for subject in subjects}.values())


def targets_named(name: str, policy: Policy, day: datetime.date) -> tuple[DeploymentTarget, ...]:
    """The place of this name, in force or not; for `all` those that are in force on a day.

    Raises `DeployingError` where there is none, or its release was not built by then.
    """
    known = {target.name: target for target in policy.deployed}
    if not known:
        raise DeployingError(
            "--to: expected a policy with deployment targets, found none. Add one to `deployed` of the policy: its "
            "name and jaxlib."
        )
    if name == ALL:
        targets = policy.targets_on(day)
        if not targets:
            raise DeployingError(f"--to {ALL}: no deployment target of the policy is in force on {day}. Name one.")
        return targets
    if name not in known:
        raise DeployingError(
            f"--to: expected {ALL} or a deployment target of the policy ({', '.join(known)}), found {name!r}."
            f"{did_you_mean(name, known)}"
        )
    policy.calendar().as_of(day).built(known[name].jaxlib)  # raises for a release that is not there yet
    return (known[name],)


def asked_pairs(
    subjects: Sequence[Subject], targets: Sequence[DeploymentTarget], name: str
) -> list[tuple[Subject, DeploymentTarget]]:
    """Which artifact is asked about in which target. For `all`, those that must run it; a file has no known case.

    Raises `DeployingError` for an artifact that no deployment target has to run.
    """
    pairs = []
    for subject in subjects:
        case = subject.golden.manifest.case if subject.golden else ""
        own = [target for target in targets if name != ALL or not case or target.has_case(case)]
        if not own:
            raise DeployingError(
                f"--to {ALL}: no deployment target of the policy that is in force has to run {case}, by their `cases`. "
                f"Name a target ({', '.join(target.name for target in targets)}), or correct the policy."
            )
        pairs += [(subject, target) for target in own]
    return pairs
