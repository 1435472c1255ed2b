"""Programs for the knowledge base: each golden shows an entry about a runtime that is not jaxlib."""
