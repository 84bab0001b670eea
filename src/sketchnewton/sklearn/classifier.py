"""Classes: their coding for the learners, weights, probabilities."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import (
    _check_partial_fit_first_call,
    check_classification_targets,
    unique_labels,
)

from sketchnewton.core.parameters import checked
from sketchnewton.core.types import Array, Floats
from sketchnewton.learners.calibration import ClassCalibration
from sketchnewton.sklearn.base import OnlineEstimator, mean_loss

if TYPE_CHECKING:
    from sketchnewton.sklearn.base import Matrix

_BALANCED = (
    "class_weight 'balanced' is not supported for partial_fit. In order to use 'balanced' weights, use "
    "compute_class_weight('balanced', classes=classes, y=y). In place of y you can use a large enough "
    "sample of the full training set target to properly estimate the class frequency distributions. Pass "
    "the resulting weights as the class_weight parameter."
)


class OnlineClassifier(ClassifierMixin, OnlineEstimator):  # type: ignore[misc]
    """One learner for two classes, one per class against the rest for more."""

    class_weight: object
    classes_: Array
    _calibration: ClassCalibration | None = None

    def fit(self, X: object, y: object, sample_weight: ArrayLike | None = None) -> Self:
        """Learn `X` in `max_iter` passes, forgetting what was learned before unless `warm_start`.

        One pass without `shuffle` gives the same model, bit for bit, as `partial_fit` in batches of any size.
        """
        rows, labels = self._validated(X, y, reset=True)
        check_classification_targets(labels)
        weights = self._validated_weights(sample_weight, len(labels), may_be_zero=False)
        classes = unique_labels(labels)  # text as text, whatever it came in
        if len(classes) < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {len(classes)} class")
        if self.warm_start and hasattr(self, "_learners"):
            if not np.array_equal(classes, self.classes_):
                raise ValueError(
                    "warm_start can only be used where `y` has the same classes as in the previous call to fit. "
                    f"Previously got {self.classes_}, `y` has {classes}"
                )
        else:
            self.classes_ = classes
            self._start()
        codes = self._known_codes(labels, self.classes_)
        by_class = compute_class_weight(self.class_weight, classes=classes, y=labels)
        return self._passes(rows, codes, self._weighted(codes, weights, by_class), labels)

    def partial_fit(
        self, X: object, y: object, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows, in order. `classes`, all there will ever be, is needed at the first call.

        A later call may add classes by naming them beside those that there are. A new class knows nothing of the
        rows before; what was learned of the others stays.
        """
        if (
            hasattr(self, "_learners")
            and self._is_plain(X)
            and (classes is None or np.array_equal(classes, self.classes_))
            and self.class_weight is None
            and sample_weight is None
            and type(y) is np.ndarray
            and y.shape == X.shape[:1]
            and (codes := _codes(y, self.classes_)) is not None
        ):
            try:  # a learner checks a batch before it learns any of it
                self._learn(X, codes, None)
                return self
            except ValueError:
                pass  # scikit-learn says what is wrong, in its own words
        return self._validate_and_learn(X, y, classes, sample_weight)

    def _validate_and_learn(
        self, X: object, y: object, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> Self:
        first = not hasattr(self, "_learners")
        if first and isinstance(self.class_weight, str):
            raise ValueError(_BALANCED)
        if first and hasattr(self, "classes_"):
            del self.classes_  # of a call that failed
        rows, labels = self._validated(X, y, reset=first)
        weights = self._validated_weights(sample_weight, len(labels), may_be_zero=True)
        more = None if first or classes is None else self._more_classes(classes)
        if more is None:
            _check_partial_fit_first_call(self, classes)
        codes = self._known_codes(labels, self.classes_ if more is None else more)
        if more is not None:
            self._add_classes(more)
        if first:
            if len(self.classes_) < 2:
                n = len(self.classes_)
                raise ValueError(f"The number of classes has to be greater than one; got {n} class")
            self._start()
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        self._learn(rows, codes, self._weighted(codes, weights, by_class))
        return self

    def decision_function(self, X: object) -> Floats:
        """The learner's score: one per row for two classes, else one per row and class."""
        scores = self._scores(X)
        return scores[:, 0] if self._n_outputs() == 1 else scores

    def predict(self, X: object) -> Array:
        """The class with the largest score."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: object) -> Floats:
        """The probability of each class; none is 0 or 1.

        Those of the default learner, `NewtonBank`, are calibrated while it learns: among rows of which they say
        70%, about 70% are of that class. Of others, with the logistic loss: 1/(1 + exp(−score)); for more than two
        classes divided by their sum. With other losses: squared loss on labels ±1 estimates 2P − 1, so
        P = (1 + score)/2, and the hinge losses' margins are read the same way; these numbers are moved to the
        nearest point where they are probabilities (not negative, of sum one) and then, by Laplace's rule for n
        rows and K classes, to (nP + 1)/(n + K). Classes that are learned by softmax have its probabilities.
        """
        scores = self._scores(X)
        if self._calibration is not None:
            return self._calibration.probabilities(scores)
        return max(self._learners, key=lambda learner: learner.rows_seen).probabilities(scores)

    def predict_log_proba(self, X: object) -> Floats:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def onnx_parser(self) -> None:
        """What `skl2onnx.to_onnx` asks for before the others; None: nothing special."""
        from sketchnewton.sklearn import onnx_pipeline  # few programs need it

        onnx_pipeline.register(type(self))

    @property
    def coef_(self) -> Floats:
        """The weights of the linear part: (1, features) for two classes, (classes, features) for more."""
        return self._linear[0]

    @property
    def intercept_(self) -> Floats:
        """The constants: one for two classes, else one per class."""
        return self._linear[1]

    def _by_softmax(self) -> bool:
        """Are the classes' scores those of one softmax?"""
        return False

    def _n_learners(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _known_codes(self, y: Array, classes: Array) -> NDArray[np.intp]:
        """The position of each label among the classes, or an error that names those that are not there."""
        codes = _codes(y, classes)
        if codes is not None:
            return codes
        check_classification_targets(y)
        known = set(classes.tolist())
        unknown = sorted({label for label in y.tolist() if label not in known}, key=str)
        raise ValueError(f"The target label(s) {unknown} in y do not exist in the initial classes {classes}")

    def _more_classes(self, classes: ArrayLike) -> Array | None:
        """The classes if they are those that there are and more, else None."""
        wanted = unique_labels(np.asarray(classes))
        old = _codes(self.classes_, wanted)
        return wanted if old is not None and len(wanted) > len(self.classes_) else None

    def _add_classes(self, classes: Array) -> None:
        """One more learner for each new class. Two classes shared one: its mirror image is that of the first."""
        if self._n_learners() != self._n_outputs():
            raise ValueError("classes cannot be added: one learner has all of them")
        olds, signs = list(self._learners), list(self._signs)
        if len(olds) == 1:
            olds, signs = [copy.deepcopy(olds[0]), olds[0]], [-1.0, 1.0]
        places = self._known_codes(self.classes_, classes).tolist()
        self.classes_ = classes
        new = {k: self._new_learner(self._seed) for k in range(len(classes)) if k not in places}
        known = dict(zip(places, zip(olds, signs, strict=True), strict=True))
        pairs = [known[k] if k in known else (new[k], 1.0) for k in range(len(classes))]
        self._learners = [learner for learner, _ in pairs]
        self._signs = [sign for _, sign in pairs]
        self._calibration = self._new_calibration()
        self._weights.clear()

    def _weighted(self, codes: Array, weights: Floats | None, by_class: Floats) -> Floats | None:
        if (by_class == 1.0).all():
            return weights
        return np.asarray(by_class[codes] if weights is None else weights * by_class[codes])

    def _learn_targets(self, X: Matrix, targets: Array, weights: Floats | None) -> float:
        total = 0.0
        scores = []
        for k, learner in enumerate(self._learners, start=len(self._learners) == 1):
            side = self._signs[k] if len(self._learners) > 1 else 1.0
            signs = np.where(targets == k, side, -side)
            scores.append(learner.learn(X, signs, weights))
            total += mean_loss(learner.loss.value(scores[-1], signs), weights)
        if self._calibration is not None:
            self._calibration.learn(np.stack(scores, axis=1) * self._signs, targets, weights)
        return total / len(self._learners)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.class_weight, Mapping):
            for name, weight in self.class_weight.items():
                checked(f"class_weight[{name!r}]", weight)
        elif not (
            self.class_weight is None
            or (isinstance(self.class_weight, str) and self.class_weight == "balanced")
        ):
            raise ValueError(
                f"class_weight={self.class_weight!r} is invalid: must be a dict, 'balanced' or None"
            )

    def _start(self) -> None:
        super()._start()
        self._calibration = self._new_calibration()

    def _new_calibration(self) -> ClassCalibration | None:
        """Of several learners whose probabilities are calibrated, together."""
        first = self._learners[0]
        return ClassCalibration(first.loss) if len(self._learners) > 1 and first.calibrates else None

    def _stratify(self, targets: Array) -> Array | None:
        return targets


def _codes(y: Array, classes: Array) -> NDArray[np.intp] | None:
    """The position of each label among the classes; None if one is not there."""
    if not (y.dtype.kind == classes.dtype.kind == "U" or {y.dtype.kind, classes.dtype.kind} <= set("biuf")):
        places = {label: place for place, label in enumerate(classes.tolist())}  # equal labels of any type
        codes = np.array([places.get(label, -1) for label in y.tolist()], np.intp)
        return None if (codes < 0).any() else codes
    if len(classes) == 2:
        codes = (y == classes[1]).astype(np.intp)
    else:
        codes = np.searchsorted(classes, y)
        codes[codes == len(classes)] = 0
    return codes if (classes[codes] == y).all() else None
