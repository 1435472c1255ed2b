"""The use case "run a matrix": the reproduce command, options of the command line, and failing observers."""

import dataclasses
import itertools
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from making import NEWEST, day, golden, manifest, release, write_golden

from export_core.base.errors import ExportCompatError
from export_core.cli.matrix import matrix
from export_core.goldens import GoldenStore, Options
from export_core.matrix import Cell, Plan, Selection, Verdict, replay
from export_core.matrix.reproduce_command import reproduce_command
from export_core.policy import Policy, load_policy, run_options
from export_core.policy.run_options import DEFAULTS, GIB, OPTIONS, RunOptions, Shard, option_words, read_options
from export_core.readers.placement import Mode
from export_core.releases import load_calendar
from export_core.releases.runtimes import runtime_readers
from export_core.run import read_run
from export_core.run.session import Observer, failing_softly, run_matrix

CELL = Cell(golden("t.test_f[a b;$(rm)]", "0.9.2"), release("0.10.2"), "cpu", promised=True)


def reproduced(options: RunOptions, cell: Cell = CELL, **selection: object) -> list[str]:
    plan = Plan((cell,), day("2026-11-22"), load_calendar(), Selection(**selection))
    return shlex.split(reproduce_command(plan, cell, run_options.reproduce_options(plan.selection, options)))


def test_a_reproduce_command_runs_one_cell_into_another_folder():
    assert reproduced(RunOptions()) == [
        "jaxexport", "matrix", "--cases", "t.test_f[a b;$(rm)]", "--writers", "0.9.2", "--readers", "0.10.2",
        "--platforms", "cpu", "--no-cache", "--results", ".jaxexport/reproduced",
    ]  # fmt: skip


def test_reproduce_commands_have_unpromised_only_outside_the_window():
    outside = dataclasses.replace(CELL, promised=False)
    assert ("--unpromised", "reproduced") in itertools.pairwise(reproduced(RunOptions(), outside))
    assert "--unpromised" not in reproduced(RunOptions(), dataclasses.replace(outside, deployed=("serving",)))


def test_reproduce_commands_of_runtimes_accept_unpromised_cells():
    """A cell inside the window of pjrt turns out not to be promised if pjrt refuses what its promise excludes."""
    (reader,) = runtime_readers("pjrt", load_calendar())
    of_pjrt = dataclasses.replace(CELL, reader=reader)
    assert ("--unpromised", "reproduced") in itertools.pairwise(reproduced(RunOptions(), of_pjrt))
    assert "--unpromised" not in reproduced(RunOptions(), dataclasses.replace(of_pjrt, deployed=("serving",)))


def test_reproduce_commands_set_openblas_variable_mode_and_folder(monkeypatch):
    compiled = dataclasses.replace(CELL, platform="tpu", mode=Mode.COMPILE)
    assert "tpu:compile" in reproduced(RunOptions(), compiled)
    own = RunOptions(results=Path(".jaxexport/reproduced"))
    assert reproduced(own) == reproduced(RunOptions()), "a reproduction prints the command that made it"
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Has well")
    assert reproduced(RunOptions())[:3] == ["OPENBLAS_CORETYPE=Has well", "jaxexport", "matrix"]


def test_reproduce_commands_have_values_of_flags_not_of_secrets(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2 --xla_x='$(rm)'")
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    for name in ("SCALE_LIBRARY", "JAX_ACCESS_TOKEN", "JAX_NOT_NAMED"):
        monkeypatch.setenv(name, "s3cret")
    added = ("XLA_FLAGS", "JAX_ENABLE_X64", "JAX_ACCESS_TOKEN", "SCALE_LIBRARY", "NOT_SET")
    plan = Plan((CELL,), day("2026-11-22"), load_calendar(), Selection())
    command = reproduce_command(plan, CELL, [], added)
    assert shlex.split(command)[:5] == [
        "JAX_ACCESS_TOKEN=${JAX_ACCESS_TOKEN?}", "JAX_ENABLE_X64=1", "SCALE_LIBRARY=${SCALE_LIBRARY?}",
        "XLA_FLAGS=--xla_cpu_max_isa=SSE4_2 --xla_x='$(rm)'", "jaxexport",
    ]  # fmt: skip
    assert "s3cret" not in command
    assert "NOT_SET" not in command
    shell = ["bash", "-c", command.partition("jaxexport")[0] + "env"]
    variables = subprocess.run(shell, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"XLA_FLAGS=--xla_cpu_max_isa=SSE4_2 --xla_x='$(rm)'", "SCALE_LIBRARY=s3cret"} <= {*variables}
    monkeypatch.delenv("SCALE_LIBRARY")
    assert "SCALE_LIBRARY" in subprocess.run(shell, capture_output=True, text=True, check=False).stderr


def test_reproduce_commands_have_only_flags_the_policy_passes(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2")
    assert reproduced(RunOptions())[0] == "jaxexport"


def test_reproduce_commands_have_every_option_that_affects_a_verdict():
    options = RunOptions(
        *(Path("my goldens"), "strict.yaml", day("2026-10-25"), 0.5, GIB // 2),
        results=Path("my results"),
        executor="dask:tcp://127.0.0.1:8786",
    )
    words = reproduced(options, targets=("tpu=v6e",), wheels=("dist",), indexes=("https://me:secret@host/simple",))
    pairs = dict(itertools.pairwise(words))
    chosen = {"--cases", "--writers", "--readers", "--no-cache"}
    assert {name: pairs[name] for name in pairs.keys() - chosen if name.startswith("--")} == {
        "--platforms": "cpu",
        "--target": "tpu=v6e",
        "--wheels": "dist",
        "--index": "https://host/simple",
        "--goldens": "my goldens",
        "--policy": "strict.yaml",
        "--as-of": "2026-10-25",
        "--executor": "dask:tcp://127.0.0.1:8786",
        "--timeout": "0.5",
        "--memory": "0.5",
        "--results": ".jaxexport/reproduced",
    }


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(RunOptions)])
def test_each_option_is_in_reproduce_commands_or_listed_harmless(field):
    """A new option must be added to one of the two lists."""
    harmless = {"results", "shard", "jobs", "device_jobs", "resume", "cache", "dump_ir", "convert"}
    others = {
        "results": Path("r"), "goldens": Path("g"), "policy_file": "p", "as_of": day("2026-01-02"),
        "shard": Shard(1, 2),
        "executor": "dask:tcp://h:1", "jobs": 7, "device_jobs": 3, "timeout": 7.0, "memory": GIB, "resume": True,
        "cache": False, "dump_ir": Path("d"), "repeat": 7, "convert": True,
    }  # fmt: skip
    assert field in others, f"write a value here that is not the default of {field}"
    words = option_words(dataclasses.replace(RunOptions(), **{field: others[field]}))
    assert (words == option_words(RunOptions())) == (field in harmless)


def test_options_written_as_a_command_are_parsed_back_the_same():
    selection = Selection(
        *("0.9.2,all", ("cpu", "cuda:run"), ("t.f[a b]", "t.g"), ("0.9.1", "0.9.2"), "0.10.2", ("w 1", "w2")),
        *(("https://host/simple",), ("tpu=v6e", "cuda=a100"), "backward"),
    )
    run = RunOptions(
        *(Path("my goldens"), "strict.yaml", day("2026-10-25"), 0.5, GIB // 2, 3), executor="dask:tcp://127.0.0.1:8786"
    )
    values = matrix.make_context("matrix", option_words(selection, run, plan=True)).params
    assert (read_options(Selection, values), read_options(RunOptions, values)) == (selection, run)


def test_a_plan_command_always_names_readers_and_platforms():
    assert option_words(Selection().or_else(), RunOptions(), plan=True) == ["--readers", "window", "--platforms", "cpu"]


def test_the_matrix_command_has_every_declared_option():
    reports = {"html", "markdown", "junit", "svg", "sarif"}
    own = {"named_cases", "unpromised", "fail_on", *reports, "dry_run", "as_json", "form", "quiet"}
    assert {parameter.name for parameter in matrix.params} - own == OPTIONS.keys()


def test_command_line_values_become_fields_of_the_options():
    words = "--memory 0.5 --shard 2/3 --cases a --cases b --writers 1,2 --no-cache --as-of 2026-10-25 --results r"
    values = matrix.make_context("matrix", words.split()).params
    run, selection = read_options(RunOptions, values), read_options(Selection, values)
    assert (run.memory, run.shard, run.cache, run.as_of) == (GIB // 2, Shard(2, 3), False, day("2026-10-25"))
    assert (run.results, run.timeout, run.jobs) == (Path("r"), 120.0, None)
    assert (selection.cases, selection.writers, selection.wheels) == (("a", "b"), ("1", "2"), ())


def test_a_cell_not_run_for_lack_of_hardware_has_a_forecast(tmp_path, monkeypatch):
    monkeypatch.setattr(replay, "missing_hardware", lambda platform: "there is none")
    made = manifest(options=Options(platforms=("cpu", "cuda")))
    one = write_golden(GoldenStore(tmp_path), made)  # the artifact is for the CPU alone
    chosen = Selection(readers=NEWEST, platforms=("cuda:run",))
    (result,) = run_matrix(Policy(), chosen, RunOptions(results=None, cache=False), goldens=[one]).results
    assert (result.verdict, result.foreseen) == (Verdict.NOT_RUN, "refused: it was exported for cpu")


POLICY = """
readers: ["0.11.2"]
platforms: {cuda: run}
deployed: [{name: server, jaxlib: "0.12.0.1", platform: cuda}]
"""


def test_a_script_runs_the_cells_that_the_command_runs(cwd, monkeypatch, jaxexport):
    monkeypatch.setattr(replay, "missing_hardware", lambda platform: "there is none")
    name = "golden/tests.compat.test_platforms.test_every_platform/0.12.0.1-cpu"
    shutil.copytree(Path(__file__).parents[2] / name, cwd / name)
    (cwd / "export_compat.yaml").write_text(POLICY)
    jaxexport("matrix", "--results", "command", code=3)
    policy = load_policy(Path("export_compat.yaml"))
    returned = run_matrix(policy, Selection(), RunOptions(results=Path("script")))
    command, script = read_run(Path("command")), read_run(Path("script"))
    assert script.summary == returned.summary
    assert script.results == returned.results
    assert {(result.reader.jaxlib, result.platform) for result in script.results} == {
        ("0.11.2", "cuda"),
        ("0.12.0.1", "cuda"),
    }
    assert [result.key for result in script.results] == [result.key for result in command.results]
    assert script.summary.selection == command.summary.selection
    # What a script gives counts, whatever the policy says.
    chosen = Selection(readers="newest", platforms=("cuda",))
    (result,) = run_matrix(policy, chosen, RunOptions(results=None)).results
    assert result.reader.jaxlib == load_calendar().newest()


def test_the_script_of_the_manual_runs_a_shard(cwd, monkeypatch, capsys):
    root = Path(__file__).parents[2]
    monkeypatch.setattr(replay, "missing_hardware", lambda platform: "there is none")
    name = "golden/tests.compat.test_platforms.test_every_platform/0.12.0.1-cpu"
    shutil.copytree(root / name, cwd / name)
    (cwd / "export_compat.yaml").write_text("platforms: {cuda: run, rocm: run, tpu: run}\n")
    page = (root / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    (script,) = (code for code in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S) if "Shard(1, 3)" in code)
    exec(compile(script, "api.md", "exec"), {})
    assert capsys.readouterr().out == "3\n"
    summary = read_run(Path(".jaxexport")).summary
    assert (summary.shard, summary.planned) == (Shard(1, 3), 1)


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (RunOptions, {"memory": 8}, "0 for no limit, or 0.0625 GiB or more, in bytes: 8 GiB are 8 * 2**30"),
        (RunOptions, {"timeout": 0}, "0.1 or more"),
        (RunOptions, {"timeout": float("nan")}, "0.1 or more"),
        (RunOptions, {"jobs": 0}, "1 or more"),
        (RunOptions, {"jobs": True}, "int or None"),
        (RunOptions, {"repeat": -1}, "0 or more"),
        (RunOptions, {"as_of": "2026-10-25"}, "date or None"),
        (RunOptions, {"goldens": 7}, "Path or None"),
        (Selection, {"readers": ["0.9.2", "newest"]}, "one text, such as '0.9.2,newest'"),
        (Selection, {"platforms": "cpu"}, "a tuple of texts"),
        (Selection, {"only": "promise"}, "promised or backward"),
    ],
)
def test_options_of_a_script_have_the_limits_of_the_command(kind, given, expected):
    ((name, value),) = given.items()
    message = f"{kind.__name__}: {name}={value!r}: expected {expected}."
    with pytest.raises(ExportCompatError, match=f"^{re.escape(message)}$"):
        kind(**given)


def test_every_numeric_option_of_a_run_has_limits():
    numbers = {name for name, option in OPTIONS.items() if option.kind in (int, float)}
    assert {"timeout", "memory", "jobs", "device_jobs", "repeat"} <= numbers
    for name in numbers:
        with pytest.raises(ExportCompatError, match=f"RunOptions: {name}=-1: expected "):
            RunOptions(**{name: -1})


def test_a_script_may_give_strings_for_paths_and_lists_for_tuples():
    assert RunOptions(results="r", policy_file=Path("p")) == RunOptions(results=Path("r"), policy_file="p")
    assert Selection(platforms=["cpu"], wheels=[Path("w")]) == Selection(platforms=("cpu",), wheels=("w",))


def test_an_option_that_the_policy_can_set_has_no_default():
    """Otherwise a script that leaves it out would ask for that default, and the command for the policy's."""
    of_policy = [name for name, option in OPTIONS.items() if option.of_policy]
    assert {"readers", "platforms"} <= {*of_policy}
    assert [name for name in of_policy if DEFAULTS[name]] == []


@pytest.mark.parametrize("option", ["--readers", "--platforms"])
def test_an_empty_option_is_an_error_and_not_the_policys_value(jaxexport, cwd, option):
    assert f"{option}: expected " in jaxexport("matrix", option, "", code=2).err


def test_a_failing_observer_callback_is_noted_once_and_dropped():
    noted: list[str] = []

    def fails(*_: object) -> None:
        raise KeyError("pjrt==0.12.0.1")

    soft = failing_softly(Observer(result=fails, ended=fails, note=noted.append))
    for name in ("result", "result", "ended", "planned"):
        getattr(soft, name)(None, None)
    where = f"{__file__}:{fails.__code__.co_firstlineno + 1}"
    assert noted == [
        f"the observer's callback {name} failed ({where}), and is not called again: KeyError: 'pjrt==0.12.0.1'. "
        "The results of the run are not affected."
        for name in ("result", "ended")
    ]


@pytest.mark.parametrize("notes", [{}, {"note": lambda text: 1 / 0}])
def test_a_failing_observer_is_logged_if_its_note_callback_fails(notes, caplog):
    soft = failing_softly(Observer(result=lambda result: result.no_such_name, **notes))
    for _ in range(3):
        soft.result(None)
        soft.note("a line")
    logged = [record.getMessage().partition(" failed")[0] for record in caplog.records]
    assert logged == [f"the observer's callback {name}" for name in (*notes, "result")]
    assert all(record.levelname == "WARNING" and f"{__file__}:" in record.getMessage() for record in caplog.records)


def test_a_run_gives_results_though_its_observer_raises(tmp_path, monkeypatch):
    called: list[str] = []

    def failing(name: str):
        def fails(*_: object) -> None:
            called.append(name)
            raise KeyError(name)

        return fails

    monkeypatch.setattr(replay, "missing_hardware", lambda platform: "there is none")
    one = write_golden(GoldenStore(tmp_path), manifest(options=Options(platforms=("cpu", "cuda"))))
    chosen = Selection(readers=NEWEST, platforms=("cuda:run",))
    observer = Observer(**{of.name: failing(of.name) for of in dataclasses.fields(Observer) if of.name != "silence"})
    run = run_matrix(Policy(), chosen, RunOptions(results=None, cache=False), goldens=[one], observer=observer)
    assert [result.verdict for result in run.results] == [Verdict.NOT_RUN]
    assert {"planned", "started", "result", "note", "ended"} <= {*called}
