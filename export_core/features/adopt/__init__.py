"""Goldens of artifacts without their source: of one file, of a whole archive."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={"goldens add": "adopt_command:add"},
    schemas={"artifacts": ("archive:ArtifactList", "artifacts.yaml: what belongs to each artifact of an archive")},
)
