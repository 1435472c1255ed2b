"""Programs whose goldens show, by one entry each, what the knowledge base says of other runtimes."""
