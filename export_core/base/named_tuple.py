"""`NamedTuple` of `typing`, without `typing`.

A person waits for `jaxexport inspect`, which makes 47 of these classes. `typing` takes 3 ms to import and 0.1 ms for
each class, a tenth of the whole command. A module that `inspect` imports takes `NamedTuple` from here, and imports
what only its annotations name under `if TYPE_CHECKING`; tests/features/inspect/test_inspect.py sees to it.
"""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]  # what `collections.namedtuple` reads a field with

__all__ = ["TYPE_CHECKING", "NamedTuple"]

TYPE_CHECKING = False  # type checkers take a name like this one for true

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, NamedTuple, Self
else:

    class _Fields(tuple):
        """A tuple whose class names its fields, with the methods of `collections.namedtuple`."""

        __slots__ = ()
        _fields: tuple[str, ...]

        @classmethod
        def _make(cls, values: Iterable[Any]) -> Self:
            """Return a tuple of this class with these values, one for each field."""
            return cls(*values)

        def _replace(self, /, **values: Any) -> Self:
            """Return a copy in which the named fields have other values."""
            return type(self)(**{**self._asdict(), **values})

        def _asdict(self) -> dict[str, Any]:
            """Return the values as a dictionary by the names of their fields."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

        def __getnewargs__(self) -> tuple[Any, ...]:  # for `copy` and `pickle`
            return tuple(self)

    class _Maker(type):
        """The metaclass of `NamedTuple`, which makes a class of tuples from a class with annotated fields."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults: Mapping[str, Any] = {field: body[field] for field in fields if field in body}
            arguments = ", ".join(f"{field}=_defaults[{field!r}]" if field in defaults else field for field in fields)
            values = "".join(f"{field}, " for field in fields)
            # A function of its own for each class, since one that takes any arguments would be slower to call.
            made = f"lambda _cls, {arguments}: _new(_cls, ({values}))"
            new = eval(made, {"_new": tuple.__new__, "_defaults": defaults, "__name__": body["__module__"]})
            new.__name__, new.__qualname__ = "__new__", f"{name}.__new__"
            getters = {field: _tuplegetter(number, None) for number, field in enumerate(fields)}
            made_body = {**body, **getters, "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            return type.__new__(type, name, (_Fields,), {**made_body, "__new__": new, "__slots__": ()})

    class NamedTuple(metaclass=_Maker):
        """A base of classes of tuples with named fields, as `typing.NamedTuple` is."""
