"""The cost of a forecast, which inspect and check pay too: it loads no library and asks few entries."""

import subprocess
import sys
import time

from stored_artifacts import DATA

from export_core.artifact import read
from export_core.artifact.readers import loads, readers_of
from export_core.knowledge import entries_of, forecast
from export_core.releases.calendar_entries import shipped_entries

HEAVY = {"jax", "jaxlib", "numpy", "msgspec", "yaml", "dataclasses", "inspect", "pathlib", "hashlib", "importlib"}
FILE = DATA / "0.12.0.1" / "mlp.jaxexport"


def test_a_forecast_loads_no_library():
    code = f"""
import sys
import packaging.version  # since CPython 3.13 its deprecated functions import inspect
before = set(sys.modules)
from export_core.artifact import read
from export_core.artifact.readers import readers_of
from export_core.knowledge import forecast
from export_core.releases.calendar_entries import shipped_entries
assert forecast(read({str(FILE)!r}), readers_of(shipped_entries())["0.12.0.1"]).in_words == "runs it"
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=DATA.parents[2])
    assert not HEAVY & set(done.stdout.split())


def test_a_forecast_takes_little_longer_than_a_check_of_loading():
    """A tenth of a millisecond on a free machine; measured side by side here, since this one may be busy."""
    reader = readers_of(shipped_entries())["0.12.0.1"]
    entries_of("jaxlib")

    def fastest(function):
        times = []
        for _ in range(100):
            artifact = read(FILE)
            _ = artifact.custom_calls, artifact.unread  # which an audit has read
            started = time.perf_counter()
            function(artifact)
            times.append(time.perf_counter() - started)
        return min(times)

    loading = fastest(lambda artifact: loads(artifact, (reader,)))
    assert fastest(lambda artifact: forecast(artifact, reader)) < 4 * loading
