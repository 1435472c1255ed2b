"""The environments in which readers and writers run: where they are, how they are built, locked, listed and removed."""
