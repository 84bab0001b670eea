"""The sketches of several banks as one, and how much of the ridge one bank would have (docs/merging.md).

A bank lets rows wait and works so many into its sketch at a time as its buffer holds: few at first, more later.
Each time the sketch is shrunk, and what is taken away joins the ridge. Where rows have many directions that is
about one row's square, however many rows waited, so that the ridge follows the number of updates, not of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from sketchnewton.core.types import Floats, np
from sketchnewton.learners.newton import bank_layout as layout

__all__ = ["buffered", "eigenpairs", "growth", "updates"]

_GROWS = 16.0  # rows in which the buffer grows by one: `due` of native/learners/bank_sketch.hpp
_NO_LENGTH = 1e-12  # of the largest square, below which a direction of sketches' rows is rounding


def buffered(rows: float, m: int) -> float:
    """How many rows wait for an update of a sketch of m directions, after so many rows."""
    return min(float(layout.BUFFER * m), 1.0 + rows / _GROWS)


def updates(rows: float, m: int) -> float:
    """How many updates there are in so many rows, each counted as often as its rows stand for rows.

    The integral of one over `buffered`; the kernel's buffers hold whole numbers of rows.
    """
    early = min(rows, _GROWS * (layout.BUFFER * m - 1))
    return float(_GROWS * np.log1p(early / _GROWS) + (rows - early) / (layout.BUFFER * m))


def growth(begun: float, ended: Sequence[float], m: int) -> float:
    """What sides added to their ridges is multiplied by: updates of one bank in place of those of all sides.

    The base had `begun` rows and the sides have `ended` with so many. If there is no base, each side begins with
    small buffers, and has had more updates than one bank in the rows of all.
    """
    whole = begun + sum(end - begun for end in ended)
    theirs = sum(updates(end, m) - updates(begun, m) for end in ended)
    return (updates(whole, m) - updates(begun, m)) / theirs if theirs > 0.0 else 1.0


def eigenpairs(rows: Floats, signs: Floats, most: int) -> tuple[Floats, Floats]:
    """Of Σ sign·row·rowᵀ, the largest first; the vectors are orthonormal to rounding.

    By way of the rows' products: a QR decomposition of the rows takes ten times as long.
    """
    if not len(rows):
        return np.zeros(0), rows
    squares, turn = np.linalg.eigh(rows @ rows.T)
    spans = squares > _NO_LENGTH * max(squares[-1], np.finfo(float).tiny)
    lengths, turn = np.sqrt(squares[spans]), turn[:, spans]  # rows = turn · diag(lengths) · orthonormal rows
    inside = lengths[:, None] * ((turn.T * signs) @ turn) * lengths
    values, vectors = np.linalg.eigh(inside)
    values, vectors = values[::-1][:most], vectors[:, ::-1][:, :most]
    found = (turn @ (vectors / lengths[:, None])).T @ rows
    factor = np.linalg.cholesky(found @ found.T)  # all but the identity: mends what rounding did
    return values, np.linalg.inv(factor) @ found
