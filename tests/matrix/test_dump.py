"""The folder of `--dump-ir`: each module as text, as exported and as compiled, named by case."""

import pytest

from export_core.goldens import GoldenError
from export_core.matrix import Verdict
from export_core.matrix.plan import make_dump_folder
from export_core.matrix.selection import MatrixError
from export_core.readers.environment import this_interpreter

CASES = ("waves", "both", "keys")


@pytest.mark.parametrize("fork", [True, False])
def test_every_cell_dumps_its_exported_and_compiled_module(run, goldens, here, tmp_path, fork):
    outcomes = run(*CASES, fork=fork, environment_of=this_interpreter, dump=tmp_path)
    assert {outcome.verdict for outcome in outcomes.values()} == {Verdict.PASS}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(CASES)
    for case in CASES:  # the first cell goes alone and teaches imports; those after it are other forks
        folder = tmp_path / case / goldens[case].manifest.writer.id / f"{here.jaxlib}-cpu"
        assert "func.func public @main" in (folder / "exported.mlir").read_text()
        assert (folder / "compiled.hlo").read_text().startswith("HloModule jit_")
        (lowered,) = folder.glob("jax_ir*_compile.mlir")
        assert "func.func public @main" in lowered.read_text()


def test_the_writers_module_is_in_the_folder_above_the_readers(run, goldens, tmp_path):
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


@pytest.mark.parametrize("named", ["golden", "golden/t.f", "golden/t.f/0.12.0.1-cpu", "golden/t.f/0.12.0.1-cpu/new"])
def test_a_folder_of_goldens_is_refused_for_dumps(tmp_path, named):
    folder = tmp_path / "golden" / "t.f" / "0.12.0.1-cpu"
    folder.mkdir(parents=True)
    (folder / "golden.yaml").write_text("")
    with pytest.raises(GoldenError, match=r"--dump-ir .*: expected a folder without goldens, found .*0\.12\.0\.1-cpu"):
        make_dump_folder(tmp_path / named)
    assert list(folder.iterdir()) == [folder / "golden.yaml"]


def test_a_folder_of_dumps_with_a_link_is_refused(tmp_path):
    cell = tmp_path / "dump" / "t.f" / "0.12.0.1-cpu" / "0.12.0.1-cpu"
    cell.mkdir(parents=True)
    assert make_dump_folder(tmp_path / "dump") == tmp_path / "dump"
    (cell / "compiled.hlo").symlink_to(tmp_path / "mine")
    with pytest.raises(MatrixError, match=r"expected no symbolic link in it, found .*compiled\.hlo"):
        make_dump_folder(tmp_path / "dump")
    (tmp_path / "link").symlink_to(cell)
    with pytest.raises(MatrixError, match=r"expected no symbolic link in it, found .*link"):
        make_dump_folder(tmp_path / "link")


def test_no_dump_is_written_through_a_link_made_during_the_run(run, goldens, here, tmp_path):
    folder = tmp_path / "dump" / goldens["waves"].id / f"{here.jaxlib}-cpu"
    folder.mkdir(parents=True)
    (tmp_path / "mine").write_text("mine")
    (folder / "compiled.hlo").symlink_to(tmp_path / "mine")
    outcome = run("waves", dump=tmp_path / "dump")["waves"]
    assert outcome.verdict is Verdict.PASS
    assert "no compiled.hlo: [Errno 40]" in outcome.stderr
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_dump_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MatrixError, match=r"--dump-ir: cannot make the folder .*file/inside: Not a directory"):
        make_dump_folder(tmp_path / "file" / "inside")
