"""Training on Dask: shards learn where the blocks are, and are merged.

`SketchedNewtonClassifier` and `SketchedNewtonRegressor` take Dask arrays (dense or sparse blocks), DataFrames and
bags of records, on any of Dask's schedulers; `SketchedPCA` takes arrays; `FrequentDirections.from_dask` and
`from_dask` of the other sketches take arrays, too.

Needs Dask: pip install 'sketchnewton[dask]'.

>>> import dask.array as da
>>> from sketchnewton.dask import SketchedNewtonClassifier
>>> random = da.random.default_rng(0)
>>> X = random.standard_normal((4000, 8), chunks=(500, 8))
>>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
>>> model = SketchedNewtonClassifier(shards=2, rounds=4).fit(X, y)
>>> model.score(X, y) > 0.95
True
>>> model.predict(X)
dask.array<_answers, shape=(4000,), dtype=int64, chunksize=(500,), chunktype=numpy.ndarray>
"""

from sketchnewton.core.extras import needs

with needs("dask", "sketchnewton.dask needs Dask", "dask"):
    from sketchnewton.dask.decomposition import SketchedPCA
    from sketchnewton.dask.estimators import SketchedNewtonClassifier, SketchedNewtonRegressor

__all__ = ["SketchedNewtonClassifier", "SketchedNewtonRegressor", "SketchedPCA"]
