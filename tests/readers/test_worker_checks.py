"""The checks of a cell: the plain call, derivatives, refusals, meshes and registrations, each also with a fault."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec
from msgspec import structs
from replaying import replayed

from export_core.export.case import Case, ExportOptions
from export_core.export.golden_checks import ExtraCall, add_checks
from export_core.export.produce import ProducedGolden, produce
from export_core.goldens import GoldenStore
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import MANIFEST, OUTPUTS, sha256
from export_core.matrix import Cell, CellLimits, Result, Verdict
from export_core.readers.environment import Environment, cell_variables
from export_core.readers.worker import client
from export_core.releases import load_calendar

X = np.linspace(0, 1, 4, dtype=np.float32)
MODULE = "boxes_of_the_worker"
NODES = """
import jax
from jax import export

class Box:
    def __init__(self, value):
        self.value = value

jax.tree_util.register_pytree_node(Box, lambda box: ((box.value,), None), lambda _, children: Box(*children))
export.register_pytree_node_serialization(
    Box, serialized_name="tests.WorkersBox", serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: None
)
"""


SECRETS = ("GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "UV_INDEX_URL", "PIP_INDEX_URL", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> GoldenStore:
    return GoldenStore(tmp_path_factory.mktemp("checks"))


@pytest.fixture(scope="module")
def outcomes(store, tmp_path_factory, here, warm_starts) -> dict[str, Result]:
    """The results of all goldens below, replayed in one worker, by case."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / f"{MODULE}.py").write_text(NODES)
    sys.path.insert(0, str(folder))
    boxes = __import__(MODULE)
    sys.path.remove(str(folder))

    def made(
        function: Callable[..., Any], *args: Any, uses: tuple[ExtraCall, ...] = (), **asked: Any
    ) -> ProducedGolden:
        case = Case("a", "test_a.py::a", None, jax.jit(function), args, {}, ExportOptions(**asked))
        return add_checks(produce(case, load_calendar(), reproducible=False), list(uses))

    def write(
        case: str,
        produced: ProducedGolden,
        planted: dict[str, bytes] | None = None,
        manifest: Callable[[Any], Any] = lambda manifest: manifest,
        gone: str = "",
    ) -> None:
        files = {**produced.files, **(planted or {})}
        hashed = structs.replace(
            produced.manifest, case=case, files={name: sha256(data) for name, data in files.items()}
        )
        store.write(manifest(hashed), files)
        if gone:
            (store.root / case / hashed.writer.id / gone).unlink()

    sine = made(jnp.sin, X, vjp_order=2)
    wrong = to_npz([leaf_of(np.full(4, 9, np.float32))])
    write("derivatives", sine)
    write("wrong_outputs", sine, {OUTPUTS: wrong})
    write("wrong_derivative", sine, {"vjp1.outputs.npz": wrong})
    write("wrong_second_derivative", sine, {"vjp2.outputs.npz": to_npz([leaf_of(X), leaf_of(X)])})
    write("derivative_that_is_there", sine, manifest=lambda m: _check(m, "vjp3", vjp=2, inputs="vjp2.inputs.npz"))

    symbolic = {"symbolic_shapes": ("b",), "constraints": ("b >= 2",)}
    uses = (ExtraCall((X[:1],), {}, "b >= 2"), ExtraCall((X[:2],), {}))
    shapes = made(jnp.cos, X, uses=uses, **symbolic)
    write("shapes", shapes)
    write("not_refused", shapes, {"refused1.inputs.npz": to_npz([leaf_of(X[:3])])})
    write("refused_otherwise", shapes, manifest=lambda m: _check(m, "refused1", refused="b >= 7"))
    other = made(jnp.tanh, X, uses=uses[:1], **symbolic)  # or it would be run as one with `shapes`
    write("refused_by_no_file", other, gone="refused1.inputs.npz")

    sharded = {"mesh": {"a": 2}, "in_specs": (PartitionSpec("a"),)}
    write("sharded", made(lambda x: (x * 2, x.sum()), X, vjp_order=1, **sharded))
    moved = made(jnp.tan, X, **sharded)
    write("moved", moved, manifest=lambda m: structs.replace(m, out_shardings=("0:[0:4] 1:[0:4]",)))
    write("spread", made(lambda x: x - x.mean(), X, spread_over=2))

    boxed = made(lambda box: boxes.Box(box.value * 2), boxes.Box(X), register=(MODULE,))
    module = f"{MODULE}.register.py"
    write("registered", boxed)
    write("unimportable", boxed, {module: b"raise ImportError('not on this reader')"})
    write("unregistered", boxed, {module: b""})
    write("tells_variables", boxed, {module: b"import os; raise ImportError(dict(os.environ))"})

    write("elsewhere", made(jnp.exp, X, platforms=("tpu",), refused_on=("cpu",)))
    write("here_after_all", made(jnp.exp, X, platforms=("cpu",)), manifest=_refused_here)
    write("lifted", made(jnp.exp, X, platforms=("tpu",), disabled_checks={"platform": "the same everywhere"}))

    cells = [Cell(golden, here, "cpu") for golden in store.goldens()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "start_process", warm_starts)
        for name in SECRETS:
            patch.setenv(name, "s3cret")
        # Without PYTHONDONTWRITEBYTECODE, which `this_interpreter` would pass on, since a worker may write bytecode.
        found = replayed(
            cells,
            lambda r: Environment(r, Path(sys.executable), cell_variables()),
            load_calendar(),
            limits=CellLimits(jobs=2, timeout=120),
        )
        return {outcome.case: outcome for _, outcome in found}


def _check(manifest: Any, name: str, **changes: Any) -> Any:
    checks = (structs.replace(check, **changes) if check.name == name else check for check in manifest.checks)
    return structs.replace(manifest, checks=tuple(checks))


def _refused_here(manifest: Any) -> Any:
    return structs.replace(manifest, options=structs.replace(manifest.options, refused_on=("cpu",)))


def test_a_module_that_a_golden_imports_sees_no_secret_variable(outcomes):
    outcome = outcomes["tells_variables"]
    assert "'PATH': " in outcome.message, "it prints all its variables"
    assert "s3cret" not in outcome.message + outcome.stderr


@pytest.mark.parametrize("case", ["derivatives", "shapes", "sharded", "spread", "registered", "elsewhere", "lifted"])
def test_correct_goldens_pass_with_all_their_checks(outcomes, case):
    outcome = outcomes[case]
    assert outcome.verdict is Verdict.PASS, (outcome.stage, outcome.message, outcome.stderr)


NOT_REFUSED = "expected this call to be refused, and it was not"


@pytest.mark.parametrize(
    ("case", "verdict", "message"),
    [
        ("wrong_outputs", Verdict.NUMERICS, "output 0 float32[4]: 4 of 4 elements differ"),
        ("wrong_derivative", Verdict.NUMERICS, "vjp1: output 0 (derivative by args[0]) float32[4]: 4 of 4 "),
        ("wrong_second_derivative", Verdict.NUMERICS, "vjp2: output 0 (derivative by args[0]) float32[4]: "),
        ("not_refused", Verdict.ERROR, NOT_REFUSED),
        ("derivative_that_is_there", Verdict.ERROR, NOT_REFUSED),
        ("here_after_all", Verdict.ERROR, NOT_REFUSED),
        ("refused_otherwise", Verdict.ERROR, "refused1: expected a refusal with 'b >= 7' in its message, found Value"),
        ("refused_otherwise", Verdict.ERROR, "b >= 2"),
        # A fault of the machine in a call to be refused is no refusal.
        ("refused_by_no_file", Verdict.NOT_RUN, "FileNotFoundError: [Errno 2]"),
        ("moved", Verdict.ERROR, "output 0 is sharded differently: expected 0:[0:4] 1:[0:4], got 0:[0:2] 1:[2:4]"),
        (
            "unimportable",
            Verdict.NOT_RUN,
            f"the module {MODULE} cannot be imported in this reader: ImportError: not on",
        ),
        ("unregistered", Verdict.ERROR, "tests.WorkersBox"),
    ],
)
def test_each_planted_fault_has_the_expected_verdict_and_message(outcomes, case, verdict, message):
    outcome = outcomes[case]
    assert outcome.verdict is verdict
    assert message in outcome.message


def test_a_module_is_imported_from_the_copy_in_the_golden(outcomes, store):
    assert Path(sys.modules[MODULE].__file__).parent.name.startswith("modules"), "no reader has this folder on its path"
    assert outcomes["registered"].verdict is Verdict.PASS
    (golden,) = store.generations("registered")
    assert {path.name for path in golden.folder.iterdir()} == {MANIFEST, *golden.manifest.files}
