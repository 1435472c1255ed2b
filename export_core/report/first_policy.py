"""A first policy for a project: a commented file, filled in from the goldens that exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from export_core.artifact.audit import judge_calls
from export_core.base.phrases import plural
from export_core.goldens import Golden
from export_core.policy import Policy
from export_core.releases.stable_targets import stable_targets
from export_core.report.yaml_text import yaml_text

_HEAD = """\
# yaml-language-server: $schema={schema}
# What this project asks of its goldens; `jaxexport matrix` and pytest read it. Every key has a default: `jaxexport
# policy show` prints the values in use. {summary}
goldens: {goldens}

# The promise, in days between two jaxlib build dates: a reader built at most so many days after its writer
# (backward) or before it (forward) must run the artifact. These are JAX's own windows.
windows:
  backward: {backward} days
  forward: {forward} days

# The releases that goldens are replayed in. window: every release with a promised cell here, the newest, and the one
# just before each writer; all: every release; or a list such as ["0.9.2", window].
readers: window

# Platforms to export for and to replay on: run, compile (where there is no such hardware), or auto.
{platforms}
# Places where artifacts have to run, whatever the window says: what fails there is owed, which fails a run.
# deployed:
#   - name: serving
#     jaxlib: "0.9.2"
#     until: 2026-12-31            # the last day; since, platform and cases are optional too
#     cases: [tests.test_model.*]

# A run that does not cover this is incomplete (exit code 3), even if its options asked for less.
required:
  platforms: [cpu]
{required}
"""

_TAIL = """\
# Tolerances of new goldens: a number, or numbers by dtype. A marker overrides them.
# rtol: {float32: 1.0e-5}
# Tolerances that a platform needs, also for goldens that exist already:
# tolerances:
#   tpu:
#     float32: {rtol: 1.0e-2}

# How goldens are compared, whatever they recorded: the first entry that matches counts.
# numbers:
#   - cases: [tests.test_model.*]
#     rtol: 1.0e-3                 # or atol, ulp, compare; without any, the default again
#     reason: TODO

# A relaxation for one golden.
# quirks:
#   - case: tests.test_model.test_attention
#     writer: "0.9.2"
#     rtol: 1.0e-3
#     reason: TODO
#     owner: TODO
#     issue: TODO
#     added: 2026-01-01
#     expires: 2026-03-31          # at most 90 days later; or permanent: true with an approver

# Cells whose promise is broken and that must fail in exactly this way. `jaxexport judge --propose` prints the entries
# for a run.
known_failures: []
"""


def first_policy(goldens: Sequence[Golden], folder: str, schema: str) -> str:
    """The text of the file.

    `folder` is the folder of the goldens, which need not exist yet; `schema` is the file of the JSON Schema, for
    editors. Raises `ArtifactError` for an artifact that cannot be read.
    """
    manifests = [golden.manifest for golden in goldens]
    writers = list(dict.fromkeys(m.writer.jaxlib for m in sorted(manifests, key=lambda m: m.writer.built)))
    exported = Counter(platform for m in manifests for platform in m.options.platforms)
    windows = Policy().windows
    summary = "There is no golden here yet." if not goldens else (
        f"Found here: {plural(len(goldens), 'golden')} of {plural(len({m.case for m in manifests}), 'case')} by jaxlib "
        f"{', '.join(writers)}."
    )  # fmt: skip
    platforms = "platforms:\n  cpu: run\n" + "".join(
        f"  # {name}: compile  # {plural(count, 'golden')} exported for it\n"
        for name, count in sorted(exported.items())
        if name != "cpu"
    )
    # Commented out: what a run must cover is a decision, and a wrong one makes runs incomplete.
    required = ["#  cells: 1", *([f"#  writers: {_inline_list(writers)}"] if writers else [])]
    head = _HEAD.format(
        schema=schema, goldens=_scalar(folder), summary=summary, backward=windows.backward, forward=windows.forward,
        platforms=platforms, required="\n".join(required),
    )  # fmt: skip
    return f"{head}\n{_allow(goldens)}{_TAIL}"


def _allow(goldens: Sequence[Golden]) -> str:
    callers: dict[str, list[str]] = {}
    for golden in goldens:
        writer = golden.manifest.writer.jax
        calls = golden.read_artifact().custom_calls
        for finding in judge_calls(calls, stable_targets(writer), allow=golden.manifest.options.allow):
            if not finding.ok:
                callers.setdefault(finding.target, []).append(golden.id)
    entries = "".join(
        f'#   {_scalar(target)}: ""  # called by {names[0]}{f" and {len(names) - 1} more" if names[1:] else ""}\n'
        for target, names in sorted(callers.items())
    )
    instruction = "found here: write why each may be relied on, and remove the #" if entries else "each with the reason"
    entries = entries or "#   my_target: our own library keeps it stable\n"
    return f"# Custom calls that are allowed beside JAX's stable list, {instruction}.\n# allow:\n{entries}\n"


def _inline_list(names: Sequence[str]) -> str:
    return yaml_text(list(names), default_flow_style=True, width=10_000).strip()


def _scalar(text: str) -> str:
    # The first line only: PyYAML writes `...` after a document that is a plain scalar.
    return yaml_text(text, width=10_000).splitlines()[0]
