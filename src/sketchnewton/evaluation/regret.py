"""Regret: how much a learner lost by not knowing the best fixed weights from the start, and what theory allows.

The comparators are all w with |wᵀx_t| ≤ C on the whole stream, as in the paper of sketched online Newton ("SON",
Luo, Agarwal, Cesa-Bianchi and Langford 2016). `sketchnewton.evaluation` has these functions too.

>>> import numpy as np
>>> from sketchnewton import FullNewton
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((500, 4))
>>> y = np.clip(X @ [0.3, -0.2, 0.1, 0.0] + 0.1 * rng.standard_normal(500), -1, 1)
>>> learner = FullNewton(alpha=1.0)
>>> 0 < regret(learner, X, y) < regret_bound(learner, X, y)
True
"""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import ArrayLike

from sketchnewton.core.hints import Any
from sketchnewton.evaluation import adagrad_bounds, newton_bounds
from sketchnewton.evaluation.comparator import TOLERANCE, Comparator, best_fixed, checked_clip, dense
from sketchnewton.learners import FullNewton, InvariantNewton, Learner, SketchedAdaGrad, SketchedNewton
from sketchnewton.losses import get_loss

__all__ = ["Comparator", "best_fixed", "regret", "regret_bound"]


def regret(
    learner: Any, X: Any, y: ArrayLike, *, clip: float | None = None, tolerance: float = TOLERANCE
) -> float:
    """Total loss of `learner` on the stream, each row predicted before it is learned, minus that of `best_fixed`.

    Works on a copy: the learner stays as it is. `clip` (C) is that of the learner unless it is given. A learner
    with an intercept is compared with weights that have one too.

    `X` are the rows, `y` their labels; `tolerance` is that of `best_fixed`.
    """
    params = getattr(learner, "params", {})
    C = checked_clip(params.get("clip") if clip is None else clip)
    predictions = np.asarray(copy.deepcopy(learner).learn(X, y), np.float64)
    labels = np.asarray(y, np.float64)
    loss = get_loss(learner.loss)
    rows = dense(X)
    if params.get("intercept"):
        rows = np.hstack([rows, np.ones((len(rows), 1))])
    suffered = float(loss.value(predictions, labels).sum())
    return suffered - best_fixed(loss, rows, labels, C, tolerance=tolerance).total_loss


def regret_bound(learner: Learner, X: object, y: ArrayLike, *, clip: float | None = None) -> float:
    """Upper bound of `regret(learner, X, y)` by theory: `learner` must be untrained, `X` are rows, `y` labels.

    * `FullNewton`: SON Theorem 2. `InvariantNewton`: SON Corollary 1.
    * `SketchedNewton("fd")`: SON Theorem 3, with the k that makes it least.
    * `SketchedNewton("rfd")`: Theorem 5 of Luo, Chen, Zhang, Li and Zhang (2019) with `alpha` > 0; Theorems 6 and
      7 without.
    * `SketchedAdaGrad("rp", of="data")`: Theorems 1 and 2 of Wan and Zhang (2019), the smaller bound of the two,
      for comparators within `clip` where the learner itself has none.

    The learner runs on a copy, because the bounds are in terms of the gradients, shrinks and errors of the sketch
    that it meets. Where a published proof does not hold, what it needs takes the place of what it says:
    `newton_bounds` and `adagrad_bounds` beside this module, and `docs/regret.md`, say where. Errors say which
    assumption does not hold: a clip, labels within it, no more curvature than the loss has.
    """
    kind = learner.params.get("sketch")
    if isinstance(learner, SketchedAdaGrad) and kind == "rp" and learner.params["of"] == "data":
        return adagrad_bounds.data_projection(learner, X, y, clip)
    exact = isinstance(learner, FullNewton | InvariantNewton)
    if not exact and not (isinstance(learner, SketchedNewton) and kind in ("fd", "rfd")):
        raise ValueError(
            f"no regret bound is known for {learner!r}: there are some for FullNewton, InvariantNewton, fd,"
            " rfd, and for SketchedAdaGrad('rp', of='data')"
        )
    if clip not in (None, learner.params["clip"]):
        raise ValueError(f"clip={clip!r} is invalid: the bound holds for the learner's own")
    run = newton_bounds.Run.of(learner, X, y)
    if isinstance(learner, FullNewton):
        return newton_bounds.full(run)
    if isinstance(learner, InvariantNewton):
        return newton_bounds.invariant(run)
    if kind == "fd":
        return newton_bounds.frequent_directions(run)
    return newton_bounds.robust(run) if learner.params["alpha"] else newton_bounds.robust_without_alpha(run)
