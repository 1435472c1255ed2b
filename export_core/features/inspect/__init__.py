"""The description of one artifact, or of two: facts as JSON, a screen made from them, the difference between them.

It is not part of report/, which loads the matrix and its libraries: nothing here may take longer to import than it
takes to read an artifact.
"""

from export_core.base.feature import Feature

FEATURE = Feature(
    quick_start="screen:quick_start",
    commands={
        "inspect": "inspect_command:inspect",
        "audit": "inspect_command:audit",
        "diff": "inspect_command:diff",
        "goldens show": "golden_commands:show",
        "goldens coverage": "golden_commands:coverage",
    },
)
