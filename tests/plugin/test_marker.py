"""The values of marker, command line, ini file and policy file: which comes first, and which are refused.

A module of `register` that readers could not import is refused when its golden is written, with the way out.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from jax.sharding import PartitionSpec
from making import golden

from export_core.base.tolerances import COMPARATORS
from export_core.goldens import Check, Comparison
from export_core.run import case_options
from export_core.run import marker_keywords as core
from pytest_jaxexport.comparing import comparison, correction
from pytest_jaxexport.marker import Marked, MarkerError, all_keywords, own_targets, signature
from pytest_jaxexport.settings import Settings, read_marker, read_settings

MARKED = """
import pytest

@pytest.mark.export_compat({})
def test_f(export_golden):
    raise AssertionError("RAN")

def test_other():
    raise AssertionError("RAN")
"""

KEYWORDS = all_keywords()


def given(marked: Marked | None) -> dict[str, Any]:
    """Return the keywords that a marker sets, with their values."""
    return {name: value for name, value in (marked or {}).items() if value}


SIGNATURE = signature(KEYWORDS)
NO_GPU = "unknown platform 'gpu'; jax.export knows cpu, cuda, rocm, tpu. Did you mean 'cuda' or 'rocm'?"


def test_the_markers_option_prints_the_signature_and_its_help(pytester):
    listed = pytester.runpytest_inprocess("--markers")
    assert listed.ret == 0
    assert f"@pytest.mark.{SIGNATURE}" in listed.outlines
    assert len(SIGNATURE) < 1000
    assert "python -m pydoc pytest_jaxexport.export_compat" in SIGNATURE


def test_every_keyword_is_described_and_in_the_signature():
    assert tuple(KEYWORDS) == core.ALL_KEYWORDS
    assert set(COMPARATORS) <= {*KEYWORDS["compare"][1].replace(",", " ").split()}
    assert all(f"{keyword}=" in SIGNATURE.split(":")[0] for keyword in KEYWORDS)


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_each_keyword_accepts_its_example(keyword):
    value = eval(KEYWORDS[keyword][2], {"PartitionSpec": PartitionSpec})
    mark = pytest.mark.export_compat(**{keyword: value}).mark
    item: Any = SimpleNamespace(iter_markers=lambda name: [mark], nodeid="test_f", obj=None)
    options = read_marker(item)
    assert options is not None
    taken = options["entries"].get(keyword) or options[keyword]
    assert taken in (value, tuple(value) if isinstance(value, list) else value)


def test_disabled_checks_of_custom_calls_count_as_allowed_targets():
    """Only jax before 0.4.29 can leave out the shape assertions; a test's own marker may ask for it there."""
    checks = dict.fromkeys(("platform", "ALL", "shape_assertions", "my_target"), "why")
    mark = pytest.mark.export_compat(disabled_checks=checks, allow={"another": "why"}).mark
    item: Any = SimpleNamespace(own_markers=[mark])
    assert own_targets(item) == {"my_target", "another"}


GONE = (
    "ModuleNotFoundError: No module named 'gone_away'. It must be installed, or be found from the folder {root} or "
    "through PYTHONPATH."
)


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("platfroms=['cpu']", "has no keyword 'platfroms'; did you mean 'platforms'?"),
        ("tolerance=1e-3", "has no keyword 'tolerance'; did you mean 'rtol', 'atol' or 'ulp'?"),
        ("backend='cpu'", "has no keyword 'backend'; did you mean 'platforms'?"),
        ("dynamic_shapes='b'", "has no keyword 'dynamic_shapes'; did you mean 'symbolic_shapes'?"),
        ("'cuda'", "takes keywords only, found the positional 'cuda': write platforms=('cuda',)."),
        ("'cpu', 'CUDA'", "takes keywords only, found the positional 'cpu', 'CUDA': write platforms=('cpu', 'cuda')."),
        ("['cpu']", "takes keywords only, found the positional ['cpu']: write platforms=('cpu',)."),
        (
            "'gpu'",
            "takes keywords only, found the positional 'gpu': write platforms=(…,). Did you mean 'cuda' or 'rocm'?",
        ),
        ("'exact'", "takes keywords only, found the positional 'exact': write compare='exact'."),
        (
            "1e-3",
            "takes keywords only, found the positional 0.001: write it with its keyword, such as platforms=('cpu',) "
            "or rtol=1e-5.",
        ),
        ("platforms=['cpu', 'gpu']", f"platforms: {NO_GPU}"),
        ("platforms=[]", "platforms: expected at least one platform of cpu, cuda, rocm, tpu."),
        ("rtol=-1", "rtol: expected a finite number of 0 or more, found -1."),
        ("rtol='close'", "rtol: expected a finite number of 0 or more, found 'close'."),
        ("atol=float('inf')", "atol: expected a finite number of 0 or more, found inf."),
        ("atol=float('nan')", "atol: expected a finite number of 0 or more, found nan."),
        ("atol=True", "atol: expected a finite number of 0 or more, found True."),
        (
            "rtol={'flaot32': 1}",
            "rtol: flaot32: expected a floating-point dtype such as float32. Did you mean 'float32'?",
        ),
        ("atol={'float32': -1}", "atol: float32: expected a finite number of 0 or more, found -1."),
        ("ulp=1.5", "ulp: expected a whole number of 0 or more, found 1.5."),
        (
            "compare='equal'",
            f"compare='equal': expected one of {', '.join(COMPARATORS)}, or your own function as 'module:function'.",
        ),
        *(
            (
                f"compare={value}",
                f"compare={value}: expected the name of a comparator for all outputs: one of {', '.join(COMPARATORS)}, "
                "or your own function as 'module:function'.",
            )
            for value in ("{'float32': 'exact'}", "['exact']", "3")
        ),
        ("compare='gone_away:f'", f"compare='gone_away:f': cannot import gone_away: {GONE}"),
        ("compare='json:gone'", f"compare='json:gone': json ({json.__file__}) has no gone."),
        ("compare='json:__name__'", "compare='json:__name__': expected a function (expected, actual), found str."),
        ("changed_module='no'", "changed_module='no': expected 'fail' or 'warn'"),
        ("nothing_to_compare=True", "nothing_to_compare=True: expected the reason as text"),
        ("allow=['my_target']", "allow=['my_target']: expected a dict of custom-call targets, each with its reason"),
        (
            "allow={'my_target': ''}",
            "allow={'my_target': ''}: expected a dict of custom-call targets, each with its reason",
        ),
        (
            "disabled_checks=['ALL']",
            "disabled_checks=['ALL']: expected a dict of 'platform', 'ALL' or custom-call targets, each with its "
            "reason",
        ),
        ("vjp_order=-1", "vjp_order=-1: expected a derivative's order of 0 or more"),
        ("vjp_order=True", "vjp_order=True: expected a derivative's order of 0 or more"),
        ("symbolic_shapes=3", "symbolic_shapes=3: expected text such as 'b, 4', or one text or None for each argument"),
        ("constraints='b >= 2'", "constraints='b >= 2': expected a list: texts such as 'b >= 2'"),
        ("constraints=[2]", "constraints=[2]: expected a list of texts such as 'b >= 2'"),
        ("mesh=4", "mesh=4: expected axis names with their sizes, such as {'data': 4}"),
        ("mesh={'data': 0}", "mesh={'data': 0}: expected axis names with their sizes, such as {'data': 4}"),
        ("in_specs='data'", "in_specs='data': expected a list: a PartitionSpec or None for each argument"),
        ("spread_over='all'", "spread_over='all': expected a number of devices"),
        ("calling_convention_version='9'", "calling_convention_version='9': expected a version number"),
        ("ignore_forward_compatibility=1", "ignore_forward_compatibility=1: expected True or False"),
        ("register='nodes'", "register='nodes': expected a list: names of modules"),
        ("register=['']", "register=['']: expected a list of names of modules"),
        ("refused_on=['gpu']", f"refused_on: {NO_GPU}"),
    ],
)  # fmt: skip
def test_a_wrong_marker_is_refused(config, marker, message):
    mark = eval(f"pytest.mark.export_compat({marker})").mark
    item: Any = SimpleNamespace(iter_markers=lambda name: [mark], nodeid="test_a.py::test_f", obj=None, config=config)
    with pytest.raises(MarkerError) as refused:
        read_marker(item)
    message = message.replace("{root}", str(config.rootpath))
    assert str(refused.value) == f"@pytest.mark.export_compat {message}"


UNUSED = (
    "@pytest.mark.export_compat {}: expected none: compare={!r} takes no tolerances. Leave it out, or choose another"
)


@pytest.mark.parametrize(
    ("compare", "amount"), [("exact", {"ulp": 1}), ("exact", {"rtol": {"float32": 0}}), ("shape", {"atol": 0})]
)
def test_a_tolerance_that_a_marker_cannot_use_is_refused(config, compare, amount):
    """A tolerance of a class, or a comparator of a class, may be for its other tests: both are accepted."""
    together = [pytest.mark.export_compat(compare=compare, **amount).mark]
    apart = [pytest.mark.export_compat(compare=compare).mark, pytest.mark.export_compat(**amount).mark]

    def read(marks: list[pytest.Mark]) -> Marked:
        item: Any = SimpleNamespace(iter_markers=lambda name: marks, nodeid="test_f", obj=None, config=config)
        return read_marker(item)

    ((name, value),) = amount.items()
    with pytest.raises(MarkerError, match=re.escape(UNUSED.format(f"{name}={value!r}", compare))):
        read(together)
    for marks in (apart, apart[::-1]):
        assert read(marks)["compare"] == compare


def test_all_mistakes_of_a_marker_are_one_error(config):
    item: Any = SimpleNamespace(
        iter_markers=lambda name: [
            pytest.mark.export_compat(1, platforms="gpu", rtoll=1).mark,
            pytest.mark.export_compat(vjp_order="1", budgets={"max_flops": -1}, compare="json:gone", rtol=1e-3).mark,
        ],
        nodeid="test_a.py::test_f", obj=None, config=config,
    )  # fmt: skip
    with pytest.raises(MarkerError) as refused:
        read_marker(item)
    named = [re.search(r"^@pytest\.mark\.export_compat .*?(positional|rtoll|platforms|vjp_order|budgets|compare)", line)
        for line in str(refused.value).splitlines()]  # fmt: skip
    assert [found and found[1] for found in named] == [
        "positional",
        "rtoll",
        "platforms",
        "vjp_order",
        "budgets",
        "compare",
    ]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A stand-in for pytest's config, with one process that imports the comparators of all tests here."""
    cleanups: list[Callable[[], object]] = []
    yield SimpleNamespace(
        rootpath=tmp_path_factory.mktemp("empty"), stash=pytest.Stash(), add_cleanup=cleanups.append,
        getoption=lambda name: None, getini=lambda name: "",
    )  # fmt: skip
    for cleanup in cleanups:
        cleanup()


def test_a_wrong_marker_fails_its_test_before_it_runs(pytester):
    pytester.makepyfile(test_a=MARKED.format("'cpu'"))
    refused = pytester.runpytest_inprocess("--update-goldens", "-k", "test_f")
    assert refused.ret == pytest.ExitCode.TESTS_FAILED
    message = "@pytest.mark.export_compat takes keywords only, found the positional 'cpu': write platforms=('cpu',)."
    assert message in refused.outlines
    assert f"ERROR test_a.py::test_f - Failed: {message}"[:70] in refused.stdout.str()
    assert "RAN" not in refused.stdout.str()


def test_the_marker_nearest_to_a_test_takes_precedence(pytester):
    items, _ = pytester.inline_genitems(
        pytester.makepyfile(
            """
            import pytest
            pytestmark = pytest.mark.export_compat(rtol=1, atol=1, compare="svd")
            @pytest.mark.export_compat(rtol=2, atol=2)
            class TestA:
                @pytest.mark.export_compat(rtol=3)
                def test_f(self): ...
            """
        )
    )
    assert given(read_marker(items[0])) == {"rtol": 3, "atol": 2, "compare": "svd"}


def test_reading_a_marker_imports_no_comparator(pytester):
    pytester.makepyfile(checks_of_mine="def close_enough(expected, actual): ...")
    item = pytester.getitem(
        """
        import pytest
        @pytest.mark.export_compat(
            rtol={"float32": 1e-3, "bfloat16": 0.1}, ulp=4, compare="checks_of_mine:close_enough"
        )
        def test_f(): ...
        """,
        "test_f",
    )
    marked = read_marker(item)
    assert "checks_of_mine" not in sys.modules
    assert given(marked) == {
        "rtol": {"bfloat16": 0.1, "float32": 1e-3}, "ulp": 4, "compare": "checks_of_mine:close_enough"
    }  # fmt: skip


def test_a_marker_with_ulp_ignores_tolerances_of_policy_and_options(pytester):
    (pytester.path / "export_compat.yaml").write_text("rtol: 0.1\natol: {float32: 0.2}\n")
    settings = read_settings(pytester.parseconfig(f"--rootdir={pytester.path}", "--export-rtol=0.3"))
    assert comparison({"ulp": 2}, settings) == Comparison(ulp=2)
    assert comparison({"ulp": 2, "atol": 1e-9}, settings) == Comparison(ulp=2, atol=1e-9)
    assert comparison({}, settings) == Comparison(rtol=0.3, atol={"float32": 0.2})
    assert comparison({"compare": "exact", "ulp": 2}, settings) == Comparison("exact")


CORRECTED = [
    (Comparison("exact"), {"compare": "exact"}, "rtol: 0.5", None),
    (Comparison("exact", rtol=0.1, ulp=3), {"compare": "exact"}, "rtol: 0.5", None),  # as older versions recorded it
    (Comparison("shape", rtol=0.1), {"compare": "shape"}, "rtol: 0.5", None),
    (Comparison("m:f"), {"compare": "m:f"}, "rtol: 0.5", None),
    (Comparison(), {"compare": "exact", "rtol": 0.5}, "goldens: golden", {"compare": "exact"}),
    (Comparison(), {"compare": "m:f"}, "rtol: 0.5", {"compare": "m:f"}),
    (Comparison("exact"), {}, "rtol: 0.5", {"rtol": 0.5}),
]


@pytest.mark.parametrize(("recorded", "marked", "policy", "wanted"), CORRECTED)
def test_a_suggested_policy_rule_has_only_tolerances_that_apply(recorded, marked, policy, wanted, pytester):
    (pytester.path / "export_compat.yaml").write_text(policy)
    settings = read_settings(pytester.parseconfig(f"--rootdir={pytester.path}"))
    assert correction([golden(comparison=recorded)], marked, settings) == wanted


def test_a_rule_is_suggested_if_derivatives_have_another_tolerance(pytester):
    (pytester.path / "export_compat.yaml").write_text("rtol: 0.5")
    settings = read_settings(pytester.parseconfig(f"--rootdir={pytester.path}"))
    checks = (Check("vjp1", vjp=1, inputs="vjp1.inputs.npz", outputs="vjp1.outputs.npz"),)
    for compare, wanted in {"m:f": {"compare": "m:f"}, "exact": None}.items():
        one = golden(comparison=Comparison(compare), checks=checks)
        assert correction([one], {"compare": compare}, settings) == wanted


# --- which source takes precedence ------------------------------------------------------------------------------------

VALUES = {
    "rtol": {"marker": "1e-1", "command line": "1e-2", "ini": "1e-3", "policy": "0.0001"},
    "atol": {"marker": "0", "command line": "0", "ini": "1e-3", "policy": "0.0001"},
    "platforms": {"marker": "tpu", "command line": "cuda,cpu", "ini": "rocm cpu", "policy": "[cpu, tpu]"},
    "goldens": {"command line": "of_command", "ini": "of_ini", "policy": "of_policy"},
}
EFFECTIVE = {
    "rtol": {"marker": 1e-1, "command line": 1e-2, "ini": 1e-3, "policy": 1e-4, "nobody": None},
    "atol": {"marker": 0, "command line": 0, "ini": 1e-3, "policy": 1e-4, "nobody": None},
    "platforms": {
        "marker": ("tpu",),
        "command line": ("cuda", "cpu"),
        "ini": ("rocm", "cpu"),
        "policy": ("cpu", "tpu"),
        "nobody": None,
    },
    "goldens": {"command line": "called/of_command", "ini": "of_ini", "policy": "of_policy", "nobody": "golden"},
}
ORDER = ["marker", "command line", "ini", "policy", "nobody"]


@pytest.mark.parametrize(("key", "first"), [(key, first) for key, sources in EFFECTIVE.items() for first in sources])
def test_a_marker_overrides_options_ini_file_and_policy(pytester, monkeypatch, key, first):
    """Set a value in the source `first` and in all sources that it precedes."""
    values = {source: text for source, text in VALUES[key].items() if ORDER.index(source) >= ORDER.index(first)}
    option = "--goldens" if key == "goldens" else f"--export-{key}"
    words = [f"{option}={values['command line']}"] if "command line" in values else []
    pytester.makeini(f"[pytest]\nexport_{key} = {values['ini']}" if "ini" in values else "[pytest]")
    if "policy" in values:
        (pytester.path / "export_compat.yaml").write_text(f"{key}: {values['policy']}\n")
    # Paths of the command line start here, all others at the root directory.
    monkeypatch.chdir(pytester.mkdir("called"))
    config = pytester.parseconfig(f"--rootdir={pytester.path}", f"-c{pytester.path / 'tox.ini'}", *words)
    settings = read_settings(config)
    value = values.get("marker") and (("tpu",) if key == "platforms" else float(values["marker"]))
    marked = {key: value} if "marker" in values else {}
    assert _effective(settings, marked, pytester)[key] == EFFECTIVE[key][first]


def _effective(settings: Settings, marked: Marked, pytester: pytest.Pytester) -> dict[str, object]:
    compared = comparison(marked, settings)
    return {
        "rtol": compared.rtol,
        "atol": compared.atol,
        "platforms": case_options.export_options(marked, settings.policy, settings.platforms).platforms,
        "goldens": settings.goldens.relative_to(pytester.path).as_posix(),
    }


@pytest.mark.parametrize(
    ("words", "ini", "policy", "message"),
    [
        (["--export-rtol=close"], "", "", "--export-rtol: expected a finite number of 0 or more, found 'close'."),
        (["--export-platforms=gpu"], "", "", f"--export-platforms: {NO_GPU}"),
        ([], "export_atol = -1", "", "tox.ini: export_atol: expected a finite number of 0 or more, found '-1'."),
        ([], "export_platforms = cpu,gpu", "", f"tox.ini: export_platforms: {NO_GPU}"),
        ([], "export_module_text = maybe", "", "tox.ini: export_module_text: expected yes or no, found 'maybe'."),
        (["--export-policy=none.yaml"], "", "", "none.yaml: expected a policy file, found no such file."),
        ([], "", "golden: here", "export_compat.yaml:1: golden: unknown key. Did you mean `goldens`?"),
    ],
)  # fmt: skip
def test_an_invalid_setting_ends_the_run_before_tests(pytester, words, ini, policy, message):
    pytester.makepyfile(test_a=MARKED.format(""))
    pytester.makeini(f"[pytest]\n{ini}")
    if policy:
        (pytester.path / "export_compat.yaml").write_text(policy)
    refused = pytester.runpytest_inprocess(*words)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert len([line for line in refused.errlines if line]) == 1
    assert refused.errlines[0].startswith("ERROR: jaxexport: error: ")
    assert refused.errlines[0].endswith(message)
    assert "RAN" not in refused.stdout.str()


NODES = """
    import collections, jax.export
    import msgspec  # stands for any package that no reader has

    Point = collections.namedtuple("Point", "x y")
    if hasattr(jax.export, "register_namedtuple_serialization"):
        jax.export.register_namedtuple_serialization(Point, serialized_name="t.Point")
"""
TESTS = """
    import jax, jax.numpy as jnp, nodes, pytest

    @pytest.mark.export_compat(register=["nodes"])
    def test_point(export_golden):
        export_golden(jax.jit(lambda x: nodes.Point(x, x)), jnp.arange(3.0))
"""


def test_a_module_no_reader_can_import_is_refused(projects):
    project = projects(test_a=TESTS, nodes=NODES)
    run = project.pytest("--update-goldens")
    assert run.code == 1
    assert "register='nodes' imports msgspec, and readers have jax, numpy" in run["test_point"].text
    assert "reader_packages: [msgspec]" in run["test_point"].text
    assert not project.goldens.exists()
    (project.folder / "export_compat.yaml").write_text("reader_packages: [msgspec]\n")
    assert project.pytest("--update-goldens").code == 0
    (project.folder / "export_compat.yaml").unlink()
    assert project.pytest().code == 0, "what is stored already is judged by its replay"
