"""The learner that needs no tuning: a bank of Newton learners over one sketch."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sketchnewton import _native
from sketchnewton.learners.base import Arrays, checked_size
from sketchnewton.learners.epochs import EpochArrays
from sketchnewton.learners.rows import LARGEST_VALUE, Floats, as_rows, checked_scan
from sketchnewton.learners.sketch import padded4
from sketchnewton.learners.table import TableLearner, table_dtype
from sketchnewton.losses import Loss

# Name, then the numbers of `Expert` in native/bank.hpp: f = constant + root/√t, and the step's multiplier.
# Experts of one schedule stand together.
EXPERTS: dict[str, tuple[float, float, float]] = {
    "steady 0.5": (0.125, 0.0, 0.5),
    "steady 2": (0.125, 0.0, 2.0),
    "steady 8": (0.125, 0.0, 8.0),
    "falling 0.5": (0.0, 2.0, 0.5),
    "falling 1e6": (0.0, 2.0, 1e6),
}
LOSSES = ("squared", "logistic", "absolute", "quantile")

_CLOCK, _SQUARES, _RIDGE, _OFFSET, _LOW, _HIGH, _SEEN_LOW, _SEEN_HIGH, _RATE = range(9)
_LEARNED, _RANK, _FILLED, _ENTRIES, _LABELS = range(5)


class NewtonBank(TableLearner):
    """A bank of online Newton learners that needs no tuning."""

    _kernel: _native.BankKernel
    _scale_column: ClassVar[int] = -3

    def __init__(
        self,
        sketch_size: int = 8,
        loss: str | Loss = "squared",
        intercept: bool = True,
        dtype: str = "float32",
    ) -> None:
        m = checked_size("sketch_size", sketch_size, 0)
        K, q = len(EXPERTS), max(m, 1)
        super().__init__(
            columns=K + m + 3, sketch_size=m, loss=loss, intercept=bool(intercept), dtype=table_dtype(dtype)
        )
        if self.loss.name not in LOSSES:
            raise ValueError(f"loss={self.loss.spec!r} is invalid: a bank needs one of {', '.join(LOSSES)}")
        self._m, self._K = m, K
        self._experts = np.array(list(EXPERTS.values()))
        self._epochs = EpochArrays(q, padded4(K + q), dtype)
        scalars = np.zeros(9)
        scalars[_LOW], scalars[_HIGH] = -1.0, 1.0
        self._arrays |= {
            "bank_counts": np.zeros(5, np.int64),
            "scalars": scalars,
            "shares": np.full(K, 1 / K),
            "lambda": np.zeros(padded4(q)),
            "b": np.zeros((K, padded4(q))),
            "constant": np.zeros(K + m),
            "buffer_index": np.zeros(0, np.int64),
            "buffer_value": np.zeros(0, self._table.dtype),
            "buffer_start": np.zeros(m + 1, np.int64),
            "buffer_length": np.zeros(m),
            "buffer_c": np.zeros((m, padded4(q))),
            "buffer_gram": np.zeros((m, padded4(q))),
            **self._epochs.fresh(),
        }
        self._kernel = self._bind()

    def _bind(self) -> _native.BankKernel:
        make = _native.newton_bank64 if self._params["dtype"] == "float64" else _native.newton_bank32
        views = {**self._views(), "experts": self._experts}
        return make(self.loss.code, self.loss.parameter, self._params["intercept"], views)

    def _reserve(self, largest: int, widest: int) -> None:
        size = int(self._arrays["bank_counts"][_ENTRIES]) + self._m * widest
        if len(self._arrays["buffer_index"]) < size:
            for name in ("buffer_index", "buffer_value"):
                array = np.zeros(size, self._arrays[name].dtype)
                array[: len(self._arrays[name])] = self._arrays[name]
                self._arrays[name] = array
            self._kernel = self._bind()
        super()._reserve(largest, widest)
