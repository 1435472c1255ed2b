"""What a frozen record is here: a dataclass to type checkers, without the 25 ms that `dataclasses` costs at import."""

from __future__ import annotations

TYPE_CHECKING = False  # the constant of `typing`, which type checkers know by its name and which takes 5 ms to import
if TYPE_CHECKING:
    from functools import cached_property as cached_property
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_):
        """Do nothing: the decorator speaks to type checkers only."""
        return lambda cls: cls

    class cached_property:  # noqa: N801 - it stands for functools.cached_property, without what that module imports
        """A property that is computed once and then kept in the instance."""

        def __init__(self, compute):
            self.compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.compute(instance)
            return value


_set = object.__setattr__  # leaves the values inside the object; writing to __dict__ makes a dictionary for each


@dataclass_transform(frozen_default=True)
class Record:
    """Base of the room's data: fields are the annotations, in order; frozen; compared and printed by field.

    `dataclasses` itself loads `inspect` (20 to 30 ms here) and compiles code for every class, more than reading an
    artifact takes.
    """

    record_fields: ClassVar[tuple[str, ...]] = ()
    shown: ClassVar[tuple[str, ...]] = ()  # what `as_dict` gives, where that is not the fields

    def __init_subclass__(cls) -> None:
        own = tuple(name for name, kind in cls.__annotations__.items() if not str(kind).startswith("ClassVar"))
        cls.record_fields = (*cls.record_fields, *own)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        fields = self.record_fields
        if len(args) == len(fields) and not kwargs:
            for name, value in zip(fields, args):  # noqa: B905 - of one length, and this is most of reading
                _set(self, name, value)
            return
        if len(args) > len(fields):
            raise TypeError(f"{type(self).__name__} takes {len(fields)} fields, not {len(args)}")
        for name, value in zip(fields, args, strict=False):
            _set(self, name, value)
        missing = fields[len(args) :]
        if kwargs:
            for name, value in kwargs.items():
                if name not in missing:
                    raise TypeError(f"{type(self).__name__} takes no {name!r}, or it was given twice")
                _set(self, name, value)
            missing = tuple(name for name in missing if name not in kwargs)
        for name in missing:
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} needs the field {name!r}")

    def replace(self, **changes: Any) -> Self:
        """Return a copy with these fields changed."""
        return type(self)(**{name: getattr(self, name) for name in self.record_fields} | changes)

    __replace__ = replace

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: cannot delete {name!r}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.record_fields)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.record_fields)))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.record_fields)
        return f"{type(self).__name__}({inside})"


def as_dict(value: object) -> Any:
    """Turn records, tuples and dicts into what `json` can write; bytes become their hexadecimal digits."""
    if isinstance(value, Record):
        return {name: as_dict(getattr(value, name)) for name in value.shown or value.record_fields}
    if isinstance(value, dict):
        return {str(key): as_dict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_dict(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(as_dict(item) for item in value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    return value
