"""Names into indices as Vowpal Wabbit hashes them, and back: what became of which name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sketchnewton import _native
from sketchnewton.core.hints import TYPE_CHECKING

if TYPE_CHECKING:  # as in `batch`
    import numpy as np
    import numpy.typing as npt

DEFAULT_BITS = 18
MAX_BITS = 30

_ALL_BITS = (1 << 64) - 1


def murmur3(data: bytes, seed: int = 0) -> int:
    """32-bit MurmurHash3 (the x86 variant).

    >>> hex(murmur3(b"hello", 0))
    '0x248bfa47'
    """
    return _native.murmur3(data, seed)


def hash_namespace(name: str) -> int:
    """The hash of a namespace: MurmurHash3 of its `name`, 0 for the default namespace.

    >>> hash_namespace(""), hash_namespace("a")
    (0, 1009084850)
    """
    return _native.name_hash(name.encode(), 0)


def hash_feature(name: str, namespace: str = "", bits: int = DEFAULT_BITS) -> int:
    """The index of a feature: MurmurHash3 of its `name`, seeded by its `namespace`, cut to `bits` bits.

    A name of digits is kept as a number, counted from the namespace's hash.

    >>> hash_feature("price"), hash_feature("17"), hash_feature("x", "a")
    (229902, 17, 55432)
    """
    return _native.name_hash(name.encode(), hash_namespace(namespace)) & mask_of(bits)


def mask_of(bits: int | None) -> int:
    """2^bits − 1, or all ones for None."""
    return _ALL_BITS if bits is None else (1 << bits) - 1


def shown_feature(index: int, columns: Iterable[str], mask: int, names: Names | None) -> str:
    """What to call the feature of an index in a message: its name, or the column whose numbers have it.

    >>> shown_feature(229902, ["area", "price"], mask_of(18), None), shown_feature(7, ["area"], mask_of(18), None)
    ("column 'price'", 'feature 7')
    """
    if names is not None and index in (known := names.readable()):
        return f"feature '{known[index]}'"
    for column in columns:
        space, bar, name = column.partition("|")
        seed = hash_namespace(space) if bar else 0
        if _native.name_hash((name if bar else space).encode("utf-8", "surrogatepass"), seed) & mask == index:
            return f"column '{column}'"
    return f"feature {index}"


class Names:
    """Feature names seen by readers: an exact dictionary, or a record of the index that each name was hashed to.

    With ``exact`` a name's index is its number of first appearance, so that no two names share one. Otherwise
    indices are the hashes, and the names are kept for people to read. Memory grows with the number of names.

    >>> names = Names(exact=True)
    >>> names.indices_of(["red", "blue", "red"]).tolist()
    [0, 1, 0]
    >>> names.readable()
    {0: 'red', 1: 'blue'}
    """

    def __init__(self, exact: bool = False) -> None:
        self.exact = exact
        self.table = _native.NameTable(exact)

    def __len__(self) -> int:
        return len(self.table)

    def __reduce__(self) -> tuple[object, tuple[object, bool]]:
        return Names.from_state, (self.state(), self.exact)

    def enter(
        self, names: list[bytes], namespace: bytes, hashes: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Add what is new; returns each name's index and its entry in the table."""
        return self.table.enter(namespace, names, hashes)

    def indices_of(
        self, names: Sequence[str], namespace: str = "", bits: int = DEFAULT_BITS
    ) -> npt.NDArray[np.int64]:
        """The indices of names, which are added if they are new."""
        encoded = [name.encode() for name in names]
        hashes = _native.hash_names(encoded, hash_namespace(namespace), mask_of(bits))
        return self.enter(encoded, namespace.encode(), hashes)[0]

    def readable(self) -> dict[int, str]:
        """Name by index, ``namespace^name``, ``a*b`` for interactions; names that share an index are joined."""
        result: dict[int, str] = {}
        for index, shown in self.table.shown():
            name = shown.decode("utf-8", "backslashreplace")
            result[index] = f"{result[index]} | {name}" if index in result else name
        return result

    def join(self, joins: bool) -> None:
        """Say whether interactions and n-grams will be named, too; exact names must know it from the start."""
        if not self.table.set_joins(joins):
            raise ValueError("exact names were made " + ("without" if joins else "with") + " interactions")

    def same(self, other: Names) -> bool:
        """Do both know the same names by the same indices?"""
        (mine, at), (theirs, where) = self.table.snapshot(), other.table.snapshot()
        return mine == theirs and at.tolist() == where.tolist() and self.table.joins == other.table.joins

    def united(self, other: Names) -> Names:
        """The exact names of both: those known here by their indices, then the new ones of `other`.

        ``ValueError`` if interactions or n-grams have names, too, which are made of other names.
        """
        if self.same(other):
            return self
        if self.table.joins or other.table.joins:
            raise ValueError("exact names of interactions and n-grams are numbered differently")
        mine, theirs = self.table.snapshot()[0], other.table.snapshot()[0]
        known = set(mine)
        both = Names(exact=True)
        both.join(False)
        for index, key in enumerate([*mine, *(key for key in theirs if key not in known)]):
            both.table.restore(key, index)
        return both

    def places_in(self, whole: Names) -> npt.NDArray[np.int64]:
        """The index that each of these exact names has in `whole`, which has them all."""
        import numpy as np

        index = {key: place for place, key in enumerate(whole.table.snapshot()[0])}
        return np.array([index[key] for key in self.table.snapshot()[0]], np.int64)

    def state(self) -> dict[str, npt.NDArray[np.uint8] | npt.NDArray[np.int64]]:
        """All of it as arrays, for a model file."""
        import numpy as np

        keys, indices = self.table.snapshot()  # at one moment: a reader may be adding names
        return {
            "keys": np.frombuffer(b"".join(keys), np.uint8).copy(),
            "ends": np.cumsum([len(key) for key in keys], dtype=np.int64),
            "indices": indices,
            "joins": np.array([self.table.joins], np.uint8),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[np.generic]], exact: bool) -> Names:
        """What ``state`` gave; ``ValueError`` if that was not it."""
        import numpy as np

        text = np.asarray(state["keys"], np.uint8).tobytes()
        ends = np.asarray(state["ends"], np.int64).tolist()
        indices = np.asarray(state["indices"], np.int64).tolist()
        if len(ends) != len(indices) or (ends[-1] if ends else 0) != len(text):
            raise ValueError("names are damaged: their parts do not belong together")
        names = cls(exact)
        names.join(bool(np.asarray(state["joins"]).any()))
        begin = 0
        for place, (end, index) in enumerate(zip(ends, indices, strict=True)):
            known = begin < end <= len(text) and index >= 0 and names.table.restore(text[begin:end], index)
            if not known:
                raise ValueError(f"names are damaged: entry {place} is not a name")
            begin = end
        if names.table.snapshot()[1].tolist() != indices:
            raise ValueError("names are damaged: their indices are not those of their order")
        return names
