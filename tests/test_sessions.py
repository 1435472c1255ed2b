"""The nox sessions of a project: what they run."""

import subprocess
from importlib.metadata import version
from types import SimpleNamespace

import nox
from making import manifest, write_golden

from export_core.goldens import GoldenStore
from pytest_jaxexport import sessions


def test_a_session_of_a_reader_outside_says_that_it_is_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_golden(GoldenStore(tmp_path / "golden"), manifest("t.f", "0.9.2"))
    (tmp_path / "export_compat.yaml").write_text(
        "platforms: [cpu, cuda]\ndeployed:\n- {name: serving, reader: tensorflow==2.21.0}\n"
    )
    ran: dict[str, tuple[str, ...]] = {}

    def session(function=None, *, name="", **_):
        def define(function):
            ran[name] = ()
            monkeypatch.setattr(sessions, "_jaxexport", lambda _, *words: ran.__setitem__(name, words))
            if name:
                function(type("Session", (), {"posargs": []})())
            return function

        return define(function) if function else define

    monkeypatch.setattr(nox, "session", session)
    sessions.register()
    meant = {name for name, words in ran.items() if "--unpromised" in words}
    assert "compat_matrix(reader='0.12.0.1', platform='cpu')" in meant, "216 days after the writer"
    assert "compat_matrix(reader='0.9.2', platform='cpu')" in ran.keys() - meant
    served = {name for name in ran if name and "tensorflow==2.21.0" in name}
    assert served == {"compat_matrix(reader='tensorflow==2.21.0', platform='cpu')"} - meant  # on the CPU alone


def test_a_file_of_the_project_takes_the_place_of_no_library(tmp_path):
    (tmp_path / "click.py").write_text("import sys; sys.exit(0)")
    commands = []
    sessions._jaxexport(SimpleNamespace(run=lambda *words, **_: commands.append(words)), "--version")
    done = subprocess.run(commands[0], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert version("pytest-jaxexport") in done.stdout
