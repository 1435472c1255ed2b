"""--dump-ir: each module as text, as exported and as compiled, named by case."""

from __future__ import annotations

import pytest

from export_core.environments.environment import this_interpreter
from export_core.matrix import Verdict
from export_core.matrix.dump import make_dump_folder
from export_core.matrix.errors import MatrixError

CASES = ("waves", "both", "keys")


@pytest.mark.parametrize("fork", [True, False])
def test_every_cell_leaves_what_was_exported_what_was_lowered_and_what_was_compiled(run, goldens, here, tmp_path, fork):
    found = run(*CASES, fork=fork, environment_of=this_interpreter, dump=tmp_path)
    assert {outcome.verdict for outcome in found.values()} == {Verdict.PASS}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(CASES)
    for case in CASES:  # the first cell goes alone and teaches imports; those after it are other forks
        folder = tmp_path / case / goldens[case].manifest.writer.id / f"{here.jaxlib}-cpu"
        assert "func.func public @main" in (folder / "exported.mlir").read_text()
        assert (folder / "compiled.hlo").read_text().startswith("HloModule jit_")
        (lowered,) = folder.glob("jax_ir*_compile.mlir")
        assert "func.func public @main" in lowered.read_text()


def test_the_module_as_its_writer_printed_it_lies_above_the_readers(run, goldens, tmp_path):
    golden = goldens["waves"]
    (golden.folder / "module.mlir").write_text("as its writer printed it")
    run("waves", dump=tmp_path)
    assert (tmp_path / golden.id / "exported.mlir").read_text() == "as its writer printed it"


def test_a_text_that_cannot_be_written_says_nothing_about_the_artifact(run, goldens, here, tmp_path):
    golden = goldens["waves"]
    folder = tmp_path / golden.id / f"{here.jaxlib}-cpu"
    (folder / "compiled.hlo").mkdir(parents=True)
    outcome = run("waves", dump=tmp_path)["waves"]
    assert outcome.verdict is Verdict.PASS
    assert "no compiled.hlo: [Errno 21]" in outcome.stderr


def test_a_folder_that_cannot_be_made_is_told_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MatrixError, match=r"--dump-ir: cannot make the folder .*file/inside: Not a directory"):
        make_dump_folder(tmp_path / "file" / "inside")
