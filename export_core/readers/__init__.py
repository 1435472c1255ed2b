"""The environments in which readers and writers run: built, locked, listed and removed; and the hardware below them."""
