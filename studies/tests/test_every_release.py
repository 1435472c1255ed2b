"""Old and new releases as writers and readers, the old names of the export API, and the pages about both."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import making
import pytest

from export_core.goldens import GoldenStore
from export_core.matrix import Verdict
from export_core.policy import load_policy
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from studies.every_release import cross
from studies.every_release.old_names import MIGRATION
from tools.stored_results import read_results

ROOT = Path(__file__).parents[2]
OLD, FIRST_NEW = "0.4.24", "0.4.30"
CALENDAR = load_policy(cross.POLICY).calendar()
NEWEST = cross.releases(CALENDAR)[-1]
NAMES = [(what, old, new) for what, old, new in MIGRATION if what not in ("module", "what is exported")]

HAS = """
import importlib, inspect, sys, jax
export = importlib.import_module(sys.argv[1])
for name in sys.argv[2:]:
    kind, _, rest = name.partition(".")
    function, _, keyword = name.rstrip("=)").partition("(")
    if keyword:
        found = keyword in inspect.signature(getattr(export, function)).parameters
    elif rest:
        exported = export.export(jax.jit(lambda x: x))(jax.ShapeDtypeStruct((2,), "float32"))
        found = hasattr(exported, rest)
    else:
        found = name in jax.config.values if name.startswith("jax_") else hasattr(export, name)
    print(name, found)
"""

PROGRAMS_THAT_OLD_RELEASES_EXPORT_OTHERWISE = """
import jax, jax.numpy as jnp, numpy as np, pytest
from jax.sharding import PartitionSpec

x = np.linspace(-1, 1, 8, dtype=np.float32)

@pytest.mark.export_compat
def test_numbers_and_static_arguments(export_golden):
    export_golden(jax.jit(lambda a, b, how: getattr(jnp, how)(a, b), static_argnums=2), x, 2.0, "multiply")

@pytest.mark.export_compat(vjp_order=1)
def test_derivative_by_a_number(export_golden):
    export_golden(jax.jit(lambda a, b: jnp.sin(a * b)), x, 2.0)

@pytest.mark.export_compat(calling_convention_version=9)
def test_calling_convention(export_golden):
    export_golden(jax.jit(lambda a, *, b: a + b), x, b=x)

@pytest.mark.export_compat(symbolic_shapes=("n", None), constraints=("n >= 4", "n <= 8"))
def test_constraints(export_golden):
    export_golden(jax.jit(lambda a, b: a * b), x, np.float32(2)).also(x[:4], np.float32(2))

@pytest.mark.export_compat(mesh={"d": 2}, in_specs=[PartitionSpec("d")])
def test_mesh(export_golden):
    export_golden(jax.jit(lambda a: a.sum() + a), x)

@pytest.mark.export_compat(platforms=["tpu"], disabled_checks={"platform": "it has no custom calls"})
def test_disabled_checks(export_golden):
    export_golden(jax.jit(lambda a: a + 1), x)
"""


def variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


def test_the_page_of_old_releases_lists_every_renamed_api():
    rows = re.findall(
        r"^\| ([^|]+) \| `([^`]+)` \| `([^`]+)` \|$",
        (ROOT / "docs" / "reference" / "old-releases.md").read_text(),
        re.MULTILINE,
    )
    assert tuple(rows) == MIGRATION


DATA = json.loads(cross.PAGE.with_suffix(".json").read_text(encoding="utf-8"))


def test_the_page_of_releases_shows_its_recorded_data():
    text = cross.PAGE.read_text(encoding="utf-8")
    assert text == cross.page(DATA, text)


def test_every_release_is_in_the_table_as_writer_and_as_reader():
    known = cross.releases(CALENDAR)
    assert [line.split()[0] for line in DATA["releases"]] == known
    assert [line.split()[-1] for line in DATA["releases"]] == [str(CALENDAR.built(each)) for each in known]
    assert DATA["wrote"] == DATA["have_read"] == len(known)
    assert list(DATA["squares"]) == known
    assert all(list(row) == known for row in DATA["squares"].values())


def test_a_table_entry_is_pass_a_verdict_or_the_failing_programs():
    cases = list(cross.PROGRAMS)
    passed, crashed = (making.result(each, case=cases[0]) for each in (Verdict.PASS, Verdict.CRASH))
    refused = [making.result(Verdict.REFUSED, case=case) for case in cases]
    assert cross.square([passed]) == "pass"
    assert cross.square([passed, refused[1], refused[2]]) == "derivatives, symbolic shapes"
    assert cross.square(refused) == "refused"
    assert cross.square([crashed, *refused[1:]]) == "error"


def test_releases_with_equal_verdicts_share_row_and_column():
    squares = {
        "1": dict.fromkeys("123", "pass"),
        "2": dict.fromkeys("123", "pass"),
        "3": {"1": "refused", "2": "plain, random"},
    }
    assert cross.grid(squares).splitlines()[0::2] == [
        "| writer ↓ reader → | 3 | 2 | 1 |",
        "| 3 |  | all but plain and random | refused |",
    ]
    assert cross.grid(squares).splitlines()[3] == "| 1 to 2 | pass | pass | pass |"


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("release", "module", "column"),
    [(OLD, MIGRATION[0][1], 1), (FIRST_NEW, MIGRATION[0][2], 2), (NEWEST, MIGRATION[0][2], 2)],
    ids=[OLD, FIRST_NEW, NEWEST],
)
def test_old_and_new_releases_have_only_the_listed_names(release, module, column):
    names = [row[column] for row in NAMES]
    others = [row[3 - column] for row in NAMES] if release != FIRST_NEW else []  # which has both
    environment = ReaderEnvironments(CALENDAR).build(Placement(CALENDAR.release(release)))
    asked = [str(environment.python), "-W", "ignore", "-c", HAS, module, *names, *others]
    done = subprocess.run(asked, env=dict(environment.variables), capture_output=True, text=True, check=True)
    found = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    remaining = {"jax_serialization_version"}  # which jax2tf still uses
    assert {name for name in names if found[name] != "True"} == set()
    assert {name for name in others if found[name] != "False"} <= remaining


@pytest.mark.weekly
def test_old_middle_and_new_releases_write_and_read(tmp_path):
    asked = f"{OLD},{FIRST_NEW},{NEWEST}"
    folders = ["--goldens", tmp_path / "golden", "--results", tmp_path / "results"]
    command = [sys.executable, "-m", cross.__name__, "--writers", asked, "--readers", asked, *folders]
    done = subprocess.run(command, env=variables(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    sentence = "3 of 3 releases wrote what some release reads, 3 of 3 read what some release wrote."
    assert sentence in " ".join(done.stdout.split())
    results = read_results(tmp_path / "results")
    assert len(results) == 3 * 3 * len(cross.PROGRAMS)
    assert {result.writer.jax for result in results} == {result.reader.jax for result in results} == {*asked.split(",")}
    near = [result for result in results if result.promised]
    assert [result.golden for result in near if result.verdict != "pass"] == []


@pytest.mark.weekly
def test_an_old_release_writes_with_its_old_names(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nexport_devices = 2\n")
    (tmp_path / "test_a.py").write_text(PROGRAMS_THAT_OLD_RELEASES_EXPORT_OTHERWISE)
    (tmp_path / "export_compat.yaml").write_text(cross.POLICY.read_text())
    for words in (["goldens", "backfill", "--writers", OLD], ["matrix", "--readers", f"{OLD},{FIRST_NEW}", "--quiet"]):
        command = [sys.executable, "-m", "export_core", *words]
        done = subprocess.run(command, cwd=tmp_path, env=variables(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    goldens = GoldenStore(tmp_path / "golden").goldens()
    assert {golden.manifest.writer.id for golden in goldens} == {f"{OLD}-cpu"}
    assert len(goldens) == PROGRAMS_THAT_OLD_RELEASES_EXPORT_OTHERWISE.count("def test_")
    results = read_results(tmp_path / ".jaxexport")
    assert {(result.golden, result.message) for result in results if result.verdict != "pass"} == set()
