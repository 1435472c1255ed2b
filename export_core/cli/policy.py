"""The commands `jaxexport policy init|check|show|schema`: a first policy, whether it is right, and what holds."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from export_core.cli.options import as_of_option, day_of, goldens_option, policy_option

SCHEMA = "export_compat.schema.json"


@click.group(name="policy")
def policy_group() -> None:
    """Write, check and show what this project asks for."""


@policy_group.command()
@goldens_option
def init(goldens: str | None) -> None:
    """Write a commented export_compat.yaml from the goldens here, and its JSON Schema for editors. Nothing is overwritten."""
    from export_core.goldens import GoldenStore
    from export_core.policy import FILE, Policy, PolicyError, policy_file
    from export_core.policy.json_schema import policy_schema_file
    from export_core.report.first_policy import first_policy

    if (there := policy_file(Path())) is not None:
        raise PolicyError(
            f"{there}: this project has a policy. Nothing was written; `jaxexport policy show` says what holds."
        )
    folder = goldens or Policy().goldens
    found = GoldenStore(Path(folder)).goldens()
    text, keys = first_policy(found, folder, SCHEMA), policy_schema_file()
    try:
        with Path(FILE).open("x", encoding="utf-8") as file:
            file.write(text)
        if not Path(SCHEMA).exists():
            Path(SCHEMA).write_bytes(keys)
    except OSError as error:
        raise PolicyError(f"{error.filename}: cannot write there: {error.strerror}.") from None
    click.echo(f"{FILE}: written from {len(found)} goldens in {folder}. {SCHEMA} tells editors its keys.")


@policy_group.command()
@policy_option
@as_of_option
def check(policy_file: str | None, as_of: str | None) -> None:
    """Read the policy and say what of it has expired.

    Exit codes: 0 it is right, 2 it is not, 4 something has expired.
    """
    from export_core.judge.gate import KEPT, STALE
    from export_core.judge.known import expired
    from export_core.policy import find_policy
    from export_core.policy import policy_file as chosen

    file, policy = chosen(Path(), policy_file), find_policy(Path(), policy_file)
    ended = expired(policy.known_failures, policy.quirks, day_of(as_of))
    for problem in ended:
        click.echo(problem)
    lists = f"{len(policy.known_failures)} known failures, {len(policy.quirks)} quirks, {len(policy.allow)} allowed custom calls"
    click.echo(f"{file or 'no policy file here, every key has its default'}: {lists}, {len(ended)} of them expired")
    sys.exit(STALE if ended else KEPT)


@policy_group.command()
@policy_option
def show(policy_file: str | None) -> None:
    """Every key with the value that holds, and the line it comes from."""
    import msgspec

    from export_core.policy import Policy, find_policy, read_policy, releases_file
    from export_core.policy import policy_file as chosen

    file = chosen(Path(), policy_file)
    written, source = read_policy(file) if file else (Policy(), None)
    policy = find_policy(Path(), policy_file)
    for name, value in msgspec.to_builtins(policy.unplaced()).items():
        tables = value if name in ("windows", "required") else {"": value}
        for inner, each in tables.items():
            key = (name, inner) if inner else (name,)
            place = source.place(key) if source and key in source.lines else "default"
            if name == "releases" and policy.releases != written.releases:
                kept = str(releases_file(Path(), policy_file))
                place = kept if place == "default" else f"{place}, {kept}"
            text = f"{len(each)} entries" if isinstance(each, list) and each and isinstance(each[0], dict) else None
            click.echo(f"{'.'.join(key):<20} {text or msgspec.json.encode(each).decode():<40} {place}")


@policy_group.command()
def schema() -> None:
    """Print the JSON Schema of the policy: what editors complete its keys by."""
    from export_core.policy.json_schema import policy_schema_file

    click.echo(policy_schema_file(), nl=False)
