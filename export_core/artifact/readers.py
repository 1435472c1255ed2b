"""The needs of an artifact, the releases of jaxlib and other runtimes that can load it, and why others cannot.

What a module needs comes from its content, not from the producer's name, which jaxlib never checks. A jaxlib loads an
artifact if `jax.export.deserialize` returns and knows the number of devices, and `mlir_module()` parses. Whether the
artifact compiles and runs is for the matrix to find out. Rules of the envelope are read from the releases' own
`deserialize`; two rules of the module (sdy, ranges) are measured, since StableHLO's sources do not have them.

A runtime that is not jaxlib gets the module and how to call it. It loads an artifact if it takes the calling convention
and parses the module. A function that takes an artifact or a module raises `ArtifactError` if a module cannot be read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from export_core.artifact.artifact import Artifact
from export_core.artifact.bytecode.module import Module
from export_core.artifact.envelope.fields import Envelope, HloSharding, Tree
from export_core.artifact.saved_model import SavedModel
from export_core.artifact.unread import RANGE_LOCATION, unread_in_tables, vhlo_tables
from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple
from export_core.releases.calendar_entries import CalendarEntry, RuntimeEntries
from export_core.releases.names import version_numbers

if TYPE_CHECKING:
    from typing import Any


CONVERSION = "`jaxexport convert "  # Begins the command that a reason advises, if a conversion may help.
CONVERT = ", or `jaxexport convert FILE"  # The beginning of the second remedy, after how to export otherwise.
_NO_EXPORT = ", nor run what jax exports in its place"  # Why no other export is advised.
_CONVERTED = " what `jaxexport convert` makes of it"  # Where the reader fails on a converted artifact too.
_ADVICE = f"(?:{_NO_EXPORT})?: (?:export |`jaxexport convert ).*|, and [a-z ]+{_CONVERTED}.*"
"""A pattern for the end of a reason that advises something, or says that no conversion helps."""
OLDEST = (0, 9)  # the oldest version that StableHLO promises to read
# The first jax whose deserialize knows a dtype that came after the first format. Source: commits on jax's serialization
# schema.
_DTYPES_SINCE = {
    "float0": "0.4.24",
    **dict.fromkeys(("float8_e4m3", "float8_e3m4"), "0.4.36"),
    "float8_e8m0fnu": "0.5.1",
    "float4_e2m1fn": "0.5.3",
    **dict.fromkeys(("key<fry>", "key<rbg>", "key<urbg>"), "0.6.0"),
}
_VERSIONS_SINCE = {2: "0.4.24", 3: "0.4.35"}  # The first jax whose deserialize takes a serialization version.
_OF_TENSORFLOW = ("tensorflow", "savedmodel")  # Runtimes that load a SavedModel.
_OF_XLA = ("tensorflow==", "pjrt==")  # Runtimes that compile with XLA.
_SDY_SINCE = "0.7.0"  # jaxlib that parses the sdy dialect in a portable artifact; measured
_RANGES_SINCE = "0.4.36"  # jaxlib that parses locations with a range; measured
_NO_RANGES_SINCE = "0.8.1"  # jax whose exports have no such locations, as those of 0.6.2 have; measured
NO_DEVICES = "jax before 0.8.2 finds no number of devices: artifacts have it in another field since jax 0.9.1"


def fails_when_called(reasons: Sequence[str]) -> bool:
    """Return whether the only reason why a reader does not load an artifact is `NO_DEVICES`.

    Such a reader, jax before 0.8.2, takes the artifact for one that was exported for 0 devices, and fails only at the
    first call.
    """
    return [*reasons] == [NO_DEVICES]


def refusal_in_words(reasons: Sequence[str]) -> str:
    """Return what a reader does with an artifact that it does not load, for these reasons: ``cannot load it``."""
    return "loads it, and cannot call it" if fails_when_called(reasons) else "cannot load it"


def without_advice(reason: str) -> str:
    """Return the reason why a runtime does not load an artifact, without the advice at its end."""
    return re.sub(_ADVICE, "", reason)


def without_advice_on(load: LoadResult) -> LoadResult:
    """Return the result of loading an artifact without the advice on how to export or convert it otherwise."""
    return load._replace(reasons=tuple(map(without_advice, load.reasons)))


def advises_conversion(load: LoadResult) -> bool:
    """Return whether the reasons why a reader does not load an artifact advise to convert the artifact."""
    return any(CONVERSION in reason for reason in load.reasons)


def without_conversion(load: LoadResult, does: str, why: str) -> LoadResult:
    """Return the result of loading an artifact with the reason why conversion does not help, in place of its advice.

    `does` is what the reader does with the converted artifact, such as ``does not compile it``, and `why` is the
    reason.
    """
    reasons = [without_advice(reason) for reason in load.reasons]
    reasons[-1] += f", and {does.replace(' it', _CONVERTED, 1)}: {why}"
    return load._replace(reasons=tuple(reasons))


@functools.lru_cache(maxsize=1024)  # every artifact is compared with the same few dozen
def version_pair(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a StableHLO version, such as (0, 9) for 0.9.2.

    Patch releases change nothing about what can be read. Raises `ValueError` if `version` is not a version.
    """
    return version_numbers(version)[:2]


class Needs(NamedTuple):
    """The oldest StableHLO version that reads a module, and what else a reader must know to read the module."""

    stablehlo: str  # The oldest StableHLO version that reads the module.
    exact: bool  # Whether that is exact; if false, that version or a later one is needed.
    set_by: tuple[str, ...]  # The operations and attributes that need that version.
    unknown: tuple[str, ...]  # Operations and attributes that this reader does not know.
    dialects: tuple[str, ...]  # Dialects in the module besides builtin and vhlo.
    range_locations: bool  # Whether the module has locations with a range, which older releases cannot read.


def needs(module: Module) -> Needs:
    """Return what a reader must know to read a module.

    The operations of the module are read only if it has custom calls. Otherwise its tables are enough.
    """
    parts, by_version = module.tables, _came_with(module)
    unknown = tuple(dict.fromkeys(map(str, unread_in_tables(parts))))
    newest = max(by_version, default=OLDEST)
    try:  # a rule that came without a new name would not show in the tables of an older version than the writer's
        newer = version_pair(module.stablehlo_version or "") > version_pair(vhlo_tables()["through"])
    except ValueError:
        newer = False
    return Needs(
        stablehlo=".".join(map(str, newest)),
        exact=not unknown and not newer,
        set_by=tuple(sorted(by_version.get(newest, ()))),
        unknown=unknown,
        dialects=tuple(name for name in dict.fromkeys(parts.dialects) if name not in ("builtin", "vhlo")),
        range_locations=("builtin", RANGE_LOCATION) in parts.codes(parts.attributes),
    )


def _came_with(module: Module) -> dict[tuple[int, ...], set[str]]:
    """Return the names of the operations, attributes and types in a module, by the StableHLO version that added them.

    Names that the version `OLDEST` already has are left out.

    The rule of StableHLO 0.17 for reductions with different element types is left out, too, since every jaxlib with
    `jax.export` is newer.
    """
    # A writer puts nothing into the tables that the module does not use, so the walk would find nothing more.
    parts = module.tables
    seen = {"ops": parts.op_names, "attrs": parts.codes(parts.attributes), "types": parts.codes(parts.types)}
    by_version: dict[tuple[int, ...], set[str]] = {}
    for kind, keys in seen.items():
        for version, name in filter(None, map(_since(kind).get, keys)):
            by_version.setdefault(version, set()).add(name)
    # What custom calls require without a name in the tables: rules of VhloToVersion.cpp for one operation.
    if any(name.startswith("vhlo.custom_call") for name in parts.op_names):
        if module.contents.typed_ffi:
            by_version.setdefault((1, 3), set()).add("custom_call with a dictionary of arguments")
        if any("future_v1" in names for names in by_version.values()):
            by_version.setdefault((1, 17), set()).add("custom_call with a future")
    return by_version


@functools.cache
def _since(kind: str) -> dict[Any, tuple[tuple[int, ...], str]]:
    """Return, by key, the StableHLO version after `OLDEST` that added an operation, attribute or type, and its name.

    `kind` is ops, attrs or types. The key of an operation is its full name; the key of an attribute or a type is its
    dialect and code.
    """
    came: dict[Any, tuple[tuple[int, ...], str]] = {}
    for key, entry in vhlo_tables()[kind].items():
        name, since = (key, entry[0]) if kind == "ops" else entry[:2]
        if (pair := version_pair(since)) > OLDEST:
            came[f"vhlo.{key}" if kind == "ops" else ("vhlo", int(key))] = pair, name
    return came


def _unversioned(name: str) -> str:
    """Return a name of VHLO without its version, such as `tanh` for `tanh_v2`."""
    # No pattern: to compile one takes a third of a millisecond.
    without = name.rstrip("0123456789")
    return without[:-1].removesuffix("_") if without != name and without.endswith(("v", "V")) else name


@functools.cache
def _versions_by_name() -> dict[str, set[tuple[int, ...]]]:
    """Return, by name without version, the StableHLO versions after `OLDEST` that added a version of this name."""
    came: dict[str, set[tuple[int, ...]]] = {}
    for kind in ("ops", "attrs", "types"):
        for version, name in _since(kind).values():
            came.setdefault(_unversioned(name), set()).add(version)
    return came


def _versions_of_names(module: Module) -> set[tuple[int, ...]]:
    """Return the StableHLO versions after `OLDEST` that added any version of a name in a module.

    The names are those of operations, attributes and types that `_came_with` returns. The versions of a name count
    whether or not this module uses them.
    """
    came = _came_with(module)
    plain = {_unversioned(name) for names in came.values() for name in names}
    return {*came, *(version for name in plain for version in _versions_by_name().get(name, ()))}


class Reader(NamedTuple):
    """A release of jaxlib or of another runtime, as a reader of artifacts."""

    release: CalendarEntry  # The release. A release of another runtime has a jaxlib only if it is built on one.
    stablehlo: str | None  # Its StableHLO version. If not measured, the oldest possible, by the release before.
    stablehlo_before: str | None = None  # The same version. If not measured, the newest possible, by the release after.
    exporters: tuple[tuple[tuple[int, ...], str], ...] = ()
    """The jax releases, oldest first, each after the StableHLO version for which it exports; empty for a jaxlib."""

    @property
    def knows_shardy(self) -> bool:
        """Whether the reader parses the sdy dialect in a portable artifact."""
        if not self.release.jaxlib:
            return "sdy" in self.release.dialects
        return version_numbers(self.release.jaxlib) >= version_numbers(_SDY_SINCE)

    @property
    def knows_ranges(self) -> bool:
        """Whether the reader parses locations with a range, which MLIR got when StableHLO was at version 1.8."""
        if not self.release.jaxlib:  # IREE 3.0.0 had 1.8 and no ranges, 3.1.0 of the next January both
            return self.release.built >= "2024-12" and version_pair(self.stablehlo or "0") >= (1, 8)
        return version_numbers(self.release.jaxlib) >= version_numbers(_RANGES_SINCE)

    def exporter(self, added: Collection[tuple[int, ...]]) -> str:
        """Return the newest jax whose export of a module this reader can read; empty if no such jax is known.

        `added` are the StableHLO versions that added versions of the module's names, as `_versions_of_names` returns
        them.
        """
        has = version_pair(self.stablehlo_before or "0")
        too_new = min(version for version in added if version > has)
        return next((jax for target, jax in reversed(self.exporters) if target < too_new), "")

    def instead(self, export: str) -> str:
        """Return advice on how else to get an artifact that the reader loads, as the end of a sentence.

        `export` is the advice to export in another way; it is empty if that does not help. For jaxlib, the result is
        empty.
        """
        remedy = f"{export}{CONVERT} --for {self.release.runtime} -o OUT`"
        return f": {remedy if export else remedy.removeprefix(', or ')}" if self.release.runtime else ""


class LoadResult(NamedTuple):
    """The answer whether a reader loads an artifact, with the reasons why it does not."""

    reader: Reader
    ok: bool | None  # Whether the reader loads the artifact; None if that cannot be known.
    reasons: tuple[str, ...]  # Why the reader does not load it, or what is not known; empty if it loads it.


def readers_of(releases: Sequence[CalendarEntry]) -> dict[str, Reader]:
    """Return the releases of a calendar as readers, by jaxlib version, the oldest build first.

    `releases` must be in this order already.
    """
    measured = [release.stablehlo[0] for release in releases]
    readers = {}
    for place, release in enumerate(releases):
        before = next(filter(None, reversed(measured[: place + 1])), None)
        after = next(filter(None, measured[place:]), None)
        readers[release.jaxlib] = Reader(release, before, after)
    return readers


def readers_of_runtime(
    name: str, runtimes: Mapping[str, RuntimeEntries], releases: Sequence[CalendarEntry]
) -> list[Reader]:
    """Return the releases of a runtime as readers, the oldest build first.

    Args:
        name: the runtime.
        runtimes: the releases of each runtime, or the name of another runtime that has the same releases.
        releases: the releases of jaxlib.
    """
    exporters = tuple((version_pair(one.stablehlo[1]), one.jax) for one in releases if one.stablehlo[1])
    entries = runtimes[name]
    while isinstance(entries, str) and entries in runtimes:
        entries = runtimes[entries]
    if isinstance(entries, str):
        known = [
            (reader.release, reader.stablehlo, reader.stablehlo_before) for reader in readers_of(releases).values()
        ]
    else:
        known = [(entry, entry.stablehlo[0], entry.stablehlo[0]) for entry in entries]
    return [
        Reader(release._replace(jax="", runtime=f"{name}=={release.version}"), oldest, newest, exporters)
        for release, oldest, newest in known
    ]


def loads(artifact: Artifact, readers: Iterable[Reader]) -> tuple[LoadResult, ...]:
    """Return, for each reader, whether it loads an artifact with its nested VJPs, and if not, why."""
    # The versions of names are looked up once, and only if a reader refuses one.
    modules = [
        (module, needs(module), functools.cache(functools.partial(_versions_of_names, module)))
        for module in artifact.modules
    ]
    levels = artifact.envelope.levels if artifact.envelope is not None else ()
    results = []
    in_jaxlib_alone: bool | None = None  # Asked once, and only if a runtime refuses the artifact.
    for reader in readers:
        reasons = [reason for level in levels for reason in _envelope_reasons(level, reader)]
        if artifact.saved_model is not None:
            reasons += saved_model_reasons(artifact.saved_model, reader)
        fields = () if reader.release.runtime else [field for level in levels for field in level.unknown_fields]
        doubts = [f"the field {field.table}[{field.index}] is not known" for field in fields]
        for module, need, added in modules:
            for is_sure, text in module_problems(module, need, reader, added):
                (reasons if is_sure else doubts).append(text)
        if reader.release.runtime and (reasons or doubts) and in_jaxlib_alone is None:
            in_jaxlib_alone = _runs_in_jaxlib_alone(artifact)
        if reader.release.runtime and in_jaxlib_alone:  # Neither another export nor a conversion helps.
            reasons, doubts = (list(map(without_advice, texts)) for texts in (reasons, doubts))
        if artifact.saved_model is not None:  # which no conversion writes
            reasons, doubts = ([text.partition(CONVERT)[0] for text in texts] for texts in (reasons, doubts))
        # Doubts count only without reasons: a reader that certainly refuses one part refuses the whole.
        ok = False if reasons else None if doubts else True
        results.append(LoadResult(reader, ok, tuple(dict.fromkeys(reasons or doubts))))
    return tuple(results)


def _runs_in_jaxlib_alone(artifact: Artifact) -> bool:
    """Return whether only jaxlib runs an artifact, because of several devices or custom calls that only jaxlib has."""
    from export_core.artifact.audit import calls_of_devices, calls_of_jax  # reading alone does not need its tables

    is_for_cpu = artifact.envelope is None or "cpu" in artifact.envelope.platforms
    return artifact.devices > 1 or bool(calls_of_jax(artifact) or (not is_for_cpu and calls_of_devices(artifact)))


def _envelope_reasons(envelope: Envelope, reader: Reader) -> Iterator[str]:
    """Yield the reasons why a reader refuses an envelope; nothing if it accepts the envelope.

    Which envelopes a jax reads depends on its version number and not on its date: 0.8.3 is younger than 0.9.0 and reads
    less. A nightly build counts as the release that it becomes.
    """
    yield from _convention_reasons(envelope.calling_convention_version, reader)
    if reader.release.runtime:  # it never sees the rest of the envelope
        return
    jax = version_numbers(reader.release.jax)
    version = envelope.serialization_version
    short = "nr_devices_short" in envelope.slots
    # Each release had a gate of its own: its own number alone, then [2, 3], and none at all since 0.8.2.
    if version == 1:
        if (0, 4, 24) <= jax < (0, 8, 2):
            yield "jax from 0.4.24 to before 0.8.2 refuses serialization version 1"
    elif jax < version_numbers(taken := _VERSIONS_SINCE.get(version, "0.8.2")):
        yield f"jax before {taken} refuses serialization version {version}"
    if jax < (0, 8, 2) and not short:
        yield NO_DEVICES
    # jax calls an artifact expired by its content, not by a date or a version: it looks for these two things.
    if jax >= (0, 11, 1):
        if short and "nr_devices" not in envelope.slots:
            yield "jax from 0.11.1 on calls it expired: written before 0.8.2"
        elif any(isinstance(sharding, HloSharding) for sharding in (*envelope.in_shardings, *envelope.out_shardings)):
            yield "jax from 0.11.1 on calls it expired: its shardings were written before 0.9.0"
    for dtype in {aval.dtype for aval in (*envelope.in_avals, *envelope.out_avals)}:
        since = _DTYPES_SINCE.get(dtype)
        if since is not None and jax < version_numbers(since):
            yield f"jax before {since} does not know the dtype {dtype}"
    if jax >= (0, 10, 0) and any(check.kind == "shape_assertions" for check in envelope.disabled_checks):
        yield "jax from 0.10.0 on does not know the disabled check shape_assertions"
    if jax < (0, 4, 35) and (_has_custom(envelope.in_tree) or _has_custom(envelope.out_tree)):
        yield "jax before 0.4.35 does not know custom pytree nodes"


def _convention_reasons(version: int, reader: Reader) -> Iterator[str]:
    if (most := reader.release.convention) is not None and version > most:
        export = reader.instead(f"export with jax_export_calling_convention_version={most}")
        yield f"{reader.release.title} takes conventions up to {most}{export}"


def saved_model_reasons(saved_model: SavedModel, reader: Reader) -> Iterator[str]:
    """Yield the reasons why a reader refuses a SavedModel, without reasons that lie in its modules.

    A TensorFlow release that does not know the calling convention loads the file, but refuses the first call.
    """
    release = reader.release
    if release.family not in _OF_TENSORFLOW:
        yield f"{release.title} loads no SavedModel: only TensorFlow does"
        return
    # Measured: 2.19.1, which has no attribute use_shardy_partitioner, passes over it.
    for version in sorted({call.version for call in saved_model.calls}):
        yield from _convention_reasons(version, reader)


def _older(reader: Reader, since: str) -> str:
    return reader.release.title if reader.release.runtime else f"jaxlib before {since}"


def module_problems(
    module: Module, need: Needs, reader: Reader, added: Callable[[], Collection[tuple[int, ...]]] | None = None
) -> Iterator[tuple[bool, str]]:
    """Yield each reason why a reader does not load a module, as a pair: whether it is certain, and the reason as text.

    If no reason is certain, the reader may load the module. `added` returns what `_versions_of_names` returns for the
    module; if it is None, that function is called.
    """
    smallest = version_pair(need.stablehlo)
    # A release that was not measured is between two that were. If even the upper one is too old, it cannot read the
    # module; if only the lower one is, the answer is unknown.
    if reader.stablehlo_before is None or reader.stablehlo is None:
        yield False, f"the StableHLO version of {reader.release.title} is not known"
    elif version_pair(reader.stablehlo_before) < smallest:
        names = ", ".join(need.set_by)
        has = f"{reader.release.title} has StableHLO {reader.stablehlo_before}"
        exporter = reader.exporter(added() if added else _versions_of_names(module))
        older = f"with jax {exporter} or older" if exporter else "for an older StableHLO"
        yield True, f"{has}, and {names} came with {need.stablehlo}{reader.instead(f'export {older}')}"
    elif version_pair(reader.stablehlo) < smallest:
        yield False, f"the StableHLO version of {reader.release.title} is not known"
    for name in () if reader.release.jaxlib else need.dialects:
        if name not in ("sdy", *reader.release.dialects):
            yield False, f"it is not known whether {reader.release.title} parses the {name} dialect"
    if "sdy" in need.dialects and not reader.knows_shardy:
        # Without Shardy, jax writes its operations (of PRNG keys too) as custom calls that only XLA itself compiles.
        is_called = any(name.startswith("sdy.") and name != "sdy.mesh" for name in module.tables.op_names)
        is_enough = not is_called or reader.release.runtime.startswith(_OF_XLA)
        export = reader.instead("export with jax_use_shardy_partitioner=False" if is_enough else "")
        # Why the usual advice is missing.
        instead = "" if is_enough or not reader.release.runtime else _NO_EXPORT
        yield True, f"{_older(reader, _SDY_SINCE)} does not parse the sdy dialect{instead}{export}"
    if need.range_locations and not reader.knows_ranges:
        export = reader.instead(f"export with jax {_NO_RANGES_SINCE} or later")
        yield True, f"{_older(reader, _RANGES_SINCE)} does not parse locations with a range{export}"
    yield from ((False, f"it is not known which StableHLO has {name}") for name in need.unknown)
    if not need.exact and not need.unknown:  # the writer's version is above the tables'
        written = version_pair(module.producer.partition("_v")[2])
        if reader.stablehlo is None or version_pair(reader.stablehlo) < written:  # else it surely reads it
            yield False, f"it was written for {module.producer}, newer than any that jaxexport knows"


def _has_custom(tree: Tree) -> bool:
    return tree.kind == "custom" or any(map(_has_custom, tree.children))
