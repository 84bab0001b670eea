"""What was meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["closest"]

_ALIKE = 0.65  # of 1: "tpo" and "top" are; words that share a few letters are not


def closest(word: str, words: Iterable[str]) -> str | None:
    """The one of `words` that `word` is a slip of the pen for; None where a guess would be nonsense.

    >>> closest("--alhpa", ["--alpha", "--adam"]), closest("--depth", ["--delimiter", "--bits"])
    ('--alpha', None)
    """
    import difflib  # only after a typing error

    known = {_bare(other): other for other in words}
    found = difflib.get_close_matches(_bare(word), known, n=1, cutoff=_ALIKE)
    return known[found[0]] if found else None


def _bare(word: str) -> str:
    """Without what all options begin with, which says nothing."""
    return word.lstrip("-").replace("_", "-").lower()
