"""A pytest plugin, `-p studies.numbers.variables`, that lets a writer compile as for another processor.

`jaxexport goldens backfill` passes no settings of XLA on, by design. This plugin takes them from NUMBERS_VARIABLES,
before jax starts.
"""

from __future__ import annotations

import json
import os

os.environ.update(json.loads(os.environ.get("NUMBERS_VARIABLES", "{}")))
