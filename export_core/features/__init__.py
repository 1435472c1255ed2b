"""What some users need: each feature is a folder that says in its `FEATURE` what it adds. Nothing else names one."""

FEATURES = (
    "inspect",
    "why",
    "convert",
    "adopt",
    "backfill",
    "compare_runs",
    "costs",
    "forecast",
    "deploy",
    "remote",
)
"""The features: without its line here, a folder is not a part of the program."""
