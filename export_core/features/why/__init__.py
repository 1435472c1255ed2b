"""Why a cell fails: since which release, by which operation, and what to do."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={
        "explain": "explain.command:explain",
        "bisect": "bisect.command:bisect",
        "reduce": "reduce.command:reduce",
    },
)
