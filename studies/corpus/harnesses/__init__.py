"""The harnesses of JAX, as marked tests."""
