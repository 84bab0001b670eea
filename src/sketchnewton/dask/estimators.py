"""SketchedNewtonClassifier and SketchedNewtonRegressor on Dask collections."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Self

import dask
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sketchnewton.core.types import Array, np
from sketchnewton.dask.training import Blocks, blocks_of, is_collection, loaded, trained, with_labels
from sketchnewton.evaluation.metrics import Answers, measure
from sketchnewton.model import Model, shards

if TYPE_CHECKING:
    import pandas as pd

    from sketchnewton.core.types import ArrayLike
    from sketchnewton.dask.training import Block, Collection, Column
    from sketchnewton.model.shards import BankParameters

__all__ = ["SketchedNewtonClassifier", "SketchedNewtonRegressor"]


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """A `Model` that shards of Dask collections train."""

    rounds: int
    shards: int | None
    loss: str
    sketch_size: int | None
    clip: float | None
    fit_intercept: bool
    dtype: str

    model_: Model
    n_features_in_: int

    @abstractmethod
    def _new_model(self, blocks: Blocks, classes: ArrayLike | None) -> Model:
        """A model that has learned nothing."""

    def fit(self, X: Collection, y: Column | str | None = None, sample_weight: Column | None = None) -> Self:
        """Learn all rows, forgetting what was learned before.

        X is a Dask array with dense or sparse blocks, a DataFrame or a bag of records; y is cut into the same
        blocks, or the name of a column of the DataFrame or key of the records.
        """
        blocks = blocks_of(X, y, sample_weight)
        return self._train(X, blocks, self._new_model(blocks, None))

    def _partial_fit(
        self, X: Collection, y: Column | str | None, classes: ArrayLike | None, sample_weight: Column | None
    ) -> Self:
        blocks = blocks_of(X, y, sample_weight)
        return self._train(X, blocks, getattr(self, "model_", None) or self._new_model(blocks, classes))

    def _train(self, X: Collection, blocks: Blocks, base: Model) -> Self:
        self.model_ = trained(base, blocks, self.shards, self.rounds)
        if hasattr(X, "shape") and len(X.shape) == 2:
            self.n_features_in_ = int(X.shape[1])
        return self

    def predict(self, X: object) -> Collection | Column | Array:
        """The prediction for each row: of a Dask collection, another one of the same kind."""
        check_is_fitted(self, "model_")
        kind = np.asarray(self.model_.classes).dtype if self.model_.classes else np.dtype(np.float64)
        return self._each(X, "predict", kind, None)

    def test(
        self,
        X: Collection | Block,
        y: Column | Iterable[object] | None = None,
        sample_weight: Column | ArrayLike | None = None,
    ) -> dict[str, float]:
        """Mean loss and all metrics that apply to rows whose labels are known; nothing is learned.

        Blocks are predicted in parallel; predictions and labels, not rows, come to the client.
        """
        check_is_fitted(self, "model_")
        if not is_collection(X):
            records, labels = with_labels(X, y)
            return self.model_.test(records, labels, sample_weight)
        blocks = blocks_of(X, y, sample_weight)
        model = dask.delayed(self.model_.to_bytes())
        tests = [dask.delayed(_tested)(model, *part) for part in zip(*blocks, strict=True)]
        found = [part for part in dask.compute(*tests) if part is not None]
        if not found:
            raise ValueError("no records to test")
        rows, importance, losses, answers = zip(*found, strict=True)
        mean = float(np.dot(importance, losses) / sum(importance)) if sum(importance) else float("nan")
        return {"rows": sum(rows), "loss": mean, **measure(_joined(list(answers)))}

    def _parameters(self) -> BankParameters:
        size: BankParameters = {} if self.sketch_size is None else {"sketch_size": self.sketch_size}
        return {
            **size,
            "loss": self.loss,
            "clip": self.clip,
            "intercept": self.fit_intercept,
            "dtype": self.dtype,
        }

    def _each(
        self, X: object, method: str, dtype: np.dtype[np.generic], columns: int | None
    ) -> Collection | Column | Array:
        """What the model's method gives for each block."""
        if not is_collection(X):
            return getattr(self.model_, method)(X)
        model = self.model_.to_bytes()
        if hasattr(X, "numblocks"):
            rows = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
            meta = np.empty((0,) if columns is None else (0, 0), dtype)
            if columns is None:
                return rows.map_blocks(_answers, model, method, dtype=dtype, drop_axis=1, meta=meta)
            shape = (rows.chunks[0], (columns,))
            return rows.map_blocks(_answers, model, method, dtype=dtype, chunks=shape, meta=meta)
        if hasattr(X, "divisions"):
            import pandas as pd

            names = self.model_.classes
            empty = pd.Series(dtype=dtype) if columns is None else pd.DataFrame(columns=names, dtype=float)
            return X.map_partitions(_frame, model, method, names if columns else None, meta=empty)
        return X.map_partitions(_listed, model, method)


class SketchedNewtonClassifier(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """Linear classification of Dask collections: shards learn in parallel, and are merged.

    Parameters
    ----------
    rounds : int, default=1
        How often shards are merged, and continue from what all have learned. One, or sixteen and more, are good
        choices (docs/merging.md). X is read once per round: `persist` it. Before eight or more rounds of a new
        model one task learns 500 rows, and shards begin with that.
    shards : int, default=None
        How many learn at a time; None: as many as the cluster has cores. The same number gives the same model.
    loss, sketch_size, clip, fit_intercept, dtype :
        As those of `sketchnewton.NewtonBank`; sketch_size=None is its default.

    Attributes
    ----------
    model_ : sketchnewton.Model
        What was learned: `model_.save(path)` writes what `skn predict` and all others open.
    classes_ : array
        The labels, in the order of the columns of `predict_proba`.

    Rows must not be ordered by their label: a shard that sees one class alone has nothing to learn.
    """

    classes_: Array

    def __init__(
        self,
        *,
        rounds: int = 1,
        shards: int | None = None,
        loss: str = "logistic",
        sketch_size: int | None = None,
        clip: float | None = None,
        fit_intercept: bool = True,
        dtype: str = "float32",
    ) -> None:
        self.rounds = rounds
        self.shards = shards
        self.loss = loss
        self.sketch_size = sketch_size
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.dtype = dtype

    def partial_fit(
        self,
        X: Collection,
        y: Column | str | None = None,
        classes: ArrayLike | None = None,
        sample_weight: Column | None = None,
    ) -> Self:
        """Learn from more rows. `classes`, all there will ever be, may be given at the first call."""
        return self._partial_fit(X, y, classes, sample_weight)

    def predict_proba(self, X: object) -> Collection | Array:
        """The probability of each class, a column per class in the order of `classes_`."""
        check_is_fitted(self, "model_")
        return self._each(X, "predict_proba", np.dtype(np.float64), len(self.classes_))

    def score(
        self,
        X: Collection | Block,
        y: Column | Iterable[object],
        sample_weight: Column | ArrayLike | None = None,
    ) -> float:
        """The share of rows whose class is right."""
        return 1.0 - self.test(X, y, sample_weight)["error"]

    def _new_model(self, blocks: Blocks, classes: ArrayLike | None) -> Model:
        if classes is None:
            seen = dask.compute(
                *(dask.delayed(_classes)(r, y) for r, y in zip(blocks.records, blocks.labels, strict=True))
            )
            seen = [part for part in seen if len(part)]
            if not seen:
                raise ValueError("X has no rows: there is nothing to learn")
            classes = np.unique(np.concatenate(seen))
        self.classes_ = np.asarray(classes)
        return shards.new_model(self.classes_.tolist(), **self._parameters())


class SketchedNewtonRegressor(RegressorMixin, _Estimator):  # type: ignore[misc]
    """Linear regression on Dask collections: shards learn in parallel, and are merged.

    Parameters and attributes are those of `SketchedNewtonClassifier`; `loss` is "squared", "absolute",
    "huber:1.0", "quantile:0.9" or, for counts, "poisson".
    """

    def __init__(
        self,
        *,
        rounds: int = 1,
        shards: int | None = None,
        loss: str = "squared",
        sketch_size: int | None = None,
        clip: float | None = None,
        fit_intercept: bool = True,
        dtype: str = "float32",
    ) -> None:
        self.rounds = rounds
        self.shards = shards
        self.loss = loss
        self.sketch_size = sketch_size
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.dtype = dtype

    def partial_fit(
        self, X: Collection, y: Column | str | None = None, sample_weight: Column | None = None
    ) -> Self:
        """Learn from more rows."""
        return self._partial_fit(X, y, None, sample_weight)

    def score(
        self,
        X: Collection | Block,
        y: Column | Iterable[object],
        sample_weight: Column | ArrayLike | None = None,
    ) -> float:
        """R², the share of the labels' variance that predictions explain."""
        return self.test(X, y, sample_weight)["r2"]

    def _new_model(self, blocks: Blocks, classes: ArrayLike | None) -> Model:
        return shards.new_model(**self._parameters())


def _classes(records: Block, labels: Iterable[object] | None) -> Array:
    _, found = with_labels(records, labels)
    if found is None:
        raise ValueError("labels are missing: give y, or the name of the column or key that has them")
    values = np.asarray(found)
    if any(_is_missing(value) for value in (values.tolist() if values.dtype.kind in "fO" else ())):
        raise ValueError("there are rows without a label: drop them")
    return np.unique(values)


def _is_missing(label: object) -> bool:
    """None, NaN, or the missing value of pandas."""
    return (
        label is None
        or type(label).__name__ in ("NAType", "NaTType")
        or (isinstance(label, float) and np.isnan(label))
    )


def _answers(records: object, model: bytes, method: str) -> Array:
    answers: Array = getattr(loaded(model), method)(records)
    return answers


def _frame(
    frame: pd.DataFrame, model: bytes, method: str, names: list[Hashable] | None
) -> pd.Series | pd.DataFrame:
    import pandas as pd

    found = getattr(loaded(model), method)(frame)
    return pd.Series(found, frame.index) if names is None else pd.DataFrame(found, frame.index, names)


def _listed(records: Iterable[object], model: bytes, method: str) -> list[object]:
    answers: list[object] = getattr(loaded(model), method)(list(records)).tolist()
    return answers


def _tested(
    model: bytes, records: Block, labels: Iterable[object] | None, weights: ArrayLike | None
) -> tuple[int, float, float, Answers] | None:
    rest, known = with_labels(records, labels)
    if known is not None and len(known) == 0:
        return None
    score, answers = loaded(model).answers(rest, known, weights)
    return score.rows, score.weight, score.mean_loss, answers


def _joined(parts: list[Answers]) -> Answers:
    first = parts[0]
    known = None if first.probabilities is None else np.concatenate([part.probabilities for part in parts])
    return Answers(
        np.concatenate([part.predictions for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.weights for part in parts]),
        first.kind,
        known,
    )
