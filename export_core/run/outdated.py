"""Changes since a run, as its project shows them, of what decides verdicts: the evidence, the policy, the goldens."""

from collections.abc import Mapping
from pathlib import Path

from export_core.base.errors import ExportCompatError
from export_core.base.text import few, first_line
from export_core.goldens import Golden, GoldenStore
from export_core.matrix.comparisons import under_policy
from export_core.policy import Policy
from export_core.policy.load import load_policy, policy_file
from export_core.run.plan_record import hash_of
from export_core.run.run import Run


def changed_here(run: Run) -> str:
    """Return a text that names what has changed since a run and decides its verdicts; "" if nothing has.

    Compared are the parts of its evidence, the policy that its command would find in the working folder, and the
    goldens whose folder is here. Nothing is run, and only manifests of goldens are read.
    """
    try:
        policy = _policy_here(run) or run.policy
    except ExportCompatError as error:
        unread = f"a policy that cannot be read any more ({first_line(str(error))})"
        return "; ".join(filter(None, (run.changed_since(), unread)))
    try:
        others = other_goldens(run, goldens_here(run, policy))
        goldens = f"other goldens with the same names: {few(others)}" if others else ""
    except ExportCompatError as error:
        goldens = f"goldens that cannot be read any more ({first_line(str(error))})"
    return "; ".join(filter(None, (run.changed_since(policy), goldens)))


def _policy_here(run: Run) -> Policy | None:
    """Return the policy that the command of a run would find now; None if there is no such file.

    Raises `PolicyError` if the policy cannot be read.
    """
    named = run.plan.policy_file if run.plan else None
    file = policy_file(Path(), named)
    # A run of elsewhere may name a file that is not on this machine.
    return load_policy(file) if file and (named is None or file.exists()) else None


def goldens_here(run: Run, policy: Policy) -> dict[str, Golden]:
    """Return the goldens in the folder of a run by id, with the comparison settings of `policy` applied.

    Returns an empty dict if the run lists no goldens, or if their folder is not on this machine.
    """
    folder = Path(run.summary.identity.goldens or policy.goldens)
    if not run.goldens or not folder.is_dir():
        return {}
    return {golden.id: golden for golden in under_policy(GoldenStore(folder).goldens(), policy)}


def other_goldens(run: Run, goldens: Mapping[str, Golden]) -> list[str]:
    """Return the ids of those goldens of a run that are among `goldens` with another content, sorted."""
    hashes = {name: hash_of(golden.manifest) for name, golden in goldens.items()}
    return sorted(name for name, found in run.goldens.items() if found != hashes.get(name, found))
