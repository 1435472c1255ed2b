"""The checks of a golden in addition to its plain call: derivatives, calls of other shapes or meshes, refusals."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from msgspec import structs

from export_core.base.patterns import problem_of_pattern
from export_core.base.text import few, plural
from export_core.export import api, meshes
from export_core.export.abstract_inputs import has_structs, take_inputs, with_values
from export_core.export.arguments import (
    Arguments,
    array_from,
    leaf_from,
    plain,
    require_kept,
    rounded_dtypes,
    stored,
    tree_text,
    whole,
)
from export_core.export.errors import ExportError
from export_core.export.produce import ProducedGolden, in_domain, results, settings_of_export
from export_core.export.refusals import handlers_required
from export_core.goldens import Check, Golden, Leaf
from export_core.goldens.arrays import from_npz, nothing_to_compare, to_npz
from export_core.goldens.store import ARTIFACT, OUTPUTS, sha256

NO_VJP = "No VJP is available"
WRONG_DEVICES = r"(exported|lowered) for \d+ devices|Length of device assignment \d+"
MISMATCH = "(?i)mismatch|do not match|incompatible"
"""Regular expressions for the messages of jax's refusals, in all releases.

They are about a missing derivative, a wrong number of devices, and wrong shapes or dtypes. If a mesh has explicit axes,
jax refuses a wrong number of devices while it traces the call, with a different message: the second part of
`WRONG_DEVICES`.
"""


@dataclass(frozen=True)
class ExtraCall:
    """A further call of the exported function, in addition to the call that `export_golden` makes.

    `refused` is a regular expression for the message if the call must be refused, else None. `place` says where the
    user makes the call, such as `also() at test_a.py:16`; empty if that is not known.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    refused: str | None = None
    place: str = ""


class GoldenChecks:
    """The checks of a golden in addition to its plain call, with their results in this process.

    A check is run when it is added, inside the context managers of jax that are active then. The checks for which the
    options of the case ask are run by `__init__`. Refusals are tried by `whole`, in the way of a reader: with the flags
    of the export, and without a mesh.
    """

    def __init__(self, produced: ProducedGolden, same: Golden | None = None) -> None:
        """Add the checks for which the options of the case ask.

        The artifact's custom calls must have been audited already, since `whole` compiles the artifact.

        Args:
            produced: the golden without its checks.
            same: a stored golden of the same call by this writer, whose artifact has the same bytes. Derivatives,
                refusals and the shardings of results are taken from this golden, since computing them again takes
                longer than the rest of a test. If it is None, all are computed.
        """
        self.produced = produced
        self._same = same
        self._files: dict[str, bytes] = {}
        self._outside = list(produced.outside)
        self._rounded = produced.rounded
        if same is None:
            self._derivatives = _derivative_checks(produced, self._files)
        else:
            self._derivatives = [check for check in same.manifest.checks if check.vjp]
            for name in (name for check in self._derivatives for name in (check.inputs, check.outputs) if name):
                self._files[name] = same.content(name)
        self._calls: list[Check] = []
        self._meshes = _mesh_checks(produced)
        self._refusals: list[tuple[Check, Arguments]] = []
        self._several = produced.exported.nr_devices > 1 and produced.runs_here
        self._arguments: dict[str, Arguments] = {}  # Of further calls over several devices, by name.
        for check in (*self._derivatives, *self._meshes):
            # A missing derivative is refused before any platform is looked at; others need a call that could run.
            if check.refused is not None and check.inputs is None and (check.vjp or produced.runs_here):
                self._refusals.append((check, produced.arguments))

    def add(self, call: ExtraCall) -> None:
        """Add a further call.

        Raises `ExportError` for arguments that do not fit, and for a pattern that cannot be used.
        """
        number = len(self._calls) + 1
        if call.refused is not None and (problem := problem_of_pattern(call.refused)):
            raise ExportError(f"{self.produced.case.test}: call {number}: refused(match=…): {problem}")
        if call.refused is None:  # no reader runs a call that must be refused, whatever numbers it passes
            self._rounded |= rounded_dtypes(jax.tree_util.tree_leaves((call.args, call.kwargs)))
        check, arguments = _call_check(self.produced, call, number, self._files, self._outside)
        self._calls.append(check)
        if self._several:
            self._arguments[check.name] = arguments
        if check.refused is not None and self.produced.runs_here:
            self._refusals.append((check, arguments))

    def whole(self) -> ProducedGolden:
        """Return the golden with all checks that were added.

        Raises `ExportError` if a call that must be refused is not refused, or is refused with a different message.
        """
        produced, files = self.produced, self._files
        with settings_of_export(produced):
            for check, arguments in self._refusals:
                if self._tried(check) is None:
                    _require_refusal(produced, check, arguments)
            out_shardings = self._same.manifest.out_shardings if self._same else ()
            if self._several and not out_shardings:
                out_shardings = _out_shardings(produced)
            checks = [self._with_shardings(check) for check in (*self._derivatives, *self._calls, *self._meshes)]
        hashes = {name: sha256(content) for name, content in files.items()}
        manifest = structs.replace(
            produced.manifest,
            checks=tuple(checks),
            files={**produced.manifest.files, **hashes},
            out_shardings=out_shardings,
        )
        files = {**produced.files, **files}
        outside = tuple(self._outside)
        return replace(produced, manifest=manifest, files=files, outside=outside, rounded=self._rounded)

    def _tried(self, check: Check) -> Check | None:
        """Return the check of the stored golden that equals this check in all but results; None if there is none."""
        if self._same is None:
            return None
        for tried in self._same.manifest.checks:
            is_same = structs.replace(tried, outputs=check.outputs, out_shardings=check.out_shardings) == check
            if is_same and (check.inputs is None or self._same.content(check.inputs) == self._files[check.inputs]):
                return tried
        return None

    def _with_shardings(self, check: Check) -> Check:
        """Return a check with the shardings of its results added if the artifact is for several devices."""
        produced = self.produced
        if not self._several or check.outputs is None:
            return check
        if (tried := self._tried(check)) and tried.out_shardings:
            return structs.replace(check, out_shardings=tried.out_shardings)
        exported, mesh = produced.exported, produced.manifest.options.mesh
        if check.vjp:
            exported = api.derivative(produced.files[ARTIFACT], check.vjp)
            leaves = [array_from(leaf) for leaf in from_npz(self._files[f"{check.name}.inputs.npz"])]
            arguments = Arguments(*jax.tree_util.tree_unflatten(exported.in_tree, leaves))
        elif check.name in self._arguments:
            arguments = self._arguments[check.name]
        else:  # the plain call on another mesh
            other = meshes.concrete_mesh(produced.case.test, check.mesh)
            arguments = meshes.place_on(produced.arguments.copy(), other, [None] * len(produced.arguments.flat()))
        return structs.replace(check, out_shardings=_shardings_of(produced, exported, arguments, check.mesh or mesh))


def add_checks(produced: ProducedGolden, calls: Sequence[ExtraCall]) -> ProducedGolden:
    """Return the golden with the checks that its options ask for and these further calls.

    Raises `ExportError` as `GoldenChecks` does.
    """
    checks = GoldenChecks(produced)
    for call in calls:
        checks.add(call)
    return checks.whole()


def require_values(produced: ProducedGolden, reason: str | None = None) -> ProducedGolden:
    """Return the golden; if its outputs show nothing about the function, its options then contain the reason.

    The outputs of derivatives do not count, since a function that only returns NaN may have derivatives that are
    numbers. Outputs that are not finite do not count either if the inputs were made by rule, since nobody chose these
    inputs.

    Args:
        produced: the golden, with its checks.
        reason: the reason to store outputs that show nothing; None if no reason was given.

    Raises:
        ExportError: All outputs show nothing, or some for made inputs are not finite, and no reason was given.
    """
    if produced.outputs is None:
        return produced
    if produced.outside and not reason:
        raise ExportError(
            f"{produced.case.test}: expected finite numbers, found NaN or infinities in the outputs of "
            f"{' and '.join(produced.outside)} for all inputs that were made for jax.ShapeDtypeStruct: normally "
            "distributed, positive, and positive definite ones. Pass arrays for which the function is defined, to this "
            "call or to exported.also(…): inputs=(array, ...), one for each jax.ShapeDtypeStruct. If NaN or infinities "
            "are what the function should return, pass inputs for which it returns them."
        )
    checks = produced.manifest.checks
    files = [OUTPUTS, *(check.outputs for check in checks if check.outputs and not check.vjp)]
    problem = nothing_to_compare([leaf for file in files for leaf in from_npz(produced.files[file])])
    if not problem:
        return produced
    if not reason:
        raise ExportError(
            f"{produced.case.test}: expected outputs that show what the function computes, but {problem}. Give "
            "arguments for which it computes numbers, or a reason to store it anyway: "
            "nothing_to_compare='why'."
        )
    options = structs.replace(produced.manifest.options, nothing_to_compare=reason)
    return replace(produced, manifest=structs.replace(produced.manifest, options=options))


def _derivative_checks(produced: ProducedGolden, files: dict[str, bytes]) -> list[Check]:
    """Return a check for each order of derivative that the artifact holds, and a check that the next order is refused.

    The files with inputs and outputs of the checks are added to `files`.
    """
    order = produced.case.options.vjp_order
    if not order:
        return []
    arguments = produced.arguments
    # jax.numpy has no float0: such arrays remain NumPy arrays.
    values = [
        value if getattr(value, "dtype", None) == jax.dtypes.float0 else jax.numpy.asarray(value)
        for value in arguments.flat()
    ]

    def flat(*leaves: Any) -> tuple[Any, ...]:
        call = arguments.with_flat(leaves)
        return tuple(jax.tree_util.tree_leaves(produced.case.function(*call.args, **call.kwargs)))

    case = produced.case
    with api.in_mesh(case.context_mesh), handlers_required(case.test, api.platform_name()):
        calls = derivatives(flat, values, order, run=produced.outputs is not None)
        checks = [
            _stored_check(f"vjp{number}", map(leaf_from, inputs), outputs and map(leaf_from, outputs), files, number)
            for number, (inputs, outputs) in enumerate(calls, 1)
        ]
    return [*checks, Check(f"vjp{order + 1}", vjp=order + 1, refused=NO_VJP)]


def _passed_otherwise(first: Arguments, further: Arguments) -> str:
    """Return how a further call passes its arguments unlike the first: by position, by name, or as other trees."""
    missing = ", ".join(name for name in first.kwargs if name not in further.kwargs)
    added = ", ".join(name for name in further.kwargs if name not in first.kwargs)
    if missing and not added and len(further.args) > len(first.args):
        return f"it passes {missing} by position, and the first call by name. Pass it by name too."
    if added and not missing and len(further.args) < len(first.args):
        return f"it passes {added} by name, and the first call by position. Pass it by position too."
    expected, actual = (tree_text(jax.tree_util.tree_structure(call.dynamic)) for call in (first, further))
    return f"expected {expected}, found {actual}."


def _call_check(
    produced: ProducedGolden, call: ExtraCall, number: int, files: dict[str, bytes], outside: list[str]
) -> tuple[Check, Arguments]:
    values, kwargs = take_inputs(call.args, call.kwargs)
    passed = Arguments(*produced.call.bind(call.args, kwargs), produced.arguments.static)
    arguments = with_values(produced.case.test, passed, values)
    if jax.tree_util.tree_structure(arguments.dynamic) != jax.tree_util.tree_structure(produced.arguments.dynamic):
        raise ExportError(
            f"{produced.case.test}: {call.place or f'call {number}'} takes different arguments from the first call: "
            f"{_passed_otherwise(produced.arguments, arguments)}"
        )
    for argument, inside, leaf in passed.named() if call.refused is None else ():
        require_kept(f"{produced.case.test}: {call.place or f'call {number}'}: {argument}{inside}", leaf)
    case, mesh = produced.case, produced.manifest.options.mesh
    # An artifact for several devices takes any mesh of as many; the function may not.
    axes = meshes.other_mesh(arguments, mesh) if mesh else {}
    devices, count = produced.exported.nr_devices, math.prod(axes.values())
    if axes and call.refused is None and count != devices:
        raise ExportError(
            f"{produced.case.test}: call {number}: expected arguments on {plural(devices, 'device')}, "
            "for which the function was "
            f"exported, found a mesh of {count}: {axes}. Place them on "
            f"{plural(devices, 'device')}, or expect the refusal: "
            "exported.refused(…, match=…)."
        )
    specs = meshes.specs_given(arguments, produced.exported, mesh) if mesh else ()
    if axes or specs:  # the function itself may take no arguments that are placed so
        case = meshes.as_artifact(case, arguments, produced.exported, mesh)
    else:
        arguments = meshes.place_arguments(case, arguments)
    if call.refused is not None:
        check = _stored_check(f"refused{number}", map(leaf_from, arguments.flat()), None, files)
        return structs.replace(check, refused=call.refused, mesh=axes, in_specs=specs), arguments
    name = call_name(number)
    outputs = None if produced.outputs is None else results(case, arguments)
    if outputs is not None and values is None and has_structs((call.args, call.kwargs)):
        arguments, outputs, rule = in_domain(produced.case, passed, arguments, outputs)
        outside += [name] if rule is None else []
    check = _stored_check(name, stored(arguments.flat(), produced.exported.in_avals), outputs, files)
    return structs.replace(check, mesh=axes, in_specs=specs), arguments


def _mesh_checks(produced: ProducedGolden) -> list[Check]:
    """Return the checks that call the artifact on other meshes.

    With the option `spread_over`, an artifact for one device is called on several devices. An artifact for several
    devices is called on a mesh whose axes have other names, and the call on one device must be refused.
    """
    options = produced.manifest.options
    spread = produced.case.options.spread_over
    outputs = None if produced.outputs is None else OUTPUTS
    if spread:
        if options.mesh:
            raise ExportError(
                f"{produced.case.test}: spread_over={spread}: only a function that was exported for one device can be "
                "called with arguments sharded over several; this one was exported for "
                f"{plural(options.devices, 'device')}."
            )
        return [Check("spread", outputs=outputs, mesh={"spread": spread}, spread=True)]
    if options.devices == 1:
        return []
    # Other names and the same sizes: since 0.9.1, jax refuses outputs in 2 × 2 parts on a mesh of one axis.
    other = {f"other_{axis}": size for axis, size in options.mesh.items()}
    return [
        Check("other-mesh", outputs=outputs, mesh=other),
        Check("one-device", refused=WRONG_DEVICES, mesh={"one": 1}),
    ]


def _out_shardings(produced: ProducedGolden) -> tuple[str, ...]:
    """Return how the artifact shards each output of its plain call, as `meshes.shard_layout` describes it."""
    mesh = produced.manifest.options.mesh
    return _shardings_of(produced, produced.exported, produced.arguments.copy(), mesh)


def _shardings_of(
    produced: ProducedGolden, exported: Any, arguments: Arguments, mesh: Mapping[str, int]
) -> tuple[str, ...]:
    """Return how a call of an artifact shards each output, as `meshes.shard_layout` describes it.

    The artifact is called to find this out, since XLA, when it compiles, chooses the sharding of an output for which
    the function sets none. Raises `ExportError` if jax cannot call what it exported.
    """
    case = produced.case
    args, kwargs = plain(meshes.place_unplaced(case, arguments, exported, mesh).dynamic)
    # A call without arguments takes its devices from the mesh around it.
    around = None if arguments.flat() else meshes.concrete_mesh(case.test, mesh)
    try:
        with api.in_mesh(around):
            results = jax.jit(api.call_of(exported))(*args, **kwargs)
    except Exception as error:
        raise ExportError(
            f"{case.test}: jax {produced.manifest.writer.jax} exports this function and cannot call what it exported: "
            f"{type(error).__name__}: {error}"
        ) from error
    return tuple(meshes.shard_layout(value) for value in jax.tree_util.tree_leaves(results))


def _require_refusal(produced: ProducedGolden, check: Check, arguments: Arguments) -> None:
    """Raise `ExportError` unless the writer itself refuses this call, as readers will be expected to."""
    where = f"{produced.case.test}: {check.name}"
    try:
        # Deserialized, as in a reader: before that, jax knows more of the dimensions, refuses more, and with other
        # messages.
        exported = api.derivative(produced.files[ARTIFACT], check.vjp)
        args, kwargs = plain(arguments.copy().dynamic)
        if check.mesh and check.inputs is None:  # the plain call, on one device
            args, kwargs = jax.device_put(jax.tree_util.tree_map(whole, (args, kwargs)), jax.devices()[0])
        jax.jit(api.call_of(exported)).lower(*args, **kwargs).compile()
    except Exception as error:
        # jax's message, then XLA's where that is its cause.
        message = "\n".join(str(part) for part in (error, error.__cause__) if part is not None)
        if check.expects(message):
            return
        raise ExportError(
            f"{where}: expected a refusal with {check.refused!r} in its message, "
            f"found {type(error).__name__}: {message}"
        ) from error
    types = few(list(map(_type_of, jax.tree_util.tree_leaves((args, kwargs)))))
    raise ExportError(
        f"{where}: expected this call of the exported function to be refused, and it was not. "
        f"The function accepted {types or 'no arrays'}: pass arguments that it does not accept, or remove this call."
    )


def _type_of(value: object) -> str:
    """Return the type of an argument as jax prints it, such as ``float32[3]``."""
    dtype = getattr(value, "dtype", None) or jax.dtypes.result_type(value)
    return f"{dtype}[{','.join(map(str, jax.numpy.shape(value)))}]"


def call_name(number: int) -> str:
    """Return the name of a further call; `number` counts, from 1, all calls that were added to a golden."""
    return f"call{number}"


def inputs_file(name: str) -> str:
    """Return the name of the file with the inputs of a check."""
    return f"{name}.inputs.npz"


def _stored_check(
    name: str, inputs: Iterable[Leaf], outputs: Iterable[Leaf] | None, files: dict[str, bytes], vjp: int = 0
) -> Check:
    """Return a check with these inputs and outputs, and add the files that store them to `files`.

    `outputs` is None for a check without outputs.
    """
    check = Check(name, vjp=vjp, inputs=inputs_file(name))
    files[inputs_file(name)] = to_npz(inputs)
    if outputs is None:
        return check
    files[f"{name}.outputs.npz"] = to_npz(outputs)
    return structs.replace(check, outputs=f"{name}.outputs.npz")


Flat = Callable[..., tuple[Any, ...]]  # A function from flat arrays to flat arrays.

SEED = 20240618  # never to be changed: goldens hold the cotangents that it gives


def derivatives(
    function: Flat, values: Sequence[Any], order: int, *, run: bool = True
) -> list[tuple[list[Any], list[Any] | None]]:
    """Return, for each derivative of a function up to `order`, its flat arguments at `values` and its flat results.

    The results are computed without the artifact, since they are what its derivatives are expected to return; they are
    None if `run` is false. The derivative of order k takes the arguments of order k-1 followed by a cotangent for each
    of its outputs. It returns a cotangent for each of its arguments, as `jax.export.Exported.vjp` does. The cotangents
    are random numbers from a fixed seed.
    """
    calls: list[tuple[list[Any], list[Any] | None]] = []

    def results_of(function: Flat, arguments: Sequence[Any]) -> list[Any]:
        # All are kept: the derivative of a linear function uses no argument that says on which devices it runs.
        jitted = jax.jit(function, keep_unused=True)
        return list(jitted(*arguments) if run else jax.eval_shape(function, *arguments))

    arguments, results = list(values), results_of(function, values)

    def pullback(function: Flat, count: int, *flat: Any) -> tuple[Any, ...]:
        _, pull = jax.vjp(function, *flat[:count])
        return tuple(pull(tuple(flat[count:])))

    def cotangent(value: Any) -> Any:
        # Of the dtype that jax expects for this output: float0 where the output is not differentiable.
        kind = np.dtype(value.dtype) if value.dtype == jax.dtypes.float0 else value.dtype
        if not jax.dtypes.issubdtype(kind, np.inexact):
            return np.zeros(value.shape, jax.dtypes.float0)
        real = random.standard_normal(value.shape)
        if jax.dtypes.issubdtype(kind, np.complexfloating):
            real = real + 1j * random.standard_normal(value.shape)
        return np.asarray(real).astype(kind)

    random = np.random.RandomState(SEED)  # its numbers are the same in every NumPy, those of default_rng need not be
    for _ in range(order):
        function = partial(pullback, function, len(arguments))  # of the one before, as jax.export nests its VJPs
        arguments = [*arguments, *map(cotangent, results)]
        results = results_of(function, arguments)
        calls.append((arguments, results if run else None))
    return calls
