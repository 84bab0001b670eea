"""What AdaGrad's learners share: the two forms of ADA section 2, penalties, several classes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from sketchnewton import _native
from sketchnewton.core.parameters import checked
from sketchnewton.core.state import Vector, zeros
from sketchnewton.core.types import Floats, Integers, np
from sketchnewton.learners.class_learner import ClassLearner, checked_class_count
from sketchnewton.learners.rows import checked_scan
from sketchnewton.losses import Loss

FORMS = ("mirror_descent", "dual_averaging")
PENALTIES = (None, "l1", "l2", "elasticnet")


@dataclass(frozen=True)
class Composite:
    """η, σ, φ(β) = l1·‖β‖₁ + ½·l2·‖β‖², and which of the two forms."""

    eta: float
    sigma: float
    l1: float
    l2: float
    averaging: bool

    @property
    def plain(self) -> bool:
        """Mirror descent without a penalty."""
        return not (self.averaging or self.l1 or self.l2)

    def times(self, t: int) -> float:
        """How often φ counts in round t: mirror descent pays it round by round, averaging all at once."""
        return self.eta * t if self.averaging else self.eta

    def native(self, of_data: bool = False) -> _native.Composite:
        """The same for a kernel."""
        return _native.composite(self.eta, self.sigma, self.l1, self.l2, self.averaging, of_data)


def checked_composite(
    eta: float, sigma: float, penalty: str | None, strength: float, l1_ratio: float, form: str
) -> Composite:
    """Return the parameters in the kernels' terms, or say what is wrong with them."""
    if penalty not in PENALTIES:
        raise ValueError(f"penalty={penalty!r} is invalid: must be one of {', '.join(map(repr, PENALTIES))}")
    if form not in FORMS:
        raise ValueError(f"form={form!r} is invalid: must be one of {', '.join(map(repr, FORMS))}")
    size = checked("penalty_strength", strength)
    share = checked("l1_ratio", l1_ratio)
    if share > 1:
        raise ValueError(f"l1_ratio={l1_ratio!r} is invalid: must be <= 1")
    share = {None: 0.0, "l1": 1.0, "l2": 0.0, "elasticnet": share}[penalty]
    size = 0.0 if penalty is None else size
    return Composite(
        eta=checked("eta", eta, positive=True),
        sigma=checked("sigma", sigma, positive=True),
        l1=size * share,
        l2=size * (1.0 - share),
        averaging=form == "dual_averaging",
    )


class CompositeLearner(ClassLearner):
    """A learner of one real prediction, or of a score for each of several classes.

    With `classes=K` the loss is the cross-entropy of the softmax of K scores, and `weights` is d × K.
    """

    _composite: Composite

    def __init__(self, *args: object, classes: int | None, **parameters: object) -> None:
        self.classes = classes
        self.softmax = classes is not None
        super().__init__(*args, classes=classes, **parameters)
        self._state["intercept"] = zeros((self.outputs, 3))  # value, root of its second moment, −Σg

    @property
    def title(self) -> str:
        """The name of its kind, and how many classes there are."""
        return f"{super().title}, softmax of {self.classes} classes" if self.softmax else super().title

    @property
    def intercepts(self) -> Floats:
        """The constants that are added to the scores, one per class."""
        values: Floats = self._state["intercept"][:, 0].copy()
        return values

    def decision_function(self, X: object) -> Floats:
        """wᵀx + b for each row and class: what `predict` gives before it is clipped."""
        rows = self._rows(X)
        checked_scan(rows)
        scores = np.empty(self._shape(len(rows)))
        with self._lock:
            self._predict_scores(rows, scores)
        return scores

    @abstractmethod
    def _predict_scores(self, rows: _native.Rows, out: Vector) -> None:
        """The same as `_predict`, without a bound."""

    @abstractmethod
    def _learned_matrix(self) -> tuple[Integers, Floats]:
        """The features learned from, in any order, and the weights of each, class by class."""

    def _learned_weights(self) -> tuple[Integers, Floats]:
        features, values = self._learned_matrix()
        return features, (values[:, 0] if self.classes is None else values)


def checked_classes(classes: int | None, loss: Loss, clip: float | str | None, form: str) -> int | None:
    """Return the number of classes, or say what does not go together."""
    if clip is not None and form == "dual_averaging":
        raise ValueError(f"clip={clip!r} is invalid: dual averaging has no projection onto |wᵀx| <= C")
    if classes is None:
        return None
    if not loss.softmax:
        raise ValueError(f"loss={loss.spec!r} is invalid: several classes need 'logistic', the cross-entropy")
    if clip is not None:
        raise ValueError(f"clip={clip!r} is invalid: several classes have no projection onto |wᵀx| <= C")
    return checked_class_count(classes)
