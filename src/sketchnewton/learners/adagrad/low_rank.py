"""Approximations of AdaGrad's full metric by a random projection (2016), whose cost grows with the dimension."""

from __future__ import annotations

from sketchnewton.core.parameters import checked_flag, checked_size
from sketchnewton.core.types import Arrays, Floats, NDArray, np
from sketchnewton.learners.adagrad.full import DenseAdaGrad, Metric
from sketchnewton.learners.adagrad.hadamard import hadamard_projection
from sketchnewton.losses import Loss


class _RangeFinder(DenseAdaGrad):
    """What ADA-LR and RADAGRAD share: a metric in the range of G, found by a random projection."""

    def __init__(
        self,
        sketch_size: int = 10,
        *,
        eta: float = 0.1,
        sigma: float = 1.0,
        penalty: str | None = None,
        penalty_strength: float = 1e-4,
        form: str = "mirror_descent",
        loss: str | Loss = "squared",
        clip: float | None = None,
        classes: int | None = None,
        intercept: bool = False,
        random_state: int = 0,
    ) -> None:
        if penalty not in (None, "l2"):
            raise ValueError(f"penalty={penalty!r} is invalid: {type(self).__name__} supports None and 'l2'")
        self._m = checked_size("sketch_size", sketch_size, 1)
        self._seed = checked_size("random_state", random_state, 0)
        super().__init__(
            sketch_size=sketch_size,
            eta=eta,
            sigma=sigma,
            penalty=penalty,
            penalty_strength=penalty_strength,
            l1_ratio=0.0,
            form=form,
            loss=loss,
            clip=clip,
            classes=classes,
            intercept=checked_flag("intercept", intercept),
            random_state=random_state,
        )
        del self._params["l1_ratio"]


class AdaLR(_RangeFinder):
    """ADA-LR: the metric of ADA-FULL in the range of GΠ, Π a subsampled randomised Hadamard transform.

    G̃ = GΠ, QR = G̃, UΣVᵀ = QᵀG, w ← w − ηV(Σ^½ + σI)⁻¹Vᵀg: no step leaves the range of V (Krummenacher et al.
    2016, as in ADA section 2). Where GΠ has a rank below τ, Q is a basis of its range, and directions that
    rounding alone has opened do not move. Penalties: None or `"l2"`.

    Cost per row: O(τd²) time, O(d²) memory.

    `sketch_size` is the number of columns of the random projection, `random_state` its seed.
    `eta`, `sigma`, `penalty`, `penalty_strength`, `form`, `loss`, `clip` and `intercept` are as in
    `SketchedAdaGrad`.

    >>> learner = AdaLR(2, eta=1.0)
    >>> learner.learn([[3.0, 4.0], [3.0, 4.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 4.545]
    """

    def _fresh(self, d: int) -> Arrays:
        return {**super()._fresh(d), "G": np.zeros((self.outputs, d, d))}

    def _take(self, k: int, g: Floats) -> None:
        self._state["G"][k] += np.outer(g, g)

    def _metric(self, k: int) -> Metric:
        G = self._state["G"][k]
        Q, sizes, _ = np.linalg.svd(
            G @ hadamard_projection(np.arange(len(G)), self._m, self._seed), full_matrices=False
        )
        _, values, Vt = np.linalg.svd(Q[:, _clear(sizes, len(G))].T @ G, full_matrices=False)
        kept = _clear(values, len(G))
        return Metric(Vt[kept].T, None, self._composite.sigma + np.sqrt(values[kept]), np.inf)


def _clear(values: Floats, d: int) -> NDArray[np.bool_]:
    """Which singular values of a matrix of order d are more than rounding."""
    return np.asarray(values > d * np.finfo(np.float64).eps * values.max(initial=0.0))


class RadaGrad(_RangeFinder):
    """RADAGRAD: ADA-LR in linear time, with G̃ = Σg(Πᵀg)ᵀ kept as its QR factors.

    With QR = G̃ updated by rank one, R = UΣWᵀ and V = QU: w ← w − ηV(Σ^½ + σI)⁻¹Vᵀg − η(g − VVᵀg); the last
    term is a gradient step in the complement (Krummenacher et al. 2016). Penalties: None or `"l2"`.

    Cost per row: O(τd + τ³) time, O(τd) memory; it does not use that rows are sparse.

    `sketch_size` is the number of columns of the random projection, `random_state` its seed.
    `eta`, `sigma`, `penalty`, `penalty_strength`, `form`, `loss`, `clip` and `intercept` are as in
    `SketchedAdaGrad`.

    >>> learner = RadaGrad(2, eta=1.0)
    >>> learner.learn([[3.0, 4.0], [3.0, 4.0]], [1.0, 1.0]).round(3).tolist()
    [0.0, 4.545]
    """

    _REFRESH = 256  # rounds after which Q is made orthonormal again

    def _fresh(self, d: int) -> Arrays:
        m, rows = self._m, max(d, self._m)
        return {
            **super()._fresh(d),
            "Q": np.tile(np.eye(rows, m), (self.outputs, 1, 1)),
            "R": np.zeros((self.outputs, m, m)),
        }

    def _take(self, k: int, g: Floats) -> None:
        from scipy.linalg import qr_update  # takes longer to load than all learners

        Q, R = self._state["Q"], self._state["R"]
        u = np.zeros(Q.shape[1])
        u[: len(g)] = g
        used = np.flatnonzero(g)
        v = g[used] @ hadamard_projection(used, self._m, self._seed)
        Q[k], R[k] = qr_update(Q[k], R[k], u, v, check_finite=False)
        if self.rows_seen % self._REFRESH == 0:
            Q[k], R[k] = np.linalg.qr(Q[k] @ R[k])

    def _metric(self, k: int) -> Metric:
        U, values, _ = np.linalg.svd(self._state["R"][k])
        Q = self._state["Q"][k, : self.dimension]
        return Metric(Q, U, self._composite.sigma + np.sqrt(values), 1.0)
