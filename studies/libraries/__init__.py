"""A study of what libraries for JAX compute, exported and then read without the libraries: `nox -s libraries`."""
