"""The first policy of a project, as `jaxexport policy init` writes it, from the goldens that are there."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import jinja2

from export_core.artifact.audit import judge_calls
from export_core.base.text import plural
from export_core.base.yaml_text import yaml_text
from export_core.goldens import Golden
from export_core.policy import Policy
from export_core.releases.stable_targets import stable_targets

_TEMPLATES = Path(__file__).parent / "templates"


def first_policy(goldens: Sequence[Golden], folder: str, schema: str) -> str:
    """Return the text of a new export_compat.yaml for a project with these goldens.

    `folder` is the folder of the goldens, which need not exist yet. `schema` is the path of the JSON Schema, which
    editors read. Raises `ArtifactError` if an artifact cannot be read.
    """
    manifests = [golden.manifest for golden in goldens]
    writers = list(dict.fromkeys(m.writer.jaxlib for m in sorted(manifests, key=lambda m: m.writer.built)))
    summary = "There is no golden here yet." if not goldens else (
        f"Found here: {plural(len(goldens), 'golden')} of {plural(len({m.case for m in manifests}), 'case')} by jaxlib "
        f"{', '.join(writers)}."
    )  # fmt: skip
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), undefined=jinja2.StrictUndefined, trim_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    text: str = templates.get_template("policy.yaml").render(
        schema=schema, goldens=_scalar(folder), summary=summary, windows=Policy().windows, plural=plural,
        exported=Counter(platform for m in manifests for platform in m.options.platforms),
        writers=yaml_text(writers, default_flow_style=True, width=10_000).strip() if writers else "",
        calls=[*_unpromised_calls(goldens)],
    )  # fmt: skip
    return text


def _unpromised_calls(goldens: Sequence[Golden]) -> Iterator[tuple[str, str]]:
    """Yield each custom-call target that is neither stable nor allowed, as YAML text, with the id of its golden."""
    for golden in goldens:
        stable = stable_targets(golden.manifest.writer.jax)
        calls = golden.read_artifact().custom_calls
        for finding in judge_calls(calls, stable, allow=golden.manifest.options.allow):
            if not finding.ok:
                yield _scalar(finding.target), golden.id


def _scalar(text: str) -> str:
    # The first line only: PyYAML writes `...` after a document that is a plain scalar.
    return yaml_text(text, width=10_000).splitlines()[0]
