"""The screen about one golden: what its manifest says, what loads it, the first values of its arrays, its files.

Fields of the manifest are shown as they come, so that a new field is shown too.
"""

import datetime
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec
import numpy as np

from export_core.artifact import Artifact, ArtifactError
from export_core.artifact.audit import DISABLED
from export_core.artifact.readers import Reader
from export_core.artifact.writers import WrittenBy, find_writer
from export_core.base.layout import wrapped
from export_core.base.text import plural, printable
from export_core.base.tolerances import Tolerances, takes_tolerances
from export_core.features.inspect.artifact_facts import Inspection, describe, jaxlibs_of
from export_core.features.inspect.golden_audit import audit_as_golden
from export_core.features.inspect.screen import (
    LINE,
    WIDTH,
    call_rows,
    convention_in_words,
    joined,
    reader_rows,
    size,
)
from export_core.goldens import Check, Comparison, Golden, GoldenError
from export_core.goldens.arrays import Leaf, from_npz
from export_core.goldens.store import INPUTS, NOISE, OUTPUTS
from export_core.judge.known import entry_name
from export_core.matrix.comparisons import comparison_in_words, quirks_of, rule_of, tolerances_in_words, under_rules
from export_core.numbers.comparison_of_call import comparison_of
from export_core.numbers.leaf_paths import call_paths, outputs_named
from export_core.numbers.noise import left_to_noise, outputs_to_name
from export_core.numbers.nothing_compared import calls_without_values
from export_core.numbers.unseen_errors import NotSeen, not_seen, not_seen_advice, not_seen_text
from export_core.policy import Policy
from export_core.policy.terms import Terms

MOST = 8  # The most lines of one kind, and the most values of one array.
_OF_NOISE = {
    "instruction_set": "instruction set",
    "moved": "runs with moved inputs",
    "compiled": "runs compiled in another way",
    "failed": "runs that failed",
    "inside": "runs that also moved results inside the program",
    "amplified": "more such runs, with moves of up to 64 units in the last place",
    "kernel": "run with another kernel of OpenBLAS",
    "unmeasured": "calls that were not measured",
    "unstable": "elements that had to be equal and were not",
    "jumping": "elements that jump when last bits change",
    "undecided_outputs": "outputs with noise above a tenth of their largest number in elements that do not jump",
}
"""The names of the fields of a `NoiseRecord` in the output of `inspect`; most are counts of runs or of elements."""


class GoldenArtifact(NamedTuple):
    """The artifact of a golden, with the facts about it; the writer and the allowed calls are those of the golden."""

    artifact: Artifact
    writer: WrittenBy  # Its jaxlib is the one in golden.yaml.
    terms: Terms  # They allow the calls that the golden allows too.
    facts: Inspection  # The audit in it is that of a matrix.


def golden_artifact(golden: Golden, policy: Policy, terms: Terms, readers: Sequence[Reader] = ()) -> GoldenArtifact:
    """Return the artifact of a golden with everything that is known about it.

    The jaxlibs among `readers` have to promise its custom calls; without any, the newest release.

    Raises:
        ArtifactError: A module of the artifact cannot be read.
        GoldenError: The artifact was changed, or its bytes contradict golden.yaml.
        MatrixError: A quirk does not fit the golden.
    """
    artifact = golden.read_artifact()
    newest = tuple(release.jaxlib for release in terms.releases[-1:])
    audited = audit_as_golden(artifact, policy, jaxlibs_of(readers) or newest)
    assert audited is not None  # It is the artifact of a golden.
    writer = find_writer(artifact, terms.releases)._replace(jaxlib=golden.manifest.writer.jaxlib)
    terms = terms._replace(allow={**audited[0].compared_as.allow, **terms.allow})
    facts = describe(artifact, terms, readers=readers, writer=writer)
    calls = tuple(finding for finding in audited[1] if finding.standing != DISABLED)
    return GoldenArtifact(artifact, writer, terms, facts._replace(custom_calls=calls))


def golden_screen(golden: Golden, others: Sequence[Golden], policy: Policy, inside: GoldenArtifact | str) -> str:
    """Return the screen about a golden: lines with a name in the first column and text beside it.

    `others` are the goldens of the same case by other writers. The policy's rules for comparing the golden are shown.
    `inside` is the golden's artifact, or the reason why it cannot be shown.
    """
    lines = [f"{golden.id}: in {golden.folder}"]
    for name, texts in _rows(golden, others, policy, inside):
        more = [f"and {len(texts) - MOST} more"] if len(texts) > MOST else []
        for number, text in enumerate([*texts[:MOST], *more]):
            shown = printable(text)
            shown = shown if len(shown) <= MOST * LINE else shown[: MOST * LINE] + "…"
            lines += wrapped(shown, WIDTH + LINE, f"{'' if number else name:<{WIDTH - 1}} ", WIDTH)
    return "".join(f"{line}\n" for line in lines)


def _rows(
    golden: Golden, others: Sequence[Golden], policy: Policy, inside: GoldenArtifact | str
) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of the screen about a golden: a name for the first column, and the texts beside it."""
    # The row about the artifact's custom calls says more.
    elsewhere = {"case", "files", *(["custom_calls"] if isinstance(inside, GoldenArtifact) else [])}
    for name, value in msgspec.to_builtins(golden.manifest, builtin_types=(datetime.date,)).items():
        if name in elsewhere or (name == "reproducible" and value):  # as in nearly all goldens
            continue
        if value not in (None, False, "", {}, [], ()):
            is_noise = name == "noise"
            yield name, _field({_OF_NOISE.get(key, key): part for key, part in value.items()} if is_noise else value)
    yield "compared", list(_compared(golden, policy))
    if isinstance(inside, str):
        yield "artifact", [inside]
    else:
        yield "artifact", list(_artifact(inside.facts))
        for name, about in (*call_rows(inside.facts), *reader_rows(inside.facts)):
            yield name, [about] if isinstance(about, str) else list(about)
    for name in sorted(file for file in golden.manifest.files if file.endswith(".npz")):
        yield name.removesuffix(".npz"), _arrays(golden, name)
    yield "files", list(_files(golden))
    if others:
        yield "other writers", [joined(other.manifest.writer.id for other in others)]


def _compared(golden: Golden, policy: Policy) -> Iterator[str]:
    """Yield every rule that decides how the golden is compared in a matrix, the strongest first."""
    manifest = golden.manifest
    if manifest.options.without_outputs:
        yield "nothing: it has no outputs, and is only compiled"
        return
    rule = rule_of(manifest, policy.numbers)
    how = under_rules(golden, policy.numbers).compared_as.comparison
    for number, quirk in enumerate(policy.quirks):
        if quirks_of(manifest, [quirk]) and (words := tolerances_in_words(quirk)):
            unused = "" if takes_tolerances(how.compare) else f", an error: {how.compare!r} takes no tolerances"
            yield f"{entry_name('quirks', number, quirk)}: {', '.join(words)}{unused}"
    if rule:
        yield f"{entry_name('numbers', policy.numbers.index(rule), rule)}: {comparison_in_words(rule)}"
    elif manifest.comparison != Comparison():
        yield f"as the golden recorded: {comparison_in_words(manifest.comparison)}"
    else:
        yield "by the noise that its writer measured" if manifest.noise else "by the default of each dtype"
        yield from _outputs_to_name(golden, policy.tolerances) if manifest.noise else ()
        hidden = _not_seen(golden, policy.tolerances)
        yield from (not_seen_text({name: part}, most=1) for name, part in hidden.items())
        yield from not_seen_advice(hidden.values())
    with suppress(GoldenError):  # the list of its files reports what is wrong with it
        yield from calls_without_values(golden)
    if how.compare == Comparison().compare:
        named = outputs_named(golden, Check(""))
        for group in golden.factors:
            yield f"outputs {', '.join(map(named, group.outputs))} as factors of {group.compare}"
    is_widened = any(takes_tolerances(comparison_of(check, how).compare) for check in golden.calls.values())
    for name in dict.fromkeys((manifest.writer.platform, *manifest.options.platforms)):
        if name in policy.tolerances and is_widened:
            yield f"or wider, by tolerances.{name} of the policy"


def _outputs_to_name(golden: Golden, tolerances: Tolerances) -> list[str]:
    assert golden.manifest.noise is not None
    try:
        noise = left_to_noise(golden, tolerances) or golden.manifest.noise
        return outputs_to_name(noise, golden)
    except (ArtifactError, GoldenError):  # the list of its files reports what is wrong with it
        return outputs_to_name(golden.manifest.noise)


def _not_seen(golden: Golden, tolerances: Tolerances) -> dict[str, NotSeen]:
    """Return how large an error of each output can be without being noticed by the comparison.

    Empty for a golden that cannot be read or has no noise.
    """
    try:
        return not_seen(golden, tolerances) if golden.manifest.noise else {}
    except (ArtifactError, GoldenError):  # the list of its files reports what is wrong with it
        return {}


def _field(value: object) -> list[str]:
    """Return a manifest value as one text, or as a text for each item if it contains lists or dicts."""
    named = {f"{name}: ": part for name, part in value.items()} if isinstance(value, dict) else {}
    parts = list(named.values()) or (list(value) if isinstance(value, (list, tuple)) else [])
    if not any(isinstance(part, (dict, list, tuple)) and part for part in parts):
        return [_text(value)]
    return [name + _text(part) for name, part in zip(named or [""] * len(parts), parts, strict=True)]


def _text(value: object) -> str:
    if isinstance(value, dict):
        return joined(f"{name}: {_text(part)}" for name, part in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return joined(map(_text, value)) or "none"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _artifact(facts: Inspection) -> Iterator[str]:
    if facts.nr_devices is None:
        yield "a bare StableHLO module"
        return
    derivatives = f"derivatives to order {facts.vjp_order}" if facts.vjp_order else "no derivatives"
    convention, *problems = convention_in_words(facts)
    yield f"{facts.writer.producer}; {derivatives}; {convention}"
    yield from problems


def _arrays(golden: Golden, name: str) -> list[str]:
    """Return a line for each array in a golden's file: tree path, type and first values; noise in the output's unit."""
    try:
        if name == NOISE:  # outputs that must be equal have no noise
            noises = [noise for noises in golden.noise().values() for noise in noises]
            leaves = tuple(Leaf("float64", np.zeros(0) if noise is None else noise) for noise in noises)
        else:
            leaves = from_npz(golden.folder / name)
    except GoldenError as error:
        return [str(error)]
    paths = _paths(golden, name)
    named = len(paths) == len(leaves)  # otherwise the artifact does not belong to these arrays
    lines = [f"{leaf}  {_values(leaf)}" for leaf in leaves]
    return [f"{path}  {line}" for path, line in zip(paths, lines, strict=True)] if named else lines or ["no arrays"]


def _paths(golden: Golden, name: str) -> list[str]:
    """Return the tree path of the argument or result that each array in a file of a golden belongs to.

    In the noise file, which covers all calls, each path begins with the name of its call, except for the plain call.
    Empty if the artifact has no trees or cannot be read.
    """
    calls = (Check("", inputs=INPUTS, outputs=OUTPUTS), *golden.manifest.checks)
    try:
        if name == NOISE:
            return [
                (f"{check.name}: " if check.name else "") + path  # its other files are named by the call
                for check in golden.calls.values()
                for path in call_paths(golden, check.vjp)[1]
            ]
        for check in calls:
            if name in (check.inputs, check.outputs):
                arguments, results = call_paths(golden, check.vjp)
                return arguments if name == check.inputs else results
    except (ArtifactError, GoldenError):  # the row about the artifact says what is wrong with it
        pass
    return []


def _values(leaf: Leaf) -> str:
    if leaf.dtype == "float0":
        return "no values"
    try:
        values = leaf.numpy().reshape(-1)
    except (ImportError, GoldenError) as error:  # without jax there may be no ml_dtypes to read a bfloat16
        return f"({error})"
    shown = [f"{value:.6g}" if values.dtype.kind == "f" else f"{value}" for value in values[:MOST]]
    return " ".join(shown) + (" …" if values.size > MOST else "")


def _files(golden: Golden) -> Iterator[str]:
    """Yield lines about a golden's files: sizes, files that the manifest does not list, whether all are unchanged."""
    known = golden.manifest.files
    sizes = []
    for name in known:
        try:
            sizes.append(f"{name} {size((golden.folder / name).stat().st_size)}")
        except OSError:
            sizes.append(f"{name} (missing)")
    yield joined(sizes)
    more = sorted(path.name for path in golden.folder.iterdir() if path.name not in {"golden.yaml", *known})
    if more:
        yield f"{plural(len(more), 'file')} that the manifest does not list: {joined(more)}"
    try:
        golden.verify()
        yield "every file is as its golden.yaml lists it"
    except GoldenError as error:
        yield str(error)
