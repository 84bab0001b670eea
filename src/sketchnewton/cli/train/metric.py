"""A metric of `skn test` for the progressive table: of all predictions made before their rows were learned."""

from __future__ import annotations

from sketchnewton.cli.io.console import number
from sketchnewton.cli.io.errors import usage_error
from sketchnewton.core.batch import Batch, View
from sketchnewton.core.types import Floats, np
from sketchnewton.evaluation.metrics import METRICS
from sketchnewton.model import Model

__all__ = ["ProgressiveMetric"]


class ProgressiveMetric:
    """The rows of a pass so far: a prediction (or one per class), a label and a weight each."""

    def __init__(self, model: Model, name: str) -> None:
        self.name = name
        self._model = model
        self.begin()
        several = model.learner.classes is not None
        if several or model.target.classes is not None:  # numbers may be either
            kind, words = ("classes", "several classes") if several else ("signs", "two classes")
            if kind not in METRICS[name][1]:
                known = ", ".join(known for known, (_, kinds) in METRICS.items() if kind in kinds)
                raise usage_error(f"--metric {name} is not one of {words}, which have {known}")

    def begin(self) -> None:
        """A new pass."""
        self._predictions: list[Floats] = []
        self._labels: list[Floats] = []
        self._weights: list[Floats] = []

    def add(self, batch: Batch, predictions: View) -> None:
        """Rows that were predicted, and learned since."""
        self._predictions.append(np.array(predictions))
        self._labels.append(batch.labels.copy())
        self._weights.append(np.ones(len(batch)) if batch.weights is None else batch.weights.copy())

    @property
    def shown(self) -> str:
        """The same for people."""
        value = self.value()
        return "-" if value is None else number(value)

    def value(self) -> float | None:
        """The metric of all rows so far; None if these have none, such as an AUC of numbers."""
        if not self._labels:
            return None
        columns = self._predictions, self._labels, self._weights
        for parts in columns:
            parts[:] = [np.concatenate(parts)]
        (predictions,), (labels,), (weights,) = columns
        signs = bool((np.abs(labels) == 1.0).all())
        answers = self._model.judged(predictions, labels, weights, signs=signs)
        metric, kinds = METRICS[self.name]
        found = metric(answers) if answers.kind in kinds else None
        return None if found is None or np.isnan(found) else found
