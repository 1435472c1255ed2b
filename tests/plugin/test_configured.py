"""A project with settings: x64 in its conftest, a policy file, an ini file, custom calls that it allows.

The command that pytest prints for a failed cell names goldens and policy if `jaxexport` would find others.
"""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from projects import Projects

from export_core.policy import Policy
from pytest_jaxexport.replayer import Replayer, run_options
from pytest_jaxexport.settings import Settings
from pytest_jaxexport.summary import summary_lines

CONFTEST = """
import jax
jax.config.update("jax_enable_x64", True)
"""

TESTS = """
import os, jax, jax.numpy as jnp, numpy as np, pytest

X = np.linspace(0.1, 1.0, 9).reshape(3, 3)

@pytest.mark.export_compat(rtol=1e-6, platforms=["cpu"])
def test_marked(export_golden):
    export_golden(jax.jit(jnp.sin), X)

@pytest.mark.export_compat
def test_bare(export_golden):
    export_golden(jax.jit(jnp.sin if "OTHER_BARE" in os.environ else jnp.cos), X)

@pytest.mark.export_compat(platforms=["cpu"], compare="exact", allow={"lapack_dgeqp3_ffi": "pinned by LAPACK's manual"})
def test_pivoted(export_golden):
    export_golden(jax.jit(lambda x: jax.scipy.linalg.qr(x, pivoting=True)), X)
"""

POLICY = """
goldens: of_policy
rtol: 0.1
atol: 0.001
platforms: [cpu, tpu]
allow: {of_the_policy: we ship this library ourselves}
deployed:
  - {name: serving, reader: tensorflow==2.21.0, cases: ["*.test_bare"]}
  - {name: old, jaxlib: 0.9.2, cases: ["*.test_marked", "*.test_bare"]}
  - {name: ended, jaxlib: 0.10.2, until: 2026-10-01}
  - {name: gpu, jaxlib: 0.11.0, platform: tpu}
"""

INI = """
export_rtol = 0.2
export_platforms = cpu cuda
export_module_text = no
"""


@pytest.fixture(scope="module")
def configured(projects: Projects) -> SimpleNamespace:
    """A project with settings in its policy, in pytest.ini and on the command line, and its two runs.

    `written` writes the goldens, `checked` checks them, and in `failed` one test exports something else.
    """
    project = projects(conftest=CONFTEST, test_a=TESTS)
    (project.folder / "export_compat.yaml").write_text(POLICY)
    with (project.folder / "pytest.ini").open("a") as ini:
        ini.write(INI)
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = ("-p", "pytest_jaxexport.plugin", "--export-rtol", "0.3")
    written = project.pytest(*words, "--update-goldens", environment=alone)
    checked = project.pytest(*words, environment=alone)
    failed = project.pytest(*words, environment={**alone, "OTHER_BARE": "1"})
    return SimpleNamespace(project=project, written=written, checked=checked, failed=failed)


def test_the_plugin_works_without_autoload(configured):
    assert (configured.written.code, configured.checked.code) == (0, 0), configured.checked.text
    assert "3 goldens new" in configured.written.text


def test_the_header_names_the_policys_golden_folder(configured):
    folder = configured.project.folder / "of_policy"
    assert f"updating goldens in {folder}" in configured.written.text
    assert f"goldens: {folder}" in configured.checked.text
    assert len(list(folder.iterdir())) == 3
    assert not (configured.project.folder / "golden").exists()


def test_a_golden_records_the_markers_value_before_the_policys(configured):
    marked, bare = (
        configured.project.manifest(case, "of_policy") for case in ("test_a.test_marked", "test_a.test_bare")
    )
    assert [marked["comparison"]["rtol"], bare["comparison"]["rtol"]] == [1e-6, 0.3]
    assert [marked["comparison"]["atol"], bare["comparison"]["atol"]] == [0.001, 0.001]
    assert [marked["options"]["platforms"], bare["options"]["platforms"]] == [["cpu"], ["cpu", "cuda"]]


def test_an_option_of_the_ini_file_leaves_out_module_mlir(configured):
    names = {path.name for path in configured.project.folder.glob("of_policy/*/*/*")}
    assert "module.mlir" not in names
    assert {"golden.yaml", "artifact.jaxexport", "jaxpr.txt"} < names


def test_x64_set_by_a_conftest_is_used_and_recorded(configured):
    manifest = configured.project.manifest("test_a.test_marked", "of_policy")
    assert manifest["flags"]["jax_enable_x64"] is True
    assert manifest["signature"]["inputs"] == ["float64[3,3]"]


def test_a_golden_of_x64_is_replayed_in_x64(configured):
    assert "3 cases checked against 3 goldens: 3 kept" in configured.checked.text


@pytest.mark.parametrize("run", ["checked", "failed"])
def test_the_summary_counts_cases_deployed_in_other_releases(run, configured):
    ended = getattr(configured, run)
    assert ended.code == (run == "failed")
    deployed = r"2 cases deployed in jaxlib 0\.9\.2, 1 in tensorflow 2\.21\.0: `(.*)` tests them there"
    (line,) = re.findall(deployed, ended.text)
    assert line.startswith("jaxexport matrix --readers deployed")


def test_an_allowed_call_is_stored_with_its_reason(configured):
    manifest = configured.project.manifest("test_a.test_pivoted", "of_policy")
    assert "lapack_dgeqp3_ffi" in manifest["custom_calls"]
    assert manifest["options"]["allow"] == {"lapack_dgeqp3_ffi": "pinned by LAPACK's manual"}


def settings(root: Path, directory: Path, goldens: str = "golden", policy: str | None = None) -> Settings:
    file = root / policy if policy else None
    return Settings(root / goldens, "", Policy(), None, None, None, policy_file=file, directory=directory)


def test_a_printed_command_names_no_path_if_run_in_the_root(tmp_path):
    (tmp_path / "export_compat.yaml").write_text("readers: window")
    options = run_options(settings(tmp_path, tmp_path, policy="export_compat.yaml"))
    assert (options.goldens, options.policy_file, options.results) == (None, None, None)


@pytest.mark.parametrize(("goldens", "policy"), [("golden", "export_compat.yaml"), ("other/goldens", "strict.yaml")])
def test_a_printed_command_has_relative_paths_in_a_subfolder(tmp_path, goldens, policy):
    (tmp_path / policy).write_text("readers: window")
    (tmp_path / "tests").mkdir()
    options = run_options(settings(tmp_path, tmp_path / "tests", goldens, policy))
    assert (options.goldens, options.policy_file) == (Path("..") / goldens, f"../{policy}")


CHOSEN = ["-k", "f or g"]  # The words that chose the tests of a run.
OPTIONS = ["--export-policy=other policy.yaml", "--goldens=g"]
UPDATE = "pytest --update-goldens '--export-policy=other policy.yaml' --goldens=g"


def checked(case: str = "t.f") -> Any:
    """Build the plugin's record of a test that was checked with other inputs, and has no golden by this writer."""
    return {
        "case": case,
        "test": f"t.py::{case[2:]}",
        "writer": "0.9.2-cpu",
        "unmeasured": 0,
        "measure": "",
        "judgements": {"kept": 1},
        "shown": [],
        "changed": "",
        "other_inputs": ["args[0]"],
        "other_generations": [],
        "compared_by_outputs": False,
        "undecided": [],
        "own": False,
        "stored": 0,
        "elsewhere": 0,
        "without_outputs": 0,
        "corrected": None,
    }


def test_each_command_in_the_summary_names_the_tests_it_concerns():
    """A command repeats the policy and the goldens of the run."""
    text = "\n".join(summary_lines([checked("t.f"), checked("t.g[a b]")], repeated=OPTIONS, selected=CHOSEN))
    assert f"yet of t.f, t.g[a b]: {UPDATE} t.py::f 't.py::g[a b]' adds it" in text
    assert (
        f"t.f: example arguments are not the golden's inputs, which were compared: args[0]. {UPDATE} t.py::f " in text
    )
    assert f"{UPDATE} 't.py::g[a b]' stores the new ones" in text


def test_a_command_for_many_tests_repeats_the_selection_of_the_run():
    text = "\n".join(summary_lines([checked(f"t.f{n}") for n in range(4)], repeated=OPTIONS, selected=CHOSEN))
    assert f"yet of t.f0, t.f1, t.f2 and 1 more: {UPDATE} -k 'f or g' adds it" in text


def test_a_printed_jaxexport_command_names_the_policy_of_the_run(tmp_path):
    replayer = SimpleNamespace(_options=run_options(settings(tmp_path, tmp_path, policy="other.yaml")))
    command = Replayer.command(replayer, "matrix", "--readers", "deployed")
    assert command == ["jaxexport", "matrix", "--readers", "deployed", "--policy", "other.yaml"]
