"""The programs that run in the environment of another release, each in a process of its own: see rewriting/."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from export_core.base.phrases import signal_name
from export_core.base.untrusted import decode_json
from export_core.features.convert.errors import ConversionRefused
from export_core.readers.environment import Environment

SECONDS = 300.0
"""How long a program may take: a module of 30,000 operations takes a second."""

JOB, RESULT = "job.json", "result.json"


class ProgramResult(msgspec.Struct, frozen=True):
    """What a program says."""

    rewrites: tuple[str, ...] = ()
    by: str = ""
    refused: str = ""


def run_program(
    environment: Environment, program: Path, folder: Path, outputs: tuple[str, ...]
) -> tuple[ProgramResult, tuple[bytes, ...]]:
    """Run ``program FOLDER``, whose job is in the folder; return what it says and the files that it wrote.

    Raises:
        ConversionRefused: it refused the job, died, took too long, or wrote nothing that can be read.
    """
    jaxlib = f"jaxlib {environment.release.jaxlib}"
    try:
        ended = subprocess.run(
            [str(environment.python), "-B", str(program), str(folder)],  # -B: nothing is written beside the program
            env=dict(environment.variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConversionRefused(f"{jaxlib} was still at work on it after {SECONDS:g} s") from None
    except OSError as error:
        raise ConversionRefused(f"{jaxlib} cannot be started: {error}") from None
    try:
        result = decode_json((folder / RESULT).read_bytes(), ProgramResult)
        if result.refused:
            raise ConversionRefused(result.refused)
        return result, tuple((folder / name).read_bytes() for name in outputs)
    except OSError as error:
        stopped = f"died by {signal_name(-ended.returncode)}" if ended.returncode < 0 else _last_line(ended.stderr)
        raise ConversionRefused(f"{jaxlib} did not rewrite it: {stopped or error}") from None
    except msgspec.MsgspecError as error:
        raise ConversionRefused(f"{jaxlib} says nothing that can be read of it: {error}") from None


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
