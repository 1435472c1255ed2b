"""The facts of an artifact as one JSON object: what `jaxexport inspect --json` prints; screen and diff show it.

The types are the published schema (schema/inspect.schema.json).
"""

from __future__ import annotations

from typing import Any, TypedDict


class CustomCallFacts(TypedDict):
    """A custom-call target, or with a count of 0 a part of the artifact that this reader does not know."""

    target: str
    """The target."""
    standing: str
    """Its standing in the lists of the possible writers."""
    ok: bool
    """Whether the audit accepts it."""
    what: str
    """What its payload is."""
    payload_version: int | None
    """The version of that payload, null where it has none."""
    count: int
    """How many calls."""
    where: list[str]
    """Functions and locations of the calls."""
    message: str
    """What is wrong with it; empty for nothing."""
    advice: str
    """What to do; empty for nothing."""


class SignatureFacts(TypedDict):
    """Types as jax prints them, flat and in order."""

    name: str
    """The name of the function."""
    inputs: list[str]
    """The types of the arguments."""
    outputs: list[str]
    """The types of the results."""
    in_tree: str | None
    """The tree of the arguments, null for a bare module."""
    out_tree: str | None
    """The tree of the results, null for a bare module."""
    kept: list[int] | None
    """The arguments that the module uses, by number; null for a bare module."""
    dimensions: list[str]
    """The names of symbolic dimensions."""


class NeedsFacts(TypedDict):
    """The smallest StableHLO that reads the module."""

    stablehlo: str
    """Its version."""
    exact: bool
    """Whether that is exact; where it is false, at least that version is needed."""
    set_by: list[str]
    """The operations and attributes that need it."""
    unknown: list[str]
    """Operations and attributes that this reader does not know."""
    dialects: list[str]
    """Other dialects in the module."""
    range_locations: bool
    """Whether it has locations that older releases cannot read."""


class ConstantFacts(TypedDict):
    """A constant of 256 bytes or more."""

    type: str
    """Its type."""
    nbytes: int
    """The bytes it takes."""
    at: int
    """Its first byte in the file."""
    function: str
    """The function that it is in."""
    sha256: str
    """The SHA-256 of its bytes."""


class ModuleFacts(TypedDict):
    """A StableHLO module: the function's own (order 0), or that of a derivative."""

    vjp_order: int
    """The order of the derivative, 0 for the function itself."""
    nbytes: int
    """Its size in bytes."""
    producer: str
    """What wrote the bytecode, as its header says."""
    bytecode_version: int
    """The version of MLIR bytecode."""
    operations: int
    """How many operations."""
    op_counts: dict[str, int]
    """How many of each, by name."""
    functions: list[str]
    """Its functions with their types."""
    attributes: dict[str, Any]
    """The attributes of the module."""
    constants: list[ConstantFacts]
    """Its large constants."""
    needs: NeedsFacts
    """What reads it."""


class WriterFacts(TypedDict):
    """Who wrote it."""

    jax: str | None
    """The jax that the artifact names, null where it names none."""
    jaxlib: str | None
    """The jaxlib, null where several can have written it, and for a bare module."""
    candidates: list[str]
    """All jaxlibs that can have written it."""
    producer: str
    """What wrote the bytecode, as its header says."""
    serialization_version: int | None
    """The version of the envelope, null for a bare module."""
    formats: list[int] | None
    """The oldest and the newest format that the envelope can have; null for a bare module."""


class ReaderFacts(TypedDict):
    """Whether a release loads it."""

    jaxlib: str
    """Its jaxlib."""
    jax: str
    """Its jax."""
    built: str
    """The day on which the jaxlib was built."""
    loads: bool | None
    """true, false, or null if that is unknown."""
    reasons: list[str]
    """Why not."""


class ForeseenFacts(TypedDict):
    """What is foreseen for a platform in the newest release."""

    platform: str
    """The platform."""
    exported: bool
    """Whether it was exported for that platform."""
    targets: list[str]
    """The custom calls that it makes there."""
    unpromised: list[str]
    """Those that the release does not promise."""
    note: str
    """What else is to be known."""


class PromiseFacts(TypedDict):
    """The build dates of readers that are promised to read it, by the earliest and the latest possible writer."""

    backward_days: int
    """The length of the backward window."""
    forward_days: int
    """The length of the forward window."""
    since: list[str]
    """The first day, by the earliest and by the latest writer."""
    until: list[str]
    """The last day, by the earliest and by the latest writer."""


class StableHloPromiseFacts(TypedDict):
    """StableHLO's own promise for a bare module, between the builds of the StableHLO that writes and reads."""

    backward_years: int
    """Years backward."""
    forward_years: int
    """Years forward."""
    written_for: str
    """The version that the module was written for; its writer had that one or a newer one."""


class MainFacts(TypedDict):
    """Whether `main` takes and returns what the envelope says."""

    checked: bool
    """Whether it was checked: not where its calling convention is not known here."""
    problems: list[str]
    """What is wrong, a sentence each."""


class ConvertedFacts(TypedDict):
    """What the record beside a converted artifact says (schema/converted.schema.json)."""

    problem: str
    """Why the record says nothing: it cannot be read, or is of another file; empty for a record that counts."""
    verdict: str
    """`converted` where the reader gave the outputs of the golden; `not verified` otherwise."""
    message: str
    """What was verified, or why nothing could be."""
    reader: str
    """The jaxlib that it was made for."""
    sha256: str
    """The SHA-256 of the original artifact."""
    way: str
    """How: `unchanged`, `rewritten`, or `exported again`."""
    rewrites: list[str]
    """Everything that is not as in the original, in words."""
    tool: str
    """What made it."""


class Inspection(TypedDict):
    """What `jaxexport inspect --json` prints."""

    format: int
    """The version of this form."""
    file: str
    """The file, as it was named."""
    kind: str
    """What it is: an artifact of jax.export, or bare StableHLO."""
    nbytes: int
    """Its size in bytes."""
    sha256: str
    """The SHA-256 of the file."""
    signature: SignatureFacts
    """The types of arguments and results."""
    platforms: list[str]
    """The platforms that it was exported for."""
    nr_devices: int | None
    """The number of devices; null for a bare module."""
    in_shardings: list[str | None]
    """The sharding of each argument, null for none."""
    out_shardings: list[str | None]
    """The sharding of each result, null for none."""
    ordered_effects: list[str]
    """The names of ordered effects."""
    unordered_effects: list[str]
    """The names of unordered effects."""
    vjp_order: int
    """How many orders of derivatives it has."""
    calling_convention_version: int | None
    """The version of its calling convention; null for a bare module."""
    main: MainFacts | None
    """The check of `main`; null for a bare module."""
    disabled_checks: list[str]
    """Safety checks that jax.export left out."""
    unknown_fields: list[str]
    """Fields of the envelope that this reader does not know."""
    custom_calls: list[CustomCallFacts]
    """Its custom calls."""
    foreseen: list[ForeseenFacts]
    """What is foreseen for each platform."""
    modules: list[ModuleFacts]
    """The function's module, and those of its derivatives."""
    writer: WriterFacts
    """Who wrote it."""
    readers: list[ReaderFacts]
    """Which releases load it."""
    promise: PromiseFacts | None
    """What JAX promises; null for a bare module, and where no writer is known."""
    stablehlo_promise: StableHloPromiseFacts | None
    """What StableHLO promises; null unless it is a portable artifact."""
    converted: ConvertedFacts | None
    """What `jaxexport convert` wrote beside the file; null where nothing is beside it."""
    envelope: dict[str, Any] | None
    """The fields of jax.export.Exported as they are in the file; null for a bare module."""
