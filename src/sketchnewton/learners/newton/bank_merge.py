"""Banks that learned from different rows, as one (docs/merging.md has the rule and where it comes from).

What counts rows adds up: with a base X₀ that all banks began with, X = X₀ + Σ (Xᵢ − X₀). So the scales of features
are those of all rows together. Of weights, what each bank added is brought to what one bank would have added: of
those that the banks hardly know it adds up, of those that they know well it becomes the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sketchnewton.core.hints import TYPE_CHECKING, NamedTuple
from sketchnewton.core.state import State
from sketchnewton.core.types import Arrays, Floats, Integers, NDArray, np
from sketchnewton.learners import calibration
from sketchnewton.learners.newton import bank_layout as layout
from sketchnewton.learners.newton import bank_stack, residuals
from sketchnewton.learners.newton.bank_restart import as_started_again
from sketchnewton.learners.newton.direction_merge import kinds, merged_moves, met, metric
from sketchnewton.learners.newton.expert_merge import faded, further, lengthened, parts
from sketchnewton.learners.newton.full_merge import Moments, moments_of
from sketchnewton.learners.newton.full_merge import merged as merged_moments
from sketchnewton.learners.newton.full_places import FULL
from sketchnewton.learners.newton.mean_merge import mean_rows, scores, with_scores
from sketchnewton.learners.newton.sketch_merge import buffered, eigenpairs, growth
from sketchnewton.learners.newton.tracking_merge import Tracked, tracked_of
from sketchnewton.learners.newton.tracking_merge import merged as merged_tracking

if TYPE_CHECKING:
    from sketchnewton.learners.newton.bank import NewtonBank

__all__ = ["merged"]

_KNOWN = 4.0  # how soon rows make a weight known; chosen in experiments, not derived
_HEAVY = 0.25  # of a restless expert's constant, as in native/learners/bank.hpp
_NO_GAP = 1e-290  # as in native/learners/aggregate.hpp
_LEAST_SHARE = 1e-300  # so that it has a logarithm
_HEAVIEST = {"float32": 2.0**100, "float64": 2.0**1000}  # weights, as in native/learners/bank_state.hpp
_LEAST_MEAN = 1e-37  # of a feature's size, so that float32 can divide by it
_ALIKE = 4.0  # sizes of a feature that differ by less between a shard and all rows


class _Side(NamedTuple):
    """What a bank knows, nothing put off; weights and `rows`, those of its sketch, are for scaled features."""

    features: Integers
    counts: Floats  # of rows that had the feature
    means: Floats  # of its size in them
    weights: Floats  # features × experts
    constants: Floats
    rows: Floats  # of the sketch: (rank + waiting) × (features + 1), the constant last
    waiting: int  # the last of them, which wait for the next update
    until: int  # up to which row the sketch's rows stand for the others
    shares: Floats
    scalars: Floats
    learned: float
    rounds: int
    labels: int
    dimension: int
    full: Moments | None  # of the experts with whole matrices
    tracking: Tracked | None  # of the one whose weights wander

    @property
    def length(self) -> float:
        """The mean squared length of scaled rows."""
        return float(self.scalars[layout.SQUARES]) / self.learned if self.learned else 1.0

    @property
    def ridge(self) -> float:
        return float(self.scalars[layout.RIDGE])

    @property
    def scales(self) -> Floats:
        return np.asarray(self.means * (self.counts / max(self.learned, 1.0)) ** 0.25)


def merged(banks: Sequence[NewtonBank], base: NewtonBank | None) -> Arrays:
    """All arrays of a bank that knows what `banks` know; all of them began as `base`."""
    start = None if base is None or base.rows_seen == 0 else _side(base)
    sides = [_side(bank) for bank in banks]
    if base is not None and start is not None:
        for side in sides:
            _check_began(side, start)
        new = [i for i, bank in enumerate(banks) if bank.rows_seen > base.rows_seen]
        if len(new) < 2:  # the others have learned nothing: not even rounding is to tell of them
            return dict(State(banks[new[0] if new else 0]._all_arrays()).arrays())
        before, sides = base, [sides[i] for i in new]
        banks, base = as_started_again([banks[i] for i in new], base)
        if base is not before:
            start, sides = _side(base), [_side(bank) for bank in banks]
    whole = _counted(sides, start, banks[0]._rule == "squared")
    like = max(banks, key=lambda bank: bank._m)
    sketch, directions = _sketch(sides, start, whole, like._m)
    weights = _weights(sides, start, whole, directions[:1])
    if start is not None:
        _add_up_by_direction(weights, sides, start, whole, sketch, directions)
    full = _full(sides, start, whole)
    tracking = merged_tracking([side.tracking for side in sides], start and start.tracking, full)
    shares = _shares(sides, start, whole, _remaining(full, tracking))
    gaps, experts = whole.scalars[layout.GAPS], np.count_nonzero(shares)
    whole.scalars[layout.RATE] = np.log(experts) / gaps if gaps > _NO_GAP else 0.0
    began = None if start is None or base is None else base._state
    states = [bank._state for bank in banks]
    tracked = residuals.merged(states, began, few=full is not None) | calibration.merged_banks(states, began)
    inputs = min(bank._kernel.experts for bank in banks)  # one is no expert, and the constant one is none
    clock = float(whole.scalars[layout.CLOCK])
    tracked["stack"] = bank_stack.merged(states, began, inputs, _new(sides, start), clock)
    first = [state["first_labels"] for state in states]
    tracked["first_labels"] = max(first, key=lambda its: its[layout.MET]).copy()  # of whoever has met most
    return {**_arrays(like, whole, sketch, directions, weights, shares, full), **tracking, **tracked}


# --- what one bank knows


def _side(bank: NewtonBank) -> _Side:
    its, m, K = bank._state, bank._m, bank._K
    features = np.asarray(bank._seen).copy()
    table = np.empty((len(features), bank._table.width), bank._table.dtype)
    bank._kernel.settled(table)
    table = table.astype(np.float64)
    z, b = table[:, K : K + m], its["b"][:, :m]
    counts, means = table[:, -3], table[:, -2]
    learned, rank, waiting = (
        int(its["bank_counts"][i]) for i in (layout.LEARNED, layout.RANK, layout.FILLED)
    )
    root = np.sqrt(its["lambda"][:rank])
    rows = np.zeros((rank + waiting, len(features) + 1))
    rows[:rank, :-1] = root[:, None] * z[:, :rank].T
    rows[:rank, -1] = root * its["constant"][K : K + rank]
    side = _Side(
        features=features,
        counts=counts,
        means=means,
        weights=layout.averaged(bank._weight_unit * table[:, :K] + z @ b.T, bank.rows_seen),
        constants=layout.averaged(its["constant"][:K] + b @ its["constant"][K:], bank.rows_seen),
        rows=rows,
        waiting=waiting,
        until=int(its["bank_counts"][layout.NEXT]) - 1,
        shares=its["shares"].copy(),
        scalars=its["scalars"].copy(),
        learned=float(learned),
        rounds=bank.rows_seen,
        labels=int(its["bank_counts"][layout.LABELS]),
        dimension=bank.dimension,
        full=moments_of(bank),
        tracking=tracked_of(bank, float(its["scalars"][layout.CLOCK])),
    )
    _add_waiting(bank, side, rank, waiting)
    return side


def _add_waiting(bank: NewtonBank, side: _Side, rank: int, waiting: int) -> None:
    """Rows that wait for the next update of the sketch."""
    its = bank._state
    order = np.argsort(side.features)
    known = side.features[order]
    for i in range(waiting):
        entries = slice(int(its["buffer_start"][i]), int(its["buffer_start"][i + 1]))
        length = its["buffer_length"][i]
        places = order[np.searchsorted(known, its["buffer_index"][entries])]
        side.rows[rank + i, places] = its["buffer_value"][entries].astype(np.float64) * length
        side.rows[rank + i, -1] = length * bank._params["intercept"]


def _check_began(side: _Side, base: _Side) -> None:
    places, known = _places(side.features, base.features)
    grown = known.all() and (side.counts[places] >= base.counts).all()
    if not grown or side.learned < base.learned or side.rounds < base.rounds:
        raise ValueError(
            "cannot merge banks that did not begin with this base: it knows rows that they do not"
        )


# --- what all know together


class _Whole(NamedTuple):
    """Counts of all rows, and the units in which sides are compared."""

    features: Integers
    order: Integers  # the place of each feature among them
    begun: NDArray[np.bool_]  # whether the base knew it
    counts: Floats
    means: Floats
    scales: Floats
    scalars: Floats
    learned: float
    rounds: int
    labels: int
    dimension: int
    squared: bool

    @property
    def length(self) -> float:
        return float(self.scalars[layout.SQUARES]) / self.learned if self.learned else 1.0

    def places(self, side: _Side) -> Integers:
        """Where a side's features are."""
        return np.asarray(self.order[side.features])

    def ratio(self, side: _Side, sizes: Floats, common: Floats) -> Floats:
        """Of each feature of a side, its size there over the common one, where numbers have to be converted.

        Sizes change with every row, and what one bank has learned of a feature keeps its numbers. So does what all
        sides began with, and what they added to it.
        """
        places = self.places(side)
        return np.asarray(np.where(self.begun[places], 1.0, sizes / common[places]))

    def unit(self, side: _Side) -> float:
        """The width of a side's labels as a share of all labels' width: its slopes were measured in its own."""
        width = _width(self.scalars)
        return 1.0 if not self.squared or width == 0.0 else _width(side.scalars) / width


def _counted(sides: Sequence[_Side], base: _Side | None, squared: bool) -> _Whole:
    dimension = max(side.dimension for side in sides)
    seen = np.zeros(dimension, bool)
    for side in sides:
        seen[side.features] = True
    features, order = np.flatnonzero(seen), np.cumsum(seen) - 1
    begun = np.zeros(len(features), bool)
    if base is not None:
        begun[order[base.features]] = True
    counts, sizes = np.zeros(len(features)), np.zeros(len(features))
    for sign, side in _signed(sides, base):
        places = order[side.features]
        counts[places] += sign * side.counts
        sizes[places] += sign * side.counts * side.means
    means = np.maximum(sizes / np.maximum(counts, 1.0), _LEAST_MEAN)
    learned = sum(sign * side.learned for sign, side in _signed(sides, base))
    return _Whole(
        features=features,
        order=order,
        begun=begun,
        counts=counts,
        means=means,
        scales=np.asarray(means * (counts / max(learned, 1.0)) ** 0.25),
        scalars=_scalars(sides, base),
        learned=learned,
        rounds=round(sum(sign * side.rounds for sign, side in _signed(sides, base))),
        labels=max(side.labels for side in sides),
        dimension=dimension,
        squared=squared,
    )


def _scalars(sides: Sequence[_Side], base: _Side | None) -> Floats:
    """Sums, the union of the ranges of labels, and the mean of the numbers from which scores are counted."""
    scalars = np.asarray(sum(sign * side.scalars for sign, side in _signed(sides, base)))
    for least in (layout.SEEN_LOW, layout.LOW):
        scalars[least] = min(side.scalars[least] for side in sides)
    for most in (layout.SEEN_HIGH, layout.HIGH):
        scalars[most] = max(side.scalars[most] for side in sides)
    rows = np.array([side.rounds for side in sides], np.float64)
    offsets = np.array([side.scalars[layout.OFFSET] for side in sides])
    scalars[layout.OFFSET] = rows @ offsets / rows.sum() if base is None else base.scalars[layout.OFFSET]
    scalars[layout.USUAL] = _usual(sides, base, scalars)
    return scalars


def _usual(sides: Sequence[_Side], base: _Side | None, scalars: Floats) -> float:
    """What the constant expert knows: the mean label above the offset, with one more row of none."""
    known = 0.0
    for sign, side in _signed(sides, base):
        rows, moved = side.scalars[layout.USUAL_ROWS], side.scalars[layout.OFFSET] - scalars[layout.OFFSET]
        known += sign * ((rows + 1.0) * side.scalars[layout.USUAL] + rows * moved)
    return float(known / (scalars[layout.USUAL_ROWS] + 1.0))


def _sketch(sides: Sequence[_Side], base: _Side | None, whole: _Whole, m: int) -> tuple[Floats, Floats]:
    """Eigenvalues and directions of the m largest, less the next; what was taken away joins the ridge."""
    signed = list(_signed(sides, base))
    stack = np.zeros((sum(len(side.rows) for _, side in signed), len(whole.features) + 1))
    signs, at = np.zeros(len(stack)), 0
    for sign, side in signed:
        unit, end = whole.unit(side), at + len(side.rows)
        ratio = whole.ratio(side, side.scales, whole.scales)
        stack[at:end, whole.places(side)] = side.rows[:, :-1] * (unit * ratio)
        stack[at:end, -1] = unit * side.rows[:, -1]
        stack[end - side.waiting : end] *= _standing(side, base)
        signs[at:end] = sign
        at = end
    values, vectors = eigenpairs(stack, signs, m + 1)
    taken = max(float(values[m]), 0.0) if len(values) > m else 0.0
    taken *= _worked_in(sides, base, whole, m)
    kept = np.flatnonzero(values[:m] - taken > np.finfo(float).eps * max(values[:1].sum(), 0.0))
    whole.scalars[layout.RIDGE] = _ridge(sides, base, whole, m) + taken
    return values[kept] - taken, vectors[kept]


def _ridge(sides: Sequence[_Side], base: _Side | None, whole: _Whole, m: int) -> float:
    """What one bank would have added to the base's, by the sides' means over updates of their sketches."""
    begun, start = (0.0, 0.0) if base is None else (float(base.rounds), whole.unit(base) ** 2 * base.ridge)
    added = sum(whole.unit(side) ** 2 * side.ridge - start for side in sides)
    part = growth(begun, [float(side.rounds) for side in sides], m) if m else 1.0
    return max(start + part * added, 0.0)


def _standing(side: _Side, base: _Side | None) -> float:
    """What rows that wait are multiplied by, because the last of them stands for rows that are yet to come.

    That is next to nothing in a long stream, but twice the rows there are in shards of short rounds. If the base
    has rows waiting itself, those of its shards may be the same, and are left alone.
    """
    begun = 0 if base is None else base.rounds
    if side is base or (base is not None and base.waiting) or side.until <= side.rounds:
        return 1.0
    return float(np.sqrt((side.rounds - begun) / (side.until - begun)))


def _worked_in(sides: Sequence[_Side], base: _Side | None, whole: _Whole, m: int) -> float:
    """The share of a full buffer that the sides' new rows are; 1 where sketches themselves are merged.

    They are worked in now, where one bank would have let them wait for more, and shrunk its sketch once for all.
    """
    if base is None or m == 0:
        return 1.0
    new = 0
    for side in sides:
        if len(side.rows) - side.waiting != len(base.rows) - base.waiting or side.ridge != base.ridge:
            return 1.0
        new += side.waiting - base.waiting
    return min(1.0, max(new, 0) / buffered(float(whole.rounds), m))


def _weights(sides: Sequence[_Side], base: _Side | None, whole: _Whole, leading: Floats) -> Floats:
    """Of features, then the constant, for each expert, for features scaled as all rows have it.

    `leading` is the first direction of the sketch, if there is any.
    """
    views = np.array([view for *_, view in layout.EXPERTS.values()])
    constants = _constants(whole, views)
    before, seen = _comparable(base, whole, constants), _rows_with(base, whole)
    new = [np.maximum(_rows_with(side, whole) - seen, 0.0) for side in sides]
    known = _known(sides, base, new)
    by_view = {view: parts(view, new, seen, known) for view in set(views.tolist())}
    begun = 0 if base is None else base.rounds
    by_view[layout.MEAN] = further(by_view[layout.MEAN], begun, [side.rounds for side in sides], whole.rounds)
    weights = faded(before, begun, whole.rounds)
    fresh = base is None and len(leading) > 0
    mean = mean_rows(_usual_shares(sides, whole), leading[0], views, constants) if fresh else before
    usual = np.zeros(len(views))
    for i, (side, rows) in enumerate(zip(sides, new, strict=True)):
        its, start = _comparable(side, whole, constants), faded(before, begun, side.rounds)
        for expert, view in enumerate(views.tolist()):
            part = by_view[view][i]
            moved = part.own * its[:, expert] - part.less * start[:, expert]
            weights[:, expert] += np.where(rows > 0, moved, 0.0)
        if fresh:  # rare experts saw the same rows larger
            larger = ((whole.learned + 1.0) / (side.learned + 1.0)) ** 0.25
            seen_larger = np.where(views == layout.RARE, larger, 1.0)
            usual += side.learned / whole.learned * seen_larger * scores(its, mean)
    return with_scores(weights, mean, usual) if fresh else weights


def _add_up_by_direction(
    weights: Floats, sides: Sequence[_Side], base: _Side, whole: _Whole, sketch: Floats, directions: Floats
) -> None:
    """Weights of experts that have a metric, where it is known which directions the rows of all sides had.

    Other losses weigh rows before whole matrices have them, and so these do not tell how many there were.
    """
    all_met = _met(sides, base, whole) if whole.squared or whole.labels == layout.SIGNS else None
    if all_met is None:
        return
    views = np.array([view for *_, view in layout.EXPERTS.values()])
    constants, lengths = _constants(whole, views), [side.length for side in sides]
    before, factors = _comparable(base, whole, constants), np.ones((len(sides), len(views)))
    factors[:, views == layout.MEAN] = np.array(
        [lengthened(base.rounds, [side.rounds for side in sides], whole.rounds)]
    ).T
    moves = [
        by * (_comparable(side, whole, constants) - faded(before, base.rounds, side.rounds))
        for side, by in zip(sides, factors, strict=True)
    ]
    begun = faded(before, base.rounds, whole.rounds)
    for kind, experts in kinds().items():
        falls = kind.steady + kind.root / np.sqrt(max(whole.scalars[layout.CLOCK], 1.0))
        seen = np.append(np.ones(len(whole.features)), constants[experts[0]] if kind.heavy else 1.0)
        flat = whole.length + 0.5 * falls * whole.scalars[layout.RIDGE]
        moved = merged_moves(
            [move[:, experts] for move in moves],
            [squares * np.outer(seen, seen) for squares in all_met],
            lengths,
            metric(directions * seen, falls * sketch, flat),
            _KNOWN,
        )
        if moved is not None:
            weights[:, experts] = begun[:, experts] + moved


def _met(sides: Sequence[_Side], base: _Side, whole: _Whole) -> list[Floats] | None:
    """Σ xxᵀ of each side's rows since the base, scaled as all are; None if somebody does not know them."""
    found = []
    for side in sides:
        if side.full is None or base.full is None:
            return None
        squares = met(side.full, base.full, side.rounds - base.rounds, whole.features, whole.scales)
        if squares is None:
            return None
        found.append(squares)
    return found


def _usual_shares(sides: Sequence[_Side], whole: _Whole) -> Floats:
    """The share of rows that had each feature; 0 where its mean size differs between shards by an outlier.

    In the unit of all rows together, the weights of shards without the outlier are as large as it is.
    """
    shares = whole.counts / whole.learned
    for side in sides:
        places, sizes = whole.places(side), side.means
        common = whole.means[places]
        shares[places] *= (common < _ALIKE * sizes) & (sizes < _ALIKE * common)
    return np.asarray(shares)


def _known(sides: Sequence[_Side], base: _Side | None, new: Sequence[Floats]) -> list[Floats]:
    """How well each side knows each weight by its new rows: h in docs/merging.md."""
    learned = [side.learned - (0.0 if base is None else base.learned) for side in sides]
    return [
        _KNOWN * np.sqrt(rows * max(count, 0.0)) / side.length
        for side, rows, count in zip(sides, new, learned, strict=True)
    ]


def _comparable(side: _Side | None, whole: _Whole, constants: Floats) -> Floats:
    """A side's weights for the mean sizes of all rows; zeros for features it does not know.

    Scales also tell how rare a feature is, and some experts bring rows to their typical length. While a bank
    learns, both change and its weights stay as they are; so they do here.
    """
    weights = np.zeros((len(whole.features) + 1, len(constants)))
    if side is None:
        return weights
    with np.errstate(all="ignore"):  # of a feature that is 10³⁰⁰ times as large on another side
        comparable = side.weights / whole.ratio(side, side.means, whole.means)[:, None]
    weights[whole.places(side)] = np.clip(
        np.nan_to_num(comparable), -_HEAVIEST["float64"], _HEAVIEST["float64"]
    )
    shift = side.scalars[layout.OFFSET] - whole.scalars[layout.OFFSET]
    weights[-1] = side.constants + shift / constants
    return weights


def _rows_with(side: _Side | None, whole: _Whole) -> Floats:
    """In how many rows each feature was; the constant was in all."""
    counts = np.zeros(len(whole.features) + 1)
    if side is not None:
        counts[whole.places(side)] = side.counts
        counts[-1] = side.learned
    return counts


def _full(sides: Sequence[_Side], base: _Side | None, whole: _Whole) -> Arrays | None:
    start = None if base is None else base.full
    learned = [0.0 if base is None else base.learned, *(side.learned for side in sides)]
    offset = float(whole.scalars[layout.OFFSET])
    moments = [side.full for side in sides]
    return merged_moments(moments, start, learned, whole.features, whole.counts, whole.means, offset)


def _remaining(full: Arrays | None, tracking: Arrays) -> int:
    """How many experts there are."""
    steps = len(layout.EXPERTS) + 1
    return steps if full is None else steps + len(FULL) + bool(tracking["tracked"][0] >= 0)


def _shares(sides: Sequence[_Side], base: _Side | None, whole: _Whole, remain: int) -> Floats:
    """The geometric mean, weighted by new rows, with as much of equal shares as after any row.

    Experts that do not remain have none.
    """
    new = _new(sides, base)
    if not new.any():
        new[:] = 1.0
    each = np.array([side.shares for side in sides])
    count = min(each.shape[1], remain)
    logs = np.tensordot(new / new.sum(), np.log(np.maximum(each[:, :count], _LEAST_SHARE)), 1)
    shares = np.exp(logs - logs.max())
    mixed = 1.0 / (whole.scalars[layout.CLOCK] + 1.0)
    dealt = np.asarray((1.0 - mixed) * shares / shares.sum() + mixed / len(shares))
    return np.concatenate([dealt, np.zeros(each.shape[1] - count)])


# --- and as a bank


def _arrays(
    like: NewtonBank,
    whole: _Whole,
    values: Floats,
    directions: Floats,
    weights: Floats,
    shares: Floats,
    full: Arrays | None,
) -> Arrays:
    K, m, rank = like._K, like._m, len(values)
    fresh = type(like)(**like._params)
    arrays: Arrays = {name: np.array(array) for name, array in fresh._all_arrays().items()}
    table = np.zeros((len(whole.features), like._table.width))
    low, high = whole.scalars[[layout.LOW, layout.HIGH]].tolist()
    weights = layout.kept(weights, whole.rounds)
    heaviest = _HEAVIEST[like._table.dtype]
    table[:, :K] = np.clip(weights[:-1] / layout.weight_unit(like.loss, low, high), -heaviest, heaviest)
    table[:, K : K + rank] = directions[:, :-1].T
    table[:, -3], table[:, -2] = whole.counts, whole.means
    constant = np.zeros(K + m)
    if like._params["intercept"]:
        constant[:K], constant[K : K + rank] = weights[-1], directions[:, -1]
    arrays["lambda"][:rank] = values
    counts = np.zeros_like(arrays["bank_counts"])
    counts[layout.LEARNED], counts[layout.RANK], counts[layout.LABELS] = (
        round(whole.learned),
        rank,
        whole.labels,
    )
    counts[layout.NEXT] = whole.rounds + 1
    counts[layout.PLACES] = -1 if full is None else len(full["full_features"])
    counts[layout.NON_ZEROS] = round(whole.counts.sum())
    return {
        **arrays,
        **(full or {}),
        "bank_counts": counts,
        "constant": constant,
        "counts": np.array([whole.rounds, len(whole.features), whole.dimension], np.int64),
        "features": whole.features,
        "scalars": whole.scalars,
        "shares": shares,
        "table": table.astype(like._table.dtype),
    }


# --- small things


def _new(sides: Sequence[_Side], base: _Side | None) -> Floats:
    """The rows that each side has met since the base."""
    return np.array([side.rounds - (0 if base is None else base.rounds) for side in sides], np.float64)


def _signed(sides: Sequence[_Side], base: _Side | None) -> Iterable[tuple[float, _Side]]:
    """What is added up: each side, less the base that all but one of them brought along too."""
    yield from ((1.0, side) for side in sides)
    if base is not None and len(sides) > 1:
        yield 1.0 - len(sides), base


def _places(features: Integers, wanted: Integers) -> tuple[Integers, Floats]:
    """Where `wanted` are among `features`, and whether they are there."""
    order = np.argsort(features)
    at = np.minimum(np.searchsorted(features[order], wanted), max(len(features) - 1, 0))
    if not len(features):
        return np.zeros(0, np.int64), np.zeros(len(wanted), bool)
    return order[at], features[order[at]] == wanted


def _width(scalars: Floats) -> float:
    return float(scalars[layout.HIGH] - scalars[layout.LOW])


def _constants(whole: _Whole, views: Floats) -> Floats:
    """What experts see as the constant."""
    restless = max(1.0, _HEAVY * float(np.sqrt(max(whole.length - 1.0, 0.0))))
    rare = (whole.learned + 1.0) ** -0.25
    heavy = np.isin(views, layout.HEAVY_VIEWS)
    return np.where(heavy, restless, np.where(views == layout.RARE, rare, 1.0))
