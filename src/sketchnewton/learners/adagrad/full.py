"""AdaGrad with the full metric: the reference that the sketches approximate."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from sketchnewton import _native
from sketchnewton.core.batch import IndexTooLarge
from sketchnewton.core.hints import Any
from sketchnewton.core.parameters import checked_clip
from sketchnewton.core.state import Vector, zeros
from sketchnewton.core.types import Arrays, Floats, NDArray, np
from sketchnewton.learners.adagrad.penalty import CompositeLearner, checked_classes, checked_composite
from sketchnewton.learners.curvature.base import padded4
from sketchnewton.losses import Loss, get_loss

LARGEST = 100_000  # features; beyond, not even the attempt to get the memory is sensible


@dataclass(frozen=True)
class Metric:
    """H = Q E diag(h) EᵀQᵀ + rest·(I − QQᵀ), Q with orthonormal columns, E orthogonal; None for E = I.

    `rest` is infinite where the complement of Q is empty or must not move.
    """

    Q: Floats
    E: Floats | None
    h: Floats
    rest: float

    def solve(self, v: Floats, shift: float = 0.0) -> Floats:
        """(H + shift·I)⁻¹v."""
        z = self.Q.T @ v
        y = z / (self.h + shift) if self.E is None else self.E @ ((self.E.T @ z) / (self.h + shift))
        inside: Floats = self.Q @ y
        if np.isinf(self.rest):
            return inside
        return inside + (v - self.Q @ z) / (self.rest + shift)


class DenseAdaGrad(CompositeLearner):
    """A learner that keeps all its numbers as dense arrays of exactly as many features as it has met."""

    def __init__(self, clip: float | None, classes: int | None, form: str, **parameters: Any) -> None:
        loss = get_loss(parameters["loss"])
        self._composite = checked_composite(
            parameters["eta"],
            parameters["sigma"],
            parameters["penalty"],
            parameters["penalty_strength"],
            parameters["l1_ratio"],
            form,
        )
        classes = checked_classes(classes, loss, clip, form)
        super().__init__(clip=clip, classes=classes, form=form, **parameters)
        self._clip = checked_clip(clip)
        self._state["counts"] = zeros(2, "int64")  # rounds, dimension
        self._state.update(self._fresh(0))
        self._metrics: list[Metric | None] = [None] * self.outputs

    @property
    def prediction_bounds(self) -> tuple[float, float]:
        """The least and the largest prediction that can be made."""
        return -self._clip, self._clip

    @property
    def dimension(self) -> int:
        """1 + the largest feature index learned from."""
        return int(self._state.view("counts")[1])

    @property
    def weights(self) -> Floats:
        """The weight of each feature: `weights[i]` belongs to feature i."""
        with self._lock:
            w: Floats = self._state["weights"].copy()
        return w[:, 0] if self.classes is None else w

    @property
    def features_seen(self) -> int:
        """How many features have a weight."""
        return len(self._learned_matrix()[0])

    def _learned_matrix(self) -> tuple[NDArray[np.int64], Floats]:
        with self._lock:
            w = self._state["weights"]
            features = np.flatnonzero(w.any(axis=1))
            return features, w[features]

    # -- for the kinds of metric

    def _fresh(self, d: int) -> Arrays:
        """The arrays of d features that have seen nothing."""
        return {"weights": np.zeros((d, self.outputs)), "sums": np.zeros((d, self.outputs))}

    @abstractmethod
    def _take(self, k: int, g: Floats) -> None:
        """Let the gradient of class k into its metric."""

    @abstractmethod
    def _metric(self, k: int) -> Metric:
        """H of class k."""

    # -- learning

    def _reserve(self, largest: int, widest: int) -> None:
        if largest >= LARGEST:
            raise IndexTooLarge(largest, f"is too large for {type(self).__name__}: use SketchedAdaGrad")

    def _grow(self, d: int) -> None:
        fresh = self._fresh(d)
        for name, array in fresh.items():
            old = self._state[name]
            array[tuple(slice(n) for n in old.shape)] = old
        self._state.update(fresh)
        self._state["counts"][1] = d
        self._metrics = [None] * self.outputs

    def _learn(self, rows: _native.Rows, labels: Vector, weights: Vector | None, out: Vector) -> None:
        scores = np.asarray(out).reshape(len(out), self.outputs)
        for i in range(len(labels)):
            h = 1.0 if weights is None else float(weights[i])
            x = np.zeros(self.dimension)
            last = _native.spread_row(rows, i, x)
            if h and last >= self.dimension:
                self._grow(last + 1)
                x = np.zeros(self.dimension)
                _native.spread_row(rows, i, x)
            scores[i] = x @ self._state["weights"] + self._state["intercept"][:, 0]
            if self.classes is None and abs(scores[i, 0]) > self._clip:
                bounded = np.copysign(self._clip, scores[i, 0])
                if h:
                    self._project(x, scores[i, 0] - bounded)
                scores[i, 0] = bounded
            if h:
                self._learn_row(x, self._slopes(scores[i], labels[i], h))

    def _predict(self, rows: _native.Rows, out: Vector) -> None:
        self._predict_scores(rows, out)
        if self.classes is None:
            np.clip(out, -self._clip, self._clip, out=np.asarray(out))

    def _predict_scores(self, rows: _native.Rows, out: Vector) -> None:
        scores = np.asarray(out).reshape(len(out), self.outputs)
        x = np.zeros(self.dimension)
        for i in range(len(out)):
            _native.spread_row(rows, i, x)
            scores[i] = x @ self._state["weights"] + self._state["intercept"][:, 0]

    def _slopes(self, scores: Floats, label: float, h: float) -> Floats:
        if self.classes is None:
            return h * np.atleast_1d(self.loss.derivative(scores[0], label))
        e = np.exp(scores - scores.max())
        slopes: Floats = e / e.sum()
        slopes[int(label)] -= 1.0
        return h * slopes

    def _learn_row(self, x: Floats, slopes: Floats) -> None:
        self._state["counts"][0] += 1
        for k in range(self.outputs):
            g = slopes[k] * x
            if g.any():
                self._take(k, g)
                self._metrics[k] = None
            self._step(k, g)
        if self._params["intercept"]:
            self._learn_intercepts(slopes)

    def _step(self, k: int, g: Floats) -> None:
        c, w = self._composite, self._state["weights"]
        if c.plain and not g.any():
            return
        self._state["sums"][:, k] += g
        times = c.times(self.rows_seen)
        if c.l1:
            w[:, k] = self._solve_l1(k, g, times * c.l1, times * c.l2)
        elif c.averaging:
            w[:, k] = -c.eta * self._known(k).solve(self._state["sums"][:, k], times * c.l2)
        else:
            w[:, k] -= c.eta * self._known(k).solve(g + c.l2 * w[:, k], times * c.l2)

    def _solve_l1(self, k: int, g: Floats, l1: float, l2: float) -> Floats:
        c, metric = self._composite, self._known(k)
        R = metric.Q * np.sqrt(np.maximum(metric.h - c.sigma, 0.0))
        if c.averaging:
            center, pull = np.zeros(self.dimension), -c.eta * self._state["sums"][:, k]
        else:
            center, pull = self._state["weights"][:, k], -c.eta * g
        R, center, pull = (np.ascontiguousarray(a) for a in (R, center, pull))
        return _native.proximal_newton(R, center, pull, c.sigma, l1, l2)

    def _learn_intercepts(self, slopes: Floats) -> None:
        at, c = self._state["intercept"], self._composite
        at[:, 1] = np.hypot(at[:, 1], slopes)
        at[:, 2] -= slopes
        h = c.sigma + at[:, 1]
        at[:, 0] = c.eta * at[:, 2] / h if c.averaging else at[:, 0] - c.eta * slopes / h

    def _project(self, x: Floats, excess: float) -> None:
        """To where |βᵀx| ≤ C, the shortest way in the norm of H."""
        at = self._state["intercept"][0]
        free = 1.0 / (self._composite.sigma + at[1]) if self._params["intercept"] else 0.0
        Px = self._known(0).solve(x)
        quadratic = x @ Px + free
        if quadratic > 0:
            self._state["weights"][:, 0] -= excess / quadratic * Px
            at[0] -= excess / quadratic * free

    def _known(self, k: int) -> Metric:
        metric = self._metrics[k]
        if metric is None:
            metric = self._metrics[k] = self._metric(k)
        return metric

    def _restore(self, arrays: Arrays) -> None:
        d = len(arrays["weights"])
        if not 0 <= d <= LARGEST:
            raise ValueError("it has too many features")
        self._state.update(self._fresh(d))
        super()._restore(arrays)
        rounds, dimension = self._state["counts"].tolist()
        if rounds < 0 or dimension != d:
            raise ValueError("its counters contradict its arrays")
        self._metrics = [None] * self.outputs


class FullAdaGrad(DenseAdaGrad):
    """AdaGrad with the full metric H = σI + (Σggᵀ)^½, ADA-FULL: what the sketches approximate.

    Parameters are those of `SketchedAdaGrad`. Each class has its own d × d matrix.

    Cost per row: O(d³) time, for the singular vectors of all gradients; O(d²) memory. Meant for d up to
    a few hundred.

    `eta`, `sigma`, `penalty`, `penalty_strength`, `l1_ratio`, `form`, `loss`, `clip` and `intercept` are as in
    `SketchedAdaGrad`.

    >>> learner = FullAdaGrad(eta=1.0)
    >>> learner.learn([[3.0, 4.0], [3.0, 4.0]], [1.0, 1.0], sample_weight=None).round(3).tolist()
    [0.0, 4.545]
    """

    _REFRESH = 256  # rounds after which E is made orthonormal again

    def __init__(
        self,
        *,
        eta: float = 0.1,
        sigma: float = 1.0,
        penalty: str | None = None,
        penalty_strength: float = 1e-4,
        l1_ratio: float = 0.5,
        form: str = "mirror_descent",
        loss: str | Loss = "squared",
        clip: float | None = None,
        classes: int | None = None,
        intercept: bool = False,
    ) -> None:
        super().__init__(
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
        )

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues of Σggᵀ, largest first; one row per class if there are several."""
        with self._lock:
            values: Floats = np.square(self._state["s"])
        return values if self.classes else values[0]

    # Σggᵀ = Eᵀ diag(s²) E. The root of an eigenvalue of Σggᵀ itself would have half of the digits.

    def _fresh(self, d: int) -> Arrays:
        E = np.tile(np.eye(d, padded4(d)), (self.outputs, 1, 1))
        return {**super()._fresh(d), "s": np.zeros((self.outputs, d)), "E": E}

    def _take(self, k: int, g: Floats) -> None:
        s, E = self._state["s"][k], self._state["E"][k]
        _native.add_singular_row(s, E, g)
        if self.rows_seen % self._REFRESH == 0:  # rounding errors of so many products add up
            Q, R = np.linalg.qr(E[:, : len(s)].T)
            E[:, : len(s)] = (Q * np.sign(np.diag(R))).T

    def _metric(self, k: int) -> Metric:
        s, E = self._state["s"][k], self._state["E"][k]
        return Metric(E[:, : len(s)].T, None, self._composite.sigma + s, np.inf)
