"""The numbers and arrays of a bank, as native/learners/bank_state.hpp has them, and what its table keeps."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence

from sketchnewton.core.state import View, zeros
from sketchnewton.core.types import Floats, np
from sketchnewton.losses import Loss

# How rows are seen: `View` in native/learners/bank_state.hpp.
PLAIN, EVEN, RESTLESS, RARE, MEAN = range(5)

# Name, then the numbers of `Expert` there: f = steady + root/√t, the step's multiplier, the view. Experts of one
# kind stand together; what is averaged stands behind its average.
EXPERTS: dict[str, tuple[float, float, float, int]] = {
    "steady 0.5": (0.125, 0.0, 0.5, PLAIN),
    "steady 2": (0.125, 0.0, 2.0, PLAIN),
    "falling 0.5": (0.0, 2.0, 0.5, EVEN),
    "falling 8": (0.0, 2.0, 8.0, EVEN),
    "rare": (0.0, 0.0, 1.0, RARE),
    "averaged": (0.0, 2.0, 1e6, MEAN),
    "restless": (0.0, 2.0, 1e6, RESTLESS),
}
HEAVY_VIEWS = (RESTLESS, MEAN)
"""Those that see a larger constant."""
AVERAGED = list(EXPERTS).index("averaged")
CONSTANT = "constant"
"""The name of the expert that knows nothing but labels; it comes after those that take steps."""
BUFFER = 4  # times m rows wait for an update of the sketch

# Places in `scalars`, `bank_counts` and `first_labels`.
CLOCK, SQUARES, RIDGE, OFFSET, LOW, HIGH, SEEN_LOW, SEEN_HIGH = range(8)
RATE, GAPS, MISSED, EXPECTED, TOTAL, USUAL, USUAL_ROWS, NEAR, WINDOWS = range(8, 17)
LEARNED, RANK, FILLED, ENTRIES, LABELS, NEXT, TOUCHED, PLACES, NON_ZEROS, WAITING = range(10)
FIRST_LABELS = 8  # by which wild ones are told from the others
MET, STARTS = range(2)  # how many of them there are, and how often the bank started again; then these
HUGE_LOGIT = 40.0  # beyond all bounds
SIGNS = 1  # LABELS while all labels are -1 or +1


def averaging(rounds: int) -> float:
    """As `averaging` of native/learners/bank_state.hpp."""
    return 2.0 / (max(rounds, 1) * (rounds + 1.0))


def averaged(numbers: Floats, rounds: int) -> Floats:
    """The experts' weights, along the last axis, of numbers as a table keeps them."""
    weights = numbers.copy()
    weights[..., AVERAGED] *= averaging(rounds)
    weights[..., AVERAGED] += numbers[..., AVERAGED + 1]
    return weights


def kept(weights: Floats, rounds: int) -> Floats:
    """The numbers that a table keeps of these weights."""
    numbers = weights.copy()
    numbers[..., AVERAGED] -= weights[..., AVERAGED + 1]
    numbers[..., AVERAGED] /= averaging(rounds)
    return numbers


def unscaled(weights: Floats, scales: Floats) -> Floats:
    """Weights for features as they come; those beyond float64, of features around 1e-300, as large as can be."""
    with np.errstate(over="ignore"):
        divided = weights / scales[:, None]
    return np.asarray(np.clip(divided, -sys.float_info.max, sys.float_info.max))


def weight_unit(loss: Loss, low: float, high: float) -> float:
    """The unit in which a table keeps weights, as `weight_unit` of native/learners/bank_labels.hpp has it."""
    half = 0.5 * high - 0.5 * low
    if loss.link_kind != "identity" or half < 2.0**64:
        return 1.0
    return math.ldexp(1.0, (math.frexp(half)[1] - 1) // 32 * 32)


def table_of(experts: Mapping[str, Sequence[float]]) -> View:
    """The numbers of each expert in a row."""
    made = zeros((len(experts), 4))
    for row, expert in enumerate(experts.values()):
        for column, number in enumerate(expert):
            made[row, column] = number
    return made
