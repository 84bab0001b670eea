"""The Open Inference Protocol (KServe v2) for predictions: tensors into records, answers into tensors."""

from __future__ import annotations

from collections.abc import Hashable

from sketchnewton.core.types import Json
from sketchnewton.serve.answers import Answer
from sketchnewton.serve.bodies import JSON_FORMAT, Body, read_json
from sketchnewton.serve.errors import ApiError

__all__ = ["body_of_tensors", "metadata", "tensors_of"]

_NUMBERS = {"FP64", "FP32", "FP16", "INT64", "INT32", "INT16", "INT8", "UINT64", "UINT32", "UINT16", "UINT8"}
_TYPES = {**dict.fromkeys(_NUMBERS, (int, float)), "BOOL": (bool,), "BYTES": (str,)}


def body_of_tensors(data: bytes, most_rows: int) -> tuple[Body, Json]:
    """One record for each place of the tensors' first dimension; a tensor is a column. Also the request's id."""
    found = read_json(data)
    inputs = found.get("inputs") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(inputs, list) or not inputs:
        raise _bad("expected an object with 'inputs', a list of tensors")
    columns = [_column(tensor) for tensor in inputs]
    rows = len(columns[0][1])
    if any(len(values) != rows for _, values in columns):
        raise _bad("expected tensors of the same first dimension")
    if len({name for name, _ in columns}) != len(columns):
        raise _bad("expected tensors with different names")
    if not rows:
        raise ApiError(400, "no_records", "the tensors are empty")
    if rows > most_rows:
        raise ApiError(413, "too_many_rows", f"there are more than {most_rows} records: send fewer at a time")
    records = [{name: values[row] for name, values in columns} for row in range(rows)]
    return Body(JSON_FORMAT, records), found.get("id")


def _column(tensor: Json) -> tuple[str, list[Json]]:
    """Name and values of a column; those of a matrix are lists."""
    if not isinstance(tensor, dict) or not isinstance(tensor.get("name"), str):
        raise _bad("expected a tensor as an object with a name")
    name, shape, kind, data = (tensor.get(key) for key in ("name", "shape", "datatype", "data"))
    shown = str(name)[:80]
    if not isinstance(kind, str) or kind not in _TYPES:
        raise _bad(f"tensor {shown!r}: expected a datatype of {', '.join(sorted(_TYPES))}")
    given = shape if isinstance(shape, list) else []
    sizes = [size for size in given if type(size) is int and size >= 0]
    if not 1 <= len(given) <= 2 or len(sizes) < len(given):
        raise _bad(f"tensor {shown!r}: expected a shape of one or two numbers")
    rows, width = sizes[0], sizes[1] if len(sizes) == 2 else 1
    if not isinstance(data, list):
        raise _bad(f"tensor {shown!r}: expected data as a list")
    flat = [item for part in data for item in (part if isinstance(part, list) else [part])]
    if len(flat) != rows * width:
        raise _bad(f"tensor {shown!r}: expected {rows * width} values, got {len(flat)}")
    for value in flat:
        if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "BOOL"):
            raise _bad(f"tensor {shown!r}: expected values of {kind}")
    if width == 1:
        return str(name), flat
    return str(name), [flat[row * width : (row + 1) * width] for row in range(rows)]


def tensors_of(name: str, version: int, id: Json, made: list[Answer]) -> Answer:
    """The answer to a request."""
    labels = [answer["prediction"] for answer in made]
    text = any(isinstance(label, str) for label in labels)
    boolean = all(isinstance(label, bool) for label in labels)
    outputs: list[Answer] = [
        {
            "name": "prediction",
            "shape": [len(made)],
            "datatype": "BYTES" if text else "BOOL" if boolean else "FP64",
            "data": labels,
        }
    ]
    if "probabilities" in made[0]:
        rows = [list(answer["probabilities"].values()) for answer in made]
        outputs.append(
            {
                "name": "probabilities",
                "shape": [len(rows), len(rows[0])],
                "datatype": "FP64",
                "data": [value for row in rows for value in row],
                "parameters": {"classes": ",".join(made[0]["probabilities"])},
            }
        )
    answer = {"model_name": name, "model_version": str(version), "outputs": outputs}
    return answer if id is None else {**answer, "id": id}


def metadata(name: str, version: int, kinds: dict[str, str], classes: list[Hashable] | None) -> Answer:
    """What the model takes and gives."""
    types = {"number": "FP64", "boolean": "BOOL"}
    numbers = classes is None or all(isinstance(label, int | float) for label in classes)
    outputs = [{"name": "prediction", "datatype": "FP64" if numbers else "BYTES", "shape": [-1]}]
    if classes is not None:
        outputs.append({"name": "probabilities", "datatype": "FP64", "shape": [-1, len(classes)]})
    return {
        "name": name,
        "versions": [str(version)],
        "platform": "sketchnewton",
        "inputs": [
            {"name": column, "datatype": types.get(kind, "BYTES"), "shape": [-1]}
            for column, kind in kinds.items()
        ],
        "outputs": outputs,
    }


def _bad(message: str) -> ApiError:
    return ApiError(400, "bad_tensor", message)
