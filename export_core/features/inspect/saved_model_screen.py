"""The screen of `inspect` about a SavedModel: who wrote it, and each function that jax exported into it."""

from collections.abc import Iterator, Sequence

from export_core.artifact.saved_model import XlaCallModule

PROMISED = (
    "by jax2tf's README to TensorFlow built up to 180 days after the jaxlib that wrote it, and 30 days before it",
    "which jaxlib that is, a SavedModel does not say",
)


def about_call(call: XlaCallModule, takes: str, returns: str, inside: str) -> Iterator[str]:
    """Yield the lines about one function of a SavedModel.

    `takes`, `returns` and `inside` are texts on the function's arguments, results and module.
    """
    yield f"{call.title}: {inside}"
    platforms = ", ".join(call.platforms) or "any platform"
    not_on_cpu = "" if call.runs_on_cpu else "; TensorFlow refuses to run it on a CPU"
    yield f"  version {call.version}, for {platforms}{not_on_cpu}"
    yield f"  takes {takes}; returns {returns}"
    yield from _rest("switched off by the exporter", call.disabled_checks)
    yield from _rest("dim_args_spec", call.dim_args_spec)
    yield from _rest("calls the TensorFlow functions", call.function_list)
    yield from _rest("attributes that are not known here", call.unknown)
    if call.has_token_input_output:
        yield "  main takes and returns tokens"


def _rest(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"  {what}: {', '.join(names)}"
