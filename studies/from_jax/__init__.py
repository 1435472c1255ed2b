"""JAX's own goldens, tested by JAX's own test and by this project: `nox -s from_jax`."""
