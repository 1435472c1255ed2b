"""Values as YAML that a person reads in a terminal: text that could take that over is quoted and escaped."""

from __future__ import annotations

from typing import Any

import yaml

from export_core.base.escaping import for_json


class _Dumper(yaml.SafeDumper):
    """Puts text into double quotes where a letter of it has to be escaped: only there YAML has escapes."""

    def text(self, value: str) -> yaml.ScalarNode:
        """A YAML string."""
        style = None if value.isprintable() and "::" not in value and "##[" not in value else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _Dumper.text)


def yaml_text(value: Any, **options: Any) -> str:
    """A value as YAML, as `yaml.dump` writes it with these options."""
    # PyYAML itself leaves marks of direction as they are. Escapes of JSON are escapes of YAML too.
    return for_json(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, **options))
