"""The goldens, results and policy that tests of `jaxexport can-i-deploy` ask about."""

from pathlib import Path
from typing import Any

import msgspec
from making import ARTIFACTS, files, manifest, result, write_golden

from export_core.artifact import read
from export_core.artifact.envelope.encode import encode
from export_core.features.deploy.answers import Deployability
from export_core.goldens import GoldenStore
from export_core.goldens.store import ARTIFACT
from export_core.judge import Result, judge_again
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.readers.worker.protocol import Stage

CASE = "tests.test_a.test_f"

POLICY = """\
deployed:
  - {name: serving, jaxlib: 0.9.2}
  - {name: edge, jaxlib: 0.10.2, cases: ["*.test_f"]}
"""

KEPT = GoldenStore(Path(__file__).parents[1] / "golden")

NEW = ARTIFACTS / "0.12.0.1" / "cholesky.jaxexport"
"""An artifact that needs StableHLO 1.18, which came with jaxlib 0.11.0."""

GPU = "platforms: [cpu, cuda]\ndeployed: [{name: gpu, jaxlib: 0.10.2, platform: cuda}]\n"


def new_golden(case: str = CASE, artifact: Path = NEW) -> None:
    """Write a golden that neither deployment target loads."""
    content = {**files(), ARTIFACT: encode(read(artifact).envelope._replace(vjp=None))}
    write_golden(GoldenStore(Path("golden")), manifest(case, "0.12.0.1"), content)


def ran(verdict: Verdict, reader: str, writer: str = "0.9.2", **changes: Any) -> Result:
    return judge_again(result(verdict, writer=writer, reader=reader, **changes), Policy())


def answers(ended) -> list[tuple[str, str, str]]:
    """Return the deployment target, the artifact and the answer, for each answer."""
    found = msgspec.json.decode(ended.out, type=Deployability)
    assert ended.code == found.exit_code
    return [(each.target, each.artifact, str(each.answer)) for each in found.answers]


ON_TPU = "tests.test_a.test_on_tpu"

OTHER = "tests.test_a.test_g"

LATER_CRASH = {"stage": Stage.RUN, "message": "died by signal 6 (SIGABRT)"}
