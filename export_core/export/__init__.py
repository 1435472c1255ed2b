"""How a golden is made: cases are exported and run by the jax of this process. The modules of this folder import jax.
"""
