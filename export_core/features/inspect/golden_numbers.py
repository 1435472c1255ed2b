"""Whether two goldens have the same inputs, and how far their outputs differ: further lines of `jaxexport diff`."""

from collections.abc import Iterator
from pathlib import Path

from export_core.artifact import Artifact
from export_core.base.text import few
from export_core.goldens import Check, Golden
from export_core.goldens.arrays import from_npz
from export_core.goldens.manifest_file import load_manifest
from export_core.goldens.store import ARTIFACT, INPUTS, MANIFEST, OUTPUTS
from export_core.matrix.comparisons import under_policy
from export_core.numbers.compare import GoldenOutputs
from export_core.numbers.elements import bits_of
from export_core.numbers.leaf_paths import leaf_paths
from export_core.policy import Policy


def golden_of(artifact: str) -> Golden | None:
    """Return the golden whose artifact is this file; None if the file does not belong to a golden.

    Raises `GoldenError` if golden.yaml cannot be read.
    """
    path = Path(artifact)
    if path.name != ARTIFACT or not (path.parent / MANIFEST).is_file():
        return None
    return Golden(load_manifest(path.parent / MANIFEST), path.parent)


def compare_goldens(before: Artifact, after: Artifact, policy: Policy) -> tuple[bool, list[str]]:
    """Compare the inputs and outputs of two goldens, and return whether they are alike, and lines about them.

    Alike means equal inputs, and outputs that differ by no more than the first golden and the policy allow. A user's
    own comparison function is not called. If an artifact belongs to no golden, the result is True without lines.


    Raises `GoldenError` if a golden is damaged, and `MatrixError` if a quirk does not fit the first one.
    """
    old, new = golden_of(before.name), golden_of(after.name)
    if old is None or new is None:
        return True, []
    for golden in (old, new):
        golden.verify()
    if inputs := _differing_inputs(old, new, before):
        return False, [f"inputs: different in {few(inputs)}; outputs are not compared"]
    (compared,) = under_policy([old], policy)
    wanted = GoldenOutputs(compared, new.manifest.writer.platform, policy.tolerances)
    lines, is_fine = ["inputs: the same"], True
    for is_allowed, line in _outputs(wanted, new):
        is_fine &= is_allowed
        lines += line.split("\n")
    return is_fine, lines


def _differing_inputs(old: Golden, new: Golden, artifact: Artifact) -> list[str]:
    """Return the paths of the inputs that differ between two goldens; if their number differs, a text on that."""
    then, now = old.inputs(), new.inputs()
    if len(then) != len(now):
        return [f"their number, {len(then)} → {len(now)}"]
    paths, _ = leaf_paths(old.manifest, artifact)
    pairs = enumerate(zip(then, now, strict=True))
    numbers = [number for number, (one, other) in pairs if (str(one), bits_of([one])) != (str(other), bits_of([other]))]
    return [paths[number] if number < len(paths) else f"argument {number}" for number in numbers]


def _outputs(wanted: GoldenOutputs, new: Golden) -> Iterator[tuple[bool, str]]:
    """Yield, for each call of the old golden, whether the new outputs are within what is allowed, and text on it."""
    old = wanted.golden
    comparator = old.compared_as.comparison.compare
    others = {check.name: check for check in new.manifest.checks}
    for check in (Check("", inputs=INPUTS, outputs=OUTPUTS), *old.manifest.checks):
        other = others.get(check.name) if check.name else check
        name = f"outputs of {check.name}" if check.name else "outputs"
        files = [(side.folder, one and one.outputs, side.manifest.files) for side, one in ((old, check), (new, other))]
        if check.outputs is None:
            continue
        if lacking := [folder for folder, file, listed in files if not file or file not in listed]:
            yield True, f"{name}: not compared, since {lacking[0]} has none"
        elif check.inputs and other and old.content(check.inputs) != new.content(other.inputs or INPUTS):
            yield True, f"{name}: not compared, since its inputs differ"
        elif ":" in comparator:
            yield True, f"{name}: not compared, since {comparator} is a function of yours, which a matrix runs"
        else:
            then, now = (from_npz(folder / str(file)) for folder, file, _ in files)
            if bits_of(then) == bits_of(now):
                yield True, f"{name}: the same, bit for bit"
                continue
            difference = wanted.compare(check, then, now)
            allowed = "" if difference.max_abs_error is None else f"; allowed {difference.tolerance}"
            text = f"within what is allowed ({difference}{allowed})" if difference.ok else f"differ: {difference}"
            yield difference.ok, f"{name}: {text}"
