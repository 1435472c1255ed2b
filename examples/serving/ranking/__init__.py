"""A server of exported models, with the jaxlib that it is pinned to."""
