"""Banks to be merged that started again after wild first labels (native/learners/first_labels.hpp)."""

from __future__ import annotations

from collections.abc import Sequence

from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.core.types import np
from sketchnewton.learners.newton import bank_layout as layout
from sketchnewton.learners.newton import bank_tracking, residuals

if TYPE_CHECKING:
    from sketchnewton.learners.newton.bank import NewtonBank

__all__ = ["as_started_again"]

_RANGE = 2  # kind of labels
_NOTHING = ("lambda", "b", "constant", "buffer_index", "buffer_value", *residuals.NAMES)
_COUNTS = [layout.RANK, layout.FILLED, layout.ENTRIES, layout.TOUCHED, layout.WAITING]
_SCALARS = [layout.RIDGE, layout.RATE, layout.GAPS, layout.MISSED, layout.EXPECTED]
_SCALARS += [layout.USUAL, layout.USUAL_ROWS, layout.NEAR, layout.WINDOWS]
_LABELS = [layout.OFFSET, layout.LOW, layout.HIGH]


def as_started_again(banks: Sequence[NewtonBank], base: NewtonBank) -> tuple[list[NewtonBank], NewtonBank]:
    """The same banks and the base that they began with; if one has forgotten it, a base that knows nothing.

    What is no part of a bank cannot be taken away from it. If labels of the base were wild, what the other banks
    know is worth as little; they have met a few labels only. If not, they keep all, the base's few labels, too.
    """
    again = [bank for bank in banks if _starts(bank) > _starts(base)]
    if not again:
        return list(banks), base
    like = again[0]
    seen, kept = base._state.view("scalars"), like._state.view("scalars")
    wild = seen[layout.SEEN_LOW] < kept[layout.LOW] or seen[layout.SEEN_HIGH] > kept[layout.HIGH]
    sides = [_forgetful(bank, like) if wild and _starts(bank) == _starts(base) else bank for bank in banks]
    return sides, _forgetful(base, like)


def _starts(bank: NewtonBank) -> float:
    return float(bank._state.view("first_labels")[layout.STARTS])


def _forgetful(bank: NewtonBank, like: NewtonBank) -> NewtonBank:
    """A bank that knows features' scales, and of labels the range of another; as `restart` of bank.hpp."""
    fresh = type(bank)(**bank._params)
    arrays = {name: np.array(array) for name, array in bank._all_arrays().items()}
    nothing = fresh._all_arrays()
    for name in (*_NOTHING, *fresh._epochs.fresh()):
        arrays[name] = np.array(nothing[name])
    # Labels are numbers now, if they were classes before: nothing is left for that expert to follow.
    experts = bank._kernel.experts - bank._tracks
    arrays |= {name: np.array(array) for name, array in bank_tracking.fresh(there=False).items()}
    arrays["shares"][:] = 0.0
    arrays["shares"][:experts] = 1.0 / experts
    arrays["table"][:, :-3] = 0.0
    arrays["table"][:, -1] = -1.0
    for name in ("full_weights", "full_moments", "full_spread"):
        arrays[name][:] = 0.0
    arrays["bank_counts"][_COUNTS] = 0
    arrays["bank_counts"][layout.LABELS] = _RANGE
    arrays["scalars"][_SCALARS] = 0.0
    arrays["scalars"][_LABELS] = like._state["scalars"][_LABELS]
    return bank._with(arrays)
