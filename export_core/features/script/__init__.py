"""Goldens written by a script, without pytest: `export_core.export_artifact` and `export_core.write_golden`."""

from export_core.base.feature import Feature

FEATURE = Feature()
