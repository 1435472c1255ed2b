"""A writer of MLIR bytecode by hand, valid and damaged, for tests that need what no real writer makes."""


def varint(value: int) -> bytes:
    for size in range(1, 9):
        if value < 1 << (7 * size):
            return ((value << size) | (1 << (size - 1))).to_bytes(size, "little")
    return b"\0" + value.to_bytes(8, "little")


def section(number: int, content: bytes, align: int | None = None, before: int = 0) -> bytes:
    if align is None:
        return bytes([number]) + varint(len(content)) + content
    head = bytes([number | 0x80]) + varint(len(content)) + varint(align)
    return head + b"\xcb" * (-(before + len(head)) % align) + content


def strings(texts: list[bytes]) -> bytes:
    sizes = b"".join(varint(len(text) + 1) for text in reversed(texts))
    return varint(len(texts)) + sizes + b"".join(text + b"\0" for text in texts)


def op(name: int, *, location: int = 0, regions: bytes | None = None, attrs: int = -1, props: int = -1) -> bytes:
    mask = (16 if regions is not None else 0) | (1 if attrs >= 0 else 0) | (64 if props >= 0 else 0)
    out = varint(name) + bytes([mask]) + varint(location)
    out += varint(attrs) if attrs >= 0 else b""
    out += varint(props) if props >= 0 else b""
    return out + (regions or b"")


def region(*ops: bytes, isolated: bool = True) -> bytes:
    """Return a region with one block, which has these operations. If `isolated`, it is in a section of its own."""
    body = varint(1) + varint(0) + varint(len(ops) << 1) + b"".join(ops)
    return varint(1 << 1 | isolated) + (section(4, body) if isolated else body)


VALUES = [b"vhlo", b"builtin", b"module", b"func_v1", b"return_v1", b"custom_call_v1", b"", b"main", b"private"]
# One unknown location: builtin attribute code 15.
UNKNOWN = varint(15)


def bytecode(
    ir: bytes,
    *,
    texts: list[bytes] | None = None,
    attributes: list[tuple[int, bytes]] | None = None,
    types: list[tuple[int, bytes]] | None = None,
    properties: list[bytes] | None = None,
    order: tuple[int, ...] = (1, 3, 2, 4, 8, 0),
    extra: tuple[bytes, ...] = (),
    align: dict[int, int] | None = None,
) -> bytes:
    """Build a module of bytecode 6. Attributes and types are (dialect, bytes); dialect 0 is vhlo, 1 builtin."""
    attributes = [(1, UNKNOWN)] if attributes is None else attributes
    types = types or []
    offsets = varint(len(attributes)) + varint(len(types))
    for dialect, entry in (*attributes, *types):
        offsets += varint(dialect) + varint(1) + varint(len(entry) << 1 | 1)
    content = {
        0: strings(VALUES if texts is None else texts),
        # two dialects, four names of operations: one of builtin, three of vhlo, all registered
        1: b"".join(map(varint, (2, 0 << 1, 1 << 1, 4, 1, 1, 2 << 1 | 1, 0, 3, 3 << 1 | 1, 4 << 1 | 1, 5 << 1 | 1))),
        2: b"".join(entry for _, entry in (*attributes, *types)),
        3: offsets,
        4: varint(1 << 1) + ir,
        8: varint(len(properties or [])) + b"".join(varint(len(p)) + p for p in properties or []),
    }
    out = b"ML\xefR" + varint(6) + b"StableHLO_v1.0.0\0"
    for number in order:
        out += section(number, content[number], (align or {}).get(number), len(out))
    return out + b"".join(extra)


MODULE, FUNC, RETURN, CUSTOM_CALL = 0, 1, 2, 3
