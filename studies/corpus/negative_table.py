"""What this project and five releases of jax do with the negative corpus: `nox -s negative` renews data and page.

`-- --only-ours` renews only what `jaxexport` does, without any jax. tests/artifact, which has functions that make
artifacts, must be on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from stored_artifacts import WRITERS

from export_core.cli.app import main as jaxexport
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import load_calendar
from studies.corpus.negative_corpus import CONTROLS, calls, corpus
from tools.marked import filled, table

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).with_name("negative.json")
PROGRAM = Path(__file__).with_name("negative_program.py")
PAGE = ROOT / "docs" / "evidence" / "negative-corpus.md"
CORPUS = "studies/corpus/negative_corpus.py"
REMARKABLE = ("accepted", "other results")
"""The outcomes, other than a refusal, that an artifact of the corpus may have in a release of jax."""
ENDED = ("died", "no end")
"""The outcomes that no artifact of the corpus may have in a release of jax. If one has, nothing is written, and it has
to be taken out."""
OURS = WRITERS[-1]
"""The release whose artifacts are given to `jaxexport`."""


def ours(name: str, data: bytes) -> dict[str, list[Any]]:
    """Run `jaxexport inspect` and `jaxexport audit` on an artifact; return the exit code and the error of each."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("it.jaxexport").write_bytes(data)
        return {command: list(_answer(command, "it.jaxexport")) for command in ("inspect", "audit")}


def _answer(*words: str) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["jaxexport", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            jaxexport()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.argv = before
    failed = [line.strip() for line in out.getvalue().splitlines() if line.startswith("  FAIL")]
    return code, err.getvalue().strip() or (failed[0] if failed else "")


def jax_says(release: str) -> dict[str, list[str]]:
    """Return the outcome and the message of each artifact of the corpus in the release that wrote its original."""
    calendar = load_calendar()
    environment = ReaderEnvironments(calendar).build(Placement(calendar.release(release)))
    with tempfile.TemporaryDirectory() as folder:
        made = corpus(release)
        files = [f"{'c' if calls(name) else 't'}{number}" for number, name in enumerate(made)]
        for file, data in zip(files, made.values(), strict=True):
            Path(folder, file).write_bytes(data)
        command = [str(environment.python), "-W", "ignore", str(PROGRAM), folder, *files]
        done = subprocess.run(command, env=dict(environment.variables), stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(made, answers, strict=True))


def page(data: dict[str, Any], text: str) -> str:
    """Return `text`, the page, with its tables replaced by tables of this data."""
    wrong = {name: row for name, row in data.items() if name not in CONTROLS}
    counts = [(f"jax {each}", Counter(row["jax"][each][0] for row in wrong.values())) for each in reversed(WRITERS)]
    counts += [
        (f"`jaxexport {command}`", Counter("accepted" if row[command][0] == 0 else "read" for row in wrong.values()))
        for command in ("inspect", "audit")
    ]
    head = f"of {len(wrong)} artifacts", "refused when read", "refused when called", "accepted", "other results"
    stages = "read", "call", "accepted", "other results"
    tables = {
        "counts": table(head, ((who, *(of[stage] for stage in stages)) for who, of in counts)),
        "surprising": table(
            ("what is wrong", "`jaxexport inspect`", "`jaxexport audit`", "jax"),
            (
                (name, _own(row["inspect"]), _own(row["audit"]), found)
                for name, row in wrong.items()
                if (found := _surprise(row["jax"]))
            ),
        ),
    }
    return filled(text, tables)


def ended(data: dict[str, Any]) -> list[str]:
    """Return the names of the artifacts with which a release died or did not end."""
    return [name for name, row in data.items() if any(stage in ENDED for stage, _ in row["jax"].values())]


def _surprise(answers: dict[str, list[str]]) -> str:
    """Return what releases of jax did with a defective artifact other than to refuse it; "" if all refused it."""
    kinds: dict[str, list[str]] = {}
    for release, (stage, text) in answers.items():
        if stage in REMARKABLE:
            kinds.setdefault(f"{stage} ({text})" if text else stage, []).append(release)
    return "; ".join(
        kind if len(releases) == len(WRITERS) else f"{kind} in {', '.join(releases)}"
        for kind, releases in kinds.items()
    )


def _own(answer: list[Any]) -> str:
    return "accepted" if answer[0] == 0 else "refused"


def main() -> None:
    """Write the data and the page: what `jaxexport` and each release do with the corpus.

    Raises:
        SystemExit: an artifact ended or stopped a release, or a release did not accept a control.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only-ours", action="store_true", help="ask no release of jax again")
    options = parser.parse_args()
    before = json.loads(DATA.read_bytes()) if options.only_ours else {}
    answers = {} if options.only_ours else {release: jax_says(release) for release in WRITERS}
    data: dict[str, dict[str, Any]] = {
        name: {
            **ours(name, content),
            "jax": before[name]["jax"] if options.only_ours else {r: answers[r][name] for r in WRITERS},
        }
        for name, content in corpus(OURS).items()
    }
    if ending := ended(data):
        raise SystemExit(
            f"{', '.join(ending)}: expected that each artifact is refused or accepted; it ended or stopped a release. "
            f"Take it out of {CORPUS}, and say on the page which releases it was, and not how."
        )
    DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(data, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    controls = {name: data[name]["jax"] for name in CONTROLS}
    wrong = {name: row for name, row in controls.items() if any(stage != "accepted" for stage, _ in row.values())}
    print(f"{len(data)} artifacts, {len(WRITERS)} releases; written to {os.path.relpath(PAGE)}")
    if wrong:
        raise SystemExit(f"expected that every release accepts what has nothing wrong; found {wrong}")


if __name__ == "__main__":
    main()
