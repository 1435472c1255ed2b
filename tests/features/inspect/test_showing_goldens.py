"""`jaxexport inspect CASE/WRITER`: all of one golden on a screen."""

import json
import re
import shutil
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest
from commands import assert_bad_input

from export_core.features.inspect.golden import _OF_NOISE, golden_screen
from export_core.goldens import Golden, GoldenStore
from export_core.goldens.arrays import Leaf, from_npz, to_npz
from export_core.goldens.manifest import NoiseRecord
from export_core.policy import Policy
from tools.schemas import schema

GOLDEN = Path(__file__).parents[3] / "golden"
CASE = "tests.compat.test_programs.test_random"


@pytest.fixture
def copied(tmp_path) -> Path:
    """A folder of another project with copies of two goldens of this repository, both of one case."""
    for writer in ("0.6.2-cpu", "0.12.0.1-cpu"):
        shutil.copytree(GOLDEN / CASE / writer, tmp_path / "golden" / CASE / writer)
    return tmp_path / "golden"


@pytest.mark.parametrize(
    "words", [("inspect",), ("diff", f"{CASE}/0.6.2-cpu"), ("audit",), ("convert", "--for", "0.9.2", "-o", "new")]
)
def test_the_error_in_a_subfolder_names_the_folder_with_the_golden(words, copied, jaxexport, monkeypatch):
    (below := copied.parent / "below").mkdir()
    (below / "golden").mkdir()
    monkeypatch.chdir(below)
    here = f"There are goldens in {copied}: run this command in {copied.parent}."
    assert here in jaxexport(*words, f"{CASE}/0.12.0.1-cpu", code=2).err
    others = [word.replace(CASE, "tests.test_other.test_f") for word in words]
    assert here not in jaxexport(*others, "tests.test_other.test_f", code=2).err


def test_one_screen_shows_all_of_a_golden(copied, jaxexport):
    out = jaxexport("inspect", f"{CASE}/0.12.0.1-cpu").out
    manifest = GoldenStore(copied).generations(CASE)[-1].manifest
    for text in (
        manifest.test,
        "jaxlib: 0.12.0.1, built: 2026-10-20",
        "jax_enable_x64: false",
        "rtol: null",
        manifest.signature.in_tree,
    ):
        assert text in out
    assert "calling convention 10, and @main follows it" in out
    assert "inputs        args[0]  key<fry>[]  0 7\n" in out
    first = from_npz(copied / CASE / "0.12.0.1-cpu" / "outputs.npz")[0]
    assert f"outputs       result[0]  {first}  {' '.join(f'{value:.6g}' for value in first.data)}\n" in out
    size = (copied / CASE / "0.12.0.1-cpu" / "outputs.npz").stat().st_size
    assert f"outputs.npz {size / 1e3:.1f} kB" in out
    assert "every file is as its golden.yaml lists it" in out


@pytest.mark.parametrize("name", [CASE, f"{CASE}/0.12.0.1-cpu", f"{CASE}/0.12.0.1", f"golden/{CASE}/0.12.0.1-cpu/"])
def test_the_newest_golden_of_a_case_is_shown(name, copied, jaxexport):
    lines = jaxexport("inspect", name).out.splitlines()
    assert lines[0] == f"{CASE}/0.12.0.1-cpu: in golden/{CASE}/0.12.0.1-cpu"
    assert lines[-1] == "other writers 0.6.2-cpu"


def test_a_file_takes_precedence_over_a_golden_of_the_same_name(copied, jaxexport):
    shutil.copyfile(copied / CASE / "0.6.2-cpu" / "artifact.jaxexport", CASE)
    assert jaxexport("inspect", CASE).out.splitlines()[0].startswith(f"{CASE}: ")
    assert "other writers" not in jaxexport("inspect", CASE).out


def test_a_damaged_golden_is_shown_with_its_problems(copied, jaxexport):
    folder = copied / CASE / "0.12.0.1-cpu"
    (folder / "outputs.npz").write_bytes(b"no arrays")
    (folder / "artifact.jaxexport").write_bytes(b"no artifact")
    (folder / "notes.txt").write_text("mine")
    (folder / "inputs.npz").unlink()
    ended = jaxexport("inspect", CASE)
    out = " ".join(ended.out.split())
    assert ended.code == 0
    assert "outputs.npz: expected arrays in an .npz, found something else" in out
    assert "artifact.jaxexport: damaged: expected SHA-256" in out
    assert "inputs.npz (missing)" in out
    assert "1 file that the manifest does not list: notes.txt" in out


def rows(out: str) -> dict[str, str]:
    """Return the rows of a screen by the name in the first column, each on one line."""
    name, found = "", dict[str, str]()
    for line in out.splitlines():
        name = line[:13].strip() or name
        found[name] = f"{found.get(name, '')} {line[14:].strip()}".strip()
    return found


CALLING = "tests.compat.test_linear_algebra.test_cholesky"
ALLOWED = "tests.compat.test_targets.test_lapack_with_pivoting"


def test_a_golden_is_shown_with_what_loads_it(copied, jaxexport):
    shutil.copytree(GOLDEN / CALLING / "0.12.0.1-cpu", copied / CALLING / "0.12.0.1-cpu")
    shown = rows(jaxexport("inspect", CALLING).out)
    of_file = rows(jaxexport("inspect", f"golden/{CALLING}/0.12.0.1-cpu/artifact.jaxexport").out)
    names = "custom calls", "foreseen", "needs", "loads in", "not in", "runtimes"
    assert {name: shown[name] for name in names} == {name: of_file[name] for name in names}
    assert "custom_calls" not in shown
    # Of three jaxlibs that can have written the file, golden.yaml names the one that did.
    assert ", until 2027-04-18 if 0.12.0.1 did (" in of_file["promised"]
    assert shown["promised"].startswith("to jaxlibs built until 2027-04-18 (180 days after the writer) and from 2026-")


def test_a_goldens_json_names_its_writer(copied, jaxexport):
    ended = jaxexport("inspect", "--json", CASE)
    found = json.loads(ended.out)
    jsonschema.Draft202012Validator(schema("inspect")).validate(found)
    assert found["writer"]["jaxlib"] == "0.12.0.1"
    assert found["promise"]["until"] == ["2027-04-18", "2027-04-18"]


def test_the_noise_of_a_golden_is_shown_in_words(copied, jaxexport):
    shutil.copytree(GOLDEN / CALLING / "0.12.0.1-cpu", copied / CALLING / "0.12.0.1-cpu")
    out = jaxexport("inspect", CALLING).out
    assert "runs with moved inputs: 6\n" in out
    assert "more such runs, with moves of up to 64 units in the last place: 4\n" in out
    fields = set(NoiseRecord.__struct_fields__) - {"jaxlib"}
    assert not [name for name in fields if re.search(rf"^(noise)? +{name}: ", out, re.MULTILINE)]
    assert fields == _OF_NOISE.keys(), "each field has its words"


def test_calls_that_a_golden_allows_count_as_promised(copied, jaxexport):
    shutil.copytree(GOLDEN / ALLOWED / "0.9.2-cpu", copied / ALLOWED / "0.9.2-cpu")
    ended = jaxexport("inspect", ALLOWED, "--readers", "0.12.0.1")
    assert ended.code == 0, ended
    assert "allowed: LAPACK's manual says what it does" in rows(ended.out)["custom calls"]
    assert "every custom call is promised; it is outside the window" in ended.out
    alone = jaxexport("inspect", f"golden/{ALLOWED}/0.9.2-cpu/artifact.jaxexport", "--readers", "0.12.0.1")
    assert (alone.code, "; not promised: lapack_sgeqp3_ffi; " in alone.out) == (1, True)


def test_a_manifest_field_that_contradicts_the_artifact_is_named(copied, jaxexport):
    (path,) = copied.glob(f"{CASE}/0.12.0.1-cpu/golden.yaml")
    path.write_text(path.read_text().replace("  platforms:\n  - cpu\n", "  platforms: [cpu, cuda]\n"))
    wrong = "options.platforms: expected cpu, as in artifact.jaxexport, found cpu, cuda."
    shown = jaxexport("inspect", CASE)
    assert (shown.code, wrong in rows(shown.out)["artifact"], "loads in" in rows(shown.out)) == (0, True, False)
    assert_bad_input(jaxexport("inspect", CASE, "--json"), wrong)
    with_reader = jaxexport("inspect", CASE, "--readers", "0.12.0.1")
    assert (with_reader.code, wrong in with_reader.err, "other writers" in with_reader.out) == (2, True, True)


def test_unknown_manifest_fields_are_shown(copied):
    golden = GoldenStore(copied).generations(CASE)[-1]
    later = msgspec.defstruct(
        "Later",
        [(f.name, f.type) for f in msgspec.structs.fields(golden.manifest)] + [("trials", list), ("remark", dict)],
    )
    trials = [{"name": f"vjp {i}", "shapes": [[4, 2]], "refused": None} for i in range(9)]
    manifest = later(
        **msgspec.structs.asdict(golden.manifest), trials=trials, remark={"platform": "no TPU\x1b[2J here"}
    )
    out = golden_screen(Golden(manifest, golden.folder), [], Policy(), "artifact.jaxexport: damaged")
    assert "trials        name: vjp 0, shapes: 4, 2, refused: null\n" in out
    assert "and 1 more\n" in out
    assert "remark        platform: no TPU\\x1b[2J here\n" in out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (CASE[:-1], f"expected a file, a folder, or a golden in golden, found none. Did you mean '{CASE}'?"),
        ("nope", "nope: expected a file to read, found No such file or directory. Check the path."),
        (f"{CASE}/9.9", "no writer is called '9.9'. There are goldens by 0.6.2-cpu, 0.12.0.1-cpu."),
        ("../golden", "../golden: expected a file to read"),
        ("", "expected a file to read"),
    ],
)
def test_a_name_that_is_no_golden_is_bad_input(name, message, copied, jaxexport):
    assert_bad_input(jaxexport("inspect", name), message)


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        ("goldens: golden\n", "by the noise that its writer measured"),
        (
            f"numbers:\n  - {{cases: ['{CASE}'], rtol: 1.0e-3, reason: measured}}\n",
            "export_compat.yaml:2: numbers[0] (measured): rtol 0.001",
        ),
        (
            "numbers: [{cases: [nothing], ulp: 1, reason: r}, {cases: ['*'], compare: exact, reason: measured}]\n"
            "tolerances: {cpu: {float32: {rtol: 0.5}}}\n",
            "export_compat.yaml:1: numbers[1] (measured): exact",
        ),
        (
            f"numbers: [{{cases: ['*'], reason: measured}}]\nquirks: [{{case: {CASE}, writer: '*', rtol: 0.5, "
            "reason: r, owner: o, issue: i, added: 2026-10-01, expires: 2026-12-01}]\n",
            "export_compat.yaml:2: quirks[0] (r; owner o, i): rtol 0.5 "
            "export_compat.yaml:1: numbers[0] (measured): the default",
        ),
        (
            f"numbers: [{{cases: ['*'], compare: exact, reason: measured}}]\nquirks: [{{case: {CASE}, writer: '*', "
            "ulp: 3, reason: r, owner: o, issue: i, added: 2026-10-01, expires: 2026-12-01}]\n",
            "export_compat.yaml:2: quirks[0] (r; owner o, i): ulp 3, an error: 'exact' takes no tolerances "
            "export_compat.yaml:1: numbers[0] (measured): exact",
        ),
        (
            "numbers: [{cases: ['*'], ulp: 2, reason: measured}]\ntolerances: {cpu: {float32: {rtol: 0.5}}}\n",
            "export_compat.yaml:1: numbers[0] (measured): ulp 2 or wider, by tolerances.cpu of the policy",
        ),
    ],
)
def test_the_screen_shows_the_rule_that_compares_the_golden(policy, shown, copied, jaxexport):
    Path("export_compat.yaml").write_text(policy)
    out = " ".join(jaxexport("inspect", CASE).out.split())
    out = re.sub(r"errors that rounding hides: up to \S+ % of the largest number in output \d+ \(\S+\) ", "", out)
    assert f" compared {shown} artifact " in out


def test_the_screen_shows_a_recorded_tolerance(copied, jaxexport):
    (path,) = copied.glob(f"{CASE}/0.12.0.1-cpu/golden.yaml")
    path.write_text(path.read_text().replace("rtol: null", "rtol: 0.25"))
    assert "compared      as the golden recorded: rtol 0.25\n" in jaxexport("inspect", CASE).out


def test_the_screen_shows_the_noise_of_each_output(copied, jaxexport):
    out = jaxexport("inspect", CASE).out
    (noise,) = GoldenStore(copied).generations(CASE)[-1].noise()["outputs.npz"][:1]
    shown = next(line for line in out.splitlines() if line.startswith("noise  ") and "float64[" in line)
    assert shown.rpartition("]  ")[2].split()[0] == f"{noise.reshape(-1)[0]:.6g}"


def test_each_array_of_a_call_is_shown_with_its_path(copied, jaxexport):
    case = "tests.compat.test_derivatives.test_several_outputs"
    shutil.copytree(GOLDEN / case, copied / case)
    lines = jaxexport("inspect", case).out.splitlines()
    assert "inputs        args[0]['x']  float32[2,3]  0.236068 -0.527864 0.708204 -0.0557281 -0.81966 0.416408" in lines
    assert "outputs       result['mean']  float32[]  -0.00709542" in lines
    assert "              result['signs']  bool[2,3]  True False True False False True" in lines
    assert "              the cotangent of result['mean']  float32[]  -0.95675" in lines
    derivative = f"derivative by args[0]['x']  {from_npz(copied / case / '0.12.0.1-cpu' / 'vjp1.outputs.npz')[0]}  "
    assert any(line.startswith(f"vjp1.outputs  {derivative}") for line in lines)
    assert any(line.strip().startswith("vjp1: derivative by args[0]['x']  float64[2,3]") for line in lines), "its noise"


def test_the_noise_of_a_further_call_names_the_call(copied, jaxexport):
    case = "tests.compat.test_calls.test_model_and_a_symbolic_batch"
    shutil.copytree(GOLDEN / case, copied / case)
    lines = [line.strip() for line in jaxexport("inspect", case).out.splitlines() if "float64[" in line]
    assert [line.removeprefix("noise").partition("  float64")[0].strip() for line in lines] == [
        "result[0]", "result[1].weight", "result[1].bias",
        "call1: result[0]", "call1: result[1].weight", "call1: result[1].bias",
    ]  # fmt: skip


def test_the_screen_names_a_call_without_compared_numbers(copied, jaxexport):
    case = "tests.compat.test_derivatives.test_integer_inputs"
    shutil.copytree(GOLDEN / case, copied / case)
    assert "derivative by args[1]  float0[]  no values\n" in jaxexport("inspect", case).out
    (golden,) = (
        golden for golden in GoldenStore(copied).generations(case) if golden.manifest.writer.id == "0.12.0.1-cpu"
    )
    (golden.folder / "vjp1.outputs.npz").write_bytes(to_npz([Leaf("float0", np.zeros(2, bool))]))
    assert "vjp1: no number is compared, since derivatives by integers" in " ".join(
        jaxexport("inspect", case).out.split()
    )


def test_inspect_counts_elements_that_rounding_can_change_much(copied, jaxexport):
    (path,) = copied.glob(f"{CASE}/0.12.0.1-cpu/golden.yaml")
    text = path.read_text()
    assert "noise:\n" in text
    path.write_text(text.replace("noise:\n", "noise:\n  jumping: {'0': [2, 9]}\n"))
    out = " ".join(jaxexport("inspect", CASE).out.split())
    assert (
        "by the noise that its writer measured output 0 (result[0]): 2 of 9 elements jump: their last bit decides"
        in out
    )
    assert "errors that rounding hides: up to " in out
