"""The learner of several classes that needs no tuning: banks over one sketch and one table."""

from __future__ import annotations

import contextlib
import threading

from sketchnewton import _native
from sketchnewton.core.hints import ClassVar, Self
from sketchnewton.core.parameters import checked_dtype, checked_size
from sketchnewton.core.state import Buffers, Vector, filled, zeros
from sketchnewton.core.types import Arrays, Floats, NDArray, np
from sketchnewton.learners.class_learner import ClassLearner, checked_class_count
from sketchnewton.learners.curvature.base import padded4
from sketchnewton.learners.curvature.epoch_maps import MapArrays, most_epochs
from sketchnewton.learners.newton import class_full
from sketchnewton.learners.newton.bank_layout import table_of, unscaled
from sketchnewton.learners.newton.expert_shares import ExpertShares
from sketchnewton.learners.newton.full_places import FULL
from sketchnewton.learners.rows import checked_scan
from sketchnewton.losses import Loss

_PLAIN, _EVEN, _RESTLESS, _RARE = range(4)  # how rows are seen: `View` in native/learners/bank_state.hpp

# Name, then the numbers of `Expert` there: f = steady + root/√t, the step's multiplier, the view.
EXPERTS: dict[str, tuple[float, float, float, int]] = {
    "steady 4": (0.125, 0.0, 4.0, _PLAIN),
    "falling 8": (0.0, 2.0, 8.0, _EVEN),
    "restless": (0.0, 2.0, 1e6, _RESTLESS),
    "rare 4": (0.0, 0.0, 4.0, _RARE),
}
LANES = 4  # numbers of a class in a table row: kLanes in native/learners/class_steps.hpp
BUFFER = 4  # times m rows wait for an update of the sketch

_CLOCK, _SQUARES, _RIDGE, _SCALARS = range(4)
_LEARNED, _RANK, _FILLED, _ENTRIES, _UNUSED, _NEXT, _TOUCHED, _PLACES, _NON_ZEROS, _WAITING = range(10)
_BETA, _GAMMA, _BB, _BG, _GG, _RAW, _TEMPERED = range(7)  # of `temper`: `ClassTemper` in class_temper.hpp
_MOST_TEMPER = 20.0


class ClassBank(ClassLearner, ExpertShares):
    """Several classes by softmax with nothing to tune: what `NewtonBank` is for two.

    Four experts that differ in the size of their steps share one Robust Frequent Directions sketch of the rows
    and the features' scales, and each has weights for every class; while there are few features, three more
    solve least squares with the whole matrix. Their probabilities are mixed by Bayes' rule, so that the total log
    loss is at most that of the best expert plus ln 7 + ln 2 + 2 ln(T + 1). How sure the mixture is, is calibrated
    as rows come (docs/class-bank.md).

    Labels are the numbers 0…`classes` − 1. A prediction is a row of `classes` logarithms of probabilities, which
    sum to one.

    * `classes`: how many.
    * `sketch_size` (m): how many directions of curvature are kept; not a thing to tune.
    * `loss`: `"logistic"`, that of the softmax.
    * `intercept`: a feature that is always 1.
    * `dtype`: precision of the feature table; small matrices are always float64.

    Features may have any scale: predictions do not change if a feature is multiplied by a constant. A row of
    weight h is learned like h rows: steps are h times as long.

    Cost per row with s non-zeros: O((m + 4 classes)s), plus O(m³) once in a while; memory: 4 classes + m + 3
    numbers per feature. Learners of this kind cannot be merged; `OneVsAll` of `NewtonBank` can.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 20)) * np.geomspace(1e-3, 1e3, 20)
    >>> y = (X @ (rng.standard_normal((20, 3)) / np.geomspace(1e-3, 1e3, 20)[:, None])).argmax(axis=1)
    >>> learner = ClassBank(3)
    >>> error = np.mean(learner.learn(X, y)[500:].argmax(axis=1) != y[500:])
    >>> print(f"{error:.2f}")
    0.08
    >>> print(learner.probabilities(learner.predict(X)).sum(axis=1).max().round(6))
    1.0

    Limits: values beyond ±1e30, NaN and infinity are refused.
    """

    softmax = True
    _kernel: _native.ClassBankKernel
    _pack_from = 0
    weight_is_a_run: ClassVar[bool] = True
    _scale_column: ClassVar[int] = -3
    _lists_of_features: ClassVar[tuple[str, ...]] = ("features", "buffer_index", "full_features")

    def __init__(
        self,
        classes: int,
        sketch_size: int = 6,
        *,
        loss: str | Loss = "logistic",
        intercept: bool = True,
        dtype: str = "float32",
    ) -> None:
        K = self.classes = checked_class_count(classes)
        m = checked_size("sketch_size", sketch_size, 0)
        self._m, self._lanes = m, K * LANES
        super().__init__(
            columns=self._lanes + m + 3,
            classes=K,
            sketch_size=m,
            loss=loss,
            intercept=bool(intercept),
            dtype=checked_dtype(dtype),
        )
        if not self.loss.softmax:
            raise ValueError(
                f"loss={self.loss.spec!r} is invalid: must be 'logistic'; OneVsAll of NewtonBank has others"
            )
        q, n, experts = max(m, 1), BUFFER * m, len(EXPERTS) + len(FULL)
        self._experts = table_of(EXPERTS)
        self._epochs = MapArrays(q, padded4(self._lanes + q), self._params["dtype"])
        self._room_until = 0  # the row up to which there is room for updates of the sketch
        self._state.update(
            {
                "bank_counts": zeros(10, "int64"),
                "scalars": zeros(_SCALARS),
                "shares": filled([1 / experts] * experts),
                "temper": filled([1.0, 1.0, 1.0, 0.0, 1.0, 0.5, 0.5]),
                **class_full.fresh(K),
                "lambda": zeros(padded4(q)),
                "b": zeros((K, padded4(q), LANES)),
                "constant": zeros(self._lanes + m),
                "buffer_index": zeros(0, "int64"),
                "buffer_value": zeros(0, self._table.dtype),
                "buffer_start": zeros(n + 1, "int64"),
                "buffer_length": zeros(n),
                "buffer_c": zeros((n, padded4(q))),
                "buffer_gram": zeros((n, padded4(max(n, 1)))),
                **self._epochs.fresh(),
            }
        )
        self._kernel = self._bind()

    # -- what it has learned

    @property
    def expert_names(self) -> tuple[str, ...]:
        """Names as those of `NewtonBank`; those with whole matrices leave when features become many."""
        return (*EXPERTS, *FULL)[: self._kernel.experts]

    @property
    def linear_expert(self) -> str:
        """The expert whose weights `weights` are: the best of those whose scores are linear in the row."""
        with self._lock:
            return self.expert_names[self._best_linear()]

    @property
    def intercepts(self) -> Floats:
        """The constants of `linear_expert`, one per class."""
        with self._lock:
            best, K, its = self._best_linear(), self.outputs, self._state
            if best < len(EXPERTS):
                at = slice(best, self._lanes, LANES)
                own = its["constant"][at] + its["b"][:, : self._m, best] @ its["constant"][self._lanes :]
                return np.asarray(self._factors()[best] * own)
            own = self._full_weights()[best - len(EXPERTS), :, 0] if self._places > 0 else np.zeros(K)
            return np.asarray(own + its["full_odds"][best - len(EXPERTS), :, class_full.SHIFT])

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues of the sketch of Σ r²xxᵀ, x scaled, largest first."""
        with self._lock:
            return self._state["lambda"][: self._state["bank_counts"][_RANK]].copy()

    def sorted_scales(self) -> tuple[NDArray[np.int64], Floats]:
        """The features seen and their scales, smallest scale first."""
        with self._lock:
            features, scales = self._seen.copy(), self._scales_of_seen()
        order = np.lexsort((features, scales))
        return features[order], scales[order]

    @property
    def prediction_bounds(self) -> tuple[float, float]:
        """Logarithms of probabilities."""
        return -np.inf, 0.0

    def predict_experts(self, X: object) -> Floats:
        """The probabilities that each expert gives to each row: an array of rows × experts × classes."""
        rows = self._rows(X)
        checked_scan(rows)
        with self._lock:
            predictions = np.empty((len(rows), self._kernel.experts, self.outputs))
            self._kernel.predict_experts(rows, predictions)
        return predictions

    # -- for learners

    @property
    def _places(self) -> int:
        """How many features, and the constant, experts with whole matrices know; -1: they are gone."""
        return int(self._state.view("bank_counts")[_PLACES])

    def _full_weights(self) -> Floats:
        return class_full.weights(self._state, max(self._places, 0))

    def _scales_of_seen(self) -> Floats:
        count, mean = self._table.rows_of_active(self.features_seen)[:, [-3, -2]].astype(np.float64).T
        rows = max(int(self._state.view("bank_counts")[_LEARNED]), 1)
        return np.asarray(mean * (count / rows) ** 0.25)

    def _factors(self) -> Floats:
        """What each expert multiplies scaled rows with."""
        rows = int(self._state.view("bank_counts")[_LEARNED]) + 1
        return np.array([rows**-0.25 if view == _RARE else 1.0 for *_, view in EXPERTS.values()])

    def _best_linear(self) -> int:
        linear = [e for e, (*_, view) in enumerate(EXPERTS.values()) if view in (_PLAIN, _RARE)]
        linear += range(len(EXPERTS), self._kernel.experts)
        return max(linear, key=self._state.view("shares").__getitem__)

    def _learned_weights(self) -> tuple[NDArray[np.int64], Floats]:
        with self._lock:
            best = self._best_linear()
            if best >= len(EXPERTS):
                features = self._state["full_features"][1 : max(self._places, 1)].copy()
                return features, self._full_weights()[best - len(EXPERTS), :, 1:].T
            rows = np.empty((len(self._seen), self._table.width), self._table.dtype)
            self._kernel.settled(rows)
            at = slice(best, self._lanes, LANES)
            z = rows[:, self._lanes : self._lanes + self._m].astype(np.float64)
            weights = rows[:, at].astype(np.float64) + z @ self._state["b"][:, : self._m, best].T
            return self._seen.copy(), unscaled(self._factors()[best] * weights, self._scales_of_seen())

    def _bind(self) -> _native.ClassBankKernel:
        make = _native.class_bank64 if self._params["dtype"] == "float64" else _native.class_bank32
        return make(self._params["intercept"], {**self._views(), "experts": self._experts})

    def reserve(self, rows: _native.Rows) -> None:
        """Allocate memory for these rows, or raise; afterwards they can be learned."""
        with self._lock:
            super().reserve(rows)
            self._reserve_epochs(len(rows))
            self._reserve_places(rows)

    def _learn(self, rows: _native.Rows, labels: Vector, weights: Vector | None, out: Vector) -> None:
        self._kernel.learn(rows, labels, weights, out)
        with contextlib.suppress(MemoryError):  # of arrays of nothing
            self._reserve_places()

    def _reserve_places(self, rows: _native.Rows | None = None) -> None:
        """Make room for the experts with whole matrices to learn these rows; none if they are gone."""
        needed = 0 if rows is None else self._kernel.places_for(rows)
        self._replace(class_full.PLACES.reserve(self._state, needed, self._places))

    def _reserve_epochs(self, rows: int) -> None:
        """Make room for the updates of the sketch that so many rows may bring."""
        t = self._state.view("counts")[0]
        if t + rows <= self._room_until:
            return
        ahead = max(rows, int(t) + 64)  # as many rows again as there have been
        counts = self._state.view("bank_counts")
        waiting, following = int(counts[_FILLED]), int(counts[_NEXT])
        epochs = most_epochs(self._m, BUFFER * self._m, int(t), following, waiting, ahead)
        self._replace(self._epochs.reserve(self._state, epochs + 1))  # one that a sweep adds
        self._room_until = int(t) + ahead

    def _reserve(self, largest: int, widest: int) -> None:
        used = int(self._state.view("bank_counts")[_ENTRIES])
        size = used + BUFFER * self._m * widest
        if len(self._state.view("buffer_index")) < size:
            names = ("buffer_index", "buffer_value")
            self._replace({name: self._state.resized(name, size, used) for name in names})
        super()._reserve(largest, widest)

    def _merged(self, other: Self) -> Arrays:
        raise ValueError("a ClassBank cannot be merged: one NewtonBank per class (the default, OneVsAll) can")

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        # Not by way of a file, whose numbers would have to be checked.
        with self._lock:
            twin = object.__new__(type(self))
            twin.__dict__.update(self.__dict__)
            twin._lock = threading.RLock()
            twin._params = dict(self._params)
            twin._state = self._state.copy()
            twin._table = self._table.copy(self.features_seen)
            twin._kernel = twin._bind()
        return twin

    def _all_arrays(self) -> Buffers:
        used = int(self._state.view("bank_counts")[_ENTRIES])
        buffer = {name: self._state.head(name, used) for name in ("buffer_index", "buffer_value")}
        full = class_full.PLACES.saved(self._state, self._places)
        return {**super()._all_arrays(), **self._epochs.saved(self._state), **buffer, **full}

    def _restore(self, arrays: Arrays) -> None:
        if not all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f"):
            raise ValueError("its counters contradict its arrays")
        self._epochs.restore(self._state, arrays)
        class_full.PLACES.restore(self._state, arrays)
        self._room_until = 0
        for name in ("buffer_index", "buffer_value"):
            self._state.resize(name, len(arrays[name]), 0)
        super()._restore(arrays)

    def _counters_fit(self) -> bool:
        its, m = self._state, self._m
        learned, rank, waiting, entries, unused, following, touched, places, non_zeros, unlearned = its[
            "bank_counts"
        ].tolist()
        start, temper = its["buffer_start"], its["temper"]
        return bool(
            (
                np.asarray(self._table.column(self._scale_column, self.features_seen)) >= 1
            ).all()  # rows that had it
            and 0 <= learned <= its["counts"][0]
            and 0 <= rank <= m
            and 0 <= waiting < max(BUFFER * m, 1)
            and entries == len(its["buffer_index"]) == len(its["buffer_value"])
            and unused == 0
            and min(following, touched, non_zeros, unlearned) >= 0
            and class_full.fits(its, places, self._seen)
            and (waiting == 0 or (start[0] == 0 and start[waiting] == entries))
            and (np.diff(start[: waiting + 1]) >= 0).all()
            and np.isin(its["buffer_index"], self._seen).all()
            and self._epochs.fits(its, self._table.column(-1, self.features_seen))
            and (its["scalars"] >= 0).all()
            and (its["shares"] >= 0).all()
            and abs(its["shares"].sum() - 1) < 1e-6
            and (places >= 0 or not its["shares"][len(EXPERTS) :].any())  # those experts have left
            and (its["lambda"] >= 0).all()
            and 0 < temper[_BETA] <= _MOST_TEMPER
            and 0 <= temper[_GAMMA] <= _MOST_TEMPER
            and min(temper[_BB], temper[_GG]) >= 0
            and min(temper[_RAW], temper[_TEMPERED]) > 0
            and abs(temper[_RAW] + temper[_TEMPERED] - 1) < 1e-6
        )
