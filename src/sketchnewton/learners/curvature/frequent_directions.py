"""Frequent Directions and its kin inside a learner (SON Algorithms 6–10, RFD Algorithms 3 and 6)."""

from __future__ import annotations

from typing import Any

from sketchnewton import _native
from sketchnewton.core.types import Floats, Integers, NDArray, np
from sketchnewton.learners.base import Arrays
from sketchnewton.learners.curvature.base import LearnerSketch, Merged, padded4

GROUP, FAN = 16, 64  # of EpochState in native/epochs.hpp
GONE = 1e-13  # kGone of native/frequent.hpp
EPOCH, KIND, VALUE, V = range(4)  # columns of the table, as in native/frequent_features.hpp


class FrequentState(LearnerSketch):
    """S = [diag(D) V; G]: the table holds V as of some epoch, and what of a gradient waits to join it.

    Features that several gradients G since the last shrink have touched have their columns of G in `slots`.

    `share` of the m directions shrink, from the smallest up (1 for FD and RFD, β for PFD); `ridge` is what α gains
    of each shrink (½ for RFD).
    """

    def __init__(self, m: int, dtype: str, share: float, ridge: float) -> None:
        self._m, self._share, self._ridge = m, share, ridge
        self._q = max(m - 1, 1)  # rows of V: a shrink leaves at most m − 1
        self.columns = V + self._q
        self.extra = m
        self._dtype = np.dtype(dtype)
        self._make = _native.frequent_newton64 if dtype == "float64" else _native.frequent_newton32

    def fresh(self) -> Arrays:
        """The small arrays of a learner that has seen nothing."""
        m, q = self._m, self._q
        n, width = 2 * m - 1, _native.padded_columns(2 + self.columns)
        return {
            # rank of V, directions opened by G, rows in G, entries met since the last sweep, group, slots in use
            "sketch_counts": np.zeros(6, np.int64),
            "shrunk": np.zeros(1),
            "doubt": np.ones(1),
            "M": np.zeros((n, padded4(n))),
            "H": np.zeros((n, padded4(n))),
            "C": np.zeros((m, padded4(q))),
            "T": np.zeros((m, padded4(m))),
            "spread": np.zeros(m),
            "c": np.zeros(padded4(n)),
            "recent": np.zeros(0, np.int64),
            "slots": np.zeros((0, padded4(m)), self._dtype),
            "group": np.zeros(0, np.int64),
            "items": np.zeros(3, np.int64),  # epochs, closed groups of them, closed groups of groups
            "open": np.zeros((GROUP, q + m, width), self._dtype),
            "suffix": np.zeros((2 * FAN, q, width), self._dtype),
            # Zero pages until they are used.
            "archive": np.zeros((FAN * FAN, q, width), self._dtype),
        }

    def kernel(
        self, problem: _native.Problem, first_alpha: float, diagonal: bool, views: Arrays
    ) -> _native.NewtonKernel:
        """The compiled learner over these arrays."""
        return self._make(problem, first_alpha, diagonal, views, self._m, self._share, self._ridge)

    def reserve(self, arrays: Arrays, features: int, widest: int) -> bool:
        """Make room for the features of an epoch, and of a group of epochs."""
        replaced = False
        for names, used, rows in (
            (("recent", "slots"), int(arrays["sketch_counts"][5]), self._m),
            (("group",), int(arrays["sketch_counts"][4]), self._m * GROUP),
        ):
            size = min(used + rows * widest, features)
            if len(arrays[names[0]]) >= size:
                continue
            for name in names:
                grown = np.zeros((size, *arrays[name].shape[1:]), arrays[name].dtype)
                grown[:used] = arrays[name][:used]
                arrays[name] = grown
            replaced = True
        return replaced

    def coefficients(self, arrays: Arrays) -> Floats:
        """Wᵀc = Vᵀ(c_V + Cᵀc_e) + Gᵀ(Tᵀc_e)."""
        rank, opened = arrays["sketch_counts"][:2]
        c = arrays["c"]
        values = np.zeros(self.columns + self.extra)
        values[V : V + rank] = c[:rank]
        values[V : self.columns] += c[rank : rank + opened] @ arrays["C"][:opened, : self._q]
        values[self.columns :] = c[rank : rank + opened] @ arrays["T"][:opened, : self._m]
        return values

    def spectrum(self, arrays: Arrays) -> Floats:
        """The eigenvalues of M = W SᵀS Wᵀ, largest first."""
        n = int(arrays["sketch_counts"][:2].sum())
        return np.asarray(np.linalg.eigvalsh(arrays["M"][:n, :n])[::-1], np.float64)

    def basis(self, arrays: Arrays, columns: Floats) -> Floats:
        """[V; C V + T G], the latter made orthonormal: rounding shows in those that began as a short rest."""
        W = self._directions(arrays, columns)
        for k in range(int(arrays["sketch_counts"][0]), len(W)):
            for _ in range(2):
                W[k] -= (W[:k] @ W[k]) @ W[:k]
            W[k] /= np.linalg.norm(W[k]) or 1.0
        return W

    def _directions(self, arrays: Arrays, columns: Floats) -> Floats:
        """W as the kernel has it."""
        rank, opened = arrays["sketch_counts"][:2]
        rows, G = columns[:, V : self.columns].T, columns[:, self.columns :].T
        opened_rows = arrays["C"][:opened, : self._q] @ rows + arrays["T"][:opened, : self._m] @ G
        return np.vstack([rows[:rank], opened_rows])

    def factor(self, arrays: Arrays, columns: Floats) -> Floats:
        """M^½ W."""
        W = self._directions(arrays, columns)
        values, vectors = np.linalg.eigh(arrays["M"][: len(W), : len(W)])
        S: Floats = np.sqrt(np.maximum(values, 0.0))[:, None] * (vectors.T @ W)
        return S

    def merged(self, mine: Arrays, theirs: Arrays, S: tuple[Floats, Floats], alpha: float) -> Merged:
        """The rows of both, shrunk: the sum of shrinks stays a certificate."""
        m = self._m
        _, sizes, rows = np.linalg.svd(np.vstack(S), full_matrices=False)
        squares = sizes**2
        rounding = GONE * squares.max(initial=0.0)
        rho = float(squares[m - 1]) if len(squares) >= m and squares[m - 1] > rounding else 0.0
        squares = squares[: m - 1]
        squares[m - int(self._share * m + 1e-9) :] -= rho
        kept = squares > rounding
        squares, rows, rank = squares[kept], rows[: m - 1][kept], np.count_nonzero(kept)
        alpha += self._ridge * rho
        arrays = self.fresh()
        arrays["sketch_counts"][0] = rank
        arrays["shrunk"] = mine["shrunk"] + theirs["shrunk"] + rho
        arrays["M"][range(rank), range(rank)] = squares
        arrays["H"][range(rank), range(rank)] = 1.0 / (alpha + squares)
        columns = np.zeros((rows.shape[1], self.columns))
        columns[:, V : V + rank] = rows.T
        return Merged(arrays, columns, alpha)

    def error_bound(self, arrays: Arrays) -> float:
        """The sum of shrinks, less what the ridge has made up for; and what rounding has done to the table.

        Every epoch rounds V, by a unit of its numbers at most; from epoch to epoch that is a random walk.
        """
        shrinks = (1.0 - self._ridge) * arrays["shrunk"][0]
        epochs = arrays["counts"][0] // self._m
        largest = self.spectrum(arrays).max(initial=0.0)
        return float(shrinks + np.finfo(self._dtype).eps * largest * np.sqrt(epochs))

    def ridge(self, arrays: Arrays) -> float:
        """Of each shrink, its share."""
        return float(self._ridge * arrays["shrunk"][0])

    def fits(self, arrays: Arrays, seen: Integers, columns: NDArray[Any]) -> bool:
        """Are the counters possible?"""
        rank, opened, filled, met, members, recent = arrays["sketch_counts"]
        items = arrays["items"]
        return bool(
            0 <= rank < max(self._m, 2)
            and 0 <= opened <= filled < self._m
            and met >= 0
            and 0 <= members <= len(arrays["group"])
            and 0 <= recent <= len(arrays["recent"]) == len(arrays["slots"])
            and 0 <= items[1] < FAN * FAN
            and 0 <= items[0] - items[1] * GROUP < GROUP
            and items[2] == items[1] // FAN
            and self._columns_fit(arrays, seen, columns)
        )

    def _columns_fit(self, arrays: Arrays, seen: Integers, columns: NDArray[Any]) -> bool:
        """Do the features wait for epochs, gradients and slots that there are?"""
        _, _, filled, _, members, recent = arrays["sketch_counts"]
        now, start = arrays["items"][0], arrays["items"][1] * GROUP
        epoch, kind, value = columns[:, EPOCH], columns[:, KIND], columns[:, VALUE]
        waiting = np.isin(seen, arrays["group"][:members])
        first = 1 + (self._m + 1) * (now - start)  # kind of this epoch's first gradient
        slotted = np.flatnonzero(kind == first + self._m)
        single = (kind != 0) & (kind < first) & ((kind - 1) % (self._m + 1) < self._m)
        current = (kind >= first) & (kind < first + filled)
        return bool(
            np.isin(epoch, np.arange(now + 1)).all()
            and (epoch[~waiting] % GROUP == 0).all()
            and (epoch[~waiting] <= start).all()
            and (epoch[waiting] >= start).all()
            and np.count_nonzero(waiting) == members == len(np.unique(arrays["group"][:members]))
            and (kind == kind.astype(np.int64)).all()
            and (kind[~waiting] == 0).all()
            and ((kind == 0) | single | current | (kind == first + self._m)).all()
            and len(slotted) == recent
            and np.array_equal(np.sort(value[slotted]), np.arange(recent))
            and np.array_equal(arrays["recent"][value[slotted].astype(np.int64)], seen[slotted])
        )

    def saved(self, arrays: Arrays) -> Arrays:
        """Only the maps and slots that are in use, and no spare room."""
        members, used = (int(count) for count in arrays["sketch_counts"][4:])
        lengths = {"archive": arrays["items"][2] * FAN, "recent": used, "slots": used, "group": members}
        return {name: array[: lengths[name]] if name in lengths else array for name, array in arrays.items()}

    def restored(self, arrays: Arrays) -> Arrays:
        """Room again for all maps."""
        kept, full = arrays["archive"], self.fresh()["archive"]
        if kept.dtype != full.dtype or kept.shape[1:] != full.shape[1:] or len(kept) > len(full):
            raise ValueError("array 'archive' has the wrong type or shape")
        full[: len(kept)] = kept
        return {**arrays, "archive": full}
