"""A study of a custom call that changes: artifacts from two days of the change are replayed in five releases.

docs/how-to/change-a-custom-call.md shows the results.
"""
