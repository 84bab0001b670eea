"""A sketch of a Dask array: one of each block, made where the block is, and merged in pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from sketchnewton.core.extras import needs

if TYPE_CHECKING:
    import dask.array as da
    import dask.bag as db
    import dask.dataframe as dd
    from dask.delayed import Delayed

__all__ = ["sketch_of_blocks"]


class Mergeable(Protocol):
    """What takes rows and merges."""

    def update(self, rows: object, /) -> object:
        """Add rows."""

    def merge(self, other: Self, /) -> object:
        """Add what another one knows."""


Kind = TypeVar("Kind", bound=Mergeable)


def sketch_of_blocks(make: Callable[[], Kind], X: da.Array | dd.DataFrame) -> Kind:
    """`make()` after the rows of all blocks of a Dask array, or of all partitions of a DataFrame."""
    with needs("dask", "a sketch of a Dask array needs Dask", "dask"):
        import dask
    parts = row_blocks(X)
    sketches = [dask.delayed(_sketch, pure=True)(make, part, dask_key_name=_key("sketch")) for part in parts]
    while len(sketches) > 1:
        pairs = [sketches[at : at + 2] for at in range(0, len(sketches), 2)]
        sketches = [
            dask.delayed(_merge, pure=True)(*pair, dask_key_name=_key("merge")) if len(pair) == 2 else pair[0]
            for pair in pairs
        ]
    whole: Kind = sketches[0].compute()
    return whole


def row_blocks(X: da.Array | dd.DataFrame | db.Bag) -> list[Delayed]:
    """The blocks of rows of a Dask collection, each with all columns, as delayed values."""
    if hasattr(X, "numblocks"):  # an array
        if X.ndim != 2:
            raise ValueError(f"a Dask array of {X.ndim} dimensions is invalid: must have rows and columns")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return list(X.to_delayed().ravel())
    if hasattr(X, "to_delayed"):
        return list(X.to_delayed())
    raise ValueError(f"{type(X).__name__} is invalid: must be a Dask array, DataFrame or bag")


def _sketch(make: Callable[[], Kind], rows: object) -> Kind:
    sketch = make()
    sketch.update(rows)
    return sketch


def _merge(mine: Kind, theirs: Kind) -> Kind:
    import copy

    whole = copy.deepcopy(mine)  # a task may run twice
    whole.merge(theirs)
    return whole


def _key(name: str) -> str:
    """A name that a dashboard shows with those of its kind."""
    import uuid

    return f"{name}-{uuid.uuid4().hex}"
