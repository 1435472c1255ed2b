"""The work of the fixture `export_golden`: export, audit, compare with the goldens, replay them; or write a golden."""

import functools
import inspect
import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, cast

import msgspec
import pytest

from export_core.artifact import read_bytes
from export_core.artifact.export_changes import export_digest
from export_core.base.errors import ExportCompatError
from export_core.base.text import few, shown
from export_core.export.case import Case, case_id
from export_core.export.golden_checks import (
    MISMATCH,
    ExtraCall,
    GoldenChecks,
    call_name,
    inputs_file,
    require_values,
)
from export_core.export.produce import (
    LARGE,
    ExportedAgain,
    ProducedGolden,
    Uncalled,
    export_again,
    free_caches,
    produce,
)
from export_core.goldens import Golden, GoldenError, GoldenStore
from export_core.goldens.manifest import Manifest
from export_core.goldens.restoring import rewriting, with_test
from export_core.goldens.store import ARTIFACT, WriteStatus
from export_core.goldens.upkeep import rename_case
from export_core.judge import Judgement, Result
from export_core.judge.accepted import other_noise
from export_core.judge.generations import other_generations
from export_core.matrix.comparisons import under_policy
from export_core.numbers.compare import GoldenOutputs
from export_core.numbers.elements import bits_of
from export_core.numbers.leaf_paths import leaf_paths, output_paths
from export_core.numbers.measuring_noise import MeasuredNoise, lacks_noise
from export_core.numbers.noise import WHAT_TO_DO, left_to_noise, outputs_to_name
from export_core.numbers.nothing_compared import calls_without_values
from export_core.numbers.shows_nothing import (
    MEANT,
    Remark,
    meant_line,
    remark_lines,
    remarks_without_runs,
    unknown_leaves,
)
from export_core.numbers.unseen_errors import not_seen
from export_core.policy.feature_keys import with_entries
from export_core.policy.known_issues import known_issues
from export_core.readers.packages import import_problems, installed_packages
from export_core.releases.names import title_of
from export_core.report.document import Finding
from export_core.report.view import broken_cell
from export_core.report.wording import outcome_line, window_line
from export_core.run.case_options import export_options
from export_core.run.golden_writing import add_noise, first_crash, require_audited, require_first_call
from export_core.run.marker_keywords import ALL_KEYWORDS, KeywordError
from export_core.run.run import by_rules
from pytest_jaxexport.changes import Changes, changed_inputs, changed_settings, changes_since, source_difference
from pytest_jaxexport.comparing import comparison, correction, marked_now
from pytest_jaxexport.events import AnyEvent, CheckedCase, DeployedCase, Event, LeftCase, WrittenCase
from pytest_jaxexport.ledger import Ledger
from pytest_jaxexport.long_steps import shown_in_log
from pytest_jaxexport.marker import NAME, Marked, full_name, locate, own_constants, own_targets
from pytest_jaxexport.replacing import replaced_parts
from pytest_jaxexport.replayer import Replayer
from pytest_jaxexport.reviewing import REVIEWER, Reviewer
from pytest_jaxexport.second_export import (
    MORE_SEEDS,
    SecondArtifact,
    SecondExport,
    exports_again_otherwise,
    try_more_seeds,
)
from pytest_jaxexport.settings import Settings
from pytest_jaxexport.summary import run_words
from pytest_jaxexport.unused_goldens import rename_hint

_EQUAL_OUTPUTS = (
    "The outputs are equal, as this test compares them. `changed_module: warn` in the policy lets such a change pass."
)
_NOT_REPRODUCIBLE = (
    "not reproducible: two exports differed, so tests compare only its outputs, and fail if these differ in each run "
    "too: seed random arrays that the test closes over"
)
_OTHER_INPUTS = (
    "a second process has other example arguments: if they are random, seed them, else they differ in each run"
)
_NEVER_REPEATED = f"a second process exports no artifacts for TPUs, and none larger than {LARGE >> 20} MiB"
LEAVES = 40  # The most leaves that a message lists if no leaf has the given name.


class Exported:
    """What `export_golden` returns: `also` and `refused` add calls that the exported function must take, or refuse."""

    def __init__(self, checks: GoldenChecks | None, ledger: Ledger, *, to_write: bool) -> None:
        """Store what further calls need. `checks` is None in a second process, which exports but runs nothing."""
        self.checks = checks
        self.to_write = to_write
        self._ledger = ledger

    def also(self, *args: Any, **kwargs: Any) -> None:
        """Add a call with other values as arguments, or with other sizes of symbolic dimensions.

        Its outputs are stored in the golden and compared in every reader. The function is called at once, with the
        settings of jax that hold at this call.
        """
        __tracebackhide__ = True
        self._add("also()", ExtraCall(args, kwargs, place=_place("also()")))

    def refused(self, *args: Any, match: str = MISMATCH, **kwargs: Any) -> None:
        """Add a call that must be refused, here and in every reader: a shape outside the constraints, another dtype.

        Args:
            args: the arguments.
            match: a regular expression that must match somewhere in the refusal's message, in every release. It has at
                most one `*` or `+` in each alternative, and no `{…}`.
            kwargs: keyword arguments of the function.
        """
        __tracebackhide__ = True
        self._add("refused()", ExtraCall(args, kwargs, match, _place("refused()")))

    def _add(self, what: str, call: ExtraCall) -> None:
        __tracebackhide__ = True
        with self._ledger.enter(what):
            try:
                if self.checks is not None:
                    check_keywords(f"exported.{what}", self.checks.produced.case.function, call.kwargs)
                    self.checks.add(call)
            except ExportCompatError as error:
                raise pytest.fail.Exception(shown(str(error)), pytrace=False) from None


class SecondExported(Exported):
    """What `export_golden` returns in a second process: further calls are not run, their inputs are hashed."""

    def __init__(self, again: ExportedAgain, inputs: dict[str, str], ledger: Ledger) -> None:
        """Store what further calls need; the hash of each call's inputs is added to `inputs`, by their file."""
        super().__init__(None, ledger, to_write=False)
        self._again = again
        self._inputs = inputs
        self._calls = 0

    def _add(self, what: str, call: ExtraCall) -> None:
        self._calls += 1
        with self._ledger.enter(what), suppress(ExportCompatError):  # the first process has reported it
            if call.refused is None and (sha256 := self._again.hash_inputs(call.args, call.kwargs)):
                self._inputs[inputs_file(call_name(self._calls))] = sha256


def _place(call: str) -> str:
    """Return a call of the test with its file and line: `also() at test_a.py:16`."""
    frame = sys._getframe(2)
    return f"{call} at {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


class Recorder:
    """The `export_golden` of one test.

    `cases` are those that it exported, `renamed` the unused cases that may be these under an earlier name. `events` is
    plain data for the terminal summary. `second_exports` are processes that export the test again: the first is
    a fork, the others have other hash seeds. `step` is what it is doing, or was doing when the test was interrupted.
    """

    def __init__(
        self,
        item: pytest.Item,
        ledger: Ledger,
        marked: Marked,
        settings: Settings,
        replayer: Replayer,
        second_exports: Sequence[SecondExport],
    ) -> None:
        self._item = item
        self._ledger = ledger
        self._forked_exports, self._second_exports = second_exports[:1], second_exports[1:]
        self._marked = marked
        self._settings = settings
        self._replayer = replayer
        self._store = GoldenStore(settings.goldens)
        self._exported: list[Exported] = []
        self._marked_now = partial(marked_now, marked=marked, settings=settings)
        self._names: set[str | None] = set()
        self._deferred: set[str] = set()
        self._not_repeated: dict[str, str] = {}
        self._with_other_inputs: set[str] = set()
        self._remarks: dict[str, tuple[Remark, ...]] = {}
        self.events: list[Event] = []
        self.cases: list[str] = []
        self.renamed: list[str] = []
        self.step = ""

    def __call__(
        self, function: Callable[..., Any] | None = None, /, *args: Any, name: str | None = None, **kwargs: Any
    ) -> Exported:
        """Export `function`, which must be jitted, with these example arguments.

        Args:
            function: the result of `jax.jit`, a `functools.partial` or bound method of one, or the jit of a library
                (`eqx.filter_jit`, `nnx.jit`), which takes the arrays in its arguments as arguments.
            args: example arguments: trees of arrays (jax.Array, numpy.ndarray) and Python numbers, and static
                arguments. The values of the arrays become the golden's inputs. A `jax.ShapeDtypeStruct` may stand for
                an array, whose value then follows a fixed rule.
            name: what distinguishes several calls in one test.
            kwargs: keyword arguments of `function`. If arguments are `jax.ShapeDtypeStruct`, `inputs` may give a value
                for each.

        Returns:
            An object whose `also` and `refused` add further calls. Everything is checked against the goldens, or
            written, when the test has passed.
        """
        __tracebackhide__ = True
        with self._ledger.enter(_call_text(name)):
            self._take_name(name)
            try:
                if function is None:
                    raise KeywordError(
                        f"{_call_text(name)}: expected a jitted function and its example arguments, found none: "
                        "export_golden(jax.jit(f), *args)."
                    )
                check_keywords(_call_text(name), function, kwargs)
                self._exported.append(self._export(self._case(function, args, kwargs, name)))
            except ExportCompatError as error:
                self._fail(str(error))
            return self._exported[-1]

    def _take_name(self, name: str | None) -> None:
        """Fail a call whose name is not text, or is the name of an earlier call."""
        __tracebackhide__ = True
        if name is not None and not (isinstance(name, str) and name):
            self._fail(f"export_golden: name={name!r}: expected text that distinguishes this call from others.")
        # The name is part of the golden's folder: two calls with one name would overwrite each other.
        if name in self._names:
            again = f"twice with name={name!r}" if name else "twice without name="
            self._fail(f"export_golden was called {again}: give each call of a test a name of its own.")
        self._names.add(name)

    def _export(self, case: Case) -> Exported:
        __tracebackhide__ = True
        own: list[Golden] = []
        if self._settings.update == "missing":
            own = [*filter(self._replayer.is_own, self._replayer.goldens(case.id))]
        to_write = bool(self._settings.update) and not own
        repeats = to_write and self._exports_new_twice
        if to_write:
            self._replayer.begin_worker()
            if repeats and not self._own(case.id):
                self._forked_exports[0].start(self._item.nodeid)
        with self._progress(f"exporting {shown(case.id)} and running it"):
            produced = produce(
                case,
                self._replayer.calendar,
                reproducible=to_write,
                module_text=to_write and self._settings.module_text,
                before_call=partial(self._before_call, to_write=to_write),
            )
        if repeats and self._can_be_repeated(produced) and not self._stored(produced):
            self._forked_exports[0].begin(self._item.nodeid)
        if not to_write:
            # Both before anything of the test can fail.
            self._note_left(produced.manifest, own)
            self._note_targets(produced.manifest)
        same = None if to_write else self._golden_of_the_same_call(produced)
        return Exported(GoldenChecks(produced, same), self._ledger, to_write=to_write)

    def _note_left(self, manifest: Manifest, own: Sequence[Golden]) -> None:
        """Note which goldens a run that writes missing ones leaves as they are."""
        self.events += [LeftCase(**self._of_test(manifest), left=one.id) for one in own]

    def _note_targets(self, manifest: Manifest) -> None:
        """Note in which other releases a case has to run, before anything of its test can fail."""
        day, own = self._replayer.calendar.today(), manifest.writer.jaxlib
        deployed = [
            title_of(target.release)
            for target in self._settings.policy.deployed
            if target.release != own and target.in_force(day) and target.must_run(manifest.case, manifest.runs_on)
        ]
        if deployed:
            command = shlex.join(self._replayer.command("matrix", "--readers", "deployed"))
            titles = [*dict.fromkeys(deployed)]
            self.events.append(DeployedCase(**self._of_test(manifest), deployed=titles, run_deployed=command))

    def _golden_of_the_same_call(self, produced: ProducedGolden) -> Golden | None:
        """Return the golden by this writer with the same artifact, settings and inputs, or None.

        The derivatives and refusals of equal bytes are equal, so they need not be checked again. It is None for a case
        that allows custom calls: these may call what no module holds, such as a function of Python. What this processor
        computes is compared when the golden is replayed.
        """
        now = produced.manifest
        if now.options.allow:
            return None
        with suppress(GoldenError):  # a damaged golden fails the test at its end
            for golden in filter(self._replayer.is_own, self._replayer.goldens(now.case)):
                then = golden.manifest
                if (then.files[ARTIFACT], then.flags, then.options) == (
                    now.files[ARTIFACT],
                    now.flags,
                    now.options,
                ) and bits_of(produced.inputs) == bits_of(golden.inputs()):
                    return golden
        return None

    def _before_call(self, uncalled: Uncalled, *, to_write: bool) -> None:
        """Audit an artifact, then have a child process call it before this process does."""
        __tracebackhide__ = True
        case, packages = uncalled.case, self._settings.policy.reader_packages
        # In what is to be written, also modules that import more than readers have.
        also = import_problems(case.registration_files(), packages) if to_write else ()
        require_audited(uncalled.artifact, case.options.allow, uncalled.writer, also)
        if uncalled.runs_here and uncalled.writer.platform == "cpu":  # a second process may not get another device
            goldens: list[Golden] = []
            with suppress(GoldenError):  # a damaged golden fails the test at its end
                goldens = [] if to_write else self._replayer.goldens(case.id)
            require_first_call(case.test, self._replayer.first_call(uncalled, goldens, self._marked))

    def finish(self) -> None:
        """Compare what a passed test exported with its goldens, or write goldens if the run was asked to."""
        __tracebackhide__ = True
        self._ledger.require_all()
        try:
            self._require_use_of_targets()
            self._require_constants()
            to_check: list[ProducedGolden] = []
            whole: list[ProducedGolden] = []
            while self._exported:  # emptied, or they stay in memory
                exported = self._exported.pop(0)
                (whole if exported.to_write else to_check).append(_checks_of(exported).whole())
            del exported
            while to_check:
                self._check(to_check.pop(0))
            if not whole:
                return
            whole = free_caches(whole)  # before any other name holds one of them
            whole = [require_values(produced, self._marked["nothing_to_compare"]) for produced in whole]
            store, policy = self._store, self._settings.policy
            repeated = map(self._with_second_export, whole)
            whole = [add_noise(produced, store, policy, self._measured) for produced in repeated]
            # All are replayed before one is stored, for the same reason.
            crashes = [first_crash(produced, self._first_replay) for produced in whole]
            for produced, crash in zip(whole, crashes, strict=True):
                self._write(produced, crash)
        except ExportCompatError as error:
            self._fail(str(error))

    def _require_use_of_targets(self) -> None:
        """Fail a test whose own marker allows custom calls that neither its exports nor its goldens make."""
        __tracebackhide__ = True
        unused = own_targets(self._item)
        for produced in (_checks_of(exported).produced for exported in self._exported):
            goldens = self._generations(produced.case.id) if unused else []
            unused = unused.difference(
                produced.manifest.custom_calls, *(golden.manifest.custom_calls for golden in goldens)
            )
        if unused and self._exported:
            self._fail(
                "allow or disabled_checks name custom calls that are neither in what is exported nor "
                f"in any golden of this test: {', '.join(sorted(unused))}. Remove them."
            )

    def _require_constants(self) -> None:
        """Fail a test if its own marker's `constant` names a leaf that none of its exports has."""
        __tracebackhide__ = True
        names = own_constants(self._item)
        if not names or not self._exported:
            return
        leaves: dict[str, None] = {}
        for produced in (_checks_of(exported).produced for exported in self._exported):
            for paths in leaf_paths(produced.manifest, produced.artifact):
                leaves |= dict.fromkeys(paths)
        if not (unknown := unknown_leaves(names, list(leaves))):
            return
        gone = self._gone_leaves(unknown)
        if gone and not all(exported.to_write for exported in self._exported):
            return  # the comparison with that golden says what has changed
        was = f" The golden has {', '.join(gone)}, which the function has no more." if gone else ""
        self._fail(
            f"constant={list(names)!r}: expected leaves of what is exported, found {', '.join(unknown)}. The "
            f"leaves are {few(list(leaves), most=LEAVES)}.{was} Correct the names, or remove those that are not meant."
        )

    def _gone_leaves(self, unknown: Sequence[str]) -> list[str]:
        """Return those of the leaves that what is exported lacks and a stored golden of the same case has."""
        stored: list[str] = []
        for produced in (_checks_of(exported).produced for exported in self._exported):
            for golden in self._generations(produced.case.id):
                for paths in leaf_paths(golden.manifest, golden.read_artifact()):
                    stored += paths
        still_unknown = unknown_leaves(unknown, stored)
        return [name for name in unknown if name not in still_unknown]

    def _own(self, case: str) -> Golden | None:
        """Return the stored golden of a case by this run's writer, or None."""
        return next(filter(self._replayer.is_own, self._generations(case)), None)

    def _generations(self, case: str) -> list[Golden]:
        """Return the stored goldens of a case: only those that can be read, if this run writes again what cannot.

        Goldens by other writers may be damaged too, which the next run that checks them reports.
        """
        store = self._store
        return store.readable(case) if self._settings.update == "all" else store.generations(case)

    @property
    def _exports_new_twice(self) -> bool:
        """Whether a second process also exports a new golden's function.

        Not with --noise=later: the first run that checks the golden has another hash seed, and so is a second export.
        """
        return self._settings.second_export and not (self._settings.noise_later or self._settings.dry_run)

    def _stored(self, produced: ProducedGolden) -> Golden | None:
        """Return the stored golden by this run's writer if it has the same artifact, else None."""
        own = self._own(produced.case.id)
        return own if own and own.manifest.files.get(ARTIFACT) == produced.manifest.files[ARTIFACT] else None

    def _can_be_repeated(self, produced: ProducedGolden) -> bool:
        """Return whether a second process may export this case.

        A TPU belongs to one process, and a large artifact may need most of the memory.
        """
        fits = len(produced.artifact.data) <= LARGE and produced.manifest.writer.platform != "tpu"
        return self._settings.second_export and fits

    def _exports_again_otherwise(self, produced: ProducedGolden, processes: Sequence[SecondExport]) -> bool | None:
        """Return whether one of these processes exports the case differently.

        None if they cannot export it, or if no second export is wanted.
        """
        if not self._can_be_repeated(produced):
            return None
        with self._progress(f"exporting {shown(produced.case.id)} again: --no-second-export leaves it out"):
            return exports_again_otherwise(processes, self._item.nodeid, produced)

    def _new_exports_again_otherwise(self, produced: ProducedGolden) -> bool | None:
        """Return whether a second process exports a case that is to be written differently; None if that is not known.

        A fork is asked first, since it starts sooner. It differs from this process in some ways, so only an equal
        export counts.
        """
        if self._exports_again_otherwise(produced, self._forked_exports) is False:
            return False
        return self._exports_again_otherwise(produced, self._second_exports[:1])

    def _with_second_export(self, produced: ProducedGolden) -> ProducedGolden:
        """Return the golden, marked as not reproducible if a second export differs.

        A stored golden with the same artifact has the answer already.
        """
        if stored := self._stored(produced):
            differs: bool | None = not stored.manifest.reproducible
        else:
            differs = self._new_exports_again_otherwise(produced) if self._exports_new_twice else None
            if differs is None and self._exports_new_twice:
                process = self._second_exports[0]
                self._not_repeated[produced.case.id] = process.not_compared.get(produced.case.id, _NEVER_REPEATED)
            elif differs is not None and self._makes_other_inputs_again(produced):
                self._with_other_inputs.add(produced.case.id)
        return replace(produced, manifest=msgspec.structs.replace(produced.manifest, reproducible=not differs))

    def _makes_other_inputs_again(self, produced: ProducedGolden) -> bool:
        """Return whether the example arguments of a test that a second process exports are others there.

        The fork is asked first: its libraries may add in another order, so only equal arguments count.
        """
        test = self._item.nodeid
        if any(process.makes_other_inputs(test, produced) is False for process in self._forked_exports):
            return False
        return any(process.makes_other_inputs(test, produced) for process in self._second_exports[:1])

    def _first_replay(self, golden: Golden) -> Sequence[Result]:
        """Return the results of a golden in a new process, before it is stored."""
        with self._progress(f"running {shown(golden.id)} in a new process"):
            return self._replayer.replay([self._marked_now(golden)])[0]

    def _measured(self, golden: Golden) -> MeasuredNoise | str:
        if self._settings.noise_later or self._settings.dry_run:
            self._deferred |= {golden.manifest.case} if lacks_noise(golden) else set()
            return "it is measured later"
        with self._progress(f"measuring the noise of {shown(golden.id)}: --noise=later leaves it out"):
            measured = self._replayer.noise(golden)
        if isinstance(measured, MeasuredNoise):
            self._remarks[golden.manifest.case] = measured.remarks
        return measured

    def _write(self, produced: ProducedGolden, crash: str) -> None:
        """Write a golden, unless the run only shows what it would write, or the reviewer says no."""
        packages = installed_packages() if self._settings.record_packages else {}
        produced = replace(produced, manifest=msgspec.structs.replace(produced.manifest, packages=packages))
        case, writer = produced.manifest.case, produced.manifest.writer.id
        is_new = not (self._generations(case) or self._store.is_unreadable(case, writer))
        renamed = self._rename_hint(produced) if is_new else ""
        written, replaced = self._change(produced)
        event = WrittenCase(
            **self._of_test(produced.manifest),
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
            self._store.write(produced.manifest, produced.files)
            self._add_remarks(event, produced)
            if renamed and not self._can_rename(self.renamed[-1], produced):
                folder = os.path.relpath(self._store.root / case, self._settings.directory)
                event["renamed"] += f", after deleting {Path(folder).as_posix()}, which was just written"
        else:
            event["written"] = left
        self.events.append(event)

    def _change(self, produced: ProducedGolden) -> tuple[WriteStatus, list[str]]:
        """Return what writing a golden changes, and which parts of a stored golden it replaces."""
        own = self._own(produced.manifest.case)
        noise_to_come = self._settings.dry_run and not self._settings.noise_later
        if own is None:
            if self._store.is_unreadable(produced.manifest.case, produced.manifest.writer.id):
                return WriteStatus.REPLACED, ["its golden.yaml could not be read"]
            return WriteStatus.NEW, []
        if not self._store.holds(produced.manifest, produced.files):
            wanted = self._wanted(own, produced)
            parts = replaced_parts(produced, wanted, noise_to_come=noise_to_come)
            pins = self._settings.policy.retention.reasons_for(own.names)
            return WriteStatus.REPLACED, [*(f"pinned by the policy ({reason})" for reason in pins), *parts]
        if noise_to_come and own.manifest.case in self._deferred:
            return WriteStatus.REPLACED, ["noise, which is measured"]
        return WriteStatus.UNCHANGED, []

    def _left(self, event: WrittenCase) -> str:
        """Return why a new or changed golden is not written, in words of the summary; empty if it is written."""
        change = event["written"]
        if self._settings.dry_run:
            return f"would be {change}"
        if self._settings.reviewed:
            parts = (*event["replaced"], *filter(None, (event["crash"], event["renamed"])))
            first = f"{event['case']}/{event['writer']}: {change}{':' if parts else ''}"
            reviewer = self._item.config.stash.setdefault(REVIEWER, Reviewer())
            if not reviewer.accepts("\n  ".join(map(shown, (first, *parts)))):
                return f"not {'written' if change == WriteStatus.NEW else change}, as answered"
        return ""

    def _add_remarks(self, event: WrittenCase, produced: ProducedGolden) -> None:
        """Add to an event the remarks on a golden that has just been written."""
        case, writer = event["case"], event["writer"]
        policy = self._settings.policy
        generations = under_policy(self._generations(case), policy)
        (golden,) = [one for one in generations if one.manifest.writer.id == writer]
        noise = left_to_noise(golden, policy.tolerances)
        named = outputs_to_name(noise, output_paths(golden)) if noise else []
        to_do = [WHAT_TO_DO] if noise and noise.undecided_outputs else []
        if remarks := self._remarks_on(golden):
            constant, verbose = self._marked["constant"] or (), self._item.config.get_verbosity() > 0
            leaves = [path for paths in leaf_paths(produced.manifest, produced.artifact) for path in paths]
            if lines := remark_lines(remarks, constant, leaves, whole=verbose, how_to_see="-v"):
                meant = meant_line(produced.manifest.test, remarks, constant, leaves, whole=verbose)
                named, to_do = [*named, *lines], [*to_do, MEANT, meant]
        if produced.outputs is None:
            reason = produced.manifest.options.without_outputs
            named = [f"stored without outputs: readers compile it, and compare no numbers ({reason})"]
        elif not self._marked["nothing_to_compare"]:
            named = [*named, *calls_without_values(golden)]
        if not produced.manifest.reproducible:
            named = [*named, _NOT_REPRODUCIBLE]
        if case in self._with_other_inputs:
            named = [*named, _OTHER_INPUTS]
        others = other_generations(generations, policy, self._replayer.command()[1:], asked=[golden.id])
        named = [*named, *(text.removeprefix(f"{case}: ") for text in others)]
        parts = {f"{case}, {name}": part for name, part in not_seen(golden, policy.tolerances).items()} if noise else {}
        deferred = case in self._deferred
        event["unmeasured"], event["measure"] = int(deferred), self._measure if deferred else ""
        event["named"], event["to_do"] = named, to_do
        event["not_repeated"], event["not_seen"] = self._not_repeated.get(case, ""), parts
        if event["written"] != WriteStatus.UNCHANGED:
            event["rounded"] = sorted(produced.rounded)
            event["named"] = [*named, *produced.lost]

    def _remarks_on(self, golden: Golden) -> Sequence[Remark]:
        """Return the remarks on what a golden does not show.

        If its noise was measured earlier, there are only those that its files show without further runs, under `-v`.
        """
        if self._marked["nothing_to_compare"]:  # a golden without values has a reason, which is in its marker
            return ()
        remarks = self._remarks.get(golden.manifest.case)
        if remarks is None:
            return remarks_without_runs(golden) if self._item.config.get_verbosity() > 0 else ()
        return remarks

    @property
    def _measure(self) -> str:
        """The command that measures the noise of goldens that have none."""
        return shlex.join(self._replayer.noise_command)

    def _case(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None
    ) -> Case:
        path, names = locate(self._item)
        case = Case(
            id=case_id(path, names, name),
            test=full_name(self._item),
            name=name,
            function=function,
            args=args,
            kwargs=kwargs,
            options=export_options(self._marked, self._settings.policy, self._settings.platforms),
            comparison=comparison(self._marked, self._settings),
        )
        # Noted before the export: a case whose export fails still belongs to its test, and its goldens are not unused.
        self.cases.append(case.id)
        return case

    def _check(self, produced: ProducedGolden) -> None:
        __tracebackhide__ = True
        manifest = produced.manifest
        generations = self._replayer.goldens(manifest.case)
        if not generations:
            self._fail(
                f"No golden of this test yet: expected one in {self._store.root / manifest.case}.\n"
                f"Write it: {self._remedy}{self._why_not_written(produced)}"
                + (f"\n{hint}" if (hint := self._rename_hint(produced)) else "")
            )
        # The golden by this very writer, else the newest one.
        reference = next((g for g in generations if g.manifest.writer.id == manifest.writer.id), generations[-1])
        change, differs_again = self._require_same(produced, reference)
        other_inputs = self._other_inputs(produced, reference)
        (produced,) = free_caches([produced])
        with self._progress(f"running the goldens of {shown(manifest.case)} in new processes"):
            results, stored = self._replayer.replayed(manifest.case, list(map(self._marked_now, generations)))
        policy = self._settings.policy
        if self._marked["entries"]:
            results = by_rules(results, with_entries(policy, self._marked["entries"]))
        unmeasured = sum(map(lacks_noise, generations))
        self.events.append(
            CheckedCase(
                **self._of_test(manifest, unmeasured),
                judgements=Counter(str(result.judgement) for result in results),
                shown=[
                    *((r.golden, outcome_with_window(r)) for r in results if r.judgement.facts.badness > 0),
                    # A marker says how outputs are compared, and nothing of the noise that a golden brings along.
                    *((name, one.what) for one in other_noise(generations, policy) for name in one.cases),
                ],
                changed=change,
                other_inputs=other_inputs,
                # Not their outputs: that takes up to 0.3 s a case, and a matrix does it.
                other_generations=other_generations(generations, policy, self._replayer.command()[1:], outputs=False),
                compared_by_outputs=differs_again or not reference.manifest.reproducible,
                own=reference.manifest.writer.id == manifest.writer.id,
                stored=stored,
                elsewhere=len(generations) - len(results),
                without_outputs=sum(bool(golden.manifest.options.without_outputs) for golden in generations),
                corrected=correction(generations, self._marked, self._settings),
            )
        )
        if wrong := [result for result in results if result.judgement.fails_run]:
            findings = (broken_cell(result, known_issues(policy.known_issues), policy.goldens) for result in wrong)
            self._fail("\n\n".join(map(_as_text, findings)))

    def _why_not_written(self, produced: ProducedGolden) -> str:
        """Return, on a line of its own, why a golden that is missing cannot be written; empty if it may be written."""
        try:
            require_values(produced, self._marked["nothing_to_compare"])
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
        lines, export, flags = self._changes(produced, reference)
        # Other numbers fail the test, whatever a second export says.
        differs_again, more_seeds = False, []
        if export and not lines:
            differs = self._exports_again_otherwise(produced, self._second_exports)
            differs_again, export = bool(differs), [] if differs else export
            is_unexplained = differs is False and not changed_settings(manifest, then)
            more_seeds = [self._more_seeds()] if is_unexplained else []
        fails = (self._marked["changed_module"] or self._settings.policy.changed_module) == "fail"
        if export and (fails or lines):
            if not lines and produced.outputs is not None and not reference.manifest.options.without_outputs:
                flags = [*flags, _EQUAL_OUTPUTS]
            lines += ["export changed, beyond locations and names:", *(f"  {line}" for line in export)]
        if lines:
            differing = source_difference(reference.folder, produced.files, then, manifest, operations=not export)
            self._fail(
                f"{_what_differs(lines[0])} than its golden by jaxlib {then.writer.jaxlib} "
                f"(built {then.writer.built}) in {reference.folder}:\n"
                + "\n".join([*lines, *flags, *differing, *more_seeds])
                + f"\nIf the change is intended: {self._remedy}\n"
                "Goldens by other writers are not changed: they represent what is deployed."
            )
        return "".join(export[:1]), differs_again

    def _other_inputs(self, produced: ProducedGolden, reference: Golden) -> list[str]:
        """Return the example arguments that are not the golden's inputs.

        Fails the test if there are any and `changed_inputs` of the policy is `fail`.
        """
        __tracebackhide__ = True
        other = changed_inputs(produced, reference)
        if other and self._settings.policy.changed_inputs == "fail":
            self._fail(
                f"Example arguments are not the inputs of the golden in {reference.folder}, and changed_inputs is "
                f"fail: {few(other)}.\nIf they are random, seed them, else they differ in each run. If the change is "
                f"intended: {self._remedy}"
            )
        return other

    def _rename_hint(self, produced: ProducedGolden) -> str:
        agrees = partial(self._agrees, produced)
        with self._progress(f"looking for goldens that {shown(produced.case.id)} may have had by another name"):
            case, hint = rename_hint(produced.manifest, self.cases, agrees, self._settings, self._item.config)
        self.renamed += [case] if case else []
        return hint

    def _can_rename(self, old: str, produced: ProducedGolden) -> bool:
        """Return whether `rename_case` can rename the case `old` to the case that was just written.

        The new case may only have goldens that `old` has too, with equal content.
        """
        try:
            rename_case(self._store, old, produced.manifest.case, produced.manifest.test, dry_run=True)
        except GoldenError:
            return False
        return True

    def _agrees(self, produced: ProducedGolden, golden: Golden) -> bool:
        """Return whether the test exports what this golden, of another case, has."""
        if golden.manifest.signature != produced.manifest.signature:  # before its artifact is read
            return False
        try:
            golden.verify()
            # With another writer's golden without outputs, only the signature could be compared.
            own = golden.manifest.writer.id == produced.manifest.writer.id
            return (own or not golden.manifest.options.without_outputs) and not any(self._changes(produced, golden)[:2])
        except ExportCompatError:
            return False

    def _changes(self, produced: ProducedGolden, reference: Golden) -> Changes:
        return changes_since(produced, self._wanted(reference, produced))

    def _wanted(self, reference: Golden, produced: ProducedGolden) -> GoldenOutputs:
        """Return a stored golden with the rules by which this run compares numbers with it."""
        policy = self._settings.policy
        (compared,) = under_policy([self._marked_now(reference)], policy)
        platform = produced.manifest.writer.platform
        return GoldenOutputs(compared, platform, policy.tolerances, self._replayer.user_code)

    def _more_seeds(self) -> str:
        """Return a text that says that other hash seeds give the same export, and which command tries more seeds."""
        return (
            f"{len(self._second_exports)} processes with other hash seeds export what this one does. If you changed "
            f"nothing, try {MORE_SEEDS}; if none passes, the export has changed: "
            f"{try_more_seeds(self._command())}"
        )

    def _of_test(self, manifest: Manifest, unmeasured: int = 0) -> AnyEvent:
        """Return the facts that every event about a case of this test has."""
        return {
            "case": manifest.case,
            "test": self._test,
            "writer": manifest.writer.id,
            "unmeasured": unmeasured,
            "measure": self._measure if unmeasured else "",
        }

    @property
    def _remedy(self) -> str:
        """The command that writes this test's goldens."""
        return self._command("--update-goldens")

    def _command(self, *options: str) -> str:
        """Return the command that runs this test, for the folder where pytest was called."""
        return shlex.join([*run_words(), *options, *self._settings.repeated, self._test])

    @functools.cached_property
    def _test(self) -> str:
        """This test as a command line names it in the folder where pytest was called."""
        path, _, names = full_name(self._item).partition("::")
        config = self._item.config
        here = Path(os.path.relpath(config.rootpath / path, config.invocation_params.dir)).as_posix()
        return f"{here}::{names}"

    @contextmanager
    def _progress(self, text: str) -> Iterator[None]:
        """Record which step runs, and show it: it stays recorded if Ctrl-C or a SIGTERM ends it."""
        self.step = text
        try:
            with self._shown(text):
                yield
        except Exception:
            self.step = ""
            raise
        self.step = ""

    @contextmanager
    def _shown(self, text: str) -> Iterator[None]:
        """Show a line below pytest's own output while the block runs, if the output is a terminal.

        A log has a line only if the block takes long. Nothing is shown under -q, or by a worker of xdist, which cannot
        print.
        """
        config = self._item.config
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        can_erase = reporter and reporter.isatty and config.get_terminal_writer().hasmarkup
        if not reporter or config.get_verbosity() < 0:
            yield
            return
        if not can_erase:
            with shown_in_log(config, text):
                yield
            return
        capture = config.pluginmanager.get_plugin("capturemanager")

        def write(text: str) -> None:
            # Not by the reporter: it counts what it writes, to know where the percentage of a line goes.
            with capture.global_and_fixture_disabled() if capture else nullcontext():
                sys.stdout.write(text)
                sys.stdout.flush()

        columns = shutil.get_terminal_size().columns
        column = config.get_terminal_writer().width_of_current_line % columns
        write(f"\n{text[: columns - 1]}")
        try:
            yield
        finally:
            write(f"\r\x1b[K\x1b[A\x1b[{column}C" if column else "\r\x1b[K\x1b[A")

    def _fail(self, text: str) -> NoReturn:
        __tracebackhide__ = True
        test = full_name(self._item)
        for case in dict.fromkeys(self.cases):
            text = with_test(text, case, test)
        for general in (rewriting(test), rewriting()):
            text = text.replace(f"`{general}`", f"`{self._remedy}`")
        updating, words = "-- --update-goldens", [*self._settings.repeated, self._test]
        text = text.replace(f"{updating} {shlex.quote(test)}`", f"{updating} {shlex.join(words)}`")
        # pytest says of which test it speaks, and its last lines have room for few words.
        lines = (line.removeprefix(f"{test}: ") for line in text.split("\n"))
        # The text contains that of the error behind it.
        raise pytest.fail.Exception(shown("\n".join(lines)), pytrace=False) from None


class SecondRecorder(Recorder):
    """The `export_golden` of the second pytest: it exports into `exports`, by case, and neither checks nor writes."""

    def __init__(
        self,
        item: pytest.Item,
        ledger: Ledger,
        marked: Marked,
        settings: Settings,
        exports: dict[str, SecondArtifact],
    ) -> None:
        super().__init__(item, ledger, marked, settings, cast("Any", None), ())  # only the first process needs more
        self._exports = exports

    def __call__(
        self, function: Callable[..., Any] | None = None, /, *args: Any, name: str | None = None, **kwargs: Any
    ) -> Exported:
        """Export a case as the first process does, and store its digest."""
        with self._ledger.enter(_call_text(name)):
            assert function is not None  # else the first process has failed this test
            case = self._case(function, args, kwargs, name)
            self._names.add(name)
            try:
                again = export_again(case)
                artifact = read_bytes(again.data)
                digest = export_digest(artifact)
                inputs = dict(again.inputs)
                self._exports[case.id] = (artifact.sha256, digest, again.flags, inputs)
            except ExportCompatError as error:  # the first process has reported it
                self._fail(str(error))
            return SecondExported(again, inputs, self._ledger)

    def finish(self) -> None:
        """Do nothing: the second pytest sends what was exported."""


def check_keywords(call: str, function: Callable[..., Any], kwargs: Mapping[str, Any]) -> None:
    """Raise `KeywordError` for a keyword of the marker in a call, unless the function itself has that parameter.

    A function with `**kwargs` would take the keyword silently, and it would have no effect.

    Args:
        call: the call as its error names it.
        function: what is exported.
        kwargs: its keyword arguments.
    """
    given = [name for name in kwargs if name in ALL_KEYWORDS]
    if not given:
        return
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some callables have no signature
        return
    named = {parameter.name for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_KEYWORD}
    if of_marker := [name for name in given if name not in named]:
        words = ", ".join(f"{name}={kwargs[name]!r}" for name in of_marker)
        what = "is a keyword" if len(of_marker) == 1 else "are keywords"
        raise KeywordError(
            f"{call}: {', '.join(of_marker)} {what} of the marker, and the function has no parameter of that name: "
            f"write @pytest.mark.{NAME}({words})."
        )


def _what_differs(line: str) -> str:
    """Return the first words of a message, from a first line of `Changes`: ``Other numbers``, ``Another export``."""
    what = line.partition(":")[0]
    return "Another export" if what.startswith("export changed") else f"Other {what}"


def outcome_with_window(result: Result) -> str:
    """Return what happened to a golden, and for one outside the window, that nobody promised otherwise, and why."""
    outcome = outcome_line(result)
    if result.judgement is not Judgement.OUTSIDE:
        return outcome
    return f"{outcome}; {window_line(result)}"


def _as_text(finding: Finding) -> str:
    """Return a finding about one golden as pytest shows it, with what happened in the first words."""
    (result,) = finding.results
    return f"{finding.title}: {outcome_line(result)}\n{finding.text}"


def _call_text(name: object) -> str:
    return "export_golden()" if name is None else f"export_golden(name={name!r})"


def _checks_of(exported: Exported) -> GoldenChecks:
    assert exported.checks is not None  # it is None in a second process alone, which checks nothing
    return exported.checks
