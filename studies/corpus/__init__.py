"""Example programs that releases export: by subject, of closed issues, JAX's harnesses; artifacts with one thing wrong.

Each is written once, and chosen by its tags (`choosing`). pytest collects them only where they are named.
"""
