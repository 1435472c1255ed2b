"""Changes since a run, as its project shows them, of what decides verdicts: the evidence, the policy, the goldens."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from export_core.base.errors import ExportCompatError
from export_core.base.processes import run_git
from export_core.base.text import few, first_line
from export_core.goldens import Golden, GoldenError, GoldenStore
from export_core.goldens.store import LFS_POINTER, sha256
from export_core.judge.gate import recorded_policy
from export_core.matrix.comparisons import under_policy
from export_core.policy import Policy
from export_core.policy.load import load_policy, policy_file
from export_core.run.plan_record import PlanRecord, hash_of, policy_hash
from export_core.run.run import Run

_GIT_SECONDS = 10.0


def changed_here(run: Run) -> str:
    """Return a text that names what has changed since a run and decides its verdicts; "" if nothing has.

    Compared are the parts of its evidence, the policy that its command would find in the working folder, and the
    goldens if their folder is here. A policy that cannot be read is left out. Nothing is run.
    """
    try:
        policy = _policy_of_project(run) or run.policy
    except ExportCompatError:  # `unread_policy` says so
        policy = run.policy
    try:
        goldens = changed_goldens(run, goldens_here(run, policy))
    except ExportCompatError as error:
        goldens = f"goldens that cannot be read any more ({first_line(str(error))})"
    return "; ".join(filter(None, (run.changed_since(policy), goldens)))


def unread_policy(run: Run) -> str:
    """Return a sentence on why the policy that the command of a run would find cannot be read; "" if it can."""
    try:
        _policy_of_project(run)
    except ExportCompatError as error:
        return (
            "The policy of this project cannot be read, so this is the judgement by the policy of the run: "
            f"{first_line(str(error)).removesuffix('.')}. Correct that first."
        )
    return ""


def changed_since_plan(record: PlanRecord) -> str:
    """Return a text that names what has changed here since a plan was made, so that its run cannot be continued.

    It is "" if nothing has. Compared are the policy, the goldens, the commit, and what `changes_since` compares.

    Raises `ExportCompatError` if the policy or the goldens cannot be read.
    """
    from export_core.run.session import run_identity  # it imports what cells need, and this module's callers

    policy = _policy_here(record.policy_file) or Policy()
    folder = record.goldens_folder or Path(policy.goldens)
    stored = {golden.id: golden for golden in under_policy(GoldenStore(folder).goldens_so_far(), policy)}
    changes = record.changes_since(policy)
    # Two options of the command are a part of its policy.
    if not record.changes_policy and policy_hash(recorded_policy(policy)) != record.policy:
        changes.append("another policy")
    changes.append(_changed_among(record.goldens, stored))
    changes.append(record.other_commit(run_identity(policy, folder).checkout))
    return "; ".join(filter(None, changes))


def other_policy(run: Run) -> Path | None:
    """Return the policy file that the command of a run would find now, if the run was judged by another policy.

    None also if options of the command changed the policy, or if the file cannot be read.
    """
    return _policy_file_here(run, is_same=False)


def own_policy(run: Run) -> Path | None:
    """Return the policy file that the command of a run would find now, if the run was judged by that policy.

    None also if options of the command changed the policy, or if the file cannot be read.
    """
    return _policy_file_here(run, is_same=True)


def _policy_file_here(run: Run, *, is_same: bool) -> Path | None:
    """Return the policy file that the command of a run would find now; None unless it fits `is_same`.

    With `is_same`, the file must contain the policy of the run, else a different policy.
    """
    if run.plan is None or run.plan.changes_policy:
        return None
    try:
        policy = _policy_of_project(run)
    except ExportCompatError:  # `unread_policy` says so
        return None
    if policy is None or (policy.without_locations() == run.policy.without_locations()) is not is_same:
        return None
    return policy_file(Path(), run.plan.policy_file)


def _policy_of_project(run: Run) -> Policy | None:
    """Return the policy that the command of a run would find now; None if there is no such file."""
    return _policy_here(run.plan.policy_file if run.plan else None)


def _policy_here(named: str | None) -> Policy | None:
    """Return the policy in the file that a command names, or that it finds if it names none; None without such a file.

    Raises `PolicyError` if the policy cannot be read.
    """
    file = policy_file(Path(), named)
    # A run of elsewhere may name a file that is not on this machine.
    return load_policy(file) if file and (named is None or file.exists()) else None


def goldens_here(run: Run, policy: Policy) -> dict[str, Golden] | None:
    """Return the goldens in the folder of a run by id, with the comparison settings of `policy` applied.

    Returns None if the run lists no goldens, or if their folder is not on this machine. A folder that was deleted here,
    as git shows, has no golden any more.
    """
    folder = Path(run.summary.identity.goldens or policy.goldens)
    if not run.goldens:
        return None
    if not folder.is_dir():
        return {} if _was_deleted(folder) else None
    return {golden.id: golden for golden in under_policy(GoldenStore(folder).goldens(), policy)}


def _was_deleted(folder: Path) -> bool:
    """Return whether a missing folder was deleted: git tracks files in it that a sparse checkout does not leave out."""
    try:
        return bool(run_git(("ls-files", "--deleted", "-z", "--", str(folder)), Path(), _GIT_SECONDS))
    except (OSError, subprocess.SubprocessError):  # no git, no repository here, or a folder outside of it
        return False


def changed_goldens(run: Run, goldens: Mapping[str, Golden] | None) -> str:
    """Return a text that names the goldens of a run that have changed since; "" if none has, or `goldens` is None.

    `goldens` are all goldens of the run's folder, by id. All files of the run's own goldens are hashed.
    """
    return "" if goldens is None else _changed_among(run.goldens, goldens)


def _changed_among(recorded: Mapping[str, str], goldens: Mapping[str, Golden]) -> str:
    """Return a text that names the goldens that are missing, damaged or not as recorded; "" if none is.

    `recorded` has the hash of each golden of the run by its id, and `goldens` all goldens of the folder by id.
    """
    others, lost = [], []
    for name, found in sorted(recorded.items()):
        golden = goldens.get(name)
        if golden and hash_of(golden.manifest) != found:
            others.append(name)
        elif not golden or _is_damaged(golden):
            lost.append(name)
    kinds = {"other goldens with the same names": others, "goldens that are missing or damaged now": lost}
    return "; ".join(f"{kind}: {few(names)}" for kind, names in kinds.items() if names)


def _is_damaged(golden: Golden) -> bool:
    """Return whether a file of a golden is missing or changed.

    A Git LFS pointer to the listed content counts as the file, since a job that only judges may have only pointers.
    """
    try:
        golden.verify()
    except GoldenError:
        return not all(_is_as_listed(golden, name, digest) for name, digest in golden.manifest.files.items())
    return False


def _is_as_listed(golden: Golden, name: str, digest: str) -> bool:
    try:
        content = golden.content(name)
    except GoldenError:
        return False
    return sha256(content) == digest or (content.startswith(LFS_POINTER) and digest.encode() in content)
