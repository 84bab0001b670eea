"""Training on Spark: partitions learn apart, and are merged.

`SketchedNewtonClassifier`, `SketchedNewtonRegressor` and `SketchedPCA` are Estimators of `pyspark.ml`, for
pipelines, cross-validation and ML persistence; `StreamingLearner` learns from Structured Streaming; `sketch` makes
a sketch of a column of vectors. All rows travel as Arrow, and nothing of ours runs in the JVM.

Needs Spark: pip install 'sketchnewton[spark]', and Java 17 or later.
"""

from sketchnewton.core.extras import needs

with needs("pyspark", "sketchnewton.spark needs Spark", "spark"):
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
