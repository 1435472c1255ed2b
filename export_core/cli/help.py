"""Help of the commands: in groups, in whole sentences, each with an example and the page of the docs that has more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

GROUPS = {
    "Artifacts": ("inspect", "audit", "diff", "convert"),
    "Goldens": ("goldens", "backfill"),
    "Matrix": ("plan", "matrix", "merge", "judge", "report", "badge", "trend"),
    "Why": ("explain", "bisect", "reduce"),
    "Days": ("releases", "forecast", "can-i-deploy"),
    "Project": ("policy", "environments"),
}
"""The commands by what they are about, in the order in which they are used."""

PACKAGE = "pytest-jaxexport"
EXAMPLES = {
    "": ("docs/index.md", "jaxexport matrix", "jaxexport report --html report.html"),
    "inspect": (
        "docs/reference/artifacts.md",
        "jaxexport inspect attention.jaxexport",
        "jaxexport inspect attention.jaxexport --reader 0.11.0",
        "jaxexport inspect exported --csv",
    ),
    "audit": (
        "docs/reference/artifacts.md",
        "jaxexport audit --reader 0.9.2 exported/a.jaxexport exported/b.jaxexport",
        "jaxexport audit exported",
    ),
    "diff": ("docs/reference/artifacts.md", "jaxexport diff old.jaxexport new.jaxexport"),
    "convert": (
        "docs/how-to/convert.md",
        "jaxexport convert exported/a.jaxexport --for 0.9.2 -o a-for-0.9.2.jaxexport",
        "jaxexport convert exported/*.jaxexport --for 0.8.1,0.9.2 --replace-custom-calls -o converted",
    ),
    "explain": (
        "docs/how-to/explain-a-failure.md",
        "jaxexport explain",
        "jaxexport explain --case tests.test_model.test_attention --writer 0.12.0.1 --reader 0.9.2 --bundle report",
    ),
    "goldens": ("docs/reference/cases.md", "jaxexport goldens list"),
    "goldens list": ("docs/reference/cases.md", "jaxexport goldens list"),
    "goldens show": ("docs/reference/artifacts.md", "jaxexport goldens show tests.test_model.test_attention/0.9.2-cpu"),
    "goldens coverage": ("docs/reference/coverage.md", "jaxexport goldens coverage"),
    "goldens verify": ("docs/reference/matrix.md", "jaxexport goldens verify"),
    "goldens add": (
        "docs/reference/artifacts.md",
        "jaxexport goldens add --artifact a.jaxexport --inputs in.npz --outputs out.npz --case attention",
        "jaxexport goldens add --from archive",
    ),
    "goldens import": (
        "docs/how-to/adopt-an-archive.md",
        "jaxexport goldens import --from-jax",
        "jaxexport goldens import --from-jax 0.12.0.1 --goldens jax-goldens",
    ),
    "goldens noise": ("docs/explanation/comparing.md", "jaxexport goldens noise tests.test_model.test_attention"),
    "goldens rename": ("docs/reference/cases.md", "jaxexport goldens rename tests.test_a.test_f tests.test_b.test_f"),
    "goldens prune": ("docs/how-to/look-ahead.md", "jaxexport goldens prune --as-of 2026-10-25"),
    "backfill": ("docs/reference/cases.md", "jaxexport backfill --writers 0.9.2,0.10.2 -- tests/test_model.py"),
    "plan": ("docs/reference/matrix.md", "jaxexport plan --readers all", "jaxexport plan --format github"),
    "matrix": (
        "docs/reference/matrix.md",
        "jaxexport matrix",
        "jaxexport matrix --readers 0.9.2,0.12.0.1 --only promised",
        "jaxexport matrix --resume",
    ),
    "merge": ("docs/how-to/many-machines.md", "jaxexport merge shard-1 shard-2 --results .jaxexport"),
    "judge": ("docs/how-to/compare-runs.md", "jaxexport judge --propose", "jaxexport judge new --baseline old"),
    "report": ("docs/reference/reports.md", "jaxexport report --html report.html --junit junit.xml"),
    "badge": ("docs/reference/reports.md", "jaxexport badge --output badge.svg"),
    "trend": ("docs/reference/reports.md", "jaxexport trend --numbers --cases '*.test_fft'"),
    "bisect": (
        "docs/how-to/bisect.md",
        "jaxexport bisect --case tests.test_model.test_attention --writer 0.9.2 --reader 0.11.0",
        "jaxexport bisect 'tests.test_model.test_attention/0.9.2-cpu in 0.11.0 on cpu' --good 0.10.2",
    ),
    "reduce": (
        "docs/how-to/reduce.md",
        "jaxexport reduce --case tests.test_model.test_attention --reader 0.9.2 -o reduced",
        "jaxexport reduce --results from-ci --goldens golden --reader 0.9.2 -o reduced",
    ),
    "releases": ("docs/reference/policy.md", "jaxexport releases list"),
    "releases list": ("docs/reference/policy.md", "jaxexport releases list --as-of 2026-10-25"),
    "releases refresh": ("docs/reference/policy.md", "jaxexport releases refresh --measure"),
    "forecast": ("docs/how-to/look-ahead.md", "jaxexport forecast --deployed serving,0.11.0 --days 90"),
    "can-i-deploy": (
        "docs/how-to/keep-an-old-reader.md",
        "jaxexport can-i-deploy tests.test_model.test_attention --to all",
        "jaxexport can-i-deploy exported/attention.jaxexport --to serving",
    ),
    "policy": ("docs/reference/policy.md", "jaxexport policy show"),
    "policy init": ("docs/reference/policy.md", "jaxexport policy init"),
    "policy check": ("docs/reference/policy.md", "jaxexport policy check"),
    "policy show": ("docs/reference/policy.md", "jaxexport policy show"),
    "policy schema": ("docs/reference/policy.md", "jaxexport policy schema > export_compat.schema.json"),
    "policy known": ("docs/reference/policy.md", "jaxexport policy known"),
    "environments": ("docs/reference/platforms.md", "jaxexport environments list"),
    "environments list": ("docs/reference/platforms.md", "jaxexport environments list"),
    "environments clean": (
        "docs/reference/platforms.md",
        "jaxexport environments clean --older-than 7 --yes",
        "jaxexport environments clean 'writer-*' --yes",
    ),
}
"""Of each command: the page of the docs that has more, then what people type."""


class HelpfulCommand(click.Command):
    """A command whose help ends with an example and a link."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `EXAMPLES`."""
        _write_epilog(ctx, formatter)


class HelpfulGroup(click.Group):
    """Commands with their whole first sentence; those of `jaxexport` itself in groups."""

    command_class = HelpfulCommand

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A section for each group, or one for all."""
        names = self.list_commands(ctx)
        width = max(map(len, names), default=0)
        groups = GROUPS if ctx.parent is None else {"Commands": tuple(names)}
        grouped = {name for group in groups.values() for name in group}
        for title, group in {**groups, "Others": tuple(name for name in names if name not in grouped)}.items():
            rows = [(name.ljust(width), _first_sentence(self.commands[name])) for name in group if name in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `EXAMPLES`."""
        _write_epilog(ctx, formatter)


def docs_link(page: str) -> str:
    """The address of a page of docs/ on the site that the installed package names, or its path where it names none."""
    from importlib.metadata import metadata

    urls: Iterable[Any] = metadata(PACKAGE).get_all("Project-URL") or ()
    site = next((url for label, _, url in (entry.partition(", ") for entry in urls) if label == "Documentation"), "")
    return f"{site.rstrip('/')}/{page.removeprefix('docs/').removesuffix('.md')}.html" if site else page


def _write_epilog(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    page, *examples = EXAMPLES.get(ctx.command_path.partition(" ")[2], ("docs/index.md",))
    if examples:
        with formatter.section("Examples" if len(examples) > 1 else "Example"):
            for example in examples:
                # Not wrapped: a command is copied as it is.
                formatter.write(f"{' ' * formatter.current_indent}{example}\n")
    formatter.write(f"\nDocumentation: {docs_link(page)}\n")


def _first_sentence(named: click.Command) -> str:
    text = " ".join((named.help or "").split("\n\n")[0].split())
    return f"{text.split('. ')[0].rstrip('.')}."
