"""The reader of TensorFlow's SavedModels, for the functions that jax exported into them, without TensorFlow.

Orbax, jax2tf and Keras write a function as an operation XlaCallModule: its module, and how the module is called. Only
these operations are read: all others are TensorFlow's own. Numbers of fields are those of TensorFlow's
saved_model.proto, meta_graph.proto, graph.proto, function.proto, node_def.proto, attr_value.proto and types.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from export_core.artifact.errors import LIMIT, ArtifactError
from export_core.artifact.protobuf import SPAN, VARINT, Field, Wire
from export_core.base.named_tuple import NamedTuple
from export_core.base.text import plural

FILE = "saved_model.pb"  # A folder with this file is a SavedModel.
START = b"\x08\x01\x12"  # The version of its schema, which has been 1 since 2016, then its first graph.
OPERATION = "XlaCallModule"
MOST_ATTRIBUTES = 64  # of one operation XlaCallModule, which has 11 and a few of TensorFlow's own
MOST_SIGNATURES = 512
ITEM = 32  # what an item of a list costs, in fields: the text that is stored of it takes memory
MOST_DIMENSIONS = 256  # TensorFlow's own limit for the rank of a tensor is 254
DAMAGED = "The file is damaged or is no SavedModel: write it again, or check the copy."
UPDATE = "If a newer TensorFlow wrote it, update pytest-jaxexport."

_DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64",
    9: "int64", 10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 20: "resource",
    21: "variant", 22: "uint32", 23: "uint64", 24: "float8_e5m2", 25: "float8_e4m3fn", 29: "int4", 30: "uint4",
}  # fmt: skip
# The fields that each message may have. One that is not known could hold operations, so it is refused.
_KNOWN = {
    "SavedModel": {1, 2}, "MetaGraphDef": {*range(1, 8)}, "GraphDef": {*range(1, 6)},
    "FunctionDefLibrary": {1, 2, 3}, "FunctionDef": {1, 3, 4, 5, 6, 7, 8}, "NodeDef": {*range(1, 8)},
}  # fmt: skip
_INT, _BOOL, _BYTES, _LIST = 3, 5, 2, 1  # Kinds of values of attributes.
_TYPES, _SHAPES, _FUNCTIONS = 6, 7, 9  # Kinds of values in lists, beside these.
_KINDS = {
    1: "a list", 2: "a string", 3: "an integer", 4: "a float", 5: "a bool", 6: "a type", 7: "a shape", 8: "a tensor",
    9: "a function",
}  # fmt: skip


class XlaCallModule(NamedTuple):
    """A function that jax exported as an XlaCallModule operation of TensorFlow."""

    node: str  # The name of the operation.
    function: str  # The function of the library that contains the operation; empty if the graph itself does.
    version: int  # The version of its calling convention.
    platforms: tuple[str, ...]  # The platforms that it was exported for, as TensorFlow names them; empty for all.
    disabled_checks: tuple[str, ...]  # Safety checks that the exporter switched off.
    inputs: tuple[str, ...]  # The dtypes of its arguments.
    outputs: tuple[str, ...]  # The types of its results, with `?` for a size that is not known.
    at: int  # The first byte of its module in the file.
    nbytes: int  # The size of its module in bytes.
    dim_args_spec: tuple[str, ...] = ()  # Where sizes of symbolic dimensions come from, before version 5.
    function_list: tuple[str, ...] = ()  # The functions of TensorFlow that its module may call.
    has_token_input_output: bool = False  # Whether main takes and returns tokens, before version 9.
    use_shardy_partitioner: bool = False  # Whether Shardy partitions it: an attribute of TensorFlow 2.20 and later.
    unknown: tuple[str, ...] = ()  # Attributes that this reader does not know.

    @property
    def title(self) -> str:
        """The name of the operation, with the name of the TensorFlow function that contains it."""
        return f"{self.node} in {self.function}" if self.function else self.node

    @property
    def runs_on_cpu(self) -> bool:
        """Whether TensorFlow runs the operation on a CPU: it was exported for CPUs, or without the platform check."""
        return not self.platforms or "CPU" in self.platforms or "platform" in self.disabled_checks


class SavedModel(NamedTuple):
    """The functions in a SavedModel that jax exported, and the version of TensorFlow that wrote the file."""

    tensorflow: str  # The version of TensorFlow that wrote the file; empty if the file does not say.
    signatures: tuple[str, ...]  # The names of the signatures, which a server calls.
    operations: int  # The number of operations of all kinds, in all functions.
    calls: tuple[XlaCallModule, ...]  # The functions that jax exported, in the order of the file.


def _kind(number: int) -> str:
    """Return the kind of an attribute's value in words, by its field number in TensorFlow's AttrValue or ListValue."""
    return _KINDS.get(number, f"a value of the unknown kind {number}")


def is_saved_model(head: bytes | bytearray) -> bool:
    """Return whether the first bytes of a file show that it is a SavedModel.

    No artifact of jax.export begins with these bytes: they would put its root table a megabyte after the start.
    """
    return head[:3] == START


def read_saved_model(data: bytes | bytearray, name: str) -> SavedModel:
    """Read the XlaCallModule operations in the bytes of a saved_model.pb; `name` is the file's name in messages.

    Raises `ArtifactError` if a part of the file cannot be read, or if it has no XlaCallModule operation.
    """
    reader = _Reader(Wire(data, name, DAMAGED))
    model = reader.model()
    if not model.calls:
        advice = (
            "It holds operations of TensorFlow alone: jax exported nothing into it. Orbax, jax2tf and Keras with "
            "jax as its backend write such an operation."
        )
        found = f"none among {plural(model.operations, 'operation')}"
        raise ArtifactError(f"an operation {OPERATION}", found, name=name, advice=advice)
    return model


class _Reader:
    """A walk over the protobuf messages of a SavedModel that collects its XlaCallModule operations."""

    def __init__(self, wire: Wire):
        self.wire = wire
        self.operations = 0
        self.calls: list[XlaCallModule] = []

    def model(self) -> SavedModel:
        tensorflow, signatures = "", dict[str, None]()
        for graph in self._of("SavedModel", Field(0, SPAN, 0, 0, len(self.wire.data))):
            if graph.number != 2:
                continue
            single: set[int] = set()
            for field in self._of("MetaGraphDef", graph):
                if field.number in (1, 2):
                    self._once(field, single, "MetaGraphDef")
                if field.number == 1:
                    tensorflow = self._text_in(field, 5, "the version of TensorFlow") or tensorflow
                elif field.number == 2:
                    self._graph(field)
                elif field.number == 5:
                    signatures[self._entry(field, "a signature")[0]] = None
                    if len(signatures) > MOST_SIGNATURES:
                        raise self.wire.error(f"at most {MOST_SIGNATURES} signatures", "more", field.start, LIMIT)
        return SavedModel(tensorflow, tuple(signatures), self.operations, tuple(self.calls))

    def _of(self, message: str, field: Field) -> Iterator[Field]:
        """Yield the fields of the protobuf message in `field`; `message` is the type of the message, such as NodeDef.

        Raises `ArtifactError` for a field that this reader does not know, since it might hold operations.
        """
        self.wire.need(field, SPAN, f"a {message}")
        for inner in self.wire.fields(field.start, field.end, f"a {message}"):
            if inner.number not in _KNOWN[message]:
                raise self.wire.error(f"a known field of {message}", f"field {inner.number}", inner.start, UPDATE)
            yield inner

    def _once(self, field: Field, seen: set[int], message: str) -> None:
        """Raise `ArtifactError` if the number of a field is in `seen` already; otherwise add it to `seen`.

        Readers of protobufs treat a field that occurs twice differently: some join both values, some take the last.
        """
        if field.number in seen:
            raise self.wire.error(f"field {field.number} of {message} once", "this field twice", field.start, LIMIT)
        seen.add(field.number)

    def _graph(self, graph: Field) -> None:
        single: set[int] = set()
        for field in self._of("GraphDef", graph):
            if field.number == 1:
                self._node(field, "")
            elif field.number == 2:
                self._once(field, single, "GraphDef")
                for function in self._of("FunctionDefLibrary", field):
                    if function.number == 1:
                        self._function(function)

    def _function(self, function: Field) -> None:
        name, single, nodes = "", set[int](), False
        for field in self._of("FunctionDef", function):
            if field.number == 1:
                self._once(field, single, "FunctionDef")
                name = self._text_in(field, 1, "the name of a function")
            nodes = nodes or field.number == 3
        if nodes:  # the signature may come after them
            for field in self.wire.fields(function.start, function.end, "a FunctionDef"):
                if field.number == 3:
                    self._node(field, name)

    def _node(self, node: Field, function: str) -> None:
        self.operations += 1
        name = operation = ""
        single: set[int] = set()
        for field in self._of("NodeDef", node):
            if field.number == 1:
                self._once(field, single, "NodeDef")
                name = self.wire.text(field, "the name of an operation")
            elif field.number == 2:
                self._once(field, single, "NodeDef")
                operation = self.wire.text(field, "the kind of an operation")
        if operation == OPERATION:
            self.calls.append(self._call(name, function, node))
            # Each takes memory, and each that jax writes has a module of 500 bytes and more.
            if len(self.calls) > (most := 16 + len(self.wire.data) // 512):
                raise self.wire.error(f"at most {most} operations {OPERATION}", "more", node.start, LIMIT)

    def _call(self, name: str, function: str, node: Field) -> XlaCallModule:
        named: dict[str, Field] = {}
        for attribute in self.wire.fields(node.start, node.end, "a NodeDef"):
            if attribute.number != 5:
                continue
            key, value = self._entry(attribute, "an attribute")
            if key in named:
                raise self.wire.error("each attribute once", f"{key} again", attribute.start, LIMIT)
            if len(named) == MOST_ATTRIBUTES:
                raise self.wire.error(f"at most {MOST_ATTRIBUTES} attributes", "more", attribute.start, LIMIT)
            named[key] = value or attribute._replace(start=attribute.end)  # a value that is not there is empty
        module = self._value(named, "module", _BYTES)
        if module is None:
            raise self.wire.error(f"the module of {OPERATION}", "none", node.start)
        version = self._value(named, "version", _INT)
        tokens, shardy = (
            self._value(named, key, _BOOL) for key in ("has_token_input_output", "use_shardy_partitioner")
        )
        inputs, outputs = self._dtypes(named, "Tin"), self._dtypes(named, "Tout")
        shapes = map(self._shape, self._list(named, "Sout", _SHAPES))
        return XlaCallModule(
            node=name,
            function=function,
            version=version.value if version else 0,
            platforms=self._texts(named, "platforms"),
            disabled_checks=self._texts(named, "disabled_checks"),
            inputs=inputs,
            outputs=tuple(f"{dtype}[{shape}]" for dtype, shape in zip(outputs, shapes, strict=False)),
            at=module.start,
            nbytes=module.end - module.start,
            dim_args_spec=self._texts(named, "dim_args_spec"),
            function_list=tuple(
                self._text_in(item, 1, "the name of a function")
                for item in self._list(named, "function_list", _FUNCTIONS)
            ),
            has_token_input_output=bool(tokens and tokens.value),
            use_shardy_partitioner=bool(shardy and shardy.value),
            unknown=tuple(key for key in named if not key.startswith("_")),  # those are of TensorFlow's own passes
        )

    def _entry(self, entry: Field, what: str) -> tuple[str, Field | None]:
        """Return the key of an entry of a protobuf map, and the field with its value; None if the entry has no value.

        `what` is the name of the entry in messages.
        """
        self.wire.need(entry, SPAN, what)
        key, value, single = "", None, set[int]()
        for field in self.wire.fields(entry.start, entry.end, what):
            self._once(field, single, what)
            if field.number == 1:
                key = self.wire.text(field, f"the name of {what}")
            elif field.number == 2:
                value = self.wire.need(field, SPAN, f"the value of {what}")
        return key, value

    def _value(self, named: dict[str, Field], key: str, kind: int) -> Field | None:
        """Remove the attribute `key` from `named` and return its value, or None if `named` lacks it.

        Raises `ArtifactError` if the value is not of the kind with the field number `kind` in TensorFlow's AttrValue.
        """
        attribute = named.pop(key, None)
        if attribute is None:
            return None
        values = list(islice(self.wire.fields(attribute.start, attribute.end, f"the attribute {key}"), 2))
        if len(values) != 1 or values[0].number != kind:
            found = " and ".join(_kind(value.number) for value in values) or "no value"
            raise self.wire.error(f"{_kind(kind)} in the attribute {key}", found, attribute.start)
        return self.wire.need(values[0], VARINT if kind in (_INT, _BOOL) else SPAN, f"the attribute {key}")

    def _list(self, named: dict[str, Field], key: str, kind: int) -> Iterator[Field]:
        """Remove the attribute `key` from `named` and yield the items of its list; nothing if `named` lacks it.

        Raises `ArtifactError` if an item is not of the kind with the field number `kind` in TensorFlow's ListValue.
        """
        content = self._value(named, key, _LIST)
        if content is None:
            return
        for item in self.wire.fields(content.start, content.end, f"the attribute {key}"):
            if item.number != kind:
                expected, found = (f"a list with {_kind(number)}" for number in (kind, item.number))
                raise self.wire.error(f"{expected} in the attribute {key}", found, item.start)
            if kind != _TYPES:
                self.wire.spend(item.start, ITEM)
            yield item

    def _texts(self, named: dict[str, Field], key: str) -> tuple[str, ...]:
        return tuple(self.wire.text(item, f"the attribute {key}") for item in self._list(named, key, _BYTES))

    def _dtypes(self, named: dict[str, Field], key: str) -> tuple[str, ...]:
        return tuple(
            _DTYPES.get(number, f"type {number}")
            for item in self._list(named, key, _TYPES)
            for number in self.wire.packed(item, f"the attribute {key}")
        )

    def _text_in(self, message: Field, number: int, what: str) -> str:
        """Return the text in field `number` of a message, or "" if the message lacks the field."""
        self.wire.need(message, SPAN, what)
        text = None
        for field in self.wire.fields(message.start, message.end, what):
            if field.number == number:
                text = field  # of several, a reader of protobufs takes the last
        return self.wire.text(text, what) if text else ""

    def _shape(self, shape: Field) -> str:
        """Return a shape as text: the sizes with commas, with `?` for an unknown size, or `...` for an unknown rank."""
        self.wire.need(shape, SPAN, "a shape")
        sizes = []
        for field in self.wire.fields(shape.start, shape.end, "a shape"):
            if field.number == 3 and field.value:
                return "..."
            if field.number == 2:
                self.wire.need(field, SPAN, "a dimension")
                size = 0
                for part in self.wire.fields(field.start, field.end, "a dimension"):
                    size = part.value if part.number == 1 else size
                sizes.append("?" if size >> 63 else str(size))
                if len(sizes) > MOST_DIMENSIONS:
                    raise self.wire.error(f"at most {MOST_DIMENSIONS} dimensions", "more", shape.start, LIMIT)
        return ",".join(sizes)
