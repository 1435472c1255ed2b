"""Runs compared: with a baseline, and with the earlier runs of a folder."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={"trend": "trend_command:trend"},
    schemas={
        "trend": ("trend:Trend", "what `jaxexport trend --json` prints: in which release which outputs changed"),
        "comparison": (
            "comparison:BaselineReport",
            "what `jaxexport judge NEW --baseline OLD --json` prints: what is different from an earlier run",
        ),
    },
    compare="comparison:compared",
)
