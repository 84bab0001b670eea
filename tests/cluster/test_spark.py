"""Estimators of Spark, with Spark itself on two cores: pipelines, validation, persistence, streams."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # of PySpark about pandas
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.ml import Pipeline, PipelineModel  # noqa: E402
from pyspark.ml.evaluation import BinaryClassificationEvaluator, MulticlassClassificationEvaluator  # noqa: E402
from pyspark.ml.feature import VectorAssembler  # noqa: E402
from pyspark.ml.linalg import Vectors  # noqa: E402
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from sketchnewton import FrequentDirections, Model, load  # noqa: E402
from sketchnewton.model import shards  # noqa: E402
from sketchnewton.spark import (  # noqa: E402
    SketchedNewtonClassificationModel,
    SketchedNewtonClassifier,
    SketchedNewtonRegressor,
    SketchedPCA,
    SketchedPCAModel,
    StreamingLearner,
    sketch,
    training,
)


@pytest.fixture(scope="module", name="spark")
def _spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    place = tmp_path_factory.mktemp("spark")
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(place))
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


def table(rows: int = 1200, seed: int = 0) -> list[tuple[float, float, float, str, int]]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 3)) * [1, 100, 0.01]
    cities = rng.choice(["Rome", "Oslo"], rows)
    score = X @ [1, 0.01, 100] + np.where(cities == "Rome", 1.0, -1.0)
    labels = (score > 0).astype(int)
    order = np.argsort(labels, kind="stable")  # the trap: all of one class first
    return [(*X[i].tolist(), str(cities[i]), int(labels[i])) for i in order]


COLUMNS = ["a", "b", "c", "city", "label"]


@pytest.fixture(scope="module", name="frame")
def _frame(spark: Any) -> Any:
    return spark.createDataFrame(table(), COLUMNS).repartition(2).cache()


def assembler() -> Any:
    return VectorAssembler(inputCols=["a", "b", "c"], outputCol="features")


def test_a_pipeline_learns_ordered_rows_and_is_saved(spark: Any, tmp_path: Path) -> None:
    ordered = spark.createDataFrame(table(), COLUMNS).coalesce(1)
    pipeline = Pipeline(stages=[assembler(), SketchedNewtonClassifier(rounds=2, partitions=2)])
    fitted = pipeline.fit(ordered)
    answers = fitted.transform(ordered)
    assert answers.columns == [*COLUMNS, "features", "prediction", "probability", "rawPrediction"]
    rows = answers.collect()
    right = np.mean([row["prediction"] == row["label"] for row in rows])
    assert right > 0.75  # the city is not among the vectors
    for row in rows[:20]:
        assert sum(row["probability"]) == pytest.approx(1.0)
        assert (row["probability"][1] > 0.5) == (row["prediction"] == 1.0)
    assert BinaryClassificationEvaluator().evaluate(answers) > 0.85
    fitted.write().overwrite().save(str(tmp_path / "pipeline"))
    again = PipelineModel.load(str(tmp_path / "pipeline"))
    assert isinstance(again.stages[1], SketchedNewtonClassificationModel)
    assert again.stages[1].classes == [0, 1]
    assert [row["prediction"] for row in again.transform(ordered).collect()] == [
        row["prediction"] for row in rows
    ]
    assert again.stages[1].model.to_bytes() == fitted.stages[1].model.to_bytes()
    assert fitted.stages[1].model.learner.rows_seen == 1200
    pipeline.write().overwrite().save(str(tmp_path / "unfitted"))
    assert Pipeline.load(str(tmp_path / "unfitted")).getStages()[1].getOrDefault("rounds") == 2
    again.stages[1].model.save(tmp_path / "model.skn")
    X = np.array([row[:3] for row in table()[:5]])
    np.testing.assert_array_equal(
        load(tmp_path / "model.skn").predict(X), [row["prediction"] for row in rows[:5]]
    )


def test_columns_of_all_types_through_the_model(frame: Any) -> None:
    fitted = SketchedNewtonClassifier(featuresCol="", partitions=2, rounds=2).fit(frame)
    answers = fitted.transform(frame).collect()
    assert np.mean([row["prediction"] == row["label"] for row in answers]) > 0.9
    more = SketchedNewtonClassifier(featuresCol="", partitions=2, initialModel=fitted.model).fit(frame)
    assert more.model.learner.rows_seen == 2400


def test_cross_validation(frame: Any) -> None:
    learner = SketchedNewtonClassifier(partitions=2)
    validator = CrossValidator(
        estimator=Pipeline(stages=[assembler(), learner]),
        estimatorParamMaps=ParamGridBuilder().addGrid(learner.loss, ["squared", "logistic"]).build(),
        evaluator=MulticlassClassificationEvaluator(metricName="accuracy"),
        numFolds=2,
    )
    best = validator.fit(frame)
    assert len(best.avgMetrics) == 2
    assert min(best.avgMetrics) > 0.7


def test_regression_with_weights(frame: Any) -> None:
    from pyspark.sql import functions as F

    data = frame.withColumn("y", 3 * F.col("a") + 0.02 * F.col("b") + 7).withColumn("w", F.lit(2.0))
    stages = [assembler(), SketchedNewtonRegressor(labelCol="y", weightCol="w", partitions=2, rounds=2)]
    rows = Pipeline(stages=stages).fit(data).transform(data).collect()
    error = np.mean([(row["prediction"] - row["y"]) ** 2 for row in rows])
    assert error < 0.1 * np.var([row["y"] for row in rows])


def test_sketches_have_the_certified_error_of_the_whole(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((600, 15)) @ rng.standard_normal((15, 15)) + 3.0
    data = spark.createDataFrame([(Vectors.dense(row),) for row in rows], ["features"]).repartition(3)
    A = np.array([row["features"].toArray() for row in data.collect()])
    found = sketch(data, lambda: FrequentDirections(6))
    assert found.rows_seen == len(A)
    error = np.linalg.norm(A.T @ A - found.covariance(), 2)
    assert 0 < error <= found.error_bound <= (A**2).sum() / 6
    fitted = SketchedPCA(k=2, sketchSize=6).fit(data)
    centred = A - A.mean(axis=0)
    np.testing.assert_allclose(fitted.mean, A.mean(axis=0))
    exact = np.linalg.eigvalsh(centred.T @ centred)[::-1][:2]
    assert 0 < np.abs(fitted.explained_variance * (len(A) - 1) - exact).max() <= fitted.error_bound
    fitted.write().overwrite().save(str(tmp_path / "pca"))
    again = SketchedPCAModel.load(str(tmp_path / "pca"))
    found = again.transform(data).select("features", "pca").collect()
    expected = (np.array([row["features"].toArray() for row in found]) - fitted.mean) @ fitted.components.T
    np.testing.assert_allclose([row["pca"].toArray() for row in found], expected, atol=1e-9)


def test_every_row_of_a_stream_is_learned_once(spark: Any, tmp_path: Path) -> None:
    """A restart between batches, and a batch that comes twice."""
    source, model = tmp_path / "source", tmp_path / "model.skn"
    source.mkdir()

    def write(number: int) -> None:
        lines = [f"{a},{b},{c},{label}" for a, b, c, _, label in table(100, seed=number)]
        (source / f"{number}.csv").write_text("\n".join(lines) + "\n")

    def run(learner: StreamingLearner) -> None:
        stream = spark.readStream.schema("a double, b double, c double, label double").csv(str(source))
        query = (
            stream.writeStream.foreachBatch(learner)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    write(0)
    run(StreamingLearner(model, featuresCol=""))
    assert Model.load(model).learner.rows_seen == 100
    write(1)
    learner = StreamingLearner(model, featuresCol="")  # after a restart
    assert learner.epoch == 0
    run(learner)
    assert Model.load(model).learner.rows_seen == 200
    again = spark.createDataFrame([(1.0, 2.0, 3.0, 1.0)], ["a", "b", "c", "label"])
    before = model.read_bytes()
    StreamingLearner(model, featuresCol="")(again, 1)  # handed over once more
    assert model.read_bytes() == before


def test_labels_of_any_type_and_vectors_of_both_kinds(spark: Any) -> None:
    from pyspark.sql import functions as F

    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    rows = [
        (Vectors.sparse(4, {0: float(x[0]), 3: float(x[3])}) if i % 2 else Vectors.dense(x), int(x[0] > 0))
        for i, x in enumerate(X)
    ]
    data = spark.createDataFrame(rows, ["features", "label"]).cache()
    classes = {
        "string": ["0", "1"],
        "boolean": [False, True],
        "decimal(3,0)": [0.0, 1.0],
        "double": [0.0, 1.0],
    }
    for kind, names in classes.items():
        typed = data.withColumn("label", F.col("label").cast(kind))
        fitted = SketchedNewtonClassifier(partitions=2).fit(typed)
        assert fitted.classes == names
        answers = fitted.transform(typed).select("prediction", "label").collect()
        assert np.mean([row["prediction"] == row["label"] for row in answers]) > 0.95, kind


def test_missing_cells_the_order_of_columns_and_empty_partitions(spark: Any) -> None:
    from pyspark.sql import functions as F

    data = spark.createDataFrame(table(600), COLUMNS)
    data = data.withColumn("b", F.when(F.col("b") > -50, F.col("b")))
    data = data.withColumn("city", F.when(F.col("city") != "Oslo", F.col("city"))).withColumn("w", F.lit(1.0))
    data = data.repartition(7).cache()
    learner = SketchedNewtonClassifier(featuresCol="", weightCol="w", partitions=2)
    fitted = learner.fit(data)
    other = data.select("w", "city", "label", "c", "b", "a")
    answers = fitted.transform(other).collect()
    assert np.mean([row["prediction"] == row["label"] for row in answers]) > 0.9
    # Neither label nor weight is a feature.
    plain = {
        (row["a"], row["b"]): row["prediction"] for row in fitted.transform(data.drop("label", "w")).collect()
    }
    assert all(plain[row["a"], row["b"]] == row["prediction"] for row in answers)
    few = data.where("a > 2")  # most partitions have no row
    assert fitted.transform(data.limit(0)).collect() == []
    unordered = SketchedNewtonRegressor(featuresCol="", weightCol="w", shuffleSeed=-1, rounds=3)
    assert unordered.fit(few).model.learner.rows_seen == few.count()


def test_every_row_is_learned_once_in_all_rounds(frame: Any) -> None:
    for seed in (0, -1):
        learner = SketchedNewtonClassifier(featuresCol="", partitions=2, rounds=5, shuffleSeed=seed)
        assert learner.fit(frame).model.learner.rows_seen == 1200


@pytest.mark.parametrize("seed", [0, -1])
def test_rows_that_are_learned_first_are_not_learned_again(spark: Any, seed: int) -> None:
    """Each row has a feature of its own. Batches are short: the driver asks for the first ones of a round."""
    count = 12_000
    rows = [(Vectors.sparse(count, {i: 1.0}), i % 2) for i in range(count)]
    data = spark.createDataFrame(rows, ["features", "label"]).repartition(2).cache()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        learner = SketchedNewtonClassifier(partitions=2, rounds=8, shuffleSeed=seed)
        found = learner.fit(data).model
        assert found.to_bytes() == learner.fit(data).model.to_bytes()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    bank = found.learner
    assert bank.rows_seen == bank.features_seen == count
    np.testing.assert_array_equal(bank._table.rows_of_active(count)[:, -3], 1.0)


def test_rounds_begin_with_rows_that_one_learner_has_learned(
    frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not if the model knows rows, nor before few rounds."""
    firsts: list[tuple[int, int]] = []

    def noted(frame: Any, state: bytes, columns: Any, vector: bool, count: int) -> bytes:
        warm = warmed_up(frame, state, columns, vector, count)
        firsts.append((count, Model.from_bytes(warm).learner.rows_seen))
        return warm

    warmed_up = training._warmed_up
    monkeypatch.setattr(training, "_warmed_up", noted)
    monkeypatch.setattr(shards, "WARM_UP", 50)
    learner = SketchedNewtonClassifier(featuresCol="", partitions=2, rounds=8)
    fitted = learner.fit(frame)
    assert firsts == [(25, 50)]
    assert fitted.model.learner.rows_seen == 1200
    assert learner.setInitialModel(fitted.model).fit(frame).model.learner.rows_seen == 2400
    assert (
        SketchedNewtonClassifier(featuresCol="", partitions=2, rounds=4).fit(frame).model.learner.rows_seen
        == 1200
    )
    assert len(firsts) == 1


def test_what_is_wrong_is_said(frame: Any) -> None:
    with pytest.raises(ValueError, match="column 'features' is missing"):
        SketchedNewtonClassifier().fit(frame)
    with pytest.raises(ValueError, match="is no column of ML vectors"):
        SketchedNewtonClassifier(featuresCol="a").fit(frame)
    with pytest.raises(ValueError, match="rounds=0 is invalid"):
        SketchedNewtonClassifier(featuresCol="", rounds=0).fit(frame)
    with pytest.raises(ValueError, match="partitions=-1 is invalid"):
        SketchedNewtonClassifier(featuresCol="", partitions=-1).fit(frame)
    for learner in (SketchedNewtonClassifier, SketchedNewtonRegressor):
        with pytest.raises(ValueError, match="has no rows"):
            learner(featuresCol="").fit(frame.limit(0))
    vectors = assembler().transform(frame)
    with pytest.raises(ValueError, match="k is missing"):
        SketchedPCA().fit(vectors)
    with pytest.raises(ValueError, match="has no rows"):
        sketch(vectors.where("a > 1e9").coalesce(1).limit(0), lambda: FrequentDirections(3))
    remote = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe", "columns": []})()
    with pytest.raises(ValueError, match="Spark Connect cannot"):
        SketchedNewtonRegressor(featuresCol="")._trained(remote)
