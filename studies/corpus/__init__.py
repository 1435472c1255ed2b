"""Programs that many releases export and read: real ones, those of closed issues, JAX's harnesses, broken artifacts.

pytest collects them only where they are named.
"""
