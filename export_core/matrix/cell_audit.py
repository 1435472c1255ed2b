"""What the artifact of a cell says before it runs: whether it may be compiled at all."""

from export_core.artifact import Artifact, ArtifactError
from export_core.artifact.audit import audit
from export_core.goldens import Golden, GoldenError
from export_core.policy import Policy
from export_core.releases.stable_targets import promised_by, stable_targets


def audit_problem(golden: Golden, policy: Policy, artifact: Artifact | None = None) -> str:
    """Why this artifact must not be compiled anywhere; empty if no problems were found.

    A part that this reader does not know stops it, and a target that the writer's release never promised. A target that
    the reader's release has dropped since is run: whether the promise holds is what the cell is to show. A converted
    artifact may have those that the release promises for which it was made. `artifact` is another one by the golden's
    writer, such as a part of the golden's own.
    """
    origin = golden.manifest.converted_from
    promised, writer = promised_by(golden.manifest.writer.jax, golden.manifest.writer.jaxlib)
    accepted = {**golden.manifest.options.allow, **policy.allow}
    try:
        artifact = artifact or golden.read_artifact()
        if origin and "==" not in origin.reader:  # other runtimes have no list
            promised |= stable_targets(origin.reader)
        findings = audit(artifact, promised, allow=accepted, writer=writer)
    except (ArtifactError, GoldenError) as error:
        return str(error)
    return "\n".join(str(finding) for finding in findings if not finding.ok)
