"""Artifacts without their source become goldens, a few at a time: drafted, run by their writers, then stored."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import msgspec

from export_core.artifact import Artifact
from export_core.artifact.main_check import dimension_constraints, dimension_names
from export_core.base.errors import ExportCompatError
from export_core.base.layout import labelled_lines
from export_core.base.text import plural
from export_core.features.adopt.archive import Candidate
from export_core.features.adopt.saved_models import functions_of, read_candidate
from export_core.goldens import Comparison, Golden, GoldenError, GoldenStore, Leaf, Manifest, Origin
from export_core.goldens.adopt import Arrays, adopt_artifact, envelope_of
from export_core.goldens.arrays import count_nan, from_npz, is_finite
from export_core.goldens.made_inputs import RULES, SEED, made_inputs, sizes_in_words
from export_core.goldens.manifest import InputsRule
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS, WriteStatus, staged_goldens
from export_core.goldens.verify import check_read_whole
from export_core.matrix import CellLimits, MatrixError, Result, Selection, Verdict
from export_core.matrix.comparisons import under_policy
from export_core.matrix.replay import replay_with_outputs
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import grouped
from export_core.numbers.measuring_noise import measure_goldens, not_measured, with_noise
from export_core.numbers.noise import noise_text, proves_nothing_text
from export_core.policy import Policy
from export_core.policy.run_options import RunOptions
from export_core.readers.cell import Cell
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.hardware import instruction_set
from export_core.readers.packages import import_problems
from export_core.readers.worker.protocol import Stage
from export_core.releases import Release, ReleaseError
from export_core.run.golden_writing import FirstReplay, first_replay
from export_core.run.session import Observer, run_matrix

Notify = Callable[[str], None]

AT_ONCE = 32  # Artifacts that are drafted before any of them is run, since those of the same writer share a worker.

LARGEST_BATCH = 1 << 29  # Bytes of drafts after which the next batch begins.

NOT_ADDED = "not added"


@dataclass(frozen=True)
class Adopted:
    """The outcome of adopting an artifact: its golden, or the problem that prevented one.

    `status` is a `WriteStatus`, or `NOT_ADDED`; `remarks` are about its arrays and its first runs.
    """

    status: str
    golden: Golden | None = None
    problem: str = ""
    remarks: tuple[str, ...] = ()


@dataclass
class _Draft:
    """A golden that is not stored yet.

    `problem` is why it will not be stored, else empty. `noise` is a sentence on what was measured.
    """

    candidate: Candidate
    artifact: Artifact
    manifest: Manifest
    files: dict[str, bytes]
    remarks: list[str] = field(default_factory=list)
    noise: str = ""
    problem: str = ""

    @property
    def id(self) -> str:
        """The id of the golden that the draft becomes."""
        return f"{self.manifest.case}/{self.manifest.writer.id}"

    @property
    def computes(self) -> bool:
        """Whether the writer still has to compute the draft's outputs."""
        origin = self.manifest.origin
        return origin is not None and origin.outputs == "replayed"


@dataclass(frozen=True)
class Adoption:
    """How artifacts are adopted: into which store, under which policy.

    With `replay`, each golden is first run by its own writer, and its noise is measured. `replace` has the cases whose
    goldens may be replaced. `dims` has sizes of symbolic dimensions for artifacts without sizes of their own. `symbols`
    collects the dimensions for which sizes were needed. `notify` gets a line about what happens.
    """

    store: GoldenStore
    policy: Policy
    notify: Notify
    replay: bool = True
    replace: Collection[str] = ()
    dims: Mapping[str, int] = field(default_factory=dict)
    symbols: set[str] = field(default_factory=set)

    def adopt(self, candidates: Iterable[Candidate | GoldenError]) -> Iterator[Adopted]:
        """Yield the outcome of each candidate, in order; a failure does not stop the others, and leaves nothing behind.

        An error among the candidates stands for an artifact that cannot become a golden.
        """
        names: dict[str, Candidate] = {}
        drafts: list[_Draft | Adopted] = []
        for candidate in functions_of(candidates):
            drafts.append(self._drafted(candidate, names))
            nbytes = sum(len(data) for draft in drafts if isinstance(draft, _Draft) for data in draft.files.values())
            if len(drafts) == AT_ONCE or nbytes > LARGEST_BATCH:
                yield from self._stored(drafts)
                drafts = []
        yield from self._stored(drafts)

    def preview(self, candidates: Iterable[Candidate | GoldenError]) -> Iterator[Adopted]:
        """Yield what each candidate would likely become, as a remark, without running or storing anything."""
        for candidate in functions_of(candidates):
            try:
                if isinstance(candidate, GoldenError):
                    raise candidate
                self.check_replaces_nothing(candidate)
            except ExportCompatError as error:
                yield Adopted(NOT_ADDED, problem=str(error))
            else:
                computed = "none" if candidate.without_outputs else "computed by its writer"
                inputs, outputs = candidate.inputs or "made", candidate.outputs or computed
                remark = f"{candidate.case}: {candidate.file}, inputs {inputs}, outputs {outputs}"
                yield Adopted("found", remarks=(remark,))

    def _drafted(self, candidate: Candidate | GoldenError, names: dict[str, Candidate]) -> _Draft | Adopted:
        try:
            if isinstance(candidate, GoldenError):
                raise candidate
            draft = self._draft(candidate)
            other = names.setdefault(draft.id, candidate)
            if other is not candidate:
                raise GoldenError(
                    f"{candidate.file}: expected another case than that of {other.file}: both are "
                    f"{candidate.case} by {draft.manifest.writer.id}. Give one of them another name."
                )
            same = self._stored_already(draft)
            if not same:
                self.check_replaces_nothing(candidate, draft)
        except ExportCompatError as error:
            return Adopted(NOT_ADDED, problem=str(error))
        return Adopted(WriteStatus.UNCHANGED, same) if same else draft

    def check_replaces_nothing(self, candidate: Candidate, draft: _Draft | None = None) -> None:
        """Raise `GoldenError` if a candidate would replace a golden that must stay.

        A golden must stay if a test wrote it, or if the candidate has another artifact or, as the draft shows, other
        arrays. Any other golden may be written again, for example because it is damaged or its noise was not measured.
        Raises `ExportCompatError` for an artifact that cannot be read.
        """
        if draft:
            artifact, writer = draft.artifact, draft.manifest.writer
        else:
            artifact, writer, _ = read_candidate(candidate, self.policy.calendar())
        for golden in self.store.generations(candidate.case):
            stored = golden.manifest
            if stored.writer.id != writer.id or stored.case in self.replace:
                continue
            files = {ARTIFACT: artifact.sha256, **(draft.manifest.files if draft else {})}
            if draft and draft.manifest.inputs_made and stored.inputs_made:
                files.pop(INPUTS)  # these inputs were made by another rule
            if not stored.is_adopted or not files.items() <= stored.files.items():
                by = f"which {stored.test} wrote" if stored.test else "which has other files"
                raise GoldenError(
                    f"{candidate.file}: would replace the golden {golden.id}, {by}. Give this one another name, or "
                    f"allow that: --replace {stored.case}"
                )

    def _draft(self, candidate: Candidate, rule: InputsRule = "") -> _Draft:
        """Return the draft of a golden, without outputs if they have to be computed.

        If no inputs are given, they are made by `rule`. Raises `ExportCompatError` if no golden can be made.
        """
        artifact, writer, remarks = read_candidate(candidate, self.policy.calendar())
        envelope = envelope_of(artifact)
        check_read_whole(artifact, self.policy.allow)
        inputs: Arrays
        if candidate.inputs is not None:
            inputs, rule = candidate.inputs, ""
        else:
            constraints = dimension_constraints(artifact)
            inputs, sizes = self._made_inputs(candidate, artifact, constraints, rule)
            kind = f" ({rule} numbers)" if rule else ""
            chosen = f" with {sizes_in_words(sizes)}" if sizes else ""
            chosen += f", for its constraints {', '.join(constraints)}" if constraints else ""
            remarks.append(f"inputs made by rule{kind}{chosen}")
        computes = candidate.outputs is None and not candidate.without_outputs
        if computes and "cpu" not in envelope.platforms:
            raise GoldenError(
                f"{artifact.name}: expected its outputs, found none. The artifact was exported for "
                f"{', '.join(envelope.platforms)}, and its writer's environment runs on the CPU. Give --outputs NPZ, "
                "or --without-outputs REASON if nothing can compute them."
            )
        if computes and not self.replay:
            raise GoldenError(
                f"{artifact.name}: expected its outputs, found none. Give them, or leave out --no-replay: then its "
                "writer computes them."
            )
        origin = None
        if candidate.inputs is None or computes:
            origin = Origin(
                inputs="given" if candidate.inputs else "made",
                outputs="replayed" if computes else "none",
                outputs_by=writer.id.removesuffix(f"-{writer.platform}") if computes else "",
                seed=None if candidate.inputs else SEED,
            )
        candidate = replace(candidate, origin=origin)
        manifest, files = adopt_artifact(artifact, inputs, candidate.outputs, candidate.case, writer, candidate)
        if problems := import_problems(files, self.policy.reader_packages):
            raise GoldenError("\n".join(problems))
        return _Draft(candidate, artifact, msgspec.structs.replace(manifest, inputs_rule=rule), files, remarks)

    def _made_inputs(
        self, candidate: Candidate, artifact: Artifact, constraints: Sequence[str], rule: InputsRule
    ) -> tuple[list[Leaf], dict[str, int]]:
        avals = envelope_of(artifact).in_avals
        if candidate.outputs is not None:
            raise GoldenError(f"{candidate.outputs}: expected inputs for these outputs, found none. Give both or none.")
        self.symbols.update(symbols := dimension_names(avals))
        dims = {symbol: size for symbol, size in self.dims.items() if symbol in symbols}
        try:
            return made_inputs(avals, candidate.dims or dims, rule, constraints=constraints)
        except GoldenError as error:
            raise GoldenError(f"{artifact.name}: {error}") from None

    def _stored_already(self, draft: _Draft) -> Golden | None:
        """Return the stored golden that equals a draft, or None; outputs that are still to be computed do not count."""
        for golden in self.store.generations(draft.manifest.case):
            stored = golden.manifest
            if self.replay and stored.noise is None:  # added without a replay, or its noise could not be measured
                continue
            names = (ARTIFACT, INPUTS, OUTPUTS, *(f"{name}.register.py" for name in stored.options.register))
            expected = {name: stored.files[name] for name in names if name in stored.files}
            options = stored.options
            if draft.computes:  # its outputs, and whether they show nothing, are not known yet
                expected.pop(OUTPUTS, None)
                options = msgspec.structs.replace(options, nothing_to_compare="")
            same = (stored.writer, options, stored.origin, expected)
            drafted = (self._draft(draft.candidate, stored.inputs_rule) if stored.inputs_rule else draft).manifest
            if same == (drafted.writer, drafted.options, drafted.origin, drafted.files):
                with contextlib.suppress(GoldenError):  # it is damaged, and written again
                    golden.verify()
                    return golden
        return None

    def _stored(self, drafts: list[_Draft | Adopted]) -> Iterator[Adopted]:
        """Run the drafts by their writers if `replay` is set, store those without a problem, and yield each outcome."""
        if self.replay:
            self._compute_outputs([draft for draft in _without_problem(drafts) if draft.computes])
            self._measure(_without_problem(drafts))
            self._replay(_without_problem(drafts))
        for draft in drafts:
            if isinstance(draft, Adopted):
                yield draft
                continue
            if draft.problem:
                yield Adopted(NOT_ADDED, problem=draft.problem)
                continue
            manifest = draft.manifest
            try:
                status = self.store.write(manifest, draft.files)
                golden = next(x for x in self.store.generations(manifest.case) if x.manifest.writer == manifest.writer)
                golden.verify()
            except GoldenError as error:
                yield Adopted(NOT_ADDED, problem=str(error))
            else:
                yield Adopted(status, golden, remarks=tuple(draft.remarks))

    def _compute_outputs(self, drafts: list[_Draft]) -> None:
        """Have the writers of drafts compute their outputs.

        If made inputs give NaN or infinities, inputs made by the other rules are tried.
        """
        outside = self._run(drafts)
        for rule in RULES[1:]:
            for draft in outside:
                other = self._draft(draft.candidate, rule)
                draft.manifest, draft.files, draft.remarks = other.manifest, other.files, other.remarks
            outside = self._run(outside) if outside else []
        for draft in outside:
            draft.problem = (
                f"{draft.artifact.name}: expected finite numbers, found NaN or infinities in its outputs for all "
                "inputs that were made: normally distributed, positive, and positive definite ones. Give inputs for "
                "which the function is defined: --inputs NPZ (np.savez(file, *leaves)). With inputs of your own, NaN "
                "and infinities are accepted."
            )

    def _run(self, drafts: list[_Draft]) -> list[_Draft]:
        """Compute the outputs of drafts, each in the environment of its writer, in a cold process.

        Returns the drafts whose made inputs give outputs that are not finite: these drafts get no outputs.
        """
        outside = []
        by_id = {draft.id: draft for draft in drafts}
        options = ReplayOptions(self.policy.calendar(), self.policy, CellLimits())
        with staged_goldens(*((draft.manifest, draft.files) for draft in drafts)) as goldens:
            cells = []
            for golden in goldens:
                if problem := not_measured(golden):
                    by_id[golden.id].problem = _not_computed(by_id[golden.id], problem)
                    continue
                computed = msgspec.structs.replace(golden.manifest.options, without_outputs="they are computed now")
                manifest = msgspec.structs.replace(golden.manifest, options=computed)
                cells.append(Cell(replace(golden, manifest=manifest), _writer_release(golden), "cpu"))
            if cells:
                self.notify(f"computing the outputs of {plural(len(cells), 'artifact')}, each by its own writer")
            with (
                ReaderEnvironments.of(self.policy, options.calendar, notify=self.notify) as environments,
                closing(replay_with_outputs(cells, environments.build, options)) as ran,
            ):
                for one in ran:
                    draft = by_id[one.outcome.golden]
                    accepted = draft.candidate.nothing_to_compare
                    if not one.works:
                        draft.problem = _not_computed(draft, _why_no_outputs(one.outcome))
                    elif draft.manifest.inputs_made and not accepted and not is_finite(one.outputs):
                        outside.append(draft)
                    else:
                        self._add_outputs(draft, one.outputs)
        return outside

    def _add_outputs(self, draft: _Draft, outputs: tuple[Leaf, ...]) -> None:
        then, inputs = draft.manifest, from_npz(draft.files[INPUTS])
        try:
            now, files = adopt_artifact(draft.artifact, inputs, outputs, then.case, then.writer, draft.candidate)
        except GoldenError as error:
            draft.problem = f"{draft.artifact.name}: {error}"
            return
        # Modules stay as they ran: their files may have changed since.
        draft.files, hashes = files | draft.files, {**now.files, **then.files}
        draft.manifest = msgspec.structs.replace(
            then, files=hashes, options=now.options, instruction_set=instruction_set()
        )
        nan = count_nan(outputs)
        remark = f", {plural(nan, 'element')} NaN: other inputs may show more" if nan else ""
        draft.remarks.append(f"outputs computed by its own writer{remark}")

    def _measure(self, drafts: list[_Draft]) -> None:
        by_id = {draft.id: draft for draft in drafts}
        with staged_goldens(*((draft.manifest, draft.files) for draft in drafts)) as goldens:
            for golden, noise in measure_goldens(goldens, self.policy, self.notify):
                draft = by_id[golden.id]
                if isinstance(noise, str):
                    draft.noise = f"its noise is not known: {noise}"
                    continue
                (compared,) = under_policy([golden], self.policy)
                if noise.proves_nothing and compared.compared_as.comparison == Comparison():
                    draft.problem = f"{golden.manifest.case}: {proves_nothing_text(noise.record)}"
                    continue
                draft.manifest, draft.files = with_noise(draft.manifest, draft.files, noise)
                draft.noise = noise_text(noise.record)

    def _replay(self, drafts: list[_Draft]) -> None:
        if drafts:
            self.notify(f"running {plural(len(drafts), 'golden')}, each by its own writer in a cold process")
        with staged_goldens(*((draft.manifest, draft.files) for draft in drafts)) as goldens:
            replays = replays_by_writer(goldens, self.policy, self.notify)
        for draft in drafts:
            replay = replays[draft.id]
            remark = "its own writer replays it"
            if replay.unknown:
                remark = f"not replayed: {replay.unknown}"
            elif replay.crash:
                remark = f"its own writer crashes when it replays it: {replay.crash}"
            is_given = draft.candidate.outputs is not None and replay.differs
            draft.problem = _other_outputs(draft, replay.differs) if is_given else replay.problem
            draft.remarks += [remark, draft.noise]


def _without_problem(drafts: Iterable[_Draft | Adopted]) -> list[_Draft]:
    """Return the drafts that have no problem so far."""
    return [draft for draft in drafts if isinstance(draft, _Draft) and not draft.problem]


def _writer_release(golden: Golden) -> Release:
    return golden.manifest.writer.release


def _not_computed(draft: _Draft, problem: str) -> str:
    return f"{draft.artifact.name}: expected its writer to compute its outputs, but {problem}"


def _other_outputs(draft: _Draft, differs: str) -> str:
    """Return the message for given outputs that are not what the writer computes; `differs` says how they differ."""
    given, jaxlib = draft.candidate, draft.manifest.writer.jaxlib
    lines = (
        f"--outputs {given.outputs}: not what jaxlib {jaxlib} gives for --inputs {given.inputs}: nothing was stored.",
        *labelled_lines([("message", differs)]),
        "  Give the right file, or leave the outputs out: then that jaxlib computes them.",
    )
    return "\n".join(lines)


def _why_no_outputs(outcome: Result) -> str:
    if outcome.stage is Stage.AUDIT:
        return outcome.message
    if outcome.verdict is Verdict.NOT_RUN:
        return f"its writer cannot be run here: {outcome.message}"
    return f"its own writer gave no outputs: stage {outcome.stage}: {outcome.message}"


def replays_by_writer(goldens: Sequence[Golden], policy: Policy, notify: Notify) -> dict[str, FirstReplay]:
    """Return the first replay of each golden, in its own writer, by the golden's id."""
    # Known failures are left out: their globs are checked against the width of a whole plan.
    own = msgspec.structs.replace(policy, known_failures=())
    options = RunOptions(results=None, cache=False)
    replays: dict[str, FirstReplay] = {}
    for release, group in grouped(goldens, _writer_release).items():
        selection = Selection(readers=release.pair, platforms=("cpu",))
        try:
            run = run_matrix(own, selection, options, goldens=group, observer=Observer(note=notify))
        except (MatrixError, ReleaseError) as error:
            replays |= {golden.id: FirstReplay(unknown=str(error)) for golden in group}
            continue
        unplanned = FirstReplay(unknown="it cannot be run here")
        results = {result.golden: first_replay(result) for result in run.results}
        replays |= {golden.id: results.get(golden.id, unplanned) for golden in group}
    return replays
