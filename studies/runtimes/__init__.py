"""This project's goldens in runtimes that are not jaxlib, and the page about them."""
