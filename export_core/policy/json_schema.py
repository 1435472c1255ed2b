"""The JSON Schema of a policy file, from which editors complete its keys."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from export_core.policy.model import Policy

DIALECT = "https://json-schema.org/draft/2020-12/schema"
IDENTIFIER = "urn:jaxexport:schema:{}"
"""The `$id` of a schema by its name. A name and no address: it is the same in every fork and mirror."""
TITLE = "export_compat.yaml: what a project asks for"


def titled(name: str, title: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as its file begins: dialect, `$id`, title."""
    for part in schema["$defs"].values():
        if "description" in part:  # a docstring, indented as in its source
            part["description"] = inspect.cleandoc(part["description"])
    return {"$schema": DIALECT, "$id": IDENTIFIER.format(name), "title": title, **schema}


def policy_schema() -> dict[str, Any]:
    """The schema (2020-12), without the location of entries, which is found when a policy is read and never written."""
    schema = titled("policy", TITLE, msgspec.json.schema(Policy))
    for table in schema["$defs"].values():
        # The schema is for files, in which it must not be; see `read_policy`.
        table["properties"].pop("place", None)
    return schema


def policy_schema_file() -> bytes:
    """The bytes of ``policy.schema.json``."""
    return msgspec.json.format(msgspec.json.encode(policy_schema()), indent=2) + b"\n"
