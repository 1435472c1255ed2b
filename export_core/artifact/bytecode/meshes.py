"""The meshes that a module names: those of Shardy, which are attributes of its own dialect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from export_core.artifact.bytecode.values import Values

# Codes of attributes in the sdy dialect: an axis is a name and a size, a mesh a list of axes, then the order of its
# devices. Measured with the artifacts of jax 0.7.2 to 0.12.0.1.
_AXIS, _MESH = 1, 2
_AXIS_AS_TEXT = re.compile(r'"([^"\\]+)\\?"=(\d+)')
_MESH_AS_TEXT = re.compile(r"#sdy\.mesh<\[([^\]]*)\]")


def shardy_meshes(values: Values, attributes: Mapping[str, Any]) -> Iterator[dict[str, int]]:
    """Sizes of the axes by name, of each mesh in a module with these attributes.

    Until jaxlib 0.6.2 a portable artifact could not have the sdy dialect: jax wrote its meshes as text, into an
    attribute of the module.
    """
    frontend = attributes.get("mhlo.frontend_attributes")
    text = str(frontend.get("xla.sdy.meshes", "")) if isinstance(frontend, dict) else ""
    for axes in _MESH_AS_TEXT.findall(text):
        yield {name: int(size) for name, size in _AXIS_AS_TEXT.findall(axes)}
    tables = values.tables
    for index in range(len(tables.attributes)) if "sdy" in tables.dialects else ():
        dialect, code, cursor = values.attribute_entry(index)
        if (dialect, code) == ("sdy", _MESH):
            count = cursor.count("axes")
            yield dict(_axis(values, cursor.index(len(tables.attributes), "attribute")) for _ in range(count))


def _axis(values: Values, index: int) -> tuple[str, int]:
    dialect, code, cursor = values.attribute_entry(index)
    if (dialect, code) != ("sdy", _AXIS):
        raise cursor.error("an axis of a mesh", f"{dialect} attribute {code}")
    name = values.tables.string(cursor.index(len(values.tables.string_ends), "string"), "the name of an axis")
    return name, cursor.signed("the size of an axis")
