"""Checking a test that has passed against its goldens: the export, the inputs, and a replay of each golden."""

from collections import Counter

from msgspec import structs

from export_core.base.errors import ExportCompatError
from export_core.base.text import few, shown
from export_core.export.golden_checks import require_values
from export_core.export.produce import ProducedGolden, free_caches
from export_core.goldens import Golden
from export_core.judge import Judgement, Result
from export_core.judge.accepted import other_noise
from export_core.judge.generations import changes_between_goldens
from export_core.matrix import Verdict
from export_core.matrix.comparisons import under_policy
from export_core.numbers.measuring_noise import lacks_noise
from export_core.numbers.noise import hides_large_errors
from export_core.policy.feature_keys import with_entries
from export_core.policy.known_issues import known_issues
from export_core.report.document import Finding
from export_core.report.view import broken_cell
from export_core.report.wording import outcome_line, window_line
from export_core.run.run import by_rules
from pytest_jaxexport.changes import changed_inputs, changed_settings, source_difference
from pytest_jaxexport.comparing import correction
from pytest_jaxexport.events import CheckedCase
from pytest_jaxexport.recorded_test import RecordedTest
from pytest_jaxexport.second_export import MORE_SEEDS, SecondExports, try_more_seeds

_EQUAL_OUTPUTS = (
    "The outputs are equal, as this test compares them. `changed_module: warn` in the policy lets such a change pass."
)
_RULES_OF_THE_TEST = (
    "The marker or an option of this run decides this. `jaxexport` commands use only the golden's rule and the policy, "
    "and may find that the cell passes. To change that, add to the policy what the marker says."
)


class GoldenChecking:
    """The checks of what one test exported against its goldens."""

    def __init__(self, test: RecordedTest, second_exports: SecondExports) -> None:
        self._test = test
        self._second = second_exports

    def check(self, produced: ProducedGolden) -> None:
        """Fail the test unless a case agrees with all of its goldens, and record what was found for the summary."""
        __tracebackhide__ = True
        manifest = produced.manifest
        generations = self._test.replayer.goldens(manifest.case)
        if not generations:
            self._test.fail(
                f"No golden of this test yet: expected one in {self._test.store.root / manifest.case}.\n"
                f"Write it: {self._test.remedy}{self._why_not_written(produced)}"
                + (f"\n{hint}" if (hint := self._test.rename_hint(produced)) else "")
            )
        # The golden by this very writer, else the newest one.
        reference = next((g for g in generations if g.manifest.writer.id == manifest.writer.id), generations[-1])
        change, differs_again = self._require_same(produced, reference)
        other_inputs = self._other_inputs(produced, reference)
        (produced,) = free_caches([produced])
        with self._test.progress(f"running the goldens of {shown(manifest.case)} in new processes"):
            results, stored = self._test.replayer.replayed(manifest.case, list(map(self._test.marked_now, generations)))
        policy, command = self._test.settings.policy, self._test.replayer.command()[1:]
        if self._test.marked["entries"]:
            results = by_rules(results, with_entries(policy, self._test.marked["entries"]))
        unmeasured = sum(map(lacks_noise, generations))
        marked = under_policy([*map(self._test.marked_now, generations)], policy)
        undecided = [golden.id for golden in marked if hides_large_errors(golden, policy.tolerances)]
        self._test.events.append(
            CheckedCase(
                **self._test.about(manifest, unmeasured),
                judgements=Counter(str(result.judgement) for result in results),
                shown=[
                    *((r.golden, outcome_with_window(r)) for r in results if r.judgement.facts.badness > 0),
                    # A marker says how outputs are compared, and nothing of the noise that a golden brings along.
                    *((name, one.what) for one in other_noise(generations, policy) for name in one.cases),
                ],
                changed=change,
                other_inputs=other_inputs,
                # Not their outputs: that takes up to 0.3 s a case, and a matrix does it.
                other_generations=changes_between_goldens(generations, policy, command, outputs=False),
                compared_by_outputs=differs_again or not reference.manifest.reproducible,
                own=reference.manifest.writer.id == manifest.writer.id,
                stored=stored,
                elsewhere=len(generations) - len(results),
                without_outputs=sum(bool(golden.manifest.options.without_outputs) for golden in generations),
                undecided=undecided,
                corrected=correction(generations, self._test.marked, self._test.settings),
            )
        )
        if wrong := [result for result in results if result.judgement.fails_run]:
            # A matrix knows neither the marker nor an option of pytest, and may find that the cell passes.
            goldens = {golden.id: golden for golden in generations}
            by_test = [self._is_of_test(one, goldens[one.golden]) for one in wrong]
            again = self._test.command("--no-export-cache")
            wrong = [
                structs.replace(one, reproduce=again) if decided else one
                for one, decided in zip(wrong, by_test, strict=True)
            ]
            findings = (broken_cell(result, known_issues(policy.known_issues), policy.goldens) for result in wrong)
            self._test.fail("\n\n".join([*map(_as_text, findings), *([_RULES_OF_THE_TEST] if any(by_test) else [])]))

    def _is_of_test(self, result: Result, golden: Golden) -> bool:
        """Return whether a cell fails by a limit of the marker or of an option, which `jaxexport` does not know."""
        if result.verdict is Verdict.NUMERICS:
            return correction([golden], self._test.marked, self._test.settings) is not None
        return result.verdict.works and bool(self._test.marked["entries"])

    def _why_not_written(self, produced: ProducedGolden) -> str:
        """Return, on a line of its own, why a golden that is missing cannot be written; empty if it may be written."""
        try:
            require_values(produced, self._test.marked["nothing_to_compare"])
        except ExportCompatError as error:
            return f"\nBefore that: {str(error).removeprefix(f'{produced.case.test}: ')}"
        return ""

    def _require_same(self, produced: ProducedGolden, reference: Golden) -> tuple[str, bool]:
        """Fail a test that exports something different from its golden.

        Returns a change that `changed_module` lets pass, empty if there is none, and whether two exports of the test
        differ.
        """
        __tracebackhide__ = True
        manifest, then = produced.manifest, reference.manifest
        lines, export, flags = self._test.changes(produced, reference)
        # Other numbers fail the test, whatever a second export says.
        differs_again, more_seeds = False, []
        if export and not lines:
            differs = self._second.differs_under_other_seeds(produced)
            differs_again, export = bool(differs), [] if differs else export
            is_unexplained = differs is False and not changed_settings(manifest, then)
            more_seeds = [self._more_seeds()] if is_unexplained else []
        fails = (self._test.marked["changed_module"] or self._test.settings.policy.changed_module) == "fail"
        if export and (fails or lines):
            if not lines and produced.outputs is not None and not reference.manifest.options.without_outputs:
                flags = [*flags, _EQUAL_OUTPUTS]
            lines += ["export changed, beyond locations and names:", *(f"  {line}" for line in export)]
        if lines:
            differing = source_difference(reference.folder, produced.files, then, manifest, operations=not export)
            self._test.fail(
                f"{_what_differs(lines[0])} than its golden by jaxlib {then.writer.jaxlib} "
                f"(built {then.writer.built}) in {reference.folder}:\n"
                + "\n".join([*lines, *flags, *differing])
                + f"\nIf the change is intended: {self._test.remedy}\n"
                + "\n".join(["Goldens by other writers are not changed: they represent what is deployed.", *more_seeds])
            )
        return "".join(export[:1]), differs_again

    def _other_inputs(self, produced: ProducedGolden, reference: Golden) -> list[str]:
        """Return the example arguments that are not the golden's inputs.

        Fails the test if there are any and `changed_inputs` of the policy is `fail`.
        """
        __tracebackhide__ = True
        other = changed_inputs(produced, reference)
        if other and self._test.settings.policy.changed_inputs == "fail":
            self._test.fail(
                f"Example arguments are not the inputs of the golden in {reference.folder}, and changed_inputs is "
                f"fail: {few(other)}.\nIf they are random, seed them in the test, else they differ from run to run. If "
                f"the change is intended: {self._test.remedy}"
            )
        return other

    def _more_seeds(self) -> str:
        """Return the command that tries more hash seeds, and to whom it is of use: who has changed nothing."""
        return (
            f"If you changed nothing, the hash seed may have changed the export. {self._second.other_seeds} other "
            f"seeds do not restore it; this tries {MORE_SEEDS}, until the test passes:\n"
            f"{try_more_seeds(self._test.command())}"
        )


def _what_differs(line: str) -> str:
    """Return the first words of a message about changes: ``Other numbers`` or ``Another export``.

    They follow from the first line of `Changes`.
    """
    what = line.partition(":")[0]
    return "Another export" if what.startswith("export changed") else f"Other {what}"


def outcome_with_window(result: Result) -> str:
    """Return in words what happened to a golden. Outside the window, the dates that decide this follow."""
    outcome = outcome_line(result)
    if result.judgement is not Judgement.OUTSIDE:
        return outcome
    return f"{outcome}; {window_line(result)}"


def _as_text(finding: Finding) -> str:
    """Return the text in which pytest shows a finding about one golden. It begins with what happened."""
    (result,) = finding.results
    return f"{finding.title}: {outcome_line(result)}\n{finding.text}"
