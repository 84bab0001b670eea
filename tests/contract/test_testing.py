"""The contract tests work for classes of somebody else: good ones pass, and each sort of break is named."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import pytest

from sketchnewton import AdaGrad, FrequentDirections, Learner, RobustFrequentDirections, Sketch, _native
from sketchnewton.core.persistence import expect
from sketchnewton.core.state import Vector, zeros
from sketchnewton.core.types import Arrays, Floats
from sketchnewton.losses import Loss, get_loss
from sketchnewton.sketches.base import LowRank, widened
from sketchnewton.sketches.rows import Rows
from sketchnewton.streams import BatchReader, open_stream
from sketchnewton.testing import (
    LEARNER_PROMISES,
    LOSS_PROMISES,
    SKETCH_PROMISES,
    Theory,
    check_learner,
    check_loss,
    check_reader,
    check_sketch,
)


class LongestRows(Sketch):
    """Keeps the longest rows as they are; theory says nothing of its error."""

    def __init__(self, sketch_size: int, *, dtype: str = "float64") -> None:
        super().__init__(sketch_size=sketch_size, dtype=dtype)
        self._kept = np.zeros((0, 0), self.dtype)
        self._squares = 0.0

    @property
    def error_bound(self) -> float:
        return np.inf

    @property
    def squared_norm(self) -> float:
        return self._squares

    def _widen(self, n_features: int) -> None:
        self._kept = widened(self._kept, n_features)

    def _absorb(self, rows: Rows) -> None:
        for at in range(len(rows)):
            row = rows.block(at, at + 1, np.float64)
            self._squares += float((row**2).sum())
            self._keep(np.vstack([self._kept, row.astype(self.dtype)]))

    def _keep(self, rows: Floats) -> None:
        longest = np.argsort(-np.linalg.norm(rows.astype(np.float64), axis=1), kind="stable")
        self._kept = rows[np.sort(longest[: self.params["sketch_size"]])]

    def _decompose(self) -> LowRank:
        return LowRank.of(self._kept)

    def _merge(self, other: Self) -> None:
        self._squares += other._squares
        self._keep(np.vstack([self._kept, other._kept]))

    def _all_arrays(self) -> Arrays:
        return {**super()._all_arrays(), "kept": self._kept, "squares": np.array([self._squares])}

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        self._kept = expect(arrays, "kept", self.dtype, (None, self.n_features))
        self._squares = float(expect(arrays, "squares", np.float64, (1,))[0])


class NormalizedGradient(Learner):
    """Gradient steps divided by 1 + ‖x‖², in plain NumPy: w ← w − η h ℓ'(wᵀx) x / (1 + ‖x‖²)."""

    def __init__(self, eta: float = 0.2, *, loss: str | Loss = "squared") -> None:
        super().__init__(eta=eta, loss=loss)
        self._state.update({"counts": zeros(2, "int64"), "weights": zeros(0), "intercept": zeros(1)})

    @property
    def dimension(self) -> int:
        return int(self._state["counts"][1])

    @property
    def weights(self) -> Floats:
        with self._lock:
            return self._state["weights"].copy()

    def _reserve(self, largest: int, widest: int) -> None:
        """Room is made when a row is learned."""

    def _learn(self, rows: _native.Rows, labels: Vector, weights: Vector | None, out: Vector) -> None:
        for i in range(len(labels)):
            h = 1.0 if weights is None else float(weights[i])
            x = np.zeros(self.dimension)
            last = _native.spread_row(rows, i, x)
            if h and last >= self.dimension:
                self._state.resize("weights", last + 1, self.dimension)
                self._state["counts"][1] = last + 1
                x = np.zeros(self.dimension)
                _native.spread_row(rows, i, x)
            out[i] = float(x @ self._state["weights"])
            if h:
                self._step(x, h * float(self.loss.derivative(out[i], labels[i])))

    def _step(self, x: Floats, slope: float) -> None:
        self._state["weights"] -= self.params["eta"] * slope * x / (1.0 + x @ x)
        self._state["counts"][0] += 1

    def _predict(self, rows: _native.Rows, out: Vector) -> None:
        x = np.zeros(self.dimension)
        for i in range(len(rows)):
            _native.spread_row(rows, i, x)
            out[i] = float(x @ self._state["weights"])

    def _restore(self, arrays: Arrays) -> None:
        rounds, dimension = expect(arrays, "counts", np.int64, (2,)).tolist()
        if rounds < 0 or dimension != len(expect(arrays, "weights", np.float64, (None,))):
            raise ValueError("its counters contradict its arrays")
        self._state.resize("weights", dimension, 0)
        super()._restore(arrays)


@pytest.mark.parametrize("promise", LEARNER_PROMISES)
def test_a_learner_written_elsewhere(promise: str) -> None:
    check_learner(NormalizedGradient, only=[promise])
    check_learner(lambda: NormalizedGradient(0.1, loss="poisson"), only=[promise])


@pytest.mark.parametrize("promise", SKETCH_PROMISES)
def test_a_sketch_written_elsewhere(promise: str) -> None:
    check_sketch(LongestRows, only=[promise])


# -- learners that break a promise


class BatchesMatter(NormalizedGradient):
    def _learn(self, *args: Any) -> None:
        super()._learn(*args)
        self._state["weights"] *= 0.999


class LearnsFromWeightZero(NormalizedGradient):
    def learn(self, X: object, y: Any, sample_weight: Any = None) -> Floats:
        return super().learn(X, y)


class PredictLearns(NormalizedGradient):
    def _predict(self, rows: _native.Rows, out: Vector) -> None:
        super()._predict(rows, out)
        self._state["weights"] *= 0.5


class ForgetsOnSaving(NormalizedGradient):
    def _restore(self, arrays: Arrays) -> None:
        super()._restore({**arrays, "counts": np.array([0, arrays["counts"][1]])})


class SharesItsState(NormalizedGradient):
    def __deepcopy__(self, memo: Any) -> Self:
        return self


class Explodes(NormalizedGradient):
    def _step(self, x: Floats, slope: float) -> None:
        self._state["weights"] -= 10.0 * slope * x
        self._state["counts"][0] += 1


class LearnsWithoutChecking(NormalizedGradient):
    def learn(self, X: object, y: Any, sample_weight: Any = None) -> Floats:
        if len(y) > 1 and np.isnan(np.asarray(y, float)).any():
            super().learn(np.ones((1, 1)), y[:1])
        return super().learn(X, y, sample_weight)


class LosesRows(NormalizedGradient):
    """Adds what each call has learned to what was there before it, without a lock."""

    def learn(self, X: object, y: Any, sample_weight: Any = None) -> Floats:
        seen = self.rows_seen
        predictions = super().learn(X, y, sample_weight)
        time.sleep(1e-3)
        self._state["counts"][0] = seen + len(predictions)
        return predictions


class TrustsFiles(NormalizedGradient):
    def _restore(self, arrays: Arrays) -> None:
        self._state.resize("weights", len(arrays["weights"]), 0)
        super(NormalizedGradient, self)._restore(arrays)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("make", "promise"),
    [
        (BatchesMatter, "batches do not matter"),
        (LearnsFromWeightZero, "weight zero leaves no trace"),
        (PredictLearns, "predict is the next prediction and changes nothing"),
        (ForgetsOnSaving, "saving loading and continuing equals never stopping"),
        (ForgetsOnSaving, "bytes come back whole"),
        (SharesItsState, "copies are independent"),
        (Explodes, "features of any scale stay finite"),
        (LearnsWithoutChecking, "bad input changes nothing"),
        (LosesRows, "one learner serves several threads"),
        (TrustsFiles, "a file must fit its class"),
        (lambda: 3, "rows of zeros are rows"),
    ],
)
def test_a_broken_learner_is_caught(make: Callable[[], Learner], promise: str) -> None:
    with pytest.raises(AssertionError, match=f"^broken promise: {promise}: "):
        check_learner(make, only=[promise])


def test_all_promises_are_checked() -> None:
    with pytest.raises(AssertionError, match=r"^broken promise: batches do not matter: "):
        check_learner(BatchesMatter)
    with pytest.raises(ValueError, match="'be nice' is not a promise: choose from 'batches do not matter'"):
        check_learner(AdaGrad, only=["be nice"])


# -- sketches that break a promise


class ForgetsTheFirstRow(LongestRows):
    def _absorb(self, rows: Rows) -> None:
        super()._absorb(rows)
        self._kept[:1] = 0


class NoLimit(LongestRows):
    def _keep(self, rows: Floats) -> None:
        self._kept = rows


class Overconfident(FrequentDirections):
    @property
    def error_bound(self) -> float:
        return super().error_bound / 2


class GivesItsStateAway(LongestRows):
    @property
    def matrix(self) -> Floats:
        return self._kept


class Takes(LongestRows):
    """What is merged in is gone from where it was."""

    def _merge(self, other: Self) -> None:
        super()._merge(other)
        other._kept = other._kept[:0]


class Overflows(LongestRows):
    @property
    def squared_norm(self) -> float:
        return self._squares * 1e200


class IgnoresDecay(FrequentDirections):
    def __init__(self, sketch_size: int, *, decay: float = 1.0) -> None:
        super().__init__(sketch_size)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("make", "promise"),
    [
        (ForgetsTheFirstRow, "how rows arrive does not matter"),
        (NoLimit, "the certificate holds at any time"),
        (Overconfident, "the certificate holds at any time"),
        (GivesItsStateAway, "reading changes nothing"),
        (Takes, "merging in any tree keeps the bound"),
        (Overflows, "nothing is ever nan"),
        (IgnoresDecay, "decay weighs rows by their age"),
    ],
)
def test_a_broken_sketch_is_caught(make: Callable[..., Sketch], promise: str) -> None:
    with pytest.raises(AssertionError, match=f"^broken promise: {promise}: "):
        check_sketch(make, only=[promise])


def test_a_theory_that_is_not_true_is_caught() -> None:
    nothing, promise = Theory(guarantee=lambda A, m: 0.0), "the certificate holds at any time"
    with pytest.raises(AssertionError, match=f"{promise}: error_bound .* beyond theory's 0"):
        check_sketch(FrequentDirections, theory=nothing, only=[promise])
    with pytest.raises(AssertionError, match=f"{promise}: BᵀB exceeds AᵀA"):
        check_sketch(RobustFrequentDirections, theory=Theory(below=True), only=[promise])


# -- losses and readers that break a promise


def changed(name: str, **methods: Any) -> Loss:
    """A known loss with some methods replaced."""
    return type("Changed", (type(get_loss(name)),), methods)()


@pytest.mark.parametrize(
    ("loss", "promise"),
    [
        (
            changed("squared", _derivative=lambda self, p, y: p - y),
            "the derivative is the slope of the value",
        ),
        (
            changed("hinge", _derivative=lambda self, p, y: 0.0 * p * y),
            "the derivative is a subgradient every",
        ),
        (changed("squared", _curvature=lambda self, c: 1.0), "curvature is the largest constant"),
        (changed("logistic", _lipschitz=lambda self, c: 2.0), "lipschitz is the largest slope"),
        (changed("poisson", _link=lambda self, p: np.exp(p)), "wild predictions stay finite"),
        (changed("absolute", __eq__=lambda self, other: False), "a loss survives its spec and pickle"),
        (changed("squared", _value=lambda self, p, y: 2 * (p - y) ** 2), "the kernels compute the same loss"),
    ],
    ids=lambda value: value if isinstance(value, str) else "loss",
)
def test_a_broken_loss_is_caught(loss: Loss, promise: str) -> None:
    with pytest.raises(AssertionError, match=r"^broken promise: ") as caught:
        check_loss(loss, only=[name for name in LOSS_PROMISES if name.startswith(promise)])
    assert promise in str(caught.value)


class Careless:
    """A reader of svmlight lines with a fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def __call__(self, path: str, **options: Any) -> BatchReader:
        if self.fault == "chunks" and options.get("batch_bytes") == 7:
            options["max_line_bytes"] = 3
        if self.fault == "skips":
            options["on_error"] = "skip"
        reader = open_stream(path, format="svmlight", **options)
        if self.fault == "crash":
            with open(path, "rb") as file:
                file.read().decode("ascii")
        if self.fault == "open":
            reader.kept = open(path, "rb")  # noqa: SIM115
        return reader


GOOD = b"1 1:2 3:4\n-1 0:1\n2 5:1\n"


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("fault", "promise"),
    [
        ("chunks", "chunk sizes do not matter"),
        ("skips", "skipped rows are counted"),
        ("crash", "damaged input is an error not a crash"),
        ("open", "closing ends the stream"),
    ],
)
def test_a_broken_reader_is_caught(fault: str, promise: str) -> None:
    with pytest.raises(AssertionError, match=f"^broken promise: {promise}: "):
        check_reader(Careless(fault), GOOD, bad=b"1 x\n", only=[promise])


def test_rows_that_are_not_the_expected_ones_are_caught() -> None:
    read = partial(open_stream, format="svmlight")
    with pytest.raises(
        AssertionError, match=r"^broken promise: batches hold the expected rows: 3 rows, not 0"
    ):
        check_reader(read, GOOD, expected=[])


def test_no_test_framework_is_needed() -> None:
    script = """
import sys, sketchnewton
sketchnewton.testing.check_learner(sketchnewton.AdaGrad, only=["weight zero leaves no trace"])
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pytest", "hypothesis"}))
"""
    done = subprocess.run([sys.executable, "-O", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
