"""The learner that needs no tuning: a bank of Newton learners over one sketch."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import threading
from collections.abc import Iterator, Sequence

from sketchnewton import _native
from sketchnewton.core.checks import LARGEST_COUNT, all_finite
from sketchnewton.core.hints import ClassVar, Self
from sketchnewton.core.parameters import checked_clip, checked_dtype, checked_size
from sketchnewton.core.state import Buffers, Vector, filled, zeros
from sketchnewton.core.types import Arrays, Floats, NDArray, np
from sketchnewton.learners import calibration
from sketchnewton.learners.curvature.base import padded4
from sketchnewton.learners.curvature.epoch_maps import MapArrays, most_epochs
from sketchnewton.learners.newton import bank_full, bank_stack, bank_tracking, residuals
from sketchnewton.learners.newton import bank_layout as layout
from sketchnewton.learners.newton.expert_shares import ExpertShares
from sketchnewton.learners.newton.full_places import FULL
from sketchnewton.learners.rows import checked_scan
from sketchnewton.losses import Loss


class NewtonBank(ExpertShares):
    """A bank of online Newton learners that needs no tuning: the default.

    Experts that differ in the size of their steps share one Robust Frequent Directions sketch of the rows and
    the features' scales. Each row moves every expert by a step that never passes the label, however large. One
    expert has the mean of another's weights over the rows so far, in which noise averages out; one more knows
    only labels, so that the bank is hardly worse than their frequencies. While there are few features (at most
    384, and rows that are not too sparse), three experts solve least squares with the whole matrix, two of them
    forgetting old rows, for streams that drift; of classes and at most 128 features, one more follows weights that
    wander.
    Vovk's aggregating rule weighs their predictions, so that the bank's total loss is hardly more than that of
    its best expert: at most 2 ln K + 2 ln(T + 1) for the squared loss of labels -1 and +1, half of that for the
    logistic loss. If labels are classes, a logistic regression of the experts' predictions is heard beside that
    rule, as several may be better together than the best alone; it costs at most 16 ln 2, for the logistic loss
    2 ln 2. Losses that are not mixable are weighed by AdaHedge, which is second-order (docs/untuned-theory.md).

    * `sketch_size` (m): how many directions of curvature are kept; not a thing to tune.
    * `loss`: `"squared"` for labels -1 and +1 or any numbers, `"logistic"` for probabilities, `"hinge"` and
      `"squared_hinge"` for classes, `"absolute"` or `"quantile:tau"` for medians and quantiles, `"huber:delta"`
      for means that outliers do not move, `"poisson"` for counts (predictions are logarithms, `loss.link` of
      them expected counts).
    * `clip`: predictions lie within ±clip; None: within the labels seen.
    * `intercept`: a feature that is always 1.
    * `dtype`: precision of the feature table; small matrices are always float64.

    Features may have any scale: predictions do not change if a feature is multiplied by a constant. The range of
    the labels is learned as they come; predictions stay within the labels seen. While all labels are -1 or +1
    that range is taken to be [-1, 1]. A label beyond the range is learned as the nearest one within (not at all
    if it is farther away than the range is wide), and then becomes part of it: a single wild one does no damage.

    A row of weight h is learned like h rows: steps are h times as long, along a path that does not pass the
    label.

    Cost per row with s non-zeros: O(ms), plus O(m³) once in a while; while there are few features d, O(d²) and,
    once in d/4 rows or more, O(d³); memory: one cache line per feature up to m = 6 in float32, and 12 d² bytes
    (16 d² for classes).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 20)) * np.geomspace(1e-3, 1e3, 20)
    >>> y = np.sign(X @ (rng.standard_normal(20) / np.geomspace(1e-3, 1e3, 20)))
    >>> learner = NewtonBank()
    >>> error = np.mean(np.sign(learner.learn(X, y)[500:]) != y[500:])
    >>> print(f"{error:.2f}")
    0.04
    >>> learner.leading_expert in learner.expert_names
    True

    Limits: values and labels beyond ±1e30, NaN and infinity are refused.
    """

    _kernel: _native.BankKernel
    weight_is_a_run: ClassVar[bool] = True
    _scale_column: ClassVar[int] = -3
    _takes_views = True
    _pack_from = 0
    _lists_of_features: ClassVar[tuple[str, ...]] = ("features", "buffer_index", "full_features")

    def __init__(
        self,
        sketch_size: int = 6,
        *,
        loss: str | Loss = "squared",
        clip: float | str | None = None,
        intercept: bool = True,
        dtype: str = "float32",
    ) -> None:
        m = checked_size("sketch_size", sketch_size, 0)
        if isinstance(clip, str):
            raise ValueError(
                f"clip={clip!r} is invalid: must be a number or None; a bank learns the range of labels anyway"
            )
        K, q = len(layout.EXPERTS), max(m, 1)
        super().__init__(
            columns=K + m + 3,
            sketch_size=m,
            loss=loss,
            clip=clip,
            intercept=bool(intercept),
            dtype=checked_dtype(dtype),
        )
        self._clip = checked_clip(clip)
        self._m, self._K = m, K
        tracks = self.loss.name in bank_tracking.LOSSES
        all_experts = K + 1 + (len(FULL) if self.loss.name in bank_full.LOSSES else 0) + tracks
        n = layout.BUFFER * m
        self._experts = layout.table_of(layout.EXPERTS)
        self._epochs = MapArrays(q, padded4(K + q), self._params["dtype"])
        self._room_until = 0  # the row up to which there is room for updates of the sketch
        self._widest = 0  # row that the buffer has room for
        scalars = zeros(17)
        scalars[layout.HIGH] = min(1.0, self._clip)
        scalars[layout.LOW] = -scalars[layout.HIGH]
        self._state.update(
            {
                "bank_counts": zeros(10, "int64"),
                "scalars": scalars,
                "shares": filled([1 / all_experts] * all_experts),
                **bank_full.fresh(),
                **bank_tracking.fresh(there=tracks),
                "stack": bank_stack.fresh(),
                "first_labels": zeros(2 + layout.FIRST_LABELS),
                **residuals.fresh(self.loss),
                **calibration.fresh_bank(),
                "lambda": zeros(padded4(q)),
                "b": zeros((K, padded4(q))),
                "constant": zeros(K + m),
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

    @property
    def merges_from_base(self) -> bool:
        """Banks do."""
        return True

    # -- what it has learned

    @property
    def expert_names(self) -> tuple[str, ...]:
        """How curvature counts (the same for ever, or falling like 1/√t), and the length of the steps.

        The constant one knows only labels. Those with whole matrices are named after the rows they remember; they
        leave when features become many, and so does the one that follows weights that wander.
        """
        return (*layout.EXPERTS, layout.CONSTANT, *FULL, bank_tracking.TRACKING)[: self._kernel.experts]

    @property
    def expert_weights(self) -> Floats:
        """The weights of each expert, one row per expert, for features as they come."""
        with self._lock:
            weights = np.zeros((self._kernel.experts, self.dimension))
            weights[: self._K, self._seen] = self._settled_weights().T
            if self._whole:
                places = self._state["full_features"][1 : self._places]
                weights[self._K + 1 : self._K + 1 + len(FULL), places] = self._full_weights()[:, 1:]
            if self._tracks:
                weights[-1, places] = self._tracking_weights()[1:]
        return weights

    @property
    def expert_intercepts(self) -> Floats:
        """The constant that each expert adds to its scores."""
        with self._lock:
            its, constant = self._state, self._state["constant"]
            own = constant[: self._K] + its["b"][:, : self._m] @ constant[self._K :]
            own = layout.averaged(own, self.rows_seen)
            own = np.append(its["scalars"][layout.OFFSET] + self._factors() * own, self._usual())
            own = np.concatenate([own, self._full_intercepts()]) if self._whole else own
            return np.append(own, self._tracking_weights()[:1]) if self._tracks else own

    @property
    def linear_expert(self) -> str:
        """The best linear model in the bank: the expert that has lost least so far among those that are linear.

        `weights` and `intercept_` are its own. Experts that bring rows to one length, as some do if labels are
        classes, are not linear, and neither is what `predict` makes of all experts.
        """
        with self._lock:
            return self.expert_names[self._best_linear()]

    @property
    def intercept_(self) -> float:
        """The constant that `linear_expert` adds to its scores."""
        with self._lock:
            return float(self.expert_intercepts[self._best_linear()])

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues of the sketch, largest first, for scaled features and labels."""
        with self._lock:
            return self._state["lambda"][: self._state["bank_counts"][layout.RANK]].copy()

    @property
    def ridge_(self) -> float:
        """Half of what the sketch has shrunk by: curvature in the directions that it does not keep."""
        return float(self._state.view("scalars")[layout.RIDGE] / 2)

    @property
    def scales(self) -> Floats:
        """What features are divided by: mean sizes in the rows that have them, less for rare ones.

        0 for features never seen.
        """
        features, of_seen = self.sorted_scales()
        scales = np.zeros(self.dimension)
        scales[features] = of_seen
        return scales

    def sorted_scales(self) -> tuple[NDArray[np.int64], Floats]:
        """The features seen and their scales, smallest scale first."""
        with self._lock:
            features, scales = self._seen.copy(), self._scales_of_seen()
        order = np.lexsort((features, scales))
        return features[order], scales[order]

    @property
    def label_range(self) -> tuple[float, float]:
        """The labels that are learned as they are lie between these two, and so do predictions of labels."""
        scalars = self._state.view("scalars")
        return float(scalars[layout.LOW]), float(scalars[layout.HIGH])

    @property
    def prediction_bounds(self) -> tuple[float, float]:
        """The least and the largest prediction that can be made now."""
        if self.loss.link_kind == "identity":
            return self.label_range
        if self.loss.link_kind == "logistic":
            return -self._clip, self._clip
        scalars = self._state.view("scalars")
        rows, largest, total = (float(scalars[i]) for i in (layout.CLOCK, layout.HIGH, layout.TOTAL))
        counted = rows > 0 and largest > 0  # the rest as in native/learners/bank_labels.hpp
        mean = max(total / rows, sys.float_info.min) if counted else 1.0
        least = math.log(mean / (rows + 1))
        most = math.log(largest) if counted else least
        low, high = (max(-self._clip, min(self._clip, bound)) for bound in (least, most))
        return min(low, high), high

    def predict_experts(self, X: object) -> Floats:
        """What each expert predicts for each row: an array of rows × experts."""
        rows = self._rows(X)
        checked_scan(rows)
        with self._lock:
            predictions = np.empty((len(rows), self._kernel.experts))
            self._kernel.predict_experts(rows, predictions)
        return predictions

    @property
    def calibrates(self) -> bool:
        """It does."""
        return True

    def probabilities(self, scores: Floats) -> Floats:
        """The probability of each class, by the scores that `predict` gave: of −1 and +1 for one number per row.

        They are calibrated while the bank learns (docs/untuned-theory.md). `scores` may also have a column for
        each of several banks of one class against the rest; those are not.
        """
        if scores.ndim == 2 and scores.shape[1] > 1:
            return super().probabilities(scores)
        positive = np.empty(len(scores))
        with self._lock:
            self._kernel.chances(np.ascontiguousarray(scores, np.float64).reshape(-1), positive)
        return np.stack([1.0 - positive, positive], axis=1)

    def row_probabilities(self, scores: list[float]) -> list[float]:
        """`probabilities` of a single row, without the cost of arrays."""
        if len(scores) > 1:
            return super().row_probabilities(scores)
        with self._lock:
            positive = self._kernel.chance(scores[0])
        return [1.0 - positive, positive]

    def _label_quantiles(self, predictions: Floats, levels: Floats, rows: _native.Rows | None) -> Floats:
        quantiles = np.empty((len(predictions), len(levels)))
        with self._lock:
            self._kernel.quantiles(predictions, residuals.widths(self._kernel, rows), levels, quantiles)
        return quantiles

    def _deviations(self, predictions: Floats, rows: _native.Rows | None) -> Floats:
        deviations = np.empty(len(predictions))
        with self._lock:
            self._kernel.deviations(predictions, residuals.widths(self._kernel, rows), deviations)
        return deviations

    # -- for learners

    @contextlib.contextmanager
    def relearning(self) -> Iterator[None]:
        """Rows that were learned before do not change what is known of residuals."""
        if not self.tracks_residuals:
            yield
            return
        with self._lock:
            known = {name: self._state.view(name).tobytes() for name in residuals.NAMES}
            try:
                yield
            finally:
                for name, numbers in known.items():
                    self._state.view(name).cast("B")[:] = numbers

    @property
    def tracks_residuals(self) -> bool:
        """Whether labels are numbers."""
        return len(self._state.view("residuals")) > 0

    @property
    def _places(self) -> int:
        """How many features, and the constant, experts with whole matrices know; -1: they are gone."""
        return int(self._state.view("bank_counts")[layout.PLACES])

    @property
    def _whole(self) -> bool:
        return self._kernel.experts > self._K + 1

    @property
    def _signs(self) -> bool:
        return bool(self._state.view("bank_counts")[layout.LABELS] == layout.SIGNS)

    def _full_weights(self) -> Floats:
        """Of the experts with whole matrices: experts × places. If labels are classes, scores are log odds."""
        its, places = self._state, max(self._places, 0)
        weights = its["full_weights"][:places] / its["full_units"][:places, bank_full.UNIT, None]
        if self._signs:
            weights = weights * its["full_odds"][: len(FULL), bank_full.SLOPE]
        return np.asarray(weights.T)

    def _full_intercepts(self) -> Floats:
        own = self._full_weights()[:, 0] if self._places > 0 else np.zeros(len(FULL))
        odds = self._state["full_odds"][: len(FULL)]
        shift = odds[:, bank_full.SHIFT] if self._signs else self._state["scalars"][layout.OFFSET]
        return np.asarray(own + shift)

    @property
    def _tracks(self) -> bool:
        return self._kernel.experts > self._K + 1 + len(FULL)

    def _tracking_weights(self) -> Floats:
        """Of the expert whose weights wander, for features as they come; the constant first."""
        if self._places <= 0:
            return np.zeros(1)
        numbers, units = self._state["tracking"], self._state["full_units"][:, bank_full.UNIT]
        its = numbers[: self._places]
        weights = its[:, bank_tracking.WEIGHT] * its[:, bank_tracking.PER]
        weights[0] -= weights[1:] @ its[1:, bank_tracking.CENTRE]
        return np.asarray(weights / units[: self._places])

    def _usual(self) -> float:
        """The score of the constant expert, as `usual` of native/learners/bank_labels.hpp has it."""
        scalars = self._state.view("scalars")
        level, clock = float(scalars[layout.USUAL]), float(scalars[layout.CLOCK])
        if self.loss.link_kind == "logistic":
            return 2.0 * math.atanh(level) if abs(level) < 1 else math.copysign(layout.HUGE_LOGIT, level)
        if self.loss.link_kind == "log":
            counted = clock > 0 and scalars[layout.HIGH] > 0
            mean = max(scalars[layout.TOTAL] / clock, sys.float_info.min) if counted else sys.float_info.min
            return math.log(mean)
        return float(scalars[layout.OFFSET]) + level

    @property
    def _rule(self) -> str:
        """The loss by whose rule it aggregates: within [-1, 1] the squared hinge loss is the squared one."""
        return "squared" if self.loss.name == "squared_hinge" else self.loss.name

    @property
    def _weight_unit(self) -> float:
        return layout.weight_unit(self.loss, *self.label_range)

    def _scales_of_seen(self) -> Floats:
        count, mean = self._table.rows_of_active(self.features_seen)[:, [-3, -2]].astype(np.float64).T
        rows = max(int(self._state.view("bank_counts")[layout.LEARNED]), 1)
        return np.asarray(mean * (count / rows) ** 0.25)

    def _factors(self) -> Floats:
        """What each expert multiplies scaled rows with."""
        rows = int(self._state.view("bank_counts")[layout.LEARNED]) + 1
        return np.array([rows**-0.25 if view == layout.RARE else 1.0 for *_, view in layout.EXPERTS.values()])

    def _settled_weights(self) -> Floats:
        """Features seen × experts, in the unit of the features."""
        return layout.unscaled(self._scaled_weights(), self._scales_of_seen())

    def _scaled_weights(self) -> Floats:
        """The same for features that are scaled."""
        rows = np.empty((len(self._seen), self._table.width), self._table.dtype)
        self._kernel.settled(rows)
        rows = rows.astype(np.float64)
        w, z = self._weight_unit * rows[:, : self._K], rows[:, self._K : self._K + self._m]
        own = layout.averaged(w + z @ self._state["b"][:, : self._m].T, self.rows_seen)
        return np.asarray(self._factors() * own)

    def _learned_weights(self) -> tuple[NDArray[np.int64], Floats]:
        with self._lock:
            best = self._best_linear()
            if best > self._K:
                weights = self._full_weights()[best - self._K - 1, 1:]
                return self._state["full_features"][1 : self._places].copy(), weights
            return self._seen.copy(), self._settled_weights()[:, best]

    def _best_linear(self) -> int:
        # Shares fall with the loss, so the largest is that of the least.
        views = {layout.PLAIN, layout.RARE} if self._signs else {layout.PLAIN, layout.EVEN, layout.RARE}
        linear = [k for k, (*_, view) in enumerate(layout.EXPERTS.values()) if view in views]
        if self._whole:
            linear += range(self._K + 1, self._K + 1 + len(FULL))
        return max(linear, key=self._state.view("shares").__getitem__)

    def _bind(self) -> _native.BankKernel:
        make = _native.newton_bank64 if self._params["dtype"] == "float64" else _native.newton_bank32
        views = {**self._views(), "experts": self._experts}
        return make(self.loss.code, self.loss.parameter, self._params["intercept"], self._clip, views)

    def reserve(self, rows: _native.Rows) -> None:
        """Allocate memory for these rows, or raise; afterwards they can be learned."""
        with self._lock:
            super().reserve(rows)
            self._reserve_epochs(len(rows))
            self._reserve_places(rows)

    def _learn(self, rows: _native.Rows, labels: Vector, weights: Vector | None, out: Vector) -> None:
        self._kernel.learn(rows, labels, weights, out)
        if self._places < 0 or bank_tracking.used(self._state) < 0:  # experts have left
            with contextlib.suppress(MemoryError):  # of arrays of nothing
                self._reserve_places(rows)

    def _learn_one(self, row: _native.Rows, label: float) -> float:
        self._reserve_epochs(1)
        self._reserve_places(row)
        return self._kernel.learn_one(row, label)

    @property
    def _only_reads(self) -> bool:
        return True

    def _reserve_places(self, rows: _native.Rows) -> None:
        """Make room for the experts with whole matrices to learn these rows; none if they are gone."""
        needed = self._kernel.places_for(rows)
        if needed != 0:
            full = bank_full.PLACES.reserve(self._state, needed, self._places)
            self._replace({**full, **bank_tracking.reserve(self._state, needed)})

    def _reserve_epochs(self, rows: int) -> None:
        """Make room for the updates of the sketch that so many rows may bring."""
        t = self._state.view("counts")[0]
        if t + rows <= self._room_until:
            return
        ahead = max(rows, int(t) + 64)  # as many rows again as there have been
        counts = self._state.view("bank_counts")
        waiting, following = int(counts[layout.FILLED]), int(counts[layout.NEXT])
        epochs = most_epochs(self._m, layout.BUFFER * self._m, int(t), following, waiting, ahead)
        self._replace(self._epochs.reserve(self._state, epochs + 1))  # one that a sweep adds
        self._room_until = int(t) + ahead

    def _reserve(self, largest: int, widest: int) -> None:
        if widest > self._widest:
            used = int(self._state.view("bank_counts")[layout.ENTRIES])
            size = used + layout.BUFFER * self._m * widest
            names = ("buffer_index", "buffer_value")
            self._replace({name: self._state.resized(name, size, used) for name in names})
            self._widest = widest
        super()._reserve(largest, widest)

    def _united(self, others: Sequence[Self], base: Self | None) -> Self:
        from sketchnewton.learners.newton.bank_merge import merged

        banks = [self, *others] if self.rows_seen else others
        return self._with(banks[0]._all_arrays() if len(banks) == 1 else merged(banks, base))

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
        used = int(self._state.view("bank_counts")[layout.ENTRIES])
        buffer = {name: self._state.head(name, used) for name in ("buffer_index", "buffer_value")}
        full = bank_full.PLACES.saved(self._state, self._places)
        tracking = bank_tracking.saved(self._state)
        return {**super()._all_arrays(), **self._epochs.saved(self._state), **buffer, **full, **tracking}

    def _restore(self, arrays: Arrays) -> None:
        if not all(map(all_finite, arrays.values())):
            raise ValueError("its counters contradict its arrays")
        self._epochs.restore(self._state, arrays)
        bank_full.PLACES.restore(self._state, arrays)
        bank_tracking.restore(self._state, arrays)
        self._room_until = self._widest = 0
        for name in ("buffer_index", "buffer_value"):
            self._state.resize(name, len(arrays[name]), 0)
        super()._restore(arrays)

    def _counters_fit(self) -> bool:
        its, m = self._state, self._m
        counts = its.view("bank_counts").tolist()
        learned, rank, waiting, entries, labels, following, touched, places, non_zeros, unlearned = counts
        start, buffer = its.view("buffer_start").tolist(), its.view("buffer_index")
        scalars, shares = its.view("scalars").tolist(), its.view("shares").tolist()
        table, seen = self._table, self._table.listed(self.features_seen)
        rows = table.column(self._scale_column, len(seen))  # that had the feature
        return bool(
            _native.look(rows)[1] >= 1
            and sum(rows) <= LARGEST_COUNT
            and 0 <= learned <= its.view("counts")[0]
            and 0 <= rank <= m
            and 0 <= waiting < max(layout.BUFFER * m, 1)
            and entries == len(buffer) == len(its.view("buffer_value"))
            and 0 <= labels <= 2
            and its.view("first_labels")[layout.MET] in range(1 + layout.FIRST_LABELS)
            and its.view("first_labels")[layout.STARTS] in range(1 + layout.FIRST_LABELS)
            and min(following, touched, non_zeros) >= 0
            and bank_full.fits(its, places, unlearned, seen)
            and bank_tracking.fits(
                its, places, may_be=self._rule in bank_tracking.LOSSES and labels <= layout.SIGNS
            )
            and bank_stack.fits(its, 1 + self._K if places < 0 else bank_stack.INPUTS)
            and residuals.fits(its)
            and calibration.fits_bank(its)
            and (waiting == 0 or (start[0] == 0 and start[waiting] == entries))
            and all(one <= two for one, two in itertools.pairwise(start[: waiting + 1]))
            and _native.are_among(buffer, seen)
            and self._epochs.fits(its, table.column(-1, len(seen)))
            and scalars[layout.LOW] <= scalars[layout.HIGH]
            and scalars[layout.CLOCK] >= 0
            and min(scalars[layout.RATE : layout.USUAL]) >= 0
            and min(scalars[layout.USUAL_ROWS :]) >= 0
            and (labels == 0 or scalars[layout.CLOCK] > 0)
            and min(shares) >= 0  # a row of huge weight leaves one expert alone
            and any(shares)
            and min(its.view("lambda").tolist(), default=0.0) >= 0
        )
