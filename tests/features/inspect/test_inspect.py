"""`jaxexport inspect`: an artifact on one screen, as JSON, and its module as text."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from artifacts import DATA, bare, changed, raw, unlisted
from commands import assert_bad_input

from export_core.artifact import DisabledCheck, read, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.main_check import NEWEST
from export_core.features.inspect import artifact_facts
from export_core.features.inspect.artifact_facts import describe
from export_core.features.inspect.screen import LINE, WIDTH, inspect_text, screen
from export_core.policy.terms import Terms
from export_core.releases import load_calendar
from export_core.releases.calendar_entries import calendar_entries, shipped_entries, shipped_runtimes
from tools.schemas import schema

SCREENS = Path(__file__).with_name("screens")
FILES = sorted(DATA.glob("*/*.jaxexport"))
GOLDEN = Path(__file__).parents[3] / "golden"
GOLDENS = sorted(GOLDEN.glob("*/*/artifact.jaxexport"))
KINDS = (
    *("accelerators", "calls", "collectives", "conventions", "effects"),
    *("primitives", "shardings", "targets", "without_outputs"),
)
"""The test modules of which every case is shown, since each looks different on the screen; of others, one case is."""
CASES = {
    path.parts[-3] if module.endswith(KINDS) else module: path
    for path in GOLDENS
    for module in [path.parts[-3].rpartition(".test_")[0]]
}
OLD_GOLDENS = Path(__file__).parents[3] / "studies" / "every_release" / "golden"
SCHEMA = schema("inspect")
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
TERMS = Terms(shipped_entries())
WHEN = "2026-10-20"  # the stored screens have the releases up to this day


@pytest.mark.parametrize("path", sorted(SCREENS.glob("*.txt")), ids=lambda path: path.stem)
def test_the_screen_of_each_artifact_is_as_recorded(path, monkeypatch):
    writer, _, name = path.stem.partition("-")
    artifact = read_bytes((DATA / writer / f"{name}.jaxexport").read_bytes(), f"{name}.jaxexport")
    terms = Terms(tuple(release for release in shipped_entries() if release.built <= WHEN))
    runtimes = {
        name: own if isinstance(own, str) else tuple(release for release in own if release.built <= WHEN)
        for name, own in shipped_runtimes().items()
    }
    monkeypatch.setattr(artifact_facts, "shipped_runtimes", lambda: runtimes)
    assert screen(describe(artifact, terms)) == path.read_text(encoding="utf-8")


def test_the_screen_names_unused_arguments_by_path():
    facts = describe(read(CASES["tests.compat.test_calls.test_state_of_named_tuples"]), TERMS)
    assert "\nunused        argument 3 (args[0][3])\n" in screen(facts)
    assert facts.signature.unused == ("3 (args[0][3])",)


@pytest.mark.parametrize("path", [*FILES, *CASES.values()], ids=lambda path: "-".join(path.parts[-3:-1]))
def test_every_artifact_fits_a_screen_and_the_schema(path):
    shown, as_json_text = (inspect_text(read(path), TERMS, (), as_json=as_json) for as_json in (False, True))
    lines = shown.splitlines()
    assert 12 <= len(lines) <= 50
    assert all(len(line) <= WIDTH + LINE for line in lines[1:])  # the first has the file's whole name
    facts = json.loads(as_json_text)
    VALIDATOR.validate(facts)
    assert set(facts) == set(SCHEMA["$defs"]["Inspection"]["properties"])
    assert facts["sha256"][:16] in shown
    assert facts["nbytes"] == path.stat().st_size


def test_inspect_json_without_a_required_key_fails_the_schema(jaxexport):
    facts = facts_of(jaxexport, FILES[0])
    del facts["modules"][0]["needs"]["stablehlo"]
    with pytest.raises(jsonschema.ValidationError, match="'stablehlo' is a required property"):
        VALIDATOR.validate(facts)


def test_the_json_agrees_with_what_jax_reported(jaxexport):
    truth = json.loads((DATA / "0.12.0.1" / "truth.json").read_bytes())
    for name, expected in truth.items():
        facts = facts_of(jaxexport, DATA / "0.12.0.1" / f"{name}.jaxexport")
        signature = [facts["signature"][field] for field in ("name", "inputs", "outputs")]
        assert signature == [expected[field] for field in ("fun_name", "in_avals", "out_avals")]
        for field in ("platforms", "nr_devices", "calling_convention_version"):
            assert facts[field] == expected[field]


def facts_of(jaxexport, path):
    facts = json.loads(jaxexport("inspect", path, "--json").out)
    VALIDATOR.validate(facts)
    return facts


def test_a_bare_module_shows_main_and_the_stablehlo_promise(jaxexport, tmp_path):
    path = bare(tmp_path, "0.12.0.1/cholesky")
    out = jaxexport("inspect", path, code=0).out
    assert "StableHLO portable artifact" in out
    assert "tensor<4x4xf32>" in out
    assert "platforms" not in out
    assert "promised      nothing by JAX, whose windows are for what jax.export wrote\n" in out
    assert "by StableHLO 5 years backward and 2 forward, between the builds of StableHLO that wrote and read it" in out
    assert "guaranteed" not in out
    assert "days after" not in out
    facts = facts_of(jaxexport, path)
    assert (facts["envelope"], facts["main"], facts["promise"]) == (None, None, None)
    assert facts["stablehlo_promise"] == {"backward_years": 5, "forward_years": 2, "written_for": "1.18.0"}


def test_a_bare_modules_writer_may_be_newer_than_its_target_version(jaxexport, tmp_path):
    """jaxlib 0.9.2 wrote it for the StableHLO of 0.9.0, which any later release can also write for."""
    path = bare(tmp_path, "0.9.2/mlp")
    facts = facts_of(jaxexport, path)
    assert facts["writer"]["jaxlib"] is None
    assert {"0.9.0", "0.9.2", "0.12.0.1"} < {*facts["writer"]["candidates"]}
    assert "no other release fits" not in jaxexport("inspect", path).out


def test_raw_stablehlo_bytecode_is_named_and_not_read(jaxexport, tmp_path):
    path = raw(tmp_path)
    out = jaxexport("inspect", path).out
    assert f"{path}: raw StableHLO bytecode, no portable artifact, " in out
    assert "function      not read: StableHLO in raw bytecode differs from one build to the next\n" in out
    assert "nothing by StableHLO: only the build that wrote raw bytecode is sure to read it" in out
    facts = facts_of(jaxexport, path)
    assert facts["stablehlo_promise"] is None
    audit = jaxexport("audit", path, code=1)
    assert "nothing by StableHLO: only the build that wrote raw bytecode is sure to read it" in audit.out


@pytest.mark.parametrize(
    ("make", "texts"),
    [
        (
            lambda folder: unlisted(folder, switched_off=True),
            (
                "my_kernel_of_ours × 2: custom call; UNLISTED: is not guaranteed stable by all of the 3 releases",
                "checks        switched off by the exporter: custom_call(my_kernel_of_ours)",
                "lapack_strsm_ffi × 2: LAPACK routine; guaranteed stable",
            ),
        ),
        (
            lambda _: DATA / "0.4.30" / "cholesky.jaxexport",
            (
                "lapack_spotrf × 2: LAPACK routine; DROPPED: was guaranteed by all of the 13 releases that can have "
                "written it",
            ),
        ),
        (
            lambda folder: changed(folder, "0.12.0.1/cholesky", jax_version="0.1.0"),
            (
                "jax 0.1.0, as it says; no jaxlib of the calendar fits",
                "promised      unknown",
                "NOT CHECKED, since its writer is not known",
            ),
        ),
        (lambda folder: changed(folder, "0.12.0.1/mlp", fun_name="\x1b[2Jgone"), (r"\x1b[2Jgone",)),
    ],
    ids=["unlisted", "dropped", "no writer", "control characters"],
)
def test_the_screen_shows_what_is_unusual_in_an_artifact(make, texts, jaxexport, tmp_path):
    out = jaxexport("inspect", make(tmp_path)).out
    for text in texts:
        assert text in out
    assert "\x1b" not in out


def test_a_main_that_contradicts_its_envelope_is_shown(jaxexport, tmp_path):
    path = changed(tmp_path, "0.12.0.1/mlp", module_kept_var_idx=(0,))
    sentence = "@main takes 2 arrays, and the envelope declares 1 kept argument."
    lines = jaxexport("inspect", path).out.splitlines()
    place = lines.index("convention    calling convention 10, and @main does NOT follow it:")
    assert lines[place + 1].strip() == sentence
    assert facts_of(jaxexport, path)["main"] == {"checked": True, "problems": [sentence]}


def test_main_is_not_checked_if_the_convention_is_too_new(jaxexport, tmp_path):
    fields = {"calling_convention_version": NEWEST + 1, "vjp": None, "module_kept_var_idx": (0,)}
    path = changed(tmp_path, "0.12.0.1/mlp", **fields)
    message = f"calling convention {NEWEST + 1}, which is not known here: @main was not checked"
    assert message in jaxexport("inspect", path).out
    assert facts_of(jaxexport, path)["main"] == {"checked": False, "problems": []}


def test_the_promise_is_counted_from_the_writers_build_date(jaxexport):
    calendar = load_calendar()
    assert str(calendar.built("0.9.2")) == "2026-03-18"
    facts = facts_of(jaxexport, DATA / "0.9.2" / "mlp.jaxexport")
    assert facts["writer"]["jaxlib"] == "0.9.2"
    assert facts["promise"] == {
        "backward_days": 180,
        "forward_days": 21,
        "since": ["2026-02-25", "2026-02-25"],
        "until": ["2026-09-14", "2026-09-14"],
    }


def test_inspect_names_all_possible_jaxlibs_of_a_jax(jaxexport):
    """jax 0.12.0.1 works with jaxlibs from 0.11.2 to its own, which write alike: the promise has a range."""
    path = DATA / "0.12.0.1" / "mlp.jaxexport"
    facts = facts_of(jaxexport, path)
    assert (facts["writer"]["jax"], facts["writer"]["jaxlib"]) == ("0.12.0.1", None)
    assert facts["writer"]["candidates"] == ["0.11.2", "0.12.0", "0.12.0.1"]
    assert facts["promise"]["until"] == ["2027-03-16", "2027-04-18"]
    shown = jaxexport("inspect", path).out
    assert "jax 0.12.0.1, as it says; one of jaxlib 0.11.2, 0.12.0, 0.12.0.1: it does not say which" in shown


def test_inspect_names_the_only_possible_jaxlib_of_a_jax(jaxexport, tmp_path):
    facts = facts_of(jaxexport, changed(tmp_path, "0.12.0.1/mlp", jax_version="0.11.2"))
    assert facts["writer"]["jaxlib"] == "0.11.2"


def test_an_artifact_with_a_disabled_check_has_fewer_readers(jaxexport):
    (folder,) = OLD_GOLDENS.iterdir()
    golden = folder / "0.4.26-jax0.4.27-cpu" / "artifact.jaxexport"
    out = jaxexport("inspect", golden).out
    assert "checks        switched off by the exporter: shape_assertions\n" in out
    assert "custom calls  none\n" in out
    loads = facts_of(jaxexport, golden)["readers"]
    assert [reader["jaxlib"] for reader in loads if reader["loads"]][-1] == "0.9.2"
    assert "0.11.0 (2026-07-16): jax from 0.10.0 on does not know the disabled check shape_assertions" in out


def test_for_an_unloadable_artifact_inspect_names_a_jax_to_export_with(jaxexport):
    lines = jaxexport("inspect", DATA / "0.9.2" / "mlp.jaxexport", "--as-of", "2025-01-01").out.splitlines()
    place = lines.index("loads in      no release (0 of the 19 releases known)")
    assert lines[place + 1] == (
        "to do         export it again with jax 0.4.38, or try `jaxexport convert FILE --for 0.4.38 -o OUT`"
    )
    assert not any(line.startswith("to do") for line in jaxexport("inspect", FILES[-1]).out.splitlines())


def test_long_values_are_cut_on_screen_but_not_in_json(jaxexport, tmp_path):
    checks = tuple(DisabledCheck("custom_call", f"target{number}") for number in range(30))
    path = changed(tmp_path, "0.12.0.1/mlp", fun_name="f" * 500, disabled_checks=checks)
    out = jaxexport("inspect", path).out
    assert "and 22 more; --json has all" in out
    assert max(map(len, out.splitlines()[1:])) <= WIDTH + LINE
    assert len(facts_of(jaxexport, path)["disabled_checks"]) == 30


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "expected a file to read, found No such file or directory. Check the path.\n"),
        (b"", "0 bytes"),
        (b"PK\x03\x04 and more", "a zip file"),
        (b"ML\xefR\x0d nothing behind", "expected"),
        (FILES[0].read_bytes()[:1000], "at byte"),
    ],
    ids=["missing", "empty", "zip", "no module", "cut"],
)
@pytest.mark.parametrize("option", [(), ("--json",), ("--mlir",)], ids=["screen", "json", "mlir"])
def test_a_file_without_artifact_gives_one_error_line(content, message, option, jaxexport, tmp_path):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    assert_bad_input(jaxexport("inspect", path, *option), f"jaxexport: error: {path}: ", message)


@pytest.mark.parametrize("words", [["inspect"], ["inspect", "--nothing", "a"]], ids=" ".join)
def test_missing_and_unknown_arguments_are_usage_errors(words, jaxexport):
    ended = jaxexport(*words, code=2)
    assert ended.err.endswith("`jaxexport inspect --help` shows the options.\n")


def test_mlir_option_lets_jaxlib_print_the_module(jaxexport):
    out = jaxexport("inspect", "--mlir", DATA / "0.9.2" / "cholesky.jaxexport").out
    assert out.startswith("module @jit_cholesky")
    assert "stablehlo.custom_call @lapack_spotrf_ffi" in out


def test_mlir_option_without_jaxlib_is_one_error(jaxexport, monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxlib.mlir", None)
    monkeypatch.setitem(sys.modules, "jaxlib.mlir.dialects", None)
    ended = jaxexport("inspect", "--mlir", FILES[0])
    assert_bad_input(ended, "--mlir: expected a jaxlib that prints modules, found none here")


def test_mlir_option_with_a_newer_module_is_one_error(jaxexport, tmp_path):
    path = tmp_path / "newer.jaxexport"
    path.write_bytes(FILES[0].read_bytes().replace(b"custom_call_v2", b"custom_call_v9"))
    assert_bad_input(jaxexport("inspect", "--mlir", path), "cannot read this module")


@pytest.mark.parametrize("option", [[], ["--json"]], ids=["screen", "json"])
def test_the_fast_and_the_full_entry_point_of_inspect_print_the_same(option, monkeypatch, capsys):
    import export_core.cli.app
    import export_core.cli.entry

    printed = []
    for module in (export_core.cli.entry, export_core.cli.app):
        monkeypatch.setattr(sys, "argv", ["jaxexport", "inspect", str(FILES[0]), *option])
        with contextlib.suppress(SystemExit):
            module.main()
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


def test_a_closed_pipe_ends_without_a_traceback():
    nobody, ours = os.pipe()
    os.close(nobody)
    words = [sys.executable, "-m", "export_core", "inspect", str(FILES[0])]
    done = subprocess.run(words, stdout=ours, stderr=subprocess.PIPE, text=True, check=False)
    os.close(ours)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_ascii_terminal_gets_ascii_text():
    words = [sys.executable, "-m", "export_core", "inspect", str(DATA / "0.8.1" / "point.jaxexport")]
    done = subprocess.run(words, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True)
    assert b"2 x float32[4,8]" in done.stdout
    assert re.search(rb"SHA-256 [0-9a-f]{16}\.\.\.\n", done.stdout)


def test_inspecting_imports_no_slow_module():
    """Inspect in a folder without a policy. Importing `dataclasses` alone would take half of the time."""
    code = """
import sys

before = set(sys.modules)
sys.argv = ["jaxexport", "inspect", sys.argv[1]]
from export_core.cli.entry import main
try:
    main()
finally:  # it ends the process
    print(*{name.partition(".")[0] for name in set(sys.modules) - before}, file=sys.stderr)
"""
    words = [sys.executable, "-c", code, str(FILES[0])]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "export_core" in done.stderr
    slow = {"jax", "jaxlib", "numpy", "click", "msgspec", "yaml", "rich", "dataclasses", "inspect", "pathlib", "typing"}
    assert not slow & set(done.stderr.split())
    assert done.stdout.startswith(f"{FILES[0]}: serialized jax.export.Exported")


KNOWN = Path(__file__).parents[3] / "studies" / "known" / "golden"


@pytest.mark.parametrize(
    ("golden", "expected"),
    [
        (GOLDEN / "tests.compat.test_dtypes.test_tiny_dtype[int4]", "2.21.0 may run it, but: Integers of 4 bits"),
        (GOLDEN / "tests.compat.test_primitives.test_windows", "2.3.0 may run it, but: no run of stablehlo."),
        # A wrong number is told beside what befalls every symbolic shape.
        (
            KNOWN / "studies.known.test_programs.test_symbolic_program[symbolic_product]",
            "(litert-unchecked-sizes); A product over several axes with a symbolic batch gives wrong numbers",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_known_reasons_why_a_runtime_may_fail_are_shown(golden, expected):
    shown = screen(describe(read(golden / "0.12.0.1-cpu" / "artifact.jaxexport"), TERMS))
    assert expected in " ".join(shown.split())


def test_releases_shipped_for_inspect_equal_those_of_the_calendar():
    assert shipped_entries() == calendar_entries(load_calendar())


SAVED_MODELS = DATA / "savedmodels"


@pytest.mark.parametrize("writer", ["jax2tf", "keras", "orbax"])
def test_a_folder_with_a_savedmodel_is_one_artifact(writer, jaxexport):
    done = jaxexport("inspect", str(SAVED_MODELS / writer))
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert ": TensorFlow SavedModel, " in lines[0]
    assert "written by    TensorFlow 2.21.0, as it says" in lines
    assert any(line.startswith("function 1    ") for line in lines)
    assert any("version 10, for CPU" in line for line in lines)
    (read_by,) = (line for line in lines if line.startswith("runtimes"))
    assert (
        "tensorflow, savedmodel: read by 2 of 10 releases, 2.20.0, 2.21.0; 2.19.1 takes conventions up to 9" in read_by
    )


def test_a_savedmodels_json_has_its_functions_and_modules():
    artifact = read(SAVED_MODELS / "jax2tf")
    found = json.loads(inspect_text(artifact, TERMS, (), as_json=True))
    VALIDATOR.validate(found)
    assert found["kind"] == "TensorFlow SavedModel"
    assert found["signature"]["name"] == "__saved_model_init_op, scores"
    assert [call["version"] for call in found["saved_model"]["calls"]] == [10, 10, 10]
    assert len(found["modules"]) == 3


def test_only_tensorflow_releases_load_a_savedmodel(jaxexport):
    folder = str(SAVED_MODELS / "orbax")
    done = jaxexport("inspect", folder, "--readers", "savedmodel==2.21.0")
    assert done.code == 0, done
    assert "savedmodel 2.21.0 loads it; it makes no custom call that only jax registers" in done.out
    done = jaxexport("inspect", folder, "--readers", "tensorflow==2.19.1,0.12.0.1")
    assert done.code == 1
    assert "tensorflow 2.19.1 cannot load it (tensorflow 2.19.1 takes conventions up to 9" in done.out
    assert "jaxlib 0.12.0.1 cannot load it (jaxlib 0.12.0.1 loads no SavedModel" in done.out


def test_a_savedmodel_and_a_folder_of_savedmodels_are_audited(jaxexport):
    done = jaxexport("audit", str(SAVED_MODELS / "jax2tf"))
    assert done.code == 0, done
    assert "shape_assertion (check of a symbolic shape)" in done.out
    done = jaxexport("audit", str(SAVED_MODELS))
    assert "3 artifacts: 3 ok" in done.out


def test_inspecting_a_folder_counts_savedmodels(jaxexport):
    done = jaxexport("inspect", str(SAVED_MODELS))
    assert done.code == 0, done
    assert "3 artifacts, " in done.out
    assert "none: TensorFlow SavedModel" in done.out


def test_constraints_found_only_in_the_module_are_shown():
    golden = GOLDEN / "tests.compat.test_symbolic_shapes.test_constraints" / "0.12.0.1-cpu" / "artifact.jaxexport"
    facts = describe(read(golden), TERMS)
    assert {"b >= 2", "b <= 8", "mod(b, 2) == 0"} <= {*facts.signature.constraints}
    assert "each call checks" in screen(facts)


def test_inspect_shows_a_derivatives_different_calling_convention():
    artifact = read(DATA / "0.12.0.1" / "mlp.jaxexport")
    assert " (of derivatives" not in screen(describe(artifact, TERMS))
    vjp = artifact.envelope.vjp._replace(calling_convention_version=9)
    artifact = read_bytes(encode(artifact.envelope._replace(vjp=vjp)))
    assert "(of derivatives 9)" in screen(describe(artifact, TERMS))


def test_releases_that_load_but_cannot_run_are_shown():
    shown = screen(describe(read(DATA / "0.9.2" / "cholesky.jaxexport"), TERMS))
    line = next(line for line in shown.splitlines() if line.startswith("does not run"))
    assert "0.9.2" in line
    assert "LAPACK calls crash in a fresh process (lapack-cold-process)" in line
