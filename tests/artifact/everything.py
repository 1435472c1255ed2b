"""Everything that anyone can ask of an artifact: what broken bytes are put through."""

from __future__ import annotations

from export_core.artifact import as_dict, read_bytes
from export_core.artifact.audit import audit
from export_core.artifact.envelope.encode import encode
from export_core.artifact.main_check import check_main
from export_core.artifact.numerics import factored_outputs
from export_core.artifact.readers import Reader, loads

READERS = [Reader("0.12.0.1", "0.12.0.1", "1.22.0", "1.22.0"), Reader("0.4.30", "0.4.30", "1.1.3", "1.1.3")]


def use(data: bytes) -> None:
    """Ask for everything that anyone can ask of an artifact."""
    artifact = read_bytes(data)
    for module in artifact.modules:
        assert module.op_counts is not None
        as_dict((module.functions, module.constants, module.attributes))
    audit(artifact, frozenset())
    loads(artifact, READERS)
    check_main(artifact)
    factored_outputs(artifact)
    if artifact.envelope is not None:
        str(artifact.envelope.in_tree)
        artifact.envelope.in_tree.paths("args")
        read_bytes(encode(artifact.envelope))
