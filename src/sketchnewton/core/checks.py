"""What must hold of a model file before anything is made of it, or a kernel trusts its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sketchnewton import _native
from sketchnewton.core.state import Buffers, Vector, View
from sketchnewton.core.types import Array, np

LARGEST_COUNT = 2**53  # of rows, features or entries: float64 counts as far, and sums of a few stay in int64
_FREE = 64  # sizes up to this one are harmless


def all_finite(array: Array | View) -> bool:
    """Whether all of its numbers are, as integers are; native memory is looked at without NumPy."""
    if isinstance(array, memoryview):
        return array.format not in ("f", "d") or _native.all_finite(array)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def check_numbers(name: str, array: Array | View) -> None:
    """Refuse numbers that are not finite, and counts that could overflow."""
    if not all_finite(array):
        raise ValueError(f"array {name!r} is not finite")
    if isinstance(array, memoryview):
        if array.format not in ("f", "d") and max(map(abs, _native.extremes(array))) > LARGEST_COUNT:
            raise ValueError(f"array {name!r} holds impossible counts")
    elif array.dtype.kind != "f" and array.size and max(-int(array.min()), int(array.max())) > LARGEST_COUNT:
        raise ValueError(f"array {name!r} holds impossible counts")


class DivergedError(ValueError):
    """A learner has left the range of its numbers: first at the prediction of `row`."""

    def __init__(self, message: str, row: int = 0) -> None:  # the default is for pickle, which sets it later
        super().__init__(message)
        self.row = row


def check_finite(predictions: Vector) -> None:
    """Refuse predictions of a learner whose numbers have left the range, rather than hand out NaN."""
    if predictions.ndim == 1 and len(predictions) == 1 and math.isfinite(predictions[0]):
        return  # as a stream of single rows has it, in a fifth of the time
    if not _native.all_finite(predictions):
        # Of several classes, the largest in size: NaN and infinity stay what they are.
        each = predictions if predictions.ndim == 1 else np.abs(np.asarray(predictions)).max(axis=1)
        raise DivergedError(
            "a prediction is not finite: the learner has diverged. Values, labels or weights are too large, or "
            "steps too long: train again with a clip or a smaller learning rate",
            row=_native.not_finite(each),
        )


def counts_fit(counts: Array | View) -> bool:
    """Would `check_numbers` take these few counts? Without NumPy, if they are native memory."""
    flat = counts.cast("B").cast("q") if isinstance(counts, memoryview) else counts.reshape(-1)
    return all(abs(count) <= LARGEST_COUNT for count in flat.tolist())


def check_sizes(parameters: Mapping[str, object], arrays: Buffers) -> None:
    """Refuse sizes that the file's own arrays contradict, before memory is allocated for them.

    A sketch of m directions, or a block of m rows, has a matrix of m² numbers in the file; a class has one number.
    """
    numbers = sum(array.nbytes // array.itemsize for array in arrays.values())
    for name, power in (("sketch_size", 2), ("block", 2), ("classes", 1)):
        size = parameters.get(name)
        without = name == "sketch_size" and parameters.get("sketch") == "none"
        if isinstance(size, int) and size > _FREE and size**power > numbers and not without:
            raise ValueError(f"{name}={size} contradicts its arrays")
    if isinstance(inner := parameters.get("parameters"), dict):  # of the learners of each class
        check_sizes(inner, arrays)


def are_whole(values: Array, least: int, largest: int) -> bool:
    """Are all of them whole numbers from `least` to `largest`? -0.0 is none: kernels compare bits."""
    whole = (values >= least) & (values <= largest) & (values == np.floor(values))
    return bool((whole & ~((values == 0) & np.signbit(values))).all())
