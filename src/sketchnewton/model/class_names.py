"""Names of classes and what tables call them: one text for each label, whatever format it is in."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from sketchnewton.features.kinds import category, encoded, looks_like_number, number_text

__all__ = ["AgainstAll", "SeenLabels", "is_number", "label_text", "names_of"]


def label_text(name: object) -> bytes:
    """A label as a table has it, in the one form that categories have.

    >>> label_text("spam"), label_text(True), label_text(3.0)
    (b'spam', b'true', b'3')
    """
    if isinstance(name, bool):
        return b"true" if name else b"false"
    return number_text(name) if isinstance(name, int | float) else category(encoded(str(name)))


def is_number(name: object) -> bool:
    """Whether a label is a number, which true and false are not."""
    return isinstance(name, int | float) and not isinstance(name, bool)


def names_of(texts: Iterable[bytes]) -> list[Hashable]:
    """The names of the classes that tables call so, in order: numbers, true and false, or texts.

    `ValueError` if a text is not UTF-8, as files and answers are.

    >>> names_of([b"dog", b"cat"]), names_of([b"10", b"9"]), names_of([b"true", b"false"])
    (['cat', 'dog'], [9, 10], [False, True])
    """
    found = set(texts)
    if all(map(looks_like_number, found)):
        numbers = sorted(map(float, found))
        return [int(number) if number.is_integer() else number for number in numbers]
    if found <= {b"true", b"false"}:
        return [text == b"true" for text in sorted(found)]
    try:
        return list[Hashable](sorted(text.decode() for text in found))
    except UnicodeDecodeError as error:
        shown = error.object.decode("utf-8", "backslashreplace")
        raise ValueError(
            f"expected UTF-8, got the label '{shown}': iconv -f LATIN1 -t UTF-8 may turn one into the other"
        ) from None


class SeenLabels(dict[bytes, float]):
    """The labels that a reader asked for."""

    def get(self, text: bytes, default: object = None) -> float:
        """The same for all: they are noted."""
        self[text] = 0.0
        return 0.0


class AgainstAll(Mapping[bytes, float]):
    """The codes of labels where one of them is +1 and all others are −1."""

    def __init__(self, positive: bytes) -> None:
        self._positive = positive

    def __getitem__(self, text: bytes) -> float:
        return 1.0 if text == self._positive else -1.0

    def __iter__(self) -> Iterator[bytes]:
        return iter((self._positive,))

    def __len__(self) -> int:
        return 1
