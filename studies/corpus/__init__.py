"""Example programs that releases export: by subject, from closed issues, JAX's harnesses; and defective artifacts.

Each program is written once, and chosen by its tags (`choosing`). pytest collects programs only if they are named.
"""
