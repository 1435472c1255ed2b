"""Fixtures of conversions: `convert`, which replays what is converted in this interpreter, as the only reader."""

from collections.abc import Callable

import msgspec
import pytest
from commands import Ended
from replaying import misbehaving, replayed

from export_core.artifact import DisabledCheck
from export_core.artifact.envelope.encode import encode
from export_core.features.convert import fixed_by_conversion, proof
from export_core.goldens import Golden, GoldenStore
from export_core.goldens.store import ARTIFACT, sha256
from export_core.matrix import CellLimits
from export_core.readers.environment import this_interpreter


@pytest.fixture
def convert(jaxexport, here, warm_workers, forked_workers, monkeypatch) -> Callable[..., Ended]:
    """The function that runs `jaxexport convert WORDS --for JAXLIB`, where JAXLIB is that of this interpreter."""
    replayed_here(monkeypatch, this_interpreter, start=warm_workers.start)
    return lambda *words, reader=here.jaxlib, **ends: jaxexport("convert", *words, "--for", reader, **ends)


@pytest.fixture
def in_a_bad_reader(monkeypatch, here, forked_workers) -> None:
    """A reader that misbehaves as tests/misbehaving defines, for `convert`."""
    replayed_here(monkeypatch, misbehaving)


def replayed_here(monkeypatch, environment, **options) -> None:
    """Replay converted artifacts in this environment, whatever their reader."""

    def replay_here(cells, how, *, notify):
        return replayed(cells, environment, limits=CellLimits(jobs=1, timeout=60.0), **options)

    for module in (proof, fixed_by_conversion):
        monkeypatch.setattr(module, "replay_here", replay_here)


@pytest.fixture
def refused(goldens, tmp_path) -> Callable[[str], Golden]:
    """The function that makes a golden with a disabled check that no reader since 0.10.0 knows."""

    def make(name: str) -> Golden:
        golden = goldens[name]
        envelope = golden.read_artifact().envelope
        data = encode(envelope._replace(disabled_checks=(DisabledCheck("shape_assertions"),)))
        files = {**golden.files(), ARTIFACT: data}
        manifest = msgspec.structs.replace(golden.manifest, files={name: sha256(x) for name, x in files.items()})
        store = GoldenStore(tmp_path / "golden")
        store.write(manifest, files)
        return store.generations(golden.manifest.case)[0]

    return make


@pytest.fixture
def refused_golden(refused) -> Golden:
    """A golden that its reader refuses, and that works when it is converted."""
    return refused("waves")
