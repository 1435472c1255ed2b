"""Writing the goldens of a test that has passed: second export, noise, first replay, and what is said of each."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from export_core.base.text import shown
from export_core.export.golden_checks import require_values
from export_core.export.produce import ProducedGolden
from export_core.goldens import Golden, GoldenError
from export_core.goldens.store import WriteStatus
from export_core.goldens.upkeep import rename_case
from export_core.judge import Result
from export_core.judge.generations import changes_between_goldens
from export_core.matrix.comparisons import under_policy
from export_core.numbers.leaf_paths import leaf_paths
from export_core.numbers.measuring_noise import MeasuredNoise, lacks_noise
from export_core.numbers.noise import WHAT_TO_DO, left_to_noise, outputs_to_name
from export_core.numbers.nothing_compared import calls_without_values
from export_core.numbers.shows_nothing import MEANT, Remark, meant_line, remark_lines, remarks_without_runs
from export_core.numbers.unseen_errors import not_seen
from export_core.readers.packages import installed_packages
from export_core.run.golden_writing import add_noise, first_crash
from pytest_jaxexport.events import WrittenCase
from pytest_jaxexport.recorded_test import RecordedTest
from pytest_jaxexport.replacing import replaced_parts
from pytest_jaxexport.reviewing import REVIEWER, Reviewer
from pytest_jaxexport.second_export import SecondExports

_NOT_REPRODUCIBLE = (
    "not reproducible: two exports differed, so tests compare only its outputs, and fail if these differ in each run "
    "too: seed random arrays that the test closes over"
)
_OTHER_INPUTS = (
    "a second process has other example arguments: if they are random, seed them in the test, else they differ from "
    "run to run"
)


class GoldenWriting:
    """The goldens that one test writes."""

    def __init__(self, test: RecordedTest, second_exports: SecondExports) -> None:
        self._test = test
        self._second = second_exports
        self._deferred: set[str] = set()  # Cases whose noise is measured later.
        self._not_repeated: dict[str, str] = {}  # Why the second export of a case shows nothing, by case.
        self._with_other_inputs: set[str] = set()  # Cases whose arguments differ in a second process.
        self._remarks: dict[str, tuple[Remark, ...]] = {}  # What measuring the noise has shown, by case.

    def write(self, whole: Sequence[ProducedGolden]) -> None:
        """Write a golden for each produced one, unless the run only shows what it would write, or a reviewer says no.

        Raises:
            ExportCompatError: a golden cannot be written, or may not be.
        """
        whole = [require_values(produced, self._test.marked["nothing_to_compare"]) for produced in whole]
        repeated = map(self._with_second_export, whole)
        store, policy = self._test.store, self._test.settings.policy
        whole = [add_noise(produced, store, policy, self._measured) for produced in repeated]
        # All are replayed before one is stored: no test leaves a part of its goldens.
        crashes = [first_crash(produced, self._first_replay) for produced in whole]
        for produced, crash in zip(whole, crashes, strict=True):
            self._write(produced, crash)

    def _with_second_export(self, produced: ProducedGolden) -> ProducedGolden:
        """Return the golden, marked as not reproducible if a second export differs.

        A stored golden with the same artifact has the answer already.
        """
        if stored := self._test.stored(produced):
            differs: bool | None = not stored.manifest.reproducible
        else:
            differs = self._second.new_differs(produced) if self._second.for_new_goldens else None
            if differs is None and self._second.for_new_goldens:
                self._not_repeated[produced.case.id] = self._second.why_not_compared(produced.case.id)
            elif differs is not None and self._second.makes_other_inputs(produced):
                self._with_other_inputs.add(produced.case.id)
        return replace(produced, manifest=msgspec.structs.replace(produced.manifest, reproducible=not differs))

    def _first_replay(self, golden: Golden) -> Sequence[Result]:
        """Return the results of a golden in a new process, before it is stored."""
        with self._test.progress(f"running {shown(golden.id)} in a new process"):
            return self._test.replayer.replay([self._test.marked_now(golden)])[0]

    def _measured(self, golden: Golden) -> MeasuredNoise | str:
        if self._test.settings.noise_later or self._test.settings.dry_run:
            self._deferred |= {golden.manifest.case} if lacks_noise(golden) else set()
            return "it is measured later"
        with self._test.progress(f"measuring the noise of {shown(golden.id)}: --noise=later leaves it out"):
            measured = self._test.replayer.noise(golden)
        if isinstance(measured, MeasuredNoise):
            self._remarks[golden.manifest.case] = measured.remarks
        return measured

    def _write(self, produced: ProducedGolden, crash: str) -> None:
        """Write a golden, unless the run only shows what it would write, or the reviewer says no."""
        packages = installed_packages() if self._test.settings.record_packages else {}
        produced = replace(produced, manifest=msgspec.structs.replace(produced.manifest, packages=packages))
        case, writer = produced.manifest.case, produced.manifest.writer.id
        is_new = not (self._test.generations(case) or self._test.store.is_unreadable(case, writer))
        renamed = self._test.rename_hint(produced) if is_new else ""
        written, replaced = self._change(produced)
        event = WrittenCase(
            **self._test.about(produced.manifest),
            written=written,
            replaced=replaced,
            crash=crash,
            renamed=renamed,
            named=[],
            to_do=[],
            rounded=[],
            not_repeated="",
            not_seen={},
        )
        if written is WriteStatus.UNCHANGED or not (left := self._left(event)):
            self._test.store.write(produced.manifest, produced.files)
            self._add_remarks(event, produced)
            if renamed and not self._can_rename(self._test.renamed[-1], produced):
                folder = os.path.relpath(self._test.store.root / case, self._test.settings.directory)
                event["renamed"] += f", after deleting {Path(folder).as_posix()}, which was just written"
        else:
            event["written"] = left
        self._test.events.append(event)

    def _change(self, produced: ProducedGolden) -> tuple[WriteStatus, list[str]]:
        """Return how writing a golden changes the store, and how it differs from a stored one that it replaces."""
        own = self._test.own_golden(produced.manifest.case)
        noise_to_come = self._test.settings.dry_run and not self._test.settings.noise_later
        if own is None:
            if self._test.store.is_unreadable(produced.manifest.case, produced.manifest.writer.id):
                return WriteStatus.REPLACED, ["its golden.yaml could not be read"]
            return WriteStatus.NEW, []
        if not self._test.store.holds(produced.manifest, produced.files):
            wanted = self._test.wanted(own, produced)
            parts = replaced_parts(produced, wanted, noise_to_come=noise_to_come)
            pins = self._test.settings.policy.retention.reasons_for(own.names)
            return WriteStatus.REPLACED, [*(f"pinned by the policy ({reason})" for reason in pins), *parts]
        if noise_to_come and own.manifest.case in self._deferred:
            return WriteStatus.REPLACED, ["noise, which is measured"]
        return WriteStatus.UNCHANGED, []

    def _left(self, event: WrittenCase) -> str:
        """Return why a new or changed golden is not written, in words of the summary; empty if it is written."""
        change = event["written"]
        if self._test.settings.dry_run:
            return f"would be {change}"
        if self._test.settings.reviewed:
            parts = (*event["replaced"], *filter(None, (event["crash"], event["renamed"])))
            first = f"{event['case']}/{event['writer']}: {change}{':' if parts else ''}"
            reviewer = self._test.item.config.stash.setdefault(REVIEWER, Reviewer())
            if not reviewer.accepts("\n  ".join(map(shown, (first, *parts)))):
                return f"not {'written' if change == WriteStatus.NEW else change}, as answered"
        return ""

    def _add_remarks(self, event: WrittenCase, produced: ProducedGolden) -> None:
        """Add to an event the remarks on a golden that has just been written."""
        case, writer = event["case"], event["writer"]
        policy = self._test.settings.policy
        generations = under_policy(self._test.generations(case), policy)
        (golden,) = [one for one in generations if one.manifest.writer.id == writer]
        noise = left_to_noise(golden, policy.tolerances)
        named = outputs_to_name(noise, golden) if noise else []
        to_do = [WHAT_TO_DO] if noise and (noise.undecided_outputs or noise.jumping) else []
        if remarks := self._remarks_on(golden):
            constant, verbose = self._test.marked["constant"] or (), self._test.is_verbose
            leaves = [path for paths in leaf_paths(produced.manifest, produced.artifact) for path in paths]
            if lines := remark_lines(remarks, constant, leaves, whole=verbose, how_to_see="-v"):
                meant = meant_line(produced.manifest.test, remarks, constant, leaves, whole=verbose)
                named, to_do = [*named, *lines], [*to_do, MEANT, meant]
        if produced.outputs is None:
            reason = produced.manifest.options.without_outputs
            named = [f"stored without outputs: readers compile it, and compare no numbers ({reason})"]
        elif not self._test.marked["nothing_to_compare"]:
            named = [*named, *calls_without_values(golden)]
        if not produced.manifest.reproducible:
            named = [*named, _NOT_REPRODUCIBLE]
        if case in self._with_other_inputs:
            named = [*named, _OTHER_INPUTS]
        others = changes_between_goldens(generations, policy, self._test.replayer.command()[1:], asked=[golden.id])
        named = [*named, *(text.removeprefix(f"{case}: ") for text in others)]
        parts = {f"{case}, {name}": part for name, part in not_seen(golden, policy.tolerances).items()} if noise else {}
        deferred = case in self._deferred
        event["unmeasured"], event["measure"] = int(deferred), self._test.measure_command if deferred else ""
        event["named"], event["to_do"] = named, to_do
        event["not_repeated"], event["not_seen"] = self._not_repeated.get(case, ""), parts
        if event["written"] != WriteStatus.UNCHANGED:
            event["rounded"] = sorted(produced.rounded)
            event["named"] = [*named, *produced.lost]

    def _remarks_on(self, golden: Golden) -> Sequence[Remark]:
        """Return the remarks on errors that the outputs of a golden would not show.

        If its noise was measured earlier, there are only those that its files show without further runs, under `-v`.
        """
        if self._test.marked["nothing_to_compare"]:  # a golden without values has a reason, which is in its marker
            return ()
        remarks = self._remarks.get(golden.manifest.case)
        if remarks is None:
            return remarks_without_runs(golden) if self._test.is_verbose else ()
        return remarks

    def _can_rename(self, old: str, produced: ProducedGolden) -> bool:
        """Return whether `rename_case` can rename the case `old` to the case that was just written.

        The new case may only have goldens that `old` has too, with equal content.
        """
        try:
            rename_case(self._test.store, old, produced.manifest.case, produced.manifest.test, dry_run=True)
        except GoldenError:
            return False
        return True
