"""The paths of a golden's arguments and results in the trees of its function, and the names of its outputs."""

import functools
import re
from collections.abc import Sequence

from export_core.artifact import Artifact
from export_core.artifact.errors import ArtifactError
from export_core.base.leaf_names import Named, numbered, of_derivative, path_at
from export_core.goldens import Check, Golden, GoldenError, Manifest


def leaf_paths(manifest: Manifest, artifact: Artifact) -> tuple[list[str], list[str]]:
    """Return the path of each flat argument and of each flat result, such as `args[0]['w']` and `result['loss']`."""
    if flattened := manifest.flattened:
        return list(flattened.inputs), list(flattened.outputs)
    if (envelope := artifact.envelope) is None:
        return [], []
    return envelope.argument_paths, envelope.result_paths


def call_paths(golden: Golden, order: int) -> tuple[list[str], list[str]]:
    """Return the path of each flat argument and of each flat result of a call, in the trees of the function.

    For a derivative of the order `order`, the path of a cotangent names its result, and the path of a result its
    argument.
    """
    arguments, results = leaf_paths(golden.manifest, golden.read_artifact())
    for _ in range(order):
        arguments, results = of_derivative(arguments, results)
    return arguments, results


def output_name(call: str, number: int) -> str:
    """Return the name of a call's output in records, such as ``vjp1/0``, or ``0`` for the plain call."""
    return f"{call}/{number}".removeprefix("/")


def call_in_words(call: str) -> str:
    """Return the name of a further call for messages, such as ``call1 (exported.also)`` or ``vjp1``."""
    return f"{call} (exported.also)" if re.fullmatch(r"call\d+", call) else call


def output_paths(golden: Golden) -> dict[str, str]:
    """Return, by output name, the path of each output of a golden's calls in the trees of the function.

    Raises `ArtifactError` or `GoldenError` if the artifact of the golden cannot be read.
    """
    return {
        output_name(check.name, number): path
        for check in golden.calls.values()
        for number, path in enumerate(call_paths(golden, check.vjp)[1])
    }


def outputs_named(golden: Golden, check: Check, *, with_call: bool = False) -> Named:
    """Return a function that returns the name of a call's output for messages: its number and, if known, its path.

    If `with_call` is true, the name includes the call: ``vjp1/0``. The first call of the function reads the artifact.
    If that fails, names have no paths.
    """

    @functools.cache
    def paths() -> Sequence[str]:
        try:
            return call_paths(golden, check.vjp)[1]
        except (ArtifactError, GoldenError):  # its cells report it
            return ()

    def named(number: int) -> str:
        return numbered(output_name(check.name if with_call else "", number), path_at(paths(), number))

    return named
