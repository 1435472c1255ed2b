"""JAX's own goldens, read as literals, become goldens of this project, as by `nox -s jax_goldens`."""

import datetime
import runpy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from commands import Ended, assert_bad_input
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from making import ARTIFACTS, make_wheel
from replaying import misbehaving, replayed

from export_core.artifact import read
from export_core.goldens import GoldenStore, verify
from export_core.goldens.arrays import from_npz
from export_core.goldens.store import sha256
from export_core.matrix import Cell, CellLimits
from export_core.policy import Policy
from studies.from_jax.jax_data import FOLDER, DataError, DataRecord, JaxData, find_data, read_data
from studies.from_jax.jax_goldens import comparison_of, import_goldens, main

HEAD = """# A licence.
import datetime
import numpy as np

array = np.array
float32 = np.float32

data_2025_04_02 = {}
"""
MODULE = read(ARTIFACTS / "0.9.2" / "cholesky.jaxexport").envelope.mlir_module_serialized
"""A StableHLO module of type float32[4,4] -> float32[4,4], with a custom call of lapack_spotrf_ffi."""
MATRIX = "array([[4., 0., 0., 0.], [0., 1e-3, 0., 0.], [0., 0., 9., 0.], [0., 0., 0., 1.]], dtype=float32)"
ROOTS = MATRIX.replace("4.", "2.").replace("1e-3", "-0.5").replace("9.", "3.")


def golden(**changes: str) -> str:
    """Return the text of a golden of `MODULE`, as a data file of JAX has it, with these fields changed."""
    fields = {
        "testdata_version": "1",
        "platform": "'cpu'",
        "custom_call_targets": "['lapack_spotrf_ffi']",
        "serialized_date": "datetime.date(2025, 4, 2)",
        "inputs": f"({MATRIX},)",
        "expected_outputs": f"({ROOTS},)",
        "mlir_module_text": 'r"""module @jit_cos"""',
        "mlir_module_serialized": repr(MODULE),
        "xla_call_module_version": "9",
        "nr_devices": "1",
    } | changes
    return f"dict({', '.join(f'{name}={value}' for name, value in fields.items() if value)})\n"


@pytest.fixture
def store_goldens(monkeypatch, capsys, tmp_path):
    """A function that runs `jax_goldens` with these arguments, in a folder without a policy."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Ended:
        return Ended(main(words), *capsys.readouterr())

    return run


@pytest.fixture
def known(monkeypatch):
    """Adds `MODULE` to the table of JAX's own goldens."""
    days = verify.days_of_jax_goldens() | {sha256(MODULE): [datetime.date(2025, 4, 2)]}
    monkeypatch.setattr(verify, "days_of_jax_goldens", lambda: days)


def wheel(folder: Path, **files: str) -> str:
    """Make a wheel of jax with these data files, and return its path.

    Args:
        folder: the folder to write into.
        files: the text of each file by its name without the suffix, with `__` in place of slashes.
    """
    modules = {f"{FOLDER}/{name.replace('__', '/')}.py": text for name, text in files.items()}
    return str(make_wheel(folder, "jax", "0.12.0.1", modules={f"{FOLDER}/__init__.py": "", **modules}))


def test_goldens_of_a_wheel_are_stored_with_their_data(store_goldens, jaxexport, tmp_path, known):
    qr = golden(platform="'tpu'", custom_call_targets="['Qr', 'of_nobody']", nr_devices="")
    path = wheel(
        tmp_path,
        cpu_cholesky_lapack_potrf=f'{HEAD}data_2025_04_02["f32"] = {golden()}',
        pallas__mosaic_matmul=f"{HEAD}data = ({qr},)",
        export_with_memory_space="serializations = [dict(serialization_version=6, exported_serialized=bytearray(b''))]",
    )
    store = str(tmp_path / "golden")
    code, out, err = store_goldens(path, "--goldens", store)
    first, second = sorted(GoldenStore(Path(store)).goldens(), key=lambda golden: golden.manifest.case)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "3 goldens in jax 0.12.0.1: 2 new, 1 left out"
    assert first.id == "jax.cpu_cholesky_lapack_potrf.data_2025_04_02.f32/0.6.0-cpu"
    assert second.id == "jax.pallas.mosaic_matmul.data.0/0.6.0-tpu"
    envelope = first.read_artifact().envelope
    assert envelope.mlir_module_serialized == MODULE
    assert (envelope.platforms, envelope.nr_devices, envelope.calling_convention_version) == (("cpu",), 1, 9)
    (inputs,), (outputs,) = (from_npz(first.folder / name) for name in ("inputs.npz", "outputs.npz"))
    np.testing.assert_array_equal(inputs.data, np.diag(np.array([4, 1e-3, 9, 1], np.float32)))
    np.testing.assert_array_equal(outputs.data, np.diag(np.array([2, -0.5, 3, 1], np.float32)))
    assert first.manifest.comparison.rtol["float32"] == 1e-3
    assert second.manifest.options.allow == {"Qr": "JAX has this golden of it"}
    line = HEAD.count("\n") + 1
    assert first.manifest.origin.source == f"jax 0.12.0.1: cpu_cholesky_lapack_potrf.py:{line}"
    assert set(first.manifest.origin.derived) == {"writer", "envelope", "comparison"}
    assert jaxexport("goldens", "verify", "--goldens", store).code == 0
    again = store_goldens(path, "--goldens", store, "--quiet")
    assert again.out == "3 goldens in jax 0.12.0.1: 2 unchanged, 1 left out\n"


REFUSED = {
    "a call": ("data_2 = open('made', 'w')", "expected a literal, found a call of open"),
    "a comprehension": ("data_2 = [n for n in (1, 2)]", "expected a literal, found [n for n in (1, 2)]"),
    "a statement": ("while True: pass", "expected an assignment of literals, found another statement"),
    "a name twice": ("data_2025_04_02 = {}", "expected a new name, found data_2025_04_02 a second time"),
    "a power": ("data_2 = 9 ** 9 ** 9 ** 9", "expected a literal, found 9 ** 9 ** 9 ** 9"),
    "a huge bytearray": ("data_2 = bytearray(10 ** 12)", "expected a literal, found a call of bytearray"),
    "text in an array": ("data_2 = array(['a'])", "expected an array of numbers, found one of str"),
    "a ragged array": ("data_2 = array([[1, 2], [3]], dtype=float32)", "inhomogeneous"),
    "another dtype": ("data_2 = array([1], dtype=object)", "expected a dtype of NumPy, found object"),
    "no dict": ("data_3['f32'] = 1", "expected a dict of this file, found data_3"),
    "a newer version": (f"data_2 = {golden(testdata_version='2')}", "testdata_version: expected 1, found 2"),
    "another platform": (f"data_2 = {golden(platform='7')}", "platform: expected str, found int"),
    "no date": (f"data_2 = {golden(serialized_date='')}", "serialized_date: expected date, found no such field"),
    "one array less": (f"data_2 = {golden(inputs='()')}", "inputs: expected 1 array, as in main, found 0"),
    "no array": (f"data_2 = {golden(inputs='(1,)')}", "inputs: expected arrays, found int"),
    "another dtype than main": (
        f"data_2 = {golden(inputs='(array([1, 2, 3, 4]),)')}",
        "inputs: expected tensor<4x4xf32>, as in main, found int64[4]",
    ),
    "outputs of other sizes": (
        f"data_2 = {golden(expected_outputs=f'(array([{ROOTS}], dtype=float32),)')}",
        "expected_outputs: expected tensor<4x4xf32>, as in main, found float32[1, 4, 4]",
    ),
    "many devices": (f"data_2 = {golden(nr_devices='70000')}", "nr_devices and xla_call_module_version"),
    "a damaged module": (f"data_2 = {golden(mlir_module_serialized=repr(MODULE[:90]))}", "expected"),
    "no module": (f"data_2 = {golden(mlir_module_serialized='b123')}", "expected a literal, found b123"),
}


def test_unreadable_data_is_named_with_file_and_line(store_goldens, known, tmp_path):
    files = {f"data_{number}": f"{HEAD}{text}\n" for number, (text, _) in enumerate(REFUSED.values())}
    path = wheel(tmp_path, cpu_good=f"{HEAD}data = {golden()}", **files, no_python="data = dict(\n)]", deep="(" * 999)
    code, out, err = store_goldens(path, "--goldens", "golden", "--quiet")
    assert code == 2
    assert out == f"{len(files) + 3} goldens in jax 0.12.0.1: 1 new, {len(files) + 2} refused\n"
    lines = {line.split(":")[2].strip(): line for line in err.splitlines()}
    line = HEAD.count("\n") + 1
    for number, (_, message) in enumerate(REFUSED.values()):
        assert f"data_{number}.py:{line}: " in lines[f"data_{number}.py"]
        assert message in lines[f"data_{number}.py"]
    assert "no_python.py:2: not a file of Python literals" in lines["no_python.py"]
    assert "not a file of Python literals" in lines["deep.py"]
    assert not Path("made").exists()  # which an executed `open` would have made
    assert [one.manifest.case for one in GoldenStore(Path("golden")).goldens()] == ["jax.cpu_good.data"]


def test_a_golden_with_an_unknown_hash_is_refused(store_goldens, tmp_path):
    path = wheel(tmp_path, cpu_forged=f"{HEAD}data = {golden()}")
    ended = store_goldens(path, "--goldens", str(tmp_path / "golden"))
    assert ended.code == 2
    assert "expected a golden of JAX that this version of pytest-jaxexport knows by its SHA-256" in ended.err
    assert not (tmp_path / "golden").exists()


def test_an_import_that_finds_no_golden_is_an_error(store_goldens, tmp_path):
    path = wheel(tmp_path, cpu_nothing=HEAD)
    ended = store_goldens(path, "--goldens", str(tmp_path / "golden"))
    assert (ended.code, ended.out) == (2, "0 goldens in jax 0.12.0.1: none\n")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.whl", None, "expected a wheel of jax"),
        ("jax-0.12.0-py3-none-any.whl", None, "No such file"),
        ("jax-0.12.0-py3-none-any.whl", b"PK\3\4", "cannot read|not a zip file"),
        ("jaxlib-0.12.0-py3-none-any.whl", b"", "it is one of jaxlib"),
        ("9.9.9", None, "jaxlib 9.9.9 is not in the release calendar"),
    ],
)
def test_a_source_that_is_no_wheel_or_release_is_refused(store_goldens, tmp_path, name, content, message):
    named = name if name == "9.9.9" else str(tmp_path / name)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    ended = store_goldens(named, "--goldens", str(tmp_path / "golden"))
    assert_bad_input(ended)
    assert any(part in ended.err for part in message.split("|")), ended.err


def test_a_wheel_without_goldens_is_refused(store_goldens, tmp_path):
    assert_bad_input(store_goldens(str(make_wheel(tmp_path, "jax", "0.3.0"))), FOLDER, "found none in jax 0.3.0")


numbers = st.one_of(
    arrays.arrays(st.sampled_from(["float32", "float64", "int32", "uint32", "bool"]), arrays.array_shapes(max_side=3)),
    arrays.arrays(
        st.sampled_from(["complex64", "complex128"]),
        arrays.array_shapes(max_side=3),
        elements={"allow_nan": False, "allow_infinity": False},
    ),
)


@settings(max_examples=50)
@given(numbers)
def test_an_array_is_read_as_python_would_evaluate_it(array):
    with np.printoptions(threshold=10**9, floatmode="unique"):
        text = repr(array)
    names = {name: getattr(np, name) for name in ("array", "float32", "int32", "uint32", "complex64", "nan", "inf")}
    (record,) = read_data("a.py", f"data = dict(testdata_version=1, inputs=({text},))".encode())
    assert isinstance(record, DataRecord)
    (found,), expected = record.fields["inputs"], eval(text, names)
    assert (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


@settings(max_examples=50)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_give_records_or_errors(source):
    for found in read_data("a.py", source):
        assert isinstance(found, (DataRecord, DataError))


def installed(*names: str) -> list[tuple[str, Path]]:
    folder = Path(find_spec("jax").origin).parents[1] / FOLDER
    return [(name, folder / name) for name in names]


def test_installed_data_files_are_read_as_python_runs_them():
    for name, path in installed("cpu_svd_lapack_gesdd.py", "tpu_Sharding.py", "stablehlo_dynamic_top_k.py"):
        variables = {key: value for key, value in runpy.run_path(str(path)).items() if key.startswith("data_")}
        records = list(read_data(name, path.read_bytes()))
        assert records
        for record in records:
            _, variable, *keys = record.name.split(".")
            expected = variables.pop(variable) if not keys else variables[variable].pop(keys[0])
            for field, value in expected.items():
                np.testing.assert_equal(record.fields[field], value)
        assert not any(isinstance(value, dict) and value for value in variables.values())


def test_goldens_of_the_installed_jax_pass_here(warm_workers, here, forked_workers, tmp_path):
    names = ("cpu_triangular_solve_blas_trsm.py", "cpu_eigh_lapack_syev.py", "stablehlo_dynamic_top_k.py")
    data = JaxData("here", tuple((name, path.read_bytes()) for name, path in installed(*names)))
    store = GoldenStore(tmp_path)
    assert [one.status for one in import_goldens(data, store, Policy())] == ["new"] * 10
    few = [one for one in store.goldens() if one.manifest.case.endswith((".f32", "2023_07_16"))]
    cells = [Cell(golden, here, "cpu") for golden in few]
    outcomes = list(replayed(cells, misbehaving, start=warm_workers.start, limits=CellLimits(jobs=2, timeout=60.0)))
    assert [(str(outcome.verdict), outcome.message) for _, outcome in outcomes] == [("pass", "")] * 3


def test_the_installed_jax_is_found_without_importing_it():
    data = find_data("", Policy(), print)
    assert "cpu_qr_lapack_geqrf.py" in dict(data.files)
    assert not any(name.endswith("__init__.py") for name, _ in data.files)


@pytest.mark.parametrize(
    ("name", "shapes", "compare", "rtol"),
    [
        ("cpu_eigh_lapack_syev.data_2024_08_19.f32", [(8, 8), (8,)], "eigh", 1e-3),
        ("tpu_Lu.data_2023_03_21", [(3, 3), (3,), (3,)], "lu", 1e-3),
        ("cuda_lu_pivots_to_permutation.data_2025_04_01", [(2, 3, 8)], "allclose", 1e-3),
        ("cpu_tridiagonal_solve_lapack_gtsv.data_2025_01_09.f32", [(2, 4, 3)], "allclose", 1e-3),
        ("cuda_threefry2x32.data_2024_07_30", [(2, 4)], "allclose", 1e-7),
        ("pallas.mosaic_matmul.data_2024_09_24", [(64, 16)], "allclose", 1e-7),
    ],
)
def test_outputs_are_compared_as_jaxs_own_test_does(name, shapes, compare, rtol):
    comparison = comparison_of(name, [np.zeros(shape, np.float32) for shape in shapes])
    amount = comparison.rtol if isinstance(comparison.rtol, float) else comparison.rtol["float32"]
    assert (comparison.compare, amount) == (compare, rtol)
