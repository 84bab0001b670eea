"""What the predictions of a bank are made of, as plain arrays: for exports to places without the kernel."""

from __future__ import annotations

import math

from sketchnewton.core.hints import NamedTuple
from sketchnewton.core.types import Floats, np
from sketchnewton.learners.newton import bank_full, bank_stack, bank_tracking
from sketchnewton.learners.newton import bank_layout as banks
from sketchnewton.learners.newton.bank import NewtonBank
from sketchnewton.learners.newton.bank_layout import EXPERTS
from sketchnewton.learners.newton.full_places import FULL

LARGEST_LOGIT = 20.0  # of an expert: native/learners/bank_loss.hpp
WILD = 16.0  # mean sizes that a value counts as at most, if labels are classes: native/learners/bank.hpp
HEAVY = 0.25  # a restless expert's constant, as a share of the typical row: native/learners/bank.hpp


class Tracking(NamedTuple):
    """The expert whose weights wander."""

    centre: Floats
    per: Floats
    weights: Floats
    constant: float
    wild: float


class FrozenBank(NamedTuple):
    """A bank that learns no more; `native/learners/bank.hpp` says why each step is as it is.

    A row x of `dimension` numbers is predicted in seven steps.

    1. Scale: count = counts + 1, mean = means + (|x| − means)/count, x ← x/mean · (rows/count)^¼, where x/mean is
       held within ±`wild`, all in `dtype`.
    2. Its length: the factor of the features is 1, for experts in `evened` √(typical/(one + Σ x²)), the sum being
       over the features in `seen`.
    3. Each expert's score: offset + factor · x·weights + constants. Then those with whole matrices, for x as it
       came: (x − centre)·full_weights + full_constants. Then, with `tracking`, tanh(L/2) of its L = u·weights +
       constant, where u = (x − centre)·per is held within ±`wild`. With `slopes`, scores of both kinds are held
       within ±1, multiplied by slopes, and shifts are added.
    4. The experts' predictions: scores within `bounds`, then (score − middle)/half; of experts in `odds`
       tanh(score/2), with scores within ±LARGEST_LOGIT, held within `bounds`.
    5. Theirs, aggregated with their `shares` by the rule of the loss.
    6. With `stacked`, log odds: `stacked` times the log odds of that and the experts' predictions, within
       ±`largest`, and the mean of both with `stack_shares`: of probabilities for the logistic loss.
    7. The prediction: that times half, plus middle.
    """

    loss: str  # whose rule aggregates
    counts: Floats
    means: Floats
    rows: float
    wild: float
    seen: Floats  # 1 for features that were learned from, 0 for others
    weights: Floats  # features × experts
    constants: Floats
    offset: float
    evened: Floats  # 1 for experts that see rows at one length, 0 for others
    odds: Floats  # 1 for experts whose scores are log odds but whose loss is not, 0 for others
    one: float
    typical: float
    bounds: tuple[float, float]
    middle: float
    half: float
    shares: Floats
    dtype: np.dtype[np.floating]  # of the table: what step 1 is rounded to
    centre: Floats  # of features: differences from it are small, and so is their rounding
    full_weights: Floats  # features × experts with whole matrices
    full_constants: Floats
    tracking: Tracking | None
    slopes: Floats | None
    shifts: Floats | None
    stacked: Floats | None  # of the log odds, then of each expert, the constant one too
    stack_shares: Floats
    largest: float


def freeze(bank: NewtonBank, dimension: int) -> FrozenBank:
    """The numbers of a bank as it is now, for rows of `dimension` features."""
    with bank._lock:
        state, seen = bank._state, bank._seen
        learned = int(state["bank_counts"][banks.LEARNED])
        signs = state["bank_counts"][banks.LABELS] == banks.SIGNS
        scalars = state["scalars"]
        counts, means = np.zeros((2, dimension))
        counts[seen], means[seen] = bank._table.rows_of_active(len(seen))[:, [-3, -2]].astype(np.float64).T
        weights = np.zeros((dimension, len(EXPERTS) + 1))  # the last is the constant one's
        weights[seen, :-1] = bank._scaled_weights()
        typical = float(scalars[banks.SQUARES]) / learned if learned else 1.0
        heavy = max(1.0, HEAVY * math.sqrt(max(typical - 1.0, 0.0)))
        views = np.array([*(view for *_, view in EXPERTS.values()), banks.PLAIN])
        offset = float(scalars[banks.OFFSET])
        low, high = bank.prediction_bounds
        if bank.loss.link_kind == "logistic":
            low, high = max(low, -LARGEST_LOGIT), min(high, LARGEST_LOGIT)
        scaled = bank._rule == "squared"
        centre, full_weights, full_constants = _whole(bank, dimension)
        odds = (views == banks.RARE) & bool(signs and scaled)
        scores = full_weights.shape[1] + bank._tracks
        of_full = np.full(scores, bool(signs and bank._rule != "logistic"))
        calibrated = bool(signs and scores)
        return FrozenBank(
            loss=bank._rule,
            counts=counts,
            means=means,
            rows=learned + 1.0,
            wild=WILD if signs else math.inf,
            seen=(counts > 0).astype(np.float64),
            weights=weights,
            constants=(bank.expert_intercepts[: len(views)] - offset)
            * np.where(np.isin(views, banks.HEAVY_VIEWS), heavy, 1.0),
            offset=offset,
            evened=(np.isin(views, (banks.EVEN, *banks.HEAVY_VIEWS)) & bool(signs and learned)).astype(
                np.float64
            ),
            odds=np.concatenate([odds, of_full]).astype(np.float64),
            one=float(bank._params["intercept"]),
            typical=typical,
            bounds=(low, high),
            middle=0.5 * low + 0.5 * high if scaled else 0.0,
            half=0.5 * high - 0.5 * low if scaled else 1.0,
            shares=bank.expert_shares,
            dtype=np.dtype(bank._table.dtype),
            centre=centre,
            full_weights=full_weights,
            full_constants=full_constants,
            tracking=_tracking(bank, dimension) if bank._tracks else None,
            slopes=state["full_odds"][:scores, bank_full.SLOPE] if calibrated else None,
            shifts=state["full_odds"][:scores, bank_full.SHIFT] if calibrated else None,
            stacked=_stacked(bank) if signs and bank._rule in ("squared", "logistic") else None,
            stack_shares=bank_stack.shares(state),
            largest=high if bank._rule == "logistic" else LARGEST_LOGIT,
        )


def _stacked(bank: NewtonBank) -> Floats:
    weights = bank_stack.weights(bank._state)[: bank._kernel.experts]
    return np.insert(weights, 1 + bank._K, 0.0)  # the constant expert has none


def _whole(bank: NewtonBank, dimension: int) -> tuple[Floats, Floats, Floats]:
    """Of the experts with whole matrices: the mean row, weights around it, and scores there."""
    state, places = bank._state, max(bank._places, 0) if bank._whole else 0
    experts = len(FULL) if bank._whole else 0
    centre, weights = np.zeros(dimension), np.zeros((dimension, experts))
    offset = 0.0 if bank._signs else float(state["scalars"][banks.OFFSET])
    if not places:
        return centre, weights, np.full(experts, offset)
    units, features = state["full_units"][:places, bank_full.UNIT], state["full_features"][1:places]
    own = state["full_weights"][:places] / units[:, None]
    A, _ = bank_full.moments(state, places, int(state["bank_counts"][banks.WAITING]))
    if A[0, 0, 0] > 0:
        centre[features] = A[0, 0, 1:] / A[0, 0, 0] * units[1:]
    weights[features] = own[1:]
    return centre, weights, np.asarray(own[0] + centre @ weights + offset)


def _tracking(bank: NewtonBank, dimension: int) -> Tracking:
    state, places = bank._state, max(bank._places, 0)
    centre, per, weights = np.zeros((3, dimension))
    constant = 0.0
    if places:
        units, features = state["full_units"][1:places, bank_full.UNIT], state["full_features"][1:places]
        numbers = state["tracking"][:places]
        constant = float(numbers[0, bank_tracking.WEIGHT]) if bank._params["intercept"] else 0.0
        weights[features] = numbers[1:, bank_tracking.WEIGHT]
        centre[features] = numbers[1:, bank_tracking.CENTRE] * units
        per[features] = numbers[1:, bank_tracking.PER] / units
    return Tracking(centre, per, weights, constant, bank_tracking.WILD)
