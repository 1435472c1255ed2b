"""Why a cell fails: since which release, by which operation, and what to do."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={
        "explain": "explain_command:explain",
        "bisect": "bisect_command:bisect",
        "reduce": "reduce_command:reduce",
    },
)
