"""`jaxexport explain`: why a cell fails, what to do, and a bundle that shows it to somebody else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from export_core.cli.help import command
from export_core.cli.output import echo, echo_json
from export_core.features.why.choosing import choosing_options, interrupted_with, notes

if TYPE_CHECKING:
    from export_core.features.why.choice import Choice
    from export_core.features.why.explain.explanation import Explanation


@command(
    "docs/how-to/explain-a-failure.md",
    "jaxexport explain",
    "jaxexport explain --case tests.test_model.test_attention --writer 0.12.0.1 --reader 0.9.2 --bundle report",
    section="Why",
)
@choosing_options
@click.option(
    "--bundle",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write a folder that shows the failure to somebody else: a script with the artifact in it, which needs jax "
    "alone, and the text of an issue.",
)
@click.option(
    "--reduced",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="What `jaxexport reduce` has left of this cell: it is shown, and the bundle has this program in place of the "
    "golden's.",
)
@click.option(
    "--bisect/--no-bisect",
    "is_bisected",
    default=None,
    help="Run `jaxexport bisect` first, and say since which release it fails. [default: with --bundle]",
)
@click.option(
    "--reference/--no-reference",
    "is_referred",
    default=True,
    help="Of different numbers: compute them in double precision too, and say whether the reader or the writer is "
    "nearer. [default: --reference]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema/explanation.schema.json).")
def explain(
    choice: Choice,
    bundle: Path | None,
    reduced: Path | None,
    is_bisected: bool | None,
    is_referred: bool,
    as_json: bool,
) -> None:
    """Say why a cell fails, what shows it, what to do now, and what would have shown it earlier.

    CELL is one as findings print it. A cell that no stored run has is run here, and so is a reference for numbers.

    Exit codes: 0 it is explained, 2 bad input, also a cell that works.
    """
    import msgspec

    from export_core.features.why.bisect.bisection import Wanted, bisect
    from export_core.features.why.explain.bundle import check_new, editor_for, program_of, reduced_program, write_bundle
    from export_core.features.why.explain.double_reference import reference_lines
    from export_core.features.why.explain.explanation import explain as explanation_of
    from export_core.features.why.explain.explanation import result_of
    from export_core.features.why.reduce.folder import ReductionFolder
    from export_core.matrix import Verdict

    if bundle:
        check_new(bundle)  # before anything is run
    notify = notes()
    result = result_of(choice, notify)
    left = ReductionFolder(reduced) if reduced else None
    bisection = None
    if is_bisected or (is_bisected is None and bundle):
        with interrupted_with("Interrupted: nothing was written. `--no-bisect` explains without running anything."):
            bisection = bisect(choice, Wanted(), notify)
    reference = []
    if is_referred and result.verdict is Verdict.NUMERICS:
        reference = reference_lines(choice, result, notify)
    explanation = explanation_of(choice, result, left, bisection, reference)
    written = []
    if bundle:
        if left:
            with editor_for(choice, notify) as editor:
                program = reduced_program(choice, result, left, editor)
        else:
            program = program_of(choice, result)
        written = write_bundle(bundle, choice, result, explanation, program)
    if as_json:
        echo_json(msgspec.to_builtins(explanation))
    else:
        _show(explanation)
        if bundle:
            echo(f"\nBundle: {', '.join(map(str, written))}")


def _show(explanation: Explanation) -> None:
    from export_core.base.layout import labelled_lines

    echo(explanation.sentence)
    echo(f"Cause: {explanation.cause}. {explanation.because}\n")
    echo("Evidence")
    for line in labelled_lines(explanation.evidence):
        echo(line)
    if len(explanation.releases) > 1:
        echo("\nThe same golden in other releases")
        for row in explanation.releases:
            echo(f"  {row.reader.built}  jaxlib {row.reader.jaxlib:<10} {row.verdict}")
    for title, texts in (("What to do", explanation.steps), ("What would have shown it earlier", explanation.earlier)):
        echo(f"\n{title}")
        for text in texts:
            echo(f"  - {text}")
