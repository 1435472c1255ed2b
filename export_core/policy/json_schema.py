"""The JSON Schema of a policy file, from which editors complete its keys."""

from __future__ import annotations

from typing import Any

import msgspec

from export_core.policy.model import Policy

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TITLE = "export_compat.yaml: what a project asks for"


def policy_schema() -> dict[str, Any]:
    """The schema (2020-12), without the location of entries, which is found when a policy is read and never written."""
    schema = {"$schema": DIALECT, "title": TITLE, **msgspec.json.schema(Policy)}
    for table in schema["$defs"].values():
        # The schema is for files, in which it must not be; see `read_policy`.
        table["properties"].pop("place", None)
    return schema


def policy_schema_file() -> bytes:
    """The bytes of ``policy.schema.json``."""
    return msgspec.json.format(msgspec.json.encode(policy_schema()), indent=2) + b"\n"
