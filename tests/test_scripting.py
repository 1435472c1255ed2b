"""`export_core.export_artifact` and `write_golden`, by which a script does what a marked test does."""

import datetime
import functools
import importlib
import re
import runpy
from pathlib import Path

import jax
import making
import numpy as np
import pytest
import yaml
from msgspec import structs
from projects import Projects
from warm_pytest import WHOLE_NOISE

import export_core
from export_core.artifact import read_bytes
from export_core.base.errors import ExportCompatError
from export_core.export.errors import ExportError
from export_core.goldens import GoldenError, GoldenStore
from export_core.goldens.manifest import UNKNOWN
from export_core.policy import Policy, find_policy, load_policy
from export_core.policy.load import FILE
from export_core.policy.run_options import RunOptions, Selection
from export_core.releases import Windows, promise
from export_core.run import read_run
from export_core.run.session import run_matrix

DAY = datetime.date(2026, 1, 1)
X = np.linspace(0.0, 1.0, 4, dtype=np.float32)


def on_tpu_only(x):
    return jax.ffi.ffi_call("only_on_tpu", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


@pytest.fixture(autouse=True)
def folder(tmp_path, forked_workers, monkeypatch):
    """An empty project, in which the script runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


def test_keywords_set_the_properties_of_the_artifact():
    artifact = export_core.export_artifact(
        jax.jit(lambda x, scale: x * scale),
        X,
        platforms=["cpu", "tpu"],
        vjp_order=1,
        symbolic_shapes=("b",),
        scale=X[:1],
    )
    assert artifact.envelope == read_bytes(artifact.data).envelope
    assert (artifact.envelope.platforms, artifact.envelope.vjp_order) == (("cpu", "tpu"), 1)
    assert str(artifact.envelope.in_avals[0]) == "float32[b]"
    exported = jax.export.deserialize(bytearray(artifact.data))
    assert np.array_equal(exported.call(X, scale=X[1:2]), X * X[1])


def test_exporting_an_artifact_does_not_run_it():
    """Running the function would fail, since no machine has its custom call."""
    artifact = export_core.export_artifact(jax.jit(on_tpu_only), X, allow={"only_on_tpu": "it is ours"})
    assert [call.target for call in artifact.custom_calls] == ["only_on_tpu"]


def test_a_custom_call_that_is_not_allowed_is_refused():
    with pytest.raises(ExportError, match=r"^export_artifact: .*custom calls .*only_on_tpu"):
        export_core.export_artifact(jax.jit(on_tpu_only), X)


def test_a_disabled_check_alone_does_not_allow_a_call():
    with pytest.raises(ExportError, match="only_on_tpu"):
        export_core.export_artifact(jax.jit(on_tpu_only), X, disabled_checks={"only_on_tpu": "it is new"})


def test_the_policy_sets_allowed_calls_and_platforms(folder):
    (folder / FILE).write_text("allow: {only_on_tpu: it is ours}\nplatforms: [tpu]\n")
    artifact = export_core.export_artifact(jax.jit(on_tpu_only), X)
    assert artifact.envelope.platforms == ("tpu",)


def test_an_artifact_names_no_path_of_this_machine():
    function = jax.jit(lambda x: np.float32(2) * x)
    function(X)  # jax keeps what it has traced, with its lines of source
    data = export_core.export_artifact(function, X).data
    assert Path(__file__).name.encode() not in data
    assert data == export_core.export_artifact(function, X).data


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"vjp_order": -1}, "export_artifact: vjp_order=-1: expected a derivative's order of 0 or more"),
        ({"platforms": ["gpu"]}, "export_artifact: platforms: unknown platform 'gpu'; jax.export knows cpu"),
        ({"rtol": -1.0}, "export_artifact: rtol: expected"),
        (
            {"compare": "exact", "rtol": 1.0},
            "export_artifact: rtol=1.0: expected none: compare='exact' takes no tolerances",
        ),
        ({"compare": "alclose"}, "export_artifact: .*'allclose'"),
        ({"compare": "nowhere:close"}, "export_artifact: compare='nowhere:close'"),
        ({"vjp_oder": 1}, "a keyword of the marker or of the function, found 'vjp_oder'. Did you mean 'vjp_order'?"),
        ({"mesh": {"x": 2}}, "'mesh' is a keyword of the marker and of the function"),
        ({"constraints": ["b > 2"]}, "export_artifact: constraints=('b > 2',) change nothing without symbolic_shapes"),
    ],
)
def test_a_wrong_keyword_is_an_error_as_in_a_marker(keywords, message):
    with pytest.raises(ExportCompatError, match=message.replace("(", r"\(").replace(")", r"\)").replace("?", r"\?")):
        export_core.export_artifact(jax.jit(lambda x, mesh=1: x * mesh), X, **keywords)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: export_core.export_artifact(f), "export_artifact: missing a required argument: 'x'. Pass the"),
        (lambda f: export_core.export_artifact(f, X, policy={"platforms": ["cpu"]}),
         "export_artifact: policy: expected the path of a policy file, found {'platforms': ['cpu']} of type dict."),
        (lambda f: export_core.write_golden("a", f, X, policy=Policy()),
         "write_golden('a'): policy: expected the path of a policy file, found Policy("),
        (lambda f: export_core.write_golden("a", f, X, goldens=GoldenStore("golden")),
         "write_golden('a'): goldens: expected the path of a folder of goldens, found GoldenStore("),
        (lambda f: export_core.write_golden("a", f, X, also=X),
         "write_golden('a'): also: expected a list with a tuple of positional arguments for each call, such as [(x,)]"),
        (lambda f: export_core.write_golden("a", f, X, also=[X]), "write_golden('a'): also: expected a list with"),
        (lambda f: export_core.write_golden("a", f, X, refused=3), "write_golden('a'): refused: expected a list with"),
        (lambda f: export_core.check(export_core.export_artifact(f, X).data, platform=["cpu"]),
         "platform: expected one of cpu, cuda, rocm, tpu, found ['cpu'] of type list."),
        (lambda f: find_policy(None), "find_policy: expected the path of a project's folder, found None of type None"),
        (lambda f: find_policy(".", {"goldens": "golden"}), "policy: expected the path of a policy file, found {"),
        (lambda f: load_policy(Policy()), "load_policy: expected the path of a policy file, found Policy("),
        (lambda f: load_policy(["a.yaml"]), "load_policy: expected the path of a policy file, found ['a.yaml']"),
        (lambda f: GoldenStore(None), "GoldenStore: expected the path of a folder of goldens, found None"),
        (lambda f: GoldenStore(["golden"]), "GoldenStore: expected the path of a folder of goldens, found ['golden']"),
        (lambda f: read_run(None), "read_run: expected the path of a folder of results, found None of type NoneType."),
        (lambda f: read_run([".jaxexport"]), "read_run: expected the path of a folder of results, found ['.jax"),
        (lambda f: promise("0.9.2", "0.10.0", Windows()),
         "promise: writer_built: expected the build date of a jaxlib, a datetime.date, such as load_calendar().built("),
        (lambda f: promise(DAY, datetime.datetime(2026, 2, 1), None), "promise: reader_built: expected the build date"),
        (lambda f: promise(DAY, DAY, 180), "promise: windows: expected Windows(180, 21) or None, found 180."),
        (lambda f: run_matrix("policy", Selection(), RunOptions()),
         "run_matrix: policy: expected a Policy, which find_policy('.') or load_policy('export_compat.yaml') reads, "
         "found 'policy' of type str."),
        (lambda f: run_matrix(Policy(), "all", RunOptions()), "run_matrix: selection: expected a Selection, such as"),
        (lambda f: run_matrix(Policy(), Selection(), {}), "run_matrix: options: expected RunOptions, such as"),
        (lambda f: run_matrix(Policy(), Selection(), RunOptions(), goldens="golden"),
         "run_matrix: goldens: expected goldens as GoldenStore('golden').goldens() reads them, or None, found '"),
    ],
)  # fmt: skip
def test_an_argument_of_a_wrong_type_is_one_clear_error(call, message):
    with pytest.raises(ExportCompatError) as raised:
        call(jax.jit(lambda x: x * 2))
    assert str(raised.value).startswith(message)


def test_windows_may_be_given_as_a_tuple_of_two_numbers():
    assert promise(DAY, DAY + datetime.timedelta(5), (4, 21)) == promise(DAY, DAY + datetime.timedelta(5), Windows(4))


def test_an_argument_named_like_an_option_can_be_bound_by_partial():
    function = functools.partial(jax.jit(lambda x, mesh: x * mesh), mesh=X)
    assert len(export_core.export_artifact(function, X).envelope.in_avals) == 2


def test_a_function_that_is_not_jitted_is_refused():
    def f(x):
        return x

    with pytest.raises(ExportError, match=r"^export_artifact: expected a jitted function first.*Wrap it: jax.jit\(f\)"):
        export_core.export_artifact(f, X)


def test_a_golden_is_written_once_with_its_noise(folder):
    function = jax.jit(lambda x: jax.numpy.tanh(x) @ x)
    first = export_core.write_golden("models.dot", function, X, also=[(X + 1,)], refused=[(X[:2],)])
    assert (first.status, first.crash, first.remarks) == ("new", "", ())
    (golden,) = GoldenStore(folder / "golden").goldens()
    golden.verify()
    assert golden.folder.resolve() == first.golden.folder.resolve()
    manifest = golden.manifest
    assert (manifest.case, manifest.test, manifest.noise is not None) == ("models.dot", "", True)
    assert [bool(check.refused) for check in manifest.checks] == [False, True]
    assert golden.read_artifact().data == export_core.export_artifact(function, X).data
    written = times(folder / "golden")
    again = export_core.write_golden("models.dot", function, X, also=[(X + 1,)], refused=[(X[:2],)])
    assert (again.status, times(folder / "golden")) == ("unchanged", written)
    function = jax.jit(lambda x: jax.numpy.sin(x) @ x)
    changed = export_core.write_golden("models.dot", function, np.linspace(0.0, 1.0, 4), goldens="golden")
    assert changed.status == "replaced"
    (remark,) = changed.remarks
    assert remark.startswith("inputs were float64 and are stored as float32, since jax_enable_x64 is off")
    unchanged = export_core.write_golden("models.dot", function, np.linspace(0.0, 1.0, 4))
    assert (unchanged.status, unchanged.remarks) == ("unchanged", ())


def test_write_golden_refuses_swapped_case_and_function_arguments(folder):
    with pytest.raises(GoldenError, match=r"^write_golden: .* then the function, found tanh "):
        export_core.write_golden(jax.jit(jax.numpy.tanh), "models.tanh", X)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("function", "refusal"),
    [
        (lambda x: x * np.nan, "expected outputs that show what the function computes"),
        (lambda x: jax.lax.fori_loop(0, 60, lambda _, x: 3.9 * x * (1 - x), x), "numbers of this golden would prove"),
    ],
)
def test_a_golden_whose_numbers_prove_nothing_is_not_written(folder, function, refusal):
    with pytest.raises(ExportError, match=refusal):
        export_core.write_golden("nothing", jax.jit(function), X)
    assert not (folder / "golden").exists()


def test_a_golden_its_writer_cannot_replay_is_not_written(folder):
    (folder / "checks.py").write_text("def never(expected, actual): return 'they never agree'")
    with pytest.raises(ExportError, match=r"its own writer cannot replay this golden(?s:.*)they never agree"):
        export_core.write_golden("never", jax.jit(lambda x: x + 1), X, compare="checks:never")
    assert not (folder / "golden").exists()


def test_a_module_that_readers_cannot_import_is_refused(folder, monkeypatch):
    (folder / "own_nodes_of_a_script.py").write_text("import yaml\n")
    monkeypatch.syspath_prepend(folder)
    importlib.import_module("own_nodes_of_a_script")
    with pytest.raises(ExportError, match="yaml"):
        export_core.write_golden("nodes", jax.jit(lambda x: x + 1), X, register=["own_nodes_of_a_script"])
    assert not (folder / "golden").exists()


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden"])
def test_a_case_must_be_the_name_of_a_folder(folder, name):
    with pytest.raises(GoldenError, match=re.escape(f"found {name!r}")):
        export_core.write_golden(name, jax.jit(lambda x: -x), X)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("test", "python"), [("test_a.py::test_f", "3.12.1"), ("", UNKNOWN)])
def test_a_script_replaces_no_golden_of_a_test_or_adopted_artifact(folder, test, python):
    made = making.manifest("solver", test=test, writer=structs.replace(making.writer(), python=python))
    making.write_golden(GoldenStore(folder / "golden"), made)
    before = times(folder)
    with pytest.raises(GoldenError, match="the case solver belongs to"):
        export_core.write_golden("solver", jax.jit(lambda x: x + 1), X)
    assert times(folder) == before


SHARED_FUNCTION = """
import jax, numpy as np
import jax.numpy as jnp

X = np.linspace(0.0, 1.0, 16, dtype=np.float32).reshape(4, 4)
KEYWORDS = {"platforms": ["cpu", "tpu"], "vjp_order": 1, "symbolic_shapes": "b, 4", "rtol": {"float32": 1e-5}}
function = jax.jit(lambda x: (jnp.tanh(x).sum(1), x > 0.5))
"""

MARKED_TEST = """
import pytest
from function import KEYWORDS, X, function

@pytest.mark.export_compat(**KEYWORDS)
def test_f(export_golden):
    exported = export_golden(function, X)
    exported.also(X[:2])
    exported.refused(X[:, :2])
"""

SCRIPT_OF_IT = """
import export_core
from function import KEYWORDS, X, function

written = export_core.write_golden("scripted", function, X, also=[(X[:2],)], refused=[(X[:, :2],)], **KEYWORDS)
assert written.golden.read_artifact().data == export_core.export_artifact(function, X, **KEYWORDS).data
"""


def test_a_script_writes_the_golden_of_a_marked_test(projects: Projects, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/how-to/export-in-a-script.md has such a script as a process of its own."""
    project = projects(noise=WHOLE_NOISE, test_a=MARKED_TEST, function=SHARED_FUNCTION, script=SCRIPT_OF_IT)
    assert project.pytest("--update-goldens").code == 0
    monkeypatch.chdir(project.folder)
    monkeypatch.syspath_prepend(project.folder)
    runpy.run_path("script.py")
    by_test, by_script = project.stored("test_a.test_f"), project.stored("scripted")
    assert by_script.keys() == by_test.keys()
    (manifest,) = (name for name in by_test if name.endswith("golden.yaml"))
    of_test, of_script = (yaml.safe_load(stored.pop(manifest)) for stored in (by_test, by_script))
    assert by_script == by_test
    assert of_script == {**of_test, "case": "scripted", "test": ""}
    assert of_script["noise"]


def test_a_case_with_too_long_a_name_for_a_folder_is_refused():
    for case in ("A" * 300, "é" * 128):
        with pytest.raises(
            GoldenError, match=r"expected a case whose name a folder can have, .*, found '.{,80}, longer than 255 bytes"
        ):
            export_core.write_golden(case, jax.jit(lambda x: -x), X)


@pytest.mark.parametrize(("case", "problem"), [("a/b", "with '/'"), ("a.", "with '.' at its end"), ("", "empty")])
def test_the_error_names_the_invalid_character_of_a_case(case, problem):
    with pytest.raises(GoldenError, match=f"found '{case}', {problem}."):
        export_core.write_golden(case, jax.jit(lambda x: -x), X)
