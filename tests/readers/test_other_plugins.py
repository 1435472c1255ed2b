"""Warnings about a plugin of another release than jaxlib, which jax loads and whose FFI calls fail."""

import json
from importlib.metadata import version

from making import release

from export_core.readers import environment as environments
from export_core.readers.build import Built
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.readers.worker.jaxlib_worker import other_plugins
from export_core.releases import load_calendar


def test_cuda_plugins_of_a_release_other_than_jaxlibs_are_found(tmp_path, monkeypatch):
    own = version("jaxlib")
    for name in ("jax_cuda12_plugin-0.1.2", "jax_cuda12_pjrt-0.1.1", f"jax_cuda13_pjrt-{own}", "jax_foo-0.1"):
        (tmp_path / f"{name}.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert other_plugins() == [
        f"jax-cuda12-pjrt 0.1.1 beside jaxlib {own}",
        f"jax-cuda12-plugin 0.1.2 beside jaxlib {own}",
    ]


def test_a_build_names_a_plugin_of_another_release(tmp_path, monkeypatch):
    for name in ("jaxlib-0.12.0.1", "jax_cuda12_plugin-0.11.2", "jax_cuda12_pjrt-0.12.0.1"):
        info = tmp_path / "lib" / "python3.12" / "site-packages" / f"{name}.dist-info"
        info.mkdir(parents=True)
        (info / "RECORD").touch()
    built = Built(tmp_path, json.dumps(["0.12.0.1", "0.12.0.1"]), "hash")
    monkeypatch.setattr(environments, "build", lambda *_, **__: built)
    notes = []
    with ReaderEnvironments(load_calendar(), notify=notes.append) as readers:
        readers.build(Placement(release("0.12.0.1")))
    (note,) = (text for text in notes if "plugin" in text)
    assert note.startswith("jaxlib 0.12.0.1 has jax-cuda12-plugin 0.11.2, of another release than jaxlib: jax uses it")
    assert "each FFI call fails" in note
