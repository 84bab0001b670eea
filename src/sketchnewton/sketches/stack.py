"""Rows as they wait in a sketch: dense ones over sparse ones, with products that cost what is really there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sketchnewton.core.types import Array

Matrix = Array


@dataclass(frozen=True)
class Stack:
    """The rows mix·[dense; sparse]; no `sparse` means none of them, no `mix` the identity.

    Rows about a mean are such a mixture: each is a combination of sparse rows and one dense row, the mean.
    """

    dense: Matrix
    sparse: Any = None  # CSR without duplicates and explicit zeros
    mix: Matrix | None = None

    def __len__(self) -> int:
        return self._parts if self.mix is None else len(self.mix)

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.dense.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Of the entries."""
        return self.dense.dtype

    @property
    def _parts(self) -> int:
        return len(self.dense) + (0 if self.sparse is None else int(self.sparse.shape[0]))

    def gram(self, dtype: DTypeLike) -> tuple[Matrix, float]:
        """The products of all pairs of rows, and a bound of the terms that were added up for them."""
        # Memory orders are made the same everywhere, so that results do not depend on where rows come from.
        D = self.dense.astype(dtype, copy=False)
        if self.sparse is None:
            D = np.ascontiguousarray(D)
            G: Matrix = D @ D.T
        else:
            S, k = self.sparse.astype(dtype, copy=False), len(D)
            columns = np.ascontiguousarray(D.T)  # no copy after a shrink
            G = np.empty((self._parts, self._parts), dtype)
            G[:k, :k] = columns.T @ columns
            G[k:, :k] = S @ columns
            G[:k, k:] = G[k:, :k].T
            G[k:, k:] = (S @ S.T).toarray()
        if self.mix is None:
            return G, float(G.diagonal().max(initial=0))
        L = self.mix.astype(dtype, copy=False)
        terms = np.abs(L) @ np.sqrt(np.maximum(G.diagonal(), 0))
        return L @ G @ L.T, float(terms.max(initial=0)) ** 2

    def combined(self, weights: Matrix) -> Matrix:
        """The rows weightsᵀ·self, in column-major order where there are sparse ones."""
        W = weights if self.mix is None else self.mix.T @ weights
        W = W.astype(self.dtype, copy=False)
        if self.sparse is None:
            return np.asarray(W.T @ np.ascontiguousarray(self.dense))
        k = len(self.dense)
        columns = np.ascontiguousarray(self.dense.T) @ W[:k]
        # Sparse rows touch few columns; only these are looked at.
        touched, place = np.unique(self.sparse.indices, return_inverse=True)
        narrow = type(self.sparse)(
            (self.sparse.data, place.reshape(-1), self.sparse.indptr), (self.sparse.shape[0], len(touched))
        )
        columns[touched] += narrow.T @ W[k:]
        return columns.T

    def toarray(self) -> Matrix:
        """The rows as a dense array of their own."""
        parts = self.dense.copy()
        if self.sparse is not None:
            parts = np.concatenate([parts, self.sparse.toarray()])
        return parts if self.mix is None else (self.mix @ parts).astype(self.dtype, copy=False)

    def owned(self) -> Stack:
        """The same rows, in memory that nobody else has."""
        return Stack(self.dense.copy(), self.sparse, self.mix)

    def widened(self, n_features: int) -> Stack:
        """The same rows with columns of zeros added."""
        wide = np.zeros((len(self.dense), n_features), self.dtype)
        wide[:, : self.width] = self.dense
        if self.sparse is None:
            return Stack(wide, None, self.mix)
        S = self.sparse
        return Stack(wide, type(S)((S.data, S.indices, S.indptr), shape=(S.shape[0], n_features)), self.mix)


def concatenated(stacks: Sequence[Stack]) -> Stack:
    """All rows in one stack, in order if no dense ones follow sparse ones that are not mixed."""
    if len(stacks) == 1:
        return stacks[0]
    filled = [stack.dense for stack in stacks if len(stack.dense)]
    dense = filled[0] if len(filled) == 1 else np.concatenate(filled or [stacks[0].dense])
    parts = [stack.sparse for stack in stacks if stack.sparse is not None]
    sparse = None
    if parts:
        from scipy.sparse import vstack  # dense users need not wait for it

        sparse = parts[0] if len(parts) == 1 else vstack(parts, format="csr")
    if all(stack.mix is None for stack in stacks):
        return Stack(dense, sparse)
    mix = np.zeros((sum(map(len, stacks)), sum(stack._parts for stack in stacks)))
    row, left, right = 0, 0, len(dense)
    for stack in stacks:
        own = np.eye(len(stack)) if stack.mix is None else stack.mix
        rows, k, s = slice(row, row + len(own)), len(stack.dense), stack._parts - len(stack.dense)
        mix[rows, left : left + k], mix[rows, right : right + s] = own[:, :k], own[:, k:]
        row, left, right = row + len(own), left + k, right + s
    return Stack(dense, sparse, mix)
