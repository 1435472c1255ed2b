"""`jaxexport convert` from the command line, with this interpreter as the reader."""

import dataclasses
import json
import pickle
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from commands import assert_bad_input, process
from making import files, write_golden
from stored_artifacts import DATA

from export_core.artifact import read
from export_core.features.convert import conversions
from export_core.features.convert.conversions import ConversionOutcome
from export_core.features.convert.errors import ConversionRefused
from export_core.goldens import Comparison, GoldenStore
from export_core.goldens.conversion_record import ConversionRecord
from export_core.goldens.store import ARTIFACT, OUTPUTS, content_of, sha256
from export_core.goldens.verify import check_claims
from export_core.judge import Judgement, judge
from export_core.matrix import Cell, Verdict
from export_core.matrix.result import new_result
from export_core.policy import Policy
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar

COMPLEX = DATA.parents[2] / "golden/tests.compat.test_derivatives.test_complex_numbers/0.12.0.1-cpu/artifact.jaxexport"
REWRITTEN = COMPLEX.parents[2] / "tests.compat.test_programs.test_special_functions/0.12.0.1-cpu/artifact.jaxexport"
"""An artifact whose module has to be rewritten for jaxlib 0.8.1."""
LAPACK_GEEV = COMPLEX.parents[2] / "tests.compat.test_linear_algebra.test_eig/0.12.0.1-cpu/artifact.jaxexport"
OLD, NEW = DATA / "0.9.2" / "mlp.jaxexport", DATA / "0.12.0.1" / "mlp.jaxexport"


def record_of(path) -> ConversionRecord:
    return msgspec.json.decode(path.with_name(path.name + ".converted.json").read_bytes(), type=ConversionRecord)


def test_a_conversion_is_verified_against_its_golden(convert, refused_golden, tmp_path, here, jaxexport):
    original = refused_golden.artifact.read_bytes()
    ended = convert(refused_golden.artifact, "-o", "out/new.jaxexport", code=0)
    assert f"converted: jaxlib {here.jaxlib} gives the outputs of the golden {refused_golden.id}" in ended.out
    out = tmp_path / "out" / "new.jaxexport"
    assert read(out).envelope.disabled_checks == ()
    assert refused_golden.artifact.read_bytes() == original
    record = record_of(out)
    assert record.verdict == "converted"
    assert record.sha256 == sha256(out.read_bytes())
    assert record.converted_from.sha256 == sha256(original)
    assert record.converted_from.reader == here.jaxlib
    assert record.golden == refused_golden.id
    assert any("shape_assertions" in text for text in record.converted_from.rewrites)
    assert ended.out.splitlines()[-1] == "  record: out/new.jaxexport.converted.json"
    shown = jaxexport("inspect", str(out)).out
    assert f"converted     for jaxlib {here.jaxlib}" in shown
    assert "promised      nothing" in shown
    named = jaxexport("inspect", str(out), "--readers", here.jaxlib).out
    assert named.endswith("every custom call is promised\n"), "nothing of a window, in which it has no place"
    assert "export with jax" not in named, "how to export it otherwise: jax.export did not write it"
    assert f", converted for jaxlib {here.jaxlib} by pytest-jaxexport " in jaxexport("audit", str(out)).out
    facts = json.loads(jaxexport("inspect", str(out), "--json").out)
    assert facts["converted"]["sha256"] == sha256(original)
    assert facts["promise"] is None


def test_a_savedmodel_is_refused_without_reading_goldens(jaxexport, monkeypatch):
    Path("golden").mkdir()
    monkeypatch.delattr(GoldenStore, "with_artifact")
    ended = jaxexport("convert", DATA / "savedmodels" / "orbax", "--for", "0.9.2", "-o", "out", code=1)
    assert "not converted: it is a SavedModel of TensorFlow. `jaxexport goldens add` makes" in ended.err


@pytest.mark.matrix
def test_a_bare_module_is_written_for_an_older_stablehlo(tmp_path):
    (tmp_path / "bare.mlirbc").write_bytes(read(COMPLEX).module.serialized())
    ended = process("convert", "bare.mlirbc", "--for", "0.4.36", "-o", "old.mlirbc")
    assert (ended.code, read(tmp_path / "old.mlirbc").module.stablehlo_version) == (3, "1.8.5")
    assert "  - modules written for StableHLO 1.8.5" in ended.out


def test_a_pickled_executable_is_named_in_the_error(jaxexport):
    Path("compiled.bin").write_bytes(pickle.dumps((b"executable", "in_tree", "out_tree")))
    ended = jaxexport("convert", "compiled.bin", "--for", "0.9.2", "-o", "out", code=2)
    assert "found a Python pickle, as of jax.experimental.serialize_executable" in ended.err


def test_a_comparison_of_shapes_alone_verifies_nothing(convert, refused_golden, tmp_path):
    shapes = msgspec.structs.replace(refused_golden.manifest, comparison=Comparison("shape"))
    write_golden(GoldenStore(tmp_path / "golden"), shapes, refused_golden.files())
    ended = convert(refused_golden.artifact, "--goldens", "golden", "-o", "out/new.jaxexport", code=3)
    assert "not verified: jaxlib " in ended.out
    assert "nothing was compared: its comparison looks at shapes and dtypes alone" in ended.out
    record = record_of(tmp_path / "out" / "new.jaxexport")
    assert (record.verdict, record.golden) == ("not verified", refused_golden.id)


def test_a_converted_golden_is_judged_but_never_kept(convert, refused_golden, tmp_path, here):
    convert(refused_golden.folder, "-o", "converted", code=0)
    (golden,) = GoldenStore(tmp_path / "converted").goldens()
    golden.verify()
    check_claims([golden], load_calendar())
    origin = golden.manifest.converted_from
    assert origin.sha256 == refused_golden.manifest.files[ARTIFACT]
    assert (golden.folder / f"{ARTIFACT}.converted.json").is_file()
    works = judge(new_result(Cell(golden, here, "cpu"), Stage.COMPARE, Verdict.PASS), golden, Policy())
    assert (works.verdict, works.judgement, works.promised) == (Verdict.CONVERTED, Judgement.BONUS, False)
    fails = judge(new_result(Cell(golden, here, "cpu"), Stage.DESERIALIZE, Verdict.REFUSED), golden, Policy())
    assert fails.judgement is Judgement.OUTSIDE
    wrong = judge(new_result(Cell(golden, here, "cpu"), Stage.COMPARE, Verdict.NUMERICS), golden, Policy())
    assert wrong.judgement is Judgement.BROKEN


def test_a_dry_run_only_says_what_would_be_written(convert, refused_golden, tmp_path, here):
    ended = convert(refused_golden.artifact, "-o", "out/new.jaxexport", "--dry-run", code=0)
    assert ended.out == (f"out/new.jaxexport: would be {refused_golden.artifact}, converted for jaxlib {here.jaxlib}\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("file", "words", "refusal"),
    [
        ("cholesky", ("--for", "0.9.2"), "not converted for jaxlib 0.9.2: lapack_spotrf_ffi crashes jaxlib 0.9.2"),
        ("sharded", ("--for", "iree==3.13.0"), "not converted for iree 3.13.0: the artifact is for "),
        ("mlp", ("--for", "iree==3.13.0", "--via", "export"), "not exported again for iree 3.13.0: expected an"),
        ("sharded", ("--for", "iree==3.13.0", "--via", "auto"), "not exported again for iree 3.13.0: expected an"),
    ],
)
def test_a_dry_run_prints_refusals_that_are_known_before_converting(file, words, refusal, jaxexport, tmp_path):
    command = ("convert", str(DATA / "0.12.0.1" / f"{file}.jaxexport"), *words, "-o", "out/new.jaxexport")
    dry, ended = jaxexport(*command, "--dry-run", code=1), jaxexport(*command, code=1)
    assert (dry.out, dry.err) == ("", ended.err)
    assert refusal in dry.err
    assert not (tmp_path / "out").exists()


def test_a_dry_run_says_for_each_reader_if_it_would_convert(jaxexport):
    file = str(DATA / "0.12.0.1" / "cholesky.jaxexport")
    words = ("--for", "iree==3.13.0,0.9.2,0.12.0.1", "-o", "out", "--dry-run")
    ended = jaxexport("convert", file, *words, code=1)
    assert ended.out == f"out/0.12.0.1/cholesky.jaxexport: would be {file}, converted for jaxlib 0.12.0.1\n"
    assert ended.err.count("not converted for") == 2
    assert jaxexport("convert", file, *words, "--replace-custom-calls", code=0).out.count("would be") == 3


def test_convert_accepts_a_golden_by_id_or_case(convert, refused_golden, here):
    for name in (refused_golden.id, refused_golden.manifest.case):
        ended = convert(name, "-o", "out", "--dry-run", code=0)
        written = Path("out", refused_golden.id)
        assert ended.out == f"{written}: would be golden/{refused_golden.id}, converted for jaxlib {here.jaxlib}\n"
    assert "Did you mean" in convert(f"{refused_golden.manifest.case}x", "-o", "out", code=2).err


def test_a_missing_file_is_one_error_for_all_readers(jaxexport):
    ended = jaxexport("convert", "nothing.jaxexport", "--for", "0.9.2,0.10.2", "-o", "out", code=2)
    assert ended.err.count("expected a file to read") == 1


def test_convert_accepts_a_deployment_target_in_the_for_option(convert, refused_golden, here):
    Path("export_compat.yaml").write_text(f"deployed: [{{name: serving, jaxlib: {here.jaxlib}}}]\n")
    words = (refused_golden.artifact, "-o", "out/new.jaxexport", "--dry-run")
    assert f"converted for jaxlib {here.jaxlib}\n" in convert(*words, reader="serving", code=0).out
    assert_bad_input(convert(*words, reader="servin"), "(serving), found 'servin'. Did you mean 'serving'?")


def test_replacing_a_different_golden_needs_option_replace(convert, refused_golden, tmp_path):
    other = write_golden(GoldenStore(tmp_path / "converted"), refused_golden.manifest, files())
    assert_bad_input(convert(refused_golden.folder, "-o", "converted", "-q"), f"--replace {refused_golden.id}")
    other.verify()
    assert convert(refused_golden.folder, "-o", "converted", "--replace", refused_golden.id).code == 0
    assert convert(refused_golden.folder, "-o", "converted").code == 0, "the same once more"


def test_a_golden_with_the_same_artifact_is_not_replaced(convert, refused_golden, tmp_path):
    """Such a golden may have other inputs and outputs, and may belong to a test."""
    convert(refused_golden.folder, "-o", "converted", "-q", code=0)
    (golden,) = GoldenStore(tmp_path / "converted").goldens()
    other = msgspec.structs.replace(golden.manifest, comparison=Comparison(compare="shape"))
    GoldenStore(tmp_path / "converted").write(other, golden.files())
    before = content_of(golden.folder)
    assert_bad_input(convert(refused_golden.folder, "-o", "converted", "-q"), f"--replace {refused_golden.id}")
    assert content_of(golden.folder) == before
    convert(refused_golden.folder, "-o", "converted", "--replace", refused_golden.id, "-q", code=0)
    assert content_of(golden.folder) != before


@pytest.mark.parametrize("file", ["artifact.jaxexport", "golden.yaml", "new.jaxexport", "new/a.jaxexport"])
def test_writing_a_conversion_into_a_golden_is_bad_input(convert, refused_golden, file):
    before = content_of(refused_golden.folder)
    assert_bad_input(convert(NEW, "-o", refused_golden.folder / file), "found one in the golden")
    folder = convert(refused_golden.folder, "-o", refused_golden.folder / "new")
    assert_bad_input(folder, "expected a path outside goldens")
    assert content_of(refused_golden.folder) == before


@pytest.mark.parametrize("name", ["plan.json", "export_compat.yaml"])
def test_files_of_runs_and_policies_are_not_overwritten(convert, cwd, name):
    (cwd / name).write_text("{}")
    assert convert(OLD, "-o", name).code == 2
    assert (cwd / name).read_text() == "{}"


def test_convert_does_not_overwrite_a_file_with_the_name_of_its_record(convert, cwd):
    (cwd / "new.jaxexport.converted.json").write_text("notes")
    assert_bad_input(convert(OLD, "-o", "new.jaxexport"), "expected the record of a conversion, found another file")
    assert [path.name for path in cwd.glob("new*")] == ["new.jaxexport.converted.json"]


@pytest.mark.parametrize("name", ["new.jaxexport", "new.jaxexport.converted.json"])
def test_an_output_that_is_a_symbolic_link_is_bad_input(convert, cwd, name):
    (cwd / "mine").write_text("mine")
    (cwd / name).symlink_to("mine")
    assert_bad_input(convert(OLD, "-o", "new.jaxexport"), "expected no symbolic link, found one")
    assert (cwd / "mine").read_text() == "mine"


def test_a_file_that_the_output_option_names_is_replaced(convert, refused_golden):
    assert convert(refused_golden.artifact, "-o", "new.jaxexport").code == 0
    Path("new.jaxexport").write_bytes(b"an older one")
    assert convert(refused_golden.artifact, "-o", "./new.jaxexport").code == 0
    assert read("new.jaxexport")


def test_replacing_a_file_in_the_output_folder_needs_option_replace(convert, tmp_path):
    (tmp_path / "out").mkdir()
    there = tmp_path / "out" / "mlp.jaxexport"
    there.write_bytes(NEW.read_bytes())
    ended = convert(OLD, "-o", "out", code=2)
    assert "expected nothing there, found another file or golden. Choose another --output" in ended.err
    assert "--replace out/mlp.jaxexport" in ended.err
    assert there.read_bytes() == NEW.read_bytes()
    assert convert(OLD, "-o", "out", "--replace", "out/mlp.jaxexport").code == 3
    assert (converted := there.read_bytes()) != NEW.read_bytes()
    assert convert(OLD, "-o", "out").code == 3, "the same once more"
    assert there.read_bytes() == converted


@pytest.mark.parametrize("kind", ["link", "broken link", "record"])
def test_convert_replaces_no_link_or_record_in_its_output_folder(convert, tmp_path, kind):
    shutil.copy(NEW, "new.jaxexport")
    (tmp_path / "out").mkdir()
    if kind != "record":
        (tmp_path / "out" / "mlp.jaxexport").symlink_to(tmp_path / ("new.jaxexport" if kind == "link" else "nothing"))
    else:
        (tmp_path / "out" / "mlp.jaxexport.converted.json").write_text("notes")
    assert convert(OLD, "-o", "out").code == 2
    assert len(list((tmp_path / "out").iterdir())) == 1
    assert Path("new.jaxexport").read_bytes() == NEW.read_bytes()


def test_the_original_is_not_replaced_through_a_link(convert, tmp_path):
    shutil.copy(OLD, "mlp.jaxexport")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mlp.jaxexport").symlink_to(tmp_path / "mlp.jaxexport")
    for folder in ("link", "out"):
        assert_bad_input(convert("mlp.jaxexport", "-o", folder), "would replace the original")
    assert Path("mlp.jaxexport").read_bytes() == OLD.read_bytes()


def test_an_artifact_that_the_reader_loads_is_copied(convert, goldens, tmp_path):
    golden = goldens["waves"]
    assert convert(golden.artifact, "--goldens", golden.folder.parents[1], "-o", "same.jaxexport").code == 0
    assert (tmp_path / "same.jaxexport").read_bytes() == golden.artifact.read_bytes()
    assert record_of(tmp_path / "same.jaxexport").converted_from.way == "unchanged"


def test_a_conversion_without_a_golden_is_not_verified(convert, refused_golden, tmp_path):
    shutil.copy(refused_golden.artifact, "alone.jaxexport")
    shutil.rmtree("golden")
    ended = convert("alone.jaxexport", "-o", "new.jaxexport", "--json", code=3)
    assert json.loads(ended.out)["verdict"] == "not verified"
    assert "loads, compiles and runs it" in json.loads(ended.out)["message"]
    assert read(tmp_path / "new.jaxexport").envelope.disabled_checks == ()


@pytest.mark.parametrize("dry_run", [False, True])
def test_json_has_a_line_for_each_conversion_that_fails(jaxexport, dry_run):
    words = ["convert", str(LAPACK_GEEV), "missing.jaxexport", "--for", "0.9.2,0.8.1", "-o", "out", "--json"]
    ended = jaxexport(*words, *(["--dry-run"] if dry_run else []), code=2)
    outcomes = [msgspec.json.decode(line, type=ConversionOutcome) for line in ended.out.splitlines()]
    assert [(one.file, one.reader, one.exit_code) for one in outcomes] == [
        *((str(LAPACK_GEEV), "0.9.2", 1), ("missing.jaxexport", "0.9.2", 2)),
        *((str(LAPACK_GEEV), "0.8.1", 1), ("missing.jaxexport", "0.8.1", 2)),
    ]
    assert "lapack_sgeev_ffi crashes jaxlib 0.9.2" in outcomes[0].error
    assert outcomes[0].error in ended.err
    assert outcomes[1].error.startswith("missing.jaxexport: expected a file")


def test_json_of_a_dry_run_says_that_nothing_is_in_the_way(jaxexport):
    ended = jaxexport("convert", OLD, "--for", "0.12.0.1", "-o", "out", "--dry-run", "--json", code=0)
    assert json.loads(ended.out) == {"file": str(OLD), "reader": "0.12.0.1", "exit_code": 0, "error": None}


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (2.0, 1)])
def test_given_arrays_verify_a_conversion_without_a_golden(convert, refused_golden, tmp_path, factor, code):
    arrays = refused_golden.inputs(), refused_golden.outputs()
    for name, leaves in zip(("in.npz", "out.npz"), arrays, strict=True):
        np.savez(name, *(leaf.numpy() * (factor if name == "out.npz" else 1) for leaf in leaves))
    shutil.copy(refused_golden.artifact, "alone.jaxexport")
    shutil.rmtree("golden")
    convert("alone.jaxexport", "-o", "new.jaxexport", "--inputs", "in.npz", "--outputs", "out.npz", code=code)
    assert (tmp_path / "new.jaxexport").exists() == (code == 0)


def test_a_conversion_with_wrong_outputs_is_refused(convert, refused_golden, tmp_path):
    store = GoldenStore(tmp_path / "golden")
    files = {**refused_golden.files(), OUTPUTS: refused_golden.content("inputs.npz")}
    manifest = msgspec.structs.replace(refused_golden.manifest, files={name: sha256(x) for name, x in files.items()})
    store.write(manifest, files)
    ended = convert(refused_golden.artifact, "-o", "new.jaxexport", code=1)
    assert "not written: the converted artifact ends in numerics in stage compare" in ended.err
    assert not list(tmp_path.glob("new.*"))


@pytest.mark.usefixtures("in_a_bad_reader")
def test_a_conversion_that_crashes_is_refused(jaxexport, goldens, here, tmp_path):
    golden = goldens["dies_by_segv"]
    ended = jaxexport("convert", str(golden.artifact), "--for", here.jaxlib, "-o", "new.jaxexport", code=1)
    assert "ends in crash" in ended.err
    assert not list(tmp_path.iterdir())


def test_a_call_that_would_crash_the_reader_is_refused(convert, tmp_path):
    ended = convert(DATA / "0.12.0.1" / "cholesky.jaxexport", "-o", "new.jaxexport", reader="0.8.1", code=1)
    assert "lapack_spotrf_ffi crashes jaxlib 0.8.1 by signal 11" in ended.err
    assert "--replace-custom-calls" in ended.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("no.jaxexport", "-o", "out"), "expected a file to read, found No such file"),
        ((".", "-o", "out"), "expected an artifact, or the folder of one golden"),
        ((DATA / "0.6.2" / "mlp.jaxexport", "-o", DATA / "0.6.2" / "mlp.jaxexport"), "would replace the original"),
        ((DATA / "0.6.2" / "mlp.jaxexport", DATA / "0.8.1" / "mlp.jaxexport", "-o", "out"), "would both be written"),
        ((DATA / "0.6.2" / "mlp.jaxexport", "-o", "out", "--inputs", "in.npz"), "must be given together"),
        ((DATA / "0.6.2" / "mlp.jaxexport", "-o", "out", "--goldens", "none"), "expected a folder of goldens"),
    ],
)
def test_bad_input_is_one_error_and_writes_nothing(convert, tmp_path, words, message):
    ended = convert(*words, code=2)
    assert message in ended.err
    assert ended.err.count("error:") == 1
    assert not list(tmp_path.iterdir())


def test_an_unknown_reader_is_bad_input(convert):
    ended = convert(DATA / "0.6.2" / "mlp.jaxexport", "-o", "out", reader="0.12.0.11", code=2)
    assert "--for: jaxlib 0.12.0.11 is not in the release calendar. Did you mean '0.12.0.1'?" in ended.err
    ended = convert(DATA / "0.6.2" / "mlp.jaxexport", "-o", "out", reader="Iree", code=2)
    assert "found 'Iree'. Did you mean 'iree'?" in ended.err


def test_the_worst_result_of_several_conversions_sets_the_exit_code(convert, refused_golden, tmp_path, here):
    bad = tmp_path / "bad.jaxexport"
    bad.write_bytes(b"not an artifact")
    ended = convert(refused_golden.artifact, bad, "-o", "out", code=2)
    assert (tmp_path / "out" / ARTIFACT).is_file()
    assert "bad.jaxexport" in ended.err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "not the record of a conversion"),
        (b"[" * 2_000, "not the record of a conversion"),
        (b" " * (1 << 20) + b"{}", "expected at most 1,048,576 bytes, found 1,048,578"),
        (None, "is the record of another file"),
    ],
)
def test_inspect_reports_a_damaged_conversion_record(convert, jaxexport, goldens, tmp_path, content, problem):
    golden = goldens["waves"]
    convert(golden.artifact, "--goldens", golden.folder.parents[1], "-o", "a.jaxexport")
    record = tmp_path / "a.jaxexport.converted.json"
    of_another = record.read_bytes().replace(golden.manifest.files[ARTIFACT].encode(), b"0" * 64)
    record.write_bytes(of_another if content is None else content)
    ended = jaxexport("inspect", "a.jaxexport", code=0)
    assert problem in ended.out


@pytest.mark.parametrize(
    ("via", "artifact", "reader", "done"),
    [
        ("rewrite", REWRITTEN, "0.8.1", "converted"),
        ("export", NEW, "0.9.2", "exported again"),
        ("auto", REWRITTEN, "0.8.1", "converted"),
    ],
)
def test_convert_exits_3_if_an_environment_cannot_be_built(jaxexport, cwd, monkeypatch, via, artifact, reader, done):
    monkeypatch.setenv("UV_OFFLINE", "1")
    for name in ("UV_CACHE_DIR", "JAXEXPORT_CACHE"):
        monkeypatch.setenv(name, str(cwd / name))
    ended = jaxexport("convert", artifact, "--for", reader, "-o", "new.jaxexport", "--via", via, "--json", code=3)
    assert (json.loads(ended.out)["exit_code"], Path("new.jaxexport").exists()) == (3, False)
    first, *more = [line for line in ended.err.splitlines() if "error:" in line]
    assert first.startswith(f"jaxexport: error: {artifact}: not {done} for jaxlib {reader}: ")
    assert "Unset UV_OFFLINE" in " ".join(ended.err.split())
    assert not more, "one failure is one error"


@pytest.mark.parametrize("again", [True, False])
def test_via_auto_exports_again_if_rewriting_is_refused(convert, refused_golden, monkeypatch, tmp_path, again):
    """A rewritten artifact stands in for a newly exported one; test_conversions_in_releases.py exports real ones."""
    rewrite = conversions.convert

    def refuse(*args, **options):
        raise ConversionRefused("a.jaxexport: an operation is in the way.")

    def export_again(artifact, reader, calendar, allow, notify):
        if not again:
            raise ConversionRefused("a.jaxexport: no release reads it.")
        made = rewrite(artifact, reader, refuse, allow=allow)
        return dataclasses.replace(made, way="exported again", why="jaxlib 1.2 reads it")

    monkeypatch.setattr(conversions, "convert", refuse)
    monkeypatch.setattr(conversions, "export_again", export_again)
    assert convert(refused_golden.artifact, "-o", "no.jaxexport").code == 1
    ended = convert(refused_golden.artifact, "-o", "new.jaxexport", "--via", "auto")
    if again:
        assert ended.code == 0, ended.err
        record = record_of(tmp_path / "new.jaxexport")
        assert record.converted_from.way == "exported again"
        assert record.why == "jaxlib 1.2 reads it; rewriting was refused: a.jaxexport: an operation is in the way."
    else:
        assert ended.code == 1
        assert "an operation is in the way. a.jaxexport: no release reads it." in ended.err
        assert not list(tmp_path.glob("*.jaxexport"))
