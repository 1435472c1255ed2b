"""Arguments of export_golden: trees, every dtype, donated and keyword arguments, Python numbers, types alone.

Two exports of the same arguments give the same bytes.
"""

from types import SimpleNamespace

import pytest
from projects import Projects
from warm_pytest import WITH_AND_WITHOUT

FUNCTIONS = """
import jax

def tree(parameters, pair, *, factor, bias=None):
    left, right = pair
    summed = factor * (parameters["w"] @ left + parameters["b"])
    return {"sum": summed, "none": parameters["none"], "pair": (left, [right])}

def scaled(x, *, factor):
    return x * factor

def split(typed, raw):
    return jax.random.split(typed), jax.random.split(raw)

def consume(x):
    return x + 1
"""

TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest
from functions import consume, scaled, split, tree

pytestmark = pytest.mark.export_compat

def test_tree_keywords_and_a_double_as_jax_takes_it(export_golden):
    parameters = {"w": np.linspace(0, 1, 6).reshape(2, 3), "b": np.zeros(2, np.float32), "none": None}
    pair = (np.arange(3, dtype="float32"), np.arange(4))
    export_golden(jax.jit(tree), parameters, pair, factor=jnp.float32(3), bias=None)

def test_keys(export_golden):
    export_golden(jax.jit(split), jax.random.key(7), jax.random.PRNGKey(7))

def test_donated(export_golden):
    x = jnp.asarray(np.arange(4096.0))
    jitted = jax.jit(consume, donate_argnums=0)
    export_golden(jitted, x, name="once")
    export_golden(jitted, x, name="twice")
    assert float(x[3]) == 3  # the test may use it afterwards

def test_numbers(export_golden):
    x = np.array([[True, False]])
    z = np.array([1 + 2j, -0j], np.complex64)
    dtypes = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"]
    narrow = [np.arange(6).astype(jnp.dtype(dtype)) for dtype in dtypes]

    def f(a, b, c, d, x, z, e, s, *narrow):
        return a * 2, b * 2, c, d * 2, ~x, z * z, e, s, narrow, [jnp.reshape(each, (2, 3)) for each in narrow]

    export_golden(jax.jit(f), 3, 2.5, True, 1 + 2j, x, z, np.zeros((0, 3), "float32"), np.float32(1.5), *narrow)

def test_random_inputs(export_golden):
    export_golden(jax.jit(jnp.cumsum), np.random.default_rng().normal(size=8).astype("float32"))

def test_types(export_golden):
    (x,) = jax.export.symbolic_args_specs((np.ones((1, 4), np.float32),), "n, 2*h", constraints=("n >= 3",))
    exported = export_golden(jax.jit(scaled), x, factor=jax.ShapeDtypeStruct((), "int32"))
    exported.also(jax.ShapeDtypeStruct((5, 2), "float32"), factor=3)
    exported.refused(jax.ShapeDtypeStruct((5, 3), "float32"), factor=3, match="Division had remainder 1")

def test_types_with_values(export_golden):
    export_golden(jax.jit(jnp.linalg.cholesky), jax.ShapeDtypeStruct((2, 2), "float32"), inputs=(3 * np.eye(2),))
"""

WARM = """
import jax, jax.numpy as jnp, numpy as np
import functions

# Tracing here records this file and its lines in jax's caches; the goldens must not contain them.
jax.jit(functions.split)(jax.random.key(7), jax.random.PRNGKey(7))
jax.jit(functions.consume, donate_argnums=0)(jnp.asarray(np.arange(4096.0)))
jax.jit(jnp.cumsum)(np.zeros(8))
"""


@pytest.fixture(scope="module", params=WITH_AND_WITHOUT)
def written(projects: Projects, request: pytest.FixtureRequest) -> SimpleNamespace:
    """Runs that write goldens, check them, and write them again in another folder where jax is already warm."""
    project = projects(noise=request.param, functions=FUNCTIONS, test_arguments=TESTS)
    elsewhere = project.copy(project.folder.parent / "another folder of another length")
    elsewhere.write(conftest=WARM)
    written = SimpleNamespace(project=project, elsewhere=elsewhere)
    written.written_elsewhere = elsewhere.pytest("--update-goldens", elsewhere.folder.name, cwd=project.folder.parent)
    # In a new interpreter, which hashes strings in another way.
    project.write(conftest=request.param)
    project.use_warm_workers()
    written.written = project.pytest("--update-goldens", cold=True)
    written.checked = project.pytest()
    return written


def test_every_kind_of_argument_is_written(written):
    assert written.written.outcomes() == {"passed": list(written.written.tests)}, written.written.text
    assert written.written.code == 0


def test_every_kind_of_argument_is_checked_in_a_cold_process(written):
    """The inputs of test_random_inputs differ in each run: a check uses those of the golden."""
    assert written.checked.outcomes() == {"passed": list(written.checked.tests)}, written.checked.text
    assert "8 cases checked against 8 goldens: 8 kept" in written.checked.text


NUMBERS = ["int32[]", "float32[]", "bool[]", "complex64[]", "bool[1,2]", "complex64[2]", "float32[0,3]", "float32[]"]
NARROW = ["bfloat16[6]", "float16[6]", "float8_e4m3fn[6]", "float8_e5m2[6]", "int4[6]", "uint4[6]"]


@pytest.mark.parametrize(
    ("case", "inputs", "outputs"),
    [
        (
            "test_tree_keywords_and_a_double_as_jax_takes_it",
            ["float32[2]", "float32[2,3]", "float32[3]", "int32[4]", "float32[]"],
            ["float32[3]", "int32[4]", "float32[2]"],
        ),
        ("test_keys", ["key<fry>[]", "uint32[2]"], ["key<fry>[2]", "uint32[2,2]"]),
        (
            "test_numbers",
            [*NUMBERS, *NARROW],
            [*NUMBERS, *NARROW, *(dtype.replace("[6]", "[2,3]") for dtype in NARROW)],
        ),
        ("test_types", ["float32[n,2*h]", "int32[]"], ["float32[n,2*h]"]),
    ],
)
def test_the_manifest_has_types_as_jax_prints_them(written, case, inputs, outputs):
    signature = written.project.manifest(f"test_arguments.{case}")["signature"]
    assert (signature["inputs"], signature["outputs"]) == (inputs, outputs)


def test_goldens_are_equal_bytes_from_another_folder_and_a_warm_jax(written):
    here, there = written.project.stored(), written.elsewhere.stored()
    assert written.written_elsewhere.code == 0
    assert here.keys() == there.keys()
    assert [name for name in here if here[name] != there[name] and "random_inputs" not in name] == []


def test_goldens_contain_no_path_of_this_machine(written):
    folder = str(written.project.folder.parent).encode()
    assert [name for name, data in written.elsewhere.stored().items() if folder in data or b"conftest" in data] == []


def test_the_manifest_records_inputs_the_plugin_made(written):
    cases = [path.parents[1].name for path in written.project.goldens.rglob("golden.yaml")]
    made = {case for case in cases if "inputs_made" in written.project.manifest(case)}
    assert made == {"test_arguments.test_types"}
