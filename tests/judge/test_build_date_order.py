"""Lists of releases are in build-date order: 0.8.3 is younger than 0.9.0, and 0.10.0 than both."""

import yaml
from commands import finished
from making import result, rules, with_causes

from export_core.judge import Judgement
from export_core.judge.accepted import Accepted, merge_accepted
from export_core.judge.causes import causes_in
from export_core.judge.gate import uncovered
from export_core.judge.result import by_build_date
from export_core.matrix import Verdict
from export_core.policy.entries import Required
from export_core.readers.worker.protocol import Stage

ORDER = ["0.9.0", "0.8.3", "0.10.0", "0.12.0.1"]


def crashes(reader: str = "", writer: str = "0.9.0"):
    reader = reader or "0.12.0.1"
    return result(Verdict.CRASH, Judgement.BROKEN, reader=reader, writer=writer, stage=Stage.RUN, message="died")


def test_readers_and_writers_are_listed_by_build_date():
    read, written = [crashes(reader) for reader in sorted(ORDER)], [crashes(writer=one) for one in sorted(ORDER[:3])]
    assert by_build_date(one.reader for one in read) == ORDER
    (by_readers,), (by_writers,) = (causes_in(with_causes(results)) for results in (read, written))
    assert (list(by_readers.readers), list(by_writers.writers)) == (ORDER, ORDER[:3])
    (problem,) = uncovered(read, Required(readers=("0.99.*",)), ())
    assert problem.endswith(f"found {', '.join(ORDER)}.")


def test_what_was_accepted_lists_goldens_by_build_date():
    parts = [Accepted("quirk: rtol 1", "r", (f"t.a/{version}-cpu",)) for version in sorted(ORDER)]
    (accepted,) = merge_accepted([parts])
    assert accepted.cases == tuple(f"t.a/{version}-cpu" for version in ORDER)


def test_a_proposal_lists_readers_by_build_date(jaxexport, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "out", *(crashes(reader) for reader in ("0.10.0", "0.8.3", "0.9.0")), policy=rules())
    (entry,) = yaml.safe_load(jaxexport("judge", "out", "--propose").out)["known_failures"]
    assert entry["readers"] == ["0.9.0", "0.8.3", "0.10.0"]
