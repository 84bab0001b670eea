"""What becomes of the features that are read: how many bits, which namespaces, n-grams, interactions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sketchnewton import _native
from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.core.hints import Any, NamedTuple, Self
from sketchnewton.core.types import Header, Integers, NDArray, np
from sketchnewton.features.names import DEFAULT_BITS, MAX_BITS, Names, mask_of

MAX_NGRAM = 16

# Columns with interactions have numbers that no letter has, 0 being that of all others.
_FIRST_COLUMN = 128
_MOST_COLUMNS = 128


class _Options(NamedTuple):
    bits: int | None = None
    """Indices have so many bits. None: 18 where names are hashed; indices of svmlight and npz as they are."""
    interactions: tuple[str, ...] = ()
    """``ab`` multiplies each feature of namespace a with each of b; ``abc``, … likewise; ``:`` is any.
    ``city,device`` multiplies those of two columns of a table, and so on."""
    ignore: str = ""
    """Namespaces to drop."""
    keep: str = ""
    """If not empty, the only namespaces to keep."""
    ngram: tuple[str, ...] = ()
    """``2``: pairs of neighbours in each namespace are features, too; ``a3``: pairs and triples in a."""
    string_values: bool = False
    """VW text: ``name:text`` is a feature of its own, not a mistake."""


class Features(_Options):
    """How names become feature indices: hashing, interactions, n-grams, ignored namespaces.

    A namespace is meant by the first character of its name, as in Vowpal Wabbit; the default namespace is a
    blank.

    >>> Features(bits=20, interactions=("ab", "ccd"), ignore="x", ngram=("2", "t3")).mask
    1048575
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse what makes no sense."""
        self = super().__new__(cls, *args, **options)
        self._check()
        return self

    def _check(self) -> None:
        if self.bits is not None and not 1 <= self.bits <= MAX_BITS:
            raise ValueError(f"bits={self.bits} is invalid: must be from 1 to {MAX_BITS}")
        for columns in self.column_terms:
            if not all(columns):
                raise ValueError(f"interactions={','.join(columns)!r} is invalid: must be names of columns")
        if len(self.column_numbers) > _MOST_COLUMNS:
            raise ValueError(f"interactions are invalid: must be of at most {_MOST_COLUMNS} columns")
        for term in self._letter_terms:
            if len(term) < 2 or not term.isascii():
                raise ValueError(f"interactions={term!r} is invalid: must be two or more ASCII characters")
        for field in ("ignore", "keep"):
            if not getattr(self, field).isascii():
                raise ValueError(f"{field}={getattr(self, field)!r} is invalid: must be ASCII characters")
        for gram in self.ngram:
            found = _parts(gram)
            if found is None or not 2 <= int(found[2]) <= MAX_NGRAM:
                raise ValueError(
                    f"ngram={gram!r} is invalid: must be a number from 2 to {MAX_NGRAM}, "
                    "after the namespace that it is for, if any"
                )

    @property
    def column_terms(self) -> tuple[tuple[str, ...], ...]:
        """The interactions of columns, by their names."""
        return tuple(tuple(term.split(",")) for term in self.interactions if "," in term)

    @property
    def _letter_terms(self) -> tuple[str, ...]:
        return tuple(term for term in self.interactions if "," not in term)

    @property
    def column_numbers(self) -> dict[str, int]:
        """A number for each column that has interactions."""
        names = dict.fromkeys(name for term in self.column_terms for name in term)
        return {name: _FIRST_COLUMN + number for number, name in enumerate(names)}

    @property
    def mask(self) -> int:
        """2^bits − 1: what hashes are cut to."""
        return mask_of(DEFAULT_BITS if self.bits is None else self.bits)

    @property
    def expands(self) -> bool:
        """Whether rows need more than their names hashed."""
        return bool(self.interactions or self.ignore or self.keep or self.ngram)

    @property
    def joins(self) -> bool:
        """Whether there are n-grams or interactions."""
        return bool(self.interactions or self.ngram)

    def to_dict(self) -> Header:
        """The options that differ from the defaults, for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._asdict().items()
            if value != self._field_defaults[name]
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Features:
        """What ``to_dict`` gave."""
        options: Header = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**options)

    def expanded(
        self,
        batch: Batch,
        spaces: NDArray[np.uint8] | memoryview | None = None,
        entries: Integers | memoryview | None = None,
        names: Names | None = None,
        columns: NDArray[np.uint8] | memoryview | None = None,
    ) -> Batch:
        """The batch with namespaces dropped, n-grams and interactions added.

        ``spaces`` has the first byte of each feature's namespace; None means the default. ``entries`` are those
        in ``names``, ``columns`` the ``column_numbers`` of a table's features, 0 for others.
        """
        letters = [term.encode() for term in self._letter_terms]
        plain = not (letters or self.ignore or self.keep or self.ngram)
        if self.column_terms and columns is None:
            raise ValueError(
                f"interactions={','.join(self.column_terms[0])!r} are of columns: they need a table"
            )
        if self.column_terms and not plain and names is not None and names.exact:
            raise ValueError("interactions of columns cannot be combined with others where names are exact")
        made = batch
        if not plain:
            made = self._expanded(batch, spaces, entries, names, self._kept(), self._ngrams(), letters)
        if not self.column_terms:
            return made
        numbers = self.column_numbers
        terms = [bytes(numbers[name] for name in term) for term in self.column_terms]
        products = self._expanded(batch, columns, entries, names, b"\1" * 256, bytes(256), terms)
        return _joined(made, products, np.diff(batch.indptr))

    def _expanded(
        self,
        batch: Batch,
        spaces: NDArray[np.uint8] | memoryview | None,
        entries: Integers | memoryview | None,
        names: Names | None,
        kept: bytes,
        ngrams: bytes,
        terms: list[bytes],
    ) -> Batch:
        exact = names is not None and names.exact
        try:
            indptr, indices, data = _native.expand_rows(
                batch.indptr,
                batch.indices,
                np.asarray(batch.data, np.float64),
                spaces,
                entries,
                names.table if names is not None else None,
                kept,
                ngrams,
                terms,
                mask_of(None) if exact else self.mask,
            )
        except OverflowError:
            message = "a row from here on has too many interactions: expected at most 2^24 features"
            raise ParseError("", None, None, message) from None
        return batch.replace(indptr=indptr, indices=indices, data=data, columns=None)

    def indexed(self, batch: Batch, names: Names | None) -> Batch:
        """A batch of numbered features, all in the default namespace, made as the options say."""
        entries = None
        if names is not None:
            unique, first, inverse = np.unique(batch.indices, return_index=True, return_inverse=True)
            order = np.argsort(first)  # of appearance, so that exact names do not depend on the batch
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            unique = unique[order]
            masked = self.bits is not None or self.expands
            hashes = unique & np.int64(self.mask) if masked else unique
            indices, found = names.enter([b"%d" % index for index in unique.tolist()], b"", hashes)
            entries = found[place[inverse]]
            batch = batch.replace(indices=indices[place[inverse]], columns=None)
        elif self.bits is not None:
            batch = batch.replace(indices=batch.indices & np.int64(self.mask), columns=None)
        return self.expanded(batch, None, entries, names) if self.expands else batch

    def _kept(self) -> bytes:
        kept = bytearray(b"\0" * 256 if self.keep else b"\1" * 256)
        for letter in self.keep.encode():
            kept[letter] = 1
        for letter in self.ignore.encode():
            kept[letter] = 0
        return bytes(kept)

    def _ngrams(self) -> bytes:
        longest = bytearray(256)
        grams = [_parts(gram) for gram in self.ngram]
        for letter, number in sorted(gram.groups() for gram in grams if gram):  # those for all come first
            if letter:
                longest[ord(letter)] = int(number)
            else:
                longest[:] = bytes([int(number)]) * 256
        return bytes(longest)


def _parts(gram: str) -> re.Match[str] | None:
    """The namespace that n-grams are for, if any, and their length."""
    return re.fullmatch(r"([^\d]?)([0-9]{1,2})", gram, re.ASCII | re.DOTALL)


def _joined(batch: Batch, products: Batch, before: Integers) -> Batch:
    """The rows of a batch, each followed by what its row among the products has behind so many features."""
    rows = len(batch)
    own, more = np.diff(batch.indptr), np.diff(products.indptr)
    place = np.arange(len(products.indices)) - np.repeat(products.indptr[:-1], more)
    new = place >= np.repeat(before, more)
    row = np.concatenate((np.repeat(np.arange(rows), own), np.repeat(np.arange(rows), more)[new]))
    order = np.argsort(row, kind="stable")
    return batch.replace(
        indptr=np.concatenate(([0], np.cumsum(np.bincount(row, minlength=rows)))),
        indices=np.concatenate((batch.indices, products.indices[new]))[order],
        data=np.concatenate((batch.data, products.data[new]))[order],
        columns=None,
    )
