"""How a run of pytest compares goldens: as its markers and options say now, whatever the goldens recorded.

So a tolerance can be corrected in the test, and no golden has to be written again for it. The policy comes on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from export_core.goldens import Comparison, Golden
from export_core.matrix.comparisons import under_rules
from pytest_jaxexport.marker import MarkerOptions
from pytest_jaxexport.settings import Settings


def marked_now(golden: Golden, marked: MarkerOptions, settings: Settings) -> Golden:
    """A golden of a marked test with the comparison of this run."""
    manifest = msgspec.structs.replace(golden.manifest, comparison=settings.comparison(marked))
    return replace(golden, manifest=manifest, sources=settings.sources(marked))


def correction(goldens: Sequence[Golden], marked: MarkerOptions, settings: Settings) -> dict[str, Any] | None:
    """The comparison of this run as the policy would spell it, where `jaxexport matrix` compares in another way.

    None where it compares in the same way: it sees no marker, only what goldens recorded and the policy's rules.
    """
    numbers = settings.policy.numbers
    for golden in goldens:
        now = under_rules(marked_now(golden, marked, settings), numbers).manifest.comparison
        if now != under_rules(golden, numbers).manifest.comparison:
            fields = msgspec.to_builtins(settings.comparison(marked)).items()
            return {name: value for name, value in fields if value not in (None, Comparison().compare)}
    return None
