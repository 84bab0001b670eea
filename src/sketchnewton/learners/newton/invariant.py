"""Online Newton that does not care in which coordinates the rows come."""

from __future__ import annotations

from collections.abc import Callable

from sketchnewton import _native
from sketchnewton.core.hints import Self
from sketchnewton.core.state import View
from sketchnewton.core.types import Arrays, Floats, np
from sketchnewton.learners.newton.full import MatrixLearner
from sketchnewton.losses import Loss

_ROUNDING = 1e-12  # kRounding of native/learners/invariant_newton.hpp


class _Basis:
    """Orthonormal rows Q, and the rows RQ of the given lengths that they were made from."""

    def __init__(self, Q: Floats, R: Floats, length: Floats) -> None:
        self.Q, self.R, self.length = Q, np.tril(R), length

    def add(self, x: Floats) -> None:
        """Extend the basis by `x`, unless rounding alone could make it a combination of the rows."""
        xhat, u = np.zeros(len(self.Q)), x
        for _ in range(2):
            left = self.Q @ u
            xhat, u = xhat + left, u - left @ self.Q
        outside, norm = float(np.linalg.norm(u)), float(np.linalg.norm(x))
        reach = np.abs(np.linalg.solve(self.R.T, xhat)) @ self.length
        if outside <= _ROUNDING * (norm + reach):
            return
        n = len(self.Q)
        self.Q = np.vstack([self.Q, u / outside])
        self.R = np.block([[self.R, np.zeros((n, 1))], [xhat[None, :], np.array([[outside]])]])
        self.length = np.append(self.length, norm)


class InvariantNewton(MatrixLearner):
    """Online Newton Step without a ridge: A = Σ(σ + η)ggᵀ and its pseudo-inverse (SON Appendix D).

    Predictions are the same on rows x and on rows Mx, for every invertible M: there is no unit, scale or
    correlation of features to take care of, and no α to choose. A row that is not a combination of the rows
    learned from so far is predicted as 0: nothing that does not depend on the coordinates can be said about it.
    (The paper's projection moves such rows only if |wᵀx| > C; its predictions then do depend on them.)

    So it is in exact arithmetic. Rows Mx are rounded before anybody sees them, which is as if x had been changed
    by 2⁻⁵³ κ of its length, where κ is M's condition number with every feature of Mx in a unit of its own. (Units
    cost nothing, however large.) Predictions differ by what such a change makes of them: on random rows less than
    1e-6 up to κ of about 10⁷, more where rows are all but combinations of others. From κ = 10¹⁰ on a row may count
    as a combination in one of the two and not in the other, and then nothing is promised.

    Parameters are those of `SketchedNewton`. A row counts as a combination of others if changing all of them by
    10⁻¹² of their length would make it one. `predict` counts features never seen as zero, as every learner does.
    `weights` are the shortest that give these predictions, each feature in a unit of about its first value; they
    say nothing about rows outside the span. Cost per row: O(d²) time; memory: three d × d matrices.

    `loss`, `clip` (C), `curvature` (σ), `curvature_weight` (η_t) and `intercept` are as in `SketchedNewton`.

    >>> X, y = np.array([[1.0, 2.0], [3.0, -1.0], [1.0, 1.0]]), [1.0, -1.0, 1.0]
    >>> M = np.array([[1.0, 100.0], [0.0, 1000.0]])
    >>> InvariantNewton().learn(X, y).round(6).tolist()
    [0.0, 0.0, 1.0]
    >>> InvariantNewton().learn(X @ M, y).round(6).tolist()
    [0.0, 0.0, 1.0]
    """

    def __init__(
        self,
        *,
        loss: str | Loss = "squared",
        clip: float | None = 1.0,
        curvature: float | None = None,
        curvature_weight: float | str | None = None,
        intercept: bool = False,
    ) -> None:
        super().__init__(
            3,
            loss=loss,
            clip=clip,
            curvature=curvature,
            curvature_weight=curvature_weight,
            intercept=bool(intercept),
        )
        if self._sigma == 0 and self._schedule.first == 0:
            raise ValueError("curvature_weight=0 is invalid: without curvature of the loss it must be > 0")
        self._resize(1)

    @property
    def rank(self) -> int:
        """How many independent rows have been learned from."""
        return int(self._state.view("counts")[2])

    @property
    def weights(self) -> Floats:
        """The weight of each feature: `weights[i]` belongs to feature i."""
        return self._weights()[1:]

    @property
    def intercept_(self) -> float:
        """The constant that is added to every score; 0 without an intercept."""
        return float(self._weights()[0])

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues of A, largest first."""
        with self._lock:
            r = self.rank
            U, S = self._state["U"][:r, :r], self._basis() * self._units()
        factor = np.triu(U) @ S[:, 1:]
        return np.asarray(np.linalg.svd(factor, compute_uv=False) ** 2, np.float64)

    def _basis(self) -> Floats:
        Q: Floats = self._state["Q"][: self.rank, : 1 + self.dimension]
        return Q

    def _units(self) -> Floats:
        unit: Floats = self._state["unit"][: 1 + self.dimension]
        return unit

    def _weights(self) -> Floats:
        with self._lock:
            w = self._state["v"][: self.rank] @ self._basis()
            unit = self._units()
            return np.divide(w, unit, out=np.zeros_like(w), where=unit > 0)

    def _merged(self, other: Self) -> Arrays:
        """A adds up; w minimises ‖w − w₁‖² in the norm of A₁ plus ‖w − w₂‖² in that of A₂, on the range of both.

        That is as invariant as the learner itself. The basis is extended by those rows of the other one that are
        no combinations of rows known here.
        """
        d = 1 + max(self.dimension, other.dimension)
        mine, theirs = self._wide(d), other._wide(d)
        unit = np.where(mine["unit"] > 0, mine["unit"], theirs["unit"])
        change = np.divide(theirs["unit"], unit, out=np.zeros(d), where=unit > 0)
        r, s = self.rank, other.rank
        basis = _Basis(mine["Q"][:r], mine["R"][:r, :r], mine["length"][:r])
        for row in np.tril(theirs["R"][:s, :s]) @ theirs["Q"][:s] * change:
            basis.add(row)
        factors = [
            np.triu(mine["U"][:r, :r]) @ mine["Q"][:r] @ basis.Q.T,
            np.triu(theirs["U"][:s, :s]) @ (theirs["Q"][:s] * change) @ basis.Q.T,
        ]
        targets = [np.triu(a["U"][:n, :n]) @ a["v"][:n] for a, n in ((mine, r), (theirs, s))]
        rotation, U = np.linalg.qr(np.vstack(factors))
        v = np.linalg.solve(U, rotation.T @ np.concatenate(targets))
        n = len(basis.Q)
        whole = self._fresh(d)
        whole["unit"] = unit
        whole["Q"][:n], whole["R"][:n, :n], whole["length"][:n] = basis.Q, basis.R, basis.length
        whole["U"][:n, :n] = np.where(np.diag(U) < 0, -1.0, 1.0)[:, None] * U
        whole["v"][:n] = v
        return {"counts": np.array([self.rows_seen + other.rows_seen, d - 1, n]), **whole}

    @property
    def _make(self) -> Callable[[_native.Problem, bool, dict[str, View]], _native.RowKernel]:
        return _native.invariant_newton

    def _fresh(self, size: int) -> Arrays:
        unit = np.zeros(size)
        unit[0] = 1.0
        matrices = {name: np.zeros((size, size)) for name in ("Q", "U", "R")}
        return {"unit": unit, **matrices, "length": np.zeros(size), "v": np.zeros(size)}

    def _counters_fit(self) -> bool:
        return super()._counters_fit() and 0 <= self.rank <= 1 + self.dimension
