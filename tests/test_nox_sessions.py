"""The nox sessions of a user's project, and the commands that they run."""

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
    """The function that returns the arguments of each session for `jaxexport`, with one golden and this policy."""
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


def test_only_sessions_outside_the_window_pass_the_unpromised_option(registered):
    ran = registered("platforms: [cpu, cuda]\ndeployed:\n- {name: serving, reader: tensorflow==2.21.0}\n")
    unpromised = {name for name, words in ran.items() if "--unpromised" in words}
    assert single("0.12.0.1") in unpromised, "216 days after the writer"
    assert single("0.9.2") in ran.keys() - unpromised
    served = {name for name in ran if "tensorflow==2.21.0" in name}
    assert served == {single("tensorflow==2.21.0")} - unpromised  # on the CPU alone


def test_sessions_follow_the_policys_readers_and_platforms(registered):
    assert single("0.8.1") in registered('readers: [window, "0.8.1"]')
    alone = registered('readers: ["0.12.0.1"]\nplatforms: {cpu: run, tpu: compile}')
    assert alone.keys() - {"compat_matrix", "backfill"} == {single("0.12.0.1"), single("0.12.0.1", "tpu")}
    words = alone[single("0.12.0.1", "tpu")]
    assert words[words.index("--platforms") + 1] == "tpu:compile"


def test_the_path_of_a_wheel_becomes_a_folder_name_without_slashes():
    assert nox_sessions._as_folder("dist/jaxlib-1.whl") == "dist-jaxlib-1.whl"


def test_an_invalid_policy_fails_only_the_sessions_of_the_plugin(tmp_path):
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
    assert text.count("windows") >= 2, "when the noxfile is read, and in the failing session"


def test_in_sessions_a_projects_file_does_not_shadow_a_library(tmp_path):
    (tmp_path / "click.py").write_text("import sys; sys.exit(0)")
    commands = []
    nox_sessions._jaxexport(SimpleNamespace(run=lambda *words, **_: commands.append(words)), "--version")
    done = subprocess.run(commands[0], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert version("pytest-jaxexport") in done.stdout
