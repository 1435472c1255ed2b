"""The forecast of which runtimes other than jaxlib read an artifact, compared with what they did."""

import functools
import itertools
import re
from collections import Counter
from pathlib import Path

import pytest
from artifacts import DATA, bare, raw

from export_core.artifact import Artifact, read
from export_core.artifact.audit import calls_of_jax
from export_core.artifact.envelope.fields import UnknownField
from export_core.artifact.readers import Reader, loads, readers_of, without_advice
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import CalendarEntry, shipped_entries, shipped_runtimes
from export_core.releases.names import version_numbers
from tools.calendar_entries import entries_of_shipped_runtimes

GOLDEN = Path(__file__).parents[2] / "golden"
TERMS = Terms(shipped_entries())
RECORD = Path(__file__).with_name("data") / "read_by_runtimes.txt"
"""What runtimes did with goldens, a letter for each.

p: it passes. n: it gives other numbers. f: it fails after it was read. x: it is not read. `-`: the binding failed
before that. `.`: the golden was not tried.
"""


def recorded() -> dict[str, dict[str, str]]:
    """Return what each reader did with each golden: a letter as in `RECORD`, by reader and golden."""
    first, *rows = (line.split() for line in RECORD.read_text(encoding="utf-8").splitlines())
    return {reader: {golden: letters[place] for golden, letters in rows} for place, reader in enumerate(first)}


RECORDED = recorded()


@functools.cache
def artifact_of(golden: str) -> Artifact:
    return read(GOLDEN / golden / "artifact.jaxexport")


@pytest.mark.parametrize("reader", RECORDED)
def test_the_forecast_matches_each_measured_runtime(reader):
    found, readers = Counter(), [find_reader(reader, TERMS)]
    for golden, letter in RECORDED[reader].items():
        (load,) = loads(artifact_of(golden), readers)
        found[load.ok, letter] += 1
    assert not found[True, "x"], "a wrong `reads it`"
    assert sum(found[False, letter] for letter in "pnf") == 0, "a wrong `does not read it`"
    assert not any(ok is None for ok, _ in found)
    assert found[True, "p"]


def test_the_record_has_enough_measured_cells_of_runtimes():
    letters = Counter("".join(letter for row in RECORDED.values() for letter in row.values()))
    first = [*RECORDED][:8]
    assert sum(letter != "." for reader in first for letter in RECORDED[reader].values()) == 2_816
    assert letters["x"] > 500


def test_goldens_that_call_into_jax_run_in_no_runtime():
    calling = {golden for golden in next(iter(RECORDED.values())) if calls_of_jax(artifact_of(golden))}
    ran = {(golden, letter) for row in RECORDED.values() for golden, letter in row.items() if golden in calling}
    assert len(calling) > 30
    assert {letter for _, letter in ran} <= {*"fx-."}


def reasons(path: Path, reader: str) -> tuple[str, ...]:
    (load,) = loads(read(path), [find_reader(reader, TERMS)])
    return load.reasons


def test_a_reason_why_a_runtime_refuses_names_a_remedy():
    on_the_host = f"{GOLDEN}/tests.compat.test_devices.test_result_on_the_host/0.12.0.1-cpu/artifact.jaxexport"
    convert = "or `jaxexport convert FILE --for"
    assert reasons(Path(on_the_host), "tensorflow==2.18.0") == (
        "tensorflow 2.18.0 takes conventions up to 9: export with "
        f"jax_export_calling_convention_version=9, {convert} tensorflow==2.18.0 -o OUT`",
        "tensorflow 2.18.0 has StableHLO 1.7.3, and custom_call_v2 came with 1.18: export with jax 0.11.1 or older, "
        f"{convert} tensorflow==2.18.0 -o OUT`",
        "tensorflow 2.18.0 does not parse the sdy dialect: export with jax_use_shardy_partitioner=False, "
        f"{convert} tensorflow==2.18.0 -o OUT`",
    )
    assert reasons(Path(on_the_host), "litert==2.3.0") == (
        "litert 2.3.0 does not parse the sdy dialect: export with jax_use_shardy_partitioner=False, "
        f"{convert} litert==2.3.0 -o OUT`",
    )
    assert reasons(DATA / "0.6.2" / "mlp.jaxexport", "iree==3.0.0")[-1] == (
        "iree 3.0.0 does not parse locations with a range: export with jax 0.8.1 or later, "
        f"{convert} iree==3.0.0 -o OUT`"
    )


def too_new(golden: str, reader: Reader) -> str:
    """Return why a runtime finds the StableHLO of a golden too new; empty if it does not."""
    (load,) = loads(artifact_of(golden), [reader])
    return next((reason for reason in load.reasons if " came with " in reason), "")


@pytest.mark.parametrize(("reader", "fewest"), [("tensorflow==2.21.0", 40), ("tensorflow==2.18.0", 20)])
def test_the_advice_to_export_with_an_older_jax_works(reader, fewest):
    """Goldens by the advised jax or an older one are read; for 2.21.0, none that is read is by a newer one."""
    found = Counter[tuple[bool, bool]]()
    runtime = find_reader(reader, TERMS)
    for case in sorted(GOLDEN.iterdir()):
        names = [golden.name for golden in case.glob("[0-9]*-cpu") if "jax" not in golden.name]
        writers = {name: name.removesuffix("-cpu") for name in names}
        for golden, other in itertools.permutations(writers, 2):
            advised = re.search(r"export with jax (\S+) or older", too_new(f"{case.name}/{golden}", runtime))
            if advised:
                is_advised = version_numbers(writers[other]) <= version_numbers(advised[1])
                found[is_advised, not too_new(f"{case.name}/{other}", runtime)] += 1
    assert (found[True, True] >= fewest, found[True, False]) == (True, 0)
    assert reader != "tensorflow==2.21.0" or not found[False, True]


def test_pjrt_reads_a_module_whose_envelope_jaxlib_refuses():
    old = DATA / "0.4.30" / "mlp.jaxexport"
    (of_jaxlib, of_pjrt) = loads(read(old), [find_reader(name, TERMS) for name in ("0.12.0.1", "pjrt==0.12.0.1")])
    assert (of_jaxlib.ok, of_pjrt.ok) == (False, True)
    assert (of_pjrt.reader.release.title, of_pjrt.reasons) == ("pjrt 0.12.0.1", ())
    assert reasons(DATA / "0.12.0.1" / "key.jaxexport", "stablehlo==0.6.2")[0].startswith(
        "stablehlo 0.6.2 does not parse the sdy dialect, nor run what jax exports in its place: "
        "`jaxexport convert FILE --for stablehlo==0.6.2 -o OUT`"
    )


def test_another_export_is_advised_only_if_it_helps():
    """A PRNG key has an operation of Shardy, which an export without Shardy writes as a custom call of XLA."""
    key = DATA / "0.12.0.1" / "key.jaxexport"
    assert "jax_use_shardy_partitioner=False, or `jaxexport convert" in reasons(key, "tensorflow==2.18.0")[-1]
    assert reasons(key, "iree==3.12.0") == (
        "iree 3.12.0 does not parse the sdy dialect, nor run what jax exports in its place: "
        "`jaxexport convert FILE --for iree==3.12.0 -o OUT`",
    )


@pytest.mark.parametrize(
    "artifact",
    [
        DATA / "0.12.0.1" / "cholesky.jaxexport",
        DATA / "0.12.0.1" / "sharded.jaxexport",
        GOLDEN / "tests.compat.test_targets.test_gpu_tridiagonal_form" / "0.12.0.1-cpu" / "artifact.jaxexport",
        GOLDEN / "tests.compat.test_devices.test_auto_axes" / "0.12.0.1-cpu" / "artifact.jaxexport",
    ],
    ids=["LAPACK", "two devices", "kernels of a GPU", "four devices"],
)
def test_no_advice_is_given_for_calls_that_only_jaxlib_runs(artifact):
    assert reasons(artifact, "iree==3.13.0") == ("iree 3.13.0 does not parse the sdy dialect",)
    assert not any(without_advice(reason) != reason for reason in reasons(artifact, "tensorflow==2.18.0"))


def test_a_runtime_with_unmeasured_abilities_gets_no_forecast(tmp_path):
    mlp = read(DATA / "0.12.0.1" / "mlp.jaxexport")
    (load,) = loads(mlp, [Reader(CalendarEntry("", "2026-10-01", "", (None,), runtime="engine==1"), None)])
    assert (load.ok, load.reasons) == (None, ("the StableHLO version of engine 1 is not known",))
    (load,) = loads(read(raw(tmp_path)), [find_reader("iree==3.13.0", TERMS)])
    assert load.ok is None
    assert "it is not known whether iree 3.13.0 parses the stablehlo dialect" in load.reasons


def test_an_unknown_envelope_field_leaves_only_jaxlib_undecided():
    mlp = read(DATA / "0.12.0.1" / "mlp.jaxexport")
    mlp.envelope = mlp.envelope._replace(unknown_fields=(UnknownField("Exported", 99, 0),))
    readers = [find_reader(name, TERMS) for name in ("0.12.0.1", "iree==3.13.0")]
    assert [load.ok for load in loads(mlp, readers)] == [None, True], "a runtime is given the module"


@pytest.mark.parametrize(
    ("version", "refused"),
    [
        (1, {"jax from 0.4.24 to before 0.8.2 refuses serialization version 1": ("0.4.24", "0.8.1")}),
        (2, {"jax before 0.4.24 refuses serialization version 2": ("0.4.20", "0.4.20")}),
        (3, {"jax before 0.4.35 refuses serialization version 3": ("0.4.20", "0.4.33")}),
        (12, {"jax before 0.8.2 refuses serialization version 12": ("0.4.20", "0.8.1")}),
    ],
)
def test_a_refused_serialization_version_names_the_jax_range(version, refused):
    mlp = read(DATA / "0.12.0.1" / "mlp.jaxexport")
    mlp.envelope = mlp.envelope._replace(serialization_version=version, vjp=None)
    found: dict[str, list[str]] = {}
    for load in loads(mlp, readers_of(TERMS.releases).values()):
        for reason in load.reasons:
            if "serialization version" in reason:
                found.setdefault(reason, []).append(load.reader.release.jax)
    assert {reason: (jaxs[0], jaxs[-1]) for reason, jaxs in found.items()} == refused


def test_a_bare_module_has_no_calling_convention_to_refuse(tmp_path):
    known = find_reader("tensorflow==2.21.0", TERMS)
    old = known._replace(release=known.release._replace(convention=9))
    with_envelope, without = (
        loads(read(path), [old])[0].ok for path in (DATA / "0.9.2/mlp.jaxexport", bare(tmp_path, "0.9.2/mlp"))
    )
    assert (with_envelope, without) == (False, True)


def test_shape_assertions_do_not_count_as_calls_into_jax():
    assert calls_of_jax(read(DATA / "0.12.0.1" / "cholesky.jaxexport")) == ("lapack_spotrf_ffi", "lapack_strsm_ffi")
    assert calls_of_jax(read(DATA / "0.12.0.1" / "symbolic.jaxexport")) == (), "whoever calls it checks the shapes"


def test_shipped_calendar_entries_of_runtimes_are_up_to_date():
    assert shipped_runtimes() == entries_of_shipped_runtimes(), "run `python -m tools.calendar_entries`"
