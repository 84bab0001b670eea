"""Principal components of Dask arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from sketchnewton.core.types import Array, np
from sketchnewton.dask.training import is_collection
from sketchnewton.sketches.blocks import row_blocks, sketch_of_blocks
from sketchnewton.sklearn import decomposition

if TYPE_CHECKING:
    import dask.array as da

__all__ = ["SketchedPCA"]


class SketchedPCA(decomposition.SketchedPCA):
    """`sketchnewton.SketchedPCA` whose `fit` and `transform` take Dask arrays too.

    Each block is sketched about its own mean where it is; merging adds what lies between the means, so the
    certificate, `error_bound_`, is that of the whole.
    """

    def fit(self, X: object, y: object = None) -> Self:
        """Learn the components of `X`, forgetting what was learned before."""
        if not is_collection(X):
            return super().fit(X)
        row_blocks(X)  # or say what is wrong with it
        self.n_features_in_ = int(X.shape[1])
        self._sketch = sketch_of_blocks(self._new_sketch, X)
        return self._describe()

    def transform(self, X: object) -> Array | da.Array:
        """The coordinates of rows along the components; of a Dask array or DataFrame, a Dask array."""
        if not is_collection(X):
            return super().transform(X)
        rows = X.to_dask_array() if hasattr(X, "divisions") else X
        shape = (rows.chunks[0], (self.n_components_,))
        return rows.rechunk({1: -1}).map_blocks(
            super().transform, dtype=rows.dtype, chunks=shape, meta=np.empty((0, 0))
        )
