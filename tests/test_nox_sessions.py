"""The nox sessions of a project: what they run."""

import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace

import nox
import pytest
from making import manifest, write_golden

from export_core.goldens import GoldenStore
from pytest_jaxexport import nox_sessions


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """The words that each session gives `jaxexport`, by its name, in a project with one golden and this policy."""
    monkeypatch.chdir(tmp_path)
    write_golden(GoldenStore(tmp_path / "golden"), manifest("t.f", "0.9.2"))

    def register(policy: str) -> dict[str, tuple[str, ...]]:
        (tmp_path / "export_compat.yaml").write_text(policy)
        ran: dict[str, tuple[str, ...]] = {}

        def session(function=None, *, name="", **_):
            def define(function):
                called = name or function.__name__
                monkeypatch.setattr(nox_sessions, "_jaxexport", lambda _, *words: ran.__setitem__(called, words))
                function(SimpleNamespace(posargs=[]))
                return function

            return define(function) if function else define

        monkeypatch.setattr(nox, "session", session)
        nox_sessions.register()
        return ran

    return register


def single(reader: str, platform: str = "cpu") -> str:
    return f"compat_matrix(reader={reader!r}, platform={platform!r})"


def test_a_session_of_a_reader_outside_says_that_it_is_meant(registered):
    ran = registered("platforms: [cpu, cuda]\ndeployed:\n- {name: serving, reader: tensorflow==2.21.0}\n")
    meant = {name for name, words in ran.items() if "--unpromised" in words}
    assert single("0.12.0.1") in meant, "216 days after the writer"
    assert single("0.9.2") in ran.keys() - meant
    served = {name for name in ran if "tensorflow==2.21.0" in name}
    assert served == {single("tensorflow==2.21.0")} - meant  # on the CPU alone


def test_the_sessions_are_those_of_the_policys_readers_and_platforms(registered):
    assert single("0.8.1") in registered('readers: [window, "0.8.1"]')
    alone = registered('readers: ["0.12.0.1"]\nplatforms: {cpu: run, tpu: compile}')
    assert alone.keys() - {"compat_matrix", "backfill"} == {single("0.12.0.1"), single("0.12.0.1", "tpu")}
    words = alone[single("0.12.0.1", "tpu")]
    assert words[words.index("--platforms") + 1] == "tpu:compile"


def test_a_session_of_a_reader_has_a_folder_of_its_own():
    assert nox_sessions._as_folder("dist/jaxlib-1.whl") == "dist-jaxlib-1.whl"


def test_with_a_broken_policy_only_these_sessions_fail(tmp_path):
    (tmp_path / "export_compat.yaml").write_text("windows: 3\n")
    (tmp_path / "noxfile.py").write_text(
        "import nox\nfrom pytest_jaxexport.nox_sessions import register\nregister()\n"
        "@nox.session(venv_backend='none')\ndef own(session):\n    session.log('the project is fine')\n"
    )

    def ended(name: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "nox", "-s", name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    code, text = ended("own")
    assert (code, "the project is fine" in text) == (0, True)
    code, text = ended("compat_matrix")
    assert code == 1
    assert text.count("windows") >= 2, "it is said when the noxfile is read, and where the session fails"


def test_a_file_of_the_project_takes_the_place_of_no_library(tmp_path):
    (tmp_path / "click.py").write_text("import sys; sys.exit(0)")
    commands = []
    nox_sessions._jaxexport(SimpleNamespace(run=lambda *words, **_: commands.append(words)), "--version")
    done = subprocess.run(commands[0], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert version("pytest-jaxexport") in done.stdout
