"""The learners as River models: dictionaries in, predictions out (extra `river`).

>>> from river import datasets, evaluate, metrics
>>> from sketchnewton.river import SketchedNewtonClassifier
>>> model = SketchedNewtonClassifier()
>>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.87
True
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

try:
    from river import base
    from river.utils import dataframe
except ImportError as error:
    raise ImportError(
        f"sketchnewton.river needs River: pip install 'sketchnewton[river]' ({error})"
    ) from error

from sketchnewton import _native
from sketchnewton.core.types import Floats
from sketchnewton.learners import Learner
from sketchnewton.learners.default_learner import newton_learner
from sketchnewton.learners.probabilities import class_probabilities_of_row
from sketchnewton.learners.rows import checked_scan
from sketchnewton.model import Model

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ModelClassifier", "ModelRegressor", "SketchedNewtonClassifier", "SketchedNewtonRegressor"]


class _Names:
    """Names of features into indices: hashed, or numbered as they appear."""

    def __init__(self, hashing: int | None) -> None:
        if hashing is not None and not 1 <= hashing <= 30:
            raise ValueError(f"hashing={hashing!r} is invalid: must be None or a number of bits from 1 to 30")
        self.bits = hashing
        self.names: list[Hashable] = []  # the name of each number
        self._index = _native.NameIndex()

    def row(self, x: dict[Any, Any], *, learn: bool) -> _native.Rows:
        """One dictionary as a row; without `learn` names never seen are left out: their weight is zero."""
        if self.bits is not None:
            return _native.hashed_row(x, self.bits)
        return self._index.row(x, self.names, learn)

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

    def __getstate__(self) -> dict[str, object]:
        return {"bits": self.bits, "names": self.names}  # the index is made from the names again

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _index=_native.NameIndex())


class _Model(base.Base, ABC):
    """What both models share. River wants each parameter to be an attribute of its name."""

    _classes: ClassVar[bool]

    def __init__(
        self,
        *,
        sketch: str | None = None,
        sketch_size: int | None = None,
        alpha: float | None = None,
        loss: str = "squared",
        clip: float | str | None = "auto",
        curvature: float | None = None,
        curvature_weight: float | str | None = None,
        diagonal: bool | None = None,
        intercept: bool = True,
        hashing: int | None = None,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        self.sketch = sketch
        self.sketch_size = sketch_size
        self.alpha = alpha
        self.loss = loss
        self.clip = clip
        self.curvature = curvature
        self.curvature_weight = curvature_weight
        self.diagonal = diagonal
        self.intercept = intercept
        self.hashing = hashing
        self.dtype = dtype
        self.seed = seed
        self._names = _Names(hashing)
        self._new_learner()  # wrong parameters are refused now
        self._start()

    @abstractmethod
    def _start(self) -> None:
        """What a model that has seen nothing holds."""

    def _new_learner(self) -> Learner:
        return newton_learner(
            classes=self._classes,
            sketch=self.sketch,
            sketch_size=self.sketch_size,
            alpha=self.alpha,
            loss=self.loss,
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
    sketch, sketch_size, alpha, loss, clip, curvature, curvature_weight, diagonal, dtype
        As those of `sketchnewton.SketchedNewtonClassifier`.
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
    >>> model = SketchedNewtonClassifier(sketch="oja", loss="logistic")
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

    def learn_one(self, x: dict[Any, Any], y: base.typing.ClfTarget) -> None:
        """Learn one example."""
        row = self._names.row(x, learn=True)
        self._enter(y)
        for label, learner in self._learners.items():
            learner.learn_row(row, 1.0 if y == label else -1.0)

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows of a DataFrame, in order."""
        rows = self._names.rows(dataframe.into_frame(X), learn=True)
        checked_scan(rows)
        labels = list(y)
        starts = dict.fromkeys(self._learners, 0)  # a label is learned from its first row on
        for i, label in enumerate(labels):
            self._enter(label)
            for new in self._learners.keys() - starts.keys():
                starts[new] = i
        for label, learner in self._learners.items():
            begin, end = starts[label], len(labels)
            signs = np.array([1.0 if other == label else -1.0 for other in labels[begin:]])
            learner.learn(rows.part(begin, end), signs)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: object) -> dict[base.typing.ClfTarget, float]:
        """The probability of each label seen so far."""
        if not self._learners:
            return {}
        row = self._names.row(x, learn=False)
        scores = [float(learner.decision_function(row)[0]) for learner in self._learners.values()]
        if not self._boolean and len(scores) == 1:
            return dict.fromkeys(self._learners, 1.0)
        proba = class_probabilities_of_row(next(iter(self._learners.values())).loss, scores)
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

    def _enter(self, label: base.typing.ClfTarget) -> None:
        """Make sure that there is a learner for this label."""
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


class SketchedNewtonRegressor(_Model, base.MiniBatchRegressor):
    """Linear regression with second-order steps; targets may have any scale.

    `learn_many` gives the same model, bit for bit, as `learn_one` row by row. Before anything is learned the
    prediction is 0; later it lies within the range of the targets seen (`clip="auto"`).

    Parameters
    ----------
    sketch, sketch_size, alpha, loss, clip, curvature, curvature_weight, diagonal, dtype
        As those of `sketchnewton.SketchedNewtonRegressor`.
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

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn one example."""
        self._learner.learn_row(self._names.row(x, learn=True), float(y))

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows of a DataFrame, in order."""
        rows = self._names.rows(dataframe.into_frame(X), learn=True)
        self._learner.learn(rows, np.asarray(y, np.float64))

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The prediction."""
        return float(self._predict(self._names.row(x, learn=False))[0])

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """A prediction for each row."""
        frame = dataframe.into_frame(X)
        values = self._predict(self._names.rows(frame, learn=False))
        return dataframe.to_native_series(values, name=None, like=frame)

    def _predict(self, rows: _native.Rows) -> Floats:
        return self._learner.loss.link(self._learner.predict(rows))


class ModelRegressor(base.Regressor):
    """A `sketchnewton.Model` as a River regressor: the same records, labels and predictions as everywhere else.

    `learn_one` learns as `skn train` does, `predict_one` predicts what `skn predict` prints.

    Parameters
    ----------
    model
        The model, new or opened by `sketchnewton.load`.

    Examples
    --------
    >>> from sketchnewton import Model
    >>> from sketchnewton.river import ModelRegressor
    >>> model = ModelRegressor(Model())
    >>> for _ in range(50):
    ...     model.learn_one({"city": "Rome"}, 20.0)
    ...     model.learn_one({"city": "Oslo"}, 5.0)
    >>> model.predict_one({"city": "Rome"}) > model.predict_one({"city": "Oslo"})
    True
    """

    def __init__(self, model: Model) -> None:
        if model.classes is not None:
            raise ValueError("the model predicts classes: use ModelClassifier")
        self.model = model

    def learn_one(self, x: dict[Any, Any], y: float, w: float = 1.0) -> None:
        """Learn one example of weight `w`."""
        _check_names(self.model, x)
        self.model.learn(x, [y], [w])

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The prediction."""
        _check_names(self.model, x)
        return float(self.model.predict(x)[0])

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> ModelRegressor:
        """A model of the same kind that has learned nothing, unless `include_attributes`."""
        return ModelRegressor(_cloned(self.model, new_params, include_attributes))


class ModelClassifier(base.Classifier):
    """A `sketchnewton.Model` of two or more classes as a River classifier.

    Parameters
    ----------
    model
        The model, new or opened by `sketchnewton.load`; its target has classes.

    Examples
    --------
    >>> from sketchnewton import Model
    >>> from sketchnewton.model import Signs
    >>> from sketchnewton.river import ModelClassifier
    >>> model = ModelClassifier(Model(target=Signs(names=["ham", "spam"])))
    >>> for _ in range(20):
    ...     model.learn_one({"words": ["win", "money"]}, "spam")
    ...     model.learn_one({"words": ["see", "you"]}, "ham")
    >>> model.predict_one({"words": ["money"]})
    'spam'
    """

    def __init__(self, model: Model) -> None:
        if model.classes is None:
            raise ValueError("the model predicts a number: use ModelRegressor, or give the model classes")
        self.model = model

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: base.typing.ClfTarget, w: float = 1.0) -> None:
        """Learn one example of weight `w`."""
        _check_names(self.model, x)
        self.model.learn(x, [y], [w])

    def predict_one(self, x: dict[Any, Any], **kwargs: object) -> Any:
        """The label of the best class."""
        _check_names(self.model, x)
        return self.model.predict(x).tolist()[0]

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: object) -> dict[base.typing.ClfTarget, float]:
        """The probability of each class."""
        _check_names(self.model, x)
        return dict(zip(self.model.classes or (), self.model.predict_proba(x)[0].tolist(), strict=True))

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> ModelClassifier:
        """A model of the same kind that has learned nothing, unless `include_attributes`."""
        return ModelClassifier(_cloned(self.model, new_params, include_attributes))


def _cloned(model: Model, new_params: dict[str, Any] | None, include_attributes: bool) -> Model:
    if new_params and "model" in new_params:
        return cast("Model", new_params["model"])
    return copy.deepcopy(model) if include_attributes else Model.like(model.to_archive()[0])


def _check_names(model: Model, x: dict[Any, Any]) -> None:
    """A feature that the model takes for a label would be left out."""
    taken = model.columns.label_among(x)
    if taken is not None:
        raise ValueError(f"the record has {taken!r}, which the model takes for the label: rename the feature")
