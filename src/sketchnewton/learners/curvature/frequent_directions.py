"""Frequent Directions and its variants inside a learner (SON Algorithms 6–10, RFD Algorithms 3 and 6)."""

from __future__ import annotations

from collections.abc import Callable

from sketchnewton import _native
from sketchnewton.core.checks import are_whole, check_numbers
from sketchnewton.core.sketch_kinds import epoch_rounds
from sketchnewton.core.state import State, View, filled, zeros
from sketchnewton.core.types import Arrays, Floats, Integers, NDArray, np
from sketchnewton.learners.curvature.base import (
    LearnerSketch,
    Merged,
    SketchParameters,
    newton_kernel,
    padded4,
)

GROUP, FAN = 16, 64  # of EpochState in native/curvature/epoch_maps.hpp
GONE = 1e-13  # kGone of native/curvature/frequent.hpp
LOST = 2.0**-44  # kLost of native/curvature/few_features.hpp
FEW, DENSE, MOST = 64, 16, 4096  # as in FewFeatures::most
WEIGHT, SCALE, DIRECTIONS = range(3)  # columns of `few`
LEAST_SCALE, LARGEST_SCALE = 0.31, 1e150  # of a feature, the least being √0.1
ROUNDS, FEW_FEATURES = 4, 5  # in `sketch_counts`
PLACE = 0  # column of the table where there are few features: the row in `few`
EPOCH, KIND, VALUE, V = range(4)  # columns of the table, as in native/curvature/frequent_features.hpp


class FrequentState(LearnerSketch):
    """S = [diag(D) V; G]: the table holds V as of some epoch, and what of a gradient waits to join it.

    Features that several gradients G since the last shrink have touched have their columns of G in `slots`.

    While there are few features, or rows ask for more digits, S = RW instead, with directions W written out in
    `few`, beside weights and scales, one row per feature in the order of the table's list; M then holds R, and H
    the factor U of αI + RᵀR.

    A share of the m directions shrinks, from the smallest up (all of them but for PFD), and α gains a part of each
    shrink (nothing but for RFD).
    """

    packs = False  # `recent` and `group` list features, and its kernel looks for their rows

    _share: float = 1.0
    _ridge: float = 0.0

    def __init__(self, parameters: SketchParameters) -> None:
        self._m = m = parameters.size
        self._q = max(m - 1, 1)  # rows of V: a shrink leaves at most m − 1
        self.columns = V + self._q
        self._every = epoch_rounds(parameters.shrink, m)
        # RFD Algorithm 6 begins with m empty rows, one more than a shrink leaves: its first epoch is shorter.
        self._first_round = 1 if parameters.shrink == "2m" else 0
        self.extra = self._every
        self._dtype = parameters.dtype
        self._few = max(FEW, m - 1 + self._every)
        self._make = newton_kernel("frequent_newton", parameters.dtype)

    def fresh(self) -> dict[str, View]:
        """The small arrays of a learner that has seen nothing."""
        m, q, every = self._m, self._q, self._every
        n, width = m - 1 + every, _native.padded_columns(2 + self.columns)
        # Rank of V, directions opened by G, gradients of the epoch, entries met since the last sweep,
        # rounds of the epoch, whether there are few features, group, slots in use.
        counts = zeros(8, "int64")
        counts[FEW_FEATURES] = 1
        counts[ROUNDS] = self._first_round
        return {
            "sketch_counts": counts,
            "shrunk": zeros(1),
            "lost": zeros(1),
            "doubt": filled([1.0]),
            "M": zeros((n, padded4(n))),
            "H": zeros((n, padded4(n))),
            "C": zeros((every, padded4(q))),
            "T": zeros((every, padded4(every))),
            "spread": zeros(every),
            "c": zeros(padded4(n)),
            "few": zeros((self._few, _native.padded_columns(DIRECTIONS + padded4(n)))),
            "recent": zeros(0, "int64"),
            "slots": zeros((0, padded4(every)), self._dtype),
            "group": zeros(0, "int64"),
            "items": zeros(3, "int64"),  # epochs, closed groups of them, closed groups of groups
            "open": zeros((GROUP, q + every, width), self._dtype),
            "suffix": zeros((2 * FAN, q, width), self._dtype),
            # Zero pages until they are used.
            "archive": zeros((FAN * FAN, q, width), self._dtype),
        }

    def kernel(
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: dict[str, View]
    ) -> _native.SketchKernel:
        """The compiled learner over these arrays."""
        return self._make(
            problem, first_alpha, diagonal, views, self._m, self._every, self._share, self._ridge
        )

    def reserve(self, state: State, features: int, widest: int) -> dict[str, View]:
        """Room for the features of an epoch, of a group of epochs, and for vectors that are written out."""
        counts, larger = state.view("sketch_counts"), {}
        few, room = max(self._few, min(DENSE * widest, MOST)), len(state.view("few"))
        if room < few:
            larger["few"] = state.resized("few", few, room)
        few = max(few, room)  # all of them join when they are few no longer
        for names, used, rows in (
            (("recent", "slots"), int(counts[-1]), self._every),
            (("group",), int(counts[-2]), self._every * GROUP),
        ):
            size = min(used + few + rows * widest, features)
            if len(state.view(names[0])) >= size:
                continue
            larger |= {name: state.resized(name, size, used) for name in names}
        return larger

    def coefficients(self, state: State) -> Floats:
        """Wᵀc = Vᵀ(c_V + Cᵀc_e) + Gᵀ(Tᵀc_e)."""
        rank, opened = state["sketch_counts"][:2]
        c = state["c"]
        if is_few(state):
            return np.asarray(c[: rank + opened], np.float64)
        values = np.zeros(self.columns + self.extra)
        values[V : V + rank] = c[:rank]
        values[V : self.columns] += c[rank : rank + opened] @ state["C"][:opened, : self._q]
        values[self.columns :] = c[rank : rank + opened] @ state["T"][:opened, : self._every]
        return values

    def spectrum(self, state: State) -> Floats:
        """The eigenvalues of M = W SᵀS Wᵀ, largest first."""
        n = int(state["sketch_counts"][:2].sum())
        if is_few(state):
            sizes = np.zeros(n)
            found = np.linalg.svd(self._coordinates(state), compute_uv=False)
            sizes[: len(found)] = found
            return sizes**2
        return np.asarray(np.linalg.eigvalsh(state["M"][:n, :n])[::-1], np.float64)

    def basis(self, state: State, columns: Floats) -> Floats:
        """[V; C V + T G], the latter made orthonormal: rounding shows in those that began as a short rest."""
        W = self._directions(state, columns)
        if is_few(state):
            return W
        for k in range(int(state["sketch_counts"][0]), len(W)):
            for _ in range(2):
                W[k] -= (W[:k] @ W[k]) @ W[:k]
            W[k] /= np.linalg.norm(W[k]) or 1.0
        return W

    def _directions(self, state: State, columns: Floats) -> Floats:
        """W as the kernel has it."""
        if is_few(state):
            return columns.T.copy()
        rank, opened = state["sketch_counts"][:2]
        rows, G = columns[:, V : self.columns].T, columns[:, self.columns :].T
        opened_rows = state["C"][:opened, : self._q] @ rows + state["T"][:opened, : self._every] @ G
        return np.vstack([rows[:rank], opened_rows])

    def _coordinates(self, state: State) -> Floats:
        """R, where there are few features."""
        rank, opened, filled = state["sketch_counts"][:3]
        R: Floats = state["M"][: rank + filled, : rank + opened]
        return R

    def settled(self, state: State, features: int) -> tuple[Floats, Floats, Floats] | None:
        """Weights, scales and directions, if they are written out."""
        if not is_few(state):
            return None
        n = int(state["sketch_counts"][:2].sum())
        rows = state["few"][:features]
        return rows[:, WEIGHT].copy(), rows[:, SCALE].copy(), rows[:, DIRECTIONS : DIRECTIONS + n].copy()

    def factor(self, state: State, columns: Floats) -> Floats:
        """M^½ W."""
        W = self._directions(state, columns)
        if is_few(state):
            return np.asarray(self._coordinates(state) @ W, np.float64)
        values, vectors = np.linalg.eigh(state["M"][: len(W), : len(W)])
        S: Floats = np.sqrt(np.maximum(values, 0.0))[:, None] * (vectors.T @ W)
        return S

    @property
    def _shortened(self) -> int:
        """How many of the m directions a shrink shortens: ⌊βm⌋, with β as it is written in decimals."""
        return int(self._share * self._m + 1e-9)

    def mass(self, state: State, S: Floats, unit: float = 1.0) -> float:
        """What the shrinks have taken away included: as much of each of the rows that they shorten."""
        return super().mass(state, S) + unit * self._shortened * float(state["shrunk"][0])

    def merged(self, mine: State, theirs: State, S: tuple[Floats, Floats], alpha: float) -> Merged:
        """The rows of both, shrunk: the sum of shrinks stays a certificate."""
        m = self._m
        _, sizes, rows = np.linalg.svd(np.vstack(S), full_matrices=False)
        squares = sizes**2
        largest = squares.max(initial=0.0)
        exact = is_few(mine) and is_few(theirs)
        rounding = (LOST**2 if exact else GONE) * largest
        rho = float(squares[m - 1]) if len(squares) >= m and squares[m - 1] > rounding else 0.0
        squares = squares[: m - 1]
        squares[m - self._shortened :] -= rho
        kept = squares > rounding
        lost = LOST * largest + squares[~kept].max(initial=0.0)
        squares, rows, rank = squares[kept], rows[: m - 1][kept], np.count_nonzero(kept)
        alpha += self._ridge * rho
        state = State(self.fresh())
        state["sketch_counts"][0], state["sketch_counts"][ROUNDS] = rank, 0
        state["shrunk"] = mine["shrunk"] + theirs["shrunk"] + rho
        state["lost"] = mine["lost"] + theirs["lost"] + lost
        columns = np.zeros((rows.shape[1], self.columns))
        if len(columns) <= self._few:
            state["M"][range(rank), range(rank)] = np.sqrt(squares)
            state["H"][range(rank), range(rank)] = np.sqrt(alpha + squares)
            state["few"][: len(columns), DIRECTIONS : DIRECTIONS + rank] = rows.T
            columns[:, PLACE] = np.arange(len(columns))
        else:
            state["sketch_counts"][FEW_FEATURES] = 0
            state["M"][range(rank), range(rank)] = squares
            state["H"][range(rank), range(rank)] = 1.0 / (alpha + squares)
            columns[:, V : V + rank] = rows.T
        return Merged(state, columns, alpha)

    def place(self, state: State, weights: Floats, scales: Floats) -> None:
        """Beside the directions, if these are written out."""
        if is_few(state):
            state["few"][: len(weights), [WEIGHT, SCALE]] = np.column_stack([weights, scales])

    def error_bound(self, state: State) -> float:
        """The sum of shrinks, less what the ridge has made up for; and what rounding has done to sums and table.

        A sum of positive numbers is off by half a unit of it for each of them at most, and so is the ridge. Every
        epoch rounds V, by a unit of its numbers at most; from epoch to epoch that is a random walk.
        """
        rounding = float(state["counts"][0]) * np.finfo(np.float64).eps * state["shrunk"][0]
        shrinks = (1.0 - self._ridge) * state["shrunk"][0] + state["lost"][0] + rounding
        if is_few(state):
            return float(shrinks)
        epochs = state["counts"][0] // self._every
        largest = self.spectrum(state).max(initial=0.0)
        return float(shrinks + np.finfo(self._dtype).eps * largest * np.sqrt(epochs))

    def ridge(self, state: State) -> float:
        """Of each shrink, its share."""
        return float(self._ridge * state["shrunk"][0])

    def fits(self, state: State, seen: Integers | View, columns: Callable[[], NDArray[np.floating]]) -> bool:
        """Are the counters possible?"""
        rank, opened, filled, met, rounds, few, members, recent = state["sketch_counts"]
        items = state["items"]
        return bool(
            0 <= rank < self._m
            and 0 <= opened <= rounds < self._every
            and 0 <= filled <= rounds
            and met >= 0
            and 0 <= few <= 1
            and 0 <= members <= len(state["group"])
            and 0 <= recent <= len(state["recent"]) == len(state["slots"])
            and 0 <= items[1] < FAN * FAN
            and 0 <= items[0] - items[1] * GROUP < GROUP
            and items[2] == items[1] // FAN
            and (
                self._few_fit(state, columns())
                if few
                else self._columns_fit(state, np.asarray(seen), columns())
            )
        )

    def _few_fit(self, state: State, columns: NDArray[np.floating]) -> bool:
        """Has every feature its row, the factor of the metric a diagonal, and does nothing wait?"""
        rank, opened, filled = state["sketch_counts"][:3]
        n, count = int(rank + opened), len(columns)
        if opened > filled or count > len(state["few"]):
            return False
        if state["sketch_counts"][-2:].any() or state["items"].any():
            return False
        scales = state["few"][:count, SCALE]
        return bool(
            np.array_equal(columns[:, PLACE], np.arange(count))
            and ((scales >= LEAST_SCALE) & (scales <= LARGEST_SCALE)).all()
            and (np.diag(state["H"])[:n] > 0).all()
        )

    def _columns_fit(self, state: State, seen: Integers, columns: NDArray[np.floating]) -> bool:
        """Do the features wait for epochs, gradients and slots that there are?"""
        _, opened, _, _, _, _, members, recent = state["sketch_counts"]
        now, start = state["items"][0], state["items"][1] * GROUP
        epoch, kind, value = columns[:, EPOCH], columns[:, KIND], columns[:, VALUE]
        if not (are_whole(epoch, 0, now) and are_whole(kind, 0, (self._every + 1) * GROUP)):
            return False
        waiting = np.isin(seen, state["group"][:members])
        first = 1 + (self._every + 1) * (now - start)  # kind of this epoch's first gradient
        slotted = np.flatnonzero(kind == first + self._every)
        single = (kind != 0) & (kind < first) & ((kind - 1) % (self._every + 1) < self._every)
        current = (kind >= first) & (kind < first + opened)
        return bool(
            (epoch[~waiting] % GROUP == 0).all()
            and (epoch[~waiting] <= start).all()
            and (epoch[waiting] >= start).all()
            and np.count_nonzero(waiting) == members == len(np.unique(state["group"][:members]))
            and (kind[~waiting] == 0).all()
            # else it would join the group once more
            and ((kind[waiting] != 0) | (epoch[waiting] > start)).all()
            and ((kind == 0) | single | current | (kind == first + self._every)).all()
            and len(slotted) == recent
            and np.array_equal(np.sort(value[slotted]), np.arange(recent))
            and np.array_equal(state["recent"][value[slotted].astype(np.int64)], seen[slotted])
        )

    def saved(self, state: State) -> dict[str, View]:
        """Only the maps and slots that are in use, and no spare room."""
        counts = state.view("sketch_counts")
        members, used = int(counts[-2]), int(counts[-1])
        maps, rows, few = int(state.view("items")[2]) * FAN, state.view("few"), 0
        while few < len(rows) and rows[few, SCALE] > 0:
            few += 1
        lengths = {"archive": maps, "recent": used, "slots": used, "group": members, "few": few}
        return state.views() | {name: state.head(name, length) for name, length in lengths.items()}

    def restored(self, arrays: Arrays) -> Arrays:
        """Room again for all maps, and for as many features as are few."""
        arrays = {name: np.asarray(array) for name, array in arrays.items()}
        fresh = State(self.fresh())
        fresh.resize("few", max(self._few, min(len(arrays["few"]), MOST)), 0)
        for name in ("archive", "few"):
            kept, room = arrays[name], fresh[name]
            if kept.dtype != room.dtype or kept.shape[1:] != room.shape[1:] or len(kept) > len(room):
                raise ValueError(f"array {name!r} has the wrong type or shape")
            check_numbers(name, kept)
            room[: len(kept)] = kept
        return {**arrays, "archive": fresh["archive"], "few": fresh["few"]}


def is_few(state: State) -> bool:
    """Are there few features, and directions written out?"""
    return bool(state.view("sketch_counts")[FEW_FEATURES])


class RobustFrequentState(FrequentState):
    """RFD: α gains half of each shrink, which halves the error."""

    grows_alpha = True
    _ridge = 0.5


class ParameterizedFrequentState(FrequentState):
    """PFD: of the m directions only the last ⌊βm⌋ shrink. The m-th is gone then, so ⌊βm⌋ = 0 is the same as 1."""

    def __init__(self, parameters: SketchParameters) -> None:
        super().__init__(parameters)
        self._share = parameters.beta
