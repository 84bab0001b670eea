"""Sketches and principal components of a column of ML vectors."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from pyspark import keyword_only
from pyspark.ml import Estimator
from pyspark.ml import Model as SparkModel
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasInputCol, HasOutputCol
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable

from sketchnewton.core import archive
from sketchnewton.core.types import Floats, np
from sketchnewton.sketches import Sketch
from sketchnewton.sketches.blocks import Mergeable
from sketchnewton.sklearn import decomposition
from sketchnewton.spark.persistence import Savable
from sketchnewton.spark.records import selected, tables, vectors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["SketchedPCA", "SketchedPCAModel", "sketch"]

Kind = TypeVar("Kind", bound=Mergeable)


def sketch(frame: DataFrame, make: Callable[[], Sketch], featuresCol: str = "features") -> Sketch:
    """The sketch of a column of ML vectors: `make` makes one for each partition, and they are merged.

    `sketch(frame, lambda: FrequentDirections(50))`. `featuresCol` is the column of `frame` to sketch. The
    certificate holds for all rows.
    """
    return _sketched(frame, make, featuresCol)


def _sketched(frame: DataFrame, make: Callable[[], Kind], column: str) -> Kind:
    chosen, _ = selected(frame, column, [])
    found = chosen.mapInArrow(
        functools.partial(_partition, make=make), "partition int, sketch binary"
    ).collect()
    if not found:
        raise ValueError("the DataFrame has no rows: there is nothing to sketch")
    first, *others = [pickle.loads(row["sketch"]) for row in sorted(found, key=lambda row: row["partition"])]
    whole: Kind = first
    for other in others:
        whole.merge(other)
    return whole


def _partition(batches: Iterator[pa.RecordBatch], make: Callable[[], Kind]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyspark import TaskContext

    made = make()
    for table in tables(batches):
        made.update(vectors(table.column(0)))
    context = TaskContext.get()
    place = 0 if context is None else context.partitionId()
    schema = pa.schema([("partition", pa.int32()), ("sketch", pa.binary())])
    yield pa.RecordBatch.from_pylist([{"partition": place, "sketch": pickle.dumps(made)}], schema)


class SketchedPCA(Estimator, HasInputCol, HasOutputCol, DefaultParamsReadable, DefaultParamsWritable):
    """Principal components of a column of ML vectors in one pass, by Frequent Directions about the mean.

    * `k`: components to keep. `sketchSize`: rows of the sketch; 0: 2k + 10.
    * `inputCol`: the column of vectors. `outputCol`: the column of coordinates that the fitted model adds.
    """

    k = Param(Params._dummy(), "k", "components to keep", typeConverter=TypeConverters.toInt)
    sketchSize = Param(
        Params._dummy(), "sketchSize", "rows of the sketch; 0: 2k + 10", typeConverter=TypeConverters.toInt
    )

    @keyword_only
    def __init__(
        self, *, k: int | None = None, sketchSize: int = 0, inputCol: str = "features", outputCol: str = "pca"
    ) -> None:
        super().__init__()
        self._setDefault(sketchSize=0, inputCol="features", outputCol="pca")
        self._set(**{name: value for name, value in self._input_kwargs.items() if value is not None})

    def _fit(self, dataset: DataFrame) -> SketchedPCAModel:
        if not self.isDefined("k"):
            raise ValueError("k is missing: say how many components to keep")
        local = decomposition.SketchedPCA(
            n_components=self.getOrDefault("k"), sketch_size=self.getOrDefault("sketchSize") or None
        )
        local._sketch = _sketched(dataset, local._new_sketch, self.getOrDefault("inputCol"))
        local.n_features_in_ = len(local._sketch.mean)
        local._describe()
        fitted = SketchedPCAModel(
            components=local.components_,
            mean=local.mean_,
            explained_variance=local.explained_variance_,
            error_bound=np.array([local.error_bound_]),
        )
        fitted._resetUid(self.uid)
        found: SketchedPCAModel = self._copyValues(fitted)
        return found


class SketchedPCAModel(SparkModel, HasInputCol, HasOutputCol, Savable):
    """Components, mean, variances and certified error of what a SketchedPCA has seen; adds coordinates."""

    def __init__(self, **arrays: Floats) -> None:
        super().__init__()
        self._setDefault(inputCol="features", outputCol="pca")
        self._arrays = arrays

    @property
    def components(self) -> Floats:
        """Orthonormal rows."""
        return self._arrays["components"]

    @property
    def mean(self) -> Floats:
        """The mean of all rows."""
        return self._arrays["mean"]

    @property
    def explained_variance(self) -> Floats:
        """Of each component, largest first."""
        return self._arrays["explained_variance"]

    @property
    def error_bound(self) -> float:
        """Certified bound of the spectral error of the scatter matrix."""
        return float(self._arrays["error_bound"][0])

    def _saved(self) -> bytes:
        return archive.encode({"class": "SketchedPCAModel"}, self._arrays)

    def _restored(self, data: bytes) -> None:
        header, self._arrays = archive.decode(data)
        if header.get("class") != "SketchedPCAModel":
            raise archive.ModelFileError(f"holds a {header.get('class')}, not a SketchedPCAModel")

    def _transform(self, dataset: DataFrame) -> DataFrame:
        from pyspark.ml.functions import array_to_vector
        from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType

        column, output = self.getOrDefault("inputCol"), self.getOrDefault("outputCol")
        selected(dataset, column, [])
        project = functools.partial(
            _project, column=column, output=output, components=self.components, mean=self.mean
        )
        field = StructField(output, ArrayType(DoubleType()))
        result = dataset.mapInArrow(project, StructType([*dataset.schema.fields, field]))
        return result.withColumn(output, array_to_vector(output))


def _project(
    batches: Iterator[pa.RecordBatch], column: str, output: str, components: Floats, mean: Floats
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        rows = vectors(batch.column(batch.schema.get_field_index(column)))
        if rows.shape[1] != len(mean):
            raise ValueError(
                f"column {column!r} has vectors of {rows.shape[1]} numbers, those seen had {len(mean)}"
            )
        coordinates = np.asarray(rows @ components.T) - mean @ components.T
        lists = pa.array(coordinates.tolist(), pa.list_(pa.float64()))
        yield pa.RecordBatch.from_arrays([*batch.columns, lists], names=[*batch.schema.names, output])
