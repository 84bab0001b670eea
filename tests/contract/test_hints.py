"""The stand-ins for `typing`: named tuples are those of `typing`, all else serves annotations alone."""

from __future__ import annotations

import ast
import pickle
import typing
from pathlib import Path

import pytest

from sketchnewton.core import hints


class Ours(hints.NamedTuple):
    """A pair."""

    one: int
    """The first."""
    two: tuple[str, ...] = ()

    @property
    def both(self) -> int:
        return self.one + len(self.two)

    @classmethod
    def of(cls, text: str) -> Ours:
        return cls(len(text), (text,))


class Theirs(typing.NamedTuple):
    """A pair."""

    one: int
    """The first."""
    two: tuple[str, ...] = ()

    @property
    def both(self) -> int:
        return self.one + len(self.two)

    @classmethod
    def of(cls, text: str) -> Theirs:
        return cls(len(text), (text,))


def test_named_tuples_are_those_of_typing() -> None:
    for name in ("_fields", "_field_defaults", "__doc__", "__bases__", "__module__", "__slots__"):
        assert getattr(Ours, name) == getattr(Theirs, name)
    for made in (Ours, Theirs):
        assert made.__qualname__ == made.__name__
        assert made.of("abc") == (3, ("abc",))
        assert made.of("abc").both == 4
        assert made(2)._replace(two=("x",)) == made(2, ("x",))
        assert repr(made(2)) == f"{made.__name__}(one=2, two=())"
        with pytest.raises(TypeError):
            made()
    assert pickle.loads(pickle.dumps(Ours(2))) == Ours(2)
    assert type(pickle.loads(pickle.dumps(Ours(2)))) is Ours


def test_one_may_inherit_and_check() -> None:
    class Checked(Ours):
        __slots__ = ()

        def __new__(cls, *args: object) -> Checked:
            self = super().__new__(cls, *args)
            if self.one < 0:
                raise ValueError("negative")
            return self

    assert Checked(1).both == 1
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def test_hints_are_no_classes() -> None:
    """A check that would never be true says so: `SupportsFloat` of `typing` could be asked."""
    for name in ("Any", "SupportsFloat", "SupportsIndex", "TextIO"):
        with pytest.raises(TypeError):
            isinstance(1.0, getattr(hints, name))


def test_all_names_are_there() -> None:
    tree = ast.parse(Path(hints.__file__).read_text())
    (imported,) = (
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "typing"
    )
    assert {alias.name for alias in imported.names} | {"TYPE_CHECKING"} == set(hints.__all__)
    assert all(hasattr(hints, name) for name in hints.__all__)
