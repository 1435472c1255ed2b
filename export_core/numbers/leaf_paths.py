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

    For a derivative of the order `order`, the path of a cotangent or of a result says what it belongs to.
    """
    arguments, results = leaf_paths(golden.manifest, golden.read_artifact())
    for _ in range(order):
        arguments, results = of_derivative(arguments, results)
    return arguments, results


def output_name(call: str, number: int) -> str:
    """Return the name of an output of a call in records: ``vjp1/0``, and ``0`` of the plain one."""
    return f"{call}/{number}".removeprefix("/")


def call_in_words(call: str) -> str:
    """Return the name of a further call as messages have it: ``call1 (exported.also)``, ``vjp1``."""
    return f"{call} (exported.also)" if re.fullmatch(r"call\d+", call) else call


def output_paths(golden: Golden) -> dict[str, str]:
    """Return the path of each output of a golden's calls in the trees of its function, by the output's name.

    Raises `ArtifactError` or `GoldenError` if its artifact cannot be read.
    """
    return {
        output_name(check.name, number): path
        for check in golden.calls.values()
        for number, path in enumerate(call_paths(golden, check.vjp)[1])
    }


def outputs_named(golden: Golden, check: Check, *, with_call: bool = False) -> Named:
    """Return the function that names the outputs of a call in messages: by number, and by path where that is known.

    `with_call` adds the name of the call: ``vjp1/0``. The artifact is read when the first name is asked for. If it
    cannot be read, names are numbers alone.
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
