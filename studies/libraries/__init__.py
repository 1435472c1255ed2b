"""What libraries for JAX compute, read where they are not installed: `nox -s libraries`."""
