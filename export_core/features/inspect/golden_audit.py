"""The audit of an artifact that belongs to a golden: the same as in a matrix."""

from collections.abc import Sequence
from pathlib import Path

from export_core.artifact import Artifact
from export_core.artifact.audit import AuditFinding
from export_core.features.inspect.artifact_facts import worst_findings
from export_core.goldens import Golden
from export_core.goldens.manifest_file import load_manifest
from export_core.goldens.store import ARTIFACT, MANIFEST
from export_core.goldens.verify import check_bytes
from export_core.matrix.comparisons import under_policy
from export_core.matrix.outcome import audit_golden
from export_core.policy import Policy


def audit_as_golden(
    artifact: Artifact, policy: Policy, jaxlibs: Sequence[str]
) -> tuple[Golden, tuple[AuditFinding, ...]] | None:
    """Audit a golden's artifact as a matrix does, and return the golden and the findings.

    Return None if the artifact's file does not belong to a golden. The writer is read from golden.yaml. A custom call
    is fine if golden.yaml, the policy or one of its quirks allows it, or if the writer and all `jaxlibs` promise it.

    Raises:
        ArtifactError: The module cannot be read.
        GoldenError: golden.yaml cannot be read, or the artifact's bytes contradict it.
        MatrixError: A quirk does not fit the golden.
    """
    folder = Path(artifact.name).parent
    if Path(artifact.name).name != ARTIFACT or not (folder / MANIFEST).is_file():
        return None
    golden = Golden(load_manifest(folder / MANIFEST), folder)
    check_bytes(golden, artifact, policy.calendar())
    (golden,) = under_policy([golden], policy)
    audited = [audit_golden(golden, artifact, policy, jaxlib) for jaxlib in jaxlibs or (None,)]
    return golden, worst_findings(audited)
