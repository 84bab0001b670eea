"""What all learners share: checking input, the state's arrays, merging."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.core.checks import check_finite, check_numbers, check_sizes
from sketchnewton.core.hints import Any, ClassVar, Literal, Self, overload
from sketchnewton.core.persistence import Persistent, part
from sketchnewton.core.state import Buffers, State, Vector, View, filled, zeros
from sketchnewton.core.types import ArrayLike, Arrays, Floats, Header, Integers, np
from sketchnewton.learners.probabilities import class_probabilities, class_probabilities_of_row
from sketchnewton.learners.rows import (
    as_rows,
    as_vector,
    as_weights,
    check_names,
    checked_scan,
    column_names,
)
from sketchnewton.losses import Loss, get_loss

Lock = AbstractContextManager[object]


class Learner(Persistent):
    """A linear model that learns one row at a time.

    `learn` returns the prediction made *before* each row was learned from, so its loss is an honest estimate of
    the error on new rows. Rows are processed in order and one by one: a batch of 1,000 gives the same bits as
    1,000 batches of 1. All state is arrays in native memory; a saved learner continues bit for bit. Several
    threads may use one learner: it does one thing at a time. A child process has what was learned before the fork,
    but for a learner that another thread was using at that moment: that one is refused.
    """

    noun: ClassVar[str] = "learner"
    loss: Loss
    classes: int | None = None
    """How many classes it tells apart; None: it predicts one number per row."""
    softmax: bool = False
    """Are the scores of the classes those of one softmax? Else each class is learned against the rest."""
    weight_is_a_run: ClassVar[bool] = False
    """Is a row of weight h like h rows, one right behind the other? Else it is one long step."""
    threads: int = 1
    """How many threads it may use. The result does not depend on it; only `OneVsAll` uses more than one."""
    feature_names: tuple[str, ...] | None = None
    """The columns of the first rows learned from, if they were a table with names: later tables must have them."""
    _state: State  # everything but the feature table

    def __init__(self, **parameters: Any) -> None:
        self.loss = get_loss(parameters["loss"])
        super().__init__(**{**parameters, "loss": self.loss.spec})
        self._lock: Lock = threading.RLock()  # kernels release the GIL; a learner does one thing at a time
        _LEARNERS.add(self)
        self._state = State()

    @classmethod
    def simplest(cls, **parameters: object) -> Learner:
        """A learner of this class, or of a simpler one that does the same with these parameters."""
        return cls(**parameters)

    # -- for users

    def learn(self, X: object, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Floats:
        """Predict each row, then learn its label; return the predictions.

        A row of weight h counts as a loss that is h times as large; weight 0 predicts without learning. The whole
        batch is checked before anything is learned, so an error leaves the learner as it was.
        """
        if type(X) is np.ndarray and sample_weight is None and self.classes is None:
            lesson = _native.one_row(X, y)  # if it is one: in a third of the time that what follows takes
            if lesson is not None and self.feature_names is None:
                return np.array((self.learn_row(*lesson),))
        rows = self._rows(X)
        n = len(rows)
        labels = as_vector(y, "y", n)
        weights = as_weights(sample_weight, n)
        self._check_labels(labels)
        predictions = np.empty(self._shape(n))  # sooner made than an array over `new_predictions`
        with self._lock:
            self.reserve(rows)
            # an array, which has no names, need not ask whether these are the first rows
            if (type(X) is not np.ndarray or self.feature_names is not None) and self.rows_seen == 0:
                self.feature_names = column_names(X)
            self.learn_into(predictions, rows, labels, weights)
        return predictions

    @overload
    def predict(self, X: object) -> Floats: ...
    @overload
    def predict(self, X: object, *, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
    def predict(self, X: object, *, return_std: bool = False) -> Floats | tuple[Floats, Floats]:
        """Predict each row; features never seen count as zero.

        With `return_std` also the root mean square of what labels of such rows are off by (`deviations`).
        """
        predictions = self._predictions(X)
        return (predictions, self.deviations(predictions, X)) if return_std else predictions

    def _predictions(self, X: object) -> Floats:
        rows = self._rows(X)
        checked_scan(rows)
        predictions = np.empty(self._shape(len(rows)))
        with self._lock:
            self._predict(rows, predictions)
        check_finite(predictions)
        return predictions

    @property
    def tracks_residuals(self) -> bool:
        """Whether it knows how far labels lie from its predictions: a `NewtonBank` of numbers does."""
        return False

    def relearning(self) -> AbstractContextManager[object]:
        """While it lasts, rows are learned that were learned before, as in a second pass over them.

        Labels that the learner has seen lie nearer to its predictions than others will, so what it knows of how
        far off labels are (`quantiles`, `deviations`) stays as it is.
        """
        return contextlib.nullcontext()

    def quantiles(self, scores: Floats, levels: Sequence[float], X: object = None) -> Floats:
        """Quantiles of the labels of the rows `X` with these scores: an array of rows × levels, which must rise.

        They are calibrated while the learner learns: of the labels that were predicted so far, a share `level` was
        below its quantile (docs/intervals.md). Infinite while too few rows were learned to tell. Without `X`
        they depend on the scores alone.
        """
        wanted = np.array(levels, np.float64)
        if wanted.ndim != 1 or not ((wanted > 0) & (wanted < 1)).all() or (np.diff(wanted) < 0).any():
            raise ValueError(f"levels={levels!r} is invalid: must be numbers between 0 and 1 that rise")
        self._check_tracked()
        linked = np.ascontiguousarray(self.loss.link(scores), np.float64)
        found = self._label_quantiles(linked, wanted, self._scored_rows(X, scores))
        return np.asarray(np.clip(found, *self.loss.label_range))

    def interval(self, scores: Floats, coverage: float | Sequence[float], X: object = None) -> Floats:
        """Bounds of the labels of the rows `X` with these scores, as `quantiles`.

        Lower and upper ones: rows × 2, of several coverages rows × 2 × coverages.
        """
        listed = np.atleast_1d(np.asarray(coverage, np.float64))
        if listed.ndim != 1 or not ((listed > 0) & (listed < 1)).all():
            raise ValueError(
                f"interval={coverage!r} is invalid: must be a coverage between 0 and 1, such as 0.9"
            )
        levels = np.concatenate([(1 - listed) / 2, (1 + listed) / 2])
        order = np.argsort(levels, kind="stable")
        flat = np.empty((len(scores), len(levels)))
        flat[:, order] = self.quantiles(scores, levels[order].tolist(), X)
        bounds = flat.reshape(len(scores), 2, len(listed))
        return bounds[:, :, 0] if np.ndim(coverage) == 0 else bounds

    def deviations(self, scores: Floats, X: object = None) -> Floats:
        """The root mean square of the distance from label to prediction of the rows `X` with these scores."""
        self._check_tracked()
        linked = np.ascontiguousarray(self.loss.link(scores), np.float64)
        return self._deviations(linked, self._scored_rows(X, scores))

    def _scored_rows(self, X: object, scores: Floats) -> _native.Rows | None:
        if X is None:
            return None
        rows = self._rows(X)
        if len(rows) != len(scores):
            raise ValueError(f"X has {len(rows)} rows, but there are {len(scores)} scores")
        return rows

    def _check_tracked(self) -> None:
        if not self.tracks_residuals:
            raise ValueError(
                f"{self.title} with loss={self.loss.spec!r} has no intervals: those of NewtonBank for numbers do"
            )

    # Learners that track residuals define these two; `_check_tracked` has refused all others.

    def _label_quantiles(self, predictions: Floats, levels: Floats, rows: _native.Rows | None) -> Floats:
        raise NotImplementedError

    def _deviations(self, predictions: Floats, rows: _native.Rows | None) -> Floats:
        raise NotImplementedError

    def new_predictions(self, n: int) -> View:
        """Buffer for the predictions of n rows, for `learn_into`; `np.asarray` wraps it without a copy."""
        return zeros(self._shape(n))

    def learn_into(
        self, predictions: Vector, rows: _native.Rows, labels: Vector, weights: Vector | None = None
    ) -> None:
        """`learn` for rows that there is room for, and labels and weights that were checked.

        None of these has to be an array: any buffer of float64 numbers will do. Learners with a feature table do
        not import NumPy here, but for `clip="auto"`.
        """
        with self._lock:
            self._learn(rows, labels, weights, predictions)
        check_finite(predictions)

    def learn_batch(self, batch: Batch) -> View:
        """`learn` for a batch whose labels and weights were checked; the predictions as a native buffer."""
        rows, views = batch.rows, batch.views
        predictions = self.new_predictions(len(batch))
        with self._lock:
            self.reserve(rows)
            self.learn_into(predictions, rows, views.labels, views.weights)
        return predictions

    def predict_batch(self, batch: Batch) -> View:
        """`predict` for the rows of a batch; the predictions as a native buffer."""
        rows = batch.rows
        checked_scan(rows)
        predictions = self.new_predictions(len(batch))
        with self._lock:
            self._predict(rows, predictions)
        check_finite(predictions)
        return predictions

    def reader(self) -> Self | None:
        """What predicts in another thread while this one predicts, too; None if there is no such thing."""
        return None

    def reserve(self, rows: _native.Rows) -> None:
        """Allocate memory for the features of these rows, or raise; afterwards they can be learned."""
        largest, widest = checked_scan(rows)
        with self._lock:
            self._reserve(largest, widest)

    def takes(self, label: float) -> bool:
        """Whether the label can be learned."""
        return self.loss.takes(label)

    def learn_row(self, row: _native.Rows, label: float, weight: float = 1.0) -> float:
        """`learn` for one row in native form, without the cost of checking arrays."""
        if weight != 1.0 or not self.takes(label):
            return float(self.learn(row, [label], [weight])[0])
        with self._lock:
            self._reserve(*checked_scan(row))
            prediction = self._learn_one(row, label)
        if prediction - prediction != 0:  # not finite
            check_finite(filled([prediction]))
        return prediction

    def decision_function(self, X: object) -> Floats:
        """wᵀx + b for each row: the prediction before clipping."""
        return self.predict(X)

    @property
    def rows_seen(self) -> int:
        """How many rows have been learned from."""
        return int(self._state.view("counts")[0])

    @property
    @abstractmethod
    def dimension(self) -> int:
        """1 + the largest feature index learned from."""

    @property
    @abstractmethod
    def weights(self) -> Floats:
        """The weight of each feature: `weights[i]` belongs to feature i."""

    @property
    def features_seen(self) -> int:
        """How many features have been learned from."""
        return int(np.count_nonzero(self.weights))

    def knows_any(self, features: Sequence[int]) -> bool:
        """Whether it has learned from one of these features, for all that it can tell; without NumPy.

        A weight of zero does not tell: gradients may have been zero, or a penalty made it so.
        """
        dimension = self.dimension
        return any(feature < dimension for feature in features)

    def largest_weights(self, n: int | None = None) -> tuple[Integers, Floats]:
        """The `n` features with the largest absolute weights, and these weights, largest first; None: all.

        Features never learned from do not appear, so the cost does not depend on how large their indices are.
        """
        features, values = self._learned_weights()
        # Equal sizes in the order of their features.
        sizes = np.abs(values) if values.ndim == 1 else np.abs(values).max(axis=1)
        order = np.lexsort((features, -sizes))[:n]
        return features[order], values[order]

    @property
    def intercept_(self) -> float:
        """The constant that is added to every score; 0 without an intercept."""
        return float(self._state.view("intercept")[0])

    @property
    def intercepts(self) -> Floats:
        """The constants that are added to the scores, one per class; one alone for a learner of one number."""
        return np.array([self.intercept_])

    @property
    def outputs(self) -> int:
        """How many numbers it predicts per row."""
        return self.classes or 1

    @property
    def calibrates(self) -> bool:
        """Whether it learns how sure its probabilities may be."""
        return False

    def probabilities(self, scores: Floats) -> Floats:
        """The probability of each class, by the scores that `predict` gave: of −1 and +1 for one number per row.

        `scores` may also have a column for each of several learners of one class against the rest.
        """
        return class_probabilities(self.loss, scores[:, None] if scores.ndim == 1 else scores, self.rows_seen)

    def row_probabilities(self, scores: list[float]) -> list[float]:
        """`probabilities` of a single row, without the cost of arrays."""
        return class_probabilities_of_row(self.loss, scores, self.rows_seen)

    # What a description of the learner says; nobody has to know its class.

    @property
    def title(self) -> str:
        """The name of its kind."""
        return type(self).__name__

    @property
    def base_name(self) -> str:
        """The class of the learners that it is made of: its own, unless it has one learner per class."""
        return type(self).__name__

    @property
    def base_params(self) -> Header:
        """The parameters of the learners that it is made of."""
        return self.params

    @property
    def alpha_(self) -> float | None:
        """The α in force, given or chosen; None for learners that have none, 0 before it is chosen."""
        alpha = self._params.get("alpha")
        return float(alpha) if isinstance(alpha, float | int) else None

    @property
    def experts(self) -> dict[str, float]:
        """The weight of each expert, by its name; empty for a learner that has none."""
        return {}

    @property
    def leading_expert(self) -> str | None:
        """The name of the expert with the largest weight; None for a learner that has none."""
        return None

    def sorted_scales(self) -> tuple[Integers, Floats]:
        """The features seen and their scales, smallest first; empty for a learner that does not scale."""
        return np.empty(0, np.int64), np.empty(0)

    @property
    def prediction_bounds(self) -> tuple[float, float]:
        """The least and the largest prediction that can be made now."""
        return -math.inf, math.inf

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues of the sketch SᵀS, largest first; empty for a learner without one."""
        return np.empty(0)

    def merge(self, *others: Self, base: Self | None = None) -> Self:
        """Merge `others`, trained on other rows, into this learner. Returns it; the others are not changed.

        All must be of the same class with the same parameters. Sketches merge by their own rule, and the weights
        become a mean, weighted by what each learner knows of each direction or feature (docs/merging.md).

        `base` is the learner that all of them began with, where they did not begin with nothing: what it has
        learned counts once. Only a `NewtonBank` takes one.
        """
        for other in others:
            self._check_mergeable(other)
        if base is not None:
            self._check_base(base)
        involved = {id(learner): learner for learner in (self, *others, *([] if base is None else [base]))}
        if len({id(other) for other in others}) < len(others):
            raise ValueError("cannot merge the same learner twice")
        with contextlib.ExitStack() as locks:
            for key in sorted(involved):  # so that two merges at a time do not wait for each other
                locks.enter_context(involved[key]._lock)
            taught = [other for other in others if other.rows_seen]
            if taught:
                whole = self._united(taught, base)
                self.__dict__.update({name: value for name, value in vars(whole).items() if name != "_lock"})
        return self

    # -- for learners

    def _rows(self, X: object) -> _native.Rows:
        """`as_rows` of rows that may be a table, whose columns must be those learned from."""
        check_names(column_names(X), self.feature_names)
        return as_rows(X)

    def _header(self) -> Header:
        return {} if self.feature_names is None else {"feature_names": list(self.feature_names)}

    def _check_labels(self, labels: Floats) -> None:
        self.loss.check_labels(labels)

    def _shape(self, n: int) -> tuple[int, ...]:
        """Of the predictions of n rows."""
        return (n,)

    @abstractmethod
    def _reserve(self, largest: int, widest: int) -> None:
        """Make room for features up to `largest` and rows of `widest` non-zeros."""

    @abstractmethod
    def _learn(self, rows: _native.Rows, labels: Vector, weights: Vector | None, out: Vector) -> None: ...

    def _learn_one(self, row: _native.Rows, label: float) -> float:
        prediction = zeros(1)
        self._learn(row, filled([label]), None, prediction)
        return float(prediction[0])

    @abstractmethod
    def _predict(self, rows: _native.Rows, out: Vector) -> None: ...

    def _check_mergeable(self, other: Self) -> None:
        if type(other) is not type(self):
            raise ValueError(f"cannot merge a {type(other).__name__} into a {type(self).__name__}")
        if other is self:
            raise ValueError("cannot merge a learner into itself")
        for name, value in self._params.items():
            if name != "random_state" and other._params[name] != value:
                raise ValueError(f"cannot merge {name}={other._params[name]!r} into {name}={value!r}")

    def _check_base(self, base: Self) -> None:
        if type(base) is not type(self) or base._params != self._params:
            raise ValueError("the base must be a learner of the same class with the same parameters")

    def _united(self, others: Sequence[Self], base: Self | None) -> Self:
        """A new learner that knows what this one and `others` know, each of which has learned something."""
        if base is not None and base.rows_seen:
            raise ValueError(
                f"{type(self).__name__} cannot be merged relative to a base: train each shard from scratch"
            )
        first, *rest = [self, *others] if self.rows_seen else others
        whole = first if rest else self._with(first._all_arrays())
        for other in rest:
            whole = self._with(whole._merged(other))
        return whole

    @property
    def merges_from_base(self) -> bool:
        """Whether learners that began with the same one, which counts once, can be merged: `merge(base=…)`."""
        return False

    def renumbered(self, places: Integers) -> Self:
        """A learner that knows of feature `places[i]` what this one knows of feature i."""
        raise ValueError(f"{type(self).__name__} cannot renumber its features")

    def _with(self, arrays: Arrays | Buffers) -> Self:
        """A learner like this one with other arrays."""
        made = type(self)(**self._params)
        made._restore({name: np.array(array, order="C") for name, array in arrays.items()})
        return made

    def _merged(self, other: Self) -> Arrays:
        """All arrays of a learner that knows what both know; both have learned something."""
        raise ValueError(f"{type(self).__name__} cannot be merged")

    def _learned_weights(self) -> tuple[Integers, Floats]:
        """The features learned from, in any order, and the weight of each."""
        weights = self.weights
        features = np.flatnonzero(weights)
        return features, weights[features]

    @classmethod
    def _rebuilt(cls, header: Mapping[str, object], arrays: Arrays) -> Self:
        check_sizes(part(header, "parameters"), arrays)
        made = super()._rebuilt(header, arrays)
        names = header.get("feature_names")
        if names is not None:
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError("its feature names are not a list of strings")
            made.feature_names = tuple(names)
        return made

    def _exclusive(self) -> AbstractContextManager[object]:
        return self._lock

    def _all_arrays(self) -> Buffers:
        """What a model file keeps, without importing NumPy if possible."""
        return self._state.views()

    def _restore(self, arrays: Arrays) -> None:
        """Take over arrays of a file, each like the fresh one that it replaces."""
        for name in list(self._state):
            array = arrays[name]
            if array.shape != self._state.shape(name):
                raise ValueError(f"array {name!r} has the wrong type or shape")
            if not name.startswith(
                "archive"
            ):  # whose room is large, and which are checked as the file has them
                check_numbers(name, array)
            self._state[name] = array


def first_metric(loss: Loss, clip: float, weight: float) -> float:
    """How much metric per unit of ‖x‖² keeps a first step from overshooting.

    The loss's largest second derivative, as in Newton's method; for a loss with kinks what one gradient as steep
    as they get adds to the metric, (σ + η)L². The intercept's own metric starts here, which α does not penalise,
    and so does α itself if it is not given.
    """
    if math.isfinite(loss.smoothness):
        return loss.smoothness
    steepest = weight * loss.lipschitz(clip) ** 2
    return steepest if math.isfinite(steepest) and steepest > 0 else 1.0


class _HalfLearned(AbstractContextManager[object]):
    """The lock of a learner that a thread was using when the process was forked: a child has no such thread."""

    def __enter__(self) -> object:
        raise RuntimeError(
            "another thread was using this learner when the process was forked, so this copy may be inconsistent: "
            "fork before or after, or copy the learner first"
        )

    def __exit__(self, *_: object) -> None:
        pass


_LEARNERS: weakref.WeakSet[Learner] = weakref.WeakSet()  # all there are


def _after_fork() -> None:
    for learner in list(_LEARNERS):
        lock = getattr(learner, "_lock", None)
        if isinstance(lock, _HalfLearned) or lock is None:
            continue
        learner._lock = threading.RLock() if lock.acquire(blocking=False) else _HalfLearned()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
