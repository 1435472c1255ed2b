"""The envelope of an artifact: the flatbuffer that `jax.export` writes around a module."""
