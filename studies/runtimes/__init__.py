"""A study of this project's goldens in runtimes that are not jaxlib, and the page about the results."""
