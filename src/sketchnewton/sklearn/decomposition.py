"""Principal component analysis of streams, for scikit-learn.

>>> import numpy as np
>>> from scipy.sparse import random_array
>>> from sketchnewton import SketchedPCA
>>> X = random_array((500, 2000), density=0.01, format="csr", rng=0)
>>> pca = SketchedPCA(n_components=5)
>>> for start in range(0, 500, 100):
...     _ = pca.partial_fit(X[start : start + 100])     # sparse rows stay sparse
>>> pca.transform(X).shape
(500, 5)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from sketchnewton.core.batch import refuse_masked
from sketchnewton.core.parameters import checked_size
from sketchnewton.core.types import Array
from sketchnewton.sketches import CenteredSketch, ParameterizedFrequentDirections

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.utils import Tags

__all__ = ["SketchedPCA"]


class SketchedPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal components in one pass over rows that need not fit into memory, dense or sparse.

    What `sklearn.decomposition.IncrementalPCA` does for dense batches of at least n_components rows, for batches
    of any size and for sparse rows too, which stay sparse. The components come from a
    `ParameterizedFrequentDirections` sketch of the centered rows.

    Parameters
    ----------
    n_components : int, default=None
        Components to keep; None keeps as many as the sketch has: at most sketch_size - 1. Where the rows so far
        span fewer directions, the others explain nothing, as those of `sklearn.decomposition.PCA`.
    sketch_size : int, default=None
        Rows of the sketch: more are more exact. None is 2·n_components + 10, or 50 without n_components.
    beta : float, default=0.2
        The share of the sketch's rows that a shrink shortens. Small values keep long components as they are.

    Attributes
    ----------
    components_, explained_variance_, explained_variance_ratio_, singular_values_, mean_, n_components_,
    n_samples_seen_ : as those of IncrementalPCA
    error_bound_ : float
        Certified bound of the spectral error of the scatter matrix, (n - 1) times the covariance.
    """

    def __init__(
        self, *, n_components: int | None = None, sketch_size: int | None = None, beta: float = 0.2
    ) -> None:
        self.n_components = n_components
        self.sketch_size = sketch_size
        self.beta = beta

    def fit(self, X: object, y: object = None) -> Self:
        """Learn the components of `X`, forgetting what was learned before."""
        X = self._validated(X, reset=True)
        return self._learn(X, self._new_sketch())

    def partial_fit(self, X: object, y: object = None) -> Self:
        """Learn from more rows."""
        first = not hasattr(self, "_sketch")
        X = self._validated(X, reset=first)
        return self._learn(X, self._new_sketch() if first else self._sketch)

    def transform(self, X: object) -> Array:
        """The coordinates of rows along the components, about the mean."""
        check_is_fitted(self)
        rows = self._validated(X, reset=False)
        if isinstance(rows, np.ndarray):  # the difference first: the mean may be large
            coordinates = np.asarray((rows - self.mean_) @ self.components_.T)
        else:
            coordinates = np.asarray(rows @ self.components_.T) - self.mean_ @ self.components_.T
        return coordinates.astype(rows.dtype, copy=False)

    def inverse_transform(self, X: object) -> Array:
        """Rows with these coordinates, dense or sparse."""
        check_is_fitted(self)
        coordinates = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
        if coordinates.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {coordinates.shape[1]} columns: expected {self.n_components_}, its components"
            )
        rows = np.asarray(coordinates @ self.components_) + self.mean_
        return rows.astype(coordinates.dtype, copy=False)

    def _validated(self, X: object, *, reset: bool) -> Array | csr_array:
        refuse_masked(X)
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])

    def _new_sketch(self) -> CenteredSketch:
        count = None if self.n_components is None else checked_size("n_components", self.n_components)
        if self.sketch_size is None:
            size = 50 if count is None else 2 * count + 10
        else:
            size = checked_size("sketch_size", self.sketch_size, 2)
        if count is not None and count >= size:
            raise ValueError(f"n_components={count} is invalid: must be below sketch_size={size}")
        return CenteredSketch(ParameterizedFrequentDirections(size, beta=self.beta))

    def _learn(self, X: object, sketch: CenteredSketch) -> Self:
        self._check_width()
        sketch.update(X)
        self._sketch = sketch  # unless the rows were refused
        return self._describe()

    def _check_width(self) -> None:
        count, features = self.n_components, self.n_features_in_
        if count is not None and count > features:
            raise ValueError(f"n_components={count} is invalid: must be at most n_features={features}")

    def _describe(self) -> Self:
        """Set what users read from the sketch."""
        self._check_width()
        sketch, count = self._sketch.sketch, self._sketch.rows_seen
        found = sketch.components_
        wanted = len(found) if self.n_components is None else int(self.n_components)
        missing = max(0, wanted - len(found))
        self.components_ = _completed(found, missing)[:wanted]
        self.singular_values_ = np.pad(sketch.singular_values_, (0, missing))[:wanted]
        self.explained_variance_ = self.singular_values_**2 / max(count - 1, 1)
        self.explained_variance_ratio_ = np.pad(sketch.explained_variance_ratio_, (0, missing))[:wanted]
        self.n_components_ = len(self.components_)
        self.mean_ = self._sketch.mean.copy()
        self.n_samples_seen_ = count
        self.error_bound_ = sketch.error_bound
        return self

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _completed(directions: Array, missing: int) -> Array:
    """Orthonormal rows and as many more: what is left of unit vectors, the longest first."""
    for _ in range(missing):
        lengths = 1.0 - np.square(directions).sum(axis=0)  # of what is left of each
        unit = np.zeros(directions.shape[1])
        unit[int(lengths.argmax())] = 1.0
        for _ in range(2):  # twice is enough
            unit = unit - (directions @ unit) @ directions
        directions = np.vstack([directions, unit / np.linalg.norm(unit)])
    return directions
