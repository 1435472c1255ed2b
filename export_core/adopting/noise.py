"""The noise of stored goldens, measured later and stored with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from export_core.goldens import Golden, GoldenStore
from export_core.inspection.noise_text import noise_text
from export_core.matrix import Limits
from export_core.matrix.noise_runs import with_noise
from export_core.measuring import measure_goldens
from export_core.phrases import plural
from export_core.policy import Policy


def add_noise(
    store: GoldenStore, goldens: Sequence[Golden], policy: Policy, notify: Callable[[str], None]
) -> Iterator[str]:
    """Measure the noise of stored goldens and store it with them. Yields what is said of each."""
    known = 0
    for golden, measured in measure_goldens(goldens, policy, Limits(), notify):
        if isinstance(measured, str):
            yield f"{golden.id}  no noise: {measured}"
            continue
        known += 1
        store.write(*with_noise(golden.manifest, golden.files(), measured))
        yield f"{golden.id}  {noise_text(measured.record)}"
    yield f"noise of {known} of {plural(len(goldens), 'golden')} measured"
