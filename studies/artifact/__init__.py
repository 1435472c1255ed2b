"""Comparisons of what the artifact reader says with what many releases of jaxlib do: three nox sessions."""
