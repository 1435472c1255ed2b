"""The pytest plugin. Importing this package, or its `plugin`, loads neither jax nor numpy."""
