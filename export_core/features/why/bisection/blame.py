"""Is jax or jaxlib to blame: what the two mixed pairs say, the new jax on the old jaxlib and the other way round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from export_core.features.why.bisection.bisected import MixedPair
from export_core.features.why.bisection.likeness import BisectBy, Likeness
from export_core.features.why.bisection.search import Answer
from export_core.features.why.bisection.trials import Trials, happened
from export_core.features.why.choice import Choice
from export_core.judge import judge
from export_core.matrix import Cell, Outcome, Verdict
from export_core.matrix.replay_options import ReplayOptions
from export_core.releases import Release

JAX, JAXLIB, EITHER, BOTH = "jax", "jaxlib", "either", "both"


class ReplayPair(Protocol):
    """Runs a cell with the jax of one release on the jaxlib of another: see `pairs.replay_pair`."""

    def __call__(self, cell: Cell, jax_of: Release, jaxlib_of: Release, options: ReplayOptions) -> Outcome:
        """Its outcome; that of a pair that cannot be made is not_run."""


def mixed_pairs(
    choice: Choice, good: Release, bad: Release, like: Likeness, trials: Trials, replay_pair: ReplayPair
) -> tuple[MixedPair, ...]:
    """What the pairs of two releases say; nothing where only one of jax and jaxlib differs."""
    if good.jax == bad.jax or good.jaxlib == bad.jaxlib:
        return ()
    # By the message also where the search went by the verdict: an error of the pair itself is an error too.
    measure = replace(like.measure, by=BisectBy.MESSAGE) if like.measure.by is BisectBy.VERDICT else like.measure
    like = replace(like, measure=measure, bad=trials[bad])
    good_label = measure.label(trials[good])
    pairs = []
    for jax_of, jaxlib_of in ((bad, good), (good, bad)):
        cell = choice.cell_in(Release(jaxlib_of.jaxlib, jax_of.jax, jaxlib_of.built))
        result = judge(replay_pair(cell, jax_of, jaxlib_of, trials.options), trials.options.policy)
        answer = like.is_bad(result)
        if answer is False and like.threshold is None and not result.verdict.works:
            # A failure that neither release has shows that the two parts do not fit, and says nothing of the break.
            answer = False if measure.label(result) == good_label else None
        why = result.message if result.verdict is Verdict.NOT_RUN else happened(result)
        pairs.append(MixedPair(jax_of.jax, jaxlib_of.jaxlib, answer, why))
    return tuple(pairs)


def blamed(good: Release, bad: Release, pairs: Sequence[MixedPair]) -> str:
    """Which part brings the failure; empty where that is not known."""
    if good.jax == bad.jax or good.jaxlib == bad.jaxlib:
        return JAXLIB if good.jax == bad.jax else JAX
    return part_to_blame(*(pair.is_bad for pair in pairs)) if pairs else ""


def part_to_blame(bad_jax_alone: Answer, bad_jaxlib_alone: Answer) -> str:
    """Which part brings the failure, from whether each of them alone does."""
    match bad_jax_alone, bad_jaxlib_alone:
        case True, True:
            return EITHER
        case False, False:
            return BOTH
        case (True, _) | (None, False):
            return JAX
        case (_, True) | (False, None):
            return JAXLIB
    return ""
