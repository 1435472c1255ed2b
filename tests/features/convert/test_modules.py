"""The process that rewrites modules: however it ends, the conversion is refused without a traceback."""

import re

import pytest
from stored_artifacts import DATA

from export_core.artifact import read
from export_core.features.convert import programs
from export_core.features.convert.convert import ModuleJob
from export_core.features.convert.errors import ConversionRefused
from export_core.features.convert.programs import EXPORT_AGAIN, ModuleRewriter, run_program
from export_core.readers.environment import this_interpreter
from export_core.readers.errors import EnvironmentFailed
from export_core.releases import load_calendar

JOB = ModuleJob((b"ML\xefR",), "1.11.0", shardy=True)


@pytest.fixture
def rewriter(monkeypatch, tmp_path, here):
    """The function that makes a rewriter of modules from a program, in this interpreter."""

    def made(program: str) -> ModuleRewriter:
        path = tmp_path / "program.py"
        path.write_text(f"import os, sys, time\nfolder = sys.argv[1]\n{program}\n")
        monkeypatch.setattr(programs, "REWRITE", path)
        monkeypatch.setattr(ModuleRewriter, "_newest", lambda self: this_interpreter(here))
        return ModuleRewriter(load_calendar(), lambda text: None)

    return made


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("os.kill(os.getpid(), 11)", "died by signal 11"),
        ("raise ValueError('no such operation')", "no such operation"),
        ("sys.exit(0)", "did not rewrite it"),
        ("open(folder + '/result.json', 'w').write('{')", "wrote a result that cannot be read"),
        ("open(folder + '/result.json', 'w').write('{\"refused\": \"an operation\"}')", "an operation"),
        ("open(folder + '/result.json', 'w').write('{}')", "did not rewrite it"),
        ("time.sleep(60)", "did not rewrite or export the artifact within 0.1 s"),
    ],
)
def test_a_conversion_is_refused_if_its_rewriting_process_fails(rewriter, monkeypatch, program, reason):
    monkeypatch.setattr(programs, "SECONDS", 0.1 if "sleep" in program else 60.0)
    with pytest.raises(ConversionRefused, match=reason):
        rewriter(program)(JOB)


def test_a_rewriter_that_cannot_be_installed_is_an_environment_error(monkeypatch):
    def fails(self):
        raise EnvironmentFailed("no network")

    monkeypatch.setattr(ModuleRewriter, "_newest", fails)
    newest = load_calendar().newest()
    expected = f"the module has to be rewritten by jaxlib {newest}, whose environment could not be built: no network"
    with pytest.raises(EnvironmentFailed, match=re.escape(expected)):
        ModuleRewriter(load_calendar(), lambda text: None)(JOB)


COPIES = """
from pathlib import Path
for path in Path(folder).glob("*.bc"):
    path.with_suffix(".out").write_bytes(path.read_bytes()[::-1])
Path(folder, "result.json").write_text('{"by": "1.2.3", "rewrites": ["a"]}')
"""


def test_rewritten_modules_come_back_in_order(rewriter):
    done = rewriter(COPIES)(ModuleJob((b"ab", b"cd"), "1.11.0", shardy=True))
    assert (done.modules, done.by, done.rewrites) == ((b"ba", b"dc"), "1.2.3", ("a",))


def test_a_rewritten_module_names_no_source_file_of_this_package(monkeypatch, here):
    """A reader's error would point at such a file, and the deployed module would have a path of this machine."""
    monkeypatch.setattr(ModuleRewriter, "_newest", lambda self: this_interpreter(here))
    cholesky = read(DATA / "0.9.2" / "cholesky.jaxexport")
    calls = tuple(call.target for call in cholesky.custom_calls)
    job = ModuleJob((cholesky.module.serialized(),), "1.13.7", shardy=True, replace=calls, platform="tpu")
    (code,) = ModuleRewriter(load_calendar(), lambda text: None)(job).modules
    inputs = {"original.jaxexport": (DATA / "0.9.2" / "mlp.jaxexport").read_bytes()}
    again = run_program(
        this_interpreter(here), EXPORT_AGAIN, {"vjp_order": 1, "x64": False}, inputs, ("again.jaxexport",)
    )
    for data in (code, *again.modules):
        assert b"rewriting" not in data
        assert b"export_core" not in data
