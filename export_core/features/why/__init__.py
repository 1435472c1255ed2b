"""Why a cell fails: since which release, by which operation, and what to do."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={"explain": "commands:explain", "bisect": "commands:bisect", "reduce": "commands:reduce"},
    schemas={
        "bisection": (
            "bisect.report:Bisection",
            "what `jaxexport bisect --json` prints: since which release a cell fails, and what changed in it",
        ),
        "explanation": (
            "explain.explanation:Explanation",
            "what `jaxexport explain --json` prints, and explanation.json in a bundle: why a cell fails, and what to "
            "do",
        ),
    },
)
