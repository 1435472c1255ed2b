"""Conversion for other runtimes: the convention's number, Shardy removed, an older StableHLO, LAPACK replaced."""

import dataclasses
import datetime
import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from stored_artifacts import DATA

from export_core.artifact import Artifact, read, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.readers import needs
from export_core.features.convert.convert import REWRITTEN, UNCHANGED, ModuleJob, RewrittenModules, convert, find_reader
from export_core.features.convert.errors import ConversionRefused
from export_core.features.convert.fixed_by_conversion import remedy, try_conversions
from export_core.features.convert.programs import REWRITE, ModuleRewriter, export_again
from export_core.goldens import GoldenStore
from export_core.knowledge.replaced_calls import REPLACED, REPLACED_BY_LAPACK
from export_core.matrix import Cell
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.selection import reader_named
from export_core.readers.environment import this_interpreter
from export_core.releases import load_calendar
from export_core.releases.calendar import RuntimeRelease

CALENDAR = load_calendar()
GOLDENS = Path(__file__).parents[3] / "golden"
NEWEST_TENSORFLOW, OLD_TENSORFLOW, IREE, PJRT = (
    find_reader(name, CALENDAR)
    for name in ("tensorflow==2.21.0", "tensorflow==2.18.1", "iree==3.13.0", "pjrt==0.12.0.1")
)

reads_the_newest = pytest.mark.skipif(
    jax.__version_info__ < (0, 12), reason="needs jax 0.12: an older jax cannot parse the artifact that it rewrites"
)


def golden(case: str, writer: str = "0.12.0.1") -> Path:
    return GOLDENS / f"tests.compat.{case}" / f"{writer}-cpu" / "artifact.jaxexport"


def no_module(job: ModuleJob) -> RewrittenModules:
    raise ConversionRefused("its module is in the way")


@pytest.fixture
def rewrite(here, monkeypatch) -> ModuleRewriter:
    """A rewriter of modules that works in this interpreter."""
    monkeypatch.setattr(ModuleRewriter, "_newest", lambda self: this_interpreter(here))
    return ModuleRewriter(CALENDAR, print)


def dialects(artifact: Artifact) -> set[str]:
    return {dialect for module in artifact.modules for dialect in needs(module).dialects}


def test_an_artifact_needing_only_another_convention_keeps_its_module():
    before = read(golden("test_derivatives.test_third_order"))
    reader = NEWEST_TENSORFLOW._replace(release=NEWEST_TENSORFLOW.release._replace(convention=9))
    done = convert(before, reader, no_module)
    assert (done.way, done.module_by) == (REWRITTEN, "")
    assert done.rewrites == ("calling convention 10 called 9, which has the same arguments of `main`",)
    assert done.why == "tensorflow 2.21.0 takes conventions up to 9"
    assert done.origin("0").reader == "tensorflow==2.21.0"
    for old, new in zip(before.envelope.levels, done.artifact.envelope.levels, strict=True):
        assert new.mlir_module_serialized == old.mlir_module_serialized
        same = {"calling_convention_version": 10, "module_source": old.module_source, "vjp": old.vjp}
        assert new.calling_convention_version == 9
        assert new._replace(**same) == old
    again = encode(done.artifact.envelope._replace(calling_convention_version=10))
    assert read_bytes(again).envelope.calling_convention_version == 10


def test_an_artifact_that_a_runtime_loads_is_unchanged():
    done = convert(read(golden("test_models.test_attention")), NEWEST_TENSORFLOW, no_module)
    assert (done.way, done.why) == (UNCHANGED, "tensorflow 2.21.0 takes the original")


@pytest.mark.parametrize("writer", ["0.9.2", "0.12.0.1"])
def test_a_mesh_that_the_interpreter_ignores_is_not_removed(writer):
    """It ran these goldens: studies/runtimes/record.json."""
    before = read(golden("test_devices.test_layouts", writer))
    assert "sdy.mesh" in before.module.contents.uses.names
    assert convert(before, find_reader("stablehlo==0.12.0.1", CALENDAR), no_module).way == UNCHANGED
    with pytest.raises(ConversionRefused, match="its module is in the way"):
        convert(before, IREE, no_module)


def test_convert_accepts_a_release_that_the_policy_adds():
    added = {"tensorflow": {"2.99.0": RuntimeRelease(datetime.date(2027, 1, 1), stablehlo="1.20.0", convention=9)}}
    reader = find_reader("tensorflow==2.99.0", dataclasses.replace(CALENDAR, runtimes=added))
    assert (reader.release.title, reader.release.convention, reader.stablehlo) == ("tensorflow 2.99.0", 9, "1.20.0")


def test_shardy_is_removed_from_a_module_for_one_device(rewrite):
    before = read(golden("test_programs.test_random"))
    done = convert(before, IREE, rewrite)
    assert (dialects(before), dialects(done.artifact)) == ({"sdy"}, set())
    assert not done.artifact.custom_calls
    assert "constraints of Shardy taken out, which say nothing: 2" in done.rewrites


def test_shardings_that_a_runtime_cannot_run_are_removed(rewrite):
    interpreter = find_reader("stablehlo==0.12.0.1", CALENDAR)
    done = convert(read(golden("test_programs.test_random")), interpreter, rewrite)
    assert (done.why, dialects(done.artifact)) == ("stablehlo 0.12.0.1 would not run its shardings", set())
    before = read(golden("test_programs.test_random", "0.6.2"))  # exported without Shardy
    assert {call.target for call in before.custom_calls} == {"Sharding"}
    done = convert(before, IREE, rewrite)
    assert not done.artifact.custom_calls
    assert any(each.startswith("shardings of XLA taken out, which say nothing: ") for each in done.rewrites)
    assert convert(before, PJRT, no_module).way == UNCHANGED, "XLA takes them out itself"


@pytest.mark.parametrize(
    ("case", "writer", "reader", "most"),
    [
        pytest.param("test_programs.test_top_k", "0.12.0.1", NEWEST_TENSORFLOW, (1, 13), marks=reads_the_newest),
        pytest.param(
            "test_symbolic_shapes.test_one_dimension", "0.12.0.1", NEWEST_TENSORFLOW, (1, 13), marks=reads_the_newest
        ),
        ("test_derivatives.test_complex_numbers", "0.12.0.1", OLD_TENSORFLOW, (1, 7)),  # with a complex constant
        ("test_models.test_attention", "0.6.2", OLD_TENSORFLOW, (1, 7)),  # its locations have ranges, too
    ],
)
def test_modules_are_written_for_the_runtimes_stablehlo(case, writer, reader, most, rewrite):
    done = convert(read(golden(case, writer)), reader, rewrite)
    for module in done.artifact.modules:
        assert tuple(map(int, needs(module).stablehlo.split("."))) <= most
    assert done.artifact.envelope.format_range == read(golden(case, writer)).envelope.format_range


@pytest.mark.parametrize("reader", ["tensorflow==2.18.1", "0.4.36"])
def test_a_bare_module_is_written_for_an_older_stablehlo(rewrite, reader):
    before = read_bytes(read(golden("test_derivatives.test_complex_numbers")).module.serialized(), "bare.mlirbc")
    done = convert(before, find_reader(reader, CALENDAR), rewrite)
    assert (done.way, done.artifact.envelope) == (REWRITTEN, None)
    assert needs(before.module).stablehlo > needs(done.artifact.module).stablehlo
    assert before.module.main.inputs == done.artifact.module.main.inputs
    assert any(each.startswith("modules written for StableHLO ") for each in done.rewrites)


def test_a_bare_module_that_a_reader_loads_is_unchanged():
    before = read_bytes(read(golden("test_derivatives.test_complex_numbers")).module.serialized(), "bare.mlirbc")
    assert convert(before, find_reader("0.12.0.1", CALENDAR), no_module).way == UNCHANGED


def test_a_stablehlo_version_is_written_with_three_numbers():
    jobs = []

    def write_down(job):
        jobs.append(job)
        raise ConversionRefused("written down")

    with pytest.raises(ConversionRefused, match="written down"):
        convert(read(golden("test_programs.test_random")), find_reader("iree==3.9.0", CALENDAR), write_down)
    assert [(job.stablehlo, job.shardy) for job in jobs] == [("1.12.0", False)]


@reads_the_newest
def test_lapack_calls_are_replaced_by_plain_operations(rewrite):
    before = read(golden("test_linear_algebra.test_cholesky"))
    with pytest.raises(
        ConversionRefused, match=r"only jax registers lapack_spotrf_ffi; .* --replace-custom-calls replaces"
    ):
        convert(before, PJRT, rewrite)
    done = convert(before, PJRT, rewrite, replace_custom_calls=True)
    assert (done.replaced, done.artifact.custom_calls) == (("lapack_spotrf_ffi",), ())
    assert convert(before, PJRT, no_module, allow={"lapack_spotrf_ffi": "we register it"}).way == UNCHANGED


@reads_the_newest
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_replaced_tridiagonal_solver_still_exchanges_rows(rewrite, dtype):
    rng = np.random.default_rng(0)
    bands = rng.normal(size=(3, 2, 7)).astype(dtype)
    bands[1, 0, ::2] = 0  # only an exchange of rows solves it
    right = rng.normal(size=(2, 7, 3)).astype(dtype)
    singular = bands.copy()
    singular[:, 1] = 0
    solver = jax.export.export(jax.jit(jax.lax.linalg.tridiagonal_solve), platforms=["cpu"])(*bands, right)
    before = read_bytes(bytes(solver.serialize()), "solver")
    assert [call.target[8:] for call in before.custom_calls] == ["gtsv_ffi"]
    done = convert(before, PJRT, rewrite, replace_custom_calls=True)
    assert done.artifact.custom_calls == ()
    assert any("gtsv_ffi replaced by elimination with LAPACK's exchange of rows" in text for text in done.rewrites)
    for given in (bands, singular):
        found, expected = (
            jax.export.deserialize(bytearray(data)).call(*given, right) for data in (done.artifact.data, before.data)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_both_lists_of_replaceable_lapack_functions_are_equal():
    """The rewriting program runs without this project, so that the functions it replaces are declared twice."""
    text = (REWRITE.parent / "lapack.py").read_text()
    table = text.partition("\nFAMILIES: ")[2].partition("\n}")[0]
    assert set(re.findall(r'^    "(\w+)": ', table, re.MULTILINE)) == REPLACED | REPLACED_BY_LAPACK


@pytest.mark.parametrize(
    ("artifact", "reader", "message"),
    [
        (golden("test_named_programs.test_dot_precisions"), OLD_TENSORFLOW, "a dot with an algorithm crashes"),
        (golden("test_devices.test_shard_map_of_whole_arguments"), IREE, "is called with one"),
        (
            golden("test_programs.test_random"),
            IREE._replace(stablehlo=None),
            "StableHLO version of iree 3.13.0 is not known",
        ),
        (golden("test_programs.test_top_k"), OLD_TENSORFLOW, r"in the way\. Instead, export with .* and export with"),
        (
            DATA / "0.4.30" / "cholesky.jaxexport",
            PJRT,
            "only jax registers blas_strsm, lapack_spotrf; .* --replace-custom-calls replaces those of LAPACK",
        ),
        (
            golden("test_linear_algebra.test_eigh"),
            IREE,
            r"only jax registers lapack_ssyevd_ffi; compute with operations that need no LAPACK\. "
            r"--replace-custom-calls seldom helps: iree 3\.13\.0 lacks most of what replaces those of LAPACK\.$",
        ),
    ],
)
def test_an_unconvertible_artifact_is_refused_with_a_remedy(artifact, reader, message):
    with pytest.raises(ConversionRefused, match=message):
        convert(read(artifact), reader, no_module)


def test_a_dot_algorithm_in_any_module_of_an_artifact_is_refused():
    artifact = read(golden("test_programs.test_random"))
    artifact.modules += read(golden("test_named_programs.test_dot_precisions")).modules  # as of its first VJP
    with pytest.raises(ConversionRefused, match="a dot with an algorithm crashes"):
        convert(artifact, OLD_TENSORFLOW, no_module)


def test_a_refused_conversion_does_not_advise_a_conversion():
    def refused(job):
        raise ConversionRefused("its module cannot be written")

    with pytest.raises(ConversionRefused, match=r"its module cannot be written\.$"):
        convert(read(golden("test_programs.test_random")), IREE, refused)


def test_a_refusal_for_a_custom_call_advises_no_other_export():
    before = read(golden("test_linear_algebra.test_cholesky"))
    with pytest.raises(ConversionRefused, match=r"its module is in the way\.$"):
        convert(before, OLD_TENSORFLOW, no_module, replace_custom_calls=True)


def test_exporting_again_for_a_runtime_is_refused():
    with pytest.raises(ConversionRefused, match=r"for iree 3\.13\.0: expected an artifact .*, and a release of jaxlib"):
        export_again(read(golden("test_programs.test_random")), IREE, CALENDAR, {}, print)


def test_explain_names_the_command_for_a_runtime():
    random = GoldenStore(GOLDENS).generations("tests.compat.test_programs.test_random")[-1]
    step = remedy(Cell(random, reader_named("iree==3.13.0", CALENDAR), "cpu"), ReplayOptions(CALENDAR))
    assert "--for iree==3.13.0 -o OUT` (its module is rewritten)" in step
    step = remedy(Cell(random, reader_named("litert==2.3.0", CALENDAR), "cpu"), ReplayOptions(CALENDAR))
    assert step.startswith("Conversion does not help: afterwards litert 2.3.0 does not compile it either: An operation")
    cholesky = GoldenStore(GOLDENS).generations("tests.compat.test_linear_algebra.test_cholesky")[-1]
    step = remedy(Cell(cholesky, reader_named("iree==3.13.0", CALENDAR), "cpu"), ReplayOptions(CALENDAR))
    assert step == "Conversion seldom helps: iree 3.13.0 lacks most of what replaces its custom calls."
    step = remedy(Cell(cholesky, reader_named("pjrt==0.12.0.1", CALENDAR), "cpu"), ReplayOptions(CALENDAR))
    assert "--for pjrt==0.12.0.1 --replace-custom-calls -o OUT`" in step


def test_a_cells_custom_calls_are_replaced_only_if_needed():
    jobs = []

    def refused(job):
        jobs.append(job)
        raise ConversionRefused("not written here")

    cholesky = GoldenStore(GOLDENS).generations("tests.compat.test_linear_algebra.test_cholesky")[-1]
    cell = Cell(cholesky, reader_named("pjrt==0.12.0.1", CALENDAR), "cpu")
    ((_, fix),) = try_conversions([cell], refused, ReplayOptions(CALENDAR), print)
    assert [job.replace for job in jobs] == [("lapack_spotrf_ffi",)]
    assert fix.message.endswith("not converted for pjrt 0.12.0.1: not written here.")


# --- in the runtimes themselves ---------------------------------------------------------------------------------------


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("case", "reader", "rewrite"),
    [
        ("test_programs.test_random", "iree==3.13.0", "constraints of Shardy taken out"),
        ("test_programs.test_random", "stablehlo==0.12.0.1", "constraints of Shardy taken out"),
        ("test_programs.test_top_k", "tensorflow", "modules written for StableHLO 1."),  # its newest release
        ("test_linear_algebra.test_cholesky", "pjrt==0.12.0.1", "lapack_spotrf_ffi replaced"),
    ],
)
def test_a_runtime_runs_what_was_converted_for_it(jaxexport, tmp_path, case, reader, rewrite):
    is_converted(jaxexport, tmp_path, case, reader, rewrite)


@pytest.mark.weekly  # it takes a gigabyte, and is the only test with this release
def test_an_old_tensorflow_runs_what_was_converted_for_it(jaxexport, tmp_path):
    case, rewrite = "test_models.test_attention", "calling convention 10 called 9"
    is_converted(jaxexport, tmp_path, case, "tensorflow==2.18.1", rewrite)


def is_converted(jaxexport, tmp_path, case, reader, rewrite):
    out = tmp_path / "out.jaxexport"
    words = [str(golden(case)), "--for", reader, "-o", str(out), "--goldens", str(GOLDENS), "--replace-custom-calls"]
    ended = jaxexport("convert", *words, "--json", code=0)
    record = json.loads(ended.out)
    assert record["verdict"] == "converted"
    assert record["converted_from"]["reader"].startswith(reader)
    assert any(rewrite in each for each in record["converted_from"]["rewrites"])
    jax.export.deserialize(bytearray(out.read_bytes()))  # it is still an artifact of jax.export


@pytest.mark.weekly
def test_a_matrix_says_which_runtime_cells_a_conversion_fixes(jaxexport, tmp_path):
    words = ["matrix", "--cases", "*.test_attention", "--writers", "0.9.2,0.12.0.1", "--readers", "tensorflow==2.18.1"]
    words += ["--goldens", str(GOLDENS), "--unpromised", "a test", "--results", str(tmp_path / "results")]
    ended = jaxexport(*words, "--convert", "--quiet")
    assert "CONVERSION  It fixes 2 of 2 failing cells" in ended.out, ended.out
    full = jaxexport("report", str(tmp_path / "results"), "--full").out
    assert "--for tensorflow==2.18.1 -o converted" in full, full
