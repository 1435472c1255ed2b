"""Runs compared: with a baseline, and with the earlier runs of a folder."""

from export_core.base.feature import Feature

FEATURE = Feature(
    schemas={
        "trend": (
            "trend:Trend",
            "what `jaxexport report --trend --json` prints: which outputs changed in which release",
        ),
        "comparison": (
            "comparison:BaselineReport",
            "what `jaxexport judge NEW --baseline OLD --json` prints: what is different from an earlier run",
        ),
    },
    compare="comparison:compared",
    trend="trend:trend",
)
