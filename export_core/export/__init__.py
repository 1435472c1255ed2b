"""How a golden is made: cases are exported and run by the jax of this process. Its modules import jax."""
