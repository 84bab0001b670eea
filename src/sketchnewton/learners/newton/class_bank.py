"""The learner of several classes that needs no tuning: a bank for each, over one sketch and one table."""

from __future__ import annotations

import threading
from typing import ClassVar, Self

from sketchnewton import _native
from sketchnewton.core.parameters import checked_dtype, checked_size
from sketchnewton.core.state import Buffers, Vector, View, filled, zeros
from sketchnewton.core.types import Arrays, Floats, NDArray, np
from sketchnewton.learners.class_learner import ClassLearner, checked_class_count
from sketchnewton.learners.curvature.base import padded4
from sketchnewton.learners.curvature.epoch_maps import MapArrays, most_epochs
from sketchnewton.learners.newton import class_full
from sketchnewton.learners.newton.bank import BUFFER
from sketchnewton.learners.newton.bank import EXPERTS as BANK_EXPERTS
from sketchnewton.learners.newton.bank_full import FULL
from sketchnewton.learners.rows import checked_scan
from sketchnewton.learners.table import TableLearner
from sketchnewton.losses import Loss

EXPERTS = {**BANK_EXPERTS, "rare 4": (0.0, 0.0, 4.0, 3)}
LANES = 8  # numbers of a class in a table row: kLanes in native/learners/class_bank.hpp
LOSSES = ("squared", "logistic")

_CLOCK, _SQUARES, _RIDGE, _SCALARS = range(4)
_LEARNED, _RANK, _FILLED, _ENTRIES, _LABELS, _NEXT, _TOUCHED, _PLACES, _NON_ZEROS, _WAITING, _COUNTS = range(11)
_PLAIN, _RARE = 0, 3  # `View` in native/learners/bank_state.hpp


class ClassBank(ClassLearner, TableLearner):
    """Several classes, each against the rest, by banks of online Newton learners that share what they can."""

    softmax = True
    _kernel: _native.ClassBankKernel
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
        super().__init__(
            columns=max(K * LANES + m + 3, 16),
            classes=K,
            sketch_size=m,
            loss=loss,
            intercept=bool(intercept),
            dtype=checked_dtype(dtype),
        )
        if self.loss.name not in LOSSES:
            raise ValueError(
                f"loss={self.loss.spec!r} is invalid: a bank of classes has squared and logistic; "
                "OneVsAll(NewtonBank, …) has others"
            )
        self._m, self._lanes = m, K * LANES
        q, n, all_experts = max(m, 1), BUFFER * m, len(EXPERTS) + len(FULL)
        self._experts = _experts()
        self._epochs = MapArrays(q, padded4(self._lanes + q), self._params["dtype"])
        self._room_until = 0  # the row up to which there is room for updates of the sketch
        self._state.update(
            {
                "bank_counts": zeros(_COUNTS, "int64"),
                "scalars": zeros(_SCALARS),
                "shares": filled([1 / all_experts] * all_experts),
                "temper": filled([1.0, 1.0, 1.0, 0.0, 1.0, 0.5, 0.5]),
                **class_full.fresh(K),
                "lambda": zeros(padded4(q)),
                "b": zeros((self._lanes, padded4(q))),
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

    @property
    def _places(self) -> int:
        return int(self._state.view("bank_counts")[_PLACES])

    @property
    def intercepts(self) -> Floats:
        return np.zeros(self.outputs)

    def _bind(self) -> _native.ClassBankKernel:
        make = _native.class_bank64 if self._params["dtype"] == "float64" else _native.class_bank32
        return make(self._params["intercept"], {**self._views(), "experts": self._experts})

    def _learn(self, rows: _native.Rows, labels: Vector, weights: Vector | None, out: Vector) -> None:
        self._reserve_epochs(len(rows))
        self._reserve_places(rows)
        self._kernel.learn(rows, labels, weights, out)
        self._reserve_places()

    def _reserve_places(self, rows: _native.Rows | None = None) -> None:
        """Make room for the experts with whole matrices to learn these rows; none if they are gone."""
        needed = 0 if rows is None else self._kernel.places_for(rows)
        if class_full.reserve(self._state, needed, self._places):
            self._kernel = self._bind()

    def _reserve_epochs(self, rows: int) -> None:
        """Make room for the updates of the sketch that so many rows may bring."""
        t = self._state.view("counts")[0]
        if t + rows <= self._room_until:
            return
        ahead = max(rows, int(t) + 64)  # as many rows again as there have been
        counts = self._state.view("bank_counts")
        waiting, following = int(counts[_FILLED]), int(counts[_NEXT])
        epochs = most_epochs(self._m, BUFFER * self._m, int(t), following, waiting, ahead)
        if self._epochs.reserve(self._state, epochs + 1):  # one that a sweep adds
            self._kernel = self._bind()
        self._room_until = int(t) + ahead

    def _reserve(self, largest: int, widest: int) -> None:
        used = int(self._state.view("bank_counts")[_ENTRIES])
        size = used + BUFFER * self._m * widest
        if len(self._state.view("buffer_index")) < size:
            for name in ("buffer_index", "buffer_value"):
                self._state.resize(name, size, used)
            self._kernel = self._bind()
        super()._reserve(largest, widest)


def _experts() -> View:
    """The numbers of each expert in a row."""
    made = zeros((len(EXPERTS), 4))
    for row, expert in enumerate(EXPERTS.values()):
        for column, number in enumerate(expert):
            made[row, column] = number
    return made
