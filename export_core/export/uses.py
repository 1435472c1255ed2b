"""What else must a golden's artifact do, beside the plain call? Derivatives, other shapes, other meshes, refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
from msgspec import structs

from export_core.export import api
from export_core.export.arguments import Arguments, leaf_from
from export_core.export.derivatives import derivatives
from export_core.export.errors import ExportError
from export_core.export.meshes import parts, placed
from export_core.export.produce import Produced, leaves_as_declared, run
from export_core.goldens import Check, Leaf
from export_core.goldens.arrays import to_npz
from export_core.goldens.store import ARTIFACT, OUTPUTS, sha256

NO_VJP = "No VJP is available"
WRONG_DEVICES = r"(exported|lowered) for \d+ devices"
MISMATCH = "(?i)mismatch|do not match|incompatible"
"""What releases say, as regular expressions: of a derivative that is not there, of devices, of shapes and dtypes."""


@dataclass(frozen=True)
class Use:
    """One more call of the exported function; `refused` is a regular expression of the refusal that must come, or None."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    refused: str | None = None


def with_checks(produced: Produced, uses: Sequence[Use]) -> Produced:
    """The golden with everything that its artifact must do, as this process does it.

    The artifact is compiled here, so its custom calls must have been audited before.

    Raises `ExportError` when a call that must be refused is not, or not with that message.
    """
    files: dict[str, bytes] = {}
    checks = [*_derivatives(produced, files)]
    checks += [_use(produced, use, number, files) for number, use in enumerate(uses, 1)]
    checks += _on_devices(produced)
    for check in checks:
        if check.refused is not None and (check.vjp or _runs_here(produced)):
            _must_be_refused(produced, check, uses)
    hashes = {name: sha256(content) for name, content in files.items()}
    manifest = structs.replace(
        produced.manifest,
        checks=tuple(checks),
        files={**produced.manifest.files, **hashes},
        out_shardings=_out_shardings(produced) if produced.exported.nr_devices > 1 and _runs_here(produced) else (),
    )
    return replace(produced, manifest=manifest, files={**produced.files, **files})


def _runs_here(produced: Produced) -> bool:
    """Whether the artifact can be called where it was made. What was exported for other platforms only, readers there must show."""
    manifest = produced.manifest
    return manifest.writer.platform in manifest.options.platforms or "platform" in manifest.options.disabled_checks


def _derivatives(produced: Produced, files: dict[str, bytes]) -> list[Check]:
    order = produced.case.asked.vjp_order
    if not order:
        return []
    arguments = produced.arguments
    values = [_as_jax(value) for value in arguments.flat()]

    def flat(*leaves: Any) -> tuple[Any, ...]:
        whole = arguments.with_flat(leaves)
        return tuple(jax.tree_util.tree_leaves(produced.case.function(*whole.args, **whole.kwargs)))

    found = derivatives(flat, values, order)
    checks = [
        _stored(f"vjp{number}", map(leaf_from, inputs), map(leaf_from, outputs), files, vjp=number)
        for number, (inputs, outputs) in enumerate(found, 1)
    ]
    return [*checks, Check(f"vjp{order + 1}", vjp=order + 1, refused=NO_VJP)]


def _use(produced: Produced, use: Use, number: int, files: dict[str, bytes]) -> Check:
    arguments = Arguments(use.args, dict(use.kwargs), produced.arguments.static)
    first, taken = map(jax.tree_util.tree_structure, (produced.arguments.dynamic, arguments.dynamic))
    if taken != first:
        raise ExportError(
            f"{produced.case.test}: call {number} takes other arguments than the first: expected {first}, found {taken}."
        )
    arguments = placed(produced.case, arguments)
    if use.refused is not None:
        name = f"refused{number}"
        inputs = to_npz(map(leaf_from, arguments.flat()))
        files[f"{name}.inputs.npz"] = inputs
        return Check(name, inputs=f"{name}.inputs.npz", refused=use.refused)
    leaves = leaves_as_declared(arguments, produced.exported)
    return _stored(f"call{number}", leaves, map(leaf_from, run(produced.case, arguments)), files)


def _on_devices(produced: Produced) -> list[Check]:
    options = produced.manifest.options
    spread = produced.case.asked.spread_over
    if spread:
        if options.mesh:
            raise ExportError(
                f"{produced.case.test}: spread_over={spread}: only a function that was exported for one device can be called on arguments "
                f"that are spread over several; this one was exported for {options.devices}."
            )
        return [Check("spread", outputs=OUTPUTS, mesh={"spread": spread}, spread=True)]
    if options.devices == 1:
        return []
    # Of the same form: since 0.9.1, jax refuses outputs in 2 × 2 parts on a mesh of one axis.
    other = {f"other_{axis}": size for axis, size in options.mesh.items()}
    return [
        Check("other-mesh", outputs=OUTPUTS, mesh=other),
        Check("one-device", refused=WRONG_DEVICES, mesh={"one": 1}),
    ]


def _out_shardings(produced: Produced) -> tuple[str, ...]:
    args, kwargs = produced.arguments.copied().dynamic
    results = jax.jit(api.call_of(produced.exported))(*args, **kwargs)
    return tuple(parts(value) for value in jax.tree_util.tree_leaves(results))


def _must_be_refused(produced: Produced, check: Check, uses: Sequence[Use]) -> None:
    """The writer itself must refuse, or no reader can be expected to."""
    assert check.refused is not None
    where = f"{produced.case.test}: {check.name}"
    arguments = produced.arguments
    if check.inputs is not None:
        use = uses[int(check.name.removeprefix("refused")) - 1]
        arguments = Arguments(use.args, dict(use.kwargs), arguments.static)
    try:
        # Read back as a reader reads it: what jax knows of dimensions before it serializes would refuse more, in other words.
        exported = api.derivative(produced.files[ARTIFACT], check.vjp)
        args, kwargs = arguments.copied().dynamic
        if check.mesh:
            args, kwargs = jax.device_put((args, kwargs), jax.devices()[0])
        jax.jit(api.call_of(exported)).lower(*args, **kwargs).compile()
    except Exception as error:
        said = "\n".join(
            str(each) for each in (error, error.__cause__) if each is not None
        )  # jax's words, then those of XLA
        if check.expects(said):
            return
        raise ExportError(
            f"{where}: expected a refusal with {check.refused!r} in its message, found {type(error).__name__}: {said}"
        ) from error
    raise ExportError(f"{where}: expected this call of the exported function to be refused, and it was not.")


def _stored(name: str, inputs: Any, outputs: Any, files: dict[str, bytes], vjp: int = 0) -> Check:
    arrays: dict[str, list[Leaf]] = {f"{name}.inputs.npz": list(inputs), f"{name}.outputs.npz": list(outputs)}
    files.update({file: to_npz(leaves) for file, leaves in arrays.items()})
    given, expected = arrays
    return Check(name, vjp=vjp, inputs=given, outputs=expected)


def _as_jax(value: Any) -> Any:
    return value if getattr(value, "dtype", None) == jax.dtypes.float0 else jax.numpy.asarray(value)
