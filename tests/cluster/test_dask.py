"""Shards on Dask learn what one learner of the same shards learns, wherever and however often their tasks run."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from scipy.sparse import csr_array
from sklearn.base import clone

from sketchnewton import FrequentDirections, Model, NewtonBank, load
from sketchnewton.cli.main import main
from sketchnewton.dask import SketchedNewtonClassifier, SketchedNewtonRegressor, SketchedPCA
from sketchnewton.model import Signs, shards
from sketchnewton.model.shards import merged_models
from sketchnewton.sketches.blocks import row_blocks

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of Dask about large graphs and lost workers
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def rows(count: int = 3000, d: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, d)) * np.geomspace(0.01, 100, d)
    return X, (X @ (np.random.default_rng(9).standard_normal(d) / np.geomspace(0.01, 100, d)) > 0).astype(int)


def by_hand(
    X: np.ndarray, y: np.ndarray, chunk: int, count: int, rounds: int, base: Model | None = None
) -> Model:
    """The same training, written out: before eight rounds all blocks give an equal part of 500 rows."""
    blocks = [(X[at : at + chunk], y[at : at + chunk]) for at in range(0, len(y), chunk)]
    first = -(-500 // len(blocks)) if rounds >= 8 and base is None else 0
    base = base or Model(NewtonBank(loss="logistic"), target=Signs(names=[0, 1]))
    for block, labels in blocks if first else []:
        head = slice(min(first, len(labels) // rounds))
        base.learn(block[head], labels[head])
    for turn in range(rounds):
        models = []
        for shard in range(count):
            model = Model.from_bytes(base.to_bytes())
            for block, labels in blocks[shard::count]:
                part = slice(len(labels) * turn // rounds, len(labels) * (turn + 1) // rounds)
                if turn == 0:
                    part = slice(min(first, part.stop), part.stop)
                if part.start < part.stop:
                    model.learn(block[part], labels[part])
            models.append(model)
        base = merged_models(models, base)
    return base


@pytest.fixture(scope="module", name="cluster")
def _cluster() -> Iterator[Client]:
    with (
        LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize(("rounds", "count"), [(1, 2000), (4, 2000), (8, 8000), (8, 2000)])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_the_graph_is_the_rule(rounds: int, count: int, scheduler: str) -> None:
    """Of 2,000 rows in eight rounds the first rows are the whole first round."""
    X, y = rows(count)
    chunk = count // 8
    blocks, labels = da.from_array(X, (chunk, 10)), da.from_array(y, chunk)
    expected = by_hand(X, y, chunk, 3, rounds)
    with dask.config.set(scheduler=scheduler):
        found = SketchedNewtonClassifier(rounds=rounds, shards=3).fit(blocks, labels)
        assert found.model_.to_bytes() == expected.to_bytes()
        # What is continued knows rows: shards begin with all of it.
        found.partial_fit(blocks, labels)
    assert found.model_.to_bytes() == by_hand(X, y, chunk, 3, rounds, expected).to_bytes()


@pytest.mark.parametrize("chunk", [150, 20, 10, 2])
def test_every_row_is_learned_once(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a feature of its own; also in more blocks than rows are asked for, and in very short blocks."""
    monkeypatch.setattr(shards, "WARM_UP", 20)
    blocks = da.from_array(np.eye(300), (chunk, 300)).map_blocks(csr_array, meta=csr_array((0, 0)))
    labels = da.from_array(np.arange(300) % 2, chunk)
    with dask.config.set(scheduler="synchronous"):
        model = SketchedNewtonClassifier(rounds=8, shards=2, fit_intercept=False).fit(blocks, labels)
    learner = model.model_.learner
    assert learner.rows_seen == learner.features_seen == 300
    np.testing.assert_array_equal(learner._table.rows_of_active(300)[:, -3], 1.0)


def test_shards_of_files_are_those_of_blocks(tmp_path: Path) -> None:
    """`skn train --shards` gives the same model, if rounds have the same rows."""
    X, y = np.round(rows(8000)[0], 3), 2.0 * rows(8000)[1] - 1
    order = (
        np.arange(8000).reshape(2, 8, 500).swapaxes(0, 1).ravel()
    )  # of shard and round: of round and shard
    for i, at in enumerate(order):
        entries = " ".join(f"{j}:{value:+014.3f}" for j, value in enumerate(X[at]))
        with (tmp_path / "rows.svm").open("a" if i else "w") as file:  # lines are of equal length
            file.write(f"{y[at]:+g} {entries}\n")
    path, model = str(tmp_path / "rows.svm"), tmp_path / "model.skn"
    options = ["--shards", "2", "--rounds", "8", "--model", str(model), "--quiet"]
    assert main(["train", path, *options]) == 0
    sparse = da.from_array(X, (4000, 10)).map_blocks(csr_array, meta=csr_array((0, 0)))
    with dask.config.set(scheduler="synchronous"):
        found = SketchedNewtonRegressor(shards=2, rounds=8).fit(sparse, da.from_array(y, 4000))
    assert load(model).learner.to_bytes() == found.model_.learner.to_bytes()


def test_sparse_blocks_columns_and_cuts() -> None:
    X, y = rows(1000)
    dense = da.from_array(X, (250, 4))  # several blocks in a row of blocks
    sparse = da.from_array(X, (250, 10)).map_blocks(csr_array, meta=csr_array((0, 0)))
    labels = da.from_array(y, 500)  # cut in another way
    with dask.config.set(scheduler="synchronous"):
        models = [
            SketchedNewtonClassifier(shards=2).fit(blocks, labels).model_.to_bytes()
            for blocks in (dense, sparse)
        ]
        found = [Model.from_bytes(model).predict(X) for model in models]
    np.testing.assert_array_equal(*found)


def test_a_cluster_gives_the_same_and_answers_in_parallel(cluster: Client, tmp_path: Any) -> None:
    X, y = rows(2000)
    expected = by_hand(X, y, 250, 2, 2)
    blocks, labels = da.from_array(X, (250, 10)), da.from_array(y, 250)
    model = SketchedNewtonClassifier(rounds=2).fit(blocks, labels)  # two cores: two shards
    assert model.model_.to_bytes() == expected.to_bytes()
    np.testing.assert_array_equal(model.predict(blocks).compute(), expected.predict(X))
    np.testing.assert_allclose(model.predict_proba(blocks).compute(), expected.predict_proba(X))
    local, spread = expected.test(X, y), model.test(blocks, labels)
    assert set(local) == set(spread)
    for name, value in local.items():
        assert spread[name] == pytest.approx(value), name
    assert model.score(blocks, labels) == pytest.approx(1 - local["error"])
    model.model_.save(tmp_path / "model.skn")
    np.testing.assert_array_equal(load(tmp_path / "model.skn").predict(X), expected.predict(X))


def slowed(block: np.ndarray) -> np.ndarray:
    time.sleep(0.25)
    return block


def holders(dask_scheduler: Any) -> list[str]:
    """The workers that keep a model which has learned a block and is not merged yet."""
    tasks = [task for task in dask_scheduler.tasks.values() if str(task.key).startswith("learn-")]
    return [worker.address for task in tasks if task.state == "memory" for worker in task.who_has]


def test_a_lost_worker_costs_a_retry() -> None:
    """The worker that is killed has the only copy of what its shard has learned so far."""
    X, y = rows(2000)
    expected = by_hand(X, y, 125, 2, 8)
    blocks, labels = da.from_array(X, (125, 10)).map_blocks(slowed, dtype=float), da.from_array(y, 125)
    with (
        LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        processes = client.run(os.getpid)
        killed: list[int] = []

        def kill() -> None:
            while not killed:
                for address in client.run_on_scheduler(holders)[:1]:
                    killed.append(processes[address])
                    os.kill(processes[address], signal.SIGKILL)
                time.sleep(0.02)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        found = SketchedNewtonClassifier(rounds=8, shards=2).partial_fit(blocks, labels, classes=[0, 1])
        assert killed
        assert set(client.run(os.getpid).values()) != set(processes.values())
        killer.join()
    assert found.model_.to_bytes() == expected.to_bytes()


def test_frames_and_bags_are_records() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": rng.choice(["Rome", "Oslo", "Bonn"], 900), "age": rng.integers(0, 90, 900)})
    frame["label"] = np.where((frame["city"] == "Rome") ^ (rng.random(900) < 0.05), "yes", "no")
    records = frame.to_dict("records")
    with dask.config.set(scheduler="synchronous"):
        collection = dd.from_pandas(frame, npartitions=4)
        of_frame = SketchedNewtonClassifier(shards=2).fit(collection, "label")
        column = SketchedNewtonClassifier(shards=2).fit(collection.drop(columns="label"), collection["label"])
        of_bag = SketchedNewtonClassifier(shards=2).fit(db.from_sequence(records, npartitions=4), "label")
        assert of_frame.classes_.tolist() == ["no", "yes"]
        for model in (of_frame, column, of_bag):
            assert np.mean(model.predict(frame[["city", "age"]]) == frame["label"]) > 0.9
        answers = of_frame.predict(collection[["city", "age"]]).compute()
        chances = of_frame.predict_proba(collection[["city", "age"]]).compute()
        listed = of_bag.predict(db.from_sequence(records, npartitions=4)).compute()
    assert answers.index.equals(frame.index)
    assert list(chances.columns) == ["no", "yes"]
    assert listed == of_bag.predict(records).tolist()
    assert of_frame.model_.to_bytes() == column.model_.to_bytes()


def test_partial_fit_continues_and_weights_count() -> None:
    X, y = rows(1200)
    halves = [
        (da.from_array(X[a:b], (150, 10)), da.from_array(y[a:b], 150)) for a, b in ((0, 600), (600, 1200))
    ]
    with dask.config.set(scheduler="synchronous"):
        model = SketchedNewtonClassifier(shards=2)
        for part, labels in halves:
            model.partial_fit(part, labels, classes=[0, 1])
        assert model.model_.learner.rows_seen == 1200
        assert model.score(*halves[1]) > 0.9
        weights = da.zeros(600, chunks=150)
        idle = clone(model).fit(*halves[0], sample_weight=weights)
    assert not idle.model_.learner.weights.any()


def test_blocks_of_unknown_or_no_size() -> None:
    """A filter leaves blocks whose sizes Dask does not know, and some without a row."""
    X, y = rows(1000)
    order = np.argsort(X[:, 0], kind="stable")
    X, y = X[order], y[order]
    kept = X[:, 0] > np.quantile(X[:, 0], 0.4)
    blocks, labels = da.from_array(X, (100, 10)), da.from_array(y, 100)
    few = blocks[:, 0] > np.quantile(X[:, 0], 0.4)
    with dask.config.set(scheduler="synchronous"):
        model = SketchedNewtonClassifier(shards=2, rounds=2).fit(blocks[few], labels[few])
        assert model.model_.learner.rows_seen == kept.sum()
        answers = model.predict(blocks[few]).compute()
        assert model.predict_proba(blocks[few]).compute().shape == (kept.sum(), 2)
        assert model.score(blocks[few], labels[few]) == pytest.approx(np.mean(answers == y[kept]))
        frame = dd.from_pandas(pd.DataFrame(X).rename(columns=str).assign(label=y), npartitions=10)
        some = frame[frame["0"] > np.quantile(X[:, 0], 0.4)]
        model = SketchedNewtonClassifier(shards=3).fit(some, "label")
        assert model.model_.learner.rows_seen == kept.sum()
        assert model.predict(some).compute().index.equals(some.compute().index)
        assert FrequentDirections.from_dask(blocks[few], 3).rows_seen == kept.sum()
        coordinates = SketchedPCA(n_components=2).fit(frame).transform(frame)
        assert coordinates.compute().shape == (1000, 2)


def test_columns_are_found_by_name_and_missing_cells_are_features() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((600, 3)), columns=list("abc"))
    frame["label"] = frame["a"] > 0
    for column, dtype in (("b", "Int64"), ("c", "double[pyarrow]")):
        frame[column] = frame[column].round().astype(dtype)
        frame.loc[::9, column] = None
    with dask.config.set(scheduler="synchronous"):
        collection = dd.from_pandas(frame, npartitions=3)
        model = SketchedNewtonClassifier(shards=2).fit(collection, "label")
        answers = [model.predict(collection[columns]).compute() for columns in (list("abc"), list("cba"))]
    assert answers[0].equals(answers[1])
    assert np.mean(answers[0].to_numpy() == frame["label"].to_numpy()) > 0.95


def test_shards_of_one_class_are_merged() -> None:
    """It is worth little, but it is a model (docs/dask.md says to shuffle)."""
    X, y = rows(800)
    order = np.argsort(y, kind="stable")
    with dask.config.set(scheduler="synchronous"):
        blocks, labels = da.from_array(X[order], (100, 10)), da.from_array(y[order], 100)
        model = SketchedNewtonClassifier(shards=2).fit(blocks, labels)
        assert np.isfinite(model.predict_proba(blocks).compute()).all()
    assert model.model_.learner.rows_seen == 800


def table(**columns: Any) -> Any:
    return dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], **columns}), npartitions=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda fit: fit(table(label=[0, 1, 0, 1]), "lable"),
            "column 'lable' is missing: there are a, label",
        ),
        (
            lambda fit: fit(db.from_sequence([{"a": 1}] * 4, npartitions=2), "label"),
            "a record has no 'label'",
        ),
        (lambda fit: fit(table(label=[0, 1, None, 1]), "label"), "rows without a label: drop them"),
        (lambda fit: fit(table(label=["x", "y", None, "y"]), "label"), "rows without a label: drop them"),
        (lambda fit: fit(table(label=pd.array([0, 1, None, 1], "Int64")), "label"), "without a label"),
        (lambda fit: fit(table(label=[1, 1, 1, 1]), "label"), "number of classes has to be greater than one"),
        (lambda fit: fit(table(label=[0, 1, 0, 1]).query("a > 9"), "label"), "X has no rows"),
    ],
)
def test_bad_labels_are_named(call: Any, message: str) -> None:
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match=message):
        call(SketchedNewtonClassifier(shards=2).fit)


def test_regression() -> None:
    X, _ = rows(2000)
    y = X @ (np.random.default_rng(3).standard_normal(10) / np.geomspace(0.01, 100, 10)) + 50
    with dask.config.set(scheduler="synchronous"):
        blocks, targets = da.from_array(X, (250, 10)), da.from_array(y, 250)
        model = SketchedNewtonRegressor(shards=2, rounds=4).fit(blocks, targets)
        assert model.score(blocks, targets) > 0.95
        assert model.predict(blocks).compute().dtype == np.float64


def test_many_classes() -> None:
    X, _ = rows(1500, d=6)
    y = np.array(["a", "b", "c"])[(X / np.geomspace(0.01, 100, 6))[:, :3].argmax(axis=1)]
    with dask.config.set(scheduler="synchronous"):
        blocks, labels = da.from_array(X, (250, 6)), da.from_array(y, 250)
        model = SketchedNewtonClassifier(shards=2).fit(blocks, labels)
        assert model.predict_proba(blocks).compute().shape == (1500, 3)
        assert model.score(blocks, labels) > 0.85


def test_sketches_have_the_certified_error_of_the_whole() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2000, 40)) @ rng.standard_normal((40, 40)) + 3.0
    with dask.config.set(scheduler="synchronous"):
        blocks = da.from_array(A, (300, 40))
        sketch = FrequentDirections.from_dask(blocks, 12)
        pca = SketchedPCA(n_components=5, sketch_size=20).fit(blocks)
        coordinates = pca.transform(blocks).compute()
    assert sketch.rows_seen == 2000
    error = np.linalg.norm(A.T @ A - sketch.covariance(), 2)
    assert error <= sketch.error_bound <= (A**2).sum() / 12
    centred = A - A.mean(axis=0)
    np.testing.assert_allclose(pca.mean_, A.mean(axis=0))
    assert pca.n_samples_seen_ == 2000
    whole = pca._sketch.sketch
    assert np.linalg.norm(centred.T @ centred - whole.covariance(), 2) <= pca.error_bound_ * (1 + 1e-9)
    np.testing.assert_allclose(coordinates, centred @ pca.components_.T, atol=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: SketchedNewtonClassifier(rounds=0).fit(X, y), "rounds=0 is invalid"),
        (lambda X, y: SketchedNewtonClassifier(shards=0).fit(X, y), "shards=0 is invalid"),
        (lambda X, y: SketchedNewtonClassifier().fit(X, np.zeros(4)), "y is a ndarray: must be a Dask"),
        (
            lambda X, y: SketchedNewtonClassifier().fit(np.zeros((4, 2)), y),
            "ndarray is invalid: must be a Dask",
        ),
        (lambda X, y: SketchedNewtonClassifier().fit(X, None), "labels are missing"),
        (lambda X, y: row_blocks(X[:, 0]), "1 dimensions is invalid"),
    ],
)
def test_what_is_wrong_is_said(call: Any, message: str) -> None:
    X, y = da.from_array(np.eye(4), (2, 4)), da.from_array(np.array([0, 1, 0, 1]), 2)
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match=message):
        call(X, y)
