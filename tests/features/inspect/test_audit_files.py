"""`jaxexport audit`: what it prints of files and folders, and its exit codes."""

import functools
import shutil

import pytest
from artifacts import DATA, bare, changed, unlisted, with_an_unknown_operation, with_another_dialect
from commands import assert_bad_input
from making import files, manifest, write_golden

from export_core.artifact import folders, read
from export_core.artifact.envelope.encode import encode
from export_core.goldens import GoldenStore, Options
from export_core.goldens.store import ARTIFACT

QUIRK = (
    "{case: t.not, writer: 0.12.0.1, allow: [my_kernel_of_ours], reason: r, owner: o, issue: https://example.org/1, "
    "added: 2026-11-01, permanent: true, approver: me}"
)
GOLDENS = DATA.parents[2] / "golden"
CHOLESKY = DATA / "0.12.0.1" / "cholesky.jaxexport"


def test_custom_calls_that_the_writer_guarantees_exit_0(jaxexport):
    ended = jaxexport("audit", CHOLESKY, DATA / "0.9.2" / "mlp.jaxexport", code=0)
    assert f"{CHOLESKY}: ok, written by one of jaxlib 0.11.2, 0.12.0, 0.12.0.1 (name it with --writer)" in ended.out
    assert "ok    lapack_spotrf_ffi (LAPACK routine) is guaranteed stable." in ended.out
    assert "mlp.jaxexport: ok, it makes no custom calls" in ended.out


NOTHING = "goldens: golden"
KERNEL_ALLOWED = "allow: {my_kernel_of_ours: we build it}"


@pytest.mark.parametrize(
    ("make", "policy", "code", "texts"),
    [
        (
            *(unlisted, NOTHING, 1),
            (
                "1 target not guaranteed",
                "FAIL  my_kernel_of_ours (custom call) is not guaranteed stable by all of the 3 releases",
                "allow: {my_kernel_of_ours:",
            ),
        ),
        (unlisted, KERNEL_ALLOWED, 0, ("allowed: we build it",)),
        (
            *(functools.partial(unlisted, switched_off=True), NOTHING, 1),
            ("note  The exporter switched off the check custom_call(my_kernel_of_ours)",),
        ),
        (
            *(with_another_dialect, "allow: {mhlo: we trust it}", 1),
            (
                "not read whole (1 part not known), @main is not what the envelope says",
                "FAIL  mhlo (dialect) is not read: jaxlib may find custom calls in it that no audit sees; found in the",
            ),
        ),
        *(
            (
                *(functools.partial(changed, name=f"0.12.0.1/{name}", nr_devices=7), NOTHING, 1),
                (
                    "changed.jaxexport: @main is not what the envelope says, written by",
                    "  FAIL  the module of @main is for 1 partition × 1 replica, and the envelope says nr_devices = 7.",
                ),
            )
            for name in ("mlp", "cholesky")
        ),
        (with_an_unknown_operation, NOTHING, 1, ("allow: {vhlo.tanh_v9: why it may be run}",)),
        (with_an_unknown_operation, "allow: {vhlo.tanh_v9: it is a tanh}", 0, ("Allowed: it is a tanh",)),
    ],
    ids=["unlisted", "allowed", "check", "dialect", "main", "main with calls", "operation", "allowed operation"],
)
def test_an_unguaranteed_custom_call_exits_1_unless_allowed(jaxexport, tmp_path, make, policy, code, texts):
    (tmp_path / "export_compat.yaml").write_text(policy)
    ended = jaxexport("audit", make(tmp_path), code=code)
    for text in texts:
        assert text in ended.out


def test_audit_applies_the_policy_that_an_option_names(jaxexport, tmp_path):
    (tmp_path / "other.yaml").write_text(KERNEL_ALLOWED)
    assert jaxexport("audit", unlisted(tmp_path), "--policy", tmp_path / "other.yaml").code == 0


def test_inspect_names_an_unknown_operation(jaxexport, tmp_path):
    out = jaxexport("inspect", with_an_unknown_operation(tmp_path)).out
    assert "vhlo.tanh_v9: operation; UNKNOWN: is unknown to this version" in out


def test_calls_that_jaxlibs_serializer_writes_are_accepted(jaxexport):
    golden = GOLDENS / "tests.compat.test_programs.test_special_functions" / "0.6.2-cpu"
    ended = jaxexport("audit", golden / "artifact.jaxexport", code=0)
    assert "ok    mhlo.erf (CHLO operation) is written by jaxlib's own serializer" in ended.out


def test_writer_option_chooses_among_possible_writers(jaxexport):
    path = DATA / "0.4.30" / "cholesky.jaxexport"
    assert "written by one of jaxlib 0.4.19," in jaxexport("audit", path).out
    assert "written by jaxlib 0.4.30\n" in jaxexport("audit", path, "--writer", "0.4.30").out
    jaxexport("audit", path, "--writer", "0.12.0.1", code=1)
    assert_bad_input(jaxexport("audit", path, "--writer", "0.99"), "jaxlib 0.99 is not in the release calendar")


def test_a_bare_module_is_promised_nothing_by_jax(jaxexport, tmp_path):
    out = jaxexport("audit", bare(tmp_path, "0.12.0.1/cholesky")).out
    assert ": ok, writer not known\n" in out
    assert "note  promised nothing by JAX, whose windows are for what jax.export wrote\n" in out
    assert "note  promised by StableHLO 5 years backward and 2 forward, between the builds of StableHLO" in out
    assert "lapack_spotrf_ffi (LAPACK routine) is listed as stable, which counts for artifacts" in out
    assert "guaranteed" not in out


def test_audit_exits_1_for_a_call_that_the_reader_no_longer_guarantees(jaxexport):
    path = DATA / "0.4.30" / "cholesky.jaxexport"
    ended = jaxexport("audit", path, "--writer", "0.4.30", "--readers", "0.12.0.1", code=1)
    assert "was guaranteed by jaxlib 0.4.30, and jaxlib 0.12.0.1 no longer guarantees it" in ended.out
    assert jaxexport("audit", path, "--writer", "0.4.30", "--readers", "0.4.31").code == 0


def test_audit_checks_all_files_and_exits_2_if_one_is_bad(jaxexport, tmp_path):
    (tmp_path / "none").write_bytes(b"nothing of the kind")
    ended = jaxexport("audit", "none", unlisted(tmp_path), CHOLESKY, code=2)
    assert ended.err.startswith("jaxexport: error: none: ")
    assert "FAIL  my_kernel_of_ours" in ended.out
    assert "cholesky.jaxexport: ok" in ended.out


def test_auditing_a_folder_shows_only_problems_and_counts(jaxexport, tmp_path):
    folder = tmp_path / "archive"
    folder.mkdir()
    shutil.copy(CHOLESKY, folder / "good")
    ended = jaxexport("audit", folder)
    assert (ended.code, ended.out) == (0, "1 artifact: 1 ok, 0 with problems, 0 not read; 0 other files left out\n")
    (folder / "readme").write_text("words, and more words")
    unlisted(folder)
    ended = jaxexport("audit", folder)
    assert (ended.code, ended.err) == (1, "")
    assert f"{folder}/good" not in ended.out
    assert "FAIL  my_kernel_of_ours" in ended.out
    assert ended.out.endswith("\n2 artifacts: 1 ok, 1 with problems, 0 not read; 1 other file left out\n")
    (folder / "cut").write_bytes(CHOLESKY.read_bytes()[:900])
    ended = jaxexport("audit", folder, code=2)
    assert ended.err.startswith(f"jaxexport: error: {folder}/cut: expected ")
    assert "1 with problems, 1 not read" in ended.out


@pytest.mark.parametrize(
    "words",
    [("audit",), ("inspect",), ("inspect", "--json"), ("diff", "golden"), ("goldens", "add", "--dry-run", "--from")],
)
def test_a_link_to_a_folder_is_reported_and_not_followed(jaxexport, tmp_path, words):
    write_golden(GoldenStore(tmp_path / "elsewhere"), manifest("t.linked"))
    (tmp_path / "golden").mkdir()
    shutil.copy(CHOLESKY, tmp_path / "golden")
    (tmp_path / "golden" / "t.linked").symlink_to(tmp_path / "elsewhere" / "t.linked")
    ended = jaxexport(*words, "golden")
    assert "golden/t.linked: a link to a folder, which is not followed: name the folder too." in ended.err


def test_many_files_are_audited_in_parallel_in_order(jaxexport, monkeypatch):
    files = [CHOLESKY, DATA / "0.9.2" / "mlp.jaxexport", DATA / "0.4.30" / "cholesky.jaxexport"]
    alone = jaxexport("audit", *files, "--jobs", "1")
    monkeypatch.setattr(folders, "CHUNK", 1)
    monkeypatch.setattr(folders, "FEW", 2)
    assert jaxexport("audit", *files, "--jobs", "2") == alone


def test_each_named_reader_must_accept_the_custom_calls(jaxexport):
    alone = jaxexport("audit", CHOLESKY, "--readers", "0.12.0.1", code=0)
    several = jaxexport("audit", CHOLESKY, "--readers", "0.12.0.1,0.4.30,tensorflow==2.21.0", code=1)
    assert "FAIL" not in alone.out
    assert "FAIL  lapack_spotrf_ffi" in several.out
    assert "FAIL  tensorflow 2.21.0 does not compile it" in several.out


def test_audit_names_runtimes_that_do_not_run_the_artifact(jaxexport, tmp_path):
    """The first line names each such runtime, and mentions `@main` only if something is wrong with it."""
    runtimes = "tensorflow==2.21.0,iree==3.13.0"
    first = jaxexport("audit", CHOLESKY, "--readers", runtimes, code=1).out.partition("\n")[0]
    assert ": does not run in tensorflow 2.21.0, iree 3.13.0, written by one of jaxlib 0.11.2" in first
    other = changed(tmp_path, "0.12.0.1/cholesky", nr_devices=7)
    first = jaxexport("audit", other, "--readers", "tensorflow==2.21.0", code=1).out.partition("\n")[0]
    assert ": @main is not what the envelope says, does not run in tensorflow 2.21.0, written by" in first
    fine = jaxexport("audit", DATA / "0.9.2" / "mlp.jaxexport", "--readers", runtimes, code=0)
    assert "does not run" not in fine.out


NOT_LOADED = [
    (
        "test_shardings.test_two_devices/0.12.0.1-cpu",
        "iree==3.13.0",
        "cannot load it: iree 3.13.0 does not parse the s",
    ),
    (
        "test_symbolic_shapes.test_one_dimension/0.12.0.1-cpu",
        "tensorflow==2.21.0",
        "cannot load it: tensorflow 2.21.0 h",
    ),
    ("test_programs.test_random/0.12.0.1-cpu", "iree==3.12.0", "cannot load it: iree 3.12.0 does not parse "),
    ("test_shardings.test_two_devices/0.6.2-cpu", "iree==3.13.0", "does not run it: it runs artifacts for one device"),
    ("test_linear_algebra.test_svd/0.12.0.1-cpu", "0.9.2", "cannot load it: "),
    ("test_linear_algebra.test_svd/0.12.0.1-cpu", "0.11.1", ""),
    ("test_conventions.test_version_9/0.9.2-cpu", "tensorflow==2.21.0", ""),
]


@pytest.mark.parametrize(("name", "reader", "reason"), NOT_LOADED, ids=range(len(NOT_LOADED)))
def test_audit_says_what_inspect_says_of_a_reader(jaxexport, name, reader, reason):
    """A runtime that does not load an artifact is a problem; a jaxlib that does not is a note beside its promise."""
    artifact = GOLDENS / f"tests.compat.{name}" / ARTIFACT
    of_runtime = "==" in reader
    inspected = jaxexport("inspect", artifact, "--readers", reader, code=1 if reason else 0)
    audited = jaxexport("audit", artifact, "--readers", reader, code=1 if reason and of_runtime else 0)
    title = reader.replace("==", " ") if of_runtime else f"jaxlib {reader}"
    assert reason.partition(":")[0] in inspected.out
    assert (f"  {'FAIL' if of_runtime else 'note'}  {title} {reason}" in audited.out) is bool(reason)
    assert (f": does not run in {title}, " in audited.out) is bool(reason and of_runtime)


def test_a_golden_is_audited_with_its_writer_and_allowances(jaxexport, cwd, tmp_path):
    """The writer is that of golden.yaml. The marker, the policy and its quirks allow custom calls."""
    envelope = read(unlisted(tmp_path)).envelope
    data = encode(envelope._replace(vjp=None))
    options = Options(("cpu",), allow={"my_kernel_of_ours": "we build it"})
    for case, made in (("t.allowed", {"options": options}), ("t.not", {})):
        write_golden(GoldenStore(cwd / "golden"), manifest(case, "0.12.0.1", **made), {**files(), ARTIFACT: data})
    for name in (
        "t.allowed/0.12.0.1-cpu",
        "golden/t.allowed/0.12.0.1-cpu",
        f"golden/t.allowed/0.12.0.1-cpu/{ARTIFACT}",
    ):
        ended = jaxexport("audit", name, code=0)
    assert ": ok, written by jaxlib 0.12.0.1" in ended.out
    assert "allowed: we build it" in ended.out
    text = "my_kernel_of_ours (custom call) is not guaranteed stable by jaxlib 0.12.0.1"
    assert text in jaxexport("audit", "t.not", code=1).out
    assert text in jaxexport("goldens", "verify", code=2).err
    (cwd / "export_compat.yaml").write_text(f"quirks: [{QUIRK}]")
    assert jaxexport("audit", "golden").code == 0
    assert jaxexport("goldens", "verify").code == 0
    refused = jaxexport("goldens", "verify", "--again", code=2).err
    assert "--again measures noise that is stored already: it can only be used with --noise." in refused


def test_a_case_is_audited_with_all_its_goldens(jaxexport, cwd, tmp_path):
    """Older goldens are replayed and deployed too: auditing only the newest one would miss their custom calls."""
    data = encode(read(DATA / "0.9.2" / "cholesky.jaxexport").envelope._replace(vjp=None))
    data = data.replace(b"lapack_spotrf_ffi", b"my_kernel_of_ours")
    store = GoldenStore(cwd / "golden")
    write_golden(store, manifest("t.a", "0.9.2"), {**files(), ARTIFACT: data})
    newest = write_golden(store, manifest("t.a"))
    ended = jaxexport("audit", "t.a", code=1)
    assert [line.split(":")[0] for line in ended.out.splitlines() if line.startswith("golden/")] == [
        f"golden/t.a/0.9.2-cpu/{ARTIFACT}",
        f"golden/{newest.id}/{ARTIFACT}",
    ]
    assert jaxexport("audit", newest.id).code == 0
    assert jaxexport("inspect", "t.a", str(CHOLESKY), code=0).out.startswith("3 artifacts")


def test_golden_yaml_cannot_name_another_writer(jaxexport, cwd, tmp_path):
    golden = write_golden(GoldenStore(cwd / "golden"), manifest("t.a", "0.9.2"))
    golden.artifact.write_bytes(unlisted(tmp_path).read_bytes())
    assert "writer: expected an artifact by jax 0.9.2" in jaxexport("audit", "t.a", code=2).err
