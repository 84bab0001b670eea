"""`typing` for modules that `skn train` and `skn predict` import: the same names, without importing it.

`typing` takes longer to import than a megabyte takes to parse. Annotations are never evaluated there, so nearly
all names only have to exist; type checkers see the real ones. Named tuples are what they always are.
"""

from __future__ import annotations

__all__ = [
    "TYPE_CHECKING",
    "Any",
    "BinaryIO",
    "ClassVar",
    "Literal",
    "NamedTuple",
    "NoReturn",
    "Protocol",
    "Self",
    "SupportsFloat",
    "SupportsIndex",
    "TextIO",
    "TypeAlias",
    "cast",
    "overload",
]

TYPE_CHECKING = False  # type checkers take it for true

if TYPE_CHECKING:
    from typing import (
        Any,
        BinaryIO,
        ClassVar,
        Literal,
        NamedTuple,
        NoReturn,
        Protocol,
        Self,
        SupportsFloat,
        SupportsIndex,
        TextIO,
        TypeAlias,
        cast,
        overload,
    )
else:
    from collections import namedtuple

    class _Hint(type):
        """Of what is no class: nothing can be asked to be an instance."""

        def __instancecheck__(cls, value):
            raise TypeError("only annotations may have this")

    class Any(metaclass=_Hint):
        """Stands for whatever an annotation says."""

    class Protocol:
        """The base of classes that only type checkers ask for."""

    BinaryIO = ClassVar = Literal = NoReturn = Self = SupportsFloat = SupportsIndex = TextIO = TypeAlias = Any

    def cast(kind, value):
        """`value`."""
        return value

    def overload(function):
        """`function`, which the one that follows replaces."""
        return function

    class _Fields(type):
        """Makes a named tuple of a class with annotated fields and their defaults."""

        def __new__(cls, name, bases, members):
            if not bases:
                return super().__new__(cls, name, bases, members)
            fields = members.get("__annotations__", {})
            defaults = [members.pop(field) for field in fields if field in members]
            made = namedtuple(name, fields, defaults=defaults, module=members["__module__"])
            for member, value in members.items():
                if member not in ("__module__", "__qualname__"):
                    setattr(made, member, value)
            made.__qualname__ = members["__qualname__"]
            return made

    class NamedTuple(metaclass=_Fields):
        """The base that `_Fields` puts `tuple` in the place of."""
