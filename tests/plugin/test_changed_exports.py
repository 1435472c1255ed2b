"""Exports that have changed although no output here shows it: their tests fail, and say what changed."""

import os
import re
import shutil

import pytest
from projects import Project, Projects, Run

HEAD = """
import jax, jax.numpy as jnp, numpy as np, pytest
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

X = np.ones((4, 4), np.float32)
SPLIT, WHOLE, OTHER = (
    NamedSharding(jax.sharding.Mesh(np.array(jax.devices()[:2]), ("a",)), PartitionSpec(*spec))
    for spec in (("a",), (), (None, "a"))
)

def everywhere(tpu):
    return jax.jit(lambda x: lax.platform_dependent(x, cpu=jnp.sin, tpu=tpu, default=jnp.cos))

def first(x):
    return jnp.where(x > 0, x, 0)

def second(x):
    return jnp.where(x > 0, x, 0)

@pytest.mark.export_compat(ignore_forward_compatibility=True)
def test_newest_readers_only(export_golden):
    export_golden(jax.jit(lambda x: x - 1), X)
"""
TEST = """
@pytest.mark.export_compat{marked}
def test_{name}(export_golden):
    export_golden({exported})
"""
SHARDED = "NamedSharding(Mesh(a=2), PartitionSpec('a')) → NamedSharding(Mesh(a=2), P"
CHANGES = {  # the export, a part of it, what replaces that part later, and the message
    "branch": ("everywhere(jnp.tanh), X", "tanh", "exp", "module: @main, for tpu: + exponential"),
    "precision": (
        *("jax.jit(lambda x: jnp.matmul(x, x, precision=None)), X", "None", '"highest"'),
        "dot_general: precision_config: [DEFAULT, DEFAULT] → [HIGHEST, HIGHEST]",
    ),
    "donation": (
        *("jax.jit(lambda x: x + 1, donate_argnums=()), X", "()", "0"),
        "argument 0: none → {tf.aliasing_output = 0 : i32}",
    ),
    "unused": (
        *("jax.jit(lambda x, y: x + 1, keep_unused=False), X, X", "False", "True"),
        "module_kept_var_idx: 0 → 0, 1",
    ),
    "constraint": (
        "jax.jit(lambda x: lax.with_sharding_constraint(x * 2, SPLIT) + 1, in_shardings=SPLIT), X",
        *("lax.with_sharding_constraint(x * 2, SPLIT)", "x * 2"),
        "- sdy.sharding_constraint {sharding = sharding<'mesh'",
    ),
    "inputs": (
        *("jax.jit(lambda x: x + 1, in_shardings=SPLIT), X", "SPLIT", "OTHER", f"in_shardings[0] (args[0]): {SHARDED}"),
    ),
    "results": (
        *("jax.jit(lambda x: x + 1, in_shardings=SPLIT, out_shardings=SPLIT), X", "out_shardings=SPLIT"),
        *("out_shardings=WHOLE", f"out_shardings[0]: {SHARDED}"),
    ),
    "names": ("jax.jit(first), X", "first", "second", ""),
}


def program(*changed: str) -> str:
    """Return the source of a test for each export in CHANGES, with the named exports changed."""
    text = HEAD
    for name, (exported, part, later, _) in CHANGES.items():
        assert part in exported
        marked = '(platforms=["cpu", "cuda", "tpu"])' if name == "branch" else ""
        exported = exported.replace(part, later) if name in changed else exported
        text += TEST.format(marked=marked, name=name, exported=exported)
    return text


BEFORE = program()
DEVICES = """
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
"""


@pytest.fixture(scope="module")
def written(projects: Projects) -> Project:
    project = projects(test_a=BEFORE, conftest=DEVICES)
    assert project.pytest("--update-goldens").code == 0
    return project


@pytest.fixture(scope="module")
def run(written: Project, tmp_path_factory: pytest.TempPathFactory) -> Run:
    project = written.copy(tmp_path_factory.mktemp("changed") / "project")
    project.write(test_a=program(*CHANGES))
    return project.pytest()


def test_a_factorization_missing_from_the_export_is_a_change(projects):
    test = """
        import numpy as np, jax, pytest

        @pytest.mark.export_compat
        def test_twice(export_golden):
            export_golden(jax.jit(lambda x, y: (x * 2, y * 1.5)), np.ones(4, np.float32), np.eye(4, dtype=np.float32))
    """
    project = projects(test_a=test)
    assert project.pytest("--update-goldens").code == 0
    (path,) = project.goldens.glob("*/*/golden.yaml")
    path.write_text(path.read_text() + "factors:\n- compare: eigh\n  outputs: [0, 1]\n")
    report = project.pytest()["test_twice"]
    assert report.outcome == "failed"
    assert "factors: golden eigh (0, 1); now none of these" in report.text


def test_a_changed_constant_is_not_called_rounding(projects):
    test = """
        import numpy as np, jax, jax.numpy as jnp, pytest

        @pytest.mark.export_compat
        def test_scaled(export_golden):
            export_golden(jax.jit(lambda x: jnp.sin(x * FACTOR)), np.linspace(0, 3, 64, dtype=np.float32))
    """
    project = projects(test_a=test.replace("FACTOR", "1.5"))
    assert project.pytest("--update-goldens").code == 0
    project.write(test_a=test.replace("FACTOR", "1.500005"))
    text = project.pytest()["test_scaled"].text
    assert "numbers: output 0 float32[64]: " in text
    assert "module: @main: constant: value: dense<1.5> : tensor<f32> → dense<1.5000050067901611>" in text
    assert "looks like: rounding" not in text
    assert "random" not in text  # a number in the source was edited


def test_unchanged_exports_pass(written):
    assert written.pytest().code == 0


def test_a_manifest_records_ignore_forward_compat_flag(written):
    manifest = written.manifest("test_a.test_newest_readers_only")
    assert manifest["options"]["ignore_forward_compatibility"] is True
    assert manifest["flags"]["jax_export_ignore_forward_compatibility"] is True


@pytest.mark.parametrize("name", [name for name, (*_, message) in CHANGES.items() if message])
def test_a_changed_export_fails_even_if_outputs_are_equal(run, name):
    report = run[f"test_{name}"]
    assert report.outcome == "failed"
    assert "export changed, beyond locations and names:\n" in report.text
    assert CHANGES[name][-1] in report.text
    assert "numbers:" not in report.text
    assert f"If the change is intended: pytest --update-goldens test_a.py::test_{name}" in report.text


def test_renaming_a_function_is_not_a_changed_export(run):
    assert run["test_names"].outcome == "passed"


@pytest.mark.parametrize("by_marker", [True, False], ids=["marker", "policy"])
def test_under_warn_a_changed_export_passes_and_is_in_the_summary(written, tmp_path_factory, by_marker):
    project = written.copy(tmp_path_factory.mktemp("warn") / "project")
    plain = program("precision")
    marked = plain.replace("export_compat\ndef test_prec", "export_compat(changed_module='warn')\ndef test_prec")
    assert marked != plain
    project.write(test_a=marked if by_marker else plain)
    if not by_marker:
        (project.folder / "export_compat.yaml").write_text("changed_module: warn\n", encoding="utf-8")
    done = project.pytest("-k", "precision")
    assert done.code == 0, done.text
    assert "test_a.test_precision: export changed, and changed_module is warn: module: @main: dot_general" in done.text


def test_an_export_changed_by_a_jax_variable_names_the_variable(written, tmp_path):
    project = written.copy(tmp_path / "project")
    project.use_warm_workers()
    variables = {**os.environ, "JAX_DEFAULT_MATMUL_PRECISION": "highest", "JAX_PLATFORMS": "cpu"}
    report = project.pytest("-k", "precision", environment=variables, cold=True)["test_precision"]
    assert "precision_config: [DEFAULT, DEFAULT] → [HIGHEST, HIGHEST]" in report.text
    flag = "jax_default_matmul_precision"
    assert f"{flag}: golden None; now highest, see {flag.upper()}\n" in report.text
    assert "settings: they may be" not in report.text


def test_with_an_older_writers_golden_only_shardings_are_compared(written, tmp_path_factory):
    project = written.copy(tmp_path_factory.mktemp("older") / "project")
    for name in ("test_results", "test_precision"):
        (own,) = (project.goldens / f"test_a.{name}").iterdir()
        project.add_older_generation(f"test_a.{name}")
        shutil.rmtree(own)
    project.write(test_a=program(*CHANGES))
    done = project.pytest("-k", "results or precision")
    assert "export changed" in done["test_results"].text
    assert "out_shardings[0]: NamedSharding" in done["test_results"].text
    assert not re.search(r"(?m)^\s*module:", done["test_results"].text)
    assert done["test_precision"].outcome == "passed"  # another release may write another module


SETS = """
import jax
import numpy as np
import pytest

@pytest.fixture(scope="session")
def names():
    return {f"n{number}" for number in range(20)}

@pytest.mark.export_compat(rtol=1e-3)
def test_sets(export_golden, names):
    export_golden(jax.jit(lambda x: sum(x * int(name[1:]) for name in names)), np.ones(3, np.float32))

@pytest.mark.export_compat
def test_always_alike(export_golden):
    export_golden(jax.jit(lambda x: x + 1), np.ones(3, np.float32))
"""


RANDOM = """
import jax
import jax.numpy as jnp
import numpy as np
import pytest

@pytest.mark.export_compat
def test_constants(export_golden):
    weights = jnp.asarray(np.random.default_rng().random((6, 6)))
    export_golden(jax.jit(lambda x: x @ weights), np.ones(6, np.float32))
"""

ARGUMENTS = """
import jax
import numpy as np
import pytest

@pytest.mark.export_compat
def test_random(export_golden):
    export_golden(jax.jit(lambda x: x + 1), np.random.default_rng().random(6, np.float32))

@pytest.mark.export_compat
def test_seeded(export_golden):
    export_golden(jax.jit(lambda x: x * 2), np.random.default_rng(1).random(6, np.float32))

def further(export_golden, generator):
    exported = export_golden(jax.jit(lambda x: x * 3), np.ones(6, np.float32))
    exported.refused(generator.random(7, np.float32))
    exported.also(np.zeros(6, np.float32))
    exported.also(generator.random(6))
    exported.also(jax.ShapeDtypeStruct((6,), np.float32))

@pytest.mark.export_compat
def test_random_call(export_golden):
    further(export_golden, np.random.default_rng())

@pytest.mark.export_compat
def test_seeded_call(export_golden):
    further(export_golden, np.random.default_rng(1))
"""


@pytest.fixture(scope="module")
def by_seed(projects: Projects) -> tuple[Project, Run]:
    """A project, and the run that wrote its goldens; the tests of all its files share one second process."""
    project = projects(test_a=SETS, test_b=RANDOM, test_c=ARGUMENTS)
    project.use_warm_workers()
    return project, project.pytest("--update-goldens", twice=True)


def test_dependence_on_the_hash_seed_is_recorded(by_seed):
    project, run = by_seed
    assert run.code == 0, run.text
    assert re.search(r"test_a\.test_sets/\S+: not reproducible: two exports differed", run.text)
    assert project.manifest("test_a.test_sets")["reproducible"] is False
    assert "reproducible" not in project.manifest("test_a.test_always_alike")


def test_seed_dependent_goldens_compare_only_outputs(by_seed, tmp_path):
    project = by_seed[0].copy(tmp_path / "project")
    project.write(test_a=SETS.replace("in names)", "in sorted(names))"))  # as another seed might order them
    done = project.pytest("test_a.py")
    assert done.code == 0, done.text
    assert "1 case compared only by their outputs, since two exports differ: test_a.test_sets" in done.text


@pytest.fixture(scope="module")
def later(by_seed: tuple[Project, Run], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with another hash seed: one golden wrongly says that it depends on none, and one function has changed."""
    project = by_seed[0].copy(tmp_path_factory.mktemp("later") / "project")
    path = next(project.goldens.glob("test_a.test_sets/*/golden.yaml"))
    path.write_bytes(path.read_bytes().replace(b"reproducible: false\n", b""))
    project.write(test_a=SETS.replace("x + 1", "(x + 2) - 1"))
    project.use_warm_workers()
    variables = {**os.environ, "PYTHONHASHSEED": "7", "JAX_PLATFORMS": "cpu"}
    return project.pytest("test_a.py", environment=variables, cold=True, twice=True)


def test_a_check_finds_unrecorded_dependence_on_the_hash_seed(later):
    assert later["test_sets"].outcome == "passed", later.text
    assert "compared only by their outputs, since two exports differ: test_a.test_sets" in later.text


def test_a_change_under_all_hash_seeds_suggests_trying_more_seeds(later):
    report = later["test_always_alike"]
    assert report.outcome == "failed"
    assert "The outputs are equal, as this test compares them. `changed_module: warn`" in report.text
    seeds = "If you changed nothing, the hash seed may have changed the export. 2 other seeds do not restore it; this "
    text, _, command = report.text.partition(f"{seeds}tries 12, until the test passes:\n")
    assert "\nIf the change is intended: pytest" in text, "first what most need: a change is usually one of the source"
    assert "hash seed" not in text
    assert command.lstrip("E ").startswith("for seed in 1 2 3 ")
    assert "PYTHONHASHSEED=$seed pytest test_a.py::test_always_alike --no-second-export && break" in report.text


def test_random_constants_are_named_when_written_and_when_they_differ(by_seed, tmp_path):
    """An update never helps: the next run has other constants again."""
    project, run = by_seed[0].copy(tmp_path / "project"), by_seed[1]
    (remark,) = [line for line in run.text.splitlines() if line.startswith("  test_b.test_constants/")]
    assert "and fail if these differ in each run too: seed random arrays that the test closes over" in remark
    text = project.pytest("test_b.py")["test_constants"].text
    assert text.startswith("Other numbers than its golden")
    assert "constants: they differ from the golden's. If you changed nothing, they are random, and differ" in text
    project.pytest("--update-goldens", "test_b.py")  # as if no second export had shown it
    text = project.pytest("test_b.py")["test_constants"].text
    assert "constants: they differ from the golden's." in text


def test_random_arguments_are_named_when_written(by_seed):
    _, run = by_seed
    assert run.code == 0, run.text
    other = "-cpu: a second process has other example arguments: if they are random, seed them in the test"
    assert [line.split("/")[0] for line in run.text.splitlines() if other in line] == [
        "  test_c.test_random",
        "  test_c.test_random_call",
    ]


def test_noise_later_skips_the_second_export(projects):
    project = projects(test_a=SETS)
    done = project.pytest("--update-goldens", "--noise=later", twice=True)
    assert done.code == 0, done.text
    assert "reproducible" not in project.manifest("test_a.test_sets")
    assert "exported only once" not in done.text


def test_a_removed_leaf_named_in_constant_is_reported_as_gone(projects):
    test = """
        import jax, numpy as np, pytest

        @pytest.mark.export_compat(constant=["result['last']"])
        def test_summed(export_golden):
            export_golden(jax.jit(lambda x: {"last": x * 0, "sum": x + 1}), np.ones(4, np.float32))
    """
    project = projects(test_a=test)
    assert project.pytest("--update-goldens").code == 0
    project.write(test_a=test.replace('"last":', '"out":'))
    text = project.pytest()["test_summed"].text
    assert "gone result['last']; new result['out']" in text
    assert "expected leaves of what is exported" not in text
    text = project.pytest("--update-goldens")["test_summed"].text
    assert "expected leaves of what is exported, found result['last']. The leaves are args[0], result['out'], " in text
    assert "The golden has result['last'], which the function has no more. Correct the names, or remove those" in text
