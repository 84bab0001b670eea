"""`clip="auto"`: the range of the targets is learned online, so that a regression needs no scaling."""

from __future__ import annotations

import math
from abc import abstractmethod

from sketchnewton import _native
from sketchnewton.core.hints import NamedTuple, Self
from sketchnewton.core.parameters import checked_clip
from sketchnewton.core.state import Vector, zeros
from sketchnewton.core.types import Arrays, Floats, NDArray, np
from sketchnewton.learners.base import Learner
from sketchnewton.learners.rows import checked_scan
from sketchnewton.learners.table import TableLearner
from sketchnewton.losses import Loss

_FREE_ROWS = 8  # in which the range may grow at will
_FREE_GROWTH = 4.0  # by one of them, where steps are as long as the range is wide: any one may be wild


class CommonRange(NamedTuple):
    """The range of the targets of two learners, and how each of them is seen in it."""

    state: Arrays
    """The array of the merged learner, if its range is learned."""
    stretch: Floats
    """Weights are multiplied by this."""
    shift: Floats
    """The constant gains this."""
    curvature: Floats
    """Curvature is multiplied by this: slopes count relative to the width of the range."""


class RangedLearner(TableLearner):
    """A learner whose bound C on predictions is a number, none, or (`clip="auto"`) learned from the targets.

    With "auto", C is the largest |y − y₁| of the rows before, where y₁ is the first target if there is an
    intercept and 0 otherwise; a count y needs log y ≤ C. A row is predicted within the range of the targets
    before it. A target beyond that is learned as the nearest one within, and then widens the range, past the
    first rows at most twofold: one wild target does no damage. What depends on C (curvature, step size) changes
    at such rows alone, about ln n of n rows that come in random order. Where the unit of targets matters, a target
    among the first rows that is far beyond the range makes the learner begin once more, with that range.
    """

    def __init__(self, columns: int, clip: float | str | None, **parameters: object) -> None:
        super().__init__(columns, clip=clip, **parameters)
        self._ranged = isinstance(clip, str)
        self._scorer: tuple[_native.RowKernel, _native.RowKernel] | None = (
            None  # and the kernel it is a twin of
        )
        if isinstance(clip, str):
            if clip != "auto":
                raise ValueError(f"clip={clip!r} is invalid: must be a number, 'auto' or None")
            if self.loss.sign_labels:
                raise ValueError(
                    f"clip='auto' is invalid: {self.loss.name} loss has no targets to learn a range from"
                )
            self._state["range"] = zeros(4)  # y₁, C, whether a row was learned from, unit
        else:
            self._clip = checked_clip(clip)

    @property
    def bound(self) -> float:
        """The bound C on predictions that is in force."""
        if self._ranged:
            return float(self._state.view("range")[1]) or 1.0  # nothing but one target seen: any unit will do
        return self._clip

    @property
    def prediction_bounds(self) -> tuple[float, float]:
        """The least and the largest prediction that can be made now."""
        if self._ranged and not self._state.view("range")[1]:
            return self._offset, self._offset
        return self._offset - self.bound, self._offset + self.bound

    @property
    def intercept_(self) -> float:
        """The constant that is added to every score; 0 without an intercept."""
        return self._offset + self._unit * super().intercept_

    @property
    def _offset(self) -> float:
        return float(self._state.view("range")[0]) if self._ranged else 0.0

    @property
    def _unit(self) -> float:
        """The kernel sees targets divided by this: the first bound, so that scales do not matter to it."""
        return (float(self._state.view("range")[3]) or 1.0) if self._ranged else 1.0

    @property
    def _kernel_loss(self) -> Loss:
        """The loss of targets divided by the unit."""
        return self.loss.in_unit(self._unit)

    def decision_function(self, X: object) -> Floats:
        """wᵀx + b for each row: the prediction before clipping."""
        rows = self._rows(X)
        checked_scan(rows)
        scores = np.empty(len(rows))
        with self._lock:
            if self._scorer is None or self._scorer[0] is not self._kernel:
                self._scorer = self._kernel, self._bind(clip=math.inf)
            self._scorer[1].predict(rows, scores)
        return scores * self._unit + self._offset

    def _common_range(self, other: Self) -> CommonRange:
        """The range that has those of both learners in it; for a bound that was given there is nothing to do."""
        if not self._ranged:
            return CommonRange({}, np.ones(2), np.zeros(2), np.ones(2))
        firsts, bounds, known, units = np.array([self._state["range"], other._state["range"]]).T
        rows = np.array([self.rows_seen, other.rows_seen]) * known
        first = rows @ firsts / max(rows.sum(), 1.0)
        reach = np.where(known > 0, np.abs(firsts - first) + bounds, 0.0)
        bound = float(reach.max())
        unit = rows @ units / max(rows @ (units > 0), 1.0)
        if unit == 0 and self.loss.shift_invariant:  # in both all targets were the same
            unit = bound
        state = np.array([first, bound, known.max(), unit])
        units, unit = np.where(units > 0, units, 1.0), unit or 1.0
        narrower = (bounds / bound) ** 2 if bound > 0 else np.ones(2)
        return CommonRange({"range": state}, units / unit, (firsts - first) / unit, narrower)

    @abstractmethod
    def _bind(self, clip: float | None = None) -> _native.RowKernel:
        """The kernel over the arrays as they are now; predictions within ±clip, or `bound`."""

    def _widen(self, bound: float) -> None:
        """Let predictions reach `bound`, and whatever else follows from it."""
        state = self._state["range"]
        if state[1] == 0 and self.loss.shift_invariant:
            state[3] = bound
        state[1] = bound
        self._kernel = self._bind()

    def _learn(self, rows: _native.Rows, labels: Vector, weights: Vector | None, out: Vector) -> None:
        if not self._ranged:
            return self._kernel.learn(rows, labels, weights, out)
        return self._learn_within_range(
            rows, np.asarray(labels), None if weights is None else np.asarray(weights), np.asarray(out)
        )

    def _learn_within_range(
        self, rows: _native.Rows, labels: Floats, weights: Floats | None, out: Floats
    ) -> None:
        """`_learn` for `clip="auto"`: as much at a time as the targets do not widen the range."""
        state, n = self._state["range"], len(labels)
        if (
            n and state[2] and self.loss.needed_bound(shifted := labels - state[0]).max() <= state[1]
        ):  # nothing new
            self._kernel.learn(rows, shifted / self._unit, weights, out)
            out *= self._unit
            out += state[0]
            return
        counted = np.ones(n, np.bool_) if weights is None else weights > 0
        unknown = 0  # rows that come before any target is known
        if not state[2]:
            unknown = int(counted.argmax()) + 1 if counted.any() else n
            if counted.any():
                centred = self._params["intercept"] and self.loss.shift_invariant
                first = labels[unknown - 1] if centred else 0.0
                state[:3] = first, 0.0, 1.0
        shifted = labels - state[0]
        needed = np.where(counted, self.loss.needed_bound(shifted), 0.0)
        answered: dict[int, float] = {}  # before the learner was restarted with their target
        begin, window = 0, 64
        while begin < n:
            bound, end = state[1], min(begin + window, n)
            beyond = needed[begin:end] > bound
            if not beyond.any():
                self._learn_part(rows, shifted, weights, out, begin, end)
                begin, window = end, 2 * window
                continue
            row, window = begin + int(beyond.argmax()), 64
            self._learn_part(rows, shifted, weights, out, begin, row)
            begin = row
            if bound == 0:  # all targets were the same: the first that differs sets the unit
                self._widen(float(needed[row]))
                continue
            if self._unit_matters and needed[row] > 2.0 * self._unit and self.rows_seen < _FREE_ROWS:
                answered[row] = self._answer(rows, row)
                needed[row] = min(needed[row], _FREE_GROWTH * bound)
                state = self._restarted(rows, float(needed[row]))
                shifted[row] = self.loss.nearest_label(shifted[row], needed[row])
                continue
            shifted[row] = self.loss.nearest_label(shifted[row], bound)
            self._learn_part(rows, shifted, weights, out, row, row + 1)
            room = 2.0 * bound if self.rows_seen > _FREE_ROWS else math.inf
            self._widen(min(float(needed[row]), room))
            begin = row + 1
        for row, answer in answered.items():
            out[row] = answer
        out += state[0]
        out[:unknown] = 0.0

    @property
    def _unit_matters(self) -> bool:
        """Whether rows that were learned in another unit do harm."""
        return False

    def _restarted(self, rows: _native.Rows, bound: float) -> Floats:
        """Forget the few rows so far, of which the range of the targets alone is known; return that.

        Two first targets that happen to be close would be a unit that does not suit the others.
        """
        fresh = type(self)(**self._params)
        fresh.feature_names = self.feature_names
        fresh._state["counts"][0] = self.rows_seen
        fresh._state["range"][:] = self._offset, 0.0, 1.0, 0.0
        fresh.reserve(rows)
        fresh._widen(bound)
        self.__dict__.update({name: value for name, value in vars(fresh).items() if name != "_lock"})
        return self._state["range"]

    def _answer(self, rows: _native.Rows, row: int) -> float:
        """The prediction of one row, less the offset."""
        prediction = zeros(1)
        self._kernel.predict(rows.part(row, row + 1), prediction)
        return float(prediction[0]) * self._unit

    def _learn_part(
        self, rows: _native.Rows, labels: Floats, weights: Floats | None, out: Floats, begin: int, end: int
    ) -> None:
        part = slice(begin, end)
        of_part = None if weights is None else weights[part]
        self._kernel.learn(rows.part(begin, end), labels[part] / self._unit, of_part, out[part])
        out[part] *= self._unit

    def _learn_one(self, row: _native.Rows, label: float) -> float:
        if not self._ranged:
            return super()._learn_one(row, label)
        first, bound, known, _ = self._state.view("range").tolist()
        if known and self.loss.shift_invariant and abs(label - first) <= bound:
            unit = self._unit
            return float(super()._learn_one(row, (label - first) / unit) * unit + first)
        return Learner._learn_one(self, row, label)

    def _learned_weights(self) -> tuple[NDArray[np.int64], Floats]:
        features, values = super()._learned_weights()
        return features, values * self._unit

    def _predict(self, rows: _native.Rows, out: Vector) -> None:
        self._kernel.predict(rows, out)
        if self._ranged:
            predictions = np.asarray(out)
            predictions *= self._unit
            predictions += self._offset

    def _counters_fit(self) -> bool:
        if not self._ranged:
            return True
        state = self._state.view("range").tolist()
        return all(map(math.isfinite, state)) and min(state[1], state[3]) >= 0 and state[2] in (0.0, 1.0)
