"""A pytest plugin, `-p studies.numbers.variables`, that makes the process of a writer another processor.

`jaxexport goldens backfill` passes no setting of XLA, rightly. This one takes them from NUMBERS_VARIABLES, before jax
starts.
"""

from __future__ import annotations

import json
import os

os.environ.update(json.loads(os.environ.get("NUMBERS_VARIABLES", "{}")))
