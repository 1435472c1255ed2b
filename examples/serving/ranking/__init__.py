"""Serves exported models with the jaxlib that this server is pinned to."""
