"""SketchedNewtonClassifier and SketchedNewtonRegressor as Estimators of pyspark.ml."""

from __future__ import annotations

import base64
import decimal
import functools
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Self, TypeVar, cast

from pyspark import keyword_only
from pyspark.ml import Estimator
from pyspark.ml import Model as SparkModel
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasPredictionCol, HasWeightCol
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable

from sketchnewton.core.types import Floats, np
from sketchnewton.model import Model, shards
from sketchnewton.spark.persistence import Savable
from sketchnewton.spark.records import selected, vectors
from sketchnewton.spark.training import Columns, trained

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = [
    "SketchedNewtonClassificationModel",
    "SketchedNewtonClassifier",
    "SketchedNewtonRegressionModel",
    "SketchedNewtonRegressor",
]


Answering = TypeVar("Answering", bound="_Fitted")


def _param(name: str, doc: str, convert: Callable[[object], object]) -> Param:
    return Param(Params._dummy(), name, doc, typeConverter=convert)


class _Columns(HasFeaturesCol, HasLabelCol, HasPredictionCol, HasWeightCol):
    """The columns that estimators and models share.

    `featuresCol` is a column of ML vectors; "" takes every other column as a feature of its own type.
    """

    probabilityCol = _param(
        "probabilityCol", "probabilities of the classes; '' for none", TypeConverters.toString
    )
    rawPredictionCol = _param(
        "rawPredictionCol", "scores of the classes; '' for none", TypeConverters.toString
    )

    def _features(self) -> str | None:
        return self.getOrDefault("featuresCol") or None

    def _training_columns(self) -> Columns:
        weight = self.getOrDefault("weightCol") if self.isDefined("weightCol") else None
        return Columns(self._features(), self.getOrDefault("labelCol"), weight or None)


class _Estimator(Estimator, _Columns, DefaultParamsReadable, DefaultParamsWritable):
    rounds = _param("rounds", "how often partitions are merged and continue", TypeConverters.toInt)
    partitions = _param("partitions", "how many learn at a time; 0: one per core", TypeConverters.toInt)
    shuffleSeed = _param(
        "shuffleSeed", "of the random order of rows; -1: rows as they come", TypeConverters.toInt
    )
    loss = _param("loss", "the loss to minimise", TypeConverters.toString)
    sketchSize = _param("sketchSize", "directions of curvature to keep; 0: the default", TypeConverters.toInt)
    initialModel = _param(
        "initialModel", "a model to begin with, its bytes in base64", TypeConverters.toString
    )

    def __init__(self, **given: object) -> None:
        super().__init__()
        self._setDefault(
            featuresCol="features",
            labelCol="label",
            predictionCol="prediction",
            probabilityCol="",
            rawPredictionCol="",
            rounds=1,
            partitions=0,
            shuffleSeed=0,
            sketchSize=0,
            initialModel="",
        )
        self._set_given(given)

    def _set_given(self, given: dict[str, object]) -> None:
        begun = given.pop("initialModel", None)
        self._set(**{name: value for name, value in given.items() if value is not None})
        if begun is not None:
            self.setInitialModel(cast("Model | bytes | str", begun))

    def setParams(self, **given: object) -> Self:
        """Set parameters by their names."""
        self._set_given(given)
        return self

    def setInitialModel(self, model: Model | bytes | str) -> Self:
        """Begin with this model: a `sketchnewton.Model`, its `to_bytes()`, or the path of its file."""
        if isinstance(model, str):
            model = Model.load(model)
        data = model if isinstance(model, bytes) else model.to_bytes()
        self._set(initialModel=base64.b64encode(data).decode())
        return self

    def _base(self, frame: DataFrame) -> Model:
        begun = self.getOrDefault("initialModel")
        if begun:
            return Model.from_bytes(base64.b64decode(begun))
        size = self.getOrDefault("sketchSize")
        given = {"sketch_size": size} if size else {}
        return shards.new_model(self._classes(frame), loss=self.getOrDefault("loss"), **given)

    def _classes(self, frame: DataFrame) -> list[Hashable] | None:
        return None

    def _trained(self, frame: DataFrame) -> Model:
        rounds, seed = self.getOrDefault("rounds"), self.getOrDefault("shuffleSeed")
        partitions = self.getOrDefault("partitions")
        for name, value, least in (("rounds", rounds, 1), ("partitions", partitions, 0)):
            if value < least:
                raise ValueError(f"{name}={value} is invalid: must be >= {least}")
        model = trained(
            frame,
            self._base(frame),
            self._training_columns(),
            rounds=rounds,
            partitions=partitions or None,
            seed=None if seed < 0 else seed,
        )
        if not model.learner.rows_seen and frame.isEmpty():
            raise ValueError("the DataFrame has no rows: there is nothing to learn")
        return model

    def _answering(self, fitted: Answering) -> Answering:
        """The fitted model, with the parameters that both have."""
        fitted._resetUid(self.uid)
        answering: Answering = self._copyValues(fitted)
        return answering


class _Fitted(SparkModel, _Columns, Savable):
    """What was learned: `model` is a `sketchnewton.Model`, which `model.save(path)` hands to all others."""

    model: Model

    def __init__(self, model: Model | None = None) -> None:
        super().__init__()
        self._setDefault(
            featuresCol="features",
            labelCol="label",
            predictionCol="prediction",
            probabilityCol="",
            rawPredictionCol="",
        )
        if model is not None:
            self.model = model

    def _transform(self, dataset: DataFrame) -> DataFrame:
        from pyspark.ml.functions import array_to_vector
        from pyspark.sql.types import ArrayType, DoubleType, StringType, StructField, StructType

        features, names = self._features(), self.model.classes
        _, vector = selected(dataset, features, [])
        texts = bool(names) and isinstance((names or [""])[0], str)
        added = {"predictionCol": StringType() if texts else DoubleType()}
        if names:
            added |= {name: ArrayType(DoubleType()) for name in ("probabilityCol", "rawPredictionCol")}
        columns = {param: self.getOrDefault(param) for param in added if self.getOrDefault(param)}
        for column in columns.values():
            if column in dataset.columns:
                raise ValueError(f"column {column!r} is there already: choose another name for the answers")
        fields = [StructField(column, added[param]) for param, column in columns.items()]
        answer = functools.partial(
            _answers,
            data=self.model.to_bytes(),
            features=features,
            vector=vector,
            others=[name for name in self._training_columns()[1:] if name],
            wanted=columns,
        )
        result = dataset.mapInArrow(answer, StructType([*dataset.schema.fields, *fields]))
        for param in ("probabilityCol", "rawPredictionCol"):
            if param in columns:
                result = result.withColumn(columns[param], array_to_vector(columns[param]))
        return result


def _answers(
    batches: Iterator[pa.RecordBatch],
    data: bytes,
    features: str | None,
    vector: bool,
    others: list[str],
    wanted: dict[str, str],
) -> Iterator[pa.RecordBatch]:
    """The batches with columns of predictions; runs on a worker."""
    import pyarrow as pa

    model = Model.from_bytes(data)
    for batch in batches:
        if vector:
            records = vectors(batch.column(batch.schema.get_field_index(features)))
        else:
            table = pa.Table.from_batches([batch])
            records = table.drop_columns([name for name in others if name in table.column_names])
        scores = model.decision_function(records)
        found = {"predictionCol": pa.array(model.answer(scores).tolist())}
        if model.classes:
            both = scores if scores.ndim == 2 else np.column_stack([-scores, scores])
            found["probabilityCol"] = _lists(model.probabilities(scores))
            found["rawPredictionCol"] = _lists(both if scores.ndim == 1 else model.ordered(both))
        if not isinstance((model.classes or [0.0])[0], str):
            found["predictionCol"] = found["predictionCol"].cast(pa.float64())
        arrays = [*batch.columns, *(found[name] for name in wanted)]
        names = [*batch.schema.names, *wanted.values()]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


def _lists(rows: Floats) -> pa.ListArray:
    import pyarrow as pa

    offsets = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, np.ascontiguousarray(rows, np.float64).ravel())


class SketchedNewtonClassifier(_Estimator):
    """Linear classification with nothing to tune, as an Estimator of `pyspark.ml`.

    Partitions learn apart and are merged `rounds` times: one, or sixteen and more, are good choices
    (docs/merging.md). Before eight or more rounds of a new model the driver learns 500 rows, and partitions begin
    with that. Rows are put into a random order of `shuffleSeed` first, because those that come ordered by
    their label leave every partition with one class; -1 leaves them as they come. `featuresCol` is a column of ML
    vectors; "" takes all other columns as features, each of its own type.

    * `labelCol`, `weightCol`: columns of the label and of the importance weight. `predictionCol`,
      `probabilityCol`, `rawPredictionCol`: columns that the fitted model adds.
    * `partitions`: how many learn at a time; 0: one per core. `loss`: "logistic", "squared", "hinge" or
      "squared_hinge". `sketchSize`: directions of the sketch; 0: the default of `NewtonBank`.
    * `initialModel`: a model, or its bytes or file, to continue from.
    """

    @keyword_only
    def __init__(
        self,
        *,
        featuresCol: str = "features",
        labelCol: str = "label",
        weightCol: str | None = None,
        predictionCol: str = "prediction",
        probabilityCol: str = "probability",
        rawPredictionCol: str = "rawPrediction",
        rounds: int = 1,
        partitions: int = 0,
        shuffleSeed: int = 0,
        loss: str = "logistic",
        sketchSize: int = 0,
        initialModel: Model | bytes | str | None = None,
    ) -> None:
        super().__init__(loss=loss, probabilityCol=probabilityCol, rawPredictionCol=rawPredictionCol)
        self._set_given(dict(self._input_kwargs))

    def _classes(self, frame: DataFrame) -> list[Hashable] | None:
        label = self.getOrDefault("labelCol")
        found = [row[0] for row in frame.select(label).distinct().collect()]
        if any(value is None for value in found):
            raise ValueError(f"column {label!r} has rows without a label: drop them")
        if not found:
            raise ValueError("the DataFrame has no rows: there is nothing to learn")
        return sorted(float(value) if isinstance(value, decimal.Decimal) else value for value in found)

    def _fit(self, dataset: DataFrame) -> SketchedNewtonClassificationModel:
        return self._answering(SketchedNewtonClassificationModel(self._trained(dataset)))


class SketchedNewtonRegressor(_Estimator):
    """Linear regression with nothing to tune, as an Estimator of `pyspark.ml`.

    Parameters are those of `SketchedNewtonClassifier`; `loss` is "squared", "absolute", "huber:1.0",
    "quantile:0.9" or, for counts, "poisson".
    """

    @keyword_only
    def __init__(
        self,
        *,
        featuresCol: str = "features",
        labelCol: str = "label",
        weightCol: str | None = None,
        predictionCol: str = "prediction",
        rounds: int = 1,
        partitions: int = 0,
        shuffleSeed: int = 0,
        loss: str = "squared",
        sketchSize: int = 0,
        initialModel: Model | bytes | str | None = None,
    ) -> None:
        super().__init__(loss=loss)
        self._set_given(dict(self._input_kwargs))

    def _fit(self, dataset: DataFrame) -> SketchedNewtonRegressionModel:
        return self._answering(SketchedNewtonRegressionModel(self._trained(dataset)))


class SketchedNewtonClassificationModel(_Fitted):
    """What a SketchedNewtonClassifier has learned; adds predictions, probabilities and scores."""

    @property
    def classes(self) -> list[Hashable]:
        """The labels, in the order of probabilities."""
        return list(self.model.classes or [])


class SketchedNewtonRegressionModel(_Fitted):
    """What a SketchedNewtonRegressor has learned; adds predictions."""
