"""Readers that are not jaxlib: how they are named, planned, judged and refused."""

import dataclasses
import re
from pathlib import Path

import msgspec
import pytest
from making import NEWEST, day, golden, result, summarize

from export_core.base.errors import ExportCompatError
from export_core.goldens import Check, Options
from export_core.judge import judgement
from export_core.judge.causes import cell_signature
from export_core.judge.judgement import judge_again
from export_core.matrix import Plan, Selection, Verdict, make_plan
from export_core.matrix.outcome import outcome_of
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import by_build_date, titles
from export_core.matrix.verdicts import Judgement
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget, names_of
from export_core.readers.cell import Cell, cannot_pass
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.readers.worker.protocol import Reply, Stage
from export_core.releases import Release, ReleaseError, Windows, load_calendar, runtimes
from export_core.releases.runtimes import (
    SETTINGS,
    RuntimePromise,
    RuntimeRefusal,
    built_on,
    known_runtimes,
    load_runtime,
    promise_to,
    runtime_readers,
)

CALENDAR = load_calendar()
TENSORFLOW = "tensorflow==2.21.0"  # Built on 2026-03-05, 13 days before the jaxlib 0.9.2.
IREE = "iree==3.13.0"  # Built on 2026-10-19, and promises nothing.
WITHOUT_DEMOTION = f"{IREE}[--iree-input-demote-f64-to-f32=false]"


def planned(goldens, **selection) -> Plan:
    return make_plan(goldens, CALENDAR, Windows(), Selection(**selection), day("2026-11-21"))


def read_by(name: str, **changes):
    reader = runtime_readers(name, CALENDAR)[0]
    return msgspec.structs.replace(result(**changes), reader=reader)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (f"{TENSORFLOW},0.9.2", ["0.9.2", TENSORFLOW]),  # jaxlib first
        ("tensorflow,iree", ["iree==3.13.0", TENSORFLOW]),  # the newest of each
        ("tensorflow>=2.20", ["tensorflow==2.20.0", TENSORFLOW]),
        ("tensorflow>=2.20,<2.21,iree", ["iree==3.13.0", "tensorflow==2.20.0"]),
        ("tensorflow==2.19.1,tensorflow==2.20.0", ["tensorflow==2.20.0", "tensorflow==2.19.1"]),  # by build date
        ("stablehlo", [f"stablehlo=={NEWEST}"]),
        ("pjrt==0.9.2", ["pjrt==0.9.2"]),
        (f"{WITHOUT_DEMOTION},{IREE}", [IREE, WITHOUT_DEMOTION]),  # two readers
    ],
)
def test_runtime_readers_are_named_like_requirements(asked, expected):
    plan = planned([golden(jaxlib="0.9.2")], readers=asked)
    assert [release.name for release in plan.readers] == expected
    assert list(map(plan.spelled.get, plan.readers)) == expected


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("tensorfow==2.21.0", "found 'tensorfow'. Did you mean 'tensorflow'?"),
        ("tensorflow==9.1", "tensorflow 9.1 is not in the calendar of tensorflow as of 2026-11-21"),
        ("tensorflow==2.99.0", r"tensorflow 2\.99\.0 is not .* The newest known are 2\.19\.1, 2\.20\.0, 2\.21\.0\."),
        ("tensorflow>=9", "no known release of tensorflow matches as of 2026-11-21"),
        ("tensorflow>=x", "Expected a release such as tensorflow==2.21.0, or a range"),
        ("tensorflow=2.20.0", "Expected a release such as tensorflow==2.20.0"),
        ("tensorflow 2.20.0", "Expected a release such as tensorflow==2.20.0"),  # as reports write it
        ("tensorflow==", "or a range such as 'tensorflow>=2.21.0', found 'tensorflow=='"),
        ("tf", "releases of a runtime .iree, litert"),
        ("jaxlib==0.9.2", "expected a release of jaxlib as its version alone"),
        ("iree==3.13.0[--iree-opt-level=O3]", "expected one of --iree-input-demote-f64-to-f32, found"),
        (WITHOUT_DEMOTION.replace("false", "no"), "expected true.false, found 'no'"),
        ("tensorflow==2.21.0[a=b]", "tensorflow.a=b.: expected no settings, since tensorflow has none, found 'a'"),
    ],
)
def test_a_mistake_in_a_runtime_readers_name_is_explained(asked, message):
    with pytest.raises(ExportCompatError, match=message.replace("?", r"\?")):
        planned([golden(jaxlib="0.9.2")], readers=asked)


def test_runtimes_have_no_cells_on_other_platforms():
    with pytest.raises(ExportCompatError, match=r"run only on cpu, found --platforms cuda\. Choose --platforms cpu"):
        planned([golden(jaxlib="0.9.2")], readers=TENSORFLOW, platforms=("cuda",))
    with pytest.raises(ExportCompatError, match=r"was exported for cpu, and none for cuda\."):
        planned([golden(jaxlib="0.9.2")], readers=f"{TENSORFLOW},0.9.2", platforms=("cuda",))


def test_a_release_is_unknown_before_its_build_date():
    with pytest.raises(ReleaseError, match="as of 2026-03-04"):
        runtime_readers(TENSORFLOW, CALENDAR.as_of(day("2026-03-04")))


def test_settings_of_a_runtime_reader_are_in_its_name_and_variables():
    configured, plain = (runtime_readers(name, CALENDAR)[0] for name in (WITHOUT_DEMOTION, IREE))
    assert (configured.family, configured.version, configured.built) == (plain.family, plain.version, plain.built)
    assert (configured.settings, plain.settings) == (("--iree-input-demote-f64-to-f32=false",), ())
    assert configured.title == "iree 3.13.0[--iree-input-demote-f64-to-f32=false]"
    iree = known_runtimes()["iree"]
    assert iree.variables_of(configured) == {**iree.variables, SETTINGS: "--iree-input-demote-f64-to-f32=false"}
    assert SETTINGS not in iree.variables_of(plain)
    assert built_on(WITHOUT_DEMOTION, CALENDAR) == plain.built


def test_readers_with_different_settings_share_one_environment():
    environments = ReaderEnvironments(CALENDAR)
    configured, plain = (
        environments.folder(Placement(runtime_readers(name, CALENDAR)[0])) for name in (WITHOUT_DEMOTION, IREE)
    )
    assert configured == plain


def test_readers_are_sorted_by_build_date_and_titled_by_runtime():
    read = [read_by(TENSORFLOW).reader, result(reader="0.9.2").reader, result(reader="0.10.2").reader]
    assert titles(read) == "jaxlib 0.9.2, 0.10.2, tensorflow 2.21.0"
    assert by_build_date(read) == ["0.9.2", "0.10.2", TENSORFLOW]


def test_a_deployment_target_can_be_a_runtime():
    serving = DeploymentTarget("serving", reader=TENSORFLOW)
    assert str(serving) == "serving (tensorflow 2.21.0)"
    plan = planned([golden(jaxlib="0.9.2")], readers="0.9.2")
    assert TENSORFLOW not in map(str, plan.readers)
    assert names_of([serving], "tests.test_a.test_f", TENSORFLOW, "cpu", None, runs_on=("cpu",)) == ("serving",)
    assert names_of([serving], "tests.test_a.test_f", "0.9.2", "cpu", None, runs_on=("cpu",)) == ()
    assert Policy(deployed=(serving,)).targets_on(day("2026-03-04")) == ()  # before it was built
    assert Policy(deployed=(serving,)).targets_on(day("2026-03-05")) == (serving,)


# --- promises ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reader", "written", "promised"),
    [
        (TENSORFLOW, "2025-09-06", True),  # 180 days older
        (TENSORFLOW, "2025-09-05", False),
        (TENSORFLOW, "2026-04-04", True),  # 30 days younger
        (TENSORFLOW, "2026-04-05", False),
        (IREE, "2026-10-19", False),
        ("pjrt==0.9.2", "2022-01-01", True),
    ],
)
def test_a_runtime_has_its_own_promise_instead_of_jaxs(reader, written, promised):
    (release,) = runtime_readers(reader, CALENDAR)
    assert promise_to(release, day(written), Policy().window_lengths()).promised is promised


@pytest.mark.parametrize(
    ("reader", "verdict", "message", "expected"),
    [
        (TENSORFLOW, Verdict.REFUSED, "Cannot deserialize computation", Judgement.BROKEN),
        (TENSORFLOW, Verdict.REFUSED, "No FFI handler registered for lapack_ssyevd_ffi", Judgement.OUTSIDE),
        (TENSORFLOW, Verdict.REFUSED, "is called with one device, but this artifact is for 2", Judgement.OUTSIDE),
        (TENSORFLOW, Verdict.REFUSED, "TensorFlow 2.21.0 has no dtype float8_e3m4", Judgement.OUTSIDE),
        (TENSORFLOW, Verdict.ERROR, "No FFI handler", Judgement.BROKEN),
        (IREE, Verdict.REFUSED, "unknown vhlo", Judgement.OUTSIDE),
        (IREE, Verdict.NUMERICS, "other numbers", Judgement.BROKEN),  # wrong numbers are broken anywhere
        (IREE, Verdict.PASS, "", Judgement.BONUS),
    ],
)
def test_a_refusal_that_a_runtimes_promise_excludes_is_outside(reader, verdict, message, expected):
    judged = judge_again(read_by(reader, verdict=verdict, message=message), Policy())
    assert judged.judgement is expected


def test_a_refusal_is_recognized_only_by_its_own_message(monkeypatch):
    iree = known_runtimes()["iree"]
    refusals = RuntimeRefusal("dialect", "a dialect"), RuntimeRefusal("No handler", "no dialect has it", promised=False)
    other = msgspec.structs.replace(iree, refusals=refusals, promise=RuntimePromise(9999, 9999, "", ""))
    monkeypatch.setattr(runtimes, "known_runtimes", lambda: {"iree": other})
    reply = Reply(Stage.RUN, "error", type="ValueError", message="No handler")
    cell = Cell(golden(jaxlib="0.9.2"), runtime_readers(IREE, CALENDAR)[0], "cpu")
    outcome = outcome_of(cell, reply, Path("outputs"), ReplayOptions(CALENDAR))
    assert outcome.message == "no dialect has it\nValueError: No handler"
    assert judgement.judge(outcome, cell.golden, Policy()).judgement is Judgement.OUTSIDE


def test_a_refusal_of_a_deployed_runtime_is_owed():
    target = DeploymentTarget("phone", reader=IREE)
    refused = read_by(IREE, verdict=Verdict.REFUSED, message="unknown vhlo")
    assert judge_again(refused, Policy(deployed=(target,))).judgement is Judgement.OWED


def test_jaxs_windows_are_not_named_if_only_runtimes_ran():
    bonus = read_by(IREE, judgement=Judgement.BONUS, promised=False)
    assert "is promised by the runtime that reads it" in summarize([bonus]).unpromised
    mixed = [bonus, result(judgement=Judgement.BONUS, promised=False, reader="0.8.1")]
    assert "180 days backward" in summarize(mixed).unpromised


def test_failures_of_two_runtimes_have_two_causes():
    one, other = (read_by(name, verdict=Verdict.ERROR, message="no room") for name in (TENSORFLOW, IREE))
    assert cell_signature(one) != cell_signature(other)
    assert one.series != other.series


def test_a_cell_shows_only_known_issues_of_its_runtime(tmp_path):
    (tmp_path / "issues.yaml").write_text(
        "- {id: of-jaxlib, title: a, todo: b, outcome: error, message: whatever}\n"
        "- {id: of-iree, title: a, todo: b, outcome: error, message: whatever, consumer: iree}\n"
    )
    policy, reply = Policy(known_issues=str(tmp_path / "issues.yaml")), Reply(Stage.RUN, "error", message="whatever")
    for name, expected in ((NEWEST, "of-jaxlib"), (IREE, "of-iree")):
        cell = dataclasses.replace(cell_of("0.9.2"), reader=planned([golden(jaxlib="0.9.2")], readers=name).readers[0])
        outcome = outcome_of(cell, reply, Path("outputs"), ReplayOptions(CALENDAR))
        assert judgement.judge(outcome, cell.golden, policy).upstream == expected


# --- calls that a runtime cannot make, and its messages ---------------------------------------------------------------


def cell_of(reader: str, checks: tuple[Check, ...] = (), **options) -> Cell:
    made = golden(jaxlib="0.9.2", checks=checks)
    manifest = msgspec.structs.replace(made.manifest, options=Options(**{"platforms": ("cpu",), **options}))
    (read,) = planned([made], readers=reader).readers
    return Cell(dataclasses.replace(made, manifest=manifest), read, "cpu")


def test_an_artifact_for_several_devices_is_refused():
    assert cannot_pass(cell_of(TENSORFLOW, mesh={"x": 2})).startswith("tensorflow 2.21.0 is called with one device")
    assert cannot_pass(cell_of(TENSORFLOW)) == ""
    assert cannot_pass(cell_of("0.9.2", mesh={"x": 2})) == ""  # jaxlib has as many as it is asked for


def test_runtimes_get_no_goldens_that_must_be_refused():
    made = golden(jaxlib="0.9.2")
    refused = msgspec.structs.replace(made.manifest, options=Options(platforms=("tpu",), refused_on=("cpu",)))
    goldens = [made, dataclasses.replace(made, manifest=refused)]
    plan = planned(goldens, readers=f"0.9.2,{IREE}")
    assert [(cell.reader.name, len(cell.golden.manifest.options.refused_on)) for cell in plan.cells] == [
        ("0.9.2", 0),
        ("0.9.2", 1),
        (IREE, 0),
    ]


def test_runtimes_have_cells_only_on_the_cpu():
    made = golden(jaxlib="0.9.2")
    both = msgspec.structs.replace(made.manifest, options=Options(platforms=("cpu", "cuda")))
    plan = planned(
        [dataclasses.replace(made, manifest=both)], readers=f"0.9.2,{IREE}", platforms=("cpu", "cuda:compile")
    )
    assert [(cell.reader.name, cell.platform) for cell in plan.cells] == [
        ("0.9.2", "cpu"),
        ("0.9.2", "cuda"),
        (IREE, "cpu"),
    ]


def test_a_cell_of_a_runtime_has_only_checks_that_it_can_run():
    assert [check.name for check in cell_of(IREE, refused_on=("cpu",)).checks] == [""]
    assert cell_of(IREE).checks[0].refused is None
    assert cell_of("0.9.2", refused_on=("cpu",)).checks[0].refused is not None
    checks = tuple(Check(f"vjp{order}", vjp=order) for order in (1, 2))
    assert [check.name for check in cell_of(IREE, checks, vjp_order=1).checks] == ["", "vjp1"]


CUSTOM_CALL = "error: failed to legalize operation 'stablehlo.custom_call' that was explicitly marked illegal:"


@pytest.mark.parametrize(
    ("message", "stderr", "verdict", "first"),
    [
        (
            "/s/0/0.mlirbc:0:0: error: dialect 'sdy' does not implement the bytecode interface",
            "",
            Verdict.REFUSED,
            "Shardy's dialect",
        ),
        ("parse failed", "error: /s/0/0.mlirbc: unknown vhlo", Verdict.REFUSED, "StableHLO or bytecode"),
        ("the runtime of this IREE has no dtype float8_e3m4", "", Verdict.REFUSED, "a dtype that this runtime lacks"),
        (f'{CUSTOM_CALL} <{{call_target_name = "Sharding"}}>', "", Verdict.REFUSED, "the custom call Sharding, which"),
        (
            f'{CUSTOM_CALL} <{{call_target_name = "my"}}>',
            "",
            Verdict.REFUSED,
            "a custom call, which IREE lacks: export",
        ),
        ("no room", "", Verdict.ERROR, "ValueError: no room"),
    ],
)
def test_a_refusal_is_recognized_without_its_temporary_path(message, stderr, verdict, first):
    reply = Reply(Stage.DESERIALIZE, "error", type="ValueError", message=message, stderr=stderr)
    outcome = outcome_of(cell_of(IREE), reply, Path("/s/0"), ReplayOptions(CALENDAR))
    assert outcome.verdict is verdict
    assert outcome.message.startswith(first)
    assert "/s/0/" not in outcome.message


@pytest.mark.parametrize(("calls", "is_advised"), [((), True), (("Sharding",), True), (("lapack_spotrf_ffi",), False)])
def test_a_refusal_advises_no_conversion_that_would_keep_lapack(calls, is_advised):
    cell = cell_of(IREE)
    manifest = msgspec.structs.replace(cell.golden.manifest, custom_calls=calls)
    cell = dataclasses.replace(cell, golden=dataclasses.replace(cell.golden, manifest=manifest))
    message = "dialect 'sdy' does not implement the bytecode interface"
    reply = Reply(Stage.DESERIALIZE, "error", type="ValueError", message=message)
    first, *_ = outcome_of(cell, reply, Path("/s/0"), ReplayOptions(CALENDAR)).message.splitlines()
    assert first.startswith("Shardy's dialect, which IREE lacks")
    assert ("jaxexport convert" in first) is is_advised


def test_a_cell_with_a_dtype_that_a_python_binding_lacks_is_not_run():
    reply = Reply(Stage.READ, "error", type="TypeError", message="this binding has no float8_e3m4")
    outcome = outcome_of(cell_of(IREE), reply, Path("/s/0"), ReplayOptions(CALENDAR))
    assert (outcome.verdict, outcome.message) == (Verdict.NOT_RUN, "this binding has no float8_e3m4")


# --- the file of a runtime --------------------------------------------------------------------------------------------

FILE = 'name: acme\nabout: A runtime.\nworker: acme_worker.py\nrequirements: ["acme=={version}"]\ncheck: print(1)\n'


def test_a_malformed_runtime_file_is_named_in_the_error(tmp_path):
    (tmp_path / "acme.yaml").write_text(FILE + "colour: red\n")
    with pytest.raises(ReleaseError, match=r"acme\.yaml: expected the file of a runtime: .*colour"):
        load_runtime(tmp_path / "acme.yaml")
    with pytest.raises(ReleaseError, match=r"none\.yaml"):
        load_runtime(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: acme", "name: my-acme", "name: expected letters, digits and _, a letter first"),
        ("name: acme", "name: window", "none of all, deployed, newest, window, writer; found 'window'"),
        ("acme_worker", "../acme_worker", "worker: expected the name of a file beside this one"),
        ("acme_worker", "other", "worker: expected the name of a file beside this one, found 'other.py'"),
        ("{version}", "{release}", "requirements: expected no braces but those of {version}"),
        (
            "check:",
            'refusals: [{message: "(a", meaning: m}]\ncheck:',
            "refusals: expected a regular expression, found '(a'",
        ),
        (
            "check:",
            'refusals: [{message: "a.*b.*c", meaning: m}]\ncheck:',
            "refusals: expected a regular expression with one * or + at most in each alternative",
        ),
        ("check:", "releases: {latest: {built: 2026-01-01}}\ncheck:", "releases: Expected a version such as"),
        (
            "check:",
            "promise: {backward_days: 99999, forward_days: 0, source: s, says: s}\ncheck:",
            "promise: expected 0 to 36500 days, found 99999",
        ),
    ],
)
def test_mistakes_in_a_runtime_file_are_found_when_loading(old, new, message, tmp_path):
    (tmp_path / "acme_worker.py").touch()
    path = tmp_path / "acme.yaml"
    path.write_text(FILE)
    assert load_runtime(path).name == "acme"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(ReleaseError, match=re.escape(message)):
        load_runtime(path)


def test_results_of_a_runtime_that_is_not_installed_are_an_error():
    reader = Release(jax="", jaxlib="", built=day("2026-10-01"), runtime="acme==1.0")
    stored = msgspec.structs.replace(result(), reader=reader)
    with pytest.raises(ReleaseError, match=r"found 'acme'\. For any other, install the package that adds it"):
        judge_again(stored, Policy())


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([("acme", "acme"), ("again", "acme")], "the runtime acme is already defined by another package"),
        ([("jaxlib", "jaxlib")], "the runtime jaxlib is already defined by another package"),
        ([("broken", None)], "The runtime broken of a.b cannot be loaded: ZeroDivisionError"),
        ([("none", "")], "The runtime none of a.b cannot be loaded: ValidationError: Expected `object`"),
    ],
)
def test_runtimes_of_packages_that_clash_or_cannot_load_are_errors(points, message, tmp_path, monkeypatch):
    class Point:
        value = "a.b"

        def __init__(self, name, runtime):
            self.name, self.runtime = name, runtime

        def load(self):
            if self.runtime is None:
                return lambda: 1 / 0
            if not self.runtime:
                return lambda: self.runtime
            path = tmp_path / f"{self.runtime}.yaml"
            path.write_text(FILE.replace("acme", self.runtime))
            path.with_name(f"{self.runtime}_worker.py").touch()
            return lambda: load_runtime(path)

    monkeypatch.setattr(runtimes, "entry_points", lambda group: [Point(*point) for point in points])
    known_runtimes.cache_clear()
    try:
        with pytest.raises(ReleaseError, match=message):
            known_runtimes()
    finally:
        known_runtimes.cache_clear()
