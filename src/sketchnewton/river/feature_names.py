"""Dictionaries and DataFrames into rows: names of features into numbers, errors that have the names."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from river.utils import dataframe

from sketchnewton import _native
from sketchnewton.core.parameters import checked_size
from sketchnewton.core.types import Floats
from sketchnewton.learners import Learner
from sketchnewton.learners.rows import checked_scan

if TYPE_CHECKING:
    import pandas as pd


class FeatureNames:
    """Names of features into indices: hashed, or numbered as they appear."""

    def __init__(self, hashing: int | None) -> None:
        if hashing is not None and checked_size("hashing", hashing) > 30:
            raise ValueError(f"hashing={hashing!r} is invalid: must be None or a number of bits from 1 to 30")
        self.bits = None if hashing is None else int(hashing)
        self.names: list[Hashable] = []  # the name of each number
        self._index = _native.NameIndex()

    def row(self, x: dict[Hashable, float], *, learn: bool) -> _native.Rows:
        """One dictionary as a row; without `learn` names never seen are left out: their weight is zero."""
        try:
            if self.bits is not None:
                return _native.hashed_row(x, self.bits)
            return self._index.row(x, self.names, learn)
        except (TypeError, OverflowError) as error:
            _name_value(x, error)
            raise

    def rows(self, frame: pd.DataFrame, *, learn: bool) -> _native.Rows:
        """A DataFrame as rows."""
        names, values = list(frame.columns), dataframe.to_numpy(frame)
        if self.bits is not None:
            places = [_native.hashed_index(str(name), self.bits) for name in names]
        else:
            places = self._index.places(names, self.names, learn)
        indices = np.array(places, np.int64)
        order = np.argsort(indices, kind="stable")[np.count_nonzero(indices < 0) :]
        n, width = len(values), len(order)
        ends = np.arange(n + 1, dtype=np.int64) * width
        return _native.csr_rows(
            ends, np.tile(indices[order], n), np.ascontiguousarray(values[:, order]).ravel()
        )

    def check(self, rows: _native.Rows, names: Iterable[Hashable]) -> None:
        """`checked_scan` that names the feature; `names` are those that the rows are made of."""
        _, _, row, feature, _ = rows.scan()
        if row < 0:
            return
        try:
            checked_scan(rows)
        except ValueError as error:
            wanted = list(names)
            bits = self.bits
            places = (
                self._index.places(wanted, self.names, False)
                if bits is None
                else [_native.hashed_index(str(name), bits) for name in wanted]
            )
            name = wanted[places.index(feature)]
            raise ValueError(str(error).replace(f"feature {feature}", f"feature {name!r}")) from None

    def weights(self, learner: Learner) -> dict[Hashable, float]:
        """What was learned of each feature, by its name."""
        features, values = learner.largest_weights()
        found = zip(features.tolist(), values.tolist(), strict=True)
        return {feature if self.bits is not None else self.names[feature]: value for feature, value in found}

    def __getstate__(self) -> dict[str, object]:
        return {"bits": self.bits, "names": self.names}  # the index is made from the names again

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _index=_native.NameIndex())


def _name_value(x: dict[Hashable, float], error: TypeError | OverflowError) -> None:
    """Raise the error again with the name of the first feature whose value is no number, or too large for one."""
    for name, value in x.items():
        try:
            math.fabs(value)
        except TypeError:
            raise TypeError(f"{error}: feature {name!r} is {value!r}") from None
        except OverflowError:
            raise ValueError(f"{error}: feature {name!r}") from None


def checked_weight(w: float) -> float:
    """The weight of an example as a number, or say what is wrong with it."""
    weight = float(w)
    if not 0.0 <= weight < math.inf:
        raise ValueError(f"w={w!r} is invalid: must be finite and >= 0")
    return weight


def checked_weights(w: float | pd.Series, n: int) -> Floats | None:
    """The weights of n examples, given as one for all or one for each; None if all are 1."""
    if isinstance(w, float | int):
        return None if w == 1.0 else np.full(n, checked_weight(w))
    return np.asarray(w, np.float64)
