"""What the artifact reader says of artifacts, against what many releases say: three sessions of nox."""
