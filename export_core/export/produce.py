"""The production of a golden from a case: artifact, inputs, outputs and manifest, by the jax of this process."""

import functools
import platform as host
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import starmap
from typing import Any, NamedTuple, TypeAlias

import jax
import jax._src.lib
import jaxlib.version
from flatbuffers.builder import BuilderSizeError

from export_core.artifact import Artifact, read_bytes
from export_core.artifact.numerics import factored_outputs
from export_core.export import api
from export_core.export.abstract_inputs import has_structs, take_inputs, with_values
from export_core.export.arguments import Arguments, leaf_from, rounded_dtypes, stored, with_plain_trees
from export_core.export.case import Case, JittedCall, jitted_call
from export_core.export.closed_over import lost_integers
from export_core.export.errors import ExportError
from export_core.export.jaxprs import describe_jaxpr, factored_results
from export_core.export.meshes import abstract_arguments, mesh_of, on_devices, place_arguments, require_devices
from export_core.export.refusals import (
    handlers_required,
    is_callback_without_words,
    known_advice,
    lost_kind,
    refusal,
    unpromised_targets,
)
from export_core.goldens import Comparison, FactorGroup, Leaf, Manifest, Options, Writer
from export_core.goldens.arrays import is_finite, to_npz
from export_core.goldens.made_inputs import RULES
from export_core.goldens.manifest import Flattened, InputsRule, signature_of
from export_core.goldens.store import ARTIFACT, INPUTS, JAXPR_TEXT, MODULE_TEXT, OUTPUTS, sha256
from export_core.releases import Calendar

FLAGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_numpy_dtype_promotion",
    "jax_threefry_partitionable",
    "jax_use_shardy_partitioner",
    "jax_export_ignore_forward_compatibility",
)
"""Settings of jax that change what is exported. A release that lacks one leaves it out of the manifest."""
Flags: TypeAlias = dict[str, bool | int | str | None]

_WITHOUT_LOCATIONS = {
    "jax_traceback_in_locations_limit": 0,
    "jax_hlo_source_file_canonicalization_regex": ".*",  # up to 0.6, a limit of 0 leaves the innermost file in
}
LARGE = 1 << 26  # The size of artifacts in bytes above which memory is freed, although functions are then traced again.


@dataclass(frozen=True)
class ProducedGolden:
    """A golden that this process has exported and run, and that is not stored yet."""

    case: Case  # The case, with the jitted function and its arguments.
    call: JittedCall  # The jitted function, and how the arguments of a user's call become its arguments.
    manifest: Manifest
    files: dict[str, bytes]  # The files of the golden beside its manifest, by name.
    artifact: Artifact
    inputs: tuple[Leaf, ...]  # The flat arguments.
    outputs: tuple[Leaf, ...] | None  # The flat results; None for a golden without outputs.
    exported: Any  # jax's `Exported`, for the checks that `add_checks` adds.
    arguments: Arguments  # The arguments on their devices, for the same checks.
    outside: tuple[str, ...] = ()  # The calls that gave NaN or infinities for all inputs that were made.
    rounded: frozenset[str] = frozenset()  # The 64-bit dtypes of arguments whose numbers jax has rounded to 32 bits.
    lost: tuple[str, ...] = ()  # Sentences about integers that the function closes over and that jax has cut.

    @property
    def runs_here(self) -> bool:
        """Whether this process can run the artifact. Its readers run an artifact that is only for other platforms."""
        options = self.manifest.options
        return self.manifest.writer.platform in options.platforms or "platform" in options.disabled_checks


@dataclass(frozen=True)
class Uncalled:
    """A golden that this process has exported, before its function is called for the first time.

    `runs_here` says whether this process can call the artifact. `golden` returns its manifest and files, without
    outputs.
    """

    case: Case
    writer: Writer
    artifact: Artifact
    runs_here: bool
    golden: Callable[[], tuple[Manifest, dict[str, bytes]]]


def installed_writer(calendar: Calendar) -> Writer:
    """Return the jax and jaxlib of this process as a writer.

    Raises `ReleaseError` if its jaxlib is not in the calendar.
    """
    return Writer(
        jax=jax.__version__,
        jaxlib=jaxlib.version.__version__,
        built=calendar.built(jaxlib.version.__version__),
        python=host.python_version(),
        platform=api.platform_name(),
        jaxlib_extension_version=getattr(jax._src.lib, "jaxlib_extension_version", None),
        xla_extension_version=getattr(jax._src.lib, "xla_extension_version", None),
    )


def produce(
    case: Case,
    calendar: Calendar,
    *,
    reproducible: bool,
    module_text: bool = True,
    before_call: Callable[[Uncalled], None] = lambda uncalled: None,
) -> ProducedGolden:
    """Export the case and run it once.

    Args:
        case: the case.
        calendar: all known releases.
        reproducible: whether no paths of this machine get into the bytes, even if jax has traced the function before.
            This empties jax's caches, so it is set only to write a golden.
        module_text: whether to add module.mlir, which no reader needs.
        before_call: a hook that is called before the function, and may raise an error to prevent the call, which could
            end this process.

    Raises:
        ExportError: jax.export refuses the case. Errors of the function itself are raised too.
    """
    __tracebackhide__ = True
    export, writer = _export_case(case, reproducible=reproducible), installed_writer(calendar)
    artifact = read_bytes(export.data, name=case.id)
    assert artifact.envelope is not None  # jax.export has just written it
    exported, (jaxpr, jaxpr_summary) = export.exported, describe_jaxpr(export.closed_jaxpr)
    case, arguments, platforms = _allowed_in(export.case, artifact), export.arguments, _platforms(export.case)
    mesh = mesh_of(case, arguments, artifact, exported.nr_devices)
    if exported.nr_devices > 1 and writer.platform in platforms:
        case = on_devices(case, arguments, exported, mesh)
    signature, factors = signature_of(artifact.envelope), _factors(export, artifact)

    def golden(
        inputs: Sequence[Leaf], outputs: Sequence[Leaf] | None, why_none: str, rule: InputsRule, text: bytes
    ) -> tuple[Manifest, dict[str, bytes]]:
        files = {
            ARTIFACT: export.data,
            INPUTS: to_npz(inputs),
            **({} if outputs is None else {OUTPUTS: to_npz(outputs)}),
            **({MODULE_TEXT: text} if text else {}),
            JAXPR_TEXT: jaxpr.encode(),
            **case.registration_files(),
        }
        manifest = Manifest(
            case=case.id,
            test=case.test,
            name=case.name,
            writer=writer,
            flags=export.flags,
            options=_options(case, mesh, why_none),
            comparison=case.comparison,
            signature=signature,
            custom_calls=tuple(sorted({call.target for call in artifact.custom_calls})),
            files={name: sha256(content) for name, content in files.items()},
            jaxpr=jaxpr_summary,
            factors=factors,
            flattened=export.flattened,
            inputs_made=export.inputs_made,
            inputs_rule=rule,
        )
        return manifest, files

    inputs = stored(arguments.flat(), exported.in_avals)
    runs_here = writer.platform in platforms or "platform" in case.options.disabled_checks
    if len(export.data) > LARGE:
        api.free_memory()  # A process that calls it first takes as much memory again. This one then traces it again.
    before_call(Uncalled(case, writer, artifact, runs_here, lambda: golden(inputs, None, "", "", b"")))
    outputs, why_none = case.outputs_if_any(
        writer.platform, platforms, lambda: results(case, arguments, traced=not reproducible)
    )
    rule: InputsRule | None = ""
    if export.inputs_made and outputs is not None:
        arguments, outputs, rule = in_domain(case, export.passed, arguments, outputs)
        inputs = stored(arguments.flat(), exported.in_avals)
    text = api.module_text(exported, artifact.module).encode() if module_text else b""
    manifest, files = golden(inputs, outputs, why_none, rule or "", text)
    outside = () if rule is not None else ("the first call",)
    return ProducedGolden(
        case=case,
        call=export.call,
        manifest=manifest,
        files=files,
        artifact=artifact,
        inputs=inputs,
        outputs=outputs,
        exported=exported,
        arguments=arguments,
        outside=outside,
        rounded=export.rounded,
        lost=export.lost,
    )


class ExportedAgain(NamedTuple):
    """A case that was exported for a second time, and not run."""

    data: bytes  # The artifact.
    flags: Flags  # The settings of jax for the export.
    inputs: dict[str, str]
    """The hash of inputs.npz as a golden would have it, by that name; empty if the inputs are made by rule."""
    hash_inputs: Callable[[tuple[Any, ...], Mapping[str, Any]], str]
    """A function that returns the hash of the inputs of a further call with these arguments; "" for ones by rule."""


def export_again(case: Case) -> ExportedAgain:
    """Export a case without running it.

    A second process calls this function, to show whether it exports the same bytes and makes the same example
    arguments. Raises the errors that `produce` raises.
    """
    export = _export_case(case, reproducible=True)

    def hashed(arguments: Arguments) -> str:
        return sha256(to_npz(stored(arguments.flat(), export.exported.in_avals)))

    def hash_inputs(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        values, own = take_inputs(args, kwargs)
        if values is None and has_structs((args, kwargs)):
            return ""
        passed = Arguments(*export.call.bind(args, own), export.arguments.static)
        return hashed(with_values(case.test, passed, values))

    inputs = {} if export.inputs_made else {INPUTS: hashed(export.arguments)}
    return ExportedAgain(export.data, export.flags, inputs, hash_inputs)


@dataclass(frozen=True)
class _Export:
    """An exported case, not run yet.

    `passed` are the arguments of the test. `inputs_made` says whether they lack values, which were then made.
    """

    case: Case
    call: JittedCall
    inputs_made: bool
    passed: Arguments
    arguments: Arguments
    exported: Any
    flattened: Flattened | None
    data: bytes
    closed_jaxpr: Any
    flags: Flags
    rounded: frozenset[str]
    lost: tuple[str, ...]


def in_domain(
    case: Case, passed: Arguments, arguments: Arguments, outputs: tuple[Leaf, ...]
) -> tuple[Arguments, tuple[Leaf, ...], InputsRule | None]:
    """Return made arguments for which a function returns finite numbers, its outputs, and the rule for these arguments.

    If no rule makes such arguments, `arguments` and `outputs` are returned, with None as the rule.

    Args:
        case: the case.
        passed: the arguments that a test has passed, some of them types without values.
        arguments: the arguments that the first rule made for them.
        outputs: the outputs of the function for `arguments`.
    """
    if is_finite(outputs):
        return arguments, outputs, RULES[0]
    for rule in RULES[1:]:
        other = place_arguments(case, with_values(case.test, passed, rule=rule))
        if is_finite(others := results(case, other)):
            return other, others, rule
    return arguments, outputs, None


def _factors(export: _Export, artifact: Artifact) -> tuple[FactorGroup, ...]:
    """Return the factorizations whose factors a case returns, for its manifest.

    The result is () if the custom calls of the artifact show the same, or if the case has a comparator of its own.
    """
    if export.case.comparison.compare != Comparison().compare:
        return ()
    factored = factored_results(export.closed_jaxpr)
    return () if not factored or factored == factored_outputs(artifact) else tuple(starmap(FactorGroup, factored))


def _export_case(case: Case, *, reproducible: bool) -> _Export:
    """Export a case, as `produce` does, without running it."""
    __tracebackhide__ = True
    case.check()
    values, kwargs = take_inputs(case.args, case.kwargs)
    call = jitted_call(case.test, case.function, case.args, kwargs)
    args, kwargs = call.bind(case.args, kwargs)
    case = replace(case, function=call.function, args=args, kwargs=kwargs)
    with _settings_of(case, traced_anew=reproducible):
        passed = case.arguments()
        arguments = place_arguments(case, with_values(case.test, passed, values))
        specs = passed
        if not has_structs(passed.dynamic) or case.options.symbolic_shapes is not None or case.options.mesh:
            specs = abstract_arguments(case, arguments, case.symbolic_arguments(arguments))
        exported, flattened, data = _export(case, specs)
        case.require_use(arguments, exported)
        jaxpr = _jaxpr(case, specs)
        if exported.nr_devices == 1:
            require_devices(case, jaxpr)
        made = values is None and has_structs(passed.dynamic)
        rounded = rounded_dtypes((*passed.flat(), *(values or ())))
        lost, flags = lost_integers(case.function), current_flags()
        return _Export(case, call, made, passed, arguments, exported, flattened, data, jaxpr, flags, rounded, lost)


def free_caches(produced: Sequence[ProducedGolden]) -> list[ProducedGolden]:
    """Free the memory that jax holds for functions with large artifacts, and return the goldens without `Exported`.

    The processes that replay the goldens need as much memory again, and an `Exported` holds a copy of the module. Later
    tests have to trace and compile again what they share with these functions.
    """
    if sum(len(golden.artifact.data) for golden in produced) > LARGE:
        api.free_memory()
    return [replace(golden, exported=None) for golden in produced]


def results(case: Case, arguments: Arguments, *, traced: bool = False) -> tuple[Leaf, ...]:
    """Return the results of the function itself, not of its artifact, as flat leaves in the form that goldens store.

    If `traced` is true, this call uses the trace of the export. If not, the function is traced again: a function that
    computes something different each time, for example with Python's random numbers, then differs from its artifact.
    """
    copies = arguments.copy()  # the caller stores or reuses the arguments, which the function may consume
    # jax keeps a trace by the settings that hold.
    settings = api.temporary_settings(case.test, _without_locations() if traced else {})
    with settings, api.in_mesh(case.context_mesh), handlers_required(case.test, api.platform_name()):
        return tuple(map(leaf_from, jax.tree_util.tree_leaves(case.function(*copies.args, **copies.kwargs))))


def outputs_for(produced: ProducedGolden, inputs: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """Return the function's flat results for these inputs, computed with the settings of jax that its export had."""
    with settings_of_export(produced):
        return results(produced.case, produced.arguments.with_leaves(inputs))


def settings_of_export(produced: ProducedGolden) -> AbstractContextManager[None]:
    """Set the `FLAGS` of jax inside a `with` block as they were when a golden was exported; readers set them too."""
    now = current_flags()
    differing = {name: value for name, value in produced.manifest.flags.items() if now.get(name) != value}
    return api.temporary_settings(produced.case.test, differing)


def _export(case: Case, specs: Arguments) -> tuple[Any, Flattened | None, bytes]:
    """Export a case; return jax's `Exported`, how its trees were flattened, and the artifact.

    Jax's check is left out only for the allowed targets that jax refuses in this function. A target that the policy or
    a marker allows must not change artifacts that never call it. Raises `ExportError` if jax refuses the export.
    """
    called: set[str] = set()
    while True:
        allow = {target: reason for target, reason in case.options.allow.items() if target in called}
        try:
            return _export_with(replace(case, options=replace(case.options, allow=allow)), specs)
        # Releases since 0.4.24 refuse custom calls with ValueError, callbacks with NotImplementedError, and dtypes
        # without a number in the format with KeyError. Of other errors few are refusals: of RuntimeErrors, and of
        # InconclusiveDimensionOperation, which has no public name in all of them.
        except Exception as error:
            of_jax = isinstance(error, ValueError | NotImplementedError | KeyError | TypeError)
            is_refusal = of_jax or bool(known_advice(str(error)))
            if not (is_refusal or is_callback_without_words(error, lambda: _jaxpr(case, specs))):
                raise
            refused = {*unpromised_targets(str(error))} & {*case.options.allow} - called
            if not refused:
                raise ExportError(refusal(case.test, error, lambda: _jaxpr(case, specs))) from error
            called |= refused  # those of a derivative are refused later, when it is serialized


def _export_with(case: Case, specs: Arguments) -> tuple[Any, Flattened | None, bytes]:
    """Export a case as `_export` does, with jax's check left out for all targets that the case's options allow.

    Errors of jax are raised unchanged. Raises `ExportError` for an artifact that cannot be stored.
    """
    options = case.options
    try:
        exported = api.export_function(
            case.function,
            specs.args,
            dict(specs.kwargs),
            platforms=_platforms(case),
            disabled_checks=tuple({**options.allow, **options.disabled_checks}),
        )
        if lost := lost_kind(case.test, exported):
            raise ExportError(lost)
        exported, flattened = with_plain_trees(exported, specs)
        return exported, flattened, api.serialize(exported, options.vjp_order)
    except BuilderSizeError as error:
        raise ExportError(
            f"{case.test}: expected an artifact of less than 2 GB, as flatbuffers are, found a module of "
            f"{len(exported.mlir_module_serialized) / 1e9:.1f} GB. Constants take most of it: pass large arrays, such "
            "as weights, as arguments. Their values are then stored once, in inputs.npz."
        ) from error


def _allowed_in(case: Case, artifact: Artifact) -> Case:
    """Return a case whose option `allow` has only called targets and unknown parts that are in the artifact."""
    if not case.options.allow:
        return case
    names = {call.target for call in artifact.custom_calls} | {part.name for _, part in artifact.unread}
    allow = {name: reason for name, reason in case.options.allow.items() if name in names}
    return replace(case, options=replace(case.options, allow=allow))


def _platforms(case: Case) -> tuple[str, ...]:
    return tuple(case.options.platforms or (api.platform_name(),))


def _options(case: Case, mesh: dict[str, int], without_outputs: str) -> Options:
    """Return the options of a case in the form of the manifest, with texts in place of objects of jax."""
    # Whether its outputs show something is known once all its calls were made: see `require_values`.
    of_case = {*Options.__struct_fields__} - {"nothing_to_compare"}
    values = {name: getattr(case.options, name) for name in of_case}
    values |= {"platforms": _platforms(case), "mesh": mesh, "without_outputs": without_outputs}
    values |= {name: dict(values[name]) for name in ("allow", "disabled_checks")}
    values |= {name: _texts(values[name]) for name in ("symbolic_shapes", "in_specs")}
    return Options(**values)


def _texts(option: Any) -> tuple[str | None, ...]:
    """Return the value of an option for each argument as text, after the argument's name if the option has names.

    Such a text is ``mask: b, 4``.
    """
    if isinstance(option, Mapping):
        return tuple(f"{argument}: {value}" for argument, value in option.items())
    values = (option,) if isinstance(option, str) else option or ()
    return tuple(value if value is None else str(value) for value in values)


def _without_locations() -> dict[str, Any]:
    """Return the settings that make this jax leave source locations out of artifacts."""
    return {name: value for name, value in _WITHOUT_LOCATIONS.items() if name in jax.config.values}


@contextmanager
def _settings_of(case: Case, *, traced_anew: bool) -> Iterator[None]:
    """Set the settings of jax for the export of a case, inside a `with` block.

    The settings leave out source locations, which hold paths of this machine. So an unchanged function mostly exports
    the same bytes, and needs no further comparison. If `traced_anew` is true, earlier traces, which have locations, are
    removed.
    """
    values = _without_locations()
    if case.options.calling_convention_version is not None:
        values["jax_export_calling_convention_version"] = case.options.calling_convention_version
    if case.options.ignore_forward_compatibility:
        values["jax_export_ignore_forward_compatibility"] = True
    with api.temporary_settings(case.test, values):
        if traced_anew:
            jax.clear_caches()  # earlier traces have locations, which the settings do not remove
        yield


def current_flags() -> Flags:
    """Return the settings of `FLAGS` as they are now, for the manifest."""
    known: dict[str, Any] = jax.config.values
    return {
        name: value if isinstance(value, (bool, int, str, type(None))) else str(value)
        for name in FLAGS
        if name in known and (value := getattr(jax.config, name, known[name])) is not ...
    }


def _jaxpr(case: Case, specs: Arguments) -> Any:
    """Return the closed jaxpr of the function."""
    # jax.jit has trace() since 0.4.30, and knows static arguments. Before, the jit itself is an equation of the printed
    # jaxpr.
    if hasattr(case.function, "trace"):
        return case.function.trace(*specs.args, **specs.kwargs).jaxpr
    static = tuple(key for key in specs.static if isinstance(key, int))
    named = {name: value for name, value in specs.kwargs.items() if name in specs.static}
    traced = jax.make_jaxpr(functools.partial(case.function, **named), static_argnums=static)
    return traced(*specs.args, **specs.dynamic[1])
