"""The coverage of a folder of goldens: targets, primitives, dtypes, effects, features and formats, read without jax."""

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import structs

from export_core.artifact.artifact import Artifact
from export_core.artifact.audit import belongs
from export_core.artifact.envelope.fields import Envelope, Tree
from export_core.artifact.envelope.formats import format_in_words
from export_core.base.layout import aligned
from export_core.base.platforms import PLATFORMS
from export_core.base.text import printable
from export_core.goldens import Golden, Manifest

SECTIONS = ("targets", "primitives", "dtypes", "effects", "features", "formats")


@dataclass(frozen=True)
class Row:
    """The cases that use one feature, such as a primitive: all of them, those of each platform, and their writers."""

    cases: set[str] = field(default_factory=set)
    platforms: dict[str, set[str]] = field(default_factory=lambda: {platform: set() for platform in PLATFORMS})
    writers: set[tuple[datetime.date, str]] = field(default_factory=set)


Coverage = dict[str, dict[str, Row]]  # The rows of each section by name.


def coverage(goldens: Iterable[Golden]) -> Coverage:
    """Return which targets, primitives, dtypes, effects, features and formats these goldens cover.

    Primitives are known only for goldens that were exported here, since an adopted artifact has no jaxpr.

    Raises:
        ArtifactError: An artifact cannot be read.
        GoldenError: A manifest cannot be read.
    """
    rows: Coverage = {section: {} for section in SECTIONS}
    for golden in goldens:
        manifest = golden.manifest
        artifact = golden.read_artifact()
        exported_for = manifest.options.platforms
        for section, name in sorted({*_of_artifact(artifact), *_of_manifest(manifest)}):
            row = rows[section].setdefault(name, Row())
            row.cases.add(manifest.case)
            row.writers.add((manifest.writer.built, manifest.writer.jaxlib))
            for platform in exported_for:
                if section != "targets" or belongs(name, platform):
                    row.platforms.setdefault(platform, set()).add(manifest.case)
    return rows


def _of_manifest(manifest: Manifest) -> Iterator[tuple[str, str]]:
    options = manifest.options
    if manifest.jaxpr is not None:
        yield from (("primitives", name) for name in manifest.jaxpr.primitives)
        yield from (("effects", name) for name in manifest.jaxpr.effects)
        if manifest.jaxpr.constants:
            yield "features", "closed-over constants"
    used = {
        **structs.asdict(options),  # the fields are named like the marker's keywords
        "platforms": False,  # they are columns
        "several platforms": len(options.platforms) > 1,
        "64-bit types": manifest.flags.get("jax_enable_x64"),
        "flattened trees": manifest.flattened,
        "added without its source": manifest.is_adopted,
        "further calls": any(check.inputs and not check.refused and not check.vjp for check in manifest.checks),
        "refused calls": any(check.inputs and check.refused for check in manifest.checks),
        "spread_over": any(check.spread for check in manifest.checks),
    }
    yield from (("features", name) for name, value in used.items() if value)


def _of_artifact(artifact: Artifact) -> Iterator[tuple[str, str]]:
    yield from (("targets", call.target) for call in artifact.custom_calls)
    yield "formats", f"StableHLO {artifact.module.stablehlo_version}"
    yield "formats", f"MLIR bytecode {artifact.module.bytecode_version}"
    envelope = artifact.envelope
    if envelope is None:
        yield "formats", "bare StableHLO"
        return
    # The format's number in the file, which is wrong before jax 0.11.1; else all that it can be.
    first, last = envelope.format_range
    wire = envelope.serialization_version
    number = str(max(first, wire)) if wire >= first or first == last else format_in_words(first, last)
    yield "formats", f"serialization format {number}"
    yield "formats", f"calling convention {envelope.calling_convention_version}"
    for level in envelope.levels:
        yield from (("dtypes", aval.dtype) for aval in (*level.in_avals, *level.out_avals))
    for effect in (*envelope.ordered_effects, *envelope.unordered_effects):
        yield "effects", effect.rpartition(".")[2].rstrip("'>")  # as a jaxpr has it: "<class 'module.Name'>"
    yield from (("features", name) for name in _features(envelope))


def _features(envelope: Envelope) -> Iterator[str]:
    used = {
        "ordered effects": envelope.ordered_effects,
        f"derivatives of order {envelope.vjp_order}": envelope.vjp_order,
        "several devices": envelope.nr_devices > 1,
        "unused arguments": len(envelope.module_kept_var_idx) < len(envelope.in_avals),
    }
    yield from (name for name, value in used.items() if value)
    for sharding in (*envelope.in_shardings, *envelope.out_shardings):
        if sharding is not None:
            yield type(sharding).__name__
            yield from (f"{kind} mesh axes" for kind in getattr(getattr(sharding, "mesh", None), "axis_types", ()))
    avals = envelope.in_avals + envelope.out_avals
    yield from (f"memory space {aval.memory_space}" for aval in avals if aval.memory_space)
    by_position_or_name = envelope.in_tree.children
    if any(part.kind == "dict" and part.children for part in by_position_or_name):
        yield "keyword arguments"
    for tree in (*(tree for part in by_position_or_name for tree in part.children), envelope.out_tree):
        yield from (f"tree of {kind}" for kind in _kinds(tree) if kind != "leaf")


def _kinds(tree: Tree) -> Iterator[str]:
    yield tree.kind
    for child in tree.children:
        yield from _kinds(child)


def coverage_text(goldens: Iterable[Golden]) -> str:
    """Return the coverage of goldens as text, with a table for each section.

    Each row has a name, the number of its cases in total and by platform, and their writers.
    """
    lines: list[str] = []
    for section, names in coverage(goldens).items():
        rows: list[tuple[str, ...]] = [("name", "cases", *PLATFORMS, "writers")]
        for name, row in sorted(names.items()):
            counts = (str(len(row.platforms[platform]) or "") for platform in PLATFORMS)
            writers = ", ".join(jaxlib for _, jaxlib in sorted(row.writers))
            rows.append((printable(name), str(len(row.cases)), *counts, writers))
        lines += [f"{section}: {len(names)}", *aligned(rows, indent="  "), ""]
    return "\n".join(lines)
