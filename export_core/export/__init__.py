"""How a golden is made: cases are exported and run by the jax of this process. All modules here import jax."""
