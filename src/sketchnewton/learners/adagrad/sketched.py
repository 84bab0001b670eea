"""AdaGrad with a sketched metric: directions instead of coordinates, in time proportional to a row's non-zeros."""

from __future__ import annotations

import math
from dataclasses import replace

from sketchnewton import _native
from sketchnewton.core.hints import Any
from sketchnewton.core.parameters import checked_dtype, checked_size
from sketchnewton.core.state import Buffers, Vector, zeros
from sketchnewton.core.types import Arrays, Floats, NDArray, np
from sketchnewton.learners.adagrad.penalty import CompositeLearner, checked_classes, checked_composite
from sketchnewton.learners.adagrad.states import AdaptiveSketch, FrequentBasis, ProjectionBasis
from sketchnewton.learners.bounded import RangedLearner
from sketchnewton.losses import Loss, get_loss

SKETCHES = ("rp", "fd", "rfd")
OF = ("gradients", "data")


class SketchedAdaGrad(CompositeLearner, RangedLearner):
    """AdaGrad whose metric is the square root of a sketched matrix: ADA-GP, ADA-DP, ADA-FD.

    w ← w − η H⁻¹g with H = σI + (SᵀS)^½, where S sketches all gradients (or rows) seen (Wan and Zhang 2019).
    Diagonal AdaGrad sees the scale of each feature; this sees that of each direction, so correlated features do
    not slow it down.

    Parameters (the paper's symbols in parentheses):

    * `sketch`: Gaussian random projection `"rp"`, an unbiased estimate; Frequent Directions `"fd"`, which keeps
      the largest directions and shrinks every τ rounds; or its robust form `"rfd"`, H = σI + (SᵀS + αI)^½ with
      an α that grows by half of each shrink. `sketch_size` (τ): rows of S for `"rp"`; Frequent Directions keep
      up to τ − 1 over a shrink, and the τ rows since then.
    * `of`: `"gradients"` (ADA-GP for `"rp"`) or `"data"` (ADA-DP): rows in place of gradients.
    * `eta` (η): the step size. `sigma` (σ): the metric of directions never seen, where steps are ηg/σ.
    * `penalty` (φ): None, `"l1"`, `"l2"` or `"elasticnet"`: `penalty_strength` times ‖w‖₁, ½‖w‖², or their mixture
      with `l1_ratio`, solved in the metric H. The intercept pays none.
    * `form`: `"mirror_descent"` (composite) or `"dual_averaging"` (primal-dual): w = argmin η⟨Σg, w⟩ + ηtφ(w) +
      ½wᵀHw.
    * `loss`, `clip` (mirror descent: projection onto |wᵀx| ≤ clip in the norm of H; `"auto"` learns the range of
      the targets), `intercept`, `dtype`: as in the other learners. `random_state`: seed of `"rp"`.
    * `classes`: K for the multinomial logistic loss (cross-entropy) with labels 0, …, K − 1 and K scores per row.
      Each class has a sketch of its gradients; a sketch of data serves all.

    Cost per row with s non-zeros: O(τs + τ³), for the l2 penalty and dual averaging too. Where Frequent Directions
    meet a row that nearly lies in their span, they look at all d features seen, in O(τd): always while d is below
    about 2,000, else now and then, so that it costs no more than the rows themselves. `"l1"` and `"elasticnet"`
    have no closed form in a metric that is not diagonal: a Newton method in τ variables solves each round to
    a relative residual of 1e-11, at O(dτ²) per step for the d features seen.

    >>> rng = np.random.default_rng(0)
    >>> X = 3 + rng.standard_normal((2000, 20)) * np.geomspace(1, 0.1, 20)  # far from the origin: correlated
    >>> y = X @ rng.standard_normal(20)
    >>> def error(learner):  # in the second half of one pass
    ...     return np.abs(learner.learn(X, y) - y)[1000:].mean()
    >>> from sketchnewton import AdaGrad
    >>> print(f"{error(AdaGrad(loss='absolute')):.2f} {error(SketchedAdaGrad(loss='absolute')):.2f}")
    0.85 0.10

    `"fd"` and `"rfd"` in float64 agree with exact arithmetic wherever dense float64 does, for d up to about 2,000.
    So does `"rp"` for d up to 256 + 16τ; with more features it works with SSᵀ, squares of lengths, and rows whose
    lengths differ by a factor of 10⁴ cost it all but a few digits.
    Limits: outside the sketch a step is ηg/σ however many gradients there were, so a σ that is small against
    their size diverges where the sketch is too small for the data. Values beyond ±1e30, NaN and infinity are
    refused.
    """

    _kernel: _native.SketchKernel

    def __init__(
        self,
        sketch: str = "rp",
        sketch_size: int = 10,
        *,
        of: str = "gradients",
        eta: float = 0.1,
        sigma: float = 1.0,
        penalty: str | None = None,
        penalty_strength: float = 1e-4,
        l1_ratio: float = 0.5,
        form: str = "mirror_descent",
        loss: str | Loss = "squared",
        clip: float | str | None = None,
        classes: int | None = None,
        intercept: bool = False,
        dtype: str = "float32",
        random_state: int = 0,
    ) -> None:
        if sketch not in SKETCHES:
            raise ValueError(f"sketch={sketch!r} is invalid: must be one of {', '.join(SKETCHES)}")
        if of not in OF:
            raise ValueError(f"of={of!r} is invalid: must be one of {', '.join(map(repr, OF))}")
        m = checked_size("sketch_size", sketch_size, 1)
        self._composite = checked_composite(eta, sigma, penalty, penalty_strength, l1_ratio, form)
        classes = checked_classes(classes, get_loss(loss), clip, form)
        outputs = classes or 1
        self._blocks, self._shared = (1, outputs) if of == "data" else (outputs, 1)
        self._sketch: AdaptiveSketch
        if sketch == "rp":
            seed = checked_size("random_state", random_state, 0)
            averaging = self._composite.averaging
            self._sketch = ProjectionBasis(
                m, checked_dtype(dtype), self._blocks, self._shared, seed, averaging
            )
        else:
            ridge = 0.5 if sketch == "rfd" else 0.0
            self._sketch = FrequentBasis(m, checked_dtype(dtype), self._blocks, self._shared, ridge)
        beside = self._composite.averaging and (sketch == "rp" or self._composite.l1)
        sums = outputs if beside else 0
        super().__init__(
            columns=2 + self._blocks * (self._sketch.columns + self._shared) + sums,
            sketch=sketch,
            sketch_size=m,
            of=of,
            eta=eta,
            sigma=sigma,
            penalty=penalty,
            penalty_strength=penalty_strength,
            l1_ratio=l1_ratio,
            form=form,
            loss=loss,
            clip=clip,
            classes=classes,
            intercept=bool(intercept),
            dtype=checked_dtype(dtype),
            random_state=random_state,
        )
        self._state.update(self._sketch.fresh())
        self._kernel = self._bind()

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues of the sketch SᵀS, largest first; one row per class if each has its own."""
        with self._lock:
            values = self._sketch.spectra(self._state)
        return values[0] if self._blocks == 1 else values

    @property
    def sketch(self) -> Floats:
        """S as rows in all features up to `dimension`: SᵀS is what the metric is the square root of (without α).

        One such matrix per class, stacked, if each has its own.
        """
        with self._lock:
            rows = self._settled()
            S = np.zeros((self._blocks, self._sketch.height(self._state), self.dimension))
            for block in range(self._blocks):
                part = self._sketch.matrix(self._state, block, rows[:, self._basis_columns(block)])
                S[block][: len(part), self._seen] = part
        return S[0] if self._blocks == 1 else S

    def _basis_columns(self, block: int) -> slice:
        # the first block's weight stands at the row's start; see BlockShape in native/bindings/adagrad.cpp
        start = 2 + block * (self._sketch.columns + self._shared) + (block > 0)
        return slice(start, start + self._sketch.columns + self._shared - 1)

    def _learned_matrix(self) -> tuple[NDArray[np.int64], Floats]:
        with self._lock:
            rows = self._settled()
            values = np.empty((len(rows), self.outputs))
            for block in range(self._blocks):
                part = self._basis_columns(block)
                basis = rows[:, part]
                for k in range(self._shared):
                    first = 0 if block == 0 else part.start - 1
                    column = first if k == 0 else part.start + self._sketch.further + k - 1
                    scale = self._state["a"][block]
                    inside = basis @ self._sketch.coefficients(self._state, block, k)
                    values[:, block * self._shared + k] = scale * (rows[:, column] + inside)
            return self._seen.copy(), values * self._unit

    def _settled(self) -> Floats:
        """The table's rows of the features seen, with all work done that a sketch has put off."""
        rows = np.empty((len(self._seen), self._table.width), self._table.dtype)
        self._kernel.settled(rows)
        return rows.astype(np.float64)

    def _bind(self, clip: float | None = None) -> _native.SketchKernel:
        reach, loss = self.bound / self._unit, self._kernel_loss
        problem = _native.problem(loss.code, loss.parameter, reach if clip is None else clip, 0.0, 0.0, 0.0)
        scaled = replace(self._composite, eta=self._composite.eta * (reach if self._ranged else 1.0))
        composite = scaled.native(of_data=self._params["of"] == "data")
        return self._sketch.kernel(problem, composite, self._params["intercept"], self._views())

    @property
    def intercepts(self) -> Floats:
        """The constants that are added to the scores, one per class."""
        values = super().intercepts
        return self._offset + self._unit * values if self._ranged else values

    def _predict_scores(self, rows: _native.Rows, out: Vector) -> None:
        self._bind(clip=math.inf).predict(rows, out)
        scores = np.asarray(out)
        scores *= self._unit
        scores += self._offset

    def _reserve(self, largest: int, widest: int) -> None:
        self._replace(self._sketch.reserve(self._state, widest))
        super()._reserve(largest, widest)

    def _all_arrays(self) -> Buffers:
        return {**super()._all_arrays(), **self._sketch.saved(self._state)}

    def _restore(self, arrays: Arrays) -> None:
        arrays = self._sketch.restored(arrays)
        if "touched" in self._state:
            self._state["touched"] = zeros(arrays["touched"].shape, "int64")
        super()._restore(arrays)

    def _counters_fit(self) -> bool:
        rows: NDArray[Any] = self._table.rows[self._seen]
        return super()._counters_fit() and all(
            self._sketch.fits(self._state, block, self._seen, rows[:, self._basis_columns(block)])
            for block in range(self._blocks)
        )
