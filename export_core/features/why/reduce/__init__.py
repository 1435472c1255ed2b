"""The smallest module that still fails in the same way."""
