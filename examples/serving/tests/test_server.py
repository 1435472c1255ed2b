"""The server as its clients see it, with every model that was delivered."""

import json
import shutil
import threading
import urllib.request
from pathlib import Path

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from ranking.check import arrays, problem
from ranking.server import start

MODELS = Path(__file__).parents[1] / "models"
DELIVERED = sorted(path.parent for path in MODELS.glob("*/*/golden.yaml"))


@pytest.mark.parametrize("golden", DELIVERED, ids=lambda golden: f"{golden.parent.name}/{golden.name}")
def test_a_delivered_model_is_served(golden):
    [rows], [expected] = arrays(golden, "inputs"), arrays(golden, "outputs")
    with start(0, [golden]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{golden.parent.name}"
        with urllib.request.urlopen(url, data=json.dumps(rows.tolist()).encode()) as reply:
            np.testing.assert_allclose(json.load(reply), expected, rtol=1e-5)
        server.shutdown()


def test_a_damaged_model_stops_the_server(tmp_path):
    golden = shutil.copytree(DELIVERED[0], tmp_path / "golden")
    artifact = golden / "artifact.jaxexport"
    artifact.write_bytes(artifact.read_bytes()[:-100])
    assert problem(golden)
    with pytest.raises(SystemExit, match=str(golden)):
        start(0, [golden])


def test_a_model_that_crashes_jaxlib_stops_the_server(tmp_path):
    """Up to jaxlib 0.9.2, a LAPACK call kills a fresh process: https://github.com/jax-ml/jax/issues/29610."""
    matrix = np.eye(2, dtype=np.float32)
    exported = jax.export.export(jax.jit(jnp.linalg.cholesky))(matrix)
    (tmp_path / "artifact.jaxexport").write_bytes(exported.serialize())
    for name in ("inputs", "outputs"):
        np.savez(tmp_path / f"{name}.npz", matrix)
    assert problem(tmp_path).endswith("jaxlib died by signal 11")
