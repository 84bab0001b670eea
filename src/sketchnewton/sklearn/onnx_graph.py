"""ONNX operators that compute what an estimator predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from sketchnewton.core.types import Array, Floats
from sketchnewton.learners import NewtonBank, calibration
from sketchnewton.learners.newton.frozen_bank import LARGEST_LOGIT as BANK_LOGIT
from sketchnewton.learners.newton.frozen_bank import FrozenBank, Tracking, freeze
from sketchnewton.learners.probabilities import LARGEST_LOGIT
from sketchnewton.sklearn.base import OnlineEstimator

if TYPE_CHECKING:
    from sketchnewton.sklearn.classifier import OnlineClassifier

FLOAT, DOUBLE = 1, 11  # of onnx.TensorProto


class Sink(Protocol):
    """Where nodes and constants go: a graph of our own, or that of a pipeline."""

    def node(self, kind: str, inputs: list[str], outputs: list[str], **attributes: int) -> None:
        """Append a node."""

    def constant(self, name: str, values: Array) -> None:
        """Add a constant: float32, float64, int64 or text."""

    def unique(self, name: str) -> str:
        """A name that nothing has so far."""


class Graph:
    """Writes nodes in the order of computation; an operator returns the name of what it computes."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def constant(self, values: object) -> str:
        """A constant of the graph."""
        name = self._sink.unique("c")
        self._sink.constant(name, np.asarray(values))
        return name

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: int) -> str:
        """A node of one output."""
        name = output or self._sink.unique(kind.lower())
        self._sink.node(kind, list(inputs), [name], **attributes)
        return name

    def total(self, x: str) -> str:
        """The sum of each row, as a column."""
        return self.node("ReduceSum", x, self.constant(np.array([1])), keepdims=1)

    # -- scores

    def scores(self, estimator: OnlineEstimator, X: str, *, clipped: bool) -> str:
        """The learners' scores or, if `clipped`, predictions, one column per output."""
        banks = [learner for learner in estimator._learners if isinstance(learner, NewtonBank)]
        if banks:
            columns = [self._bank(freeze(bank, estimator.n_features_in_), X) for bank in banks]
            scores = self.node("Concat", *columns, axis=1)
            if min(estimator._signs) > 0:
                return scores
            return self.node("Mul", scores, self.constant(np.array(estimator._signs)))
        coefficients = np.atleast_2d(estimator.coef_).T
        sums = self.node("MatMul", X, self.constant(coefficients))
        scores = self.node("Add", sums, self.constant(estimator.intercept_))
        return self._clip(scores, *estimator._learners[0].prediction_bounds) if clipped else scores

    def _clip(self, x: str, low: float, high: float) -> str:
        return self.node("Clip", x, self.constant(float(low)), self.constant(float(high)))

    def _bank(self, bank: FrozenBank, X: str) -> str:
        x = self._scaled(bank, X)
        sums = self.node("MatMul", x, self.constant(bank.weights))
        if bank.evened.any():
            squares = self.total(self.node("Mul", self.node("Mul", x, x), self.constant(bank.seen)))
            length = self.node("Add", squares, self.constant(bank.one))
            some = self.node("Greater", length, self.constant(0.0))  # a row of nothing seen has no length
            length = self.node("Where", some, length, self.constant(bank.typical))
            factor = self.node("Sqrt", self.node("Div", self.constant(bank.typical), length))
            factors = self.node(
                "Mul", self.node("Sub", factor, self.constant(1.0)), self.constant(bank.evened)
            )
            sums = self.node("Mul", sums, self.node("Add", factors, self.constant(1.0)))
        scores = self.node("Add", sums, self.constant(bank.constants + bank.offset))
        if bank.full_weights.size:
            scores = self.node("Concat", scores, self._whole(bank, X), axis=1)
        within = self._clip(scores, *bank.bounds)
        if bank.half == 0.0:  # all labels were the same
            return self.total(self.node("Mul", within, self.constant(bank.shares)))
        units = self.node(
            "Div", self.node("Sub", within, self.constant(bank.middle)), self.constant(bank.half)
        )
        if bank.odds.any():
            chances = self.node("Sigmoid", self._clip(scores, -BANK_LOGIT, BANK_LOGIT))
            likely = self.node("Sub", self.node("Add", chances, chances), self.constant(1.0))
            if bank.loss != "squared":
                likely = self._clip(likely, *bank.bounds)
            units = self.node("Where", self.constant(bank.odds > 0), likely, units)
        played = self._aggregate(bank, units)
        if bank.stacked is not None:
            played = self._stack(bank, bank.stacked[:, None], played, units)
        return self.node(
            "Add", self.node("Mul", played, self.constant(bank.half)), self.constant(bank.middle)
        )

    def _whole(self, bank: FrozenBank, X: str) -> str:
        """The scores of the experts with whole matrices."""
        sums = self.node(
            "MatMul", self.node("Sub", X, self.constant(bank.centre)), self.constant(bank.full_weights)
        )
        scores = self.node("Add", sums, self.constant(bank.full_constants))
        if bank.tracking is not None:
            scores = self.node("Concat", scores, self._tracked(bank.tracking, X), axis=1)
        if bank.slopes is None:
            return scores
        sure = self.node("Mul", self._clip(scores, -1.0, 1.0), self.constant(bank.slopes))
        return self.node("Add", sure, self.constant(bank.shifts))

    def _tracked(self, its: Tracking, X: str) -> str:
        """The score of the expert whose weights wander."""
        u = self.node("Mul", self.node("Sub", X, self.constant(its.centre)), self.constant(its.per))
        u = self._clip(u, -its.wild, its.wild)
        sums = self.node("MatMul", u, self.constant(its.weights[:, None]))
        odds = self.node("Add", sums, self.constant(its.constant))
        return self.node("Tanh", self.node("Mul", odds, self.constant(0.5)))

    def _scaled(self, bank: FrozenBank, X: str) -> str:
        """The row as the bank sees it: rounded as its table is, to the last bit."""
        kind = bank.dtype.type

        def constant(values: object) -> str:
            return self.constant(np.asarray(values, kind))

        if kind is np.float32:
            X = self.node("Cast", X, to=FLOAT)
        counts, means = (bank.counts + 1.0).astype(kind), constant(bank.means)
        change = self.node("Div", self.node("Sub", self.node("Abs", X), means), constant(counts))
        means = self.node("Max", self.node("Add", means, change), constant(np.finfo(kind).tiny))
        x = self.node("Div", X, means)
        if np.isfinite(bank.wild):
            x = self.node("Clip", x, constant(-bank.wild), constant(bank.wild))
        x = self.node("Mul", x, constant(np.sqrt(np.sqrt(kind(bank.rows) / counts))))
        return self.node("Cast", x, to=DOUBLE) if kind is np.float32 else x

    def _aggregate(self, bank: FrozenBank, p: str) -> str:
        """The rule of native/learners/aggregate.hpp."""
        shares = self.constant(bank.shares)

        def mean(values: str) -> str:
            return self.total(self.node("Mul", values, shares))

        if bank.loss == "logistic":
            ratio = self.node(
                "Div", mean(self.node("Sigmoid", p)), mean(self.node("Sigmoid", self.node("Neg", p)))
            )
            played = self.node("Log", ratio)
        elif bank.loss == "squared":
            one, rate = self.constant(1.0), self.constant(-0.5)

            def likelihood(kind: str) -> str:
                miss = self.node(kind, p, one)
                return mean(self.node("Exp", self.node("Mul", self.node("Mul", miss, miss), rate)))

            logs = self.node("Log", self.node("Div", likelihood("Sub"), likelihood("Add")))
            played = self.node("Mul", logs, self.constant(0.5))
        elif bank.loss == "poisson":
            played = self.node("Log", mean(self.node("Exp", p)))
        else:
            played = mean(p)
        axis = self.constant(np.array([1]))
        least = self.node("ReduceMin", p, axis, keepdims=1)
        most = self.node("ReduceMax", p, axis, keepdims=1)
        return self.node("Min", self.node("Max", played, least), most)

    def _stack(self, bank: FrozenBank, weights: Floats, played: str, p: str) -> str:
        """The rule of native/learners/bank_stack.hpp."""
        logistic = bank.loss == "logistic"

        def chances(odds: str) -> tuple[str, str]:
            return self.node("Sigmoid", odds), self.node("Sigmoid", self.node("Neg", odds))

        def mean(two: tuple[str, str]) -> str:
            shares = (self.constant(float(share)) for share in bank.stack_shares)
            parts = [self.node("Mul", opinion, share) for opinion, share in zip(two, shares, strict=True)]
            return self.node("Add", *parts)

        odds = played
        if not logistic:
            one = self.constant(1.0)
            ratio = self.node("Div", self.node("Add", one, played), self.node("Sub", one, played))
            odds = self._clip(self.node("Log", ratio), -bank.largest, bank.largest)
        inputs = self.node("Concat", odds, p, axis=1)
        own = self.node("MatMul", inputs, self.constant(weights))
        own = self._clip(own, -bank.largest, bank.largest)
        up, down = chances(own)
        if not logistic:
            return mean((played, self.node("Sub", up, down)))
        rule_up, rule_down = chances(played)
        both = self.node("Log", self.node("Div", mean((rule_up, up)), mean((rule_down, down))))
        least, most = self.node("Min", played, own), self.node("Max", played, own)
        return self.node("Min", self.node("Max", both, least), most)

    # -- answers

    def number(self, estimator: OnlineEstimator, X: str, output: str | None = None) -> str:
        """The prediction of a regressor, as a column."""
        loss = estimator._learners[0].loss
        scores = self.scores(estimator, X, clipped=True)
        if loss.link_kind != "log":
            return self.node("Identity", scores, output=output)
        return self.node("Exp", self.node("Min", scores, self.constant(loss.link_cap)), output=output)

    def classes(self, estimator: OnlineClassifier, X: str, label: str, probabilities: str) -> None:
        """The class of each row and the probabilities of all classes."""
        scores = self.scores(estimator, X, clipped=False)
        if estimator._n_outputs() == 1:
            scores = self.node("Concat", self.node("Neg", scores), scores, axis=1)
        best = self.node("ArgMax", scores, axis=1, keepdims=0)
        self.node("Gather", self.constant(label_values(estimator.classes_)), best, output=label, axis=0)
        k = len(estimator.classes_)
        if estimator._by_softmax():
            top = self.node("ReduceMax", scores, self.constant(np.array([1])), keepdims=1)
            lower = self.node("Max", self.node("Sub", scores, top), self.constant(-LARGEST_LOGIT))
            self.node("Softmax", lower, output=probabilities, axis=1)
        elif estimator._learners[0].calibrates:
            self._calibrated(estimator, scores, k, probabilities)
        elif estimator._learners[0].loss.link_kind == "logistic":
            self._logistic(scores, k, probabilities)
        else:
            self._nearest(scores, k, int(estimator.t_) - 1, probabilities)

    def _calibrated(self, estimator: OnlineClassifier, scores: str, k: int, output: str) -> None:
        """As native/learners/calibration.hpp has it."""
        learner, joint = estimator._learners[0], estimator._calibration
        sides = learner._state["calibration"] if joint is None else joint.numbers
        if learner.loss.link_kind == "logistic":
            p = self.node("Sigmoid", self._clip(scores, -LARGEST_LOGIT, LARGEST_LOGIT))
        else:
            rows = min(float(sides[:, calibration.ROWS].sum()), calibration.MEMORY * k)
            half = self.node("Mul", self._clip(scores, -1.0, 1.0), self.constant(rows / 2.0 / (rows + 2.0)))
            p = self.node("Add", half, self.constant((rows / 2.0 + 1.0) / (rows + 2.0)))
        positive = None
        if joint is None:  # the side is that of the score of the second class
            second = self.node("Gather", scores, self.constant(np.array([1])), axis=1)
            positive = self.node("Greater", second, self.constant(0.0))

        def number(at: int) -> str:
            values = [self.constant(float(side[at])) for side in sides]
            return values[0] if positive is None else self.node("Where", positive, values[1], values[0])

        logs = self.node("Mul", self.node("Sub", self.node("Log", p), p), number(calibration.BETA))
        powers = self.node("Add", logs, self.node("Mul", p, number(calibration.GAMMA)))
        tempered = self.node("Mul", self.node("Softmax", powers, axis=1), number(calibration.TEMPERED))
        raw = self.node("Mul", self.node("Div", p, self.total(p)), number(calibration.RAW))
        if joint is not None:
            self.node("Add", raw, tempered, output=output)
        else:
            self._corrected(learner._state["corrections"], sides, self.node("Add", raw, tempered), output)

    def _corrected(self, corrections: Array, sides: Array, both: str, output: str) -> None:
        """Both probabilities, moved by what is learned of the nodes on either side of the second one."""
        nodes = np.linspace(0.0, 1.0, calibration.NODES)
        weight = corrections[:-1, 0] + calibration.DOUBT * sides[:, calibration.CLOCK].sum()
        by = np.where(weight > 0, corrections[:-1, 1] / np.where(weight > 0, weight, 1.0), 0.0)
        p = self.node("Gather", both, self.constant(np.array([1])), axis=1)
        to = nodes + by
        to = 0.5 * (np.maximum.accumulate(to) + np.minimum.accumulate(to[::-1])[::-1])
        far = self.node("Abs", self.node("Sub", p, self.constant(nodes)))
        steps = self.constant(1.0 - calibration.NODES)
        near = self.node(
            "Max", self.node("Add", self.node("Mul", far, steps), self.constant(1.0)), self.constant(0.0)
        )
        moved = self.total(self.node("Mul", near, self.constant(to)))
        one, half = self.constant(1.0), self.constant(0.5)
        other = self.node("Sub", one, p)
        least = self.node("Mul", self.node("Min", p, other), self.constant(1.0 / calibration.FARTHEST))
        above = self.node("Min", self.node("Max", moved, half), self.node("Sub", one, least))
        below = self.node("Max", self.node("Min", moved, half), least)
        moved = self.node("Where", self.node("Greater", p, half), above, below)
        kept, changed = (self.constant(float(v)) for v in corrections[-1])
        played = self.node("Add", self.node("Mul", p, kept), self.node("Mul", moved, changed))
        self.node("Concat", self.node("Sub", one, played), played, output=output, axis=1)

    def _logistic(self, scores: str, k: int, output: str) -> None:
        scores = self._clip(scores, -LARGEST_LOGIT, LARGEST_LOGIT)
        if k == 2:
            self.node("Sigmoid", scores, output=output)
            return
        positive = self.node("Sigmoid", scores)
        self.node("Div", positive, self.total(positive), output=output)

    def _nearest(self, scores: str, k: int, rows: int, output: str) -> None:
        """The projection onto the simplex and Laplace's rule, as in `learners/probabilities.py`."""
        one, counts = self.constant(1.0), self.constant(np.arange(1.0, k + 1))
        values = self.node("Mul", self.node("Add", scores, one), self.constant(0.5))
        ordered, places = self._sink.unique("ordered"), self._sink.unique("places")
        self._sink.node("TopK", [values, self.constant(np.array([k]))], [ordered, places], axis=1)
        excess = self.node("Sub", self.node("CumSum", ordered, self.constant(np.array(1))), one)
        stays = self.node("Greater", self.node("Mul", ordered, counts), excess)
        # The shifts of those that stay rise to that of the last of them.
        shifts = self.node("Where", stays, self.node("Div", excess, counts), self.constant(-1e300))
        shift = self.node("ReduceMax", shifts, self.constant(np.array([1])), keepdims=1)
        projected = self.node("Max", self.node("Sub", values, shift), self.constant(0.0))
        nearest = self.node("Div", projected, self.total(projected))
        counted = self.node("Add", self.node("Mul", nearest, self.constant(float(rows))), one)
        self.node("Div", counted, self.constant(float(rows + k)), output=output)


def label_values(classes: Array) -> Array:
    """The labels as ONNX has them: integers or text."""
    if classes.dtype.kind == "U" or (
        classes.dtype.kind == "O" and all(isinstance(label, str) for label in classes)
    ):
        return classes.astype(str)
    if classes.dtype.kind in "iub":
        return classes.astype(np.int64)
    if (
        classes.dtype.kind == "f"
        and np.array_equal(classes, np.rint(classes))
        and np.abs(classes).max() < 2**53
    ):
        return classes.astype(np.int64)  # ±1.0, as readers of svmlight files have labels
    raise ValueError(
        f"classes of type {classes.dtype} are invalid: ONNX has whole numbers and strings, found {classes[:5]}"
    )
