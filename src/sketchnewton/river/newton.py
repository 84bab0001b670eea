"""SketchedNewtonClassifier and SketchedNewtonRegressor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, Literal, overload

import numpy as np
from river import base, conf
from river.utils import dataframe

from sketchnewton import _native
from sketchnewton.core.types import Floats
from sketchnewton.learners import Learner
from sketchnewton.learners.default_learner import newton_learner
from sketchnewton.river.feature_names import FeatureNames, checked_weight, checked_weights

if TYPE_CHECKING:
    import pandas as pd


class _Model(base.Base, ABC):
    """What both models share. River wants each parameter to be an attribute of its name."""

    _classes: ClassVar[bool]

    def __init__(
        self,
        *,
        learner: str = "bank",
        loss: str | None = None,
        clip: float | str | None = "auto",
        sketch: str | None = None,
        sketch_size: int | None = None,
        alpha: float | None = None,
        curvature: float | None = None,
        curvature_weight: float | str | None = None,
        diagonal: bool | None = None,
        intercept: bool = True,
        hashing: int | None = None,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        self.learner = learner
        self.loss = loss
        self.clip = clip
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.alpha = alpha
        self.curvature = curvature
        self.curvature_weight = curvature_weight
        self.diagonal = diagonal
        self.intercept = intercept
        self.hashing = hashing
        self.dtype = dtype
        self.seed = seed
        self._names = FeatureNames(hashing)
        self._new_learner()  # wrong parameters are refused now
        self._start()

    @abstractmethod
    def _start(self) -> None:
        """What a model that has seen nothing holds."""

    def _new_learner(self) -> Learner:
        return newton_learner(
            self.learner,
            classes=self._classes,
            sketch=self.sketch,
            sketch_size=self.sketch_size,
            alpha=self.alpha,
            loss=self.loss or ("logistic" if self._classes else "squared"),
            clip=self.clip,
            curvature=self.curvature,
            curvature_weight=self.curvature_weight,
            diagonal=self.diagonal,
            intercept=self.intercept,
            dtype=self.dtype,
            random_state=self.seed,
        )


class SketchedNewtonClassifier(_Model, base.MiniBatchClassifier):
    """Linear classification with second-order steps.

    Labels may be anything that can be a dictionary's key, and new ones may appear at any time: each has a
    learner of its own, against all others, from its first row on. Labels True and False share one learner.
    `learn_many` gives the same model, bit for bit, as `learn_one` row by row.

    Parameters
    ----------
    learner, loss, clip, sketch, sketch_size, alpha, curvature, curvature_weight, diagonal, dtype
        As those of `sketchnewton.SketchedNewtonClassifier`; loss None: "logistic".
    intercept
        Learn a constant for each class.
    hashing
        None numbers the names of features as they appear and keeps them in a dictionary, which grows with new
        names. A number of bits hashes names (as strings, as Vowpal Wabbit does): constant memory, and names may
        collide.
    seed
        For the sketch "rp".

    Examples
    --------
    >>> from sketchnewton.river import SketchedNewtonClassifier
    >>> model = SketchedNewtonClassifier(learner="newton", sketch="oja")
    >>> for _ in range(20):
    ...     model.learn_one({"cloudy": 1.0, "wind": 3.0}, "rain")
    ...     model.learn_one({"wind": 4.0}, "sun")
    >>> model.predict_one({"cloudy": 1.0, "pressure": 990})
    'rain'
    """

    _classes = True

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Hashable, float], y: base.typing.ClfTarget, w: float = 1.0) -> None:
        """Learn one example of weight `w`."""
        known = self._learner_of(y) is not None
        if not known:
            _check_label(y)
        row, weight = self._names.row(x, learn=True), checked_weight(w)
        if not known:
            self._names.check(row, x)
            self._enter(y)
        try:
            for label, learner in self._learners.items():
                learner.learn_row(row, 1.0 if y == label else -1.0, weight)
        except ValueError:  # the first learner refused the row
            self._names.check(row, x)
            raise

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: float | pd.Series = 1.0) -> None:
        """Learn the rows of a DataFrame, in order; `w` is the weight of all or of each."""
        frame, labels = dataframe.into_frame(X), list(y)
        for label in dict.fromkeys(labels):
            _check_label(label)
        rows = self._names.rows(frame, learn=True)
        self._names.check(rows, frame.columns)
        weights = checked_weights(w, len(frame))
        starts = dict.fromkeys(self._learners, 0)  # a label is learned from its first row on
        for i, label in enumerate(labels):
            self._enter(label)
            for new in self._learners.keys() - starts.keys():
                starts[new] = i
        for label, learner in self._learners.items():
            begin, end = starts[label], len(labels)
            signs = np.array([1.0 if other == label else -1.0 for other in labels[begin:]])
            learner.learn(rows.part(begin, end), signs, None if weights is None else weights[begin:])

    def predict_proba_one(
        self, x: dict[Hashable, float], **kwargs: object
    ) -> dict[base.typing.ClfTarget, float]:
        """The probability of each label seen so far."""
        if not self._learners:
            return {}
        row = self._names.row(x, learn=False)
        try:
            scores = [float(learner.decision_function(row)[0]) for learner in self._learners.values()]
        except ValueError:
            self._names.check(row, x)
            raise
        if not self._boolean and len(scores) == 1:
            return dict.fromkeys(self._learners, 1.0)
        first = next(iter(self._learners.values()))
        proba = first.row_probabilities(scores)
        return dict(zip(self._labels, proba, strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The probability of each label seen so far, one column each."""
        frame = dataframe.into_frame(X)
        if not self._learners:
            return dataframe.to_native_frame({}, like=frame)
        proba = self._probabilities(self._names.rows(frame, learn=False))
        return dataframe.to_native_frame(dict(zip(self._labels, proba.T, strict=True)), like=frame)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The most probable label of each row."""
        frame = dataframe.into_frame(X)
        if not self._learners:
            return dataframe.to_native_series([None] * len(frame), name=None, like=frame)
        best = self._probabilities(self._names.rows(frame, learn=False)).argmax(axis=1)
        return dataframe.to_native_series([self._labels[k] for k in best], name=None, like=frame)

    def _start(self) -> None:
        self._learners: dict[base.typing.ClfTarget, Learner] = {}
        self._boolean: bool | None = (
            None  # are labels True and False? Then one learner, of True, serves both.
        )

    @property
    def _labels(self) -> list[base.typing.ClfTarget]:
        return [False, True] if self._boolean else list(self._learners)

    @property
    def weights(self) -> dict[Hashable, float] | dict[base.typing.ClfTarget, dict[Hashable, float]]:
        """The weight of each feature by its name, or by its number if names are hashed: the linear part.

        Of labels True and False one dictionary; of others one for each label.
        """
        by_label = {label: self._names.weights(learner) for label, learner in self._learners.items()}
        return by_label.get(True, {}) if self._boolean else by_label

    def _learner_of(self, label: base.typing.ClfTarget) -> Learner | None:
        boolean = isinstance(label, bool | np.bool_)
        return self._learners.get(True if boolean else label) if boolean == self._boolean else None

    def _enter(self, label: base.typing.ClfTarget) -> None:
        """Make sure that there is a learner for this label, which is not missing."""
        boolean = isinstance(label, bool | np.bool_)
        if self._boolean is None:
            self._boolean = boolean
        if boolean != self._boolean:
            raise ValueError(
                f"label {label!r} cannot be told apart from labels seen before: some are True or False"
            )
        if boolean:
            label = True
        if label not in self._learners:
            self._learners[label] = self._new_learner()

    def _probabilities(self, rows: _native.Rows) -> Floats:
        scores = np.column_stack([learner.decision_function(rows) for learner in self._learners.values()])
        if not self._boolean and len(self._learners) == 1:
            return np.ones_like(scores)
        return next(iter(self._learners.values())).probabilities(scores)


def _check_label(label: object) -> None:
    """Refuse a label that is missing: it is no class."""
    missing = type(label).__name__ in {
        "NoneType",
        "NAType",
        "NaTType",
    }  # pandas' two, which need not be there
    if missing or (isinstance(label, float | np.floating) and np.isnan(label)):
        raise ValueError(f"label {label!r} is missing: leave its row out")


class SketchedNewtonRegressor(_Model, base.MiniBatchRegressor):
    """Linear regression with second-order steps; targets may have any scale.

    `learn_many` gives the same model, bit for bit, as `learn_one` row by row. Before anything is learned the
    prediction is 0; later it lies within the range of the targets seen (`clip="auto"`).

    Parameters
    ----------
    learner, loss, clip, sketch, sketch_size, alpha, curvature, curvature_weight, diagonal, dtype
        As those of `sketchnewton.SketchedNewtonRegressor`; loss None: "squared".
    intercept, hashing, seed
        As those of the classifier.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from sketchnewton.river import SketchedNewtonRegressor
    >>> model = SketchedNewtonRegressor()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE()).get() < 1.0
    True
    """

    _classes = False

    def _start(self) -> None:
        self._learner = self._new_learner()

    def learn_one(self, x: dict[Hashable, float], y: float, w: float = 1.0) -> None:
        """Learn one example of weight `w`."""
        row, weight = self._names.row(x, learn=True), checked_weight(w)
        try:
            self._learner.learn_row(row, float(y), weight)
        except ValueError:
            self._names.check(row, x)
            raise

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: float | pd.Series = 1.0) -> None:
        """Learn the rows of a DataFrame, in order; `w` is the weight of all or of each."""
        frame = dataframe.into_frame(X)
        rows = self._names.rows(frame, learn=True)
        self._names.check(rows, frame.columns)
        self._learner.learn(rows, np.asarray(y, np.float64), checked_weights(w, len(frame)))

    @property
    def weights(self) -> dict[Hashable, float]:
        """The weight of each feature by its name, or by its number if names are hashed: the linear part."""
        return self._names.weights(self._learner)

    @overload
    def predict_one(
        self,
        x: dict[Hashable, float],
        *,
        with_interval: Literal[False] = False,
        confidence_level: float = 0.95,
    ) -> float: ...
    @overload
    def predict_one(
        self, x: dict[Hashable, float], *, with_interval: Literal[True], confidence_level: float = 0.95
    ) -> conf.Interval: ...
    def predict_one(
        self, x: dict[Hashable, float], *, with_interval: bool = False, confidence_level: float = 0.95
    ) -> float | conf.Interval:
        """The prediction; `with_interval`, as River's conformal regressors have it, a `river.conf.Interval`."""
        row = self._names.row(x, learn=False)
        try:
            scores = self._learner.predict(row)
            if with_interval:
                return conf.Interval(*self._learner.interval(scores, confidence_level, row)[0].tolist())
            return float(self._learner.loss.link(scores)[0])
        except ValueError:
            self._names.check(row, x)
            raise

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """A prediction for each row."""
        frame = dataframe.into_frame(X)
        values = self._predict(self._names.rows(frame, learn=False))
        return dataframe.to_native_series(values, name=None, like=frame)

    def _predict(self, rows: _native.Rows) -> Floats:
        return self._learner.loss.link(self._learner.predict(rows))
