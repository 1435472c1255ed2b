"""A custom call that changes: artifacts from two days of the change, in five releases.

docs/how-to/change-a-custom-call.md is made of it.
"""
