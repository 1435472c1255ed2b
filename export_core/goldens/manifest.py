"""The fields of golden.yaml: what a golden is, who made it and how, its files, and how its noise was measured."""

import datetime
import math
import re
from typing import Literal

import msgspec
from msgspec import structs

from export_core.artifact import Envelope
from export_core.base.text import without_source_lines
from export_core.releases import Release


class UndecidedOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An output with elements in which noise, large beside the output's largest number, would hide a wrong number."""

    elements: int  # How many elements would not show a wrong number.
    of: int  # How many elements the whole output has.
    noise: float  # The largest noise in the output.
    largest: float  # The largest finite magnitude in the output.
    leaf: str = ""  # Its path in the tree of the results, such as `result['loss']`; of a derivative, by what.


class NoiseRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the noise of a golden was measured."""

    jaxlib: str  # The release that measured it: the writer's own, unless its environment could not be built.
    instruction_set: str  # The instruction set of its processor, as XLA calls it.
    moved: int
    """The number of runs with inputs moved by up to one unit in the last place; 0 without floating-point inputs."""
    compiled: tuple[str, ...]  # The runs with other options of the compiler.
    failed: dict[str, str] = {}  # Runs that gave nothing, with the reason.
    inside: int = 0
    """The number of runs that also moved results inside the program; 0 if none of them is rounded, or if `failed` says
    why they could not be moved."""
    amplified: int = 0  # The number of such runs with moves of up to 64 units, by which elements that jump are found.
    kernel: str = ""
    """The kernel of OpenBLAS (`OPENBLAS_CORETYPE`) of one more run, in a process of its own; empty where none was made:
    nothing calls LAPACK, or the processor can run no other kernel."""
    unmeasured: tuple[str, ...] = ()
    """The calls of which nothing was measured, since all their runs failed: the plain one is the empty name. Their
    outputs are compared with the default tolerances."""
    unstable: dict[str, int] = {}  # By call and output (`vjp1/0`): how many elements had to be equal and were not.
    jumping: dict[str, tuple[int, int]] = {}
    """By call and output: how many elements jump when last bits change, as where one chooses others, of how many."""
    undecided_outputs: dict[str, UndecidedOutput] | None = None
    """By call and output: those with elements whose noise is above a tenth of the largest number in that output; null
    where an older version did not count them."""

    def moved_inside(self, call: str = "") -> bool:
        """Return whether the noise of a call includes moved roundings inside its program, not only moved inputs."""
        return self.inside > 0 and f"{call}/inside".removeprefix("/") not in self.failed


FORMAT = 1  # Version of golden.yaml. A newer one is refused: it may mean what this version cannot check.

UNKNOWN = "unknown"  # The Python version of a writer that is known only by its artifact.


class Writer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The release and the platform that exported an artifact."""

    jax: str  # The version of jax.
    jaxlib: str  # The version of jaxlib.
    built: datetime.date  # The day on which the jaxlib was built, as in the calendar.
    python: str  # The version of Python; `unknown` for an adopted artifact.
    platform: str  # The platform on which it was exported, such as cpu.
    jaxlib_extension_version: int | None = None
    """The number by which jax distinguishes builds of jaxlib between two releases. It does not identify the writer."""
    xla_extension_version: int | None = None  # The number that jax used for this until jaxlib 0.4.

    @property
    def release(self) -> Release:
        """The jax and jaxlib of the writer, without its platform."""
        return Release(jax=self.jax, jaxlib=self.jaxlib, built=self.built)

    @property
    def id(self) -> str:
        """The golden's folder name: ``0.12.0.1-cpu``, or ``0.11.2-jax0.12.0.1-cpu`` where jax and jaxlib differ."""
        jax = "" if self.jax == self.jaxlib else f"-jax{self.jax}"
        return f"{self.jaxlib}{jax}-{self.platform}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names that people use for the writer: its id, or its jaxlib alone, which other writers may share."""
        return self.id, self.jaxlib


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The options of an export. A field that has its default is not written down."""

    # Defaults are left out (omit_defaults), so that a new option does not change the bytes of goldens without it.

    platforms: tuple[str, ...]  # The platforms that it was exported for.
    allow: dict[str, str] = {}  # Custom-call targets that are accepted beside the stable list, each with its reason.
    disabled_checks: dict[str, str] = {}  # Safety checks that jax.export left out, each with its reason.
    vjp_order: int = 0  # How many orders of derivatives it has.
    symbolic_shapes: tuple[str | None, ...] = ()  # The symbolic dimensions of each positional argument, null for none.
    constraints: tuple[str, ...] = ()  # Constraints on these dimensions.
    mesh: dict[str, int] = {}  # Axis names with their sizes, in order; empty for one device.
    in_specs: tuple[str | None, ...] = ()
    """A spec for each positional argument, or for each flat one of an adopted artifact; null for none."""
    calling_convention_version: int | None = None  # The version that was asked for; null for jax's own.
    ignore_forward_compatibility: bool = False  # Whether it was exported for the newest readers only.
    register: tuple[str, ...] = ()  # The modules that a reader imports first; the golden holds a copy of each.
    refused_on: tuple[str, ...] = ()  # Platforms that it was not exported for, and on which it must be refused.
    without_outputs: str = ""  # Why the golden has no outputs: readers compile it, and run nothing. Empty for others.
    nothing_to_compare: str = ""  # Why it is meant that its outputs show nothing; empty where they show something.

    @property
    def devices(self) -> int:
        """How many devices it was exported for, as its mesh says."""
        return math.prod(self.mesh.values())


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One more call of the artifact, after the plain one with `inputs.npz`, and the result that it must have."""

    name: str  # The name of the call.
    vjp: int = 0  # The order of the derivative that is called; 0 for the function itself.
    inputs: str | None = None  # The file of its flat arguments; null for those of the plain call.
    outputs: str | None = None
    """The file of its flat results; null for a call that must be refused, and in a golden without outputs."""
    refused: str | None = None
    """A regular expression: the call must be refused with a message that it matches. Null for any other call."""
    mesh: dict[str, int] = {}  # The mesh of the call, where it is another one.
    spread: bool = False  # Whether the arguments are sharded over that mesh.
    in_specs: tuple[str | None, ...] = ()
    """How each argument is placed on the mesh of the call, as a `PartitionSpec`, null for one that is whole.

    Empty where all are placed as the artifact wants them, or whole on another mesh.
    """
    out_shardings: tuple[str, ...] = ()
    """For more than one device: which part of each result is on which device. Empty where nobody looked."""

    def expects(self, message: str) -> bool:
        """Return whether a refusal with this message is the expected one.

        Source code that XLA quotes in the message does not count: a comment in it may match the pattern.
        """
        return self.refused is not None and re.search(self.refused, without_source_lines(message)) is not None


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How outputs are compared.

    A number applies to every dtype, a mapping to the dtypes that it names. Null means the default tolerance of each
    dtype; for `ulp`, no tolerance in such units. `rtol` and `atol` are added as in `numpy.allclose`.
    """

    compare: str = "allclose"  # The comparator's name, or `module:function`.
    rtol: float | dict[str, float] | None = None  # The relative tolerance.
    atol: float | dict[str, float] | None = None  # The absolute tolerance.
    ulp: int | dict[str, int] | None = None  # The tolerance in units in the last place.


class FactorGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Outputs that come straight from one factorization, which is unique only up to signs, phases and order."""

    compare: str  # Their comparator, such as `svd`.
    outputs: tuple[int, ...]  # The numbers of these outputs, in the order in which the comparator takes them.


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Types as jax prints them, flat and in order, and the trees that hold them."""

    inputs: tuple[str, ...]  # The types of the arguments, such as `float32[4,8]`.
    outputs: tuple[str, ...]  # The types of the results.
    in_tree: str  # The tree of the arguments.
    out_tree: str  # The tree of the results.


def signature_of(envelope: Envelope) -> Signature:
    """Return the signature that an artifact declares, read from its bytes: the same text whichever jax wrote it."""
    return Signature(
        inputs=tuple(map(str, envelope.in_avals)),
        outputs=tuple(map(str, envelope.out_avals)),
        in_tree=str(envelope.in_tree),
        out_tree=str(envelope.out_tree),
    )


InputsRule = Literal["", "positive", "positive definite"]  # A rule that makes inputs of which only the types are known.


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The origin of inputs and outputs that neither a test nor a person gave."""

    inputs: Literal["given", "made"]  # given: stored with the artifact. made: by the rule for types without values.
    outputs: Literal["given", "replayed", "none"]
    """replayed: its writer's environment computed them when the golden was made. none: it has no outputs."""
    outputs_by: str = ""
    """The jaxlib that computed outputs that were not given, and its jax where that has another number:
    ``0.11.2-jax0.12.0``."""
    seed: int | None = None  # The seed of made inputs; null for others.
    source: str = ""
    """Of a golden of JAX's own, its place: `jax 0.12.0.1: pallas/mosaic_matmul.py:35`. Empty for others."""
    derived: dict[str, str] = {}
    """What that place does not have, and how it was decided: `writer`, `envelope`, `comparison`."""


class JaxprSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The jaxpr that was exported, in figures."""

    primitives: dict[str, int]
    """How many places use each primitive, those in inner jaxprs included (of cond, while, scan, jit, custom_vjp and so
    on)."""
    constants: tuple[str, ...] = ()  # The types of the arrays that it closes over.
    effects: tuple[str, ...] = ()  # The names of its effects in jax, sorted.


class Flattened(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The trees of a function with nodes that no artifact can hold: in the artifact, each is a tuple of its leaves."""

    inputs: tuple[str, ...]
    """The path of each flat argument in the function's own trees, such as `args[0].layers[1].weight`."""
    outputs: tuple[str, ...]  # The path of each flat result, such as `result.mean`.
    nodes: tuple[str, ...]  # The types that are tuples instead.

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all leaves."""
        return (*self.inputs, *self.outputs)


EXPORTED_AGAIN = "exported again"  # The way of a conversion by a release that reads the original.


class ConvertedFrom(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The origin of an artifact that `jaxexport convert` made from another one."""

    sha256: str  # The SHA-256 of the original artifact.
    reader: str  # What it was made for: a jaxlib, or another runtime, such as `tensorflow==2.18.1`.
    way: str  # How: `unchanged`, `rewritten`, or `exported again`.
    rewrites: tuple[str, ...]  # Everything that is not as in the original, in words.
    tool: str  # What made it, such as `pytest-jaxexport 0.1.0`.
    module_by: str = ""  # The jaxlib that rewrote or exported the module; empty where the module is the original's.

    @property
    def differs_from_original(self) -> bool:
        """Whether the conversion changed the artifact: JAX promises nothing for it then."""
        return self.way != "unchanged"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of golden.yaml.

    Nothing in it depends on the time. The machine matters only through its processor's instruction set, which affects
    outputs and noise.
    """

    case: str  # The id of the case.
    test: str  # The id by which pytest knows the test; empty where there is none.
    name: str | None  # What distinguishes several calls in one test; null for none.
    writer: Writer  # Who exported it.
    flags: dict[str, bool | int | str | None]  # The configuration of jax that an export depends on, by flag.
    options: Options  # How it was exported.
    comparison: Comparison  # How its outputs are compared.
    signature: Signature  # The types of arguments and results.
    custom_calls: tuple[str, ...]  # The targets of its custom calls.
    files: dict[str, str]  # Each file beside it with its SHA-256.
    checks: tuple[Check, ...] = ()  # Further calls of the artifact.
    out_shardings: tuple[str, ...] = ()  # For more than one device: which part of each output is on which device.
    jaxpr: JaxprSummary | None = None  # The jaxpr in figures; null for an adopted artifact.
    packages: dict[str, str] = {}
    """The versions of all installed packages, where `jaxexport goldens backfill` or `--record-packages` wrote it."""
    factors: tuple[FactorGroup, ...] = ()
    """Outputs that come straight from factorizations, where the artifact has no custom calls that say so."""
    flattened: Flattened | None = None  # The function's own trees; null where the artifact holds them.
    inputs_made: bool = False
    """Whether values were made for arguments of which only the types were known (`jax.ShapeDtypeStruct` in a test, an
    artifact without inputs)."""
    inputs_rule: InputsRule = ""
    """The rule by which values were made, where those of the first rule, which has no name, gave NaN or infinities."""
    origin: Origin | None = None  # Where inputs and outputs come from; null where a test or a person gave them.
    instruction_set: str = ""
    """The instruction set with which the outputs were computed, as XLA calls it (`x86_64 AVX2`): that of the processor,
    or the narrower one of `--xla_cpu_max_isa`. Empty where nobody knows."""
    noise: NoiseRecord | None = None  # How the noise of the outputs was measured; null where it was not.
    reproducible: bool = True
    """Whether two processes exported the same. Where they did not, the test compares outputs, and not the export."""
    converted_from: ConvertedFrom | None = None
    """The original of a converted artifact; null for one that its writer exported. JAX promises nothing for it."""
    format: int = FORMAT
    """The version of this form. A newer one than this version of pytest-jaxexport knows is refused."""

    @property
    def computed_on(self) -> str:
        """The instruction set with which the outputs, or else their noise, were computed; "" if neither is known."""
        return self.instruction_set or (self.noise.instruction_set if self.noise else "")

    @property
    def is_adopted(self) -> bool:
        """Whether the golden was made of an artifact whose source code is lost: its writer's Python is not known."""
        return self.writer.python == UNKNOWN

    @property
    def replayed_on(self) -> tuple[str, ...]:
        """The platforms on which the golden has cells: those where it runs, and those where it must be refused."""
        # Without the check of the platform it also runs where it was written, whatever it was exported for.
        lifted = (self.writer.platform,) if "platform" in self.options.disabled_checks else ()
        return tuple(dict.fromkeys((*self.options.platforms, *lifted, *self.options.refused_on)))

    @property
    def runs_on(self) -> tuple[str, ...]:
        """The platforms on which it runs, without those where it must be refused."""
        return tuple(platform for platform in self.replayed_on if platform not in self.options.refused_on)


def as_stored(manifest: Manifest, stored: Manifest) -> Manifest:
    """Return a manifest with the evidence that a stored manifest of the same golden has.

    The packages are those of the stored one. The extension versions of jaxlib are left out if the stored one lacks
    them, since it was written before they were recorded.
    """
    writer = structs.replace(manifest.writer, jaxlib_extension_version=None, xla_extension_version=None)
    writer = writer if writer == stored.writer else manifest.writer
    return structs.replace(manifest, packages=stored.packages, writer=writer)
