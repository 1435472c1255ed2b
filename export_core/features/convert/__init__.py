"""The conversion of artifacts for readers that refuse them: envelope, module, custom calls; and the proof of each."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={
        "convert": "convert_command:convert",
    },
    findings="findings:healing_findings",
    after_replay="healing:with_healings",
    remedy="healing:remedy",
)
