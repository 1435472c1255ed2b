"""Comparisons of the artifact reader's answers with those of many releases: three sessions of nox."""
