"""What a reader imports before it reads an artifact: the targets of the rms_norm that is installed there."""

import rms_norm  # noqa: F401
