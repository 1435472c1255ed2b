"""Why jax.export refuses a case, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import Any

from export_core.export.callbacks import describe_callbacks
from export_core.export.source_lines import call_text, equations, frames_of_error
from export_core.export.without_outputs import NO_LOWERING, OUTPUTS_ADVICE

_CALLBACK = re.compile(r"callback|which was not functionalized")
_TARGET = re.compile(r'custom_call @"?([\w.$-]+)')
_ADVICE = {
    NO_LOWERING.pattern: (
        "Export it for the platforms that have one: platforms=['tpu'], for example. "
        + OUTPUTS_ADVICE.format(platform="the others")
    ),
    "Too many leaves for PyTreeDef": (
        "A mutable reference that the function closes over gives this message: make it inside, ref = jax.new_ref(x)."
    ),
}
"""What to do, by what jax says: of a primitive or kernel without a lowering for a platform, and of a reference."""


def refusal(test: str, jax: str, error: Exception, jaxpr: Callable[[], Any]) -> str:
    """The message for an error of jax.export.

    Args:
        test: for the message.
        jax: the version of jax.
        error: what jax.export raised.
        jaxpr: gives the closed jaxpr of the function, where its calls have to be named.
    """
    text = str(error)
    if _CALLBACK.search(text):
        return (
            f"{test}: this function calls back into Python, and no artifact can hold a Python function: "
            f"{text.splitlines()[0].rstrip('.')}. Leave the call out when exporting, or export the parts around it.\n"
            f"{describe_callbacks(jaxpr())}"
        ).rstrip()
    targets = dict.fromkeys(_TARGET.findall(text))
    place = _place(error, targets, jaxpr)
    if targets and "no compatibility guarantees" in text:
        allow = dict.fromkeys(targets, "why its behaviour is pinned")  # to be pasted, with a reason instead of this one
        return (
            f"{test}: this function makes custom calls that jax {jax} does not promise to keep: {', '.join(targets)}. "
            f"Avoid them when exporting, or allow each with a reason: allow={allow}.{place}"
        )
    advice = next((f"\n{advice}" for pattern, advice in _ADVICE.items() if re.search(pattern, text)), "")
    return f"{test}: jax.export (jax {jax}) refused this function: {type(error).__name__}: {error}{place}{advice}"


def _place(error: Exception, targets: Container[str], jaxpr: Callable[[], Any]) -> str:
    """The line of the user's source that jax refused, to follow a message; empty where nobody knows it."""
    if frames := frames_of_error(error):
        return f"\nIt is {call_text('made', frames)}"
    # A call of one's own names its target; those of jax's primitives have theirs where they are lowered.
    calls = equations(jaxpr(), lambda equation: equation.params.get("target_name") in targets) if targets else ()
    return "".join(f"\n{line}" for line in dict.fromkeys(call_text(*call) for call in calls))
