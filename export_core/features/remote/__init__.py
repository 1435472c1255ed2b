"""Cells on other machines: jobs, clusters, and the Dask engine."""

from export_core.base.feature import Feature

FEATURE = Feature(executor="dispatch:replay_at")
