"""The StableHLO versions of a jaxlib, measured in its own environment."""

from __future__ import annotations

import json
import subprocess

from export_core.readers.environment import PUBLISHED, ReaderEnvironments, Sources
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.placement import Placement
from export_core.releases import Calendar
from export_core.releases.calendar import StableHloVersions

_PROGRAM = """
import json
from jaxlib.mlir.dialects import stablehlo
weeks = stablehlo.StablehloCompatibilityRequirement
ask = stablehlo.get_version_from_compatibility_requirement
print(json.dumps([stablehlo.get_current_version(), ask(weeks.WEEK_4), ask(weeks.WEEK_12)]))
"""


def measure(calendar: Calendar, jaxlib: str, sources: Sources = PUBLISHED) -> StableHloVersions:
    """Build the reader's environment of this jaxlib, with the jax of its own number where there is one, and ask it.

    Raises `EnvironmentFailed` when it cannot be built, or does not say.
    """
    release = calendar.pair(jaxlib, jaxlib) if jaxlib in calendar.jax else calendar.release(jaxlib)
    with ReaderEnvironments(calendar, sources) as environments:
        environment = environments.build(Placement(release))
        command = [str(environment.python), "-c", _PROGRAM]
        done = subprocess.run(command, env=dict(environment.variables), capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise EnvironmentFailed(
            f"jaxlib {jaxlib} with jax {release.jax} does not say its StableHLO versions: {last[0]}"
        )
    current, four_weeks, twelve_weeks = json.loads(done.stdout)
    return current, four_weeks, twelve_weeks
