"""Whether artifacts may be deployed: answered from stored results, otherwise from what an artifact's bytes show."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={"can-i-deploy": "deploy_command:can_i_deploy"},
    schemas={
        "deploy": (
            "answers:Deployability",
            "what `jaxexport can-i-deploy --json` prints: whether artifacts run in the deployment targets",
        )
    },
    asked_by="deployed",
    findings="answer_lines:target_findings",
)
