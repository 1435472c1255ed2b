"""JAX's own goldens, by JAX's own test and by this project: `nox -s from_jax`."""
