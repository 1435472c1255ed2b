"""Differences between the goldens of a case. A gate does not see them: it compares each golden with its own outputs."""

import itertools
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from export_core.goldens import Check, Golden, GoldenError
from export_core.goldens.arrays import from_npz
from export_core.goldens.store import INPUTS, OUTPUTS
from export_core.numbers.compare import GoldenOutputs
from export_core.numbers.elements import nearly_same
from export_core.numbers.leaf_paths import call_in_words
from export_core.policy import Policy

_SHOWN = 5  # How many pairs of goldens are named.


def notes_on_changed_goldens(
    goldens: Iterable[Golden],
    policy: Policy,
    options: Sequence[str] = (),
    *,
    asked: Collection[str] | None = None,
    known: Collection[str] = (),
) -> Iterator[str]:
    """Yield a note for each golden whose inputs or expected outputs differ from those of the previous golden.

    After a few notes, one more says how many others there are.

    Args:
        goldens: The goldens of one or several cases, with the policy's comparisons applied.
        policy: The policy, whose tolerances count.
        options: The options with which `jaxexport diff` finds these goldens.
        asked: The ids of the goldens to compare with the previous golden; None for all.
        known: Sentences of `changes_between_goldens` that the report of a run has already; they get no note.
    """
    sentences = (
        _sentence(*pair, options) for pair in _differing(goldens, policy, asked) if _sentence(*pair) not in known
    )
    yield from (f"note: {text}" for text in first_changes([*sentences]))


def changes_between_goldens(
    goldens: Iterable[Golden],
    policy: Policy,
    options: Sequence[str] = (),
    *,
    asked: Collection[str] | None = None,
    outputs: bool = True,
) -> list[str]:
    """Return a sentence for each golden whose inputs or expected outputs differ from those of the previous golden.

    The previous golden is that of the same case and platform whose writer was built just before. Outputs may differ
    by what the comparison of the previous golden allows. A user's own comparison function is not called.

    Args:
        goldens: The goldens of one or several cases, with the policy's comparisons applied.
        policy: The policy, whose tolerances count.
        options: The options with which `jaxexport diff` finds these goldens.
        asked: The ids of the goldens to compare with the previous golden; None for all.
        outputs: Whether outputs are compared. Otherwise files are read only if the hashes of inputs differ.
    """
    return [_sentence(*pair, options) for pair in _differing(goldens, policy, asked, outputs=outputs)]


def first_changes(sentences: Sequence[str]) -> list[str]:
    """Return the first few of these sentences, and one more that says how many others there are."""
    others = len(sentences) - _SHOWN
    more = [f"{others} more with other inputs or outputs than the golden before"] if others > 0 else []
    return [*sentences[:_SHOWN], *more]


def _sentence(old: Golden, new: Golden, what: str, options: Sequence[str] = ()) -> str:
    """Return a sentence on what differs between two goldens (`what`), with the command that shows it."""
    writers = f"{old.manifest.writer.id} and {new.manifest.writer.id}"
    command = shlex.join(["jaxexport", "diff", old.id, new.id, *options])
    return (
        f"{old.manifest.case}: the goldens by {writers} have {what}, and each is compared with its own outputs: "
        f"`{command}` shows what differs"
    )


def _differing(
    goldens: Iterable[Golden], policy: Policy, asked: Collection[str] | None = None, *, outputs: bool = True
) -> Iterator[tuple[Golden, Golden, str]]:
    """Yield each pair of successive goldens with different inputs or outputs, and a phrase on what differs.

    Only pairs whose later golden is in `asked` are compared, or all pairs if it is None.
    """

    def series(golden: Golden) -> tuple[str, str]:
        return golden.manifest.case, golden.manifest.writer.platform

    for _, of_case in itertools.groupby(
        sorted(goldens, key=lambda one: (*series(one), one.manifest.writer.built, one.id)), series
    ):
        for old, new in itertools.pairwise(of_case):
            if asked is not None and new.id not in asked:
                continue
            try:
                what = _difference(old, new, policy, outputs=outputs)
            except GoldenError:  # a damaged file, of which what reads the golden tells
                continue
            if what:
                yield old, new, what


def _difference(old: Golden, new: Golden, policy: Policy, *, outputs: bool) -> str:
    """Return a phrase on what differs between two goldens of a case, such as "other inputs"; "" if nothing compared.

    Raises `GoldenError` if a file cannot be read.
    """
    then, now = old.manifest, new.manifest
    others = {check.name: check for check in now.checks}
    first = Check("", inputs=INPUTS, outputs=OUTPUTS)
    wanted = GoldenOutputs(old, now.writer.platform, policy.tolerances)
    for check in (first, *then.checks):
        other = others.get(check.name) if check.name else first
        if other is None or check.inputs is None or other.inputs is None:
            continue
        of_call = f" of {call_in_words(check.name)}" if check.name else ""
        if then.files.get(check.inputs) != now.files.get(other.inputs):
            if then.inputs_made or now.inputs_made or check.vjp:  # the rule, not the test, may have changed
                continue
            leaves = [from_npz(golden.folder / name) for golden, name in ((old, check.inputs), (new, other.inputs))]
            if not all(itertools.starmap(nearly_same, itertools.zip_longest(*leaves))):
                return f"other inputs{of_call}"
            continue
        if not outputs:
            continue
        files = [manifest.files.get(one.outputs or "") for manifest, one in ((then, check), (now, other))]
        if None in files or files[0] == files[1] or ":" in old.compared_as.comparison.compare:
            continue
        assert check.outputs
        assert other.outputs
        expected, actual = from_npz(old.folder / check.outputs), from_npz(new.folder / other.outputs)
        if not wanted.compare(check, expected, actual).ok:
            return f"other outputs{of_call} for the same inputs"
    return ""
