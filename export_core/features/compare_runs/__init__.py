"""Runs compared: with a baseline, and with the earlier runs of a folder."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={
        "trend": "trend_command:trend",
    },
    compare="comparison:compared",
)
