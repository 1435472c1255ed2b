"""A real FFI target that changes: compiled, registered in writer and reader, exported, replayed in cold processes."""

from importlib.metadata import version

import pytest
import replaying

from export_core.goldens import GoldenStore
from export_core.matrix import Cell, CellLimits, Verdict
from export_core.readers.environment import this_interpreter
from export_core.readers.worker import client
from export_core.readers.worker.protocol import Stage
from export_core.releases import Release, load_calendar
from studies.custom_calls.building import HERE, with_library


@pytest.mark.parametrize(
    ("day", "ignore_forward", "exported"),
    [
        ("D-1", False, "my_scale_v1"),
        ("D", False, "my_scale_v1"),
        ("D", True, "my_scale_v2"),
        ("D+21", False, "my_scale_v2"),
        ("RELEASE", False, "my_scale_v2"),
    ],
    ids=["D-1", "D", "D, forward compatibility ignored", "D+21", "RELEASE"],
)  # fmt: skip
def test_an_export_calls_the_target_of_its_day(export, day, ignore_forward, exported):
    produced = export(day, ignore_forward=ignore_forward)
    assert produced.manifest.custom_calls == (exported,)
    assert produced.outputs[0].data.tolist() == [0.0, 2.5, 5.0, 7.5]


def test_runs_use_the_new_target_while_exports_use_the_old_one(export):
    import jax
    import numpy as np
    import scale

    export("D")  # registers that day's lowering
    lowered = jax.jit(lambda x: scale.scale(x, 3.5)).lower(np.zeros(2, np.float32)).as_text()
    assert "my_scale_v2" in lowered
    assert "my_scale_v1" not in lowered


@pytest.mark.parametrize("day", ["D", "D+21"])
def test_a_jaxlib_without_the_new_target_gets_the_old_one(export, monkeypatch, day):
    import jax
    import numpy as np
    import scale

    monkeypatch.setattr(scale, "jaxlib_version", (0, 9, 0, 1))
    assert export(day, ignore_forward=True).manifest.custom_calls == ("my_scale_v1",)
    lowered = jax.jit(lambda x: scale.scale(x, 4.5)).lower(np.zeros(2, np.float32)).as_text()
    assert "my_scale_v2" not in lowered


@pytest.fixture(scope="module")
def replayed(export, libraries, tmp_path_factory, warm_starts):
    """The outcomes of cells in cold processes of this interpreter, by day of the library and exported target."""
    store = GoldenStore(tmp_path_factory.mktemp("scale") / "golden")
    for day in ("D-1", "D+21"):
        produced = export(day)
        store.write(produced.manifest, produced.files)
    here = Release(jax=version("jax"), jaxlib=version("jaxlib"), built=load_calendar().built(version("jaxlib")))
    cells = [Cell(golden, here, "cpu") for golden in store.goldens()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "start_process", warm_starts)
        return {
            (day, outcome.custom_calls[0]): outcome
            for day, library in libraries.items()
            for _, outcome in replaying.replayed(
                cells,
                lambda release, library=library: with_library(this_interpreter(release), library),
                load_calendar(),
                limits=CellLimits(jobs=2, timeout=60),
            )
        }


@pytest.mark.parametrize(
    ("day", "target"),
    [("D-1", "my_scale_v1"), ("D", "my_scale_v1"), ("D", "my_scale_v2"), ("RELEASE+180", "my_scale_v2")],
)
def test_a_reader_runs_the_targets_that_its_library_has(replayed, day, target):
    outcome = replayed[day, target]
    assert (outcome.verdict, outcome.stage) == (Verdict.PASS, Stage.COMPARE), outcome.message


@pytest.mark.parametrize(
    ("day", "target"),
    [("D-1", "my_scale_v2"), ("RELEASE+180", "my_scale_v1")],
    ids=["the new one too early", "the old one deleted"],
)
def test_a_missing_target_is_named_in_the_error(replayed, day, target):
    outcome = replayed[day, target]
    assert outcome.verdict is Verdict.ERROR
    assert target in outcome.message


@pytest.mark.weekly
@pytest.mark.usefixtures("libraries")
def test_real_releases_reproduce_the_committed_results(tmp_path):
    """docs/how-to/change-a-custom-call.md shows these results; `nox -s custom_calls` writes them."""
    from studies.custom_calls.replays import run
    from tools.stored_results import read_results

    def facts_of(result):
        return result.golden, result.reader.jaxlib, result.verdict, result.stage, result.message, result.custom_calls

    assert [facts_of(result) for result in run(tmp_path)] == [
        facts_of(result) for result in read_results(HERE / "results")
    ]
