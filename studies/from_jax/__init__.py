"""A study of JAX's own goldens, which are tested by JAX's own tests and by this project: `nox -s from_jax`."""
