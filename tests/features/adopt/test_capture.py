"""`export_core.capture`: goldens of calls in a server."""

import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import jax
import numpy as np
import pytest

import export_core
from export_core.artifact import ArtifactError
from export_core.goldens import Golden, GoldenError, GoldenStore, Origin
from export_core.goldens.verify import verify_goldens
from export_core.releases import ReleaseError, load_calendar

# Named: of the artifacts of some jax releases, one of several jaxlibs can be the writer.
OFTEN = {"every": 0, "writer": version("jaxlib")}
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def artifact() -> bytes:
    """{"x": float32[b,3]}, scale=float32[] -> (x * scale, a key)."""
    (b,) = jax.export.symbolic_shape("b")

    def scaled(tree, *, scale):
        return tree["x"] * scale, jax.random.key(7)

    types = {"x": jax.ShapeDtypeStruct((b, 3), "float32")}
    exported = jax.export.export(jax.jit(scaled))(types, scale=jax.ShapeDtypeStruct((), "float32"))
    return bytes(exported.serialize())


@pytest.fixture
def capture(artifact, tmp_path) -> Iterator[Callable[..., export_core.CapturedCall]]:
    """Captures into tmp_path/captured, each call unless asked otherwise."""
    made: list[export_core.CapturedCall] = []

    def start(**options: Any) -> export_core.CapturedCall:
        folder = options.pop("folder", tmp_path / "captured")
        made.append(export_core.capture(artifact, folder, "served.scaled", **{**OFTEN, **options}))
        return made[-1]

    yield start
    for call in made:
        call.close()


@pytest.fixture
def goldens(tmp_path) -> Callable[[], list[Golden]]:
    return lambda: GoldenStore(tmp_path / "captured").goldens()


def waited(call: export_core.CapturedCall) -> None:
    """Wait for the golden that is being written."""
    if call._writer is not None:
        call._writer.join()


def test_a_call_becomes_a_golden_with_what_it_returned(capture, goldens, artifact):
    with capture() as serve:
        result, _ = serve({"x": X}, scale=2.0)
    assert np.asarray(result).tolist() == (X * 2).tolist()
    assert (serve.captured, serve.problem) == (1, "")
    (golden,) = goldens()
    assert golden.manifest.case.startswith("served.scaled.")
    assert golden.manifest.writer.jaxlib == version("jaxlib")
    assert golden.manifest.origin == Origin("captured", "captured", version("jaxlib"))
    assert golden.content("artifact.jaxexport") == artifact
    assert list(map(str, golden.inputs())) == ["float32[2,3]", "float32[]"]
    assert golden.outputs()[0].data.tolist() == (X * 2).tolist()
    assert str(golden.outputs()[1]) == "key<fry>[]"
    verify_goldens(GoldenStore(golden.folder.parents[1]), load_calendar(), {})


def test_arrays_that_the_caller_changes_afterwards_are_stored_as_they_were(capture, goldens):
    x = X.copy()
    with capture() as serve:
        serve({"x": x}, scale=2.0)
        x[:] = 0
    (golden,) = goldens()
    assert golden.inputs()[0].data.tolist() == X.tolist()


@pytest.mark.parametrize(("every", "stored"), [(0, 2), (3600, 1)])
def test_an_equal_call_is_stored_once_and_another_beside_it_once_in_a_while(every, stored, capture, goldens):
    serve = capture(every=every)
    for scale in (2.0, 2.0, 3.0):
        serve({"x": X}, scale=scale)
        waited(serve)
    assert (serve.captured, len(goldens())) == (stored, stored)


@pytest.mark.parametrize("bound", [{"at_most": 2}, {"max_bytes": 15_000}])
def test_the_bounds_hold_for_all_processes_that_share_a_folder(bound, capture, goldens):
    for first in (2.0, 20.0):  # as two processes do, in turn
        serve = capture(**bound)
        for number in range(5):
            serve({"x": X}, scale=first + number)
            waited(serve)
    stored = goldens()
    size = sum(path.stat().st_size for golden in stored for path in golden.folder.iterdir())
    assert (len(stored) == 2) if "at_most" in bound else (stored and size <= 15_000)
    assert serve.problem == ""


def test_a_folder_without_its_golden_does_not_count(capture, goldens):
    with capture(at_most=1) as serve:
        serve({"x": X}, scale=2.0)
    (golden,) = goldens()
    shutil.rmtree(golden.folder)  # as where the process was killed between the two
    (golden.folder.parent / f".new-{golden.folder.name}").mkdir()
    (golden.folder.parent / f".new-{golden.folder.name}" / "golden.yaml").touch()
    with capture(at_most=1) as serve:
        serve({"x": X}, scale=3.0)
    assert (serve.problem, serve.captured) == ("", 1)


def test_a_golden_that_is_too_large_is_not_even_copied(capture, goldens, caplog):
    with capture(max_bytes=100) as serve:
        serve({"x": X}, scale=2.0)
    assert "expected a golden of at most 100 bytes (max_bytes), found " in serve.problem
    assert goldens() == []


def test_a_folder_that_cannot_be_written_never_fails_a_call(capture, tmp_path, caplog):
    (tmp_path / "file").write_text("no folder")
    with caplog.at_level(logging.WARNING):
        serve = capture(folder=tmp_path / "file" / "captured")
        for number in range(3):
            result, _ = serve({"x": X}, scale=1.0 + number)
            waited(serve)
    assert np.asarray(result).tolist() == (X * 3).tolist()
    assert (serve.captured, "NotADirectoryError" in serve.problem) == (0, True)
    (warning,) = caplog.records  # once
    assert warning.name == "export_core.capture"
    assert "no golden of this call of served.scaled: NotADirectoryError" in warning.getMessage()


def test_an_error_of_the_function_is_the_callers(capture, goldens):
    with capture() as serve, pytest.raises(ValueError, match="same pytree structure"):
        serve({"x": X}, wrong=2.0)
    assert goldens() == []


def test_a_result_whose_memory_was_given_away_is_no_golden(capture, goldens):
    """As by a function that takes it as a donated argument, before it was copied."""
    with capture() as serve:
        serve._begin(({"x": X},), {"scale": 2.0})
        result = jax.block_until_ready(jax.numpy.ones((2, 3)))
        result.delete()
        serve._finish([X, np.float32(2)], (result, jax.random.key(7)))
    assert "deleted" in serve.problem
    assert goldens() == []


def test_inside_a_traced_function_nothing_is_captured(capture, goldens):
    with capture() as serve:
        jax.jit(lambda x: serve({"x": x}, scale=2.0)[0])(X)
    assert (serve.problem, goldens()) == ("", [])


def test_calls_of_many_threads_are_answered_and_one_at_a_time_is_captured(capture, goldens):
    serve = capture(at_most=3)
    results: list[list[float]] = []

    def request(number: int) -> None:
        results.append(np.asarray(serve({"x": X}, scale=float(number))[0])[1].tolist())

    threads = [threading.Thread(target=request, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    waited(serve)
    assert sorted(results) == [(X[1] * number).tolist() for number in range(12)]
    assert 1 <= len(goldens()) == serve.captured <= 3
    assert serve.problem == ""


def test_a_server_may_load_the_artifact_itself(capture, goldens, artifact):
    loaded = jax.jit(jax.export.deserialize(bytearray(artifact)).call)
    with capture(call=loaded) as serve:
        serve({"x": X.astype("float64")}, scale=np.float64(2))  # which jax narrows
    assert serve.problem == ""
    assert list(map(str, goldens()[0].inputs())) == ["float32[2,3]", "float32[]"]


def test_a_function_that_takes_other_arguments_gives_no_golden(capture, goldens):
    with capture(call=lambda x: (x, jax.random.key(0))) as serve:
        serve(X)
    assert "inputs: expected 2 arrays (float32[b,3], float32[]), found 1" in serve.problem
    assert goldens() == []


ADD = """
import sys
from pathlib import Path
import numpy as np
from export_core.features.adopt.capture import _CaseStore
from export_core.goldens.adopt import writer_of
from export_core.artifact import read
from export_core.goldens import Leaf
from export_core.releases import load_calendar

artifact = read(sys.argv[1])
store = _CaseStore(Path(sys.argv[2]), "c", writer_of(artifact, load_calendar(), sys.argv[4]), 5, 10**6)
key = Leaf("key<fry>", np.zeros(2, np.uint32))
for number in range(5):
    x = np.full((2, 3), float(sys.argv[3]) + number, np.float32)
    store.add(artifact, [x, np.float32(1)], [x, key], "cpu")
assert "jax" not in sys.modules
"""


def test_processes_that_write_at_the_same_time_keep_the_bounds(artifact, goldens, tmp_path):
    (tmp_path / "a.jaxexport").write_bytes(artifact)
    words = [sys.executable, "-c", ADD, str(tmp_path / "a.jaxexport"), str(tmp_path / "captured")]
    processes = [subprocess.Popen([*words, first, version("jaxlib")]) for first in ("0", "3")]  # two calls are equal
    assert [process.wait() for process in processes] == [0, 0]
    assert len(goldens()) == 5
    for golden in goldens():
        golden.verify()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"case": "../up"}, GoldenError, "expected a case whose name a folder can have"),
        ({"every": float("nan")}, GoldenError, "expected `every` to be at least 0 seconds"),
        ({"at_most": 0}, GoldenError, "at_most and max_bytes above 0"),
        ({"writer": "0.9.9"}, ReleaseError, "jaxlib 0.9.9 is not in the release calendar"),
        ({"path_or_bytes": b"no artifact"}, ArtifactError, "expected"),
        ({"path_or_bytes": "none.jaxexport"}, ArtifactError, "none.jaxexport"),
    ],
)
def test_what_is_wrong_from_the_start_is_an_error_at_once(options, error, message, artifact, tmp_path):
    words = {"path_or_bytes": artifact, "folder": tmp_path / "captured", "case": "a", **OFTEN, **options}
    with pytest.raises(error, match=message):
        export_core.capture(**words)
    assert not (tmp_path / "captured").exists()
