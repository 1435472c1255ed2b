"""What happened to the goldens of one case in a pytest run: plain data, which its test's report carries as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict, final


class _AnyEvent(TypedDict):
    """What is said of a case whether its golden was written or checked."""

    case: str  # The id of the case.
    writer: str  # The id of this run's jax as a writer.
    unmeasured: int  # How many goldens of the case have no noise.
    measure: str  # The command that measures it, empty where all have it.


@final
class WrittenCase(_AnyEvent):
    """A golden that was written or would have been: the same one, in a dry run, or with another answer."""

    written: str  # What became of the stored one, such as new, replaced, unchanged, would be new.
    replaced: Sequence[str]  # What differs in the one that it replaces, or would.
    crash: str  # How its own writer crashes when it replays it, empty where it does not.
    renamed: str  # The command by which an unused golden becomes one of this case, empty for none.
    named: Sequence[str]  # What there is to say of its outputs.
    to_do: Sequence[str]  # What to do about that.
    not_repeated: bool  # Whether no second process could export it.
    not_seen: Mapping[str, float]  # Below which part of the largest number errors of an output are not seen, by output.


@final
class CheckedCase(_AnyEvent):
    """A case whose test passed, and whose goldens were replayed."""

    judgements: Mapping[str, int]  # How many of its goldens have each judgement.
    shown: Sequence[tuple[str, str]]  # The goldens of which there is something to say, each with that.
    changed: str  # A change of the export that `changed_module` lets pass, empty for none.
    other_inputs: Sequence[str]  # The example arguments that are not the golden's inputs, which were compared.
    compared_by_outputs: bool  # Whether only outputs were compared, since two exports differ.
    own: bool  # Whether there is a golden by this very writer.
    stored: int  # How many goldens have the outcome of an earlier run.
    elsewhere: int  # How many were exported for other platforms than cpu.
    without_outputs: int  # How many have no outputs.
    corrected: Mapping[str, Any] | None  # The comparison of this run, where that of a matrix is another one.
    runtimes: Sequence[str]  # The titles of other runtimes in which the case is deployed.


Event: TypeAlias = WrittenCase | CheckedCase
