"""Since which release a cell fails, and whether jax or jaxlib is to blame."""
