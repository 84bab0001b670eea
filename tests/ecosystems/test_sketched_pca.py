"""SketchedPCA is a scikit-learn transformer, and explains what IncrementalPCA explains."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.utils.estimator_checks import check_estimator

from sketchnewton import SketchedPCA

DATA = Path(os.environ.get("SKETCHNEWTON_DATA", "../shared/data"))
MNIST = DATA / "mnist" / "train-images-idx3-ubyte.gz"


def test_scikit_learn_accepts_it() -> None:
    check_estimator(SketchedPCA(), on_skip=None)


def explained(pca: object, X: np.ndarray) -> float:
    """The variance of X along the components: what they explain, not what they say they do."""
    return float(np.var((X - X.mean(axis=0)) @ pca.components_.T, axis=0).sum())


def assert_close_to_incremental(X: np.ndarray, n_components: int) -> None:
    """Not 2% below IncrementalPCA, which may itself be below; and what is reported is 2% from the truth."""
    ours, theirs, exact = (
        kind(n_components=n_components).fit(X) for kind in (SketchedPCA, IncrementalPCA, PCA)
    )
    assert explained(ours, X) >= 0.98 * explained(theirs, X)
    assert ours.explained_variance_.sum() >= 0.98 * theirs.explained_variance_.sum()
    assert explained(ours, X) == pytest.approx(explained(exact, X), rel=0.02)
    assert ours.explained_variance_.sum() == pytest.approx(exact.explained_variance_.sum(), rel=0.02)
    assert ours.explained_variance_ratio_.sum() == pytest.approx(
        exact.explained_variance_ratio_.sum(), rel=0.02
    )


@pytest.mark.parametrize("n_components", [2, 10, 30])
def test_digits(n_components: int) -> None:
    assert_close_to_incremental(load_digits().data, n_components)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif(not MNIST.exists(), reason="no mnist")
@pytest.mark.parametrize("n_components", [10, 50])
def test_mnist(n_components: int) -> None:
    with gzip.open(MNIST) as file:
        X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784) / 255.0
    assert_close_to_incremental(X[:20_000], n_components)


def test_a_sketch_with_room_is_pca() -> None:
    X = np.random.default_rng(0).standard_normal((200, 6)) * np.arange(1, 7) + 50
    ours, exact = SketchedPCA(n_components=3, sketch_size=10).fit(X), PCA(3).fit(X)
    np.testing.assert_allclose(ours.mean_, exact.mean_)
    np.testing.assert_allclose(ours.explained_variance_, exact.explained_variance_)
    np.testing.assert_allclose(ours.explained_variance_ratio_, exact.explained_variance_ratio_)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(exact.transform(X)), atol=1e-8)
    back = ours.inverse_transform(ours.transform(X))
    np.testing.assert_allclose(back, exact.inverse_transform(exact.transform(X)))


def test_sparse_and_partial_equal_dense_and_whole() -> None:
    X = random_array((300, 40), density=0.1, format="csr", rng=np.random.default_rng(0))
    whole, parts = SketchedPCA(n_components=4).fit(X.toarray()), SketchedPCA(n_components=4)
    for size in range(0, 300, 50):
        parts.partial_fit(csr_array(X[size : size + 50]))
    np.testing.assert_allclose(parts.explained_variance_, whole.explained_variance_)
    np.testing.assert_allclose(parts.transform(X), whole.transform(X.toarray()), atol=1e-9)
    assert parts.n_samples_seen_ == 300


def test_sizes_that_make_no_sense() -> None:
    X = np.eye(5)
    for parameters in ({"n_components": 0}, {"n_components": 9, "sketch_size": 9}, {"n_components": 6}):
        with pytest.raises(ValueError, match="n_components"):
            SketchedPCA(**parameters).fit(X)
    with pytest.raises(ValueError, match="sketch_size=-1"):
        SketchedPCA(sketch_size=-1).fit(X)


def test_rows_that_span_fewer_directions() -> None:
    """As many columns as asked for from the first row on; those beyond what the rows span explain nothing."""
    X = np.random.default_rng(0).standard_normal((30, 6))
    for rows in (X[:1], X[:3], np.ones((10, 6)), X[:, :1] * np.ones(6)):
        pca = SketchedPCA(n_components=4).fit(rows)
        np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(4), atol=1e-12)
        assert pca.transform(X).shape == (30, 4)
        assert list(pca.get_feature_names_out()) == [f"sketchedpca{i}" for i in range(4)]
        exact = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2 / max(len(rows) - 1, 1)
        np.testing.assert_allclose(pca.explained_variance_, np.pad(exact, (0, 6))[:4], atol=1e-10)
        np.testing.assert_allclose(pca.inverse_transform(pca.transform(rows)), rows, atol=1e-10)
    pca.partial_fit(X)
    assert pca.components_.shape == (4, 6)
    assert pca.explained_variance_[3] > 0.1


def test_coordinates_of_rows_far_from_zero() -> None:
    X = np.random.default_rng(0).standard_normal((200, 5)) * np.arange(1, 6)
    pca, far = SketchedPCA(n_components=3).fit(X), SketchedPCA(n_components=3).fit(X + 2.0**40)
    np.testing.assert_allclose(np.abs(far.transform(X + 2.0**40)), np.abs(pca.transform(X)), atol=5e-3)
    # The mean takes away all but the rounding of the rows themselves, 2⁻¹²: not one of each product.
    assert np.abs(far.transform(np.full((1, 5), 2.0**40))).max() < 10.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_way_back(dtype: type) -> None:
    X = np.random.default_rng(0).standard_normal((50, 5)).astype(dtype)
    pca = SketchedPCA(n_components=5, sketch_size=60).fit(X)
    Z = pca.transform(X)
    for coordinates in (Z, csr_array(Z)):
        back = pca.inverse_transform(coordinates)
        assert back.dtype == dtype
        np.testing.assert_allclose(back, X, atol=1e-4)
    with pytest.raises(ValueError, match="X has 2 columns: expected 5, its components"):
        pca.inverse_transform(Z[:, :2])
    for wrong in (np.full((1, 5), np.nan), Z[0], "text"):
        with pytest.raises(ValueError, match=r"NaN|2D array|convert"):
            pca.inverse_transform(wrong)


@pytest.mark.parametrize(
    "parameters",
    [
        *({"n_components": value} for value in (True, 2.5, "two", -1, 0, 0.9)),
        *({"sketch_size": value} for value in (True, 2.5, "two", -1, 0, 1)),
        *({"beta": value} for value in (True, -1, 0, 2, "half")),
    ],
)
def test_parameters_that_mean_nothing(parameters: dict[str, object]) -> None:
    (name,) = parameters
    for method in ("fit", "partial_fit"):
        pca = SketchedPCA(**parameters)
        with pytest.raises(ValueError, match=f"{name}=.* is invalid"):
            getattr(pca, method)(np.eye(5))
        assert not hasattr(pca, "components_")


def test_refused_rows_leave_it_as_it_was() -> None:
    X = np.random.default_rng(0).standard_normal((50, 5))
    pca = SketchedPCA(n_components=2)
    with pytest.raises(ValueError, match="at most n_features=1"):
        pca.partial_fit(X[:, :1])
    with pytest.raises(ValueError, match="range of float64"):
        pca.partial_fit(X * 1e200)
    pca.partial_fit(X)
    np.testing.assert_array_equal(pca.components_, SketchedPCA(n_components=2).fit(X).components_)


def test_a_sketch_that_was_made_elsewhere() -> None:
    """As clusters do: workers make sketches before anybody knows how many columns there are."""
    X = np.random.default_rng(0).standard_normal((50, 5))
    pca = SketchedPCA(n_components=2)
    pca._sketch = pca._new_sketch()
    pca._sketch.update(X)
    pca.n_features_in_ = 5
    np.testing.assert_array_equal(pca._describe().components_, SketchedPCA(n_components=2).fit(X).components_)
    pca.set_params(n_components=6)
    with pytest.raises(ValueError, match="at most n_features=5"):
        pca._describe()
