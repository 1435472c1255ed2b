"""Builders of test data without jax: manifests, goldens, results and wheels, with valid defaults."""

import base64
import datetime
import functools
import hashlib
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from export_core.artifact import ArtifactError, read, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.goldens import Comparison, Golden, GoldenStore, Manifest, Options, Writer
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.manifest import Signature, signature_of
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS, sha256
from export_core.judge import Judgement, Result, RunFacts, Summary, calendar_facts, gate
from export_core.judge.causes import find_causes
from export_core.matrix import Verdict
from export_core.matrix.result import WriterOf
from export_core.policy import Policy
from export_core.policy.entries import KnownFailure, Required, WindowDays
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import Release, Windows, load_calendar, promise
from export_core.report.document import Document, RunDifference
from export_core.report.view import view
from export_core.run.run import Run, judge_run

ARTIFACTS = Path(__file__).parent / "artifact" / "data"
NEWEST = "0.12.0.1"
SIGNATURE = Signature(("float32[2]",), ("float32[2]",), "((*,), {})", "*")
"""The default signature of a manifest."""


def with_causes(results: Iterable[Result]) -> list[Result]:
    """Return the results, the failing ones with the ids of their causes."""
    return find_causes(results)[0]


def summarize(
    results: Sequence[Result],
    *,
    policy: Policy | None = None,
    planned: int | None = None,
    as_of: datetime.date = datetime.date(2026, 11, 21),
    selection: dict[str, Any] | None = None,
    seconds: float = 0.0,
    **facts: Any,
) -> Summary:
    """Build the summary of a run with these results, by default of a whole one."""
    policy = policy or Policy()
    calendar = calendar_facts(policy.calendar(), as_of)
    planned = len(results) if planned is None else planned
    made = RunFacts(planned, as_of, selection or {"whole": True}, calendar, seconds, **facts)
    return gate.summarize(with_causes(results), policy, made)


def run_of(results: Sequence[Result], policy: Policy | None = None) -> Run:
    """Build a whole run of these results, with their own judgements."""
    return Run(with_causes(results), summarize(results, policy=policy, as_of=day("2026-11-22")))


def judged_run(results: Sequence[Result], policy: Policy | None = None) -> Run:
    """Build a whole run of these results, judged as a matrix judges it at its end."""
    policy, as_of = policy or Policy(), day("2026-11-22")
    calendar = calendar_facts(policy.calendar(), as_of)
    return judge_run(results, policy, RunFacts(len(results), as_of, {"whole": True}, calendar, 0.0))


def document(
    results: Sequence[Result], made: Summary | None = None, *earlier: RunDifference, folder: Path | None = None
) -> Document:
    """Build the report of these results, with the difference from an earlier run if one is given."""
    return view(Run(with_causes(results), made or summarize(results), folder=folder), *earlier)


def rules(
    windows: Windows | None = None, known: Sequence[KnownFailure] = (), required: Required | None = None
) -> Policy:
    """Build a policy with the keys that a judgement depends on."""
    lengths = windows or Windows()
    return Policy(
        windows=WindowDays(backward=lengths.backward_days, forward=lengths.forward_days),
        known_failures=tuple(known),
        required=required or Required(),
    )


def day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def writer(jaxlib: str = NEWEST, platform: str = "cpu") -> Writer:
    release = load_calendar().release(jaxlib)
    return Writer(jax=release.jax, jaxlib=jaxlib, built=release.built, python="3.12.0", platform=platform)


def manifest(case: str = "tests.test_a.test_f", jaxlib: str = NEWEST, **changes: Any) -> Manifest:
    plain = Manifest(
        case=case,
        test=f"tests/test_a.py::{case}",
        name=None,
        writer=writer(jaxlib),
        flags={"jax_enable_x64": False},
        options=Options(platforms=("cpu",)),
        comparison=Comparison(),
        signature=SIGNATURE,
        custom_calls=(),
        files={},
    )
    return msgspec.structs.replace(plain, **changes)


def golden(case: str = "tests.test_a.test_f", jaxlib: str = NEWEST, **changes: Any) -> Golden:
    """Build a golden for plans, without files on disk."""
    made = manifest(case, jaxlib, **changes)
    return Golden(made, Path("nowhere") / case / made.writer.id)


def files(fill: float = 1.0, size: int = 2, jaxlib: str = NEWEST) -> dict[str, bytes]:
    arrays = to_npz([leaf_of(np.full(size, fill, np.float32))])
    return {ARTIFACT: artifact_by(jaxlib), INPUTS: arrays, OUTPUTS: arrays}


@functools.cache
def artifact_by(jaxlib: str) -> bytes:
    """Return an artifact by this jaxlib, if there is one, without derivatives, since no check calls them."""
    own = Path(__file__).parents[1] / "golden" / "tests.compat.test_models.test_convolution" / f"{jaxlib}-cpu"
    candidates = (ARTIFACTS / jaxlib / "mlp.jaxexport", own / ARTIFACT, ARTIFACTS / NEWEST / "mlp.jaxexport")
    path = next(path for path in candidates if path.exists())
    envelope = read(path).envelope
    assert envelope is not None
    return path.read_bytes() if envelope.vjp is None else encode(envelope._replace(vjp=None))


def of_artifact(made: Manifest, artifact: bytes) -> Manifest:
    """Return the manifest with the signature and the custom calls of an artifact, unless it has its own."""
    signature, targets = read_once(artifact)
    if signature and made.signature == SIGNATURE:
        made = msgspec.structs.replace(made, signature=signature)
    return made if made.custom_calls else msgspec.structs.replace(made, custom_calls=targets)


@functools.lru_cache(64)  # hundreds of goldens have the same few artifacts
def read_once(artifact: bytes) -> tuple[Signature | None, tuple[str, ...]]:
    """Return the signature of an artifact and the targets of its custom calls; none of what cannot be read."""
    try:
        own = read_bytes(artifact)
    except ArtifactError:  # a test of what cannot be read
        return None, ()
    targets = tuple(sorted({call.target for call in own.custom_calls}))
    return own.envelope and signature_of(own.envelope), targets


def write_golden(store: GoldenStore, made: Manifest, content: dict[str, bytes] | None = None) -> Golden:
    """Write a complete golden with a real artifact."""
    content = files(jaxlib=made.writer.jaxlib) if content is None else content
    made = of_artifact(made, content.get(ARTIFACT, b""))
    hashed = msgspec.structs.replace(made, files={name: sha256(data) for name, data in content.items()})
    store.write(hashed, content)
    return next(golden for golden in store.generations(made.case) if golden.manifest.writer == made.writer)


@functools.cache  # thousands of results ask for the same releases
def release(jaxlib: str) -> Release:
    return load_calendar().release(jaxlib)


def result(
    verdict: Verdict = Verdict.PASS,
    judgement: Judgement = Judgement.KEPT,
    *,
    case: str = "tests.test_a.test_f",
    writer: str = "0.9.2",
    reader: str = "0.10.2",
    stage: Stage = Stage.COMPARE,
    message: str = "",
    promised: bool = True,
    **changes: Any,
) -> Result:
    """Build a judged cell, with dates of the calendar and the judgement of the test."""
    wrote, read = release(writer), release(reader)
    found = promise(wrote.built, read.built, Windows())
    plain = Result(
        case=case,
        golden=f"{case}/{writer}-cpu",
        writer=WriterOf(jax=wrote.jax, jaxlib=wrote.jaxlib, built=wrote.built, platform="cpu"),
        reader=read,
        platform="cpu",
        mode=Mode.RUN,
        stage=stage,
        verdict=verdict,
        message=message,
        signal=None,
        stderr="",
        max_abs_error=None,
        max_rel_error=None,
        seconds=0.1,
        custom_calls=(),
        direction=found.direction,
        days=found.days,
        promised=promised,
        promised_until=found.until,
        judgement=judgement,
        reproduce=f"jaxexport matrix --cases {case} --writers {writer} --readers {reader} --platforms cpu",
    )
    return msgspec.structs.replace(plain, **changes)


def of_runtime(plain: Result, runtime: str, built: str, **changes: Any) -> Result:
    """Return this cell in a reader that is not jaxlib, such as ``tensorflow==2.21.0``, built on this day."""
    reader = Release(jax="", jaxlib="", built=day(built), runtime=runtime)
    found = promise(plain.writer.built, reader.built, Windows())
    dates = {"direction": found.direction, "days": found.days, "promised_until": found.until}
    return msgspec.structs.replace(plain, reader=reader, **dates, **changes)


def ids(cells: Sequence[Any]) -> list[str]:
    return [cell.id for cell in cells]


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    stamps: Sequence[str] = ("2026-11-20",),
    needs: str = "",
    python: str = "",
    modules: dict[str, str] | None = None,
) -> Path:
    """Make a small wheel whose files have these time stamps, so that a test downloads nothing."""
    tags = f"{python or 'cp312'}-none-any" if name == "jaxlib" else "py3-none-any"
    path = folder / f"{name}-{version}-{tags}.whl"
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + (
        f"Requires-Dist: {needs}\n" if needs else ""
    )
    content = {
        f"{name}/__init__.py": f"__version__ = {version!r}\n",
        **(modules or {}),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tags}\n",
    }
    record = "".join(f"{file},sha256={_record_hash(text)},{len(text)}\n" for file, text in content.items())
    with zipfile.ZipFile(path, "w") as archive:
        for number, (file, text) in enumerate({**content, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items()):
            date = day(stamps[min(number, len(stamps) - 1)])
            archive.writestr(zipfile.ZipInfo(file, (date.year, date.month, date.day, 12, 0, 0)), text)
    return path


def _record_hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


REGISTERING = """
from __future__ import annotations
import collections, jax
from jax import export
import jax.numpy as jnp
Point = collections.namedtuple("Point", "x y")
export.register_namedtuple_serialization(Point, serialized_name="t.Point")
"""
"""A self-contained module that a golden can register."""
