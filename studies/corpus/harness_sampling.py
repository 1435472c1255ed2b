"""The choice of JAX's harnesses, the ids of their tests, and the comparison of their outputs."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

COMPARED_BY = {
    **{name: name for name in ("eig", "eigh", "lu", "qr", "svd")},
    # A step function of inputs that lie on its steps: what its writer measures as noise is the height of a step.
    **dict.fromkeys(("ceil", "floor", "round", "sign"), "exact"),
}
"""The comparators of some primitives. Others are compared element by element, with the noise that was measured."""


class Harness(Protocol):
    """The used part of `jax._src.internal_test_util.test_harnesses.Harness`; `group_name` is most often a primitive."""

    group_name: str
    fullname: str
    params: dict[str, Any]


Chosen = TypeVar("Chosen", bound=Harness)


def sample(harnesses: Iterable[Chosen], count: int | None = None) -> list[Chosen]:
    """Return `count` harnesses, or all: first one harness of each primitive, then a second one of each, and so on.

    Every primitive has at least one harness, even if that makes more than `count`. Digests of names decide which one,
    so that a release with more harnesses takes the same harnesses as far as it can.
    """
    taken: Counter[str] = Counter()
    rounds = []
    for digest, harness in sorted(((_digest(each), each) for each in harnesses), key=lambda pair: pair[0]):
        rounds.append((taken[harness.group_name], digest, harness))
        taken[harness.group_name] += 1
    rounds.sort(key=lambda entry: entry[:2])
    return [harness for *_, harness in rounds[: max(count, len(taken)) if count else None]]


def id_of(harness: Harness) -> str:
    """Return the id of a harness's test: its primitive and its name, without characters that a shell could misread."""
    name = harness.fullname.removeprefix(f"{harness.group_name}_")
    return f"{harness.group_name}-{re.sub(r'[^A-Za-z0-9_=]+', '_', name).strip('_')}"


def primitive_of(case: str) -> str:
    """Return the primitive of a harness, from the id of its case."""
    return case.partition("[")[2].partition("-")[0]


def compared_by(harness: Harness) -> str:
    """Return the name of the comparator that fits the outputs of a harness."""
    if harness.params.get("compute_uv") is False:
        return "allclose"  # singular values without vectors are unique
    return COMPARED_BY.get(harness.group_name, "allclose")


def _digest(harness: Harness) -> str:
    return hashlib.sha256(harness.fullname.encode()).hexdigest()
