"""`export_core.check` and `jaxexport inspect --readers`: whether a release can load an artifact."""

import datetime
import importlib.metadata
import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from artifacts import DATA, bare, of_unknown_writer, unlisted, with_an_unknown_operation
from commands import assert_bad_input

import export_core
from export_core.artifact import ArtifactError, read
from export_core.base.platforms import PlatformError
from export_core.features.inspect.named_readers import find_readers
from export_core.policy import load_check
from export_core.policy.load_check import in_words
from export_core.policy.terms import Terms
from export_core.releases import ReleaseError
from export_core.releases.calendar_entries import shipped_entries

CHOLESKY = DATA / "0.12.0.1" / "cholesky.jaxexport"
MLP = CHOLESKY.with_name("mlp.jaxexport")
OLD = DATA / "0.9.2" / "cholesky.jaxexport"


@pytest.fixture
def installed(monkeypatch):
    """The versions of packages that the check finds installed, by name."""
    versions: dict[str, str] = {}

    def version(name):
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    load_check._installed_reader.cache_clear()
    yield versions
    load_check._installed_reader.cache_clear()


OLD_CHOLESKY = DATA / "0.4.30" / "cholesky.jaxexport"
LAPACK = ("lapack_spotrf_ffi", "lapack_strsm_ffi")
FROM_0_9_2 = {
    "loads": True,
    "promised": True,
    "promised_since": datetime.date(2026, 2, 25),
    "promised_until": datetime.date(2026, 9, 14),
}
FROM_0_11_2 = {"promised_since": datetime.date(2026, 9, 29), "promised_until": datetime.date(2027, 3, 16)}


@pytest.mark.parametrize(
    ("artifact", "reader", "expected"),
    [
        (OLD, "0.11.0", {"ok": True, "reasons": (), "custom_calls": LAPACK, "unpromised": (), **FROM_0_9_2}),
        (OLD, "0.12.0.1", {"ok": True, "promised": False}),
        (CHOLESKY, "0.12.0.1", {"promised": True}),
        (CHOLESKY, "0.11.2", {"promised": None, **FROM_0_11_2}),
        (OLD_CHOLESKY, "0.9.2", {"ok": False, "unpromised": ("blas_strsm", "lapack_spotrf")}),
        (unlisted, "0.12.0.1", {"unpromised": ("my_kernel_of_ours",)}),
        (partial(unlisted, switched_off=True), "0.12.0.1", {"custom_calls": (LAPACK[1], "my_kernel_of_ours")}),
        (of_unknown_writer, "0.12.0.1", {"ok": False, "loads": True, "promised": None, "unpromised": LAPACK}),
        (bare, "0.12.0.1", {"loads": True, "promised": None, "promised_until": None, "exported": False}),
        (OLD, "tensorflow==2.21.0", {"ok": False, "loads": True, "promised": True, "unpromised": LAPACK}),
    ],
    ids=[
        *("loads", "outside the window", "possible writers agree", "possible writers disagree"),
        *("a call was dropped", "a call is in no list", "a disabled check", "an unknown writer"),
        *("a bare module", "another runtime"),
    ],
)
def test_check_returns_if_loading_is_possible_and_promised(artifact, reader, expected, tmp_path):
    found = export_core.check(artifact(tmp_path) if callable(artifact) else artifact, reader)
    assert {name: getattr(found, name) for name in expected} == expected


def test_check_says_why_a_release_cannot_load_an_artifact():
    found = export_core.check(CHOLESKY, "0.9.2")
    assert (found.ok, found.loads, found.promised) == (False, False, False)
    assert "custom_call_v2 came with" in found.reasons[0]


def test_a_load_check_of_a_converted_artifact_advises_no_export():
    found = export_core.check(DATA / "0.6.2" / "mlp.jaxexport", "iree==3.0.0")
    assert ": export with jax 0.8.1 or later" in str(found)
    assert "does not parse locations with a range)" in (text := in_words(found, converted=True))
    assert "export with" not in text


@pytest.mark.parametrize(
    ("file", "reader", "platform", "known"),
    [
        (MLP, "jaxlib==0.12.0.1", "cuda", "it does not compile it (it was exported for cpu, and not for cuda)"),
        (
            OLD,
            "tensorflow==2.21.0",
            "",
            f"it does not compile it (only jax registers {', '.join(LAPACK)}; "
            "compute with operations that need no LAPACK)",
        ),
    ],
)
def test_a_load_check_says_why_a_loaded_artifact_may_not_run(file, reader, platform, known):
    found = export_core.check(file, reader.removeprefix("jaxlib=="), platform)
    assert (found.loads, found.compiles, found.known) == (True, "no", known)
    assert str(found).startswith(f"{reader.replace('==', ' ')} loads it; {known}; ")
    assert str(found).count("only jax registers") == known.count("only jax registers")


def test_check_accepts_bytes_and_files_alike():
    data = CHOLESKY.read_bytes()
    assert export_core.check(data, "0.11.0") == export_core.check(memoryview(data), "0.11.0")
    assert export_core.check(data, "0.11.0") == export_core.check(CHOLESKY, "0.11.0")


def test_check_asks_the_installed_jaxlib_by_default(installed):
    installed.update(jax="0.9.2", jaxlib="0.9.2")
    assert export_core.check(CHOLESKY) == export_core.check(CHOLESKY, "0.9.2")


def test_a_local_version_counts_as_its_release(installed):
    installed.update(jax="0.11.1", jaxlib="0.11.0+cuda12")
    found = export_core.check(DATA / "0.8.1" / "point.jaxexport")
    assert found.reader == "0.11.0"
    assert "jax from 0.11.1 on calls it expired" in found.reasons[0]


def test_an_installed_jaxlib_not_in_the_calendar_is_unknown(installed):
    installed.update(jax="9.0", jaxlib="9.0.dev20300101")
    found = export_core.check(CHOLESKY)
    assert (found.ok, found.promised) == (None, None)
    assert found.reasons == ("the StableHLO version of jaxlib 9.0.dev20300101 is not known",)


def test_check_without_reader_or_jaxlib_is_an_error(installed):
    with pytest.raises(ReleaseError, match="expected an installed jaxlib, found none"):
        export_core.check(CHOLESKY)


def test_checking_for_an_unknown_release_is_an_error():
    for reader, name in (("0.12.1", "jaxlib 0.12.1"), ("tensorflow==2.21.1", "tensorflow 2.21.1")):
        with pytest.raises(ReleaseError, match=f"{re.escape(name)} is not in the release calendar. Did you mean"):
            export_core.check(CHOLESKY, reader)
    with pytest.raises(ReleaseError, match=r"tensorflow 2\.99\.0 is not in the release calendar\. `jaxexport releases"):
        export_core.check(CHOLESKY, "tensorflow==2.99.0")  # no older release was meant


@pytest.mark.parametrize("reader", ["", "iree", "newest", ">=0.11", "iree>=3.9", "0.9.2,0.10.2", "v0.9.2", ("0.9.2",)])
def test_a_load_check_of_several_releases_is_an_error(reader):
    expected = f"reader: expected one release, such as 0.12.0.1 or iree==3.13.0, found {reader!r}."
    with pytest.raises(ReleaseError, match=f"^{re.escape(expected)}$"):
        export_core.check(CHOLESKY, reader)


def test_a_reader_given_as_jaxlib_equals_version_is_an_error():
    with pytest.raises(ReleaseError, match=r"^reader: expected a release of jaxlib as its version alone"):
        export_core.check(CHOLESKY, "jaxlib==0.9.2")


def test_checking_bytes_that_are_no_artifact_is_an_error():
    with pytest.raises(ArtifactError):
        export_core.check(b"PK\x03\x04 and more")


def test_a_load_check_imports_neither_jax_nor_numpy():
    code = f"""
import sys, export_core
assert "export_core.artifact" not in sys.modules
print(export_core.check({str(CHOLESKY)!r}))
print(*{{name.partition(".")[0] for name in sys.modules}}, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "jaxlib", "numpy", "click", "msgspec", "yaml", "rich"} & set(done.stderr.split())
    assert done.stdout.startswith("jaxlib ")


@pytest.mark.parametrize(
    ("path", "reader", "code", "line"),
    [
        (OLD, "0.12.0.1", 0, "jaxlib 0.12.0.1 loads it; every custom call is promised; it is outside the window"),
        (CHOLESKY, "0.9.2", 1, "jaxlib 0.9.2 cannot load it (jaxlib 0.9.2 has StableHLO 1.14.0, and "),
        (
            DATA / "0.9.2" / "mlp.jaxexport",
            "0.8.1",
            1,
            "jaxlib 0.8.1 loads it, and cannot call it (jax before 0.8.2 finds no number of devices: ",
        ),
    ],
    ids=["yes", "no", "no devices"],
)
def test_inspect_exits_1_if_the_reader_cannot_load_the_artifact(path, reader, code, line, jaxexport):
    ended = jaxexport("inspect", path, "--readers", reader, code=code)
    assert ended.out.startswith(f"{path}: serialized jax.export.Exported")
    assert ended.out.splitlines()[-1].startswith(f"reader        {line}")
    printed = jaxexport("inspect", path, "--readers", reader, "--json", code=code)
    assert json.loads(printed.out)["file"] == str(path)


@pytest.mark.parametrize(
    ("path", "reader", "code", "lines"),
    [
        (
            DATA / "0.9.2" / "mlp.jaxexport",
            "tensorflow==2.21.0",
            0,
            [
                "tensorflow 2.21.0 loads it; it makes no custom call that only jax registers; it is inside the window "
                "of tensorflow (built from 2026-02-16 to 2026-09-14)"
            ],
        ),
        (
            OLD,
            "pjrt==0.12.0.1",
            1,
            [
                "pjrt 0.12.0.1 loads it; it does not compile it (only jax registers lapack_spotrf_ffi, "
                "lapack_strsm_ffi; compute with operations that need no LAPACK); it is inside the "
                "window of pjrt (built from 2024-03-18 to 2031-03-18)"
            ],
        ),
        (
            MLP.with_name("key.jaxexport"),
            "iree>=3.11,<3.13",
            1,
            [
                f"iree {version} cannot load it (iree {version} does not parse the sdy dialect, nor run what jax "
                f"exports in its place: `jaxexport convert FILE --for iree=={version} -o OUT`); it makes no "
                "custom call that only jax registers; nothing is promised there"
                for version in ("3.11.0", "3.12.0")
            ],
        ),
    ],
    ids=["yes", "calls", "no"],
)
def test_readers_option_accepts_releases_of_other_runtimes(path, reader, code, lines, jaxexport):
    shown = jaxexport("inspect", path, "--readers", reader, code=code).out.splitlines()[-len(lines) :]
    assert [line[14:] for line in shown] == lines
    assert [line[:14].strip() for line in shown] == ["reader", *[""] * (len(lines) - 1)]
    assert json.loads(jaxexport("inspect", path, "--readers", reader, "--json", code=code).out)["runtimes"]


def test_a_runtimes_name_alone_means_its_newest_release(jaxexport):
    line = jaxexport("inspect", MLP, "--readers", "pjrt", code=0).out.splitlines()[-1]
    assert line.startswith("reader        pjrt 0.12.0.1 loads it; ")


def test_exporting_again_with_the_refusing_reader_is_suggested(jaxexport):
    line = jaxexport("inspect", MLP, "--readers", "0.8.0", code=1).out.splitlines()[-1]
    assert line.endswith("; export it again with jax 0.8.0, or try `jaxexport convert FILE --for 0.8.0 -o OUT`")


def test_no_export_that_would_crash_the_reader_is_suggested(jaxexport):
    line = jaxexport("inspect", CHOLESKY, "--readers", "0.9.2", code=1).out.splitlines()[-1]
    assert line.endswith(
        "; try `jaxexport convert FILE --for 0.9.2 --replace-custom-calls -o OUT`, or upgrade the reader: what jax "
        "0.9.2 exports would crash a fresh process there, by its calls of LAPACK"
    )


@pytest.mark.parametrize(
    ("path", "calls"),
    [
        (CHOLESKY, "its custom calls are listed or allowed"),
        (MLP, "it makes no custom call"),
    ],
)
def test_custom_calls_of_a_bare_module_are_never_promised(path, calls, jaxexport, tmp_path):
    bare = tmp_path / "bare.mlirbc"
    bare.write_bytes(read(path).envelope.mlir_module_serialized)
    line = jaxexport("inspect", bare, "--readers", "0.12.0.1").out.splitlines()[-1]
    assert line == (
        f"reader        jaxlib 0.12.0.1 loads it; {calls}; JAX promises nothing of a module without an envelope"
    )
    assert not export_core.check(bare).exported


def test_operation_names_decide_which_stablehlo_is_needed(jaxexport, tmp_path):
    """Asked to write for StableHLO 1.22, jaxlib 0.12.0.1 uses no operation that came after 1.20."""
    data = read(MLP).envelope.mlir_module_serialized
    bare = tmp_path / "bare.mlirbc"
    bare.write_bytes(re.sub(rb"StableHLO_v1\.\d\d\.0", b"StableHLO_v1.99.0", data))
    out = jaxexport("inspect", bare).out
    assert (
        "\nneeds         StableHLO 1.10 by its names, because of tanh_v2; written for StableHLO_v1.99.0, newer" in out
    )


def test_inspect_exits_3_if_loading_is_not_known(jaxexport, tmp_path):
    path = with_an_unknown_operation(tmp_path)
    (tmp_path / "export_compat.yaml").write_text("allow: {vhlo.tanh_v9: it is a tanh}\n")
    assert jaxexport("inspect", path, "--readers", "0.12.0.1").code == 3


def test_custom_calls_are_judged_by_the_readers_list(jaxexport):
    calls = json.loads(jaxexport("inspect", OLD_CHOLESKY, "--readers", "0.4.31", "--json").out)["custom_calls"]
    assert {call["standing"] for call in calls} == {"stable"}


@pytest.mark.parametrize("readers", [(), ("--readers", "0.12.0.1")], ids=["alone", "with a reader"])
def test_custom_calls_of_an_unknown_writer_are_never_promised(readers, jaxexport, tmp_path):
    path = of_unknown_writer(tmp_path)
    assert jaxexport("audit", path, *readers, code=1).out.count("was not checked, since its writer is not known") == 2
    shown = jaxexport("inspect", path, *readers, code=1 if readers else 0).out
    assert shown.count("; NOT CHECKED, since its writer is not known") == 2
    assert (
        "foreseen      cpu: calls lapack_spotrf_ffi, lapack_strsm_ffi, all on the stable list of jaxlib 0.12.0.1"
        in shown
    )
    promised = "; not promised, since its writer is not known: lapack_spotrf_ffi, lapack_strsm_ffi"
    assert (promised in shown) == bool(readers)
    assert "promised by" not in shown


def test_a_call_that_the_policy_allows_passes_for_a_reader(jaxexport, tmp_path):
    path = unlisted(tmp_path)
    assert jaxexport("inspect", path, "--readers", "0.12.0.1").code == 1
    (tmp_path / "export_compat.yaml").write_text("allow: {my_kernel_of_ours: we build it}\n")
    assert jaxexport("inspect", path, "--readers", "0.12.0.1").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--readers", "0.99"],
        ["--readers", "0.9.2", "--mlir"],
        ["--readers", "torch==2"],
        ["--readers", "iree==99"],
        ["--readers", "iree>=99"],
    ],
    ids=" ".join,
)
def test_an_unknown_reader_exits_2(words, jaxexport):
    ended = jaxexport("inspect", CHOLESKY, *words)
    assert (ended.code, ended.out) == (2, "")


def test_runtime_releases_of_the_policy_are_readers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    added = "tensorflow: {2.99.0: {built: 2026-11-01, stablehlo: 1.18.0, convention: 10}}"
    Path("export_compat.yaml").write_text(f"releases: {{runtimes: {{{added}}}}}\n")
    (reader,) = find_readers("tensorflow", Terms(shipped_entries()))
    assert (reader.release.name, reader.stablehlo) == ("tensorflow==2.99.0", "1.18.0")


@pytest.mark.parametrize("command", ["inspect", "audit"])
@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("deployed", "'deployed', which only `jaxexport matrix` takes; `jaxexport can-i-deploy FILE --to all` asks"),
        ("window", "'window', which only `jaxexport matrix` takes; `jaxexport can-i-deploy FILE --to all` asks"),
        ("phone", "the deployment target 'phone': name what it runs, iree==3.13.0; `jaxexport can-i-deploy FILE --to"),
        ("old", "the deployment target 'old': name what it runs, 0.9.2; `jaxexport can-i-deploy FILE --to old` asks"),
    ],
)
def test_readers_option_refuses_window_and_says_what_to_ask_instead(command, word, found, jaxexport):
    targets = "{name: old, jaxlib: 0.9.2}, {name: phone, reader: iree==3.13.0}"
    Path("export_compat.yaml").write_text(f"deployed: [{targets}]\n")
    assert_bad_input(jaxexport(command, MLP, "--readers", word), f"--readers: expected releases, found {found}")


def test_readers_option_accepts_newest_and_ranges(jaxexport):
    ended = jaxexport("inspect", MLP, "--readers", "newest,>=0.11.1,<0.12", "--as-of", "2026-11-01", code=0)
    lines = ended.out.splitlines()[-3:]
    assert [line[14:].split(" loads")[0] for line in lines] == ["jaxlib 0.12.0.1", "jaxlib 0.11.1", "jaxlib 0.11.2"]
    assert_bad_input(
        jaxexport("inspect", MLP, "--readers", ">=99"),
        "--readers: no known jaxlib is in the range >=99. The newest known is 0.",
    )


@pytest.mark.parametrize("command", ["inspect", "audit", "diff"])
def test_the_help_of_readers_option_lists_every_form(command, jaxexport):
    text = " ".join(jaxexport(command, "--help").out.split())
    for form in ("jaxlib releases, also as newest or as a range such as '>=0.11,<0.12'", "'iree>=3.9'", "litert for"):
        assert form in text


@pytest.mark.parametrize(
    ("platform", "hint"), [("gpu", " Did you mean 'cuda' or 'rocm'?"), ("CPU", " Did you mean 'cpu'?"), ("npu2", "")]
)
def test_a_check_for_an_unknown_platform_is_refused(platform, hint):
    message = f"platform: expected one of cpu, cuda, rocm, tpu, found '{platform}'.{hint}"
    with pytest.raises(PlatformError, match=f"^{re.escape(message)}$"):
        export_core.check(DATA / "0.9.2" / "mlp.jaxexport", "0.9.2", platform)


def test_dir_of_export_core_lists_its_functions():
    assert {"check", "export_artifact", "write_golden"} <= {*dir(export_core)}
