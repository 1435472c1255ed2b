"""What runs in the process that rewrites modules: it imports jaxlib, and nothing of this project."""
