"""Goldens of artifacts without their source: of one file, of a whole archive, of live calls."""
