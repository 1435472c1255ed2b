"""Why jax.export refuses a case, what to do about it, and which lines of the user's source code cause it."""

import math
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import FrameSummary, extract_tb
from typing import Any

import jax

from export_core.export.case import NO_LOWERING, OUTPUTS_ADVICE
from export_core.export.errors import ExportError
from export_core.export.jaxprs import inner_jaxprs

_BAD_CAST = "std::bad_cast"  # All that jaxlib says of a callback with an array of a symbolic size.
_CALLBACK = re.compile(f"callback|which was not functionalized|{_BAD_CAST}")
_TARGET = re.compile(r'custom_call @"?([\w.$-]+)')
_ADVICE = {
    NO_LOWERING.pattern: (
        "Export it for the platforms that have one: platforms=['tpu'], for example. "
        + OUTPUTS_ADVICE.format(platform="the others")
    ),
    "Too many leaves for PyTreeDef": (
        "A mutable reference that the function closes over gives this message: make it inside, ref = jax.new_ref(x)."
    ),
    "No supported GPU devices found": (
        "A Triton kernel is lowered for one kind of GPU. Where there is none, name it around the call of "
        "export_golden: with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device="
        "jax.sharding.AbstractDevice(device_kind='NVIDIA H100 80GB HBM3', num_cores=132, platform='gpu')))."
    ),
    r"operand\(s\), but decomposition has": (
        "Before 0.12.0, jax cannot export a jax.lax.composite for several platforms, and no release can call one whose "
        "arguments have symbolic sizes (jax-ml/jax#40486, openxla/stablehlo#2779). Export it with fixed sizes, for one "
        "platform or with jax 0.12.0 or later; or call the function itself in the place of its composite."
    ),
    r"'_DimExpr' object cannot be interpreted|or a single integer, got '|not '_DimExpr'": (
        "A symbolic size is no Python number, which len, range, float and NumPy need. Write x.shape[0] in the place of "
        "len(x), jnp in the place of np, and jax.lax.fori_loop in the place of a loop over range(x.shape[0]). For "
        "other code, export with fixed sizes."
    ),
}
"""What to do about errors of jax, by a regular expression for the message: a missing lowering, a mutable reference, a
kernel without a device, a composite with arguments that jax adds, and a symbolic size used as a Python number."""


_COMPARED = re.compile(r"Symbolic dimension comparison '(.+?)' (>=|>|<=|<) '(.+?)' is inconclusive")
_CLIPPED = re.compile(r"incompatible shapes.*\b(?:min|max)\((?:\d+, )?([A-Za-z_]\w*)")
_DIVIDED = re.compile(
    r"(?:Cannot divide evenly .*remainder mod|incompatible shapes.*\bfloordiv)\((?:(\d+)\*)?([A-Za-z_]\w*), -? ?(\d+)\)"
)
"""Messages of jax about symbolic sizes: two that it cannot compare, and shapes that are equal for some sizes only."""
_LEAST = (
    "jax does not know that this size is large enough. If no call has a smaller one, say so in the marker: "
    'constraints=("{}",) beside symbolic_shapes. For a jax.ShapeDtypeStruct, pass it to jax.export.symbolic_shape.'
)
_MULTIPLE = (
    "The shapes fit only if {0} is a multiple of {1}. If no call has another size, write "
    '"{1}*{0}" in symbolic_shapes, in the place of "{0}".'
)


_NO_HANDLER = re.compile(
    r"No (?:registered implementation|FFI handler registered) for (?:untyped custom call to )?(\S+)"
)
"""The message of jaxlib for a custom call that nothing in the process implements."""


@contextmanager
def handlers_required(test: str, platform: str) -> Iterator[None]:
    """Raise `ExportError` if the `with` block runs a function with a custom call without a handler in this process."""
    try:
        yield
    except Exception as error:
        if missing := _NO_HANDLER.search(str(error)):
            raise ExportError(
                f"{test}: expected a handler of the custom call {missing[1]} on {platform}, where this function runs, "
                f"found none ({type(error).__name__}: {str(error).strip().splitlines()[0]}). Register it in a module "
                "(jax.ffi.register_ffi_target) that readers import too, register=('module',); or export the function "
                "for the platforms that have it and say why there are no outputs, platforms=('cuda',), "
                "without_outputs='why'."
            ) from error
        raise


def lost_kind(test: str, exported: Any) -> str:
    """Return the message for an argument or result that is unreduced by max or min; "" if there is none.

    An artifact records over which axes an array is unreduced, but not by which operation, so that a reader would
    compute the sum.
    """
    for side, field in (("argument", "_in_named_shardings"), ("result", "_out_named_shardings")):
        for number, sharding in enumerate(getattr(exported, field, ())):
            kind = getattr(getattr(sharding, "spec", None), "unreduced_kind", None)
            if kind is not None and kind.name != "sum":
                axes = ", ".join(map(str, sorted(sharding.spec.unreduced)))
                return (
                    f"{test}: {side} {number} is unreduced over {axes} by {kind.name}, which no artifact records: its "
                    f"reader would compute the sum. Reduce it inside the function, by jax.lax.p{kind.name} in a "
                    "jax.shard_map."
                )
    return ""


def unpromised_targets(message: str) -> list[str]:
    """Return the custom-call targets that an error of jax.export refuses, since JAX promises nothing for them."""
    return list(dict.fromkeys(_TARGET.findall(message))) if "no compatibility guarantees" in message else []


def is_callback_without_words(error: Exception, jaxpr: Callable[[], Any]) -> bool:
    """Return whether an error of jaxlib is due to a callback into Python, although its message does not say so.

    `jaxpr` returns the closed jaxpr of the function.
    """
    return _BAD_CAST in str(error) and any(equations(jaxpr(), _calls_back))


def refusal(test: str, error: Exception, jaxpr: Callable[[], Any]) -> str:
    """Return our message for an error of jax.export.

    `jaxpr` returns the closed jaxpr of the function. It is called only to find the calls that jax refuses.
    """
    text, version = str(error), jax.__version__
    if _CALLBACK.search(text):
        return (
            f"{test}: this function calls back into Python, and no artifact can hold a Python function: "
            f"{text.splitlines()[0].rstrip('.')}. Leave the call out when exporting, or export the parts around it.\n"
            f"{describe_callbacks(jaxpr())}"
        ).rstrip()
    targets = dict.fromkeys(_TARGET.findall(text))
    place = _place(error, targets, jaxpr)
    if unpromised_targets(text):
        allow = dict.fromkeys(targets, "why its behaviour is pinned")  # to be pasted, with a reason instead of this one
        return (
            f"{test}: this function makes custom calls for which jax {version} promises nothing: "
            f"{', '.join(targets)}. Avoid them when exporting, or allow each with a reason: allow={allow}.{place}"
        )
    place = place or _raised_at(error)
    advice = f"\n{known}" if (known := known_advice(text)) else ""
    refused = f"{test}: jax.export (jax {version}) refused this function: {type(error).__name__}: {text.rstrip()}"
    return f"{refused}{place}{advice}"


def known_advice(text: str) -> str:
    """Return what to do about an error of jax, by its message; "" if no advice is known for it."""
    known = next((advice for pattern, advice in _ADVICE.items() if re.search(pattern, text)), "")
    return known or _advice_about_sizes(text)


def _advice_about_sizes(text: str) -> str:
    """Return what to tell jax if it knows too little of symbolic sizes, by its message; "" for other messages."""
    if compared := _COMPARED.search(text):
        left, comparison, right = compared.groups()
        above = comparison in (">", "<=")  # one branch holds from the next size on
        least = str(int(right) + above) if right.lstrip("-").isdigit() else f"{right} + 1" if above else right
        return _LEAST.format(f"{left} >= {least}")
    if divided := _DIVIDED.search(text):
        times, name, divisor = int(divided[1] or 1), divided[2], int(divided[3])
        return _MULTIPLE.format(name, divisor // math.gcd(times, divisor))
    clipped = _CLIPPED.search(text)
    return _LEAST.format(f"{clipped[1]} >= 2") if clipped else ""


def _raised_at(error: Exception) -> str:
    """Return the line of source code outside jax that raised an error, to follow a message; empty if there is none."""
    # In an exported function, the innermost of these lines is the one whose operation jax refuses.
    frames = [frame for frame in _outside_jax(reversed(extract_tb(error.__traceback__))) if _OWN not in frame.filename]
    verb = "compared" if _COMPARED.search(str(error)) else "raised"
    return f"\nIt is {call_text(verb, frames)}" if frames else ""


def _place(error: Exception, targets: Container[str], jaxpr: Callable[[], Any]) -> str:
    """Return the line of the user's source code that jax refused, to follow a message; "" if it is not known.

    `targets` are the custom-call targets in the message.
    """
    # jax raises its error from one that has the traceback of the equation.
    if frames := _outside_jax(reversed(extract_tb(getattr(error.__cause__, "__traceback__", None)))):
        return f"\nIt is {call_text('made', frames)}"
    # A user's own call names its target; jax's primitives get theirs when they are lowered.
    calls = equations(jaxpr(), lambda equation: equation.params.get("target_name") in targets) if targets else ()
    return "".join(f"\n{line}" for line in dict.fromkeys(call_text(*call) for call in calls))


_SHOWN = 5  # The most calls that a message lists.
_FUNCTIONALIZE = (
    "Export jax.jit(lambda *args: checkify.checkify(f)(*args)[1]): the error beside the result has other codes in each "
    "process."
)
_EQUINOX = (
    "With the variable EQX_ON_ERROR=nan, set before each start of Python, a check of equinox gives NaN where it fails; "
    "throw=False leaves out those of the solvers that use it."
)
_HIDDEN = "No equation of the function makes the call: it comes from lowering a primitive, or from a derivative."


def describe_callbacks(jaxpr: Any) -> str:
    """Return a line for each call in a closed jaxpr that calls back into Python, followed by advice."""
    calls = list(equations(jaxpr, _calls_back))
    if not calls:  # the primitive is unknown, such as lineax's linear_solve
        return "\n".join([_HIDDEN, *([_EQUINOX] if "equinox" in sys.modules else [])])
    lines = list(dict.fromkeys(call_text(primitive, frames) for primitive, frames in calls))  # no duplicates, in order
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    # Other libraries are called through equinox too: it has made a call only where its own line is the innermost.
    files = {frames[0].filename for _, frames in calls if frames}
    if any(name == "check" for name, _ in calls):
        more.append(_FUNCTIONALIZE)
    if any(f"{os.sep}equinox{os.sep}" in file for file in files):
        more.append(_EQUINOX)
    return "\n".join([*lines[:_SHOWN], *more])


def _calls_back(equation: Any) -> bool:
    name = equation.primitive.name
    return "callback" in name or name in ("debug_print", "outside_call", "check")


_JAX = str(Path(jax.__file__).parent) + os.sep
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_OWN = str(Path(__file__).parents[1]) + os.sep

Call = tuple[str, list[FrameSummary]]
"""The primitive of an equation, and the lines of source outside jax that make it, the innermost first."""


def equations(jaxpr: Any, is_wanted: Callable[[Any], bool]) -> Iterator[Call]:
    """Yield the primitive of each equation that `is_wanted` accepts, and the lines of source code that made it.

    Equations of inner jaxprs are included. `jaxpr` is an open or closed jaxpr of any release since 0.4.24.
    """
    seen: set[int] = set()

    def inside(jaxpr: Any, outer: tuple[Any, ...]) -> Iterator[Call]:
        if id(jaxpr) in seen:
            return
        seen.add(id(jaxpr))
        for equation in jaxpr.eqns:
            # Since 0.9, a traceback ends where an inner jaxpr begins, and the outer equation has the rest.
            whole = (equation, *outer)
            if is_wanted(equation):
                yield equation.primitive.name, [frame for part in whole for frame in _frames(part)]
            for inner in inner_jaxprs(equation.params):
                yield from inside(inner, whole)

    yield from inside(getattr(jaxpr, "jaxpr", jaxpr), ())


def _frames(equation: Any) -> list[FrameSummary]:
    # jax has no public name for this. `frames` exists from 0.4.24 to 0.12; without it, no line is shown.
    frames = getattr(getattr(equation.source_info, "traceback", None), "frames", ())
    return _outside_jax(FrameSummary(frame.file_name, frame.line_num, frame.function_name) for frame in frames)


def _outside_jax(frames: Iterable[FrameSummary]) -> list[FrameSummary]:
    private = f"{os.sep}jax{os.sep}_src{os.sep}"
    return [frame for frame in frames if not frame.filename.startswith(_JAX) and private not in frame.filename]


def call_text(primitive: str, frames: list[FrameSummary]) -> str:
    """Return a call in words, such as ``debug_print at model.py:4 in step: jax.debug.print("{}", x)``.

    `frames` are the lines of source code that make the call, the innermost first. If a library makes the call, the line
    of the library is named too.
    """
    if not frames:
        return primitive
    # A file `<string>` is an `__init__` that dataclasses made.
    written = (frame for frame in frames if _library(frame.filename) is None and frame.filename != "<string>")
    user = next(written, frames[0])
    by = "" if user == frames[0] else f" ({_path(frames[0].filename)}:{frames[0].lineno})"
    place = f"{primitive}{by} at {_path(user.filename)}:{user.lineno} in {user.name.rpartition('.<locals>.')[2]}"
    return f"{place}: {user.line}" if user.line else place


def _path(file: str) -> Path:
    """Return the path of a file for messages: relative to the folder of libraries or to the working folder.

    The path is unchanged if the file is in neither folder.
    """
    path, root = Path(file), Path(_library(file) or Path.cwd())
    return path.relative_to(root) if path.is_relative_to(root) else path


def _library(file: str) -> str | None:
    """Return the folder of packages or of the standard library that contains a file; None for a user's own file."""
    # By name, since the folder in a compiled file is the one where it was compiled, which uv may have copied it from.
    if installed := re.match(r".*[/\\](site|dist)-packages(?=[/\\])", file):
        return installed[0]
    return next((folder for folder in (_STANDARD, _OWN) if file.startswith(folder)), None)
