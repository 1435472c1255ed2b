"""A comparison that was wrong is corrected in the test or in the policy, and no golden is written again."""

import re
from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs
from projects import Projects
from warm_pytest import WHOLE_NOISE

from export_core.goldens import GoldenStore
from export_core.goldens.arrays import from_npz, leaf_of, to_npz
from export_core.goldens.manifest_file import dump_manifest
from export_core.goldens.store import MANIFEST, OUTPUTS, sha256

TEST = """
@pytest.mark.export_compat({marked})
def test_{name}(export_golden):
    export_golden(jax.jit(jnp.sin), np.arange(1.0, 5.0))
"""
MARKED = {
    "plain": "",
    "rtol": "rtol=1e-6",
    "ulp": "ulp=3",
    "exact": "compare='exact'",
    "budget": "compare='shape', budgets={'max_output_bytes': 15}",
    "wide": "atol=1e-2, rtol={'float32': 1e-4}",
    "other": "atol=1e-2",
}
CHAOS = """
@pytest.mark.export_compat
def test_chaos(export_golden):
    step = lambda i, x: 3.9 * x * (1 - x)
    export_golden(jax.jit(lambda x: jax.lax.fori_loop(0, 100, step, x)), np.linspace(0.1, 0.9))
"""
POLICY = "export_compat.yaml"


def module_of(marked: Mapping[str, str]) -> str:
    """Return a module with a test for each name, whose marker has these words, and a test with chaotic numbers."""
    tests = [TEST.format(name=name, marked=words) for name, words in marked.items()]
    return "\n".join(["import jax, jax.numpy as jnp, numpy as np, pytest", *tests, CHAOS])


@pytest.fixture(scope="module")
def corrected(projects: Projects) -> SimpleNamespace:
    """Runs that check goldens by two writers, whose outputs are 1e-3 off and which were written before the markers."""
    project = projects(noise=WHOLE_NOISE, test_a=module_of({"plain": ""}))
    corrected = SimpleNamespace(project=project, written=project.pytest("--update-goldens"))
    project.add_older_generation("test_a.test_plain")
    for golden in GoldenStore(project.goldens).generations("test_a.test_plain"):
        other = to_npz([leaf_of(leaf.numpy() + np.float32(1e-3)) for leaf in from_npz(golden.folder / OUTPUTS)])
        files = {**golden.manifest.files, OUTPUTS: sha256(other)}
        (golden.folder / OUTPUTS).write_bytes(other)
        (golden.folder / MANIFEST).write_bytes(dump_manifest(structs.replace(golden.manifest, files=files)))
        for name in MARKED.keys() - {"plain"}:
            project.add_golden(golden, case=f"test_a.test_{name}", test=f"test_a.py::test_{name}", files=files)
    project.write(test_a=module_of(MARKED))
    corrected.before = project.stored()
    corrected.checked = project.pytest()
    corrected.checked_with_option = project.pytest("--export-rtol", "1e-6", "-k", "plain or ulp")
    writers = (golden.manifest.writer for golden in GoldenStore(project.goldens).goldens())
    corrected.older = min(writers, key=lambda writer: writer.built).jaxlib
    return corrected


def policy(corrected: SimpleNamespace, *rules: str) -> None:
    (corrected.project.folder / POLICY).write_text("\nnumbers:\n" + "\n".join(f"  - {{{rule}}}" for rule in rules))


def test_a_changed_marker_applies_to_goldens_of_both_writers(corrected):
    assert "allowed 4 times the noise of each" in corrected.checked["test_plain"].text
    assert corrected.checked["test_other"].outcome == "passed"
    assert corrected.before == corrected.project.stored()


def test_the_summary_prints_the_missing_policy_rule(corrected):
    checked = corrected.project.pytest("-k", "wide")
    assert "1 case checked against 2 goldens: 2 kept" in checked.text
    (line,) = re.findall(r"1 case compared by the marker .* add to the policy: (.*)", checked.text)
    assert line == "numbers: [{cases: [test_a.test_wide], rtol: {float32: 0.0001}, atol: 0.01, reason: TODO}]"
    rule = line.replace("TODO", "measured").removeprefix("numbers: [{").removesuffix("}]")
    # A rule for a marker, or a marker that says what its golden recorded, leaves nothing to mention.
    policy(corrected, rule, "cases: [test_a.test_plain], atol: 0.01, reason: measured")
    checked = corrected.project.pytest("-k", "wide or plain")
    assert (checked.code, "compared by the marker" in checked.text) == (0, False), checked.text


def test_a_test_whose_cost_exceeds_its_markers_budget_fails(corrected):
    failure = corrected.checked["test_budget"].text
    assert failure.startswith("OVER BUDGET: over a budget: output_bytes 16, more than 15")
    assert "test_a.test_budget, written by" in failure
    assert "budgets    output_bytes 16, more than 15 (max_output_bytes, marker)" in failure


def test_a_stricter_rule_of_the_policy_outranks_the_marker(corrected):
    policy(
        corrected,
        "cases: [test_a.test_wide], rtol: 1.0e-6, reason: measured",
        f"cases: ['*other'], writers: ['{corrected.older}'], compare: exact, reason: measured",
    )
    checked = corrected.project.pytest("-k", "wide or other")
    assert checked["test_wide"].outcome == "failed"
    assert f"allowed rtol 1e-06, atol 9.1e-07 ({POLICY}:3)" in checked["test_wide"].text
    # A rule for one writer leaves the other to the marker.
    report = checked["test_other"]
    assert f"allowed equal bits ({POLICY}:4)" in report.text
    assert report.text.count("BROKEN PROMISE") == report.text.count(f"with jaxlib {corrected.older} ") == 1


@pytest.mark.parametrize(
    ("test", "named"),
    [
        ("test_rtol", "rtol 1e-06, atol 9.1e-07 (marker)"),
        ("test_ulp", "3 ulp (marker)"),
        ("test_exact", "equal bits (marker)"),
    ],
)
def test_a_failure_names_the_marker_with_the_tolerance(corrected, test, named):
    assert f"allowed {named}" in corrected.checked[test].text


def test_a_failure_names_the_option_with_the_tolerance(corrected):
    assert "allowed rtol 1e-06, atol 9.1e-07 (export_rtol)" in corrected.checked_with_option["test_plain"].text
    assert "allowed 3 ulp (marker)" in corrected.checked_with_option["test_ulp"].text


def test_a_failure_by_the_marker_is_reproduced_with_pytest(corrected):
    again = re.compile(r"reproduce +(python -m )?pytest --no-export-cache test_a.py::test_(\w+)\n")
    decides = "The marker or an option of this run decides this. `jaxexport` commands use only the golden's rule"
    by_budget = corrected.checked["test_budget"].text
    assert again.findall(by_budget)[0][1] == "budget"
    assert "reproduce  jaxexport matrix" not in by_budget
    assert decides in by_budget
    policy(corrected, f"cases: ['*_other'], writers: ['{corrected.older}'], compare: exact, reason: measured")
    by_policy = corrected.project.pytest("-k", "other")["test_other"].text
    assert "reproduce  jaxexport matrix" in by_policy
    assert decides not in by_policy


def test_a_rule_with_compare_shape_accepts_chaotic_numbers(corrected):
    assert "nothing was stored" in corrected.written["test_chaos"].text
    policy(corrected, "cases: ['*chaos'], compare: shape, reason: chaotic")
    runs = [corrected.project.pytest("-k", "chaos", *words) for words in (["--update-goldens"], [])]
    assert [run.code for run in runs] == [0, 0]
