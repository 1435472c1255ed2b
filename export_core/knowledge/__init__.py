"""What is known of each consumer of artifacts, and the one function that says from it what a consumer will do.

`data/CONSUMER.yaml` has the entries: each a fact about some releases of a consumer, which part of an artifact it is
about, what then happens, what to do, and who measured it when. `forecast` answers from them and from the bytes of an
artifact. No jax, numpy, msgspec or YAML: `jaxexport inspect` and `export_core.check` ask it.
"""

from export_core.knowledge.forecasting import (
    NO,
    ONE_DEVICE,
    UNKNOWN,
    YES,
    YES_BUT,
    Answer,
    Forecast,
    Reason,
    forecast,
    forecasts,
    usual_platform,
)
from export_core.knowledge.knowledge_base import Entry, entries_of

__all__ = [
    "NO", "ONE_DEVICE", "UNKNOWN", "YES", "YES_BUT", "Answer", "Entry", "Forecast", "Reason", "entries_of", "forecast",
    "forecasts", "usual_platform",
]  # fmt: skip
