"""A `sketchnewton.Model` as a River model."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Literal, cast, overload

from river import base, conf

from sketchnewton.model import Model


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

    def learn_one(self, x: dict[Hashable, object], y: float, w: float = 1.0) -> None:
        """Learn one example of weight `w`."""
        _check_names(self.model, x)
        self.model.learn(x, [y], [w])

    @overload
    def predict_one(
        self,
        x: dict[Hashable, object],
        *,
        with_interval: Literal[False] = False,
        confidence_level: float = 0.95,
    ) -> float: ...
    @overload
    def predict_one(
        self, x: dict[Hashable, object], *, with_interval: Literal[True], confidence_level: float = 0.95
    ) -> conf.Interval: ...
    def predict_one(
        self, x: dict[Hashable, object], *, with_interval: bool = False, confidence_level: float = 0.95
    ) -> float | conf.Interval:
        """The prediction; `with_interval` a `river.conf.Interval`, as `SketchedNewtonRegressor` has it."""
        _check_names(self.model, x)
        if with_interval:
            return conf.Interval(*self.model.predict(x, interval=confidence_level)[1][0].tolist())
        return float(self.model.predict(x)[0])

    def clone(
        self, new_params: dict[str, object] | None = None, include_attributes: bool = False
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

    def learn_one(self, x: dict[Hashable, object], y: base.typing.ClfTarget, w: float = 1.0) -> None:
        """Learn one example of weight `w`."""
        _check_names(self.model, x)
        self.model.learn(x, [y], [w])

    def predict_one(self, x: dict[Hashable, object], **kwargs: object) -> base.typing.ClfTarget:
        """The label of the best class."""
        _check_names(self.model, x)
        label: base.typing.ClfTarget = self.model.predict(x).tolist()[0]
        return label

    def predict_proba_one(
        self, x: dict[Hashable, object], **kwargs: object
    ) -> dict[base.typing.ClfTarget, float]:
        """The probability of each class."""
        _check_names(self.model, x)
        labels = cast("list[base.typing.ClfTarget]", self.model.classes)
        return dict(zip(labels, self.model.predict_proba(x)[0].tolist(), strict=True))

    def clone(
        self, new_params: dict[str, object] | None = None, include_attributes: bool = False
    ) -> ModelClassifier:
        """A model of the same kind that has learned nothing, unless `include_attributes`."""
        return ModelClassifier(_cloned(self.model, new_params, include_attributes))


def _cloned(model: Model, new_params: dict[str, object] | None, include_attributes: bool) -> Model:
    if new_params and "model" in new_params:
        return cast("Model", new_params["model"])
    return copy.deepcopy(model) if include_attributes else Model.like(model.to_archive()[0])


def _check_names(model: Model, x: dict[Hashable, object]) -> None:
    """A feature that the model takes for a label would be left out."""
    taken = model.columns.label_among(x)
    if taken is not None:
        raise ValueError(f"the record has {taken!r}, which the model takes for the label: rename the feature")
