"""Many classes out of learners for two: each class against all others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

from sketchnewton import _native
from sketchnewton.core.hints import Any, Self
from sketchnewton.core.persistence import class_named
from sketchnewton.core.state import Buffers, Vector
from sketchnewton.core.types import Arrays, Floats, Header, Integers, NDArray, np
from sketchnewton.learners import calibration
from sketchnewton.learners.base import Learner
from sketchnewton.learners.class_learner import ClassLearner, check_signs, checked_class_count


class OneVsAll(ClassLearner):
    """One learner per class, for which that class is +1 and all others are −1; the largest score wins.

    `make` is the class of the learners and `parameters` are theirs. Labels are the numbers 0…`classes` − 1.
    A prediction is a row of `classes` scores, before and after learning alike; `argmax(axis=1)` names the class.
    Several `threads` share the learners among them; the result does not depend on how many.

    Cost: that of `classes` learners, in time and in memory.

    >>> from sketchnewton.learners import AdaGrad
    >>> learner = OneVsAll(AdaGrad, 3, {"eta": 0.5})
    >>> X = np.eye(3)
    >>> for _ in range(5):
    ...     scores = learner.learn(X, [2, 0, 1])
    >>> learner.predict(X).argmax(axis=1).tolist()
    [2, 0, 1]
    """

    def __init__(
        self, make: type[Learner] | str, classes: int, parameters: Mapping[str, object] | None = None
    ) -> None:
        kind = _learner_class(make) if isinstance(make, str) else make
        count = self.classes = checked_class_count(classes)
        self.learners = [kind(**(parameters or {})) for _ in range(count)]
        first = self.learners[0]
        if first.classes is not None:
            raise ValueError(
                f"{kind.__name__} with classes={first.classes} is invalid: it has a score for each"
            )
        super().__init__(loss=first.loss)
        check_signs(self.loss)
        self._params = {"make": kind.__name__, "classes": self.classes, "parameters": first.params}
        # Of banks, whose probabilities are calibrated together.
        self._calibration = calibration.ClassCalibration(self.loss) if first.calibrates else None

    def _check_mergeable(self, other: Self) -> None:
        if type(other) is type(self) and other.classes != self.classes:
            raise ValueError(f"cannot merge {other.classes} classes into {self.classes}")
        if type(other) is not type(self) or other is self:
            super()._check_mergeable(other)
        for mine, theirs in zip(self.learners, other.learners, strict=True):
            mine._check_mergeable(theirs)

    def merge(self, *others: Self, base: Self | None = None) -> Self:
        """Merge the learners of each class. Returns the learner; the others stay as they are."""
        for other in others:
            self._check_mergeable(other)
        if base is not None:
            self._check_base(base)
        merged = copy.copy(self.learners)
        for at, mine in enumerate(self.learners):
            theirs = [other.learners[at] for other in others]
            whole = copy.deepcopy(mine).merge(*theirs, base=None if base is None else base.learners[at])
            merged[at] = whole
        self._calibration = self._merged_calibration(others, base)
        self.learners = merged  # all at once: an error leaves it as it was
        return self

    def _merged_calibration(
        self, others: tuple[Self, ...], base: Self | None
    ) -> calibration.ClassCalibration | None:
        known = [one._calibration.numbers for one in (self, *others) if one._calibration is not None]
        if self._calibration is None:
            return None
        start = None if base is None or base._calibration is None else base._calibration.numbers
        return calibration.ClassCalibration(self.loss, calibration.merged(known, start))

    @property
    def merges_from_base(self) -> bool:
        """If the classes' learners do."""
        return self.learners[0].merges_from_base

    def renumbered(self, places: Integers) -> Self:
        """A learner that knows of feature `places[i]` what this one knows of feature i."""
        twin = copy.copy(self)
        twin.learners = [learner.renumbered(places) for learner in self.learners]
        if self._calibration is not None:
            twin._calibration = calibration.ClassCalibration(self.loss, self._calibration.numbers)
        return twin

    @property
    def title(self) -> str:
        """The name of its kind, and what it is made of."""
        return f"{type(self).__name__}, {self.classes} x {self.base_name}"

    def probabilities(self, scores: Floats) -> Floats:
        """The probability of each class, by the scores that `predict` gave; of banks they are calibrated."""
        if self._calibration is None:
            return super().probabilities(scores)
        with self._lock:
            return self._calibration.probabilities(scores)

    @property
    def base_name(self) -> str:
        """The class of the classes' learners."""
        return type(self.learners[0]).__name__

    @property
    def base_params(self) -> Header:
        """The parameters of each class's learner."""
        return self.learners[0].params

    @property
    def rows_seen(self) -> int:
        """How many rows have been learned from."""
        return self.learners[0].rows_seen

    @property
    def dimension(self) -> int:
        """1 + the largest feature index learned from."""
        return max(learner.dimension for learner in self.learners)

    @property
    def weights(self) -> Floats:
        """Column k has the weights of class k."""
        with self._lock:  # else another thread may learn between two classes
            weights = np.zeros((self.dimension, self.outputs))
            for k, learner in enumerate(self.learners):
                weights[: learner.dimension, k] = learner.weights
            return weights

    @property
    def features_seen(self) -> int:
        """How many features have been learned from, by the class that has met the most."""
        return max(learner.features_seen for learner in self.learners)

    @property
    def intercepts(self) -> Floats:
        """The constant of each class."""
        return np.array([learner.intercept_ for learner in self.learners])

    def largest_weights(self, n: int | None = None) -> tuple[NDArray[np.int64], Floats]:
        """The features with the largest weights in any class, and their weights, one column per class."""
        weights = self.weights
        sizes = np.abs(weights).max(axis=1, initial=0.0)
        features = np.flatnonzero(sizes)
        features = features[np.lexsort((features, -sizes[features]))][:n]
        return features, weights[features]

    def _all_arrays(self) -> Buffers:
        if len({learner.rows_seen for learner in self.learners}) != 1:
            raise ValueError(
                "its classes have learned different rows: the arrays of a batch were changed while it was learned"
            )
        arrays: dict[str, Any] = {}
        if self._calibration is not None:
            arrays["calibration"] = self._calibration.numbers
        for k, learner in enumerate(self.learners):
            arrays |= {f"{k}/{name}": array for name, array in learner._all_arrays().items()}
        return arrays

    def _restore(self, arrays: Arrays) -> None:
        parts: list[Arrays] = [{} for _ in self.learners]
        if self._calibration is not None:
            arrays = dict(arrays)
            self._restore_calibration(arrays.pop("calibration", None))
        for name, array in arrays.items():
            k, _, rest = name.partition("/")
            if not k.isdecimal() or int(k) >= self.outputs:
                raise ValueError(f"array {name!r} belongs to no class")
            parts[int(k)][rest] = array
        for learner, part in zip(self.learners, parts, strict=True):
            learner._restore(part)
        if len({learner.rows_seen for learner in self.learners}) != 1:
            raise ValueError("its classes have seen different rows")

    def reserve(self, rows: _native.Rows) -> None:
        """Allocate memory for these rows in all classes, or raise; afterwards they can be learned."""
        with self._lock:
            for learner in self.learners:
                learner.reserve(rows)

    def _restore_calibration(self, numbers: Floats | None) -> None:
        if numbers is None or numbers.shape != (1, calibration.WIDTH) or numbers.dtype != np.float64:
            raise ValueError("its probabilities are not calibrated as those of this version")
        if not np.isfinite(numbers).all() or not calibration.fits(numbers):
            raise ValueError("its counters contradict its arrays")
        self._calibration = calibration.ClassCalibration(self.loss, numbers)

    def _reserve(self, largest: int, widest: int) -> None:
        for learner in self.learners:
            learner._reserve(largest, widest)

    def _learn(self, rows: _native.Rows, labels: Vector, weights: Vector | None, out: Vector) -> None:
        codes = np.asarray(labels)

        def column(k: int) -> Floats:
            # Not by `learn`, which refuses predictions that are not finite: the other classes are to learn the
            # rows, too, before the caller is told.
            learner, scores = self.learners[k], np.empty(len(rows))
            with learner._lock:
                learner._learn(rows, np.where(codes == k, 1.0, -1.0), weights, scores)
            return scores

        self._fill(out, column)
        if self._calibration is not None:
            self._calibration.learn(np.asarray(out), codes, None if weights is None else np.asarray(weights))

    def _predict(self, rows: _native.Rows, out: Vector) -> None:
        self._fill(out, lambda k: self.learners[k].predict(rows))

    def decision_function(self, X: object) -> Floats:
        """The scores of the classes: what `predict` gives before it is clipped."""
        rows = self._rows(X)
        with self._lock:
            return np.column_stack([learner.decision_function(rows) for learner in self.learners])

    def _fill(self, out: Vector, column: Callable[[int], Floats]) -> None:
        """Column k of `out` by `column(k)`, several at a time."""
        if self.threads > 1:
            from concurrent.futures import ThreadPoolExecutor  # slow to import

            with ThreadPoolExecutor(self.threads) as pool:
                columns = list(pool.map(column, range(self.outputs)))
        else:
            columns = list(map(column, range(self.outputs)))
        np.stack(columns, axis=1, out=np.asarray(out))


def _learner_class(name: str) -> type[Learner]:
    kind = class_named(name)
    if not issubclass(kind, Learner) or kind is OneVsAll:
        raise ValueError(f"unknown learner class {name!r}")
    return kind
