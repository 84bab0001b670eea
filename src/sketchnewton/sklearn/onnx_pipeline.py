"""Pipelines as ONNX: `skl2onnx.to_onnx` asks estimators for these functions, nothing has to be registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sketchnewton.core.types import Array
from sketchnewton.sklearn.classifier import OnlineClassifier
from sketchnewton.sklearn.export import onnx_tensor
from sketchnewton.sklearn.onnx_graph import DOUBLE, FLOAT, Graph, label_values

if TYPE_CHECKING:
    from onnx import TensorProto

    from sketchnewton.sklearn.base import OnlineEstimator


class TensorType(Protocol):
    """Of a tensor of skl2onnx."""

    shape: list[int | None]


class Variable(Protocol):
    """A tensor of skl2onnx."""

    onnx_name: str
    type: TensorType

    def get_first_dimension(self) -> int | None:
        """How many rows."""

    def set_type(self, new_type: TensorType) -> None:
        """Change the type."""


class Operator(Protocol):
    """A model in the pipeline."""

    inputs: list[Variable]
    outputs: list[Variable]
    raw_operator: OnlineEstimator


class Scope(Protocol):
    """The names in use."""

    def declare_local_operator(self, type: str, raw_model: OnlineEstimator) -> Operator:
        """A new operator."""

    def declare_local_variable(self, raw_name: str, type: TensorType) -> Variable:
        """A new variable."""

    def get_unique_variable_name(self, seed: str) -> str:
        """A new one."""


class Container(Protocol):
    """The graph of the whole pipeline."""

    def add_node(
        self, op_type: str, inputs: list[str], outputs: list[str], op_domain: str = "", **attributes: int
    ) -> None:
        """Append a node."""

    def add_initializer(
        self, name: str, onnx_type: int, shape: tuple[int, ...], content: TensorProto | list[bytes]
    ) -> None:
        """Add a constant."""


class _Pipeline:
    """A sink of nodes that is a part of a pipeline's graph."""

    def __init__(self, scope: Scope, container: Container) -> None:
        self._scope, self._container = scope, container

    def node(self, kind: str, inputs: list[str], outputs: list[str], **attributes: int) -> None:
        self._container.add_node(kind, inputs, outputs, "", **attributes)

    def constant(self, name: str, values: Array) -> None:
        tensor = onnx_tensor(name, values)
        content = tensor if values.dtype.kind != "U" else list(tensor.string_data)
        self._container.add_initializer(name, tensor.data_type, values.shape, content)

    def unique(self, name: str) -> str:
        return self._scope.get_unique_variable_name(name)


def convert(scope: Scope, operator: Operator, container: Container) -> None:
    """Write the estimator's operators; they compute in float64, whatever the pipeline does."""
    estimator, sink = operator.raw_operator, _Pipeline(scope, container)
    graph = Graph(sink)
    given = operator.inputs[0]
    kind = DOUBLE if type(given.type).__name__ == "DoubleTensorType" else FLOAT
    X = graph.node("Cast", given.onnx_name, to=DOUBLE)
    outputs = [variable.onnx_name for variable in operator.outputs]
    if isinstance(estimator, OnlineClassifier):
        probabilities = sink.unique("probabilities64")
        graph.classes(estimator, X, outputs[0], probabilities)
        graph.node("Cast", probabilities, output=outputs[1], to=kind)
    else:
        graph.node("Cast", graph.number(estimator, X), output=outputs[0], to=kind)


def shapes(operator: Operator) -> None:
    """Say what the outputs are."""
    from skl2onnx.common import data_types  # who calls this has it

    rows = operator.inputs[0].get_first_dimension()
    estimator = operator.raw_operator
    if not isinstance(estimator, OnlineClassifier):
        operator.outputs[0].type.shape = [rows, 1]
        return
    text = label_values(estimator.classes_).dtype.kind == "U"
    label = data_types.StringTensorType if text else data_types.Int64TensorType
    operator.outputs[0].set_type(label(shape=[rows]))
    operator.outputs[1].type.shape = [rows, len(estimator.classes_)]


def register(kind: type[OnlineClassifier]) -> None:
    """Have skl2onnx take `options={"zipmap": False}`: probabilities are an array, never a list of dictionaries."""
    from skl2onnx import update_registered_converter  # who calls this has it

    options = {"zipmap": [False]}
    update_registered_converter(kind, kind.__name__, shapes, convert, parser=parse, options=options)


def parse(
    scope: Scope, model: OnlineClassifier, inputs: list[Variable], custom_parsers: object = None
) -> list[Variable]:
    """Declare the estimator and its outputs."""
    from skl2onnx.common import data_types  # who calls this has it

    operator = scope.declare_local_operator(type(model).__name__, model)
    operator.inputs = inputs
    kind = data_types.guess_tensor_type(inputs[0].type)
    operator.outputs.append(scope.declare_local_variable("label", data_types.Int64TensorType()))
    operator.outputs.append(scope.declare_local_variable("probabilities", kind))
    return operator.outputs
