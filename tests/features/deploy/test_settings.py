"""Settings of a deployment target: they make a reader with a name, cells, environment and results of its own."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from making import ARTIFACTS, NEWEST, day, golden, manifest, result, write_golden

from export_core.artifact import read
from export_core.features.deploy.answers import DeployAnswer, Question, deployability
from export_core.features.deploy.asked import Subject
from export_core.goldens import GoldenStore
from export_core.judge import judge_again
from export_core.judge.causes import cell_signature, is_own_writer
from export_core.knowledge import YES, YES_BUT, forecast
from export_core.knowledge.forecasting import MATRIX
from export_core.matrix import Selection, Verdict, make_plan
from export_core.matrix.cache_keys import ExecutionKeys
from export_core.matrix.selection import reader_named
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget
from export_core.policy.load_check import find_reader
from export_core.policy.run_options import CellLimits, ProjectOptions, comma_separated
from export_core.policy.terms import Terms
from export_core.readers.cell import Cell, CellKey, request_of
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import Release, ReleaseError, Windows, load_calendar
from export_core.releases.calendar_entries import shipped_entries
from export_core.releases.jaxlib_settings import packages_of, variables_of
from export_core.releases.runtimes import built_on
from export_core.report.wording import cell_sentence, promise_line, window_line

ROOT = Path(__file__).parents[3]
CALENDAR = load_calendar()
WIDE = f"{NEWEST}[JAX_ENABLE_X64=true]"
NARROW = f"{NEWEST}[JAX_ENABLE_X64=false]"
FAST = ("--xla_cpu_enable_fast_math=true", "--xla_cpu_fast_math_honor_nans=false")


def reader(name: str) -> Release:
    return reader_named(name, CALENDAR)


# --- names ------------------------------------------------------------------------------------------------------------


def test_settings_are_sorted_in_the_name_of_a_targets_reader():
    target = DeploymentTarget("serving", jaxlib=NEWEST, settings=("scipy=1.14.1", "JAX_ENABLE_X64=true", FAST[0]))
    assert target.release == f"{NEWEST}[{FAST[0]};JAX_ENABLE_X64=true;scipy=1.14.1]"
    named = reader(target.release)
    assert named.name == target.release
    assert named.pair == f"{NEWEST}-jax{NEWEST}[{FAST[0]};JAX_ENABLE_X64=true;scipy=1.14.1]"
    assert reader(named.pair) == named
    assert (named.jaxlib, named.built, named.x64) == (NEWEST, reader(NEWEST).built, True)
    assert built_on(target.release, CALENDAR) == named.built
    assert CellKey("a/w", named.name, named.jax, "cpu").pair == named.pair


def test_a_reader_of_another_runtime_has_settings_in_its_name():
    target = DeploymentTarget("edge", reader="iree==3.13.0", settings=("--iree-input-demote-f64-to-f32=false",))
    assert reader(target.release).name == "iree==3.13.0[--iree-input-demote-f64-to-f32=false]"


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("fast", "Expected a setting of jaxlib: a flag of jax such as JAX_ENABLE_X64=true"),
        ("XLA_FLAGS=--xla_a=1", "one of XLA such as --xla_cpu_enable_fast_math=true"),
        ("JAX_COMPILATION_CACHE_DIR=/tmp", "found 'JAX_COMPILATION_CACHE_DIR=/tmp'"),
        ("JAX_ENABLE_X64=1", "Expected JAX_ENABLE_X64=true or JAX_ENABLE_X64=false, found 'JAX_ENABLE_X64=1'"),
        ("x64=1", "found 'x64=1': write JAX_ENABLE_X64=true"),
        ("jax_enable_x64=1", "a flag of jax such as JAX_ENABLE_X64=true"),
        ("scipy=newest", "a package such as scipy=1.14.1, found 'scipy=newest'"),
        ("JAX_PLATFORMS=cuda", "found 'JAX_PLATFORMS=cuda': each cell sets its own platform"),
        ("jax=0.12.0", "write it into the name of the reader, such as 0.11.2-jax0.12.0.1"),
        ("scipy=1;scipy=2", "Expected one value of the setting scipy"),
        ("ml-dtypes=1;ml_dtypes=2", "Expected one value of the setting ml-dtypes"),
    ],
)
def test_refusing_a_setting_says_which_are_allowed(setting, says):
    with pytest.raises(ReleaseError, match=says):
        reader(f"{NEWEST}[{setting}]")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("jaxlib: 0.12.0.1, settings: [fast]", "deployed[0].settings: Expected a setting of jaxlib"),
        ("reader: iree==3.13.0, settings: [a=b]", "deployed[0].settings: iree[a=b]: expected one of"),
        ("reader: 'iree==3.13.0[a=b]', settings: [a=b]", "deployed[0].reader: expected one release of a runtime"),
        ("reader: iree==3.13.0, settings: ['a=b]']", "deployed[0].reader: expected one release of a runtime"),
    ],
)
def test_a_policy_with_a_wrong_setting_is_refused(target, says, jaxexport, cwd):
    (cwd / "export_compat.yaml").write_text(f"deployed: [{{name: serving, {target}}}]\n")
    assert says in jaxexport("policy", "check", code=2).err


def test_a_range_after_settings_in_a_reader_list_is_one_item():
    assert comma_separated(f"{WIDE},>=0.11,<0.12") == (WIDE, ">=0.11,<0.12")


# --- cells ------------------------------------------------------------------------------------------------------------


def test_a_target_with_settings_is_a_separate_reader():
    targets = (DeploymentTarget("serving", jaxlib=NEWEST, settings=("JAX_ENABLE_X64=true",)),)
    plan = make_plan([golden()], CALENDAR, Windows(), Selection(), day("2026-11-21"), targets=targets)
    here = [cell for cell in plan.cells if cell.reader.jaxlib == NEWEST]
    assert [(cell.reader.name, cell.promised, cell.deployed) for cell in here] == [
        (NEWEST, True, ()),
        (WIDE, False, ("serving",)),
    ]


@pytest.mark.parametrize(("name", "x64"), [(NEWEST, False), (WIDE, True), (NARROW, False)])
def test_a_setting_overrides_the_flag_of_the_golden(name, x64):
    narrow, wide = (golden(flags={"jax_enable_x64": flag}) for flag in (False, True))
    asked = [request_of(Cell(made, reader(name), "cpu"), Path("out"), CellLimits()).x64 for made in (narrow, wide)]
    assert asked == ([False, True] if name == NEWEST else [x64, x64])


def test_cells_share_an_execution_if_settings_match():
    keys, made = ExecutionKeys(CellLimits()), golden()
    plain, wide, narrow = (keys.of(Cell(made, reader(name), "cpu")) for name in (NEWEST, WIDE, NARROW))
    assert plain == narrow != wide, "without a setting, the golden's own flag counts, which is off"


def test_settings_become_variables_and_installed_packages():
    named = reader(f"{NEWEST}[{FAST[0]};{FAST[1]};JAX_ENABLE_X64=true;scipy=1.14.1]")
    assert variables_of(named) == {"JAX_ENABLE_X64": "true", "XLA_FLAGS": f"{FAST[0]} {FAST[1]}"}
    assert packages_of(named) == {"scipy": "scipy==1.14.1"}
    environments = ReaderEnvironments(CALENDAR)
    folders = {name: environments.folder(Placement(reader(name))) for name in (NEWEST, WIDE, named.name)}
    assert folders[NEWEST] == folders[WIDE], "flags need no installation of their own"
    assert folders[named.name] != folders[NEWEST]


def test_a_package_setting_overrides_the_policy():
    of_policy = ReaderEnvironments(CALENDAR, packages=("SciPy>=1.10", "optax"))
    alone = ReaderEnvironments(CALENDAR, packages=("optax",))
    placement = Placement(reader(f"{NEWEST}[scipy=1.14.1]"))
    assert of_policy.folder(placement) == alone.folder(placement)


# --- judgements -------------------------------------------------------------------------------------------------------


def judged(verdict: Verdict, name: str = NARROW, target: str = "JAX_ENABLE_X64=false"):
    policy = Policy(deployed=(DeploymentTarget("serving", jaxlib=NEWEST, settings=(target,)),))
    outcome = msgspec.structs.replace(result(verdict, writer=NEWEST), reader=reader(name))
    return judge_again(outcome, policy, day("2026-11-21"))


@pytest.mark.parametrize(
    ("verdict", "judgement"), [(Verdict.PASS, "bonus"), (Verdict.ERROR, "owed"), (Verdict.NUMERICS, "broken")]
)
def test_cells_with_settings_are_not_promised_but_can_be_owed(verdict, judgement):
    assert judged(verdict).judgement == judgement
    assert judged(verdict, NEWEST).promised, "without settings, the window says it"
    assert judged(verdict, WIDE).deployed == (), "the target has other settings"


def test_reports_say_that_readers_with_settings_have_no_promise():
    other = judged(Verdict.NUMERICS)
    assert "nothing is promised" in window_line(other)
    assert "JAX promises nothing about settings" in promise_line(other.reader)
    assert cell_sentence(other).endswith("; with such settings, JAX promises nothing.")


def test_failures_with_and_without_settings_have_different_causes():
    plain, other = judged(Verdict.ERROR, NEWEST), judged(Verdict.ERROR)
    assert (is_own_writer(plain), is_own_writer(other)) == (True, False)
    assert cell_signature(plain) != cell_signature(other)
    assert plain.series != other.series


# --- answers ----------------------------------------------------------------------------------------------------------


def test_the_forecast_of_a_golden_depends_on_settings():
    artifact = read(ROOT / "golden/tests.compat.test_dtypes.test_wide_dtype[float64]/0.12.0.1-cpu/artifact.jaxexport")
    known = {
        name: forecast(artifact, find_reader(name, Terms(shipped_entries())), "cpu", settings).runs.answer
        for name, settings in ((NEWEST, ()), (WIDE, ()), (NARROW, MATRIX))
    }
    assert known == {NEWEST: YES_BUT, WIDE: YES, NARROW: YES_BUT}


def test_a_result_counts_only_for_the_same_settings(tmp_path):
    made = write_golden(GoldenStore(tmp_path / "golden"), manifest())
    stored = msgspec.structs.replace(result(Verdict.PASS), golden=made.id)
    terms, evidence = Terms(shipped_entries()), {(made.id, NEWEST, "cpu"): stored}
    question = Question(CALENDAR, terms, evidence, {}, ProjectOptions(), Path("out"), policy=Policy())
    subject = Subject(read(ARTIFACTS / NEWEST / "mlp.jaxexport"), made)
    plain, wide = (
        DeploymentTarget("serving", jaxlib=NEWEST, settings=settings) for settings in ((), ("JAX_ENABLE_X64=true",))
    )
    for target, answer in ((plain, DeployAnswer.YES), (wide, DeployAnswer.UNKNOWN)):
        (given,) = deployability([(subject, target)], question, day("2026-11-21")).answers
        assert given.answer is answer
    assert WIDE in given.run


# --- in a real reader -------------------------------------------------------------------------------------------------

FLOAT64 = "golden/tests.compat.test_dtypes.test_wide_dtype[float64]"
NAN = "studies/known/golden/studies.known.test_programs.test_program[sign_of_nan]"
OF_ALL = f"""
readers: deployed
deployed:
  - {{name: wide, jaxlib: {NEWEST}, settings: [JAX_ENABLE_X64=true], cases: ["*float64*"]}}
  - {{name: narrow, jaxlib: {NEWEST}, settings: [JAX_ENABLE_X64=false], cases: ["*float64*"]}}
  - {{name: exact, jaxlib: {NEWEST}, settings: ["{FAST[0].replace("true", "false")}"], cases: ["*nan*"]}}
  - {{name: fast, jaxlib: {NEWEST}, settings: ["{FAST[0]}", "{FAST[1]}"], cases: ["*nan*"]}}
"""


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_cells_run_with_the_settings_of_their_target(jaxexport, cwd):
    for case in (FLOAT64, NAN):
        folder = ROOT / case / f"{NEWEST}-cpu"
        shutil.copytree(folder, cwd / "golden" / Path(case).name / folder.name)
    (cwd / "export_compat.yaml").write_text(OF_ALL)

    done = jaxexport("matrix", "--as-of", "2026-11-21")
    lines = (cwd / ".jaxexport" / "results.jsonl").read_text().splitlines()
    found = {
        target: (cell["verdict"], cell["judgement"]) for cell in map(json.loads, lines) for target in cell["deployed"]
    }
    assert found == {
        "wide": ("pass", "bonus"),
        "narrow": ("error", "owed"),
        "exact": ("pass", "bonus"),
        "fast": ("numerics", "broken"),
    }, done.err
    codes = {name: jaxexport("can-i-deploy", "--to", name, "--as-of", "2026-11-21").code for name in found}
    assert codes == {"wide": 0, "narrow": 1, "exact": 0, "fast": 1}
