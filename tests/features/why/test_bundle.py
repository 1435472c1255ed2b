"""A bundle: its script runs with jax alone, and its issue has what a maintainer asks for."""

import datetime
import json
import os
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import jax.numpy as jnp
import msgspec
import numpy as np
import pytest
from bisecting import CRASH, PASS, FakeReplay
from making import ARTIFACTS, manifest, write_golden
from test_explanation import CHOLESKY, ROOT, choice_of, judged

from export_core.base.errors import ExportCompatError
from export_core.base.text import plain_text
from export_core.features.why.bisect.bisection import bisect
from export_core.features.why.choice import Choice, WhyError
from export_core.features.why.explain import bundle_script
from export_core.features.why.explain.bundle import (
    SCRIPT,
    BundledProgram,
    check_new,
    program_of,
    reduced_program,
    write_bundle,
)
from export_core.features.why.explain.explanation import explain
from export_core.features.why.reduce.failing_alike import KEPT_SHARE
from export_core.features.why.reduce.reduced_program import ModuleEditor, ModuleSummary, flat_program
from export_core.features.why.reduce.reduction import DivergingOperation, Reduced, Reduction, ReductionFolder, Step
from export_core.goldens import GoldenStore
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import ARTIFACT, INPUTS, MODULE_TEXT, OUTPUTS
from export_core.judge import Result
from export_core.matrix import Verdict, cached_replay
from export_core.numbers.elements import to_double
from export_core.readers.build import find_python, uv_command
from export_core.readers.worker.protocol import Stage
from export_core.releases import Release

CASE = "tests.compat.test_dtypes.test_dtype[bfloat16]"


def bundle(folder: Path, choice: Choice, verdict: Verdict = Verdict.CRASH, **changes: object) -> Path:
    result = judged(choice, verdict, **{"stage": Stage.COMPILE, "message": "died by signal 11 (SIGSEGV)", **changes})
    write_bundle(folder, choice, result, explain(choice, result), program_of(choice, result))
    return folder


class FakeEditor:
    """A stand-in for the module editor that returns one text for each module."""

    def __init__(self, text: bytes = b"module {}", refused: str = "") -> None:
        self.text, self.refused = text, refused

    def edited(self, *_: Any) -> tuple[ModuleSummary, bytes, bytes]:
        return ModuleSummary(refused=self.refused), b"", self.text


def program_in(folder: Path, choice: Choice, result: Result, **text: Any) -> BundledProgram:
    """Return the reduced program in a folder, with this text for its module."""
    return reduced_program(choice, result, ReductionFolder(folder), cast("ModuleEditor", FakeEditor(**text)))


@pytest.fixture
def choice() -> Choice:
    return choice_of(CASE, "0.9.2", "0.12.0.1")


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script where this package cannot be imported."""
    command = [sys.executable, "-P", SCRIPT]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_bundles_script_runs_with_jax_alone(choice, tmp_path):
    folder = bundle(tmp_path / "b", choice, Verdict.NUMERICS, stage=Stage.COMPARE, max_abs_error=1e-3)
    assert "export_core" not in (folder / SCRIPT).read_text()
    done = run(folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "reported: ran with different numbers in jaxlib 0.12.0.1"
    assert done.stdout.splitlines()[-1] == "its numbers are those that its writer saw"
    assert json.loads((folder / "call.json").read_text())["named"] == [
        "0 (result[0])",
        "1 (result[1])",
        "2 (result[2])",
    ]


def test_the_bundles_script_names_a_result_by_its_path(capsys):
    arrays = [np.ones(2), np.zeros(3)]
    bundle_script.differs(arrays, arrays, 0.5, ["0 (result['b1'])"])
    names = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["result 0 (result['b1'])", "result 1"]


@pytest.mark.parametrize(
    ("measured", "off", "expected"),
    [(0.5, 0.5, True), (0.5, 0.3, True), (0.5, 0.1, False), (None, np.nan, True), (None, 0.5, False)],
)
def test_the_bundles_script_fails_from_half_the_measured_difference(measured, off, expected):
    results, writer = [jnp.array([1.0, 2.0 + off])], [np.array([1.0, 2.0], np.float32)]
    assert bundle_script.differs(results, writer, measured) is expected


def test_equal_infinities_and_nans_do_not_differ():
    writer = np.array([np.inf, -np.inf, np.nan, 1], np.float32)
    assert not bundle_script.differs([jnp.array(writer)], [writer], 0.5)
    assert bundle_script.differs([-jnp.array(writer)], [writer], 0.5)


def test_a_bundle_has_the_artifact_a_script_and_an_issue(choice, tmp_path):
    folder = bundle(tmp_path / "b", choice)
    assert (folder / ARTIFACT).read_bytes() == choice.cell.golden.content(ARTIFACT)
    head = (folder / SCRIPT).read_text().partition('"""')[0]
    assert head.splitlines()[:2] == ["# /// script", '# requires-python = "==3.12.*"']
    assert '#     "jax==0.12.0.1",' in head
    assert '#     "jaxlib==0.12.0.1",' in head
    text = (folder / "issue.md").read_text()
    assert "### Description" in text
    assert "### System info" in text
    assert "    died by signal 11 (SIGSEGV)\n" in text
    assert "    uv run reproduce.py\n" in text
    assert "| jax 0.12.0.1, jaxlib 0.12.0.1 |" in text
    assert str(ROOT) not in text


def test_the_bundles_issue_has_last_good_and_first_bad_release(choice, tmp_path, monkeypatch):
    choice = choice_of(CASE, "0.9.2", "0.10.2")
    replay = FakeReplay(lambda jaxlib: PASS if jaxlib in ("0.9.2", "0.10.0") else CRASH)
    monkeypatch.setattr(cached_replay, "replay_here", replay)
    bisection = bisect(choice, print)
    result = judged(choice, Verdict.CRASH, stage=Stage.RUN, message="died by signal 11 (SIGSEGV)")
    explanation = explain(choice, result, bisection=bisection)
    write_bundle(tmp_path / "b", choice, result, explanation, program_of(choice, result))
    text = (tmp_path / "b" / "issue.md").read_text()
    assert re.findall(r"^\| jax \S+, jaxlib (\S+) \| \S+ \| (\w+) \|", text, re.MULTILINE) == [
        *(("0.9.2", "pass"), ("0.10.0", "pass"), ("0.10.1", "crash"), ("0.10.2", "crash")),
    ]
    assert "\n- first bad: jaxlib 0.10.1 " in text.replace("\\", "")
    assert "\n- last good: jaxlib 0.10.0 " in text.replace("\\", "")
    assert "\n- commits: jax: https://github.com/jax-ml/jax/compare/jax-v0.10.0...jax-v0.10.2\n" in text
    assert dict(explanation.evidence)["first bad"].startswith("jaxlib 0.10.1 ")
    assert not any("jaxexport bisect" in step for step in explanation.steps)
    assert "Read it with a release in which it works: jaxlib 0.9.2, 0.10.0." in explanation.steps


def test_the_bundles_issue_shows_the_newest_release_that_works(choice, tmp_path):
    works, crashes = judged(choice, Verdict.PASS, stage=Stage.COMPARE), judged(choice, Verdict.CRASH)
    unknown = Release(jax="0.1; ls | @all", jaxlib="<img src=x>", built=datetime.date(2026, 9, 1))
    readers = (*(choice.release(name) for name in ("0.10.2", "0.11.1")), unknown)
    working = (msgspec.structs.replace(works, reader=reader) for reader in readers)
    stored = replace(choice, stored=(*working, crashes))
    text = (bundle(tmp_path / "b", stored) / "issue.md").read_text()
    packages = "--with jax==0.11.1 --with jaxlib==0.11.1 --with numpy --with flatbuffers"
    assert f"    uv run --no-project --python 3.12 {packages} python reproduce.py   # works\n" in text
    assert "; ls |" not in text
    assert r"jaxlib \<img src=x\> | 2026-09-01 | pass |" in text


def test_untrusted_text_in_the_bundles_issue_is_escaped(choice, tmp_path):
    message = "\x1b[2J[here](https://example.org) @all\r# Heading\n```\n</details>\N{RIGHT-TO-LEFT OVERRIDE}"
    left = reduced(tmp_path / "reduced", choice)
    for verdict in (Verdict.CRASH, Verdict.NUMERICS):
        result = judged(choice, verdict, message=message, device="<b>@all</b>")
        folder = tmp_path / verdict
        explanation = explain(choice, result, ReductionFolder(left))
        program = program_in(left, choice, result, text=b"``\x1b[0m`\n# Heading")
        write_bundle(folder, choice, result, explanation, program)
        text = (folder / "issue.md").read_text()
        assert plain_text(text) == text, "no control characters"
        assert "    [here](https://example.org) @all\n    # Heading\n    ```\n    </details>" in text, (
            "indented, so code"
        )
        assert "````mlir\n```\n# Heading\n````" in text
        outside = re.sub(r"(?m)^    .*$|````[^~]*?````", "", text)
        assert "](https://" not in outside
        assert "@all" not in outside
        assert r"(\<b\>@" in outside


def test_a_bundle_is_not_written_into_an_existing_folder(choice, tmp_path):
    with pytest.raises(WhyError, match=r"exists\. Name a new folder."):
        bundle(tmp_path, choice)
    assert not any(tmp_path.iterdir())


def test_a_bundle_of_a_golden_that_registers_modules_is_refused(choice, tmp_path):
    golden = choice.cell.golden
    options = msgspec.structs.replace(golden.manifest.options, register=("my_nodes",))
    golden = replace(golden, manifest=msgspec.structs.replace(golden.manifest, options=options))
    other = replace(choice, cell=replace(choice.cell, golden=golden))
    with pytest.raises(WhyError, match="registers my_nodes, which a script with only jax lacks"):
        bundle(tmp_path / "b", other)
    assert not (tmp_path / "b").exists()


def reduced(folder: Path, choice: Choice, **changes: Any) -> Path:
    """Write a folder as `jaxexport reduce` does, with the golden's own program."""
    golden = choice.cell.golden
    program = flat_program(golden.read_artifact(), 0, golden.inputs())
    values: dict[str, Any] = {
        "cell": str(choice.cell.key),
        "call": "",
        "artifact": "",
        "failure": "crash",
        "second": "",
        **changes,
    }
    left = Reduced(Reduction(operations=12, **values), [Step("finished", 1, 3, 0.5)], program)
    without_files = replace(golden, manifest=msgspec.structs.replace(golden.manifest, files={}))  # as `reduce` makes it
    ReductionFolder(folder).write(left, without_files, golden.outputs())
    return folder


def test_a_bundle_has_the_reduced_program(choice, tmp_path, capsys):
    result = judged(choice, Verdict.NUMERICS, stage=Stage.COMPARE, max_abs_error=9.0)
    left = reduced(tmp_path / "reduced", choice, units=64.0)
    program = program_in(left, choice, result, text=b"module {  // \xff\n}")
    folder = tmp_path / "b"
    write_bundle(folder, choice, result, explain(choice, result), program)
    assert "```mlir\nmodule {  // \N{REPLACEMENT CHARACTER}\n}\n```" in (folder / "issue.md").read_text()
    steps = [2.0**-7 * float(np.abs(to_double(leaf.numpy())).max()) for leaf in choice.cell.golden.outputs()]
    assert program.measured == KEPT_SHARE * 64 * min(steps), "2^-7 is the unit of bfloat16"
    runpy.run_path(str(folder / SCRIPT))["main"]()
    assert capsys.readouterr().out.splitlines()[-1] == "its numbers are those that its writer saw"


def test_a_bundle_is_refused_if_its_audit_fails(choice, tmp_path):
    result = judged(choice, Verdict.CRASH)
    left = reduced(tmp_path / "reduced", choice)
    other = ARTIFACTS / "0.9.2" / "cholesky.jaxexport"
    hidden = other.read_bytes().replace(b"lapack_spotrf_ffi", b"lapack_spotrf_XXX")
    (left / ARTIFACT).write_bytes(hidden)
    (left / INPUTS).write_bytes(to_npz([leaf_of(np.eye(4, dtype=np.float32))]))
    program = program_in(left, choice, result)
    with pytest.raises(WhyError, match=r"not written, since its artifact must not be run: .*lapack_spotrf_XXX"):
        write_bundle(tmp_path / "b", choice, result, explain(choice, result), program)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        (ARTIFACT, None, "expected a regular file, found a symbolic link"),
        ("steps.jsonl", b"", "expected the files of `jaxexport reduce`"),
        ("outputs.npz", b"x", "expected arrays in an .npz"),
    ],
)
def test_a_damaged_reduction_folder_is_an_error(name, content, text, choice, tmp_path):
    folder = reduced(tmp_path / "reduced", choice, units=1.0)
    path = folder / name
    first = path.read_bytes().partition(b"\n")[0] if name == "steps.jsonl" else b""
    path.unlink(missing_ok=True)
    if content is None:
        path.symlink_to(__file__)
    else:
        path.write_bytes(first + content)
    with pytest.raises(ExportCompatError, match=text):
        program_in(folder, choice, judged(choice, Verdict.NUMERICS))


def test_module_text_of_a_reduction_folder_is_not_copied(editor, tmp_path):
    choice = choice_of("tests.compat.test_trees.test_keyword_arguments", "0.9.2", "0.12.0.1")
    left = reduced(tmp_path / "reduced", choice)
    (left / MODULE_TEXT).write_text("import os; os.system('false')")
    result, folder = judged(choice, Verdict.CRASH), tmp_path / "b"
    program = reduced_program(choice, result, ReductionFolder(left), editor)
    write_bundle(folder, choice, result, explain(choice, result), program)
    assert not any(b"os.system" in path.read_bytes() for path in folder.iterdir())
    assert "stablehlo." in (folder / MODULE_TEXT).read_text()


def test_a_module_that_cannot_be_written_as_text_is_refused(choice, tmp_path):
    with pytest.raises(WhyError, match=r"cannot be written as text: it died\. Reduce the cell again"):
        program_in(reduced(tmp_path / "reduced", choice), choice, judged(choice, Verdict.CRASH), refused="it died")


def test_a_bundle_records_no_measured_difference_if_it_is_infinite(choice, tmp_path):
    folder = reduced(tmp_path / "reduced", choice, units=8.0)
    (folder / OUTPUTS).write_bytes(to_npz([leaf_of(np.array([np.inf], np.float32))]))
    assert program_in(folder, choice, judged(choice, Verdict.NUMERICS)).measured is None


def test_a_reduced_program_of_another_cell_is_refused(choice, tmp_path):
    folder = reduced(tmp_path / "reduced", choice, cell="another in 0.9.2-jax0.9.2 on cpu")
    with pytest.raises(WhyError, match="found that of another"):
        explain(choice, judged(choice, Verdict.CRASH), ReductionFolder(folder))


def test_an_explanation_shows_the_reduced_program(choice, tmp_path):
    first = DivergingOperation("stablehlo.add %0, %1 : tensor<6xbf16>", 2, 3, 5)
    folder = reduced(tmp_path / "reduced", choice, units=64.0, first_diverging=first)
    evidence = dict(explain(choice, judged(choice, Verdict.NUMERICS), ReductionFolder(folder)).evidence)
    assert evidence["reduced to"] == f"1 operation of 12, in {folder}"
    assert evidence["differs at"] == "stablehlo.add %0, %1 : tensor<6xbf16> (by up to 5 ulp)"


@pytest.mark.matrix
def test_the_bundle_of_a_real_crash_runs_with_uv_alone(tmp_path):
    """Cholesky ends a cold process of jaxlib up to 0.9.2."""
    choice = choice_of(CHOLESKY, "0.6.2", "0.9.2")
    folder = bundle(tmp_path / "b", choice, stage=Stage.RUN)
    uv = uv_command()
    # What uv needs to find a Python and the registry, and nothing else.
    bare = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JAX", "XLA", "VIRTUAL"))
    }
    # Where no such Python is found, uv downloads one, which not every machine can reach.
    command = [uv, "run", "--no-project", "--python", find_python("3.12", uv), SCRIPT]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=bare)
    assert done.returncode in (-11, 139), done.stderr
    assert done.stdout.splitlines()[-1] == "compiled"


def test_writing_a_bundle_into_a_golden_is_an_error(tmp_path):
    written = write_golden(GoldenStore(tmp_path / "golden"), manifest())
    with pytest.raises(ExportCompatError, match=r"--bundle .*: expected a folder without goldens"):
        check_new(written.folder / "bundle")
