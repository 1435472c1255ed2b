"""What happened to the goldens of one case in a pytest run: plain data, which its test's report carries as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict, final


class AnyEvent(TypedDict):
    """The facts about a case that every event has, whether its golden was written or checked."""

    case: str  # The id of the case.
    test: str  # Its test, as a command line names it in the folder where pytest was called.
    writer: str  # The id of this run's jax as a writer.
    unmeasured: int  # How many goldens of the case have no noise.
    measure: str  # The command that measures their noise; empty if all have noise.


@final
class WrittenCase(AnyEvent):
    """The event of a golden that was written, or that a dry run would have written."""

    written: str  # The change of the stored golden, such as new, replaced, unchanged, would be new.
    replaced: Sequence[str]  # What differs from the golden that it replaces, or would replace.
    crash: str  # How its own writer crashes when it replays it; empty if it does not crash.
    renamed: str  # How to make an unused golden one of this case; empty if there is none.
    named: Sequence[str]  # Remarks on its outputs.
    to_do: Sequence[str]  # What to do about these remarks.
    rounded: Sequence[str]  # The 64-bit dtypes of arrays that were rounded to 32 bits, as it was written.
    not_repeated: str  # Why no second process could export it, though one was to; empty if one did.
    not_seen: Mapping[str, Sequence[Any]]  # The errors that an output does not show (`NotSeen`), by output.


@final
class CheckedCase(AnyEvent):
    """The event of a case whose test passed and whose goldens were replayed."""

    judgements: Mapping[str, int]  # How many of its goldens have each judgement.
    shown: Sequence[tuple[str, str]]  # The goldens that have a remark, each with its remark.
    changed: str  # A change of the export that `changed_module` lets pass; empty for none.
    other_inputs: Sequence[str]  # The example arguments that are not the golden's inputs, which were compared.
    other_generations: Sequence[str]  # That goldens of the case have other inputs than the golden before them.
    compared_by_outputs: bool  # Whether only outputs were compared, since two exports differ.
    own: bool  # Whether there is a golden by this run's writer.
    stored: int  # How many goldens had their outcome from an earlier run.
    elsewhere: int  # How many were exported for other platforms than cpu.
    without_outputs: int  # How many have no outputs.
    undecided: Sequence[str]  # The goldens with outputs that would not show a wrong number, or that jump.
    corrected: Mapping[str, Any] | None  # The comparison of this run, if a matrix compares differently.


@final
class DeployedCase(AnyEvent):
    """The event of a case that must run in releases other than this one, whether or not its test passed."""

    deployed: Sequence[str]  # The titles of these releases, of jaxlib and of other runtimes.
    run_deployed: str  # The command that tests it there.


@final
class LeftCase(AnyEvent):
    """The event of a case whose golden by this run's writer stays as it is, since only missing goldens are written.

    The test of the case may still fail afterwards.
    """

    left: str  # The id of that golden.


Event: TypeAlias = WrittenCase | CheckedCase | DeployedCase | LeftCase
