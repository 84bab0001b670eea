"""Fitted estimators for places without this package: plain scikit-learn, ONNX, a table of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.linear_model import LogisticRegression, PoissonRegressor, SGDClassifier, SGDRegressor

if TYPE_CHECKING:
    import pandas as pd
    from onnx import ModelProto

    from sketchnewton.sklearn.base import OnlineEstimator

# scikit-learn's loss by the kind of link: what SGDClassifier's predict_proba and a later partial_fit go by.
# Where the score is the answer, probabilities of two classes are (1 + score)/2 within [0, 1], as ours.
_LOSS = {"logistic": "log_loss", "identity": "modified_huber"}

Linear: TypeAlias = LogisticRegression | PoissonRegressor | SGDClassifier | SGDRegressor


def to_sklearn(estimator: OnlineEstimator) -> Linear:
    """A fitted `SGDClassifier` or `SGDRegressor` with the same coefficients.

    `LogisticRegression` where classes are learned by softmax, `PoissonRegressor` for that loss.

    Scores and classes are the same, and so are probabilities, but for more than two classes learned with another
    loss than the logistic. A regressor's bound on predictions (`clip`) has no place there.
    """
    link = estimator._learners[0].loss.link_kind
    if hasattr(estimator, "classes_"):
        plain = LogisticRegression() if estimator._by_softmax() else SGDClassifier(loss=_LOSS[link])
        plain.classes_ = estimator.classes_.copy()
    else:
        plain = SGDRegressor()
    if link == "log":  # fitted to nothing, for what fit prepares
        plain = PoissonRegressor().fit(np.zeros((2, estimator.n_features_in_)), [1.0, 1.0])
    plain.coef_ = estimator.coef_.copy()
    plain.intercept_ = estimator.intercept_.copy()
    plain.n_features_in_ = estimator.n_features_in_
    if hasattr(estimator, "feature_names_in_"):
        plain.feature_names_in_ = estimator.feature_names_in_.copy()
    if link == "log":
        plain.intercept_ = plain.intercept_[0]
    else:
        plain.t_ = estimator.t_
    plain.n_iter_ = max(estimator.n_iter_, 1)
    return plain


def to_frame(estimator: OnlineEstimator) -> pd.DataFrame:
    """A pandas DataFrame with a row per feature and a column `weight`, or one per class."""
    try:
        import pandas  # optional
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install pandas") from error
    names = getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(estimator.n_features_in_)])
    weights = np.atleast_2d(estimator.coef_)
    columns = estimator.classes_ if len(weights) > 1 else ["weight"]
    return pandas.DataFrame(weights.T, index=pandas.Index(names, name="feature"), columns=columns)


def to_onnx(estimator: OnlineEstimator) -> ModelProto:
    """An `onnx.ModelProto` in float64: outputs `label` and `probabilities`, or `variable` for a regressor."""
    try:
        from onnx import TensorProto, checker, helper  # optional
    except ImportError as error:
        raise ImportError("to_onnx needs onnx: pip install 'sketchnewton[onnx]'") from error

    graph = _Graph(estimator)
    rows = helper.make_tensor_value_info("X", TensorProto.DOUBLE, [None, estimator.n_features_in_])
    name = type(estimator).__name__
    proto = helper.make_graph(graph.nodes, name, [rows], graph.outputs, graph.constants)
    model = helper.make_model(
        proto,
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
        producer_name="sketchnewton",
    )
    checker.check_model(model)
    return model


class _Graph:
    """Nodes in the order of computation."""

    def __init__(self, estimator: OnlineEstimator) -> None:
        from onnx import TensorProto, helper  # optional

        self._helper, self._types = helper, TensorProto
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        coefficients = np.atleast_2d(estimator.coef_)
        self.constant("coefficients", coefficients.T)
        self.constant("intercepts", estimator.intercept_)
        self.node("MatMul", ["X", "coefficients"], "products")
        self.node("Add", ["products", "intercepts"], "scores")
        if hasattr(estimator, "classes_"):
            self._classes(estimator)
        else:
            self._numbers(estimator)

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> None:
        self.nodes.append(self._helper.make_node(kind, inputs, [output], **attributes))

    def constant(self, name: str, values: object) -> None:
        array = np.asarray(values)
        kinds = {"f": self._types.DOUBLE, "i": self._types.INT64, "U": self._types.STRING}
        flat = (
            [text.encode() for text in array.ravel().tolist()]
            if array.dtype.kind == "U"
            else array.ravel().tolist()
        )
        self.constants.append(self._helper.make_tensor(name, kinds[array.dtype.kind], array.shape, flat))

    def _numbers(self, estimator: OnlineEstimator) -> None:
        low, high = estimator._learners[0].prediction_bounds
        loss = estimator._learners[0].loss
        log = loss.link_kind == "log"
        self.constant("low", float(low))
        self.constant("high", float(high))
        self.node("Clip", ["scores", "low", "high"], "clipped" if log else "variable")
        if log:
            self.constant("largest", loss.link_cap)
            self.node("Min", ["clipped", "largest"], "logarithms")
            self.node("Exp", ["logarithms"], "variable")
        self.outputs = [self._helper.make_tensor_value_info("variable", self._types.DOUBLE, [None, 1])]

    def _classes(self, estimator: OnlineEstimator) -> None:
        classes = estimator.classes_
        labels = classes if classes.dtype.kind == "U" else None
        if labels is None:
            if classes.dtype.kind == "O" and all(isinstance(label, str) for label in classes):
                labels = classes.astype(str)
            elif classes.dtype.kind in "iub":
                labels = classes.astype(np.int64)
            else:
                raise ValueError(
                    f"classes of type {classes.dtype} are invalid: ONNX has integers and strings"
                )
        self.constant("classes", labels)
        scores = "scores"
        if len(classes) == 2:
            self.node("Neg", ["scores"], "opposite")
            self.node("Concat", ["opposite", "scores"], "both", axis=1)
            scores = "both"
        self.node("ArgMax", [scores], "best", axis=1, keepdims=0)
        self.node("Gather", ["classes", "best"], "label", axis=0)
        logistic = estimator._learners[0].loss.link_kind == "logistic"
        if estimator._by_softmax():
            self.node("Softmax", [scores], "probabilities", axis=1)
        else:
            (self._logistic if logistic else self._nearest)(scores, len(classes))
        kind = self._types.STRING if labels.dtype.kind == "U" else self._types.INT64
        self.outputs = [
            self._helper.make_tensor_value_info("label", kind, [None]),
            self._helper.make_tensor_value_info("probabilities", self._types.DOUBLE, [None, len(classes)]),
        ]

    def _logistic(self, scores: str, k: int) -> None:
        if k == 2:
            self.node("Sigmoid", [scores], "probabilities")
            return
        self.node("Sigmoid", [scores], "positive")
        self.constant("axis", np.array([1]))
        self.node("ReduceSum", ["positive", "axis"], "total", keepdims=1)
        self.node("Div", ["positive", "total"], "probabilities")

    def _nearest(self, scores: str, k: int) -> None:
        """The projection onto the simplex, as in `learners/probabilities.py`."""
        self.constant("one", 1.0)
        self.constant("half", 0.5)
        self.constant("zero", 0.0)
        self.constant("axis", np.array([1]))
        self.constant("k", np.array([k]))
        self.constant("counts", np.arange(1.0, k + 1))
        self.constant("column", np.array(1))
        self.node("Add", [scores, "one"], "raised")
        self.node("Mul", ["raised", "half"], "values")
        self.nodes.append(self._helper.make_node("TopK", ["values", "k"], ["ordered", "places"], axis=1))
        self.node("CumSum", ["ordered", "column"], "sums")
        self.node("Sub", ["sums", "one"], "excess")
        self.node("Mul", ["ordered", "counts"], "scaled")
        self.node("Greater", ["scaled", "excess"], "stays")
        self.node("Div", ["excess", "counts"], "shifts")
        # The shifts of those that stay rise to that of the last of them.
        self.constant("least", -1e300)
        self.node("Where", ["stays", "shifts", "least"], "candidates")
        self.node("ReduceMax", ["candidates", "axis"], "shift", keepdims=1)
        self.node("Sub", ["values", "shift"], "moved")
        self.node("Max", ["moved", "zero"], "projected")
        self.node("ReduceSum", ["projected", "axis"], "total", keepdims=1)
        self.node("Div", ["projected", "total"], "probabilities")
