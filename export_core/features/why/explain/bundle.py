"""A folder that shows a failing cell to somebody who has only uv: a script, the artifact, the text of an issue."""

import contextlib
import json
import math
import re
import shlex
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path

import msgspec
import numpy as np

from export_core.artifact import read_bytes
from export_core.base.atomic import put_folder
from export_core.base.json_text import safe_json
from export_core.base.leaf_names import numbered
from export_core.base.text import for_markdown, plain_text, plural
from export_core.base.tolerances import FLOATS
from export_core.features.why.bisect.bisection_report import answer
from export_core.features.why.choice import Choice, WhyError
from export_core.features.why.explain.explanation import Explanation, FailureCause, InRelease
from export_core.features.why.reduce.failing_alike import KEPT_SHARE
from export_core.features.why.reduce.reduced_program import ModuleEditor, NotEditedError
from export_core.features.why.reduce.reduction import ReductionFolder, failing_call
from export_core.goldens.arrays import from_npz, to_npz
from export_core.goldens.store import ARTIFACT, INPUTS, MODULE_TEXT, OUTPUTS, check_output_folder
from export_core.judge import Result
from export_core.matrix import Verdict
from export_core.matrix.outcome import audit_problem
from export_core.matrix.result import release_name
from export_core.matrix.verdicts import VERDICTS
from export_core.numbers.elements import to_double
from export_core.numbers.leaf_paths import call_paths
from export_core.readers.build import python_for
from export_core.readers.cell import called_modules
from export_core.readers.environment import pythons, requirements
from export_core.releases import Release, ReleaseError
from export_core.releases.runtimes import runtime_of

PROGRAM = Path(__file__).with_name("bundle_script.py")
SCRIPT = "reproduce.py"
ISSUE = "issue.md"
MODULE = "module.mlirbc"  # The module of the call that fails, if the reader is another runtime.
CALL = "call.json"
EXPLANATION = "explanation.json"
_TRACKER = "https://github.com/jax-ml/jax/issues"


@dataclass(frozen=True)
class BundledProgram:
    """The program that the script of a bundle runs: an artifact and its inputs, as the bytes of their files.

    If the cell fails in its numbers, `outputs` are the expected outputs, and `measured` is the largest absolute
    difference from them, None if that is infinite. `text` is the module of a reduced program; empty for a golden's.
    """

    artifact: bytes
    inputs: bytes
    outputs: bytes = b""
    measured: float | None = None
    text: str = ""


def program_of(choice: Choice, result: Result) -> BundledProgram:
    """Return the program of a golden as it was exported, for a bundle.

    Raises `WhyError` if the program needs Python modules that a script with only jax lacks.
    """
    golden = choice.cell.golden
    if golden.manifest.options.register:
        names = ", ".join(golden.manifest.options.register)
        raise WhyError(
            f"--bundle: the golden registers {names}, which a script with only jax lacks. Reduce the cell first, and "
            "name the folder with --reduced."
        )
    artifact, inputs = golden.content(ARTIFACT), golden.content(INPUTS)
    if result.verdict is not Verdict.NUMERICS:  # of a cell that does not run, outputs say nothing
        return BundledProgram(artifact, inputs)
    return BundledProgram(artifact, inputs, golden.content(OUTPUTS), result.max_abs_error)


def bundled_program(
    choice: Choice, result: Result, reduced: ReductionFolder | None, notify: Callable[[str], None]
) -> BundledProgram:
    """Return the program for a bundle: the reduced program if there is a reduction, else the golden's program."""
    if reduced is None:
        return program_of(choice, result)
    with choice.environments(notify) as environments, ModuleEditor(environments.build(choice.newest)) as editor:
        return reduced_program(choice, result, reduced, editor)


def reduced_program(choice: Choice, result: Result, folder: ReductionFolder, editor: ModuleEditor) -> BundledProgram:
    """Return the program that `jaxexport reduce` wrote into a folder, for a bundle.

    The text of its module is made from the artifact, since the text in the folder may have been changed.

    Raises `WhyError` if the folder has no program, or that of another cell, or if its module cannot be written as text.
    """
    reduction, _, program = folder.read_of(str(choice.cell.key))
    try:
        text = program.edited(editor).text
    except NotEditedError as error:
        artifact = folder.path / ARTIFACT
        raise WhyError(f"{artifact}: cannot be written as text: {error}. Reduce the cell again.") from None
    read = BundledProgram(program.artifact, program.arrays, text=text.decode(errors="replace"))
    outputs = folder.path / OUTPUTS
    if result.verdict is not Verdict.NUMERICS or not outputs.exists():
        return read
    leaves = from_npz(outputs)
    measured = 1.0  # of outputs that are not floats
    if reduction.units is not None:
        import ml_dtypes  # it comes with jax, which NumPy's narrow floats need

        # The unit in the last place of the largest element of each output.
        steps = [
            float(ml_dtypes.finfo(array.dtype).eps) * float(np.abs(to_double(array)).max(initial=0.0))
            for array in (leaf.numpy() for leaf in leaves if leaf.dtype in FLOATS)
        ]
        measured = KEPT_SHARE * reduction.units * min(steps, default=0.0)
    return replace(read, outputs=to_npz(leaves), measured=measured if math.isfinite(measured) else None)


def check_new(folder: Path) -> None:
    """Raise `WhyError` if the folder of a bundle exists already."""
    if folder.exists() or folder.is_symlink():
        raise WhyError(f"--bundle {folder}: already exists. Name a new folder.")
    check_output_folder(folder, "--bundle")


def write_bundle(
    folder: Path, choice: Choice, result: Result, explanation: Explanation, program: BundledProgram
) -> list[Path]:
    """Write the folder of a bundle, all or nothing, and return the paths of its files.

    Raises `WhyError` if the folder exists or cannot be written, or if the artifact fails its audit.
    """
    check_new(folder)
    # Whoever gets the bundle runs it: also what a folder of somebody else has in place of a reduced program.
    artifact = read_bytes(program.artifact, "--bundle: its artifact")
    if problem := audit_problem(choice.cell.golden, choice.options.policy, artifact):
        raise WhyError(f"--bundle {folder}: not written, since its artifact must not be run: {problem}")
    contents = {
        **script_files(choice, result, program),
        EXPLANATION: safe_json(explanation, indent=2) + b"\n",
        ISSUE: issue(choice, result, explanation, program).encode(),
    }
    if program.text:
        contents[MODULE_TEXT] = program.text.encode()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        put_folder(folder, contents)
    except OSError as error:
        raise WhyError(f"--bundle {folder}: cannot be written: {error.strerror or error}.") from error
    return [folder / name for name in contents]


def script_files(choice: Choice, result: Result, program: BundledProgram) -> dict[str, bytes]:
    """Return the files of a bundle's script by name: the script itself, and the files that it reads.

    For jax, these include the artifact; for another runtime, a StableHLO module and the worker code that runs it.
    """
    cell, golden = choice.cell, choice.cell.golden
    reported = f"{VERDICTS[result.verdict].phrase} in {cell.reader.title}"
    facts: dict[str, object] = {"reported": reported, "measured": program.measured}
    artifact = read_bytes(program.artifact, "--bundle: its artifact")
    inputs, outputs, order = program.inputs, program.outputs, 0
    if cell.reader.runtime:
        runtime, check = runtime_of(cell.reader.runtime), failing_call(golden, result.message)
        if not program.text:  # the golden's own program, in which the failing call may not be the plain one
            order, inputs = check.vjp, golden.content(check.inputs or INPUTS)
            outputs = golden.content(check.outputs or OUTPUTS) if outputs else b""
        module, call = called_modules(artifact, golden.manifest)[order]
        variables = runtime.variables_of(cell.reader)
        facts |= {"worker": runtime.worker, "variables": variables, "call": msgspec.to_builtins(call)}
        contents = {runtime.worker: runtime.half.read_bytes(), MODULE: module}
    else:
        devices = artifact.envelope.nr_devices if artifact.envelope else 1
        facts |= {"devices": devices, "x64": bool(golden.manifest.flags.get("jax_enable_x64"))}
        contents = {ARTIFACT: program.artifact}
    if not program.text:  # a reduced program has no tree
        facts["named"] = list(starmap(numbered, enumerate(call_paths(golden, order)[1])))
    text = "\n".join(_metadata(choice)) + "\n" + PROGRAM.read_text(encoding="utf-8")
    contents = {SCRIPT: text.encode(), CALL: safe_json(facts, indent=2), **contents, INPUTS: inputs}
    return {**contents, OUTPUTS: outputs} if outputs else contents


def _metadata(choice: Choice) -> list[str]:
    """Return the metadata lines of the script, from which `uv run` builds an environment with the failing reader."""
    python, wanted = _python_and_packages(choice, choice.cell.reader)
    return [
        "# /// script",  # inline metadata: PEP 723
        f'# requires-python = "=={python}.*"',
        "# dependencies = [",
        *(f"#     {json.dumps(package)}," for package in wanted),
        "# ]",
        "# ///",
    ]


def _python_and_packages(choice: Choice, reader: Release) -> tuple[str, tuple[str, ...]]:
    calendar, sources = choice.plan.calendar, choice.plan.sources
    return python_for(pythons(reader, calendar, sources)), requirements(reader, calendar, sources)


def uv_lines(choice: Choice, rows: Sequence[InRelease]) -> list[str]:
    """Return the commands that run the script in the failing reader, and in the newest release that works, if any."""
    lines = [f"uv run {SCRIPT}"]
    for row in reversed(rows):
        if row.verdict is Verdict.PASS and row.reader.family == choice.cell.reader.family:
            with contextlib.suppress(ReleaseError):  # the results are of another calendar, or were changed
                reader = choice.release(row.reader.pair)
                python, wanted = _python_and_packages(choice, reader)
                packages = " ".join(f"--with {shlex.quote(package)}" for package in wanted)
                return [*lines, f"uv run --no-project --python {python} {packages} python {SCRIPT}   # works"]
    return lines


def issue(choice: Choice, result: Result, explanation: Explanation, program: BundledProgram) -> str:
    """Return the text of an issue about a failing cell, in the form of the issue template of JAX's repository."""
    reader, writer, platform = choice.cell.reader, choice.cell.golden.manifest.writer, choice.cell.platform
    python, _ = _python_and_packages(choice, reader)
    phrase = VERDICTS[result.verdict].phrase
    message = textwrap.indent(plain_text(result.message).strip() or str(result.verdict), "    ")
    needs = f"`{SCRIPT}` calls the artifact that is beside it, and needs only jax:"
    jax, info, tracker = f"jax {reader.jax}, ", f" `uv run {SCRIPT} --info` prints the rest.", _TRACKER
    if reader.runtime:
        runtime = runtime_of(reader.runtime)
        needs = f"`{SCRIPT}` calls its StableHLO, `{MODULE}`, by `{runtime.worker}`, and needs only {runtime.name}:"
        jax, info, tracker = "", "", runtime.issues
    commands = textwrap.indent("\n".join(uv_lines(choice, explanation.releases)), "    ")
    # The link to an issue that is known is this project's own; other causes quote what a library says.
    is_known = explanation.cause is FailureCause.UPSTREAM
    known = explanation.because if is_known else for_markdown(explanation.because)
    device = f" ({for_markdown(result.device)})" if result.device else ""
    return f"""\
<!-- Title: a serialized jax.export artifact of jaxlib {writer.jaxlib} {phrase} in {reader.title} -->
<!-- Look for the same issue first: {tracker} -->

### Description

A function exported by jax {writer.jax} with jaxlib {writer.jaxlib} {phrase} when it was read by \
{release_name(reader)} on {platform}, in stage {result.stage}:

{message}

{_promise_sentence(result)}

{needs}

{commands}

{_module_and_releases(explanation, program)}What is known: {known}

### System info (python version, jaxlib version, accelerator, etc.)

{jax}{reader.title}, CPython {python}, {platform}{device}.{info}
"""


def _module_and_releases(explanation: Explanation, program: BundledProgram) -> str:
    """Return a part of an issue's text: the reduced module, the results by release, and the result of a bisection."""
    rows = "\n".join(
        f"| {for_markdown(f'jax {row.reader.jax}, ' * bool(row.reader.jax) + row.reader.title)} | {row.reader.built} "
        f"| {row.verdict} |"
        for row in explanation.releases
    )
    what = "The artifact before it was reduced" if program.text else "The same artifact"
    text = f"{what}, by release:\n\n| reader | built | result |\n| - | - | - |\n{rows}\n\n"
    if module := plain_text(program.text):  # first: what is left out might have been in the middle of a fence
        fence = "`" * (1 + max((len(run) for run in re.findall("`{3,}", module)), default=2))  # longer than any in it
        text = f"Its module, reduced:\n\n{fence}mlir\n{module.strip()}\n{fence}\n\n{text}"
    if explanation.bisection and explanation.bisection.first_bad:
        pairs = answer(explanation.bisection)
        # Links are this project's own.
        lines = (f"- {label}: {line if label == 'commits' else for_markdown(line)}\n" for label, line in pairs)
        text += "".join(lines) + "\n"
    return text


def _promise_sentence(result: Result) -> str:
    """Return a sentence on whether JAX, or the maker of the runtime, promised that the cell works."""
    if not result.reader.runtime:
        window = f"({result.direction}, {plural(result.days, 'day')})"
        return (
            f"The reader is inside the window of JAX's promise {window}."
            if result.promised
            else "The reader is outside the window of JAX's promise, so this may be as it should be."
        )
    runtime, inside = runtime_of(result.reader.runtime), "inside" if result.promised else "outside"
    if runtime.promise is None:
        return f"{runtime.name} promises nothing about such artifacts."
    return f"The reader is {inside} the window of what is promised there ({runtime.promise.source})."
