"""The fixture `export_golden` of one test: it exports each call, and checks or writes its goldens at the end."""

import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pytest

from export_core.artifact import read_bytes
from export_core.artifact.export_changes import export_digest
from export_core.base.errors import ExportCompatError
from export_core.base.text import few, shown
from export_core.export.case import Case, case_id
from export_core.export.golden_checks import GoldenChecks
from export_core.export.produce import ProducedGolden, Uncalled, export_again, free_caches, produce
from export_core.goldens import Golden, GoldenError
from export_core.goldens.manifest import Manifest
from export_core.goldens.store import ARTIFACT
from export_core.numbers.elements import bits_of
from export_core.numbers.leaf_paths import leaf_paths
from export_core.numbers.shows_nothing import unknown_leaves
from export_core.readers.packages import import_problems
from export_core.releases.names import title_of
from export_core.run.case_options import export_options
from export_core.run.golden_writing import require_audited, require_first_call
from export_core.run.marker_keywords import KeywordError
from pytest_jaxexport.checking import GoldenChecking
from pytest_jaxexport.comparing import comparison
from pytest_jaxexport.events import DeployedCase, Event, LeftCase
from pytest_jaxexport.exported import Exported, SecondExported, check_keywords
from pytest_jaxexport.ledger import Ledger
from pytest_jaxexport.marker import Marked, full_name, locate, own_constants, own_targets
from pytest_jaxexport.recorded_test import RecordedTest
from pytest_jaxexport.replayer import Replayer
from pytest_jaxexport.second_export import SecondArtifact, SecondExport, SecondExports
from pytest_jaxexport.settings import Settings
from pytest_jaxexport.writing import GoldenWriting

LEAVES = 40  # The most leaves that a message lists if no leaf has the given name.


class Recorder:
    """The object that the fixture `export_golden` returns in one test, and that checks or writes its goldens."""

    def __init__(
        self,
        item: pytest.Item,
        ledger: Ledger,
        marked: Marked,
        settings: Settings,
        replayer: Replayer,
        second_exports: Sequence[SecondExport],
    ) -> None:
        """Store what all calls of the test need.

        Args:
            item: the test.
            ledger: the calls that the test has begun and ended.
            marked: the keywords of its markers.
            settings: the settings of the run.
            replayer: what replays goldens in new processes.
            second_exports: processes that export the test again: first a fork, then those with other hash seeds.
        """
        self._ledger = ledger
        self._test = RecordedTest(item, marked, settings, replayer)
        self._second = SecondExports(self._test, second_exports)
        self._exported: list[Exported] = []
        self._names: set[str | None] = set()

    @property
    def events(self) -> list[Event]:
        """The events about the test's goldens: plain data for the terminal summary."""
        return self._test.events

    @property
    def cases(self) -> list[str]:
        """The cases that the test exported."""
        return self._test.cases

    @property
    def renamed(self) -> list[str]:
        """The unused cases that may be former names of this test's cases."""
        return self._test.renamed

    @property
    def step(self) -> str:
        """The step that is running, or was running when the test was interrupted, in words; empty between steps."""
        return self._test.step

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
                self._test.fail(str(error))
            return self._exported[-1]

    def _take_name(self, name: str | None) -> None:
        """Fail the test if the name of a call is not text, or is the name of an earlier call."""
        __tracebackhide__ = True
        if name is not None and not (isinstance(name, str) and name):
            self._test.fail(f"export_golden: name={name!r}: expected text that distinguishes this call from others.")
        # The name is part of the golden's folder: two calls with one name would overwrite each other.
        if name in self._names:
            again = f"twice with name={name!r}" if name else "twice without name="
            self._test.fail(f"export_golden was called {again}: give each call of a test a name of its own.")
        self._names.add(name)

    def _export(self, case: Case) -> Exported:
        __tracebackhide__ = True
        own: list[Golden] = []
        if self._test.settings.update == "missing":
            own = [*filter(self._test.replayer.is_own, self._test.replayer.goldens(case.id))]
        to_write = bool(self._test.settings.update) and not own
        repeats = to_write and self._second.for_new_goldens
        if to_write:
            self._test.replayer.begin_worker()
            if repeats and not self._test.own_golden(case.id):
                self._second.start()
        with self._test.progress(f"exporting {shown(case.id)} and running it"):
            produced = produce(
                case,
                self._test.replayer.calendar,
                reproducible=to_write,
                module_text=to_write and self._test.settings.module_text,
                before_call=partial(self._before_call, to_write=to_write),
            )
        if repeats and self._second.can_export(produced) and not self._test.stored(produced):
            self._second.begin()
        if not to_write:
            # Both before anything of the test can fail.
            self._note_left(produced.manifest, own)
            self._note_targets(produced.manifest)
        same = None if to_write else self._golden_of_the_same_call(produced)
        return Exported(GoldenChecks(produced, same), self._ledger, to_write=to_write)

    def _note_left(self, manifest: Manifest, own: Sequence[Golden]) -> None:
        """Record an event for each golden that stays unchanged, since this run writes only missing goldens."""
        self._test.events += [LeftCase(**self._test.about(manifest), left=one.id) for one in own]

    def _note_targets(self, manifest: Manifest) -> None:
        """Record the other releases in which a case must run. This is done before the test can fail."""
        day, own = self._test.replayer.calendar.today(), manifest.writer.jaxlib
        deployed = [
            title_of(target.release)
            for target in self._test.settings.policy.deployed
            if target.release != own and target.in_force(day) and target.must_run(manifest.case, manifest.runs_on)
        ]
        if deployed:
            command = shlex.join(self._test.replayer.command("matrix", "--readers", "deployed"))
            titles = [*dict.fromkeys(deployed)]
            self._test.events.append(DeployedCase(**self._test.about(manifest), deployed=titles, run_deployed=command))

    def _golden_of_the_same_call(self, produced: ProducedGolden) -> Golden | None:
        """Return the golden by this writer with the same artifact, settings and inputs, or None.

        The golden's derivatives and refusals equal those of the new artifact and need not be checked again. For a case
        that allows custom calls, None is returned: these may call code outside the artifact, such as a Python function.
        The outputs of this processor are compared when the golden is replayed.
        """
        now = produced.manifest
        if now.options.allow:
            return None
        with suppress(GoldenError):  # a damaged golden fails the test at its end
            for golden in filter(self._test.replayer.is_own, self._test.replayer.goldens(now.case)):
                then = golden.manifest
                if (then.files[ARTIFACT], then.flags, then.options) == (
                    now.files[ARTIFACT],
                    now.flags,
                    now.options,
                ) and bits_of(produced.inputs) == bits_of(golden.inputs()):
                    return golden
        return None

    def _before_call(self, uncalled: Uncalled, *, to_write: bool) -> None:
        """Audit an artifact, then call it in a child process, since a call that crashes must not end this process."""
        __tracebackhide__ = True
        case, packages = uncalled.case, self._test.settings.policy.reader_packages
        # In what is to be written, also modules that import more than readers have.
        also = import_problems(case.registration_files(), packages) if to_write else ()
        require_audited(uncalled.artifact, case.options.allow, uncalled.writer, also)
        if uncalled.runs_here and uncalled.writer.platform == "cpu":  # a second process may not get another device
            goldens: list[Golden] = []
            with suppress(GoldenError):  # a damaged golden fails the test at its end
                goldens = [] if to_write else self._test.replayer.goldens(case.id)
            require_first_call(case.test, self._test.replayer.first_call(uncalled, goldens, self._test.marked))

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
            checking = GoldenChecking(self._test, self._second)
            while to_check:
                checking.check(to_check.pop(0))
            if whole:
                whole = free_caches(whole)  # before any other name holds one of them
                GoldenWriting(self._test, self._second).write(whole)
        except ExportCompatError as error:
            self._test.fail(str(error))

    def _require_use_of_targets(self) -> None:
        """Fail a test whose own marker allows custom calls that neither its exports nor its goldens make."""
        __tracebackhide__ = True
        unused = own_targets(self._test.item)
        for produced in (_checks_of(exported).produced for exported in self._exported):
            goldens = self._test.generations(produced.case.id) if unused else []
            unused = unused.difference(
                produced.manifest.custom_calls, *(golden.manifest.custom_calls for golden in goldens)
            )
        if unused and self._exported:
            self._test.fail(
                "allow or disabled_checks name custom calls that are neither in what is exported nor "
                f"in any golden of this test: {', '.join(sorted(unused))}. Remove them."
            )

    def _require_constants(self) -> None:
        """Fail a test if its own marker's `constant` names a leaf that none of its exports has."""
        __tracebackhide__ = True
        names = own_constants(self._test.item)
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
        self._test.fail(
            f"constant={list(names)!r}: expected leaves of what is exported, found {', '.join(unknown)}. The "
            f"leaves are {few(list(leaves), most=LEAVES)}.{was} Correct the names, or remove those that are not meant."
        )

    def _gone_leaves(self, unknown: Sequence[str]) -> list[str]:
        """Return those of `unknown`, leaves that no export of the test has, that a stored golden of its cases has."""
        stored: list[str] = []
        for produced in (_checks_of(exported).produced for exported in self._exported):
            for golden in self._test.generations(produced.case.id):
                for paths in leaf_paths(golden.manifest, golden.read_artifact()):
                    stored += paths
        still_unknown = unknown_leaves(unknown, stored)
        return [name for name in unknown if name not in still_unknown]

    def _case(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None
    ) -> Case:
        path, names = locate(self._test.item)
        case = Case(
            id=case_id(path, names, name),
            test=full_name(self._test.item),
            name=name,
            function=function,
            args=args,
            kwargs=kwargs,
            options=export_options(self._test.marked, self._test.settings.policy, self._test.settings.platforms),
            comparison=comparison(self._test.marked, self._test.settings),
        )
        # Noted before the export: a case whose export fails still belongs to its test, and its goldens are not unused.
        self._test.cases.append(case.id)
        return case


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
                self._test.fail(str(error))
            return SecondExported(again, inputs, self._ledger)

    def finish(self) -> None:
        """Do nothing, since the second pytest only sends its exports."""


def _call_text(name: object) -> str:
    return "export_golden()" if name is None else f"export_golden(name={name!r})"


def _checks_of(exported: Exported) -> GoldenChecks:
    assert exported.checks is not None  # it is None in a second process alone, which checks nothing
    return exported.checks
