"""On PYTHONPATH of a worker: its process has registered the library's targets before it meets an artifact."""

import scale_targets  # noqa: F401 - registers
