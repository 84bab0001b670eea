"""Fitted estimators for places without this package: plain scikit-learn, ONNX, a table of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sklearn.linear_model import LogisticRegression, PoissonRegressor, SGDClassifier, SGDRegressor

from sketchnewton.core.types import Array
from sketchnewton.sklearn.base import OnlineEstimator
from sketchnewton.sklearn.classifier import OnlineClassifier

if TYPE_CHECKING:
    import pandas as pd
    from onnx import ModelProto, NodeProto, TensorProto

# scikit-learn's loss by the kind of link: what SGDClassifier's predict_proba and a later partial_fit go by.
# Where the score is the answer, probabilities of two classes are (1 + score)/2 within [0, 1], as ours.
_LOSS = {"logistic": "log_loss", "identity": "modified_huber"}

Linear: TypeAlias = LogisticRegression | PoissonRegressor | SGDClassifier | SGDRegressor


def to_sklearn(estimator: OnlineEstimator) -> Linear:
    """A fitted `SGDClassifier` or `SGDRegressor` with the coefficients of the linear part.

    `LogisticRegression` where classes are learned by softmax, `PoissonRegressor` for that loss.

    Of a learner that is linear (not the default, `NewtonBank`) scores and classes are the same, and so are
    probabilities, but for more than two classes learned with another loss than the logistic. A regressor's bound
    on predictions (`clip`) has no place there.
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

    from sketchnewton.sklearn.onnx_graph import Graph, label_values

    sink = _Proto()
    graph, outputs = Graph(sink), []
    if isinstance(estimator, OnlineClassifier):
        graph.classes(estimator, "X", "label", "probabilities")
        text = label_values(estimator.classes_).dtype.kind == "U"
        kind = TensorProto.STRING if text else TensorProto.INT64
        shape = [None, len(estimator.classes_)]
        outputs.append(helper.make_tensor_value_info("label", kind, [None]))
        outputs.append(helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, shape))
    else:
        graph.number(estimator, "X", "variable")
        outputs.append(helper.make_tensor_value_info("variable", TensorProto.DOUBLE, [None, 1]))
    rows = helper.make_tensor_value_info("X", TensorProto.DOUBLE, [None, estimator.n_features_in_])
    proto = helper.make_graph(sink.nodes, type(estimator).__name__, [rows], outputs, sink.constants)
    model = helper.make_model(
        proto,
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
        producer_name="sketchnewton",
    )
    checker.check_model(model)
    return model


class _Proto:
    """The nodes and constants of a model of its own."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._names = 0

    def node(self, kind: str, inputs: list[str], outputs: list[str], **attributes: int) -> None:
        from onnx import helper  # optional

        node = helper.make_node(kind, inputs, outputs)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self.nodes.append(node)

    def constant(self, name: str, values: Array) -> None:
        self.constants.append(onnx_tensor(name, values))

    def unique(self, name: str) -> str:
        self._names += 1
        return f"{name}{self._names}"


def onnx_tensor(name: str, values: Array) -> TensorProto:
    """A constant of float32, float64, int64 or text."""
    from onnx import TensorProto, helper, numpy_helper  # optional

    if values.dtype.kind != "U":
        return numpy_helper.from_array(np.ascontiguousarray(values), name)
    flat = [text.encode() for text in values.ravel().tolist()]
    return helper.make_tensor(name, TensorProto.STRING, values.shape, flat)
