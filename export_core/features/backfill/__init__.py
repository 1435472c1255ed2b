"""Goldens of older writers, made by running the same tests in their environments."""

from export_core.base.feature import Feature

FEATURE = Feature(commands={"goldens backfill": "backfill_command:backfill"})
