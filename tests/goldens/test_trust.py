"""All that can be checked in a golden is checked: names, numbers, patterns, nesting, kinds of files."""

import math
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from making import files, manifest, write_golden, writer

from export_core.base import atomic, yaml_text
from export_core.base.patterns import problem_of_pattern
from export_core.base.tolerances import FLOATS
from export_core.export.golden_checks import MISMATCH, NO_VJP, WRONG_DEVICES
from export_core.goldens import Check, Comparison, FactorGroup, Golden, GoldenError, GoldenStore, Options, Origin
from export_core.goldens.arrays import from_npz, leaf_of, noise_to_npz
from export_core.goldens.manifest import ConvertedFrom, NoiseRecord, UndecidedOutput
from export_core.goldens.manifest_file import check_manifest, dump_manifest, load_manifest
from export_core.goldens.store import INPUTS, NOISE, OUTPUTS, sha256
from export_core.goldens.verify import verify_goldens
from export_core.numbers.noise import check_noise
from export_core.releases import load_calendar

HASH = sha256(b"")
LISTED = {INPUTS: HASH, OUTPUTS: HASH}


@pytest.fixture
def store(tmp_path) -> GoldenStore:
    return GoldenStore(tmp_path / "golden")


def check(**fields: object) -> dict[str, tuple[Check, ...]]:
    return {"checks": (Check(**{"name": "again", **fields}),)}


def noise(**fields: object) -> dict[str, object]:
    record = NoiseRecord("0.12.0.1", "AVX2", 6, ())
    return {"noise": msgspec.structs.replace(record, **fields), "files": {**LISTED, NOISE: HASH}}


def converted(**fields: str) -> dict[str, object]:
    made = ConvertedFrom(HASH, "0.9.2", "rewritten", (), "pytest-jaxexport")
    return {"converted_from": msgspec.structs.replace(made, **fields)}


WITHOUT = {"options": Options(("tpu",), without_outputs="why")}

NOT_FILE_NAMES = ("../outside", "/etc/passwd", "C:outside", "..\\outside", "..", "a\0b", "golden.yaml")

BAD: dict[str, tuple[dict[str, object], str]] = {
    **{f"the file {name!a}": ({"files": {name: HASH}}, "names of files beside") for name in NOT_FILE_NAMES},
    "no hash": ({"files": {INPUTS: "none"}}, "SHA-256 of 64"),
    "unlisted inputs": (check(inputs="more.npz", outputs=OUTPUTS), "inputs: expected one of `files`"),
    "unlisted outputs": (check(outputs="../o.npz"), "outputs: expected one of `files`"),
    "nothing to check": (check(), "expected either `outputs` or `refused`"),
    "no expression": (check(refused="(["), "expected a regular expression, found"),
    "an endless expression": (check(refused="(a+)+b"), "one * or + at most in each alternative"),
    "a deep expression": (check(refused="(" * 900), "expected a regular expression, found"),
    "a long expression": (check(refused="a" * 2000), "at most 1000 characters"),
    "a path to register": ({"options": Options(("cpu",), register=("../evil",))}, "dotted name of a Python module"),
    "nothing registered": ({"options": Options(("cpu",), register=("nodes",))}, "expected its copy nodes.register.py"),
    "an endless mesh": ({"options": Options(("cpu",), mesh={"x": 10**9})}, "at most 65536 devices"),
    "an empty mesh": (check(outputs=OUTPUTS, mesh={"x": 0}), "sizes of 1 or more"),
    "a negative order": (check(outputs=OUTPUTS, vjp=-1), "order of a derivative"),
    "an infinite rtol": ({"comparison": Comparison(rtol=math.inf)}, "finite number of 0 or more, found inf"),
    "no number": ({"comparison": Comparison(atol=math.nan)}, "finite number of 0 or more, found nan"),
    "a negative ulp": ({"comparison": Comparison(ulp=-1)}, "whole number of 0 or more, found -1"),
    "an unknown comparator": ({"comparison": Comparison("close")}, "expected one of allclose"),
    "code as comparator": ({"comparison": Comparison("os:system('x')")}, "expected module:function"),
    "factors by no comparator": ({"factors": (FactorGroup("close", (0,)),)}, "factors: expected a comparator of eigh"),
    "factors that are no outputs": ({"factors": (FactorGroup("eig", (99,)),)}, "factors: expected numbers of its"),
    "an output that is two factors": ({"factors": (FactorGroup("qr", (0, 0)),)}, "factors: expected numbers of its"),
    **{f"the case {name!a}": ({"case": name}, "expected the name of a folder") for name in ("../up", ".x", "t\x1b[2J")},
    "no noise.npz": ({**noise(), "files": LISTED}, "expected noise.npz under `files`"),
    "a negative number of runs": (noise(moved=-1), "noise.moved: expected a number of runs from 0 to 1000"),
    "an absurd number of runs": (noise(moved=10**9), "noise.moved: expected a number of runs from 0 to 1000"),
    "noise by no release": (noise(jaxlib="../x"), "noise.jaxlib: expected a version"),
    "no noise without a reason": (noise(unmeasured=("",)), "noise.unmeasured: expected calls whose runs"),
    "more jumps than elements": (noise(jumping={"0": (3, 2)}), "noise.jumping.0: expected a number of elements"),
    "more elements than there are": (
        noise(undecided_outputs={"0": UndecidedOutput(3, 2, 1.0, 1.0)}),
        "noise.undecided_outputs.0: expected a number of elements from 1 to the size of their output, found 3 of 2",
    ),
    "a negative number of elements": (noise(unstable={"0": -1}), "noise.unstable.0: expected a number"),
    "no outputs on a CPU": ({"options": Options(("cpu",), without_outputs="why")}, "that readers run on cpu"),
    "outputs of a golden without": (WITHOUT, "expected no outputs.npz, since the golden"),
    "outputs of a call without": (
        {**check(outputs="again.npz"), **WITHOUT, "files": {INPUTS: HASH, "again.npz": HASH}},
        "expected no `outputs`, since the golden",
    ),
    "outputs by no release": ({"origin": Origin("made", "replayed", "../x")}, "origin.outputs_by: expected a version"),
    "a negative seed": ({"origin": Origin("made", "given", seed=-1)}, "origin.seed: expected a number of 63 bits"),
    "a huge flag": ({"flags": {"x": 2**80}}, "a number of 64 bits"),
    "no platform": ({"options": Options(("c/pu",))}, "options.platforms: expected a platform"),
    "refused on no platform": ({"options": Options(("cpu",), refused_on=("",))}, "refused_on: expected a platform"),
    "a negative order of its own": (
        {"options": Options(("cpu",), vjp_order=-1)},
        "options.vjp_order: expected a whole",
    ),
    "no convention": (
        {"options": Options(("cpu",), calling_convention_version=-1)},
        "version: expected a whole number",
    ),
    "converted from no hash": (converted(sha256="x"), "converted_from.sha256: expected a SHA-256"),
    "converted for no release": (converted(reader="../x"), "converted_from.reader: expected a reader: 0.12.0, tens"),
    "converted for no runtime": (converted(reader="../x==1"), "converted_from.reader: expected a reader: 0.12.0"),
    "converted by no release": (converted(module_by="../x"), "converted_from.module_by: expected a version"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_manifest_that_breaks_a_rule_is_not_loaded(tmp_path, name):
    changes, problem = BAD[name]
    path = tmp_path / "golden.yaml"
    path.write_bytes(dump_manifest(manifest(**{"files": LISTED, **changes})))
    with pytest.raises(GoldenError, match=re.escape(problem)) as raised:
        load_manifest(path)
    assert str(raised.value).startswith(f"{path}: ")


HALF = UndecidedOutput(1, 2, noise=0.25, largest=1.0, leaf="result")


def noisy(store: GoldenStore, values: Sequence[float] = (0.0, 0.25), **fields: object) -> Golden:
    """Write a golden whose output is ones, with noise of these values: by default, its second element is undecided."""
    leaf = leaf_of(np.ones(len(values), np.float32))
    data = noise_to_npz([([leaf], (np.asarray(values),))])
    record = noise(**{"undecided_outputs": {"0": HALF}, **fields})["noise"]
    return write_golden(store, manifest(noise=record), {**files(), NOISE: data})


def test_noise_that_agrees_with_its_golden_is_accepted(store):
    check_noise([noisy(store)])
    assert verify_goldens(store, load_calendar())
    check_noise([noisy(store, undecided_outputs=None)])


def test_undecided_outputs_recorded_despite_a_tolerance_are_accepted(store):
    stored = noisy(store)
    asked = msgspec.structs.replace(stored.manifest, comparison=Comparison(rtol=1e-3))
    check_noise([Golden(asked, stored.folder)])  # as an older version counted derivatives
    wrong = msgspec.structs.replace(asked.noise, undecided_outputs={"7": HALF})
    with pytest.raises(GoldenError, match=r"undecided_outputs: expected \{\}, as its files have it"):
        check_noise([Golden(msgspec.structs.replace(asked, noise=wrong), stored.folder)])


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"undecided_outputs": {}}, "noise.undecided_outputs: expected {'0': {'elements': 1, 'of': 2, 'noise': 0.25, "),
        ({"undecided_outputs": {"1": HALF}}, "noise.undecided_outputs: expected {'0': {'elements': 1"),
        ({"values": (0.0, 0.5, 0.5)}, "noise.npz: expected int16[2] for float32[2], found int16[3]"),
        ({"values": (0.0, 0.0)}, "noise.undecided_outputs: expected {}, as its files have it"),
    ],
)
def test_noise_that_contradicts_its_golden_is_an_error(store, fields, problem):
    golden = noisy(store, **fields)
    with pytest.raises(GoldenError, match=re.escape(problem)) as raised:
        check_noise(store.goldens())
    assert str(raised.value).startswith(f"{golden.folder}: ")
    assert str(raised.value).endswith(f"jaxexport goldens verify --noise --again {golden.id}")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"no arrays", "expected arrays"),
        (noise_to_npz([([leaf_of(np.ones(2))] * 2, (None, None))]), "an array for each of 1 outputs, found 2"),
    ],
    ids=["no arrays", "one too many"],
)
def test_a_noise_file_with_wrong_contents_is_an_error(store, data, problem):
    golden = noisy(store)
    write_golden(store, golden.manifest, {**golden.files(), NOISE: data})
    with pytest.raises(GoldenError, match=rf"noise\.npz: .*{problem}.*goldens verify --noise --again"):
        check_noise(store.goldens())


def test_goldens_verify_checks_noise(jaxexport, store, monkeypatch):
    noisy(store, undecided_outputs={})
    monkeypatch.chdir(store.root.parent)
    ended = jaxexport("goldens", "verify")
    assert (ended.code, ended.out) == (2, "")
    assert (
        "Measure its noise again: jaxexport goldens verify --noise --again tests.test_a.test_f/0.12.0.1-cpu"
        in ended.err
    )


def test_every_golden_of_this_project_on_a_cpu_has_noise():
    sharded = derivatives = 0
    for golden in GoldenStore(Path(__file__).parents[2] / "golden").goldens():
        made = golden.manifest
        if "cpu" not in made.replayed_on or "cpu" in made.options.refused_on:
            continue
        noise = golden.noise()
        for file in {check.outputs for check in made.checks if check.outputs} | {OUTPUTS}:
            leaves = from_npz(golden.folder / file)
            assert [own is not None for own in noise[file]] == [leaf.dtype in FLOATS for leaf in leaves], golden.id
            assert all(own is None or np.isfinite(own).all() for own in noise[file]), golden.id
        sharded += bool(made.options.mesh)
        derivatives += any(check.vjp for check in made.checks)
    assert (sharded > 10, derivatives > 10) == (True, True)


@pytest.mark.parametrize("field", ["jax", "jaxlib", "platform"])
@pytest.mark.parametrize("value", ["", "..", "a/b", "0.9.2\n::error::", "-x"])
def test_a_writer_with_an_invalid_version_or_platform_is_refused(field, value):
    made = manifest(files=LISTED, writer=msgspec.structs.replace(writer(), **{field: value}))
    with pytest.raises(GoldenError, match=rf"writer\.{field}: expected a"):
        check_manifest(made, "golden.yaml")


def test_a_manifest_that_breaks_a_rule_is_not_written(store, tmp_path):
    with pytest.raises(GoldenError, match="case: expected the name of a folder"):
        store.write(manifest("../outside", files=LISTED), {})
    assert list(tmp_path.iterdir()) == []


ALIASES = ["a: &a0 [x, x, x]", *(f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 5))]
LEVELS = yaml_text.FEW_MARKS + 1  # the fewest levels whose nesting is checked


@pytest.mark.parametrize(
    "text",
    [
        *("[" * LEVELS, "a: " + "{a: " * LEVELS, "- " * LEVELS + "x", "? " * LEVELS),
        *("\n".join(" " * level + "a:" for level in range(LEVELS)), "\n".join(ALIASES)),
    ],
    ids=["lists", "tables", "block lists", "keys", "block tables", "aliases"],
)
def test_deeply_nested_or_aliased_yaml_is_an_error(tmp_path, text):
    path = tmp_path / "golden.yaml"
    path.write_text(text)
    started = time.monotonic()
    message = r"golden\.yaml: not a golden's manifest: .*(nested at most|not |maximum nesting depth|no alias, found)"
    with pytest.raises(GoldenError, match=message):
        load_manifest(path)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("kind", ["link", "FIFO", "device"])
@pytest.mark.parametrize("name", ["golden.yaml", "artifact.jaxexport", "inputs.npz"])
def test_only_regular_files_are_read(store, tmp_path, kind, name):
    path = write_golden(store, manifest()).folder / name
    path.rename(tmp_path / "outside")
    if kind == "FIFO":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "outside" if kind == "link" else "/dev/zero")
    with pytest.raises(GoldenError, match="expected a regular file, found a"):
        verify_goldens(store, load_calendar())


@pytest.mark.parametrize("which", ["tests.test_a.test_f", "tests.test_a.test_f/0.12.0.1-cpu"], ids=["case", "writer"])
def test_a_golden_behind_a_link_is_refused(store, tmp_path, which):
    write_golden(store, manifest())
    linked = store.root / which
    linked.rename(tmp_path / "outside")
    linked.symlink_to(tmp_path / "outside")
    with pytest.raises(GoldenError, match="expected a folder, found a symbolic link"):
        store.goldens()


@pytest.mark.parametrize("which", ["tests.test_a.test_f", "tests.test_a.test_f/0.12.0.1-cpu"], ids=["case", "writer"])
@pytest.mark.parametrize("target", ["outside", "nowhere"])
def test_a_golden_is_not_written_into_a_linked_folder(store, tmp_path, which, target):
    (tmp_path / "outside" / ".old-0.9.2-cpu").mkdir(parents=True)
    linked = store.root / which
    linked.parent.mkdir(parents=True)
    linked.symlink_to(tmp_path / target)
    with pytest.raises(GoldenError, match="expected a folder, found a symbolic link"):
        write_golden(store, manifest())
    assert [path.name for path in (tmp_path / "outside").iterdir()] == [".old-0.9.2-cpu"]
    assert not (tmp_path / "nowhere").exists()


def test_no_golden_is_written_into_another(store):
    outer = write_golden(store, manifest())
    with pytest.raises(GoldenError, match="expected a folder of goldens, found a part of the golden"):
        write_golden(GoldenStore(outer.folder / "goldens"), manifest())
    outer.verify()


@pytest.mark.parametrize(
    "pattern",
    [
        "ex.*for .* dev",
        "(a+)+",
        "(a|aa)*b",
        "(a|a+)(b|b+)",
        "((a|b)c)+",
        "a{1000}{1000}",
        "x\\)(a+)*",
        "[]](a+)*[]]",
        "[\\]](a+)+[\\]]",
        "(?x)#[\n(a+)+#]",
        "(?:a+)*",
        "(?=a+)*b",
        "a?" * 9,
    ],
)
def test_a_pattern_of_unbounded_search_time_is_refused(pattern):
    assert "found " in problem_of_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        NO_VJP,
        WRONG_DEVICES,
        MISMATCH,
        "b >= 2|b - 2|Expected '",
        r"\(\d+, 3\)",
        "[(+*{]+x",
        "(?:no|an) (?i:handler)",
        "colou?r .*?s",
    ],
)
def test_patterns_of_bounded_search_time_are_accepted(pattern):
    assert problem_of_pattern(pattern) == ""


def test_a_write_that_the_disk_did_not_confirm_is_an_error(store, monkeypatch):
    calls = iter(range(2))

    def fails_at_last(folder: Path) -> None:
        if next(calls) == 1:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(atomic, "sync_folder", fails_at_last)
    with pytest.raises(GoldenError, match="is written and complete, but the disk did not confirm it") as raised:
        write_golden(store, manifest())
    assert "Nothing stored was changed" not in str(raised.value)
    assert [golden.id for golden in store.goldens()] == ["tests.test_a.test_f/0.12.0.1-cpu"]
