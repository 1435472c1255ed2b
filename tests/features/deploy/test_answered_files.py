"""`jaxexport can-i-deploy` for an artifact in a file, for converted files and for folders."""

import json
import re
import shlex
import shutil
from pathlib import Path

import msgspec
import pytest
from asking import CASE, KEPT, NEW, OTHER, answers, ran
from commands import process, stored
from making import ARTIFACTS, files, manifest, write_golden

from export_core.artifact import read
from export_core.artifact.envelope.encode import encode
from export_core.features.convert.convert import REWRITTEN
from export_core.features.deploy.answers import Deployability
from export_core.goldens import Golden, GoldenStore
from export_core.goldens.conversion_record import CONVERTED, ConversionRecord, dump_record
from export_core.goldens.manifest import EXPORTED_AGAIN, ConvertedFrom
from export_core.goldens.store import ARTIFACT, sha256
from export_core.matrix import Verdict


def test_the_answer_for_a_file_comes_from_the_results_of_its_golden(ask):
    stored(ran(Verdict.PASS, "0.9.2"))
    Path("model.bin").write_bytes(files(jaxlib="0.9.2")[ARTIFACT])
    ended = ask("model.bin", "serving", "--json")
    assert answers(ended) == [("serving", f"model.bin ({CASE}/0.9.2-cpu)", "yes")]


def test_a_file_without_a_golden_has_only_a_forecast(ask):
    stored(ran(Verdict.PASS, "0.9.2"))
    Path("new.bin").write_bytes(NEW.read_bytes())
    assert ask("new.bin", "serving").code == 1
    Path("old.bin").write_bytes((ARTIFACTS / "0.8.1" / "mlp.jaxexport").read_bytes())
    ended = ask("old.bin", "serving", code=3)
    assert "run       jaxexport goldens add --artifact old.bin --inputs INPUTS.npz" in ended.out


@pytest.mark.parametrize(
    ("writer", "fitting"),
    [("0.12.0.1", " (JAXLIB, which wrote it, is one of 0.11.2, 0.12.0, 0.12.0.1)"), ("0.9.2", "")],
)
def test_the_command_to_add_a_file_has_writer_option_if_needed(ask, writer, fitting):
    """The command has --writer if the file does not show its writer; the answer lists the possible writers."""
    Path("export_compat.yaml").write_text("deployed: [{name: new, jaxlib: 0.12.0.1}]\n")
    Path("new.bin").write_bytes((ARTIFACTS / writer / "mlp.jaxexport").read_bytes())
    (answer,) = msgspec.json.decode(ask("new.bin", "new", "--json", code=3).out, type=Deployability).answers
    adding = answer.run.partition(" --case ")[2]
    assert adding == ("CASE --writer JAXLIB" if fitting else "CASE")
    assert answer.why.endswith(f": make it a golden{fitting}, and ask again")


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_running_the_printed_commands_answers_yes_for_a_converted_file(tmp_path, jaxexport):
    golden = Path("golden", "tests.compat.test_linear_algebra.test_cholesky", "0.12.0.1-cpu")
    shutil.copytree(KEPT.root.parent / golden, tmp_path / golden)
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.9.2}]\n")
    made = ("convert", str(golden / ARTIFACT), "--for", "serving", "--replace-custom-calls", "-o", "a.jaxexport")
    assert jaxexport(*made).code == 0
    asked = ("can-i-deploy", "a.jaxexport", "--to", "serving", "--as-of", "2026-11-22")
    (unknown,) = msgspec.json.decode(jaxexport(*asked, "--json", code=3).out, type=Deployability).answers
    assert unknown.why.endswith("convert that golden too, run it, and ask again")
    *_, ended = [jaxexport(*shlex.split(part)[1:]) for part in unknown.run.split("; ")]
    assert (ended.code, ended.out.split()[3]) == (0, "yes")


def converted_file(original: Golden, way: str, artifact: str = "0.9.2/mlp") -> None:
    """Write a file and the record by which it was converted from a golden for jaxlib 0.9.2."""
    content = encode(read(ARTIFACTS / f"{artifact}.jaxexport").envelope)
    Path("a.jaxexport").write_bytes(content)
    origin = ConvertedFrom(original.manifest.files[ARTIFACT], "0.9.2", way, (), "pytest-jaxexport 0.2.0")
    Path("a.jaxexport.converted.json").write_bytes(
        dump_record(ConversionRecord(CONVERTED, "jaxlib 0.9.2 agrees", sha256(content), origin, ""))
    )


def test_a_golden_and_its_converted_file_run_into_separate_folders(ask):
    converted_file(GoldenStore(Path("golden")).goldens()[0], REWRITTEN)
    asked = msgspec.json.decode(ask(CASE, "serving", "a.jaxexport", "--json", code=3).out, type=Deployability)
    folders = [part.split()[-1] for answer in asked.answers for part in answer.run.split("; ") if " matrix " in part]
    assert len({*folders}) == 2
    assert all(folder.startswith(".jaxexport/deploy/serving-") for folder in folders)


def test_a_converted_file_gets_commands_that_convert_its_golden(ask):
    converted_file(GoldenStore(Path("golden")).goldens()[0], REWRITTEN)
    ended = ask("a.jaxexport", "serving", code=3)
    convert, run, again = ended.out.partition("run       ")[2].splitlines()[0].split("; ")
    assert convert == f"jaxexport convert golden/{CASE}/0.9.2-cpu --for 0.9.2 --output converted/0.9.2"
    assert run.startswith("jaxexport matrix ")
    assert " --goldens converted/0.9.2 --results .jaxexport/deploy/serving-" in run
    assert again == "jaxexport can-i-deploy a.jaxexport --to serving --goldens converted/0.9.2"
    says = "(its record, which is no evidence, says: jaxlib 0.9.2 agrees): convert that golden too"
    assert says in " ".join(ended.out.split())
    assert "jaxexport can-i-deploy a.jaxexport --to all --goldens converted/0.9.2" in ask("a.jaxexport", "all").out
    assert "jaxexport goldens add" in ask("a.jaxexport", "edge").out  # it was made for another release
    Path("a.jaxexport.converted.json").write_text("{}")
    assert "jaxexport goldens add" in ask("a.jaxexport", "serving", code=3).out


@pytest.mark.parametrize(
    ("way", "calls", "options"),
    [
        (REWRITTEN, ("lapack_spotrf_ffi",), " --replace-custom-calls"),
        (REWRITTEN, (), ""),
        (EXPORTED_AGAIN, ("lapack_spotrf_ffi",), " --via export"),
    ],
)
def test_a_converted_file_is_converted_again_in_the_same_way(way, calls, options, ask):
    made = manifest("tests.test_a.test_g", "0.9.2", custom_calls=calls)
    converted_file(write_golden(GoldenStore(Path("kept")), made), way)
    shutil.copy("export_compat.yaml", "other.yaml")
    stored(ran(Verdict.PASS, "0.9.2"), folder="run")
    words = ("--goldens", "kept", "--policy", "other.yaml", "--results", "run")
    (unknown,) = msgspec.json.decode(ask("a.jaxexport", "serving", *words, "--json").out, type=Deployability).answers
    convert, run, again = unknown.run.split("; ")
    assert convert.endswith(f" --output converted/0.9.2{options} --policy other.yaml")
    assert " --goldens converted/0.9.2 --policy other.yaml --results run/deploy/serving-" in run
    assert again.endswith(" --to serving --goldens converted/0.9.2 --policy other.yaml --results run")


def test_custom_calls_in_a_file_of_unknown_writer_are_not_promised(ask):
    data = (ARTIFACTS / "0.9.2" / "symbolic.jaxexport").read_bytes()
    Path("new.bin").write_bytes(re.sub(rb"StableHLO_v1\.\d\d\.\d", b"StableHLO_v1.9.10", data))
    (unknown,) = msgspec.json.decode(ask("new.bin", "serving", "--json", code=3).out, type=Deployability).answers
    assert unknown.why == (
        "it should load; not promised, since its writer is not known: shape_assertion; no stored result shows that it "
        "runs: make it a golden, and ask again"
    )


@pytest.mark.parametrize("folder", [f"golden/{CASE}/0.9.2-cpu", f"golden/{CASE}"], ids=["golden", "case"])
def test_a_golden_can_be_asked_about_by_its_folder(ask, folder):
    stored(ran(Verdict.PASS, "0.9.2"))
    assert f"{CASE}/0.9.2-cpu: it ran in jaxlib 0.9.2" in ask(folder, "serving", code=0).out


def test_a_golden_in_another_golden_folder_can_be_asked_about(ask):
    write_golden(GoldenStore(Path("converted", "0.9.2")), manifest(OTHER, "0.9.1"), files(jaxlib="0.8.1"))
    ended = ask(f"converted/0.9.2/{OTHER}/0.9.1-cpu", "serving", code=3)
    assert f"it is the artifact of {OTHER}/0.9.1-cpu in converted/0.9.2: run that golden" in " ".join(ended.out.split())


def test_the_command_for_a_goldens_file_runs_the_golden_in_its_folder(ask):
    there = GoldenStore(Path("converted", "0.9.2"))
    artifact = write_golden(there, manifest(OTHER, "0.9.1"), files(jaxlib="0.8.1")).artifact
    ended = ask(artifact, "serving", code=3)
    assert f"it is the artifact of {OTHER}/0.9.1-cpu in converted/0.9.2: run that golden, and ask again" in ended.out
    run, again = ended.out.partition("run       ")[2].splitlines()[0].split("; ")
    words = f"--cases {OTHER} --writers 0.9.1 --goldens converted/0.9.2 --results .jaxexport/deploy/serving-"
    assert words in run
    assert again == f"jaxexport can-i-deploy {artifact} --to serving --goldens converted/0.9.2"
    assert "jaxexport convert" not in ended.out


def test_an_answer_no_for_a_golden_in_another_folder_has_no_command(ask):
    there = GoldenStore(Path("converted", "0.9.2"))
    content = {**files(jaxlib="0.9.2"), ARTIFACT: (ARTIFACTS / "0.9.2" / "cholesky.jaxexport").read_bytes()}
    artifact = write_golden(there, manifest(OTHER, "0.9.2"), content).artifact
    (no,) = msgspec.json.decode(ask(artifact, "serving", "--json", code=1).out, type=Deployability).answers
    assert no.why.endswith(f"; it is the artifact of {OTHER}/0.9.2-cpu in converted/0.9.2")
    assert no.run == ""


def test_the_forecast_answer_no_names_the_release_and_the_reason(ask):
    artifact = ARTIFACTS / "0.9.2" / "cholesky.jaxexport"
    assert f"{artifact}: jaxlib 0.9.2 does not run it: LAPACK calls crash" in " ".join(
        ask(artifact, "serving").out.split()
    )


def test_a_folder_with_a_savedmodel_can_be_asked_about(tmp_path):
    """For targets that load the model, the answer is unknown, since no result is stored; for others it is no."""
    targets = (
        "{name: new, reader: tensorflow==2.21.0}, {name: old, reader: tensorflow==2.19.1}, {name: x, jaxlib: 0.10.2}"
    )
    Path("export_compat.yaml").write_text(f"deployed: [{targets}]\n")
    ended = process("can-i-deploy", ARTIFACTS / "savedmodels" / "orbax", "--to", "all", "--json")
    given = json.loads(ended.out)["answers"]
    assert [(answer["target"], answer["answer"]) for answer in given] == [
        ("new", "unknown"),
        ("old", "no"),
        ("x", "no"),
    ]
    assert "jaxlib 0.10.2 loads no SavedModel: only TensorFlow does" in given[2]["why"]
    assert ended.code == 1
