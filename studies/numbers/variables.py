"""A pytest plugin, `-p studies.numbers.variables`, that lets a writer compile as if for a different processor.

`jaxexport goldens backfill` passes no settings of XLA to pytest, by design. This plugin sets the environment variables
that NUMBERS_VARIABLES has as JSON, before jax starts.
"""

from __future__ import annotations

import json
import os

os.environ.update(json.loads(os.environ.get("NUMBERS_VARIABLES", "{}")))
