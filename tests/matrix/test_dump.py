"""--dump-ir: each module as text, as exported and as compiled, named by case."""

import pytest

from export_core.matrix import Verdict
from export_core.matrix.plan import make_dump_folder
from export_core.matrix.selection import MatrixError
from export_core.readers.environment import this_interpreter

CASES = ("waves", "both", "keys")


@pytest.mark.parametrize("fork", [True, False])
def test_every_cell_dumps_its_exported_and_compiled_modules(run, goldens, here, tmp_path, fork):
    found = run(*CASES, fork=fork, environment_of=this_interpreter, dump=tmp_path)
    assert {outcome.verdict for outcome in found.values()} == {Verdict.PASS}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(CASES)
    for case in CASES:  # the first cell goes alone and teaches imports; those after it are other forks
        folder = tmp_path / case / goldens[case].manifest.writer.id / f"{here.jaxlib}-cpu"
        assert "func.func public @main" in (folder / "exported.mlir").read_text()
        assert (folder / "compiled.hlo").read_text().startswith("HloModule jit_")
        (lowered,) = folder.glob("jax_ir*_compile.mlir")
        assert "func.func public @main" in lowered.read_text()


def test_the_module_by_its_writer_lies_above_those_by_readers(run, goldens, tmp_path):
    golden = goldens["waves"]
    (golden.folder / "module.mlir").write_text("as its writer printed it")
    run("waves", dump=tmp_path)
    assert (tmp_path / golden.id / "exported.mlir").read_text() == "as its writer printed it"


def test_a_dump_that_cannot_be_written_changes_no_verdict(run, goldens, here, tmp_path):
    golden = goldens["waves"]
    folder = tmp_path / golden.id / f"{here.jaxlib}-cpu"
    (folder / "compiled.hlo").mkdir(parents=True)
    outcome = run("waves", dump=tmp_path)["waves"]
    assert outcome.verdict is Verdict.PASS
    assert "no compiled.hlo: [Errno 21]" in outcome.stderr


def test_a_folder_that_cannot_be_made_is_an_error_before_any_run(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MatrixError, match=r"--dump-ir: cannot make the folder .*file/inside: Not a directory"):
        make_dump_folder(tmp_path / "file" / "inside")
