"""A writer of SavedModels by hand, for tests that need what no real writer makes."""

from export_core.artifact import read
from export_core.artifact.saved_model import OPERATION


def varint(number: int) -> bytes:
    """Return a number encoded as a varint of Protobuf."""
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])


def span(number: int, *content: bytes | str) -> bytes:
    """Return the field of this number in a message, whose value is bytes, a text or another message."""
    data = b"".join(part.encode() if isinstance(part, str) else part for part in content)
    return varint(number << 3 | 2) + varint(len(data)) + data


def integer(number: int, value: int) -> bytes:
    """Return the field of this number in a message, whose value is an integer."""
    return varint(number << 3) + varint(value)


def attribute(key: str, value: bytes) -> bytes:
    """Return an attribute of an operation, whose value is a field of AttrValue."""
    return span(5, span(1, key), span(2, value))


def texts(key: str, *items: str) -> bytes:
    """Return an attribute that is a list of strings."""
    return attribute(key, span(1, *(span(2, item) for item in items)))


def module_of(path: object) -> bytes:
    """Return the bytes of the module of an artifact."""
    return read(str(path)).module.serialized()


def node(module: bytes, *more: bytes, version: int = 9, platforms: tuple[str, ...] = ("CPU",)) -> bytes:
    """Return an operation XlaCallModule, with further attributes or fields."""
    own = (
        attribute("module", span(2, module)),
        attribute("version", integer(3, version)),
        texts("platforms", *platforms),
    )
    return b"".join((span(1, "call"), span(2, OPERATION), *own, *more))


def saved_model(*nodes: bytes, library: tuple[bytes, ...] = ()) -> bytes:
    """Return a SavedModel with these operations in its graph, and these functions in its library."""
    graph = span(2, *(span(1, one) for one in nodes), span(2, *(span(1, function) for function in library)))
    return integer(1, 1) + span(2, graph)
