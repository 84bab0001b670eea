"""Training on Spark: partitions learn apart, and are merged.

`SketchedNewtonClassifier`, `SketchedNewtonRegressor` and `SketchedPCA` are Estimators of `pyspark.ml`, for
pipelines, cross-validation and ML persistence; `StreamingLearner` learns from Structured Streaming; `sketch` makes
a sketch of a column of vectors. All rows travel as Arrow, and nothing of ours runs in the JVM.

Needs Spark: pip install 'sketchnewton[spark]', and Java 17 or later.
"""

try:
    import pyspark as _pyspark  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "pyspark":
        raise
    raise ModuleNotFoundError(
        "sketchnewton.spark needs Spark: pip install 'sketchnewton[spark]'", name="pyspark"
    ) from None

from sketchnewton.spark.decomposition import SketchedPCA, SketchedPCAModel, sketch
from sketchnewton.spark.estimators import (
    SketchedNewtonClassificationModel,
    SketchedNewtonClassifier,
    SketchedNewtonRegressionModel,
    SketchedNewtonRegressor,
)
from sketchnewton.spark.streaming import StreamingLearner

__all__ = [
    "SketchedNewtonClassificationModel",
    "SketchedNewtonClassifier",
    "SketchedNewtonRegressionModel",
    "SketchedNewtonRegressor",
    "SketchedPCA",
    "SketchedPCAModel",
    "StreamingLearner",
    "sketch",
]
