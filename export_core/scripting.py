"""Artifacts and goldens from a program, such as a script that makes a release: what a marked test does, without pytest.

`export_core` offers the names that are in `__all__`.
"""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from export_core.artifact import Artifact, read_bytes
from export_core.base.callables import name_of
from export_core.base.checked_arguments import path_of, require_type
from export_core.base.text import did_you_mean, few, rounded_text, shortened
from export_core.export.case import Case
from export_core.export.errors import ExportError
from export_core.export.golden_checks import MISMATCH, ExtraCall, add_checks, require_values
from export_core.export.produce import Uncalled, export_again, free_caches, installed_writer, produce
from export_core.goldens import Golden, GoldenError, GoldenStore
from export_core.goldens.manifest_file import problem_of_plain_name
from export_core.goldens.store import WriteStatus
from export_core.matrix.comparisons import under_policy
from export_core.numbers.leaf_paths import leaf_paths
from export_core.numbers.measuring_noise import MeasuredNoise
from export_core.numbers.noise import left_to_noise, outputs_to_name
from export_core.numbers.nothing_compared import calls_without_values
from export_core.numbers.shows_nothing import remark_lines, unknown_leaves
from export_core.numbers.user_code import UserCode
from export_core.policy import Policy, PolicyError, find_policy
from export_core.policy.run_options import RunOptions
from export_core.readers.packages import import_problems
from export_core.run.case_options import comparison, export_options
from export_core.run.golden_writing import OwnReader, add_noise, first_crash, require_audited, require_first_call
from export_core.run.marker_keywords import ALL_KEYWORDS, KeywordError, read_keywords, unused_tolerances

__all__ = ["ExportError", "KeywordError", "WrittenGolden", "export_artifact", "write_golden"]

_LONGEST_NAME = 255  # Bytes in the name of a folder, on the file systems of Linux, macOS and Windows.


@dataclass(frozen=True)
class WrittenGolden:
    """A golden that `write_golden` has stored, or left unchanged."""

    golden: Golden  # The golden in its folder.
    status: str  # `new`, `replaced` or `unchanged`.
    crash: str = ""  # How this release's process died when it replayed the golden; "" if it survived.
    remarks: tuple[str, ...] = ()  # Which inputs were rounded, and what numbers cannot show.


def export_artifact(
    function: Callable[..., Any], /, *args: Any, policy: str | os.PathLike[str] | None = None, **keywords: Any
) -> Artifact:
    """Export a jitted function as a marked test does, and audit the artifact. The function is traced, not run.

    Equal calls give equal bytes, without any path of this machine. Earlier traces of JAX are not reused.

    Args:
        function: the result of `jax.jit`, or anything else that `export_golden` accepts.
        args: example arguments: arrays, or `jax.ShapeDtypeStruct` in their place.
        policy: the file of the policy, for allowed calls and platforms; None uses the policy of the working folder.
        keywords: those of `@pytest.mark.export_compat`, such as `platforms` and `vjp_order`, and keyword arguments of
            the function. Keywords about comparing goldens have no effect.

    Raises:
        KeywordError: a keyword cannot be used.
        ExportError: jax.export refuses the function, or a custom call is neither promised nor allowed.
        PolicyError: the policy cannot be used.
    """
    with _prepared("export_artifact", policy, function, args, keywords) as (case, rules, _, _):
        artifact = read_bytes(export_again(case).data, name=case.id)
        require_audited(artifact, case.options.allow, installed_writer(rules.calendar()))
        return artifact


def write_golden(
    case: str,
    function: Callable[..., Any],
    /,
    *args: Any,
    goldens: str | os.PathLike[str] | None = None,
    policy: str | os.PathLike[str] | None = None,
    also: Iterable[tuple[Any, ...]] = (),
    refused: Iterable[tuple[Any, ...]] = (),
    **keywords: Any,
) -> WrittenGolden:
    """Write the golden of a function as `pytest --update-goldens` does: export, audit, run, measure noise, replay.

    A golden that would not change is not touched. The goldens of other writers are never changed.

    Args:
        case: the name of the case, such as ``models.attention``.
        function: the result of `jax.jit`, or anything else that `export_golden` accepts.
        args: example arguments: arrays, whose values are the golden's inputs, or `jax.ShapeDtypeStruct`.
        goldens: the folder of goldens; None uses that of the policy.
        policy: the file of the policy; None uses the policy of the working folder.
        also: the positional arguments of each further call whose outputs are stored too.
        refused: the positional arguments of each call that this release and every reader must refuse.
        keywords: those of `@pytest.mark.export_compat`, and keyword arguments of the function.

    Raises:
        KeywordError: a keyword cannot be used.
        ExportError: jax.export refuses the function, a custom call is neither promised nor allowed, the outputs would
            not show a wrong number, or this release cannot replay the golden.
        GoldenError: the case belongs to a test or an adopted artifact, no folder can have its name, or the golden
            cannot be written.
        PolicyError: the policy cannot be used.
    """
    if not isinstance(case, str):
        raise GoldenError(
            f"write_golden: expected the name of a case, then the function, found {name_of(case, 'f')} first."
        )
    problem = problem_of_plain_name(case)
    if problem or len(os.fsencode(case)) > _LONGEST_NAME:
        found = f"{shortened(repr(case), 80)}, {problem or f'longer than {_LONGEST_NAME} bytes'}"
        raise GoldenError(f"expected a case whose name a folder can have, such as models.attention, found {found}.")
    where = f"write_golden({case!r})"
    folder = None if goldens is None else path_of(goldens, f"{where}: goldens", "a folder of goldens", GoldenError)
    also, refused = (_calls(f"{where}: {name}", calls) for name, calls in (("also", also), ("refused", refused)))
    prepared = _prepared(where, policy, function, args, keywords, case)
    with prepared as (exported, rules, values, user_code):
        store = GoldenStore(rules.goldens if folder is None else folder)
        for golden in store.generations(case):
            if golden.manifest.test or golden.manifest.is_adopted:
                maker = golden.manifest.test or "an artifact without its source"
                raise GoldenError(f"{golden.folder}: the case {case} belongs to {maker}. Choose another name.")
        with closing(OwnReader(rules, RunOptions(results=None, goldens=store.root), user_code)) as reader:
            reader.start_worker()  # it imports jax while the function is traced here

            def before_call(uncalled: Uncalled) -> None:
                problems = import_problems(uncalled.case.registration_files(), rules.reader_packages)
                require_audited(uncalled.artifact, uncalled.case.options.allow, uncalled.writer, problems)
                if uncalled.runs_here and uncalled.writer.platform == "cpu":
                    require_first_call(uncalled.case.test, reader.first_call(uncalled))

            produced = produce(exported, reader.calendar, reproducible=True, before_call=before_call)
            manifest = structs.replace(produced.manifest, test="")
            leaves = [path for paths in leaf_paths(manifest, produced.artifact) for path in paths]
            if unknown := unknown_leaves(values["constant"] or (), leaves):
                expected = f"constant: expected leaves of what is exported ({few(leaves, most=40)})"
                raise KeywordError(f"write_golden({case!r}): {expected}, found {', '.join(unknown)}.")
            calls = [ExtraCall(call, {}) for call in also] + [ExtraCall(call, {}, MISMATCH) for call in refused]
            (produced,) = free_caches([add_checks(replace(produced, manifest=manifest), calls)])
            produced = require_values(produced, values["nothing_to_compare"])
            measured: list[MeasuredNoise | str] = []

            def measure(golden: Golden) -> MeasuredNoise | str:
                measured.append(reader.noise(golden))
                return measured[-1]

            produced = add_noise(produced, store, rules, measure)
            crash = first_crash(produced, lambda golden: reader.replay([golden]))
            status = store.write(produced.manifest, produced.files)
    writer = produced.manifest.writer.id
    (golden,) = (golden for golden in store.generations(case) if golden.manifest.writer.id == writer)
    (compared,) = under_policy([golden], rules)
    noise = left_to_noise(compared, rules.tolerances)
    remarks = [remark for one in measured if isinstance(one, MeasuredNoise) for remark in one.remarks]
    lines = remark_lines(remarks, values["constant"] or (), leaves, whole=True)
    shown = [] if values["nothing_to_compare"] else [*lines, *calls_without_values(golden)]
    if status is not WriteStatus.UNCHANGED:
        shown += (*map(rounded_text, sorted(produced.rounded)), *produced.lost)
    return WrittenGolden(golden, str(status), crash, (*(outputs_to_name(noise, golden) if noise else ()), *shown))


def _calls(where: str, calls: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the positional arguments of each further call. Raises `KeywordError` unless each call is a tuple."""
    expected = "a list with a tuple of positional arguments for each call, such as [(x,)]"
    # An array is iterable too, and its rows would count as calls.
    if not isinstance(calls, Iterable) or hasattr(calls, "shape"):
        require_type(calls, (), where, expected, KeywordError)
    calls = list(calls)
    for call in calls:
        require_type(call, (tuple, list), where, expected, KeywordError)
    return calls


@contextmanager
def _prepared(
    where: str,
    policy: str | os.PathLike[str] | None,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    given: Mapping[str, Any],
    case: str = "",
) -> Iterator[tuple[Case, Policy, dict[str, Any], UserCode]]:
    """Prepare an export: yield the case, the policy, the values of keywords, and the process for users' comparators.

    Args:
        where: how messages name the public function, such as ``export_artifact``.
        policy: the file of the policy; None uses the policy of the working folder.
        function: the function to export.
        args: its example arguments.
        given: keywords of the marker, and keyword arguments of the function.
        case: the name of the case; "" uses the name of the function.
    """
    file = None if policy is None else path_of(policy, f"{where}: policy", "a policy file", PolicyError)
    rules = find_policy(Path(), file)
    _check_names(where, function, args, given)
    own = {name: value for name, value in given.items() if name in ALL_KEYWORDS}
    if unused := unused_tolerances(own, f"{where}:"):
        raise KeywordError("\n".join(unused))
    kwargs = {name: value for name, value in given.items() if name not in ALL_KEYWORDS}
    with closing(UserCode(variables=rules.environment)) as user_code:
        values = read_keywords(own, f"{where}:", lambda: user_code)
        name, options = case or name_of(function, "artifact"), export_options(values, rules)
        exported = Case(name, where, None, function, args, kwargs, options, comparison(values, rules))
        yield exported, rules, values, user_code


def _check_names(where: str, function: Any, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
    """Raise `KeywordError` for a keyword that neither the marker nor the function takes, or that both take."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a value that is no function is refused later
        return
    mistakes = []
    for name, value in given.items():
        try:
            signature.bind_partial(*args, **{name: value})
        except TypeError:
            if name not in ALL_KEYWORDS and name != "inputs":
                hint = did_you_mean(name, ALL_KEYWORDS)
                mistakes.append(f"{where}: expected a keyword of the marker or of the function, found {name!r}.{hint}")
        else:
            if name in ALL_KEYWORDS and name in signature.parameters:
                mistakes.append(
                    f"{where}: {name!r} is a keyword of the marker and of the function. Pass the function's by "
                    "position, or with functools.partial."
                )
    if mistakes:
        raise KeywordError("\n".join(mistakes))
    # The values of abstract arguments are given as `inputs`, which the function need not take.
    left_out = {*ALL_KEYWORDS, *({"inputs"} - signature.parameters.keys())}
    own = {name: value for name, value in given.items() if name not in left_out}
    try:
        signature.bind(*args, **own)
    except TypeError as error:
        raise KeywordError(f"{where}: {error}. Pass the function's arguments after the function.") from None
