"""Artifacts for several devices, adopted without their source, in many releases: `nox -s sharding_check`."""
