"""Placements: the platforms, modes and targets there are, and the packages and variables that they need."""

import dataclasses
import io
import re
from importlib import resources

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import day, document, golden, release, result, summarize
from replaying import replayed
from rich.console import Console

from export_core.goldens import Options
from export_core.matrix import Cell, Selection, Verdict, make_plan
from export_core.matrix.outcome import find_driver_need, load_driver_needs
from export_core.policy import Policy
from export_core.readers import hardware as hardware_module
from export_core.readers.environment import cell_variables, this_interpreter
from export_core.readers.errors import PlacementError
from export_core.readers.hardware import missing_hardware, resolve_mode
from export_core.readers.placement import Mode, Placement, load_devices, parse_platform, parse_targets
from export_core.readers.worker.protocol import Stage
from export_core.releases import Windows, load_calendar
from export_core.report.plan_report import print_plan

pytestmark = pytest.mark.usefixtures("forked_workers")

NEWEST = release("0.12.0.1")


def target(text=""):
    platform = text.partition("=")[0]
    return parse_targets((text,) if "=" in text else ())[platform]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu", "expected some of cpu, cuda, rocm, tpu, found 'gpu'"),
        ("cuda:fast", r"cuda:run \(incomplete without the hardware\) or cuda:compile, found 'fast'"),
        ("cpu:compile", "every machine has a CPU"),
    ],
)
def test_a_platform_is_parsed_with_its_mode_or_refused(text, message):
    texts = ("cpu", "cuda", "cuda:run", "tpu:compile")
    modes = ("cpu", Mode.RUN), ("cuda", Mode.AUTO), ("cuda", Mode.RUN), ("tpu", Mode.COMPILE)
    assert tuple(map(parse_platform, texts)) == modes
    with pytest.raises(PlacementError, match=message):
        parse_platform(text)


def test_a_platform_has_a_default_target_unless_another_is_named():
    defaults = {name: str(each) for name, each in parse_targets(()).items()}
    assert defaults == {"tpu": "libtpu/v5e", "cuda": "cuda12/h100", "rocm": "rocm7/mi300x"}
    texts = ("cuda=a100", "cuda=cuda13", "cuda=cuda13/b200")
    assert [str(target(text)) for text in texts] == ["cuda12/a100", "cuda13/h100", "cuda13/b200"]


@pytest.mark.parametrize("text", ["v6e", "cpu=x86", "tpu=", "tpu=h100", "cuda=cuda11"])
def test_an_unknown_target_is_refused(text):
    with pytest.raises(PlacementError, match=r"--target.* expected .*found"):
        parse_targets((text,))


@given(st.sampled_from([(name, device) for name, each in load_devices().items() for device in each.devices]))
def test_each_device_is_described_for_1_4_and_8_devices(named):
    platform, device = named
    for count in (1, 4, 8):
        described = target(f"{platform}={device}").described(count)
        assert described.name
        if platform != "tpu":
            assert described.options["topology"] == f"1x{count}x1"
    with pytest.raises(PlacementError, match="no topology of v5e with 4096 devices"):
        target("tpu=v5e").described(4096)


def test_all_descriptions_of_nvidia_gpus_have_the_same_fields():
    fields = {}
    for path in resources.files("export_core.readers").joinpath("data/gpus").iterdir():
        fields[path.name] = set(re.findall(r"^ *(\w+)[:{ ]", path.read_text(), re.MULTILINE)) - {"dnn_version_info"}
    names = {each.config for platform in load_devices().values() for each in platform.devices.values() if each.config}
    assert set(fields) == names
    nvidia = [found for name, found in fields.items() if name != "mi300x.txtpb"]
    assert all(found == nvidia[0] for found in nvidia)


def test_an_environment_has_the_plugin_of_its_release():
    assert Placement(NEWEST).requirements() == ()
    tpu = Placement(NEWEST, "tpu", Mode.COMPILE, target("tpu=v5e"))
    assert tpu.requirements() == ("libtpu==0.0.50.1",)
    later = msgspec.structs.replace(NEWEST, jaxlib="0.13.0.dev20261120", jax="0.13.0.dev20261120")
    assert dataclasses.replace(tpu, reader=later).requirements() == ("jax[tpu]==0.13.0.dev20261120",)
    cuda = Placement(release("0.10.1"), "cuda", Mode.COMPILE, target("cuda=cuda12"))
    assert cuda.requirements() == ("jax-cuda12-plugin==0.10.1", "jax-cuda12-pjrt==0.10.1"), "of the jaxlib, not the jax"
    assert cuda.name == "cuda12"
    runs = dataclasses.replace(cuda, mode=Mode.RUN)
    assert runs.requirements()[0] == "jax-cuda12-plugin[with-cuda]==0.10.1"
    assert runs.name == "cuda12-run"


def test_only_running_cells_get_the_variables_of_their_platform(monkeypatch):
    monkeypatch.setenv("TPU_NAME", "mine")
    compiles = cell_variables(Placement(NEWEST, "tpu", Mode.COMPILE, target("tpu=v5e")))
    assert compiles["JAX_PLATFORMS"] == "cpu"
    assert "TPU_NAME" not in compiles
    runs = cell_variables(Placement(NEWEST, "tpu", Mode.RUN, target("tpu=v5e")))
    assert (runs["JAX_PLATFORMS"], runs["TPU_NAME"]) == ("tpu,cpu", "mine")
    cuda = cell_variables(Placement(NEWEST, "cuda", Mode.RUN, target("cuda=h100")))
    assert cuda["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


def plan(*goldens, **selection):
    return make_plan(goldens, load_calendar(), Windows(), Selection(readers="0.12.0.1", **selection), day("2026-11-21"))


def test_only_cells_that_run_on_an_accelerator_share_the_device():
    tpu = Placement(NEWEST, "tpu", Mode.COMPILE, target("tpu=v5e"))
    runs = dataclasses.replace(tpu, mode=Mode.RUN)
    assert [each.shares_device for each in (Placement(NEWEST), tpu, runs)] == [False, False, True]


def test_goldens_are_planned_only_on_platforms_they_were_exported_for():
    both, tpu = (golden(name, options=Options(platforms=on)) for name, on in (("a", ("cpu", "tpu")), ("b", ("tpu",))))
    made = plan(both, tpu, platforms=("cpu", "tpu:compile"), targets=("tpu=v6e",))
    assert [(cell.golden.manifest.case, cell.platform, cell.mode, str(cell.target)) for cell in made.cells] == [
        ("a", "cpu", "run", "None"),
        ("a", "tpu", "compile", "libtpu/v6e"),
        ("b", "tpu", "compile", "libtpu/v6e"),
    ]
    assert made.unexported == {"cpu": 1, "tpu": 0}
    assert made.without_cells == ""


def test_goldens_without_a_cell_are_reported():
    both = (golden(name, options=Options(platforms=on)) for name, on in (("a", ("cpu",)), ("b", ("tpu", "cuda"))))
    made = plan(*both)
    message = "1 golden has no cell on the platforms asked for (exported for cuda, tpu): this run does not test it."
    assert made.without_cells == message
    screen = io.StringIO()
    print_plan(Console(file=screen, width=200), made)
    assert message in screen.getvalue().splitlines()
    judged = [result(case="a", writer="0.12.0.1", reader="0.12.0.1")]
    facts = {"as_of": made.as_of, "selection": {"whole": True}, "without_cells": made.without_cells}
    summary = summarize(judged, planned=1, policy=Policy(), seconds=0, **facts)
    assert summary.exit_code == 0
    assert [(each.title, each.text) for each in document(judged, summary).findings] == [("NOT COVERED", message)]


def test_missing_hardware_means_compiling_only():
    for platform in ("cuda", "rocm", "tpu"):
        lack = missing_hardware(platform)
        assert resolve_mode(Mode.AUTO, platform) is (Mode.COMPILE if lack else Mode.RUN)
        assert resolve_mode(Mode.RUN, platform) is Mode.RUN
    assert missing_hardware("cpu") == ""


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        ("import os; os.kill(os.getpid(), 11)", "its driver ended the process that asked, with status -11"),
        ("import time; time.sleep(60)", "its driver has not answered for 0 s"),
    ],
)
def test_a_driver_that_crashes_or_hangs_counts_as_missing(monkeypatch, probe, message):
    monkeypatch.setattr(hardware_module, "_PROBE", probe)
    monkeypatch.setattr(hardware_module, "ANSWER_SECONDS", 0.4 if "sleep" in probe else 30)
    assert hardware_module.missing_hardware.__wrapped__("cuda") == message


def test_no_environment_is_built_for_missing_hardware(goldens):
    platform = next((name for name in ("rocm", "tpu", "cuda") if missing_hardware(name)), "")
    if not platform:
        pytest.skip("this machine has everything")

    def never(*_):
        raise AssertionError("an environment was built")

    cell = Cell(goldens["both"], NEWEST, platform, Mode.RUN, parse_targets(())[platform])
    ((_, outcome),) = replayed([cell], never)
    assert (outcome.verdict, outcome.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
    assert outcome.message.startswith(f"{platform} cannot run here: {missing_hardware(platform)}")
    assert f"--platforms {platform}:compile" in outcome.message


def test_a_cell_is_not_run_without_the_plugin_of_its_platform(goldens, here):
    cell = Cell(goldens["both"], here, "tpu", Mode.COMPILE, parse_targets(())["tpu"])
    ((_, outcome),) = replayed([cell], this_interpreter)
    if outcome.verdict is Verdict.COMPILED:
        pytest.skip("this interpreter has libtpu")
    assert (outcome.verdict, outcome.stage) == (Verdict.NOT_RUN, Stage.ENVIRONMENT)
    message = f"jaxlib {here.jaxlib} has no tpu here: RuntimeError: JAX TPU support not installed"
    assert outcome.message.startswith(message)


def test_whether_an_error_means_a_missing_driver_depends_on_the_release():
    message = "JaxRuntimeError: INTERNAL: cuSolver internal error"
    assert find_driver_need("cuda", "compile", message, day("2026-03-18"))
    assert not find_driver_need("cuda", "compile", message, day("2026-04-16")), "0.10.0 compiles it"
    assert not find_driver_need("tpu", "compile", message, day("2026-03-18"))
    memories = (
        "ValueError: Could not find memory addressable by device NVIDIA H100 80GB HBM3. "
        "Device NVIDIA H100 80GB HBM3 can address the following memory kinds: %s. Got memory kind: device"
    )
    assert find_driver_need("cuda", "compile", memories % "", day("2026-01-28"))
    assert not find_driver_need("cuda", "compile", memories % "", day("2026-02-28")), "0.9.1 does not ask"
    assert not find_driver_need("cuda", "compile", memories % "pinned_host", day("2026-01-28")), "it has memories"
    assert all(entry.meaning and re.compile(entry.message) for entry in load_driver_needs())
