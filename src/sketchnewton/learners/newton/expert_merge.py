"""How much of what each bank has learned of a weight is kept, for experts of each kind (docs/merging.md)."""

from __future__ import annotations

from collections.abc import Sequence

from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.types import Floats, np
from sketchnewton.learners.newton import bank_layout as layout

__all__ = ["Part", "faded", "further", "lengthened", "parts"]

_RESTLESS_KNOWN = 8.0  # how much sooner weights are known if steps are restless; chosen in experiments


class Part(NamedTuple):
    """What a side adds to the base's weights: `own` times its weights less `less` times the base's."""

    own: Floats
    less: Floats


def parts(view: int, new: Sequence[Floats], seen: Floats, known: Sequence[Floats]) -> list[Part]:
    """The part of each side, for experts that see rows in this way.

    For each feature: `new` rows of each side that had it, those that the base has `seen`, and how well each side
    has `known` it since: h.
    """
    return _RULES.get(view, _newton)(new, seen, known)


def _newton(new: Sequence[Floats], seen: Floats, known: Sequence[Floats]) -> list[Part]:
    """All of what a side added to a weight if it is hardly known, a share if well known."""
    depth = np.sum(known, axis=0)
    shares = [(1.0 + own) / (1.0 + depth) for own in known]
    return [Part(share, share) for share in shares]


def _restless(new: Sequence[Floats], seen: Floats, known: Sequence[Floats]) -> list[Part]:
    """As `_newton`; but steps that go all the way to the label would go too far together, once there is a base."""
    return _newton(new, seen, [np.where(seen > 0, _RESTLESS_KNOWN, 1.0) * its for its in known])


def _rare(new: Sequence[Floats], seen: Floats, known: Sequence[Floats]) -> list[Part]:
    """The same for rare experts, whose step of a feature's row number t is t^(−¾) long.

    If a weight is hardly known, one bank would have gone as far as such steps take it in the rows of all sides, in
    their mean direction. If it is well known, it is where it should be, and grows with all steps so far, because a
    rare expert's view of features shrinks: sides are averaged as shares of their steps.
    """
    rows, depth = np.sum(new, axis=0), np.sum(known, axis=0)

    def steps(count: Floats) -> Floats:
        """The sum of the steps of so many rows; it is all but this integral."""
        return np.asarray((count + 0.5) ** 0.25 - 0.5**0.25)

    found = []
    for own in new:
        share = own / np.maximum(rows, 1.0) / (1.0 + depth)
        further = (steps(seen + rows) - steps(seen)) / np.where(own > 0, steps(seen + own) - steps(seen), 1.0)
        larger = steps(seen + rows) / np.where(own > 0, steps(seen + own), 1.0)
        found.append(Part(share * (further + depth * larger), share * (further + depth)))
    return found


def faded(weights: Floats, before: int, t: int) -> Floats:
    """What weights after `before` rounds are at t if no row moves them: means draw nearer to what they mean."""
    if not before:
        return weights.copy()
    numbers = layout.kept(weights, before)
    return layout.averaged(numbers, t)


def further(found: Sequence[Part], before: int, rounds: Sequence[int], whole: int) -> list[Part]:
    """Parts of means over all rows, which move further after the rows of all sides."""
    factors = lengthened(before, rounds, whole)
    return [Part(its.own * by, its.less * by) for its, by in zip(found, factors, strict=True)]


def lengthened(before: int, rounds: Sequence[int], whole: int) -> list[float]:
    """How much further means over all rows have moved after the rows of all sides than after those of each.

    After t rounds, the share of a mean that is from the first `before` is averaging(t)/averaging(before): a side
    has moved by the rest of it towards the mean of its own rows, and one bank would have moved more.
    """

    def moved(t: int) -> float:
        return 1.0 - layout.averaging(t) / layout.averaging(before) if before else 1.0

    return [moved(whole) / moved(t) if t > before else 0.0 for t in rounds]


# By view; `_newton` for the others.
_RULES = {layout.RESTLESS: _restless, layout.MEAN: _restless, layout.RARE: _rare}
