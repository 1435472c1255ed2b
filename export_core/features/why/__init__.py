"""Why a cell fails: since which release, by which operation, and what to do."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={"explain": "why_commands:explain", "bisect": "why_commands:bisect", "reduce": "why_commands:reduce"},
    schemas={
        "bisection": (
            "bisect.bisection_report:Bisection",
            "what `jaxexport bisect --json` prints: since which release a cell fails, and what changed in it",
        ),
        "explanation": (
            "explain.explanation:Explanation",
            "what `jaxexport explain --json` prints, and explanation.json in a bundle: why a cell fails, and what to "
            "do",
        ),
    },
)
