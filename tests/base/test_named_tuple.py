"""Named tuples that are made without `typing` are what `typing` makes."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

from export_core.base.named_tuple import NamedTuple


class Ours(NamedTuple):
    """A tuple made here."""

    name: str
    sizes: tuple[int, ...] = ()
    note: str | None = None

    @property
    def rank(self) -> int:
        return len(self.sizes)

    def longer(self) -> Ours:
        return self._replace(sizes=(*self.sizes, 1))


class Theirs(typing.NamedTuple):
    """A tuple made by typing."""

    name: str
    sizes: tuple[int, ...] = ()
    note: str | None = None

    @property
    def rank(self) -> int:
        return len(self.sizes)

    def longer(self) -> Theirs:
        return self._replace(sizes=(*self.sizes, 1))


class OfOurs(Ours):
    """A class derived from a named tuple."""


@pytest.mark.parametrize(
    "ask",
    [
        lambda kind: kind("a", (2, 3), note="x"),
        lambda kind: kind(sizes=(4,), name="b"),
        lambda kind: kind("a").longer().rank,
        lambda kind: kind("a")._asdict(),
        lambda kind: kind._make(["a", (1,), None]),
        lambda kind: kind("a", (1,)) < kind("b"),
        lambda kind: hash(kind("a")) == hash(("a", (), None)),
        lambda kind: pickle.loads(pickle.dumps(kind("a", (1,)))) == kind("a", (1,)),
        lambda kind: type(copy.deepcopy(kind("a"))) is kind,
        lambda kind: (kind._fields, kind._field_defaults, kind.__match_args__, kind.__mro__[-2:]),
        lambda kind: hasattr(kind("a"), "__dict__"),
        lambda kind: kind.__new__.__name__,
    ],
)
def test_a_named_tuple_behaves_like_typing_namedtuple(ask):
    assert ask(Ours) == ask(Theirs)


def test_a_named_tuple_shows_its_fields():
    assert repr(Ours("a", (2,))) == "Ours(name='a', sizes=(2,), note=None)"
    assert repr(OfOurs("a")) == "OfOurs(name='a', sizes=(), note=None)"
    assert (OfOurs("a").longer().sizes, OfOurs("a")._replace(name="b").__class__) == ((1,), OfOurs)
    assert (Ours.__doc__, Ours.__module__, type(Ours)) == ("A tuple made here.", __name__, type)


@pytest.mark.parametrize("wrong", [lambda: Ours(), lambda: Ours("a", names=1), lambda: Ours("a")._replace(names=1)])
def test_a_missing_or_unknown_field_is_an_error(wrong):
    with pytest.raises(TypeError, match="name"):
        wrong()


def test_a_field_cannot_be_set():
    with pytest.raises(AttributeError):
        Ours("a").name = "b"
