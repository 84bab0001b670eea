"""What the experts of fresh banks say of the mean row does not add up when they are merged (docs/merging.md).

Each of several fresh banks finds out how frequent labels are, and rows of many features spread that over all of
them. Where what was learned of rare features adds up, it would be there many times over.
"""

from __future__ import annotations

from sketchnewton.core.types import Floats, np
from sketchnewton.learners.newton import bank_layout as layout

__all__ = ["mean_rows", "scores", "with_scores"]

_ROUNDING = 1e-9  # of the largest entry of a direction


def mean_rows(seen: Floats, leading: Floats, views: Floats, constants: Floats) -> Floats:
    """The mean of all rows as each expert sees it, 1 long: features, then the constant, × experts.

    By the share of rows that had each feature (`seen`), and what each expert sees as the constant. Banks know how
    large features are, not on which side of 0. Where most are on one side, as counts are, the mean row has a
    large part in all rows, and the `leading` direction of their sketch has its signs. Where they are on both
    sides there is no such row, and this is one like any other. Features of other rows have no part in it: there
    that direction is rounding, whose signs are those of no row.
    """
    sizes = np.append(seen**0.75, 1.0)  # as features are scaled
    signs = np.sign(np.where(np.abs(leading) > _ROUNDING * np.abs(leading).max(), leading, 0.0))
    rows = np.outer(signs * sizes, np.ones(len(views)))
    rows[-1] *= np.where(np.isin(views, layout.HEAVY_VIEWS), constants, 1.0)
    lengths = np.linalg.norm(rows, axis=0)
    return np.asarray(rows / np.where(lengths > 0.0, lengths, 1.0))


def scores(weights: Floats, rows: Floats) -> Floats:
    """Of each expert's row."""
    return np.asarray(np.sum(weights * rows, axis=0))


def with_scores(weights: Floats, rows: Floats, wanted: Floats) -> Floats:
    """Weights, moved along each expert's row until its score is the one that is wanted."""
    return np.asarray(weights + rows * (wanted - scores(weights, rows)))
