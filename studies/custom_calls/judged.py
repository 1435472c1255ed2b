"""The judgement of the committed results on other days: ``python -m studies.custom_calls.judged [OPTION…]``.

An earlier version of jaxexport made these results, so `jaxexport judge` refuses them, as a gate should. This program
judges them as if the present version had made them.
"""

import sys
import tempfile
from pathlib import Path

import msgspec

from export_core.base.json_text import safe_json
from export_core.cli.entry import main
from export_core.matrix.cache_keys import tool
from export_core.run.plan_record import PLAN, Evidence, plan_of
from export_core.run.results import RESULTS, read_summary, write_summary
from studies.custom_calls.building import HERE


def as_of_this_version(results: Path, folder: Path) -> None:
    """Copy the run in the folder `results` into `folder`, as if the present version of jaxexport had made it."""
    plan = msgspec.structs.replace(plan_of(results), tool=tool(), evidence=Evidence.of({"tool": tool()}))
    (folder / PLAN).write_bytes(safe_json(plan))
    (folder / RESULTS).write_bytes((results / RESULTS).read_bytes())
    summary = read_summary(results)
    # The goldens of this run are not committed, and the folder `golden` here has others.
    identity = msgspec.structs.replace(summary.identity, goldens=str(HERE / "golden"))
    write_summary(folder, msgspec.structs.replace(summary, plan=plan.digest, identity=identity))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        as_of_this_version(HERE / "results", Path(scratch))
        sys.argv[:] = ["jaxexport", "judge", scratch, *sys.argv[1:]]
        main()
