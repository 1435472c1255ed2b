"""The statements of JAX's export document on debugging: logs, dumps, and environment variables."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import jax
from jax import export, lax

# Section "Debugging". The document raises the log's level on the command line of JAX's own tests.


def test_an_export_is_logged(caplog):
    # At the level INFO by absl in the document, at DEBUG by Python's own logging since 0.6.2.
    with caplog.at_level(logging.DEBUG, logger="jax._src.export._export"):
        export.export(jax.jit(lax.sin))(1.0)
    logged = [message for message in caplog.messages if message.startswith("Exported JAX function: fun_name=sin")]
    assert logged
    assert f"version={export.maximum_supported_calling_convention_version}" in logged[0]


def test_the_log_names_platforms_and_disabled_checks(caplog):
    with caplog.at_level(logging.DEBUG, logger="jax._src.export._export"):
        export.export(
            jax.jit(lax.sin), platforms=["cpu", "tpu"], disabled_checks=[export.DisabledSafetyCheck.platform()]
        )(1.0)
    assert "lowering_platforms=('cpu', 'tpu') disabled_checks=[platform]" in caplog.text
    assert "Define JAX_DUMP_IR_TO to dump the module" in caplog.text


PROGRAM = """
import logging
import jax
from jax import export, lax
logging.getLogger("jax._src.export._export").setLevel(logging.DEBUG)  # what is not logged is not dumped
exported = export.export(jax.jit(lax.sin))(1.0)
exported.call(1.0)
print(exported.calling_convention_version, jax.config.jax_export_ignore_forward_compatibility)
"""


def test_the_environment_sets_convention_lowering_and_dumps(tmp_path):
    asked = {
        "JAX_DUMP_IR_TO": str(tmp_path),
        "JAX_EXPORT_CALLING_CONVENTION_VERSION": "9",
        "JAX_EXPORT_IGNORE_FORWARD_COMPATIBILITY": "1",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["9", "True"]
    dumped = sorted(path.name.partition("_jit_")[2] for path in tmp_path.glob("*_jit_*.mlir"))
    assert "sin_export.mlir" in dumped
    assert [name for name in dumped if name.endswith("_compile.mlir")]
