"""The files of share/: the man page and the completion of three shells, in real shells where they are here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.shared_files import COMPLETIONS, MAN_PAGE, commands, escaped, jaxexport, shared_files

SHARE = Path(__file__).parents[1] / "share"
BASH = f"""
source {SHARE / COMPLETIONS["bash"]}
COMP_WORDS=(jaxexport matrix --only p) COMP_CWORD=3
_jaxexport_completion jaxexport 2> /dev/null  # compopt needs a terminal
echo "${{COMPREPLY[@]}}"
"""
# A zsh in a terminal of its own, in which somebody types a part of a command and the tabulator.
ZSH = rf"""
zmodload zsh/zpty
zpty shell "TERM=dumb zsh -f -i"
zpty -w shell "PS1= ; fpath=({(SHARE / COMPLETIONS["zsh"]).parent} \$fpath)"
zpty -w shell "autoload -Uz compinit; compinit -u -D; print ready"
zpty -r -m shell out "*ready*"
zpty -w -n shell $'jaxexport mat\t'
zpty -r -m shell out "*matrix*"
print -r -- "$out"
"""


def run(*words: str | Path) -> str:
    variables = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_committed_files_are_what_the_commands_say():
    committed = {path.relative_to(SHARE): path.read_text() for path in SHARE.rglob("*") if path.is_file()}
    assert committed == shared_files(), "run `python -m tools.shared_files`"


def test_the_man_page_has_every_command_and_option():
    text = (SHARE / MAN_PAGE).read_text()
    for path, command in commands(jaxexport):
        assert f".SS jaxexport {escaped(path)}\n" in text
        _, _, own = text.partition(f".SS jaxexport {escaped(path)}\n")
        for option in command.params:
            if option.param_type_name == "option" and not getattr(option, "hidden", False):
                assert escaped(option.opts[-1]) in own.partition("\n.S")[0]


@pytest.mark.skipif(not shutil.which("man"), reason="needs man")
def test_man_shows_the_page_without_a_warning():
    done = subprocess.run(["man", "--warnings", "-l", SHARE / MAN_PAGE], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "jaxexport goldens add [OPTIONS]" in done.stdout


def test_bash_completes_a_value():
    assert run("bash", "--norc", "-c", BASH).split() == ["promised"]


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_completes_a_command():
    assert "jaxexport matrix" in run("zsh", "-f", "-c", ZSH)
