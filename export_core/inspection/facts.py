"""The facts of an artifact as one JSON object: what `jaxexport inspect --json` prints; screen and diff show it.

The types are the published schema (schema/inspect.schema.json).
"""

from __future__ import annotations

from typing import Any, TypedDict


class CustomCallFacts(TypedDict):
    """A custom-call target: its standing in the lists of the possible writers, and where it is called.

    With a count of 0, a part of the artifact that this reader does not know.
    """

    target: str
    standing: str
    ok: bool
    what: str
    payload_version: int | None
    count: int
    where: list[str]
    message: str
    advice: str


class SignatureFacts(TypedDict):
    """Types as jax prints them, flat and in order. Trees, and which arguments are used, are null for a bare module."""

    name: str
    inputs: list[str]
    outputs: list[str]
    in_tree: str | None
    out_tree: str | None
    kept: list[int] | None
    dimensions: list[str]


class NeedsFacts(TypedDict):
    """The smallest StableHLO that reads the module; where `exact` is false, at least that."""

    stablehlo: str
    exact: bool
    set_by: list[str]
    unknown: list[str]
    dialects: list[str]
    range_locations: bool


class ConstantFacts(TypedDict):
    """A constant of 256 bytes or more; `at` is its first byte in the file."""

    type: str
    nbytes: int
    at: int
    function: str
    sha256: str


class ModuleFacts(TypedDict):
    """A StableHLO module: the function's own (order 0), or that of a derivative."""

    vjp_order: int
    nbytes: int
    producer: str
    bytecode_version: int
    operations: int
    op_counts: dict[str, int]
    functions: list[str]
    attributes: dict[str, Any]
    constants: list[ConstantFacts]
    needs: NeedsFacts


class WriterFacts(TypedDict):
    """Who wrote it. `jaxlib` is null where several can have, and for a bare module; `candidates` are all that can."""

    jax: str | None
    jaxlib: str | None
    candidates: list[str]
    producer: str
    serialization_version: int | None
    formats: list[int] | None


class ReaderFacts(TypedDict):
    """Whether a release loads it: true, false, or null if that is unknown; and the reasons why not."""

    jaxlib: str
    jax: str
    built: str
    loads: bool | None
    reasons: list[str]


class ForeseenFacts(TypedDict):
    """What is foreseen for a platform in the newest release: the targets called there, and those not promised."""

    platform: str
    exported: bool
    targets: list[str]
    unpromised: list[str]
    note: str


class PromiseFacts(TypedDict):
    """The build dates of readers that are promised to read it, by the earliest and the latest possible writer."""

    backward_days: int
    forward_days: int
    since: list[str]
    until: list[str]


class StableHloPromiseFacts(TypedDict):
    """StableHLO's own promise for a bare module, in years between the builds of the StableHLO that writes and reads.

    `written_for` is the version that the module was written for; its writer had that one or a newer one.
    """

    backward_years: int
    forward_years: int
    written_for: str


class MainFacts(TypedDict):
    """Whether `main` takes and returns what the envelope says; not `checked` where its convention is not known here."""

    checked: bool
    problems: list[str]


class Inspection(TypedDict):
    """What `jaxexport inspect --json` prints. `envelope` has the fields of jax.export.Exported, or is null."""

    format: int
    file: str
    kind: str
    nbytes: int
    sha256: str
    signature: SignatureFacts
    platforms: list[str]
    nr_devices: int | None
    in_shardings: list[str | None]
    out_shardings: list[str | None]
    ordered_effects: list[str]
    unordered_effects: list[str]
    vjp_order: int
    calling_convention_version: int | None
    main: MainFacts | None
    disabled_checks: list[str]
    unknown_fields: list[str]
    custom_calls: list[CustomCallFacts]
    foreseen: list[ForeseenFacts]
    modules: list[ModuleFacts]
    writer: WriterFacts
    readers: list[ReaderFacts]
    promise: PromiseFacts | None
    stablehlo_promise: StableHloPromiseFacts | None
    envelope: dict[str, Any] | None
