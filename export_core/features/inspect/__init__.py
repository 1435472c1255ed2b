"""The description of one artifact, or of two: facts as JSON, a screen made from them, the difference between them.

It is not part of report/, which loads the matrix and its libraries: nothing here may take longer to import than it
takes to read an artifact.
"""

from export_core.base.feature import Feature

FEATURE = Feature(
    quick_start="screen:quick_start",
    commands={
        "inspect": "inspect_commands:inspect",
        "audit": "inspect_commands:audit",
        "diff": "inspect_commands:diff",
    },
    schemas={
        "inspect": (
            "artifact_facts:Inspection",
            "what `jaxexport inspect --json` prints: everything that is known of one artifact",
        ),
        "inventory": (
            "inventory:InventoryRow",
            "a line of what `jaxexport inspect DIR --json` prints: a file of an archive",
        ),
    },
    coverage="coverage:coverage_text",
)
