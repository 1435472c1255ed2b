"""What is known of each consumer of artifacts, and the function `forecast`, which says what a consumer will do.

`data/CONSUMER.yaml` has the entries of the knowledge base. An entry is a fact about some releases of a consumer: which
artifacts have the problem, what then happens, what to do, and who measured it when. `forecast` answers from the entries
and from the bytes of an artifact. This folder imports no jax, numpy, msgspec or YAML, since `jaxexport inspect` and
`export_core.check` use it.
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
    conversion_may_help,
    forecast,
    forecasts,
    forecasts_when_converted,
    has_removable_shardings,
    shardings_in_the_way,
    usual_platform,
)
from export_core.knowledge.knowledge_base import Entry, entries_of

__all__ = [
    "NO", "ONE_DEVICE", "UNKNOWN", "YES", "YES_BUT", "Answer", "Entry", "Forecast", "Reason", "conversion_may_help",
    "entries_of", "forecast", "forecasts", "forecasts_when_converted", "has_removable_shardings",
    "shardings_in_the_way", "usual_platform",
]  # fmt: skip
