"""`jaxexport goldens verify --noise` and `goldens add`: the noise of goldens that have none, in real readers."""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import msgspec
import numpy as np
import pytest
from commands import Ended, assert_bad_input
from making import ids

from export_core.goldens import Golden, GoldenStore
from export_core.goldens.store import ARTIFACT, INPUTS, NOISE, OUTPUTS
from export_core.numbers import measuring_noise

GOLDENS = Path(__file__).parents[2] / "golden"
CHOLESKY = "tests.compat.test_linear_algebra.test_cholesky"
MLP = "tests.compat.test_models.test_mlp_with_gradients"
WRITERS = ("0.9.2-cpu", "0.12.0.1-cpu")

Command = Callable[..., Ended]


@pytest.fixture
def project(cwd) -> Path:
    """The working folder: two goldens of a model and one of a Cholesky factorization, by two writers, without noise."""
    for case, writer in ((MLP, WRITERS[0]), (MLP, WRITERS[1]), (CHOLESKY, WRITERS[0])):
        store_without_noise(cwd, case, writer)
    return cwd


def store_without_noise(project: Path, source: str, by: str = WRITERS[0], **changes: object) -> str:
    """Store one of this project's goldens without its noise, and return its id."""
    (golden,) = (golden for golden in GoldenStore(GOLDENS).generations(source) if golden.manifest.writer.id == by)
    content = golden.files()
    content.pop(NOISE, None)
    hashes = {name: golden.manifest.files[name] for name in content}
    made = msgspec.structs.replace(golden.manifest, files=hashes, noise=None, **changes)
    GoldenStore(project / "golden").write(made, content)
    return f"{made.case}/{made.writer.id}"


def stored(project: Path) -> dict[str, Golden]:
    return {golden.id: golden for golden in GoldenStore(project / "golden").goldens()}


def contents(project: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(project.glob("golden/*/*/*"))}


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_verify_noise_adds_missing_noise_to_goldens(jaxexport, project):
    before = contents(project)
    ended = jaxexport("goldens", "verify", "--noise")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "noise of 3 of 3 goldens measured"), ended
    for golden in stored(project).values():
        record = golden.manifest.noise
        assert record is not None
        assert (record.jaxlib, record.moved) == (golden.manifest.writer.jaxlib, 6)
        assert (record.inside, record.amplified, record.compiled) == (24, 4, ("unoptimized",))
        assert (record.kernel != "") == (golden.manifest.case == CHOLESKY)
        assert f"{golden.id}  noise by jaxlib {record.jaxlib}: 6 moved inputs, " in ended.out
        assert any((noise > 0).any() for noises in golden.noise().values() for noise in noises if noise is not None)
    after = contents(project)
    assert {Path(path).name for path in after.keys() - before.keys()} == {NOISE}
    assert {Path(path).name for path in before if after[path] != before[path]} == {"golden.yaml"}
    assert jaxexport("goldens", "verify").code == 0

    again = jaxexport("goldens", "verify", "--noise")
    assert again == Ended(0, "3 goldens, all have their noise; --again measures it again\n", "")
    assert contents(project) == after

    anew = jaxexport("goldens", "verify", "--noise", "--again", f"{MLP}/0.9.2-cpu", CHOLESKY)
    assert anew.out.splitlines()[-1] == "noise of 2 of 2 goldens measured"
    assert contents(project) == after


def test_noise_takes_globs_of_cases_and_writers(jaxexport, project, monkeypatch):
    wanted = []
    monkeypatch.setattr(
        measuring_noise, "add_noise", lambda store, goldens, *_: iter([str(wanted.append(ids(goldens)))])
    )

    def chosen(*names):
        wanted.clear()
        jaxexport("goldens", "verify", "--noise", *names, code=0)
        return [name.removeprefix("tests.compat.test_") for name in wanted[0]]

    models = [f"models.test_mlp_with_gradients/{writer}" for writer in WRITERS]
    cholesky = "linear_algebra.test_cholesky/0.9.2-cpu"
    assert chosen("*.test_mlp*", MLP, "golden/tests.compat.test_models*") == models
    assert chosen("*/0.9.2*") == [cholesky, models[0]]
    assert chosen(f"{MLP}/0.12*", CHOLESKY) == [models[1], cholesky]
    assert chosen(f"{MLP}/0.9.2") == models[:1]
    assert_bad_input(jaxexport("goldens", "verify", "--noise", "*.test_mpl*"), "*.test_mpl*")
    assert_bad_input(jaxexport("goldens", "verify", "--noise", f"{MLP}/0.8*"), "no writer is called '0.8*'")


@pytest.mark.matrix
def test_a_golden_only_for_cuda_gets_no_noise(jaxexport, project, monkeypatch):
    # The artifact is that of a golden for cpu.
    monkeypatch.setattr("export_core.goldens.verify.check_bytes", lambda *_: None)
    options = stored(project)[f"{MLP}/0.9.2-cpu"].manifest.options
    options = msgspec.structs.replace(options, platforms=("cuda",))
    name = store_without_noise(project, MLP, case="for_cuda", options=options)
    before = contents(project)
    ended = jaxexport("goldens", "verify", "--noise", "for_cuda", code=0)
    assert ended.out.splitlines() == [
        f"{name}  no noise: it was exported for other platforms than cpu",
        "noise of 0 of 1 golden measured",
    ]
    assert contents(project) == before


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_noise_of_an_unavailable_writer_is_measured_by_the_next_release(jaxexport, project):
    # Built between 0.9.2 and 0.10.0, and on no index.
    release = "{built: 2026-04-10, python: ['3.11', '3.12', '3.13']}"
    (project / "export_compat.yaml").write_text(f"releases: {{jaxlib: {{0.9.2.7: {release}}}}}\n")
    writer = stored(project)[f"{MLP}/0.9.2-cpu"].manifest.writer
    writer = msgspec.structs.replace(writer, jaxlib="0.9.2.7", built=writer.built.replace(month=4, day=10))
    name = store_without_noise(project, MLP, case="ours", writer=writer)
    ended = jaxexport("goldens", "verify", "--noise", "ours")
    assert f"{name}  noise by jaxlib 0.10.0: 6 moved inputs, " in ended.out, ended
    record = stored(project)[name].manifest.noise
    assert record is not None
    assert record.jaxlib == "0.10.0"


def add(jaxexport: Command, artifact: Path, inputs: Path, outputs: Path, case: str, *more: str) -> Ended:
    words = ["--artifact", artifact, "--inputs", inputs, "--outputs", outputs, "--case", case, *more]
    return jaxexport("goldens", "add", *map(str, words))


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_an_adopted_golden_gets_its_noise_from_its_writer(jaxexport, project):
    """The noise equals that of a copy, measured on this processor, since noise depends on the processor."""
    ours = store_without_noise(project, MLP, case="ours")
    assert jaxexport("goldens", "verify", "--noise", "ours").code == 0
    folder = GOLDENS / MLP / "0.9.2-cpu"
    ended = add(jaxexport, folder / ARTIFACT, folder / INPUTS, folder / OUTPUTS, "adopted")
    assert ended.code == 0, ended
    assert ended.out.splitlines()[1] == "  its own writer replays it"
    assert ended.out.splitlines()[2].strip().startswith("noise by jaxlib 0.9.2: 6 moved inputs, ")
    adopted = (project / "golden" / "adopted" / "0.9.2-cpu" / NOISE).read_bytes()
    assert adopted == (project / "golden" / ours / NOISE).read_bytes()


@pytest.mark.matrix
@pytest.mark.usefixtures("forked_workers")
def test_a_chaotic_artifact_is_not_adopted(jaxexport, cwd):
    import jax

    def logistic_map(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 60, lambda _, x: 3.9 * x * (1 - x), x)

    values = np.random.default_rng(0).uniform(0.1, 0.9, 16).astype(np.float32)
    Path("chaos.jaxexport").write_bytes(jax.export.export(jax.jit(logistic_map))(values).serialize())
    np.savez("i.npz", values)
    np.savez("o.npz", np.asarray(jax.jit(logistic_map)(values)))
    ended = add(jaxexport, *map(Path, ("chaos.jaxexport", "i.npz", "o.npz")), "chaos", "--writer", version("jaxlib"))
    assert (ended.code, ended.out) == (2, "")
    assert "chaos: the numbers of this golden would prove nothing: output 0: " in ended.err
    assert not Path("golden").exists()
