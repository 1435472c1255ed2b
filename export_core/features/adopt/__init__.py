"""Goldens of artifacts whose source code is lost, from one file or from a whole archive."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={"goldens add": "adopt_command:add"},
    schemas={"artifacts": ("archive:ArtifactList", "artifacts.yaml: what belongs to each artifact of an archive")},
)
