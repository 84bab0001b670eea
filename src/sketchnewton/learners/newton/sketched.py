"""Sketched Online Newton: second-order learning in time proportional to a row's non-zeros."""

from __future__ import annotations

from collections.abc import Sequence

from sketchnewton.core.parameters import checked_dtype, checked_share, checked_size
from sketchnewton.core.sketch_kinds import BY_NAME, SHRINKS
from sketchnewton.learners.curvature import make_sketch
from sketchnewton.learners.curvature.base import SketchParameters
from sketchnewton.learners.newton.table_newton import TableNewton
from sketchnewton.losses import Loss


class SketchedNewton(TableNewton):
    """Sketched Online Newton (SON): second-order steps at the cost of first-order ones, on sparse or dense rows.

    The metric A = αI + SᵀS, with S a sketch of the gradients seen, tells in which directions the weights are
    known well already; each step is A⁻¹ times the gradient. Before a row is predicted, the weights are projected
    (in the norm of A, in closed form) to where |wᵀx| ≤ `clip`.

    Parameters (the paper's symbol, Luo et al. 2016, in parentheses):

    * `sketch`: `"oja"`; Frequent Directions `"fd"`, robust `"rfd"` (a ridge that grows by half of each shrink) or
      parameterised `"pfd"`; Gaussian random projection `"rp"`; or `"none"` for online gradient descent with the
      same projection onto |wᵀx| ≤ C.
    * `sketch_size` (m): how many directions of curvature are kept.
    * `alpha` (α): the metric of directions never seen; 1/α is the step size there. None: ℓ'' times the mean
      of ‖x‖², the largest second derivative of the loss along a row of usual length; the first row sets it, and it
      is reset when the mean has changed by a factor of two. The unit of the features then does not matter (with
      `diagonal`, where it never does: 1, and with `clip="auto"` less as the range grows). `"rfd"`: 0, and it grows
      by itself; with `"auto"` it grows from where the other sketches have it, so that first steps in each new
      direction are not too long.
    * `loss`: a name (`squared`, `logistic`, `hinge`, `quantile:0.9`, …) or a `Loss`.
    * `clip` (C): bound on predictions; None for none; `"auto"` learns the range of the targets as they come.
    * `curvature` (σ): None takes what the loss has on |p| ≤ C; `"local"` what it has at the prediction made
      (RFD's μ_t), so that the sketch is one of √ℓ''·x and a small gradient in a new direction makes no long step.
    * `curvature_weight` (η_t): weight of curvature beyond the loss's own: a number, `"1/t"`, `"1/sqrt(t)"` or
      `"sqrt(d/(C^2 L^2 t))"`, d being the features seen; None is 0 where the loss is curved, else 1/(CL√t).
    * `diagonal`: feed D^-½x instead of x, with D = 0.1 + Σg² per feature (SON §5.2).
    * `intercept`: learn a constant too; it is not penalised by α.
    * `beta` (β): the share of directions that shrink in `"pfd"`, at least one.
    * `shrink`: when Frequent Directions shrink. `"rounds"`: every m rounds (SON Algorithms 6 and 9); `"row"`: in
      every round (SON Algorithm 2, RFD Algorithm 3), at O(m³) per row; `"2m"`: when there are 2m rows, of which m
      are empty at the start and m − 1 are there after a shrink (RFD Algorithm 6).
    * `oja_rate` (Γ_t): `"adaptive"` gives each direction its own rate 1/max(tΛ, ‖ĝ‖²); a number c is the
      shared rate c/t in round t (the paper's experiments: 1.0); a sequence of m numbers gives one per direction.
    * `block`: update Oja's sketch every so many rows (SON §3).
    * `dtype`: precision of the feature table; small matrices are always float64.
    * `random_state`: seed of `"rp"`; the other sketches use no randomness.
    * `project`: False leaves the weights where they are and only clips predictions, at which the loss is then
      taken. No theorem covers it, but on classes ±1 it often errs less: a row beyond its label moves nothing.
      Vowpal Wabbit's OjaNewton does it, and so do SON's published experiments.

    Cost per row with s non-zeros: O(ms + m²); memory: one cache line per feature up to m = 14 in
    float32 (Frequent Directions: up to m = 12). Frequent Directions take O(md) for the d features seen while d is
    at most 64, and where a row nearly lies in their span or is much longer than √α, if d is at most 16s and 4,096:
    there they agree with exact arithmetic to 1e-6 wherever dense float64 does, float32 tables too.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 20)) * np.geomspace(1, 30, 20)
    >>> y = np.sign(X @ (rng.standard_normal(20) / np.geomspace(1, 30, 20)))
    >>> def error(learner):  # in the second half of one pass
    ...     return np.mean(np.sign(learner.learn(X, y)[500:]) != y[500:])
    >>> print(f"{error(SketchedNewton('none')):.2f} {error(SketchedNewton('oja')):.2f}")
    0.18 0.11

    Limits: values beyond ±1e30, NaN and infinity are refused. Predictions are bounded by `clip`, so targets of a
    regression must be scaled to it. A feature index i needs room for i + 1 table rows of address space. `"rp"` in
    float32 overflows if α is smaller than ‖x‖² by a factor of 10²⁰ or more.
    """

    def __init__(
        self,
        sketch: str = "oja",
        sketch_size: int = 10,
        *,
        alpha: float | str | None = None,
        loss: str | Loss = "squared",
        clip: float | str | None = 1.0,
        curvature: float | str | None = None,
        curvature_weight: float | str | None = None,
        diagonal: bool = False,
        intercept: bool = False,
        beta: float = 0.2,
        shrink: str = "rounds",
        oja_rate: str | float | Sequence[float] = "adaptive",
        block: int = 1,
        dtype: str = "float32",
        random_state: int = 0,
        project: bool = True,
    ) -> None:
        if sketch not in BY_NAME:
            raise ValueError(f"sketch={sketch!r} is invalid: must be one of {', '.join(BY_NAME)}")
        if shrink not in SHRINKS:
            raise ValueError(f"shrink={shrink!r} is invalid: must be one of {', '.join(SHRINKS)}")
        if not isinstance(oja_rate, str | float | int):
            oja_rate = [float(rate) for rate in oja_rate]
        chosen = SketchParameters(
            checked_size("sketch_size", sketch_size, 0),
            checked_dtype(dtype),
            checked_share("beta", beta),
            shrink,
            oja_rate,
            checked_size("block", block),
            checked_size("random_state", random_state, 0),
        )
        super().__init__(
            make_sketch(sketch, chosen),
            sketch=sketch,
            sketch_size=chosen.size,
            alpha=alpha,
            loss=loss,
            clip=clip,
            curvature=curvature,
            curvature_weight=curvature_weight,
            diagonal=bool(diagonal),
            intercept=bool(intercept),
            beta=beta,
            shrink=shrink,
            oja_rate=oja_rate,
            block=block,
            dtype=chosen.dtype,
            random_state=random_state,
            project=bool(project),
        )
