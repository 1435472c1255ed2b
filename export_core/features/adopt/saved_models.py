"""The functions in a SavedModel as artifacts: the module of each, in the envelope that jax.export writes around it."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from export_core.artifact import Artifact, ArtifactError, Aval, DisabledCheck, Envelope, Tree, read, read_bytes
from export_core.artifact.bytecode.module import Module
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import ByteSpan, Dim
from export_core.artifact.envelope.formats import MEMORY_SPACES, fields_of, format_of, wire_version
from export_core.artifact.envelope.schema import DTYPES
from export_core.artifact.errors import guarded
from export_core.artifact.main_check import CONSTANT, KEY_WORDS, NEWEST, PLATFORM, check_main, element_of
from export_core.artifact.readers import loads, readers_of_runtime
from export_core.features.adopt.archive import Candidate
from export_core.goldens import GoldenError, Writer
from export_core.goldens.adopt import envelope_of, writer_of
from export_core.releases import Calendar
from export_core.releases.calendar_entries import shipped_entries, shipped_runtimes

_ADD = "Instead, add the artifact of jax.export that it was made from."
_OLDEST_CONVENTION = 9  # What jax.export has written since jax 0.4.26.
_ELEMENTS = {element_of(dtype): dtype for dtype in DTYPES if dtype not in (*KEY_WORDS, "float0")}
_TENSOR = re.compile(r"tensor<((?:\d+x|\?x)*)([^,]+)>")


def functions_of(candidates: Iterable[Candidate | GoldenError]) -> Iterator[Candidate | GoldenError]:
    """Yield these candidates, each SavedModel with several functions replaced by a candidate for each function.

    The case of such a candidate has the function's number at its end, such as ``model.1``.
    """
    for candidate in candidates:
        functions = 0
        if isinstance(candidate, Candidate):
            with contextlib.suppress(ArtifactError):  # reported when it is drafted
                model = read(candidate.file).saved_model
                functions = len(model.calls) if model else 0
            for number in range(functions if functions > 1 else 0):
                yield replace(candidate, case=f"{candidate.case}.{number + 1}", function=number)
        if functions <= 1:
            yield candidate


def read_candidate(candidate: Candidate, calendar: Calendar) -> tuple[Artifact, Writer, list[str]]:
    """Return the artifact of a candidate, its writer, and a remark if it is a function of a SavedModel.

    Raises:
        ArtifactError: The file cannot be read.
        GoldenError: The writer is not known, or no artifact can be made of the function.
    """
    artifact = read(candidate.file)
    if artifact.saved_model is None:
        envelope_of(artifact)  # a module without a calling convention cannot be a golden, whoever wrote it
        return artifact, writer_of(artifact, calendar, candidate.writer), []
    writer = writer_of(artifact, calendar, candidate.writer)
    title = artifact.saved_model.calls[candidate.function].title
    artifact = exported(artifact, candidate.function, writer.jax)
    remark = f"{title} in the envelope of jax.export; {_loaded_by(artifact)}"
    return artifact, writer_of(artifact, calendar, f"{writer.jaxlib}-jax{writer.jax}"), [remark]


def exported(model: Artifact, function: int, jax: str) -> Artifact:
    """Return a function in a SavedModel as the artifact that the release `jax` would have serialized.

    Its arguments and results have the types of `main`. They are flat, since the SavedModel has lost their trees.

    Raises `GoldenError` if the SavedModel does not say all that an artifact needs.
    """
    assert model.saved_model is not None
    call, module = model.saved_model.calls[function], model.modules[function]
    name, number = f"{model.name}: {call.title}", format_of(jax)
    if not _OLDEST_CONVENTION <= call.version <= NEWEST or call.function_list or call.unknown:
        also = [*call.function_list, *(f"the unknown attribute {attribute}" for attribute in call.unknown)]
        raise GoldenError(
            f"{name}: expected calling convention {_OLDEST_CONVENTION} to {NEWEST}, no functions of TensorFlow and no "
            f"unknown attributes, found {', '.join([f'convention {call.version}', *also])}. {_ADD}"
        )
    several = len(call.platforms) > 1
    in_avals, out_avals = _avals_of(module, name, number, several=several)
    leaf, code = Tree("leaf"), module.serialized()
    symbolic = any(isinstance(dim, str) for aval in in_avals for dim in aval.shape)
    envelope = Envelope(
        fun_name=call.node,
        in_tree=Tree("tuple", (Tree("tuple", (leaf,) * len(in_avals)), Tree("dict"))),
        in_avals=in_avals,
        out_tree=Tree("tuple", (leaf,) * len(out_avals)),
        out_avals=out_avals,
        platforms=tuple(platform.lower() for platform in call.platforms),
        nr_devices=module.attributes.get("mhlo.num_partitions", 1),
        in_shardings=(None,) * len(in_avals),
        out_shardings=(None,) * len(out_avals),
        ordered_effects=(),
        unordered_effects=(),
        disabled_checks=tuple(
            DisabledCheck(kind, target or None) for kind, _, target in (x.partition(":") for x in call.disabled_checks)
        ),
        calling_convention_version=call.version,
        module_kept_var_idx=tuple(range(len(in_avals))),
        uses_global_constants=symbolic or several,
        vjp=None,
        jax_version=jax,
        serialization_version=wire_version(number),
        format_range=(number, number),
        slots=fields_of(number),
        unknown_fields=(),
        module_source=ByteSpan(code, 0, len(code)),
    )
    data = guarded(lambda: encode(envelope), name)  # numbers that have no room there
    artifact = read_bytes(data, name)
    if problems := check_main(artifact):
        raise GoldenError(f"{name}: expected a module as jax.export writes it, found a problem: {problems[0]}")
    return artifact


def _avals_of(module: Module, name: str, number: int, *, several: bool) -> tuple[tuple[Aval, ...], tuple[Aval, ...]]:
    """Return the types of the arguments and results of `main`, in the serialization format `number`.

    `several` is whether `main` first takes the index of a platform. Raises `GoldenError` for several symbolic
    dimensions: a module lists their names, but does not say which name each size in a shape has.
    """
    constants = (attributes.get(CONSTANT) for f in module.functions for attributes in f.arg_attrs)
    symbols = {name for name in constants if isinstance(name, str)} - {PLATFORM}
    if module.main is None:
        raise GoldenError(f"{name}: expected a module with a function main, found none. {_ADD}")
    if len(symbols) > 1:
        found = f"{', '.join(sorted(symbols))}, and no record of which size has which name"
        raise GoldenError(f"{name}: expected a module with at most one symbolic dimension, found {found}. {_ADD}")
    symbol = next(iter(symbols), "")
    space = "device" if number >= MEMORY_SPACES else None

    def avals(types: Sequence[str]) -> tuple[Aval, ...]:
        found = []
        for kind in types:
            tensor = _TENSOR.fullmatch(kind)
            if tensor is None or (dtype := _ELEMENTS.get(tensor[2])) is None:
                raise GoldenError(f"{name}: expected tensors of a dtype that jax has, found {kind}. {_ADD}")
            if "?" in tensor[1] and not symbol:
                raise GoldenError(f"{name}: expected sizes that are numbers or have a name, found {kind}. {_ADD}")
            sizes = tensor[1].split("x")[:-1]
            shape: tuple[Dim, ...] = tuple(symbol if size == "?" else int(size) for size in sizes)
            found.append(Aval(dtype, shape, space))
        return tuple(found)

    return avals(module.main.inputs[several:]), avals(module.main.outputs)


def _loaded_by(artifact: Artifact) -> str:
    readers = readers_of_runtime("savedmodel", shipped_runtimes(), shipped_entries())
    versions = [load.reader.release.version for load in loads(artifact, readers) if load.ok]
    return f"loaded by TensorFlow {', '.join(versions)}" if versions else "loaded by no TensorFlow that is known"
