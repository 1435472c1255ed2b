"""Will this exported JAX function still run there? The core that answers, with no pytest in it."""
