"""The modules that the plugin loads: neither jax nor numpy before a marked test runs, whatever the command line."""

import json

import pytest

WATCH = """
import json, os, pathlib, sys
import pytest

@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    loaded = {name.split(".")[0] for name in sys.modules}
    heavy = sorted(loaded & {"jax", "jaxlib", "numpy", "ml_dtypes", "export_core"})
    pathlib.Path(config.rootpath, f"loaded-{os.getpid()}.json").write_text(json.dumps(heavy))
"""

PLAIN = """
def test_plain():
    pass
"""

MARKED = """
import pytest

@pytest.mark.export_compat
def test_marked(export_golden):
    import jax, jax.numpy as jnp
    export_golden(jax.jit(jnp.sin), jnp.arange(3.0))
"""


@pytest.mark.parametrize(
    ("words", "processes"),
    [
        (("test_plain.py",), 1),
        (("test_plain.py", "-n", "2"), 3),
        (("-k", "plain", "-p", "no:terminal"), 1),
        (("--help",), 1),
        (("--markers",), 1),
        (("--collect-only", "--strict-markers", "test_plain.py"), 1),
    ],
)
def test_jax_is_not_loaded_before_a_marked_test_runs(projects, words, processes):
    project = projects(conftest=WATCH, test_plain=PLAIN, test_marked=MARKED)
    run = project.pytest(*words, cold=True)
    loaded = [json.loads(path.read_text()) for path in project.folder.glob("loaded-*.json")]
    assert run.code == 0
    assert len(loaded) == processes
    # -k plain collects a marked test, whose settings are read: that needs the policy's reader, and still no arrays.
    # --markers shows the keywords that features add.
    allowed = {"export_core"} if {"-k", "--markers"} & {*words} else set()
    assert all(set(heavy) <= allowed for heavy in loaded)
