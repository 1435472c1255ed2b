"""The adoption of an artifact whose source code is lost: it becomes a golden, by what it declares itself."""

import ast
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from export_core.artifact import Artifact, Aval, Envelope
from export_core.artifact.hlo_sharding import Spec
from export_core.artifact.writers import contradiction, find_writer
from export_core.base.leaf_names import numbered, path_at
from export_core.base.text import plural
from export_core.base.untrusted import UnexpectedFileError, open_regular, read_named
from export_core.goldens.adopted_mesh import mesh_for, specs_for
from export_core.goldens.arrays import KEYS, PLAIN, GoldenError, Leaf, from_npz, numpy_dtype, to_npz
from export_core.goldens.arrays import nothing_to_compare as shows_nothing
from export_core.goldens.made_inputs import size_of
from export_core.goldens.manifest import UNKNOWN, Comparison, Manifest, Options, Origin, Writer, signature_of
from export_core.goldens.manifest_file import problem_of_plain_name
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS, sha256
from export_core.releases import Calendar
from export_core.releases.calendar_entries import calendar_entries

Arrays = Path | Sequence[Any]  # An .npz, or arrays and leaves in order.

LARGEST_UNPACKED = 1 << 28  # Bytes of arrays that are unpacked from any file.
MOST_TIMES = 16  # How many times its own size the arrays of a larger file may have: no few bytes become gigabytes.


@dataclass(frozen=True, kw_only=True)
class StatedFacts:
    """The facts that a person states about an artifact, beside its arrays."""

    register: Sequence[Path] = ()  # Python modules that readers import first; the golden holds a copy of each.
    mesh: Mapping[str, int] = field(default_factory=dict)  # The mesh, if the artifact does not show it.
    in_specs: Sequence[Spec | None] = ()  # How each flat argument is sharded, if the artifact does not show it.
    nothing_to_compare: str = ""  # Why outputs that show nothing are stored.
    without_outputs: str = ""  # Why there are no outputs.
    origin: Origin | None = None  # Where arrays come from that no person gives.


NOTHING_STATED = StatedFacts()


def adopt_artifact(
    artifact: Artifact,
    inputs: Arrays,
    outputs: Arrays | None,
    case: str,
    writer: Writer,
    given: StatedFacts = NOTHING_STATED,
) -> tuple[Manifest, dict[str, bytes]]:
    """Make the manifest and the files of a golden, as `GoldenStore.write` takes them.

    Args:
        artifact: the artifact.
        inputs: the flat arguments in order, or an .npz with them. Its names are those of `np.savez(file, *leaves)`
            (arr_0, arr_1, …) or those of goldens (0000.bfloat16). A dtype that NumPy lacks may be given as its bytes,
            PRNG keys as their key data.
        outputs: the flat results, in the same form. None for a golden without outputs, or whose writer has yet to
            compute them.
        case: the case of the golden.
        writer: who exported the artifact.
        given: what a person states about it.

    Raises:
        GoldenError: The arrays do not have the dtypes and shapes that the artifact declares, or do not fit its mesh. Or
            the case's name cannot be a folder's, the outputs show nothing, or both outputs and a reason for having
            none are given.
    """
    envelope = envelope_of(artifact)
    if problem := problem_of_plain_name(case):
        raise GoldenError(
            f"--case: expected a name that a folder can have, such as models.attention, found {case!r}, {problem}."
        )
    own_mesh = mesh_for(artifact, given.mesh)
    specs = specs_for(artifact, own_mesh, given.in_specs)
    if given.without_outputs and "cpu" in envelope.platforms:
        raise GoldenError(
            "--without-outputs: expected an artifact for other platforms than cpu, found one for cpu: use --outputs."
        )
    if given.without_outputs and outputs is not None:
        raise GoldenError("expected either --outputs NPZ, or --without-outputs REASON if nothing can compute them.")
    # Inputs are read first, since the shapes of outputs may be expressions of their sizes. In this order, as goldens
    # have always been written: artifact, inputs, outputs, modules.
    sizes: dict[str, int] = {}
    files = {
        ARTIFACT: bytes(artifact.data),
        INPUTS: to_npz(_leaves_of("--inputs", inputs, envelope.in_avals, envelope.argument_paths, sizes)),
    }
    results = None if outputs is None else _results_of(outputs, envelope, sizes, given.nothing_to_compare)
    if results is not None:
        files[OUTPUTS] = to_npz(results)
    files |= {f"{module.stem}.register.py": _read_module(module) for module in given.register}
    manifest = Manifest(
        case=case,
        test="",
        name=None,
        writer=writer,
        flags={"jax_enable_x64": needs_x64(envelope)},
        options=Options(
            platforms=envelope.platforms,
            mesh=own_mesh,
            in_specs=specs,
            register=tuple(module.stem for module in given.register),
            without_outputs=given.without_outputs,
            nothing_to_compare=given.nothing_to_compare if results is not None and shows_nothing(results) else "",
        ),
        comparison=Comparison(),
        signature=signature_of(envelope),
        custom_calls=tuple(sorted({call.target for call in artifact.custom_calls})),
        files={name: sha256(content) for name, content in files.items()},
        inputs_made=given.origin is not None and given.origin.inputs == "made",
        origin=given.origin,
    )
    return manifest, files


def writer_of(artifact: Artifact, calendar: Calendar, named: str | None) -> Writer:
    """Return the writer of an artifact: the one that was named, or else the only one that fits.

    Args:
        artifact: the artifact.
        calendar: all known releases.
        named: a jaxlib such as ``0.11.2``, or with its jax, ``0.10.1-jax0.10.2``.

    Raises:
        GoldenError: Several jaxlibs can have written it, none can, or the named one cannot.
    """
    clues = find_writer(artifact, calendar_entries(calendar))
    jaxlib, _, jax = (named or clues.jaxlib or "").partition("-jax")
    if not jaxlib:
        by = f"jax {clues.jax} wrote it, with one of several jaxlibs" if clues.jax else "the artifact names no writer"
        raise GoldenError(
            f"{artifact.name}: cannot tell which jaxlib wrote it: {by}. Windows are counted from the build date of "
            "that jaxlib: name it with --writer; these fit: "
            f"{', '.join(clues.candidates) or 'none in the calendar'}."
        )
    # An artifact that does not name its jax was most likely written by the jax with the jaxlib's number.
    jax = jax or clues.jax or (jaxlib if jaxlib in calendar.jax else calendar.release(jaxlib).jax)
    known = calendar.jaxlib.get(jaxlib)
    if known and (problem := contradiction(artifact, jax, jaxlib, known.stablehlo)):
        raise GoldenError(f"{artifact.name}: --writer {jaxlib}: {problem}")
    if jax in calendar.jax:
        calendar.pair(jaxlib, jax)
    platforms = artifact.envelope.platforms if artifact.envelope is not None else ()
    return Writer(
        jax=jax,
        jaxlib=jaxlib,
        built=calendar.built(jaxlib),
        python=UNKNOWN,
        platform="cpu" if "cpu" in platforms or not platforms else platforms[0],
    )


def envelope_of(artifact: Artifact) -> Envelope:
    """Return the envelope of an artifact. Raises `GoldenError` for a StableHLO module without an envelope."""
    if artifact.envelope is None:
        raise GoldenError(
            f"{artifact.name}: expected a serialized jax.export.Exported, found a bare StableHLO module, which does "
            "not say how it is called. Export the function again with jax.export."
        )
    return artifact.envelope


def needs_x64(envelope: Envelope) -> bool:
    """Return whether an artifact takes or returns 64-bit values, which jax would narrow if x64 is off."""
    wide = ("int64", "uint64", "float64", "complex128")
    return any(aval.dtype in wide for aval in (*envelope.in_avals, *envelope.out_avals))


def _read_module(path: Path) -> bytes:
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise GoldenError(f"--register {path}: expected a Python module, such as my_targets.py.")
    try:
        source = read_named(path)
        ast.parse(source)
    except OSError as error:
        raise GoldenError(f"--register {path}: cannot read this module: {error.strerror}.") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise GoldenError(f"--register {path}: expected a Python module, found something else: {error}.") from None
    return source


def _leaves_of(
    option: str, given: Arrays, avals: Sequence[Aval], paths: Sequence[str], sizes: dict[str, int]
) -> list[Leaf]:
    """Return arrays as leaves, checked against the declared types.

    `option` names the arrays in messages, and `paths` has the path of each in the arguments or results.
    The sizes of symbolic dimensions that the arrays show are added to `sizes`. Raises `GoldenError` for arrays that do
    not fit.
    """
    where = f"{option} {given}" if isinstance(given, Path) else option.removeprefix("--")
    arrays = _read_arrays(given, where) if isinstance(given, Path) else given
    if len(arrays) != len(avals):
        raise GoldenError(
            f"{where}: expected {plural(len(avals), 'array')} ({', '.join(map(str, avals)) or 'none'}), "
            f"found {len(arrays)}. They are the leaves of the arguments or results, in order: "
            "np.savez(file, *jax.tree.leaves(values))."
        )
    names = [f"{where}: array {numbered(number, path_at(paths, number))}" for number in range(len(avals))]
    leaves = [_leaf(name, array, aval) for name, array, aval in zip(names, arrays, avals, strict=True)]
    # All symbols first, since an expression (2*b) may come before the array that shows its symbol (b).
    for leaf, aval in zip(leaves, avals, strict=True):
        if len(leaf.shape) == len(aval.shape):
            for dim, size in zip(aval.shape, leaf.shape, strict=True):
                if isinstance(dim, str) and dim.isidentifier():
                    sizes.setdefault(dim, size)
    for name, leaf, aval in zip(names, leaves, avals, strict=True):
        expected = [size_of(dim, sizes) for dim in aval.shape]
        if len(expected) != len(leaf.shape) or any(
            want not in (None, size) for want, size in zip(expected, leaf.shape, strict=True)
        ):
            known = f" with {', '.join(f'{name} = {size}' for name, size in sizes.items())}" if sizes else ""
            raise GoldenError(f"{name}: expected {aval}{known}, found {leaf}.")
    return leaves


def _results_of(outputs: Arrays, envelope: Envelope, sizes: dict[str, int], nothing_to_compare: str) -> list[Leaf]:
    """Return the outputs as leaves.

    Raises `GoldenError` if they show nothing about the function and `nothing_to_compare` gives no reason for it.
    """
    results = _leaves_of("--outputs", outputs, envelope.out_avals, envelope.result_paths, sizes)
    if (problem := shows_nothing(results)) and not nothing_to_compare:
        where = f"--outputs {outputs}" if isinstance(outputs, Path) else "outputs"
        raise GoldenError(
            f"{where}: expected outputs that show what the function computes, but {problem}. "
            "Give inputs for which it computes numbers, or a reason to store it anyway: --nothing-to-compare REASON."
        )
    return results


def _read_arrays(path: Path, where: str) -> list[Any]:
    """Return the arrays of an .npz in order: NumPy arrays if it has NumPy's names (arr_0), else a golden's leaves."""
    try:
        with open_regular(path, follow=True) as file:
            with zipfile.ZipFile(file) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
                sizes, length = [member.file_size for member in archive.infolist()], file.seek(0, os.SEEK_END)
            if sum(sizes) > max(LARGEST_UNPACKED, MOST_TIMES * length):
                found = f"compressed arrays of {sum(sizes):,} bytes: save them without compression, by np.savez"
                raise UnexpectedFileError("arrays", found, str(path))
            file.seek(0)
            if names and not all(name.startswith("arr_") and name[4:].isdecimal() for name in names):
                return list(from_npz(file.read(), str(path)))
            with np.load(file, allow_pickle=False) as loaded:
                return [loaded[name] for name in sorted(names, key=lambda name: int(name[4:]))]
    except FileNotFoundError:
        raise GoldenError(f"{where}: expected an .npz of arrays, found no such file.") from None
    except UnexpectedFileError as error:
        raise GoldenError(f"{where}: expected an .npz of arrays, found {error.found}.") from None
    except GoldenError as error:
        raise GoldenError(
            f"{where}: expected arrays named arr_0, arr_1, … as np.savez(file, *leaves) does: {error}"
        ) from None
    except Exception as error:  # zipfile, zlib and numpy raise about ten types on damaged bytes
        raise GoldenError(f"{where}: expected an .npz of arrays, found something else: {error}") from None


def _leaf(where: str, value: Any, aval: Aval) -> Leaf:
    """Return an array as a leaf with the dtype of `aval`. Raises `GoldenError` if the dtype does not fit.

    The shape is not checked here: the sizes of symbolic dimensions are not known yet.
    """
    if isinstance(value, Leaf):
        if value.dtype != aval.dtype:
            raise GoldenError(f"{where}: expected {aval}, found {value}.")
        return value
    array = np.asarray(value, order="C")
    if aval.dtype in KEYS:
        if array.dtype == np.uint32 and array.ndim:
            return Leaf(aval.dtype, array)
    elif aval.dtype in PLAIN or aval.dtype == "float0":
        if array.dtype.name == ("bool" if aval.dtype == "float0" else aval.dtype):
            return Leaf(aval.dtype, array.astype(array.dtype.newbyteorder("="), copy=False))
    else:
        meant = numpy_dtype(aval.dtype)
        # numpy writes bfloat16 and its like as nameless bytes (V2), and reads them back as such.
        if meant is not None and array.dtype.itemsize == meant.itemsize and array.dtype.kind in "Vu":
            return Leaf(aval.dtype, array.view(np.dtype(f"u{meant.itemsize}")))
    raise GoldenError(f"{where}: expected {aval}, found {array.dtype}[{','.join(map(str, array.shape))}].")
