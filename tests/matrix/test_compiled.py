"""Cells of missing platforms, compiled for a described TPU and a described GPU by the newest release's plugins."""

import functools
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from making import NEWEST, judged_run, release

from export_core.goldens import GoldenStore
from export_core.judge import Judgement, judge
from export_core.matrix import Cell, CellLimits, Result, Verdict
from export_core.matrix.replay import replay as replay_cells
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy import Policy
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.hardware import missing_hardware
from export_core.readers.placement import Mode, parse_targets
from export_core.releases import load_calendar
from export_core.report.view import view

ROOT = Path(__file__).parents[2]
CALENDAR = load_calendar()
READER = release(NEWEST)
HERE = version("jaxlib")
BOTH = pytest.mark.parametrize("platform", ["tpu", "cuda"])
COMPILED = {
    "tpu": ("test_any_batch_with_derivative", "test_sum_over_four_devices", "test_pallas_on_tpu"),
    "cuda": (
        *("test_any_batch_with_derivative", "test_sum_over_four_devices"),
        *("test_pallas_on_cuda", "test_pallas_on_hopper"),
    ),
}
WITHOUT_OUTPUTS = {
    "tpu": ("test_kernel_for_tpu", "test_derivative_for_tpu"),
    "cuda": ("test_primitive_for_cuda",),
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> Path:
    """The folder with the goldens of write_planted.py."""
    folder = tmp_path_factory.mktemp("planted") / "golden"
    subprocess.run([sys.executable, Path(__file__).with_name("write_planted.py"), folder], check=True)
    return folder


@pytest.fixture(scope="module")
def compiled_planted(planted) -> Callable[[str], dict[str, Result]]:
    """The function that returns the outcomes of all planted goldens on a platform, which are compiled once."""
    return functools.cache(lambda platform: replay(planted, platform))


@functools.cache
def compiled_own(platform: str) -> dict[str, Result]:
    """Return the outcomes of goldens of this repository, compiled for a platform: those that the tests below name."""
    return replay(ROOT / "golden", platform, *COMPILED[platform], *WITHOUT_OUTPUTS[platform])


def replay(folder: Path, platform: str, *cases: str, mode: Mode = Mode.COMPILE, target: str = "") -> dict[str, Result]:
    """Return the outcomes of the cells of these goldens on a platform, by the name of the test of their case."""
    targets = parse_targets((target,) if target else ())
    store = GoldenStore(folder)
    goldens = [
        golden
        for case in store.cases()
        if not cases or case.rpartition(".")[2] in cases
        for golden in store.generations(case)
    ]
    cells = [
        Cell(golden, READER, platform, mode, targets.get(platform))
        for golden in goldens
        if golden.manifest.writer.jaxlib in (NEWEST, HERE)
        and (
            "." not in golden.manifest.case
            or any(name in golden.manifest.case for name in (".test_accelerators.", ".test_without_outputs."))
        )
    ]
    environments, options = ReaderEnvironments(CALENDAR), ReplayOptions(CALENDAR, limits=CellLimits(jobs=2))
    outcomes = replay_cells(cells, environments.build, options)
    return {outcome.case.rpartition(".")[2]: outcome for _, outcome in outcomes}


@pytest.mark.matrix
@BOTH
def test_only_broken_artifacts_fail_to_compile(compiled_planted, platform):
    outcomes = compiled_planted(platform)
    sound = outcomes["sound"]
    assert (sound.verdict, sound.stage) == (Verdict.COMPILED, "compile"), sound.message
    assert sound.device == {"tpu": "TPU v5 lite", "cuda": "NVIDIA H100 80GB HBM3"}[platform]
    assert None not in (sound.cost.temp_bytes, sound.cost.output_bytes, sound.cost.instructions, sound.cost.fusions)
    assert (sound.cost.flops is None) == (platform == "cuda"), "its plugin estimates nothing without a device"
    assert (sound.timings.compile > 0, sound.timings.run) == (True, None)
    missing = outcomes["missing_target"]
    assert (missing.verdict, missing.stage) == (Verdict.ERROR, "compile")
    assert "planted_target" in missing.message
    if platform == "tpu":
        kernel = outcomes["unreadable_kernel"]
        assert (kernel.verdict, kernel.stage) == (Verdict.ERROR, "compile"), kernel.message
        assert "tpu_custom_call" in kernel.message
    foreign = outcomes["foreign_platform"]
    assert (foreign.verdict, foreign.stage) == (Verdict.REFUSED, "lower")
    assert f"exported for platforms '('cpu',)' but it is used on '('{platform}',)'" in foreign.message


@pytest.mark.matrix
@pytest.mark.skipif(HERE != NEWEST, reason="the writer's own reader is compared, and only the newest one is fetched")
def test_a_limit_of_the_cuda_compiler_is_a_device_limit(planted, compiled_planted):
    (golden,) = GoldenStore(planted).generations("whole_numbers")
    outcome = compiled_planted("cuda")["whole_numbers"]
    alone = judge(outcome, golden, Policy())
    assert (alone.verdict, alone.stage, alone.judgement) == (Verdict.ERROR, "compile", Judgement.BROKEN)
    (finding,) = (one for one in view(judged_run([alone])).findings if one.results)
    assert finding.title == "DEVICE LIMIT"
    assert "The compiler for NVIDIA H100 80GB HBM3 does not do this" in finding.sentence
    assert "idioms supported by CuDNN" in dict(finding.details)["message"]


@pytest.mark.matrix
def test_a_cpu_fails_on_a_missing_target_and_refuses_other_platforms(planted):
    outcomes = replay(planted, "cpu", "missing_target_on_cpu", "foreign_to_cpu", mode=Mode.RUN)
    missing, foreign = outcomes["missing_target_on_cpu"], outcomes["foreign_to_cpu"]
    assert (missing.verdict, missing.stage) == (Verdict.ERROR, "compile"), missing.message
    assert "planted_target" in missing.message
    assert (foreign.verdict, foreign.stage) == (Verdict.REFUSED, "lower"), foreign.message
    assert "exported for platforms '('cuda', 'tpu')' but it is used on '('cpu',)'" in foreign.message


@pytest.mark.matrix
@BOTH
def test_the_projects_own_goldens_compile_for_tpu_and_gpu(platform):
    verdicts = {name: outcome.verdict for name, outcome in compiled_own(platform).items()}
    assert verdicts == dict.fromkeys((*COMPILED[platform], *WITHOUT_OUTPUTS[platform]), Verdict.COMPILED)


@pytest.mark.matrix
@BOTH
def test_compiled_goldens_say_why_they_have_no_outputs(platform):
    for name in WITHOUT_OUTPUTS[platform]:
        outcome = compiled_own(platform)[name]
        assert outcome.verdict is Verdict.COMPILED, outcome.message
        assert "the golden has no outputs: " in outcome.message


@pytest.mark.matrix
def test_mosaic_gpu_does_not_compile_without_its_runtime(tmp_path):
    """Show a finding of docs/explanation/findings.md, without the module `compat_kernels`, which names the runtime."""
    (golden,) = (ROOT / "golden").glob(f"*.test_pallas_on_hopper/{NEWEST}-cpu")
    copy = tmp_path / golden.parent.name / golden.name
    shutil.copytree(golden, copy)
    manifest = yaml.safe_load((copy / "golden.yaml").read_bytes())
    del manifest["options"]["register"]
    del manifest["files"]["compat_kernels.register.py"]
    (copy / "golden.yaml").write_text(yaml.safe_dump(manifest))
    outcome = replay(tmp_path, "cuda")["test_pallas_on_hopper"]
    assert (outcome.verdict, outcome.stage) == (Verdict.ERROR, "compile")
    assert "mosaic_gpu" in outcome.message


@pytest.mark.matrix
def test_option_target_decides_for_which_device_cells_compile(planted):
    outcome = replay(planted, "tpu", "sound", target="tpu=v6e")["sound"]
    assert (outcome.verdict, outcome.device) == (Verdict.COMPILED, "TPU v6 lite")


@pytest.mark.matrix
@pytest.mark.gpu
def test_cells_run_on_a_gpu_and_record_its_driver():
    if lack := missing_hardware("cuda"):
        pytest.skip(f"no CUDA device answers here: {lack}")
    cases = ("test_cholesky", "test_lu", "test_any_batch_with_derivative")
    outcomes = replay(ROOT / "golden", "cuda", *cases, mode=Mode.RUN)
    assert {name: outcome.verdict for name, outcome in outcomes.items()} == dict.fromkeys(cases, Verdict.PASS)
    for outcome in outcomes.values():
        assert outcome.device
        assert "nvidia" in outcome.driver
