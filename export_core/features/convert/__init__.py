"""The conversion of artifacts for readers that refuse them: envelope, module, custom calls; and the proof of each."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={"convert": "convert_command:convert"},
    schemas={
        "conversion": (
            "conversions:ConversionOutcome",
            "a line of `jaxexport convert --json` for a conversion that failed, or was not run (`--dry-run`)",
        ),
    },
    asked_by="convert",
    facts={"fixed_by_conversion": "fix:FIX"},
    findings="fixed_by_conversion:conversion_findings",
    after_replay="fixed_by_conversion:with_conversions",
    remedy="fixed_by_conversion:remedy",
    converted="fixed_by_conversion:converted_cell",
)
