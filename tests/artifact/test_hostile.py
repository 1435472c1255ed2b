"""Hostile bytes: the reader always raises its own ArtifactError, in bounded time and memory.

The fuzzer, `nox -s fuzz`, also counts each error that is not the reader's own, and each input that takes too long.
"""

import itertools
import os
import pickle
import sys
import tracemalloc
from struct import pack
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from forge import CUSTOM_CALL, FUNC, MODULE, RETURN, UNKNOWN, VALUES, bytecode, op, region, section, varint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stored_artifacts import FILES, SAVED_MODELS
from test_module import FUNCTION, PROPERTIES, TYPES

from export_core.artifact import ArtifactError, Aval, Tree, read, read_bytes
from export_core.artifact.bytecode.listing import Line, Listing, digest_of, listing
from export_core.artifact.bytecode.sections import Entries
from export_core.artifact.bytecode.values import MAX_DEPTH, MAX_NODES, Values
from export_core.artifact.bytecode.walk import MAX_NESTING
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.flatbuffer_reader import Buffer, Table
from export_core.artifact.envelope.schema import IN_AVALS
from export_core.knowledge.concerns import About
from studies.artifact import fuzz

SEEDS = [path.read_bytes() for path in (*FILES, *SAVED_MODELS)]
EXAMPLES = int(os.environ.get("JAXEXPORT_FUZZ_EXAMPLES", "400"))  # a minute in CI: 30000


def refuse(data: bytes) -> ArtifactError | None:
    try:
        fuzz.use(data)
    except ArtifactError as error:
        return in_its_own_words(error)
    return None


def in_its_own_words(error: ArtifactError) -> ArtifactError:
    assert "on which it failed" not in str(error), error
    assert error.expected
    assert error.found
    return error


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_damaged_artifacts_are_only_refused_or_read(choose):
    refuse(fuzz.damaged(SEEDS, choose))


@settings(max_examples=200, deadline=1000)
@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: b"ML\xefR\x0dS\0" + tail))
def test_arbitrary_bytes_are_refused(data):
    assert refuse(data) is not None


def test_an_artifact_cut_anywhere_is_refused():
    data = read(FILES[0]).data
    for length in range(0, len(data), 7):
        error = refuse(data[:length])
        assert error is None or error.at is not None


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "0 bytes"),
        (b"\x1f\x8b\x08" + bytes(9), "a gzip file"),
        (b"PK\x03\x04" + bytes(9), "a zip file"),
        (b"module @jit_f attributes {}", "StableHLO as text"),
        (b"// made by hand\n\nfunc.func @main() { return }", "MLIR as text"),
        (b"HloModule jit_f, entry_computation_layout={}", "HLO as text"),
        (b"\n\x05jit_f\x12\x06main.1\x1a\x00", "HLO as a protobuf"),
        (b"\n\x11\n\x05jit_f\x12\x06main.1\x1a\x00", "HLO as a protobuf"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"import jax\n\n\ndef test_model():\n    pass\n", "found text, at byte 0"),
    ],
)
def test_the_error_names_the_kind_of_a_file_that_is_not_an_artifact(data, found):
    with pytest.raises(ArtifactError, match=found):
        read_bytes(data)


def test_a_pickled_executable_is_refused_with_advice():
    """`jax.experimental.serialize_executable` returns a pickle, which users pickle again with their trees."""
    data = pickle.dumps((pickle.dumps(("tree", b"executable")), "in_tree", "out_tree"))
    with pytest.raises(ArtifactError, match=r"found a Python pickle.*export the function with jax\.export"):
        read_bytes(data)


def test_a_missing_file_is_an_artifact_error(tmp_path):
    with pytest.raises(ArtifactError, match=r"nothing\.jaxexport"):
        read(tmp_path / "nothing.jaxexport")


def test_a_folder_given_as_a_file_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match=r"found a folder\. Give a file in it"):
        read(tmp_path)


def _module(*functions: bytes, **parts: object) -> bytes:
    known = {"attributes": FUNCTION, "types": TYPES, "properties": PROPERTIES, **parts}
    return bytecode(op(MODULE, regions=region(*functions)), **known)


def _function(*ops: bytes) -> bytes:
    return op(FUNC, props=0, regions=region(*ops))


def _deep() -> bytes:
    inner = op(RETURN)
    for _ in range(400):
        inner = op(RETURN, regions=region(inner, isolated=False))
    return _module(_function(inner))


def _lists(levels: int, width: int) -> bytes:
    """Return a module with an attribute of `levels` nested lists, each of which holds the next one `width` times."""
    lists = [(0, varint(1) + varint(width) + varint(5 + level) * width) for level in range(levels)]
    return _module(_function(), attributes=[*FUNCTION[:3], lists[0], FUNCTION[4], *lists[1:], FUNCTION[0]])


N = 100_000
CALL = varint(5) + varint(2) + varint(2) + varint(3) + varint(6) + varint(3) * 3
CALL_ATTRIBUTES = [*FUNCTION, (0, varint(5) + varint(1) + varint(0)), (0, varint(2) + varint(0))]

HOSTILE = {
    "a varint that overflows": lambda: b"ML\xefR\x0dS\0" + b"\x01" + b"\0" + b"\xff" * 8,
    "a huge count of strings": lambda: b"ML\xefR\x0dS\0" + section(0, b"\0" + b"\xff" * 8),
    "a section twice": lambda: _module(extra=(section(0, b"\x01"),)),
    "an alignment of zero": lambda: b"ML\xefR\x0dS\0" + b"\x80\x03\x01",
    "a bytecode version to come": lambda: b"ML\xefR" + varint(7) + b"S\0" + bytes(9),
    "a name that is not UTF-8": lambda: _module(texts=[b"\xff\xfe", *VALUES[1:]]),
    "a target that is not UTF-8": lambda: _module(
        _function(op(CUSTOM_CALL, props=1)),
        texts=[*VALUES[:7], b"\xff\xfe", VALUES[8]],
        attributes=CALL_ATTRIBUTES,
        properties=[*PROPERTIES, CALL],
    ),
    "regions inside regions": _deep,
    "attributes deeper than any may be": lambda: _lists(MAX_DEPTH + 1, 1),
    "attributes shared 2 ** 14 times": lambda: _lists(14, 2),
    "types shared 2 ** 14 times": lambda: _module(
        _function(),
        attributes=[(1, UNKNOWN), (0, varint(17) + varint(15)), *FUNCTION[2:]],
        types=[(0, varint(23) + varint(2) + varint(n + 1) * 2) for n in range(14)]
        + [(0, varint(4)), (0, varint(8) + varint(1) + varint(0) + varint(0))],
    ),
    "a long type, of which a function takes very many": lambda: _with_function_type(
        N // 50, varint(4), *[varint(23) + varint(60) + varint(number) * 60 for number in range(2)]
    ),
    "locations shared 4 ** 7 times": lambda: _module(
        _function(op(CUSTOM_CALL, props=1, location=len(CALL_ATTRIBUTES))),
        attributes=[
            *CALL_ATTRIBUTES,
            *[(1, varint(12) + varint(4) + varint(len(CALL_ATTRIBUTES) + n) * 4) for n in range(1, 8)],
            (1, UNKNOWN),
        ],
        properties=[*PROPERTIES, CALL],
    ),
    "very many operations": lambda: _module(_function(*[op(RETURN)] * (N // 3))),
    "very many functions": lambda: _module(*[_function()] * (N // 12)),
    "very many custom calls": lambda: _module(
        _function(*[op(CUSTOM_CALL, props=1)] * (N // 4)), attributes=CALL_ATTRIBUTES, properties=[*PROPERTIES, CALL]
    ),
    "very many different custom calls": lambda: _module(
        _function(*[op(CUSTOM_CALL, props=n) for n in range(1, N // 5)]),
        attributes=CALL_ATTRIBUTES,
        properties=[*PROPERTIES, *[CALL] * (N // 5)],
    ),
    "very many strings": lambda: _module(_function(), texts=VALUES + [b""] * (N // 2)),
    "very many properties": lambda: _module(_function(), properties=PROPERTIES + [b""] * N),
    "very many avals": lambda: _changed(in_avals=tuple(Aval("float32", (n,)) for n in range(N // 60))),
    "very many platforms": lambda: _changed(platforms=("cpu",) * (N // 12)),
    "a very wide tree": lambda: _changed(in_tree=Tree("tuple", (Tree("none"),) * (N // 20))),
    "a very deep tree": lambda: _changed(in_tree=_tower(400)),
    "one aval, referred to from 2 MB, and 6 MB of nothing": lambda count=500_000: _shared_avals(count),
    "8 MB of operations": lambda: _module(_function(*[op(RETURN)] * ((8 << 20) // 3))),
    "8 MB of regions": lambda: _module(_function(op(RETURN, regions=varint(8_000_000 << 1) + bytes([1]) * 8_000_000))),
}


def _shared_avals(count: int) -> bytes:
    """Return an envelope whose arguments are one table, referred to `count` times. jax's writer shares no table."""
    data = bytearray(encode(read(next(path for path in FILES if path.parent.name == "0.9.2")).envelope))
    place = Buffer(bytes(data), "").root().at(IN_AVALS)
    data += bytes(-len(data) % 4)
    data[place : place + 4] = pack("<I", len(data) - place)
    data += pack("<I", count) + b"".join(pack("<I", 4 * (count - number)) for number in range(count))
    return bytes(data + pack("<iI", -8, 0) + pack("<HHHH", 6, 8, 4, 0) + bytes(12 * count))  # a table, then its vtable


def _tower(height: int) -> Tree:
    tree = Tree("leaf")
    for _ in range(height):
        tree = Tree("tuple", (tree,))
    return tree


def _changed(**fields: object) -> bytes:
    path = next(path for path in FILES if path.parent.name == "0.12.0.1" and path.stem == "platforms")
    envelope = read(path).envelope
    assert envelope is not None
    return encode(envelope._replace(**fields))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_cost_in_proportion_to_their_size(name):
    """Steps of Python stand for time here; `benchmarks.limits` measures seconds."""
    data = HOSTILE[name](20_000) if name.startswith("one aval") else HOSTILE[name]()  # tracing takes seconds
    steps = lines_run(data)
    tracemalloc.start()
    refuse_reading(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert steps < 20 * len(data) + 10_000, f"{steps / len(data):.1f} lines of Python a byte"
    assert peak < 3 * len(data) + fuzz.CONSTANT, f"{peak / len(data):.1f} times"


def lines_run(data: bytes) -> int:
    """Count the lines of Python that run to read the bytes: unlike seconds, no busy machine changes them."""
    if sys.version_info >= (3, 12):
        return _lines_monitored(data)
    steps = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal steps
        steps += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        refuse_reading(data)
    finally:
        sys.settrace(before)
    return steps


def _lines_monitored(data: bytes) -> int:
    """Count the lines as `lines_run`, in a third of the time: CPython 3.12 and newer tell of lines alone."""
    seen, monitoring = itertools.count(), sys.monitoring
    monitoring.use_tool_id(monitoring.PROFILER_ID, "lines")
    monitoring.register_callback(monitoring.PROFILER_ID, monitoring.events.LINE, lambda code, line: next(seen) and None)
    monitoring.set_events(monitoring.PROFILER_ID, monitoring.events.LINE)
    try:
        refuse_reading(data)
    finally:
        monitoring.set_events(monitoring.PROFILER_ID, monitoring.events.NO_EVENTS)
        monitoring.free_tool_id(monitoring.PROFILER_ID)
    return next(seen)


def refuse_reading(data: bytes) -> None:
    try:
        fuzz.asked(data)
    except ArtifactError as error:
        in_its_own_words(error)


@pytest.mark.parametrize(
    ("most", "width", "message"),
    [
        (MAX_DEPTH, 1, f"attributes and types nested at most {MAX_DEPTH} deep, found deeper ones"),
        (MAX_NODES.bit_length() - 2, 2, r"at most \d+ parts in an attribute or type, found more"),
    ],
    ids=["deep", "shared"],
)
def test_attributes_nested_too_deeply_are_refused(most, width, message):
    fuzz.use(_lists(most, width))
    with pytest.raises(ArtifactError, match=message):
        fuzz.use(_lists(most + 1, width))


def table_of_one(start: int) -> Entries:
    """Return a table with one entry, whose two bytes begin at `start`."""
    table = Entries(start, "I")
    table.ends.append(start + 2 << 1 | 1)
    table.groups.append((0, 0, 1))
    table.firsts.append(0)
    return table


@pytest.mark.parametrize("attribute", [9, 15, 17], ids=["integer", "tensor", "type"])
def test_a_type_encoded_by_an_attribute_of_itself_is_refused(attribute):
    """The two tables alone, which are no module: a tensor whose encoding is an attribute of that same type."""
    data = bytes(number << 1 | 1 for number in (21, 0, attribute, 0))
    types, attributes = table_of_one(0), table_of_one(2)
    tables = SimpleNamespace(
        data=data, name="two tables", dialects=["vhlo"], sections={}, types=types, attributes=attributes
    )
    with pytest.raises(ArtifactError, match=f"nested at most {MAX_DEPTH} deep, found deeper ones"):
        Values(tables).type(0)


def _with_function_type(count: int, *element: bytes) -> bytes:
    """Return a module with the type of a function that takes the last of `element` types `count` times."""
    taken = varint(8) + varint(count) + varint(len(element) - 1) * count + varint(0)
    attributes = [(1, UNKNOWN), (0, varint(17) + varint(len(element))), *FUNCTION[2:]]
    return _module(_function(), attributes=attributes, types=[(0, entry) for entry in (*element, taken)])


def test_a_function_of_thousands_of_arrays_is_read():
    """A training step takes and returns every parameter with its moments: 6,000 arrays in a model of 2,000 layers."""
    artifact = read_bytes(_with_function_type(6000, varint(4), varint(20) + varint(1) + varint(8) + varint(0)))
    arrays = ", ".join(["tensor<4xf32>"] * 6000)
    assert artifact.module.types == ("f32", "tensor<4xf32>", f"({arrays}) -> ()")
    assert artifact.module.types_of_values == ["f32", "tensor<4xf32>"]
    about = About(artifact)
    assert about.has_type(r"(?m)^\((tensor<4xf32>, ){5999}")
    assert not about.has_type("tensor<5xf32>")


def test_a_function_with_too_many_long_types_is_refused():
    tuples = [varint(23) + varint(60) + varint(number) * 60 for number in range(2)]  # 60 and 3,600 element types
    with pytest.raises(ArtifactError, match=r"types of at most [\d,]+ characters in all, found more"):
        _ = read_bytes(_with_function_type(1000, varint(4), *tuples)).module.types


def test_a_flatbuffer_table_that_is_shared_too_often_is_refused():
    """Each table refers twice to the next: 13 levels need more visits than the limit for so few bytes."""
    data = bytearray(b"\x06\0\x08\0\x04\0\0\0" + b"\x04\0\x04\0")  # vtables of a table with one field, and with none
    tables = []
    for _ in range(13):
        tables.append(len(data))
        data += len(data).to_bytes(4, "little") + (4).to_bytes(4, "little")
        data += (2).to_bytes(4, "little") + (8).to_bytes(4, "little") + (4).to_bytes(4, "little")
    data += (len(data) - 8).to_bytes(4, "little")
    buffer = Buffer(bytes(data), "shared")

    def visit(table: Table) -> None:
        for child in table.tables(0, "PyTreeDef"):
            visit(child)

    with pytest.raises(ArtifactError, match="objects in"):
        visit(Table(buffer, tables[0], "PyTreeDef"))


def test_the_deepest_allowed_regions_need_at_most_half_the_stack():
    nested = op(RETURN)
    for _ in range(MAX_NESTING - 2):  # a function in a module has two more
        nested = op(RETURN, regions=region(nested, isolated=False))
    body = region(op(FUNC, props=0, regions=region(nested)))
    data = bytecode(op(MODULE, regions=body), attributes=FUNCTION, types=TYPES, properties=PROPERTIES)
    module = read_bytes(data).module

    def below(frames: int) -> Listing:
        return below(frames - 1) if frames else listing(module)

    assert len(below(300)["main"]) == MAX_NESTING


def test_recursive_functions_still_have_a_digest():
    def chain(last: str) -> Listing:
        lines = [Line("call", (), (f"f{number + 1}",), (), (), 1, ()) for number in range(5000)]
        return {f"f{number}": [line] for number, line in enumerate([*lines, lines[0]._replace(name=last, calls=())])}

    assert digest_of(chain("add")) == digest_of(dict(reversed(chain("add").items()))) != digest_of(chain("multiply"))
    assert digest_of({"f": [Line("call", (), ("f", "g"), (), (), 1, ())]})
