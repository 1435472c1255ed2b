"""Programs each of whose goldens shows one entry of the knowledge base about another runtime."""
