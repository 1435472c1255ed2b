"""May an artifact be deployed in a target: the answer from stored results, and else from what its bytes foresee."""

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
    findings="answers:target_findings",
)
