"""The check that `main` takes and returns what the envelope declares: it gives no false alarms, and finds forgeries."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from convention_history import HISTORY, SUPPORTED, default_of, supported_by, writable_by
from packaging.version import Version
from stored_artifacts import DATA, FILES

from export_core.artifact import Aval, read, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.main_check import NEWEST, OLDEST, check_main, dimension_names
from export_core.artifact.writers import CONVENTIONS

HERE = Path(__file__).parent
PROGRAMS = HERE / "convention_programs.py"
OLD = sorted((HERE / "conventions").glob("*.jaxexport"))  # by jax 0.4.24, which could be asked for versions 6 to 9
GOLDENS = sorted((HERE.parents[1] / "golden").glob("*/*/artifact.jaxexport"))
DOCS = (HERE.parents[1] / "docs" / "reference" / "calling-conventions.md").read_text(encoding="utf-8")


def exported_by(python: str | Path, folder: Path, *chosen: str, **variables: str) -> list[Path]:
    """Export programs of convention_programs.py with a release, and return the files.

    Args:
        python: the Python of the release.
        folder: the folder to write into.
        chosen: the names of programs; all if there are none.
        variables: more environment variables.
    """
    command = [python, "-W", "ignore", PROGRAMS, folder, *chosen]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **variables})
    return sorted(folder.glob("*.jaxexport"))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> dict[str, Path]:
    """The artifacts that the installed jax exports from convention_programs.py, by name."""
    return {path.stem: path for path in exported_by(sys.executable, tmp_path_factory.mktemp("fresh"))}


def forged(path: Path, **fields: object) -> list[str]:
    """Return the problems that the check finds in an artifact when these fields of its envelope are changed."""
    envelope = read(path).envelope
    assert envelope is not None
    assert check_main(read(path)) == []
    return check_main(read_bytes(encode(envelope._replace(**fields), {*envelope.slots, *fields})))


def test_writers_of_conventions_match_the_history_table():
    # The default differs between rows that write the same versions.
    rows = {Version(row.jax).release: (row.oldest, row.newest) for row in SUPPORTED}
    for first, row in rows.items():
        assert row == next(known for since, known in CONVENTIONS.items() if since <= first)


def test_main_of_stored_artifacts_follows_its_convention():
    paths = [*FILES, *GOLDENS, *OLD]
    assert {str(path): problems for path in paths if (problems := check_main(read(path)))} == {}


def test_main_follows_its_convention_in_the_installed_release(fresh):
    assert len(fresh) >= 25
    assert {name: problems for name, path in fresh.items() if (problems := check_main(read(path)))} == {}


def test_main_follows_a_requested_older_convention(tmp_path):
    chosen = ("plain", "everything", "keys", "sharded_platforms", "nested")
    paths = exported_by(sys.executable, tmp_path, *chosen, JAX_EXPORT_CALLING_CONVENTION_VERSION="9")
    assert {read(path).envelope.calling_convention_version for path in paths} == {9}
    assert [problem for path in paths for problem in check_main(read(path))] == []


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        (
            "plain",
            {"module_kept_var_idx": ()},
            "@main takes 1 array, and the envelope declares 0 kept arguments.",
        ),
        (
            "unused",
            {"module_kept_var_idx": (1, 7)},
            "@main: module_kept_var_idx must be ascending indices of the 3 in_avals, and is 1, 7.",
        ),
        (
            "unused",
            {"module_kept_var_idx": (2,)},
            "argument 0 of @main is tensor<4x8xf32>, and in_avals[2] is int32[3], which is tensor<3xi32> in a module.",
        ),
        (
            "plain",
            {"in_avals": (Aval("bfloat16", (4, 8)),)},
            "argument 0 of @main is tensor<4x8xf32>, and in_avals[0] is bfloat16[4,8], which is tensor<4x8xbf16> in a "
            "module.",
        ),
        (
            "plain",
            {"out_avals": (Aval("float32", (8, 4)),)},
            "result 0 of @main is tensor<4x8xf32>, and out_avals[0] is float32[8,4], which is tensor<8x4xf32> in a "
            "module.",
        ),
        (
            "keys",
            {"out_avals": (Aval("key<rbg>", (2,)), Aval("key<fry>", (3,)), Aval("float32", ()))},
            "result 0 of @main is tensor<2x2xui32>, and out_avals[0] is key<rbg>[2], which is tensor<2x4xui32> in a "
            "module.",
        ),
        (
            "plain",
            {"platforms": ("cpu", "tpu"), "uses_global_constants": True},
            "@main takes no platform index, and the envelope names 2 platforms (cpu, tpu).",
        ),
        ("platforms", {"platforms": ("tpu",)}, "@main takes a platform index, and the envelope names only tpu."),
        (
            "plain",
            {"ordered_effects": ("A",)},
            "@main takes 0 tokens, and its calling convention asks for 1: one for each ordered effect since version 9, "
            "none before.",
        ),
        (
            "ordered",
            {"calling_convention_version": 8},
            "@main takes 2 tokens, and its calling convention asks for 0: one for each ordered effect since version 9, "
            "none before.",
        ),
        (
            "symbolic",
            {"in_avals": (Aval("float32", ("b", "c")),)},
            "the function that @main wraps, @_wrapped_jax_export_main, takes as jax.global_constant a, b; the in_avals "
            "and platforms "
            "ask for b, c.",
        ),
        (
            "plain",
            {"in_avals": (Aval("float32", ("b", 8)),)},
            "@main computes dimension variables (b) for a function _wrapped_jax_export_main, and the module has none.",
        ),
        (
            "symbolic",
            {"uses_global_constants": False},
            "the module of @main has jax.uses_shape_polymorphism = True, and the envelope uses_global_constants = "
            "False.",
        ),
        (
            "sharded",
            {"nr_devices": 8},
            "the module of @main is for 4 partitions × 1 replica, and the envelope says nr_devices = 8.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_an_envelope_that_contradicts_main_is_reported(fresh, name, fields, sentence):
    assert sentence in forged(fresh[name], **fields)


def test_derivatives_are_checked_against_their_own_envelopes(fresh):
    envelope = read(fresh["plain"]).envelope
    problems = forged(fresh["plain"], vjp=envelope.vjp._replace(module_kept_var_idx=()))
    assert problems == ["@main of the VJP of order 1 takes 2 arrays, and the envelope declares 0 kept arguments."]


def test_wrong_counts_of_leaves_and_shardings_are_reported(fresh):
    envelope = read(fresh["plain"]).envelope
    number = len(envelope.out_avals)
    problems = forged(fresh["plain"], in_tree=envelope.in_tree._replace(children=()), out_shardings=())
    assert problems == [
        f"@main: there are 0 leaves of in_tree, and {len(envelope.in_avals)} in_avals.",
        f"@main: there are 0 out_shardings, and {number} out_avals.",
    ]


def test_before_version_9_main_has_no_tokens():
    old = read(HERE / "conventions" / "8.jaxexport")
    inner = next(function for function in old.module.functions if function.name == "_wrapped_jax_export_main")
    assert inner.inputs[3:5] == ("tensor<0xi1>", "tensor<0xi1>")  # in place of the two tokens
    assert old.envelope.ordered_effects == ()
    assert check_main(old) == []
    assert forged(HERE / "conventions" / "8.jaxexport", ordered_effects=("an effect", "another")) == []


def test_an_envelope_of_version_6_has_checks_and_platforms():
    envelope = read(HERE / "conventions" / "6.jaxexport").envelope
    assert (envelope.calling_convention_version, envelope.platforms) == (6, ("cpu", "tpu"))
    assert envelope.disabled_checks == ()


def test_shape_assertions_are_in_modules_since_version_7():
    older, later = (read(HERE / "conventions" / f"{version}.jaxexport") for version in (6, 8))
    assert str(older.envelope.in_avals[0]) == str(later.envelope.in_avals[0]) == "float32[w,2*h]"
    assert older.custom_calls == ()
    assert [call.target for call in later.custom_calls] == ["shape_assertion"] * 3


def test_a_newer_convention_is_not_checked():
    envelope = read(DATA / "0.12.0.1" / "key.jaxexport").envelope
    newer = envelope._replace(calling_convention_version=NEWEST + 1, module_kept_var_idx=())
    assert check_main(read_bytes(encode(newer))) == []


def test_a_bare_module_has_no_problems():
    assert check_main(read_bytes(read(DATA / "0.12.0.1" / "key.jaxexport").module.serialized())) == []


def test_dimension_variables_are_found_in_expressions():
    avals = [Aval("float32", (3, "2*h", "floordiv(w, 2) + mod(h, 3)")), Aval("int8", ("max(batch, w)^2",))]
    assert dimension_names(avals) == ("h", "w", "batch")


def test_the_docs_list_the_same_conventions():
    rows = re.findall(r"^\| (\d+) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", DOCS, re.MULTILINE)
    expected = [
        (str(c.version), c.since, c.change, in_words(writable_by(c.version)), in_words(default_of(c.version)))
        for c in HISTORY
    ]
    assert rows == expected


def in_words(span: tuple[str, str | None] | None) -> str:
    if span is None:
        return "none of those below"
    return f"{span[0]} on" if span[1] is None else f"{span[0]}, before {span[1]}"


def test_the_docs_list_the_same_ranges_by_release():
    rows = re.findall(r"^\| (0\.\S+) \| (\d+) \| (\d+) \| (\d+) \|$", DOCS, re.MULTILINE)
    assert [(jax, *map(int, numbers)) for jax, *numbers in rows] == [
        (row.jax, row.oldest, row.default, row.newest) for row in SUPPORTED
    ]


def test_the_history_has_each_version_once_and_ranges_grow():
    assert [convention.version for convention in HISTORY] == list(range(1, NEWEST + 1))
    for before, after in pairwise(SUPPORTED):
        assert before.oldest <= after.oldest <= after.default <= after.newest
        assert before.newest <= after.newest


def test_supported_by_finds_the_row_of_a_release():
    assert supported_by("0.4.13") is None
    assert supported_by("0.4.25").oldest == 6
    assert supported_by("0.6.2").newest == 9
    assert supported_by("0.12.0.1").default == 10


ASK = """
try:
    from jax import export
    low, high = export.minimum_supported_calling_convention_version, export.maximum_supported_calling_convention_version
    unasked = "jax_export_calling_convention_version"
except ImportError:
    from jax.experimental import export
    low, high = export.minimum_supported_serialization_version, export.maximum_supported_serialization_version
    unasked = "jax_serialization_version"
import jax
print(jax.__version__, low, jax.config.values[unasked], high)
"""


def conventions_of(python: str | Path) -> tuple[str, list[int]]:
    done = subprocess.run([python, "-W", "ignore", "-c", ASK], check=True, capture_output=True, text=True)
    jax, *numbers = done.stdout.split()
    return jax, [int(number) for number in numbers]


def test_the_installed_jax_has_the_conventions_of_its_row():
    jax, numbers = conventions_of(sys.executable)
    row = supported_by(jax)
    assert numbers == [row.oldest, row.default, row.newest]
    assert OLDEST <= row.oldest <= row.newest == NEWEST


@pytest.mark.weekly
@pytest.mark.parametrize("version", ["0.4.30", "0.6.2", "0.7.0", "0.10.1"])
def test_old_and_new_releases_follow_their_conventions(version, tmp_path):
    from export_core.readers.environment import ReaderEnvironments
    from export_core.readers.placement import Placement
    from export_core.releases import load_calendar

    calendar = load_calendar()
    python = ReaderEnvironments(calendar).build(Placement(calendar.release(version))).python
    paths = exported_by(python, tmp_path)
    assert len(paths) >= 20
    assert [problem for path in paths for problem in check_main(read(path))] == []
    jax, numbers = conventions_of(python)
    row = supported_by(jax)
    assert numbers == [row.oldest, row.default, row.newest]
