"""The steps from an exported case to a golden that may be stored. A marked test and a script take the same steps."""

import functools
import os
import re
import shlex
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from export_core.artifact import Artifact
from export_core.artifact.audit import audit
from export_core.artifact.main_check import check_main
from export_core.base.errors import InfrastructureFault
from export_core.base.layout import labelled_lines
from export_core.base.processes import signal_name
from export_core.base.scratch import scratch_folder
from export_core.base.text import without_source_lines
from export_core.export.errors import ExportError
from export_core.export.produce import ProducedGolden, Uncalled, installed_writer
from export_core.goldens import Comparison, Golden, GoldenStore, Writer
from export_core.goldens.store import JAXPR_TEXT, sha256, staged_goldens
from export_core.judge import Judgement, Result
from export_core.matrix import CellLimits, Selection, Verdict
from export_core.matrix.cache_keys import OutcomeKeys, runs_code_outside_the_key
from export_core.matrix.cached_replay import OutcomeCache
from export_core.matrix.comparisons import under_policy
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import new_result
from export_core.matrix.verdicts import VERDICTS
from export_core.numbers.measuring_noise import MeasuredNoise, OtherKernel, known_noise, measure_noise, with_noise
from export_core.numbers.noise import proves_nothing_text
from export_core.numbers.user_code import UserCode
from export_core.policy import Policy
from export_core.policy.run_options import RunOptions
from export_core.readers.build import cache_folder
from export_core.readers.cell import Cell, request_of
from export_core.readers.environment import Environment, this_interpreter, with_variables
from export_core.readers.hardware import flags_of_numbers, instructions_used
from export_core.readers.worker.client import WarmWorkers
from export_core.readers.worker.first_run import FirstRuns
from export_core.readers.worker.protocol import Stage, Worker
from export_core.releases.stable_targets import promised_by
from export_core.run.session import Interpreter, run_matrix

_GENERAL_ADVICE = (
    "Each call must fit the exported shapes and constraints, the first one too; tree nodes, effects and custom calls "
    "of your own must be registered by a module that the golden holds (register)."
)
_OWN_FAULT = "The fault is in what was exported, not in a release"
_UNFIT = re.compile(
    r"\A(?:(\w+): )?(\w+: ).*?((?:Input shapes do not match|(?:Shape|Dtype) mismatch for) [^\n]*?)"
    r"[\s,.]*(?:Please see|\n|\Z)",
    re.DOTALL,
)
"""The parts of a message about arguments that do not fit the exported shapes: the call, the type of error, the reason.

The reason ends before the page that jax names, and before the source lines that XLA quotes, which are our worker's.
"""
_FLAGS_ADVICE = (
    "Cells get XLA_FLAGS only where the policy names it (`environment: [XLA_FLAGS]`): name it there, or write the "
    "golden without these flags."
)
_DRAWS = re.compile(r"\b(?:random_\w+|threefry2x32|rng_\w+)\b")  # JAX primitives in a jaxpr that draw random numbers.
_KEY_ADVICE = "The function draws random numbers: give it its key as an argument."
_SYMBOLIC_ADVICE = (
    "The function has symbolic dimensions, and the golden's outputs were computed with numbers in their place. Python "
    "decides a comparison of symbolic dimensions once, during the export: `==` is False where it does not hold for "
    "every size. Compare inside the program (`jax.lax.cond`, `jnp.where`), or export with fixed shapes."
)
_JAX_ADVICE = (
    "If the function gives the same numbers each time that it is called with these arguments, jax has exported another "
    "program than it runs: compare `jax.export.export(f)(*args).call(*args)` with `f(*args)`, and report it to JAX."
)
_UNREFINED = "but decomposition has type"
"""XLA's words about a composite with a symbolic size, once the sizes are known (openxla/stablehlo issue 2779)."""
_COMPOSITE_ADVICE = (
    "No release can call a `jax.lax.composite` whose arguments have symbolic sizes (openxla/stablehlo#2779). Export it "
    "with fixed sizes, or call the function itself in the place of its composite."
)
_COMPARATOR_ADVICE = (
    "A comparator of your own takes (expected, actual), lists of NumPy arrays, and returns None where they agree, else "
    "text that says what is wrong."
)


SMALL_OUTPUTS = 100_000
"""The most bytes of outputs of a first call that are stored for the first replay, which may never ask for them."""


class OwnReader:
    """The interpreter of this process as the only reader of goldens, with a worker that runs until `close`.

    `started_with` are the environment variables of this process before imported modules set some; None means the
    present variables.
    """

    def __init__(
        self, policy: Policy, options: RunOptions, user_code: UserCode, started_with: Mapping[str, str] | None = None
    ) -> None:
        self.calendar = policy.calendar()
        self._policy = policy
        self._options = options
        self._user_code = user_code
        self._started_with = started_with
        self._workers = WarmWorkers()
        self._other_kernel = OtherKernel()
        self._first_runs = FirstRuns()

    @functools.cached_property
    def writer(self) -> Writer:
        """The jax, jaxlib and platform of this process, as the writer of goldens."""
        return installed_writer(self.calendar)

    @functools.cached_property
    def cache(self) -> OutcomeCache:
        """The stored outcomes of earlier runs: a connection to their database, which only one thread may use."""
        return OutcomeCache(cache_folder())

    @property
    def _environment(self) -> Environment:
        environment = this_interpreter(self.writer.release, self._policy.environment, self._started_with)
        # Not the seed of this process: so a replay in the worker differs if outputs depend on the seed.
        seed = (self._started_with or os.environ).get("PYTHONHASHSEED")
        return with_variables(environment, PYTHONHASHSEED="2" if seed == "1" else "1")

    def start_worker(self) -> Worker:
        """Start the worker, which imports jax, unless it already runs; return it."""
        return self._workers.start(self._environment, CellLimits().jobs)

    def fork_program(self, program: Path, address: str) -> bool:
        """Have a fork of the worker run the Python file `program`, connected to the socket `address`.

        See `run_program` in readers/worker/program.py. Returns False if the worker has ended or cannot fork.
        """
        return self._workers.fork_program(self._environment, CellLimits().jobs, program, address)

    def noise(self, golden: Golden) -> MeasuredNoise | str:
        """Return the noise of a golden that this interpreter has just made, or the reason why there is none.

        The reply of the measurement's first process is stored, so that the golden's first replay need not run again.
        """
        return measure_noise(golden, self._environment, self.start_worker(), self._other_kernel, self._first_runs)

    def first_call(self, uncalled: Uncalled, *, warm: bool = False) -> str:
        """Return how the first call of an artifact ends its process; "" if the process survives or this is not known.

        If a cold process dies, the call runs again in a process that has lowered linear algebra; with `warm`, only in
        such a process. This process has lowered the function, and until 0.9.2 LAPACK calls end a process that has
        not. An artifact whose first call a process survived in an earlier run is not called. The golden's
        first replay reuses the reply where it would run the same.
        """
        limits, environment = CellLimits.of(self._options), self._environment
        manifest, files = uncalled.golden()
        with scratch_folder() as folder, closing(OutcomeCache(cache_folder())) as survived:
            cell = Cell(Golden(manifest, folder), environment.release, "cpu")
            for name, content in files.items():
                (folder / name).write_bytes(content)
            key = first_call_key(cell, environment, ReplayOptions(self.calendar, self._policy, limits))
            if key and self._options.cache and survived.get((key,)):
                return ""
            request, ended = request_of(cell, folder, limits), ""
            for traced in (True,) if warm else (False, True):
                try:
                    asked = structs.replace(request, warm=traced)
                    reply = self._first_runs.run(self.start_worker(), asked, most=SMALL_OUTPUTS)
                except InfrastructureFault:  # the replay reports it
                    return ""
                # In the first stage nothing of the artifact was called: a module of the user may end the process.
                if reply.end != "crash" or reply.stage is Stage.READ:
                    if key and reply.end in ("ok", "error"):
                        survived.put(key, new_result(cell, reply.stage, Verdict.COMPILED))
                    return ""
                ended = f"stage {reply.stage}: {reply.message or f'died by {signal_name(reply.signal)}'}"
        return ended

    def replay(self, goldens: Sequence[Golden], stopping: threading.Event | None = None) -> Sequence[Result]:
        """Run the goldens that were exported for cpu, each in a cold process, and return their judged results.

        An outcome that an earlier run has stored is used instead. The caller sets `stopping` to end the replay early.
        """
        stopping = stopping or threading.Event()
        own = Interpreter(self._environment, self._start, self._user_code, self.cache, stopping)
        return run_matrix(self._policy, Selection(), self._options, goldens=goldens, interpreter=own).results

    def _start(self, environment: Environment, slots: int) -> Worker:
        return self._first_runs.before(self._workers.start(environment, slots))

    def close_cache(self) -> None:
        """Close `cache`, if it was used. The thread that used it must make this call."""
        if "cache" in self.__dict__:
            self.cache.close()

    def close(self) -> None:
        """End the worker and whatever still runs in it, and close `cache`."""
        self.close_cache()
        self._workers.close()
        self._other_kernel.close()


def require_audited(artifact: Artifact, allow: Mapping[str, str], writer: Writer, also: Iterable[str] = ()) -> None:
    """Raise `ExportError` if an artifact fails its audit, or its `main` is not as the envelope declares.

    `allow` are custom-call targets that are allowed, each with its reason. `also` are further problems, each a text:
    any of them raises the error too.
    """
    promised, pair = promised_by(writer.jax, writer.jaxlib)
    findings = audit(artifact, promised, allow=allow, writer=pair)
    problems = [str(finding) for finding in findings if not finding.ok]
    problems += [f"main: {problem}" for problem in check_main(artifact)]
    problems += also
    if problems:
        raise ExportError("\n".join(problems))


def first_call_key(cell: Cell, environment: Environment, options: ReplayOptions) -> str:
    """Return a key of all that decides whether a process survives the first call of an artifact.

    The key is "" if it would not cover everything: the environment has no content hash, or code outside the key runs.
    """
    if not environment.content_hash or runs_code_outside_the_key(cell.golden):
        return ""
    return sha256(b"first call\n" + OutcomeKeys(options).of(cell, environment).encode())


def require_first_call(test: str, ended: str) -> None:
    """Raise `ExportError` if the first call of an artifact ends its process.

    `ended` is what `OwnReader.first_call` returned; `test` begins the message.
    """
    if ended:
        raise ExportError(
            f"{test}: expected the exported function to return, found that its call ends the process: {ended}. So "
            "the function was not called in this process, and nothing was checked or stored. Skip the test in this "
            "release of jax, or change the function."
        )


def add_noise(
    produced: ProducedGolden, store: GoldenStore, policy: Policy, measure: Callable[[Golden], MeasuredNoise | str]
) -> ProducedGolden:
    """Return the golden with its noise, which is taken from the stored golden if that is equal, and else measured.

    A golden without outputs, or whose noise `measure` cannot give, is returned without noise. Raises `ExportError` if
    the golden's numbers prove nothing and it is compared in the default way.
    """
    if produced.outputs is None:
        return produced
    manifest = structs.replace(produced.manifest, instruction_set=instructions_used(os.environ))
    with staged_goldens((manifest, produced.files)) as (golden,):
        measured = known_noise(store, manifest) or measure(golden)
        (compared,) = under_policy([golden], policy)
    if isinstance(measured, str):  # a call that fails shows that in the first replay
        return replace(produced, manifest=manifest)
    if measured.proves_nothing and compared.compared_as.comparison == Comparison():
        raise ExportError(f"{manifest.case}: nothing was stored: {proves_nothing_text(measured.record)}")
    manifest, files = with_noise(manifest, produced.files, measured)
    return replace(produced, manifest=manifest, files=files)


def first_crash(produced: ProducedGolden, replay: Callable[[Golden], Sequence[Result]]) -> str:
    """Return how this release's process dies when it replays its own golden; "" if it survives the replay.

    Raises `ExportError` if the replay fails for another reason, for which readers would be blamed later.
    """
    with staged_goldens((produced.manifest, produced.files)) as (golden,):
        results = replay(golden)
    # Empty for an artifact of other platforms, which only readers on those platforms can run.
    replays = [first_replay(result, produced) for result in results]
    for first in replays:
        if first.unknown:
            name = produced.manifest.case
            raise ExportError(f"{name}: nothing was stored, since it could not be replayed: {first.unknown}")
        if first.problem:
            raise ExportError(first.problem)
    return "".join(first.crash for first in replays)


@dataclass(frozen=True)
class FirstReplay:
    """The outcome of a golden's first replay, by its own writer.

    The replay succeeded if all texts are empty; else one of them says what went wrong.
    """

    problem: str = ""  # Why the golden may not be stored.
    crash: str = ""  # How the writer's process died. The golden may be stored.
    unknown: str = ""  # Why the replay showed nothing about the golden.
    differs: str = ""  # How the outputs differ from the golden's, if that alone is the problem.


def first_replay(result: Result, produced: ProducedGolden | None = None) -> FirstReplay:
    """Judge the replay of a golden by its own writer, before it is stored.

    `produced` is the golden if a function was exported in this process; the advice then fits that function.

    A crash is the release's fault: the golden may be stored, since other releases may run it. A refusal, an error or
    different numbers are the fault of what was exported. So is a timeout: a golden that takes longer than the limit of
    a cell would be broken in every reader.
    """
    if result.verdict is Verdict.CRASH:  # also one that is listed as a known failure
        return FirstReplay(crash=result.ending)
    if result.verdict.works or result.judgement is Judgement.KNOWN:
        return FirstReplay()
    if result.verdict is Verdict.NOT_RUN and result.stage is Stage.ENVIRONMENT:
        return FirstReplay(unknown=result.message)
    begin = f"{result.golden}: its own writer cannot replay this golden in a new process: it "
    if result.verdict.fails and (unfit := _UNFIT.match(result.message)):
        call, error, reason = unfit.groups()
        return FirstReplay(
            problem=f"{begin}{VERDICTS[result.verdict].phrase}. {_OWN_FAULT}: nothing was stored. Expected arguments "
            f"that fit the exported shapes and constraints, found in {call or 'the first call'}: "
            f"{error}{' '.join(reason.split())}. Change them, or expect the refusal: exported.refused(…)."
        )
    unrun = result.verdict is Verdict.NOT_RUN
    fault = "So no reader's result is known" if unrun else _OWN_FAULT
    advice = VERDICTS[result.verdict].advice or ("" if unrun else _GENERAL_ADVICE)
    if unrun and result.stage is Stage.COMPARE:
        advice = _COMPARATOR_ADVICE
    if _UNREFINED in result.message:
        advice = _COMPOSITE_ADVICE
    own_flags = ""
    if produced and result.verdict is Verdict.NUMERICS:
        own_flags = " ".join(flags_of_numbers(os.environ))
        advice = " ".join((advice, *_advice_for(produced)))
    if result.processors or own_flags:
        fault, advice = "Its outputs were computed with other flags than its replay", _FLAGS_ADVICE
    message = without_source_lines(result.message) or str(result.verdict)
    flags = "" if result.processors or not own_flags else f"XLA_FLAGS={shlex.quote(own_flags)} only in this process"
    facts = {"stage": result.stage, "message": message, "processor": result.processors, "flags": flags}
    facts["stderr"] = result.error_lines
    lines = (
        f"{begin}{VERDICTS[result.verdict].phrase}. {fault}: nothing was stored.",
        *labelled_lines([(label, str(text)) for label, text in facts.items()]),
        advice,
    )
    differs = message if result.verdict is Verdict.NUMERICS and fault == _OWN_FAULT else ""
    return FirstReplay(problem="\n".join(line for line in lines if line), differs=differs)


def _advice_for(produced: ProducedGolden) -> Iterator[str]:
    """Yield paragraphs that explain why an artifact may give other numbers than the function it was exported from."""
    draws = _DRAWS.search(produced.files.get(JAXPR_TEXT, b"").decode(errors="replace"))
    if draws:
        yield _KEY_ADVICE
    envelope = produced.artifact.envelope
    symbolic = envelope and any(not isinstance(size, int) for aval in envelope.in_avals for size in aval.shape)
    if symbolic:
        yield _SYMBOLIC_ADVICE
    if not draws and not symbolic:
        yield _JAX_ADVICE
