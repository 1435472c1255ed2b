"""A comparison that was wrong is corrected in the test or in the policy, and no golden is written again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from export_core.goldens import GoldenStore
from export_core.goldens.arrays import from_npz, leaf_of, to_npz
from export_core.goldens.manifest_file import dump_manifest
from export_core.goldens.store import MANIFEST, OUTPUTS, sha256

if TYPE_CHECKING:
    from conftest import Project, Projects

TEST = """
import jax, jax.numpy as jnp, pytest

@pytest.mark.export_compat(MARKED)
def test_wave(export_golden):
    export_golden(jax.jit(jnp.sin), jnp.arange(1.0, 5.0))
"""
CASE = "test_a.test_wave"
POLICY = "export_compat.yaml"


@pytest.fixture(scope="module")
def written(projects: Projects) -> Project:
    """Two generations whose outputs are 1e-3 off, far more than the default allows."""
    project = projects(noise=True, test_a=TEST.replace("MARKED", ""))
    assert project.pytest("--update-goldens").code == 0
    project.add_older_generation(CASE)
    for golden in GoldenStore(project.goldens).generations(CASE):
        other = to_npz([leaf_of(leaf.numpy() + np.float32(1e-3)) for leaf in from_npz(golden.folder / OUTPUTS)])
        (golden.folder / OUTPUTS).write_bytes(other)
        files = {**golden.manifest.files, OUTPUTS: sha256(other)}
        (golden.folder / MANIFEST).write_bytes(dump_manifest(msgspec.structs.replace(golden.manifest, files=files)))
    return project


@pytest.fixture
def project(written: Project, tmp_path) -> Project:
    return written.copy(tmp_path / "project")


def mark(project: Project, keywords: str) -> None:
    project.write(test_a=TEST.replace("MARKED", keywords))


def test_the_marker_corrects_both_generations(project: Project) -> None:
    assert "allowed 8 times the noise of each" in project.pytest()["test_wave"].text
    mark(project, "atol=1e-2")
    stored = project.stored()
    checked = project.pytest()
    assert (checked.code, project.stored()) == (0, stored), checked.text
    assert "1 case checked against 2 goldens: 2 kept" in checked.text


def test_the_summary_has_the_policy_that_a_matrix_lacks(project: Project) -> None:
    mark(project, "atol=1e-2, rtol={'float32': 1e-4}")
    checked = project.pytest()
    (line,) = re.findall(r"1 case compared as the marker .*unless the policy has: (.*)", checked.text)
    assert line == f"numbers: [{{cases: [{CASE}], rtol: {{float32: 0.0001}}, atol: 0.01, reason: TODO}}]"
    (project.folder / POLICY).write_text(line.replace("TODO", "measured"))
    checked = project.pytest()
    assert (checked.code, "compared as the marker" in checked.text) == (0, False), checked.text


def test_a_marker_as_the_goldens_recorded_is_not_mentioned(project: Project) -> None:
    (project.folder / POLICY).write_text(f"numbers: [{{cases: [{CASE}], atol: 0.01, reason: measured}}]")
    checked = project.pytest()
    assert (checked.code, "compared as the marker" in checked.text) == (0, False), checked.text


def test_a_test_is_over_the_budget_of_its_marker(project: Project) -> None:
    mark(project, "compare='shape', budgets={'max_output_bytes': 15}")
    failure = project.pytest()["test_wave"].text
    assert "OVER BUDGET: test_a.test_wave" in failure
    assert "budgets    output_bytes 16, more than 15 (max_output_bytes, marker)" in failure


def test_a_stricter_rule_outranks_the_marker_and_is_named(project: Project) -> None:
    mark(project, "atol=1e-2")
    (project.folder / POLICY).write_text(f"\nnumbers:\n  - {{cases: [{CASE}], rtol: 1.0e-6, reason: measured}}")
    told = project.pytest()["test_wave"]
    assert told.outcome == "failed"
    assert f"allowed rtol 1e-06, atol 9.1e-07 ({POLICY}:3)" in told.text


def test_a_rule_for_one_writer_leaves_the_other_to_the_marker(project: Project) -> None:
    mark(project, "atol=1e-2")
    older = min(
        (golden.manifest.writer for golden in GoldenStore(project.goldens).goldens()), key=lambda one: one.built
    )
    (project.folder / POLICY).write_text(
        f"numbers: [{{cases: ['*'], writers: ['{older.jaxlib}'], compare: exact, reason: measured}}]"
    )
    told = project.pytest()["test_wave"]
    assert f"allowed equal bits ({POLICY}:1)" in told.text
    assert told.text.count("BROKEN PROMISE") == told.text.count(f"with jaxlib {older.jaxlib} ") == 1


@pytest.mark.parametrize(
    ("keywords", "words", "named"),
    [
        ("rtol=1e-6", (), "rtol 1e-06, atol 9.1e-07 (marker)"),
        ("", ("--export-rtol", "1e-6"), "rtol 1e-06, atol 9.1e-07 (export_rtol)"),
        ("ulp=3", ("--export-rtol", "1"), "3 ulp (marker)"),
        ("compare='exact'", (), "equal bits (marker)"),
    ],
)
def test_what_set_the_tolerance_is_named(project: Project, keywords: str, words: tuple[str, ...], named: str) -> None:
    mark(project, keywords)
    assert f"allowed {named}" in project.pytest(*words)["test_wave"].text


CHAOS = """
import jax, jax.numpy as jnp, pytest

@pytest.mark.export_compat
def test_chaos(export_golden):
    step = lambda i, x: 3.9 * x * (1 - x)
    export_golden(jax.jit(lambda x: jax.lax.fori_loop(0, 100, step, x)), jnp.linspace(0.1, 0.9))
"""


def test_a_rule_accepts_a_new_golden_whose_numbers_prove_nothing(projects: Projects) -> None:
    project = projects(noise=True, test_a=CHAOS)
    assert "nothing was stored" in project.pytest("--update-goldens")["test_chaos"].text
    (project.folder / POLICY).write_text("numbers: [{cases: ['*'], compare: shape, reason: chaotic}]")
    assert (project.pytest("--update-goldens").code, project.pytest().code) == (0, 0)
