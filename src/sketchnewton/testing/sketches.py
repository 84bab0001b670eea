"""What every sketch promises, and a check for sketches that are written elsewhere."""

from __future__ import annotations

import copy
import math
import os
import pickle
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sketchnewton.core.persistence import HOMES
from sketchnewton.core.types import DTypeLike, Floats, Header
from sketchnewton.sketches import Sketch
from sketchnewton.testing.matrices import hard_matrices, rounding, unit
from sketchnewton.testing.promises import (
    by_title,
    check,
    require,
    require_close,
    require_finite,
    require_refused,
    require_same,
)

__all__ = ["ROW_PROMISES", "SKETCH_PROMISES", "Theory", "Trial", "assert_certified", "check_sketch"]


@dataclass(frozen=True)
class Theory:
    """What theory guarantees for a sketch, beyond what every sketch promises; by default nothing."""

    guarantee: Callable[[Floats, int], float] | None = None
    """How large `error_bound` may be for these rows and this size; such a sketch has a certificate."""
    below: bool = False
    """Is BᵀB never more than AᵀA, in any direction?"""
    within_norm: bool = False
    """Are the eigenvalues of BᵀB never more than ‖A‖²_F in sum?"""
    tolerance: float = 0.0
    """How much of ‖A‖²_F the way in which rows arrive may change, beyond rounding."""


@dataclass(frozen=True)
class Trial:
    """How to make the sketch, rows to try it on, its size, and where other choices come from."""

    make: Callable[..., Sketch]
    theory: Theory
    rows: Floats
    size: int
    random: np.random.Generator

    def takes(self, name: str) -> bool:
        """Has the sketch a parameter of that name?"""
        return name in type(self.make(self.size)).defaults()

    def choice(self, *values: object) -> Any:
        """One of these."""
        return values[int(self.random.integers(len(values)))]

    @property
    def certified(self) -> bool:
        """Has the sketch an error bound?"""
        return self.theory.guarantee is not None or math.isfinite(
            self.make(self.size).update(self.rows).error_bound
        )


def assert_certified(
    trial: Trial, sketch: Sketch, A: Floats, *, size: int | None = None, dtype: str = "float64"
) -> None:
    """AssertionError unless the sketch's error for the rows A is within its bound, and that within theory's.

    Rounding is that of all the rows which the sketch has seen, of which A may be a part, or weighted.
    """
    whole, scale = unit(trial.rows)
    slack, A = rounding(whole, dtype), A / scale
    B = np.asarray(sketch.matrix, np.float64) / scale
    E = np.linalg.eigvalsh(A.T @ A - B.T @ B - np.eye(A.shape[1]) * (sketch.ridge / scale / scale))
    bound = sketch.error_bound / scale / scale
    require(np.abs(E).max() <= bound + slack, f"error {np.abs(E).max():g} beyond error_bound {bound:g}")
    if trial.theory.below:
        require(E.min() >= -slack, f"BᵀB exceeds AᵀA by {-E.min():g}")
    if trial.theory.guarantee is not None:
        allowed = trial.theory.guarantee(A, trial.size if size is None else size)
        require(bound <= allowed + slack, f"error_bound {bound:g} beyond theory's {allowed:g}")


# -- on rows of any sort


def the_certificate_holds_at_any_time(trial: Trial) -> None:
    """Whatever the buffer, and however the rows are cut; a sketch of m rows has no more."""
    more = {"buffer_size": trial.choice(None, 1, 2, 7, 40)} if trial.takes("buffer_size") else {}
    sketch = trial.make(trial.size, **more)
    stop = int(trial.random.integers(0, len(trial.rows) + 1))
    for part in (trial.rows[:stop], trial.rows[stop:]):
        if len(part):
            sketch.update(part)
    if trial.certified:
        assert_certified(trial, sketch, trial.rows)
    if trial.takes("sketch_size"):
        require(
            len(sketch.matrix) <= max(trial.size, 1), f"{len(sketch.matrix)} rows in a sketch of {trial.size}"
        )


def the_certificate_holds_in_float32(trial: Trial) -> None:
    """To the rounding of float32."""
    if not (trial.takes("dtype") and trial.certified):
        return
    rows = unit(trial.rows)[0] * 1e-15
    sketch = trial.make(trial.size, dtype="float32").update(rows.astype(np.float32))
    require(sketch.matrix.dtype == np.float32, f"the matrix is of {sketch.matrix.dtype}")
    small = Trial(trial.make, trial.theory, rows, trial.size, trial.random)
    assert_certified(small, sketch, rows, dtype="float32")


def nothing_is_ever_nan(trial: Trial) -> None:
    """Nor infinite; directions are orthonormal, the longest first."""
    dtype = trial.choice("float64", "float32") if trial.takes("dtype") else "float64"
    A = unit(trial.rows)[0] * 1e30 if dtype == "float32" else trial.rows
    sketch = trial.make(trial.size, **({"dtype": dtype} if trial.takes("dtype") else {})).update(A)
    for name, value in {
        "matrix": sketch.matrix,
        "components_": sketch.components_,
        "singular_values_": sketch.singular_values_,
        "explained_variance_ratio_": sketch.explained_variance_ratio_,
        "covariance()": sketch.covariance(),
        "solve()": sketch.solve(A[-1], alpha=1.0),
        "transform()": sketch.transform(unit(A)[0]),
        "ridge and squared_norm": np.array([sketch.ridge, sketch.squared_norm]),
    }.items():
        require_finite(value, name)
    require(not np.isnan(sketch.error_bound), "error_bound is NaN")
    V = sketch.components_.astype(np.float64)
    atol = 1e-5 if dtype == "float32" else 1e-9
    require_close(V @ V.T, np.eye(len(V)), "components_ are not orthonormal", atol=atol)
    require((np.diff(sketch.singular_values_) <= 0).all(), "singular_values_ are not the largest first")
    if trial.theory.within_norm:
        total = sketch.explained_variance_ratio_.sum()
        require(total <= 1.001, f"the directions explain {total:g} of the variance")


def a_sketch_larger_than_the_rank_is_exact(trial: Trial) -> None:
    """If it has a certificate: nothing is lost, and `error_bound` says so."""
    if not trial.certified:
        return
    size = trial.rows.shape[1] + int(trial.random.integers(1, 4))
    sketch = trial.make(size).update(trial.rows)
    A, scale = unit(trial.rows)
    B = sketch.matrix / scale
    require_close(B.T @ B, A.T @ A, f"BᵀB of a sketch of {size} rows", atol=rounding(A), rtol=1e-7)
    bound = sketch.error_bound / scale / scale
    require(bound <= rounding(A), f"error_bound is {bound:g}")


class _Table:
    """The one thing that sketches need of a data frame: that NumPy can read it."""

    def __init__(self, array: Floats) -> None:
        self.array = array

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        return self.array.astype(dtype or float)


def how_rows_arrive_does_not_matter(trial: Trial) -> None:
    """At once, one by one, in blocks of any form, from an iterator."""
    from scipy.sparse import coo_array, csr_array, csr_matrix

    A = trial.rows
    forms: list[Callable[[Floats], object]] = [
        *(np.array, csr_array, csr_matrix, coo_array, _Table, np.asfortranarray, list)
    ]
    form = trial.choice(*forms)
    whole, single, parts = trial.make(trial.size).update(A), trial.make(trial.size), trial.make(trial.size)
    for row in A:
        single.update(row)
    cuts = trial.random.integers(0, len(A) + 1, int(trial.random.integers(0, 6)))
    for part in np.split(A, np.sort(cuts)):
        if len(part):
            parts.update(form(part))
    iterated = trial.make(trial.size).update(iter([csr_array(A[:7]), *A[7:]]))
    unit_rows, scale = unit(A)
    slack = rounding(unit_rows) + trial.theory.tolerance * float((unit_rows**2).sum())
    for how, sketch in {
        "one by one": single,
        f"in blocks ({getattr(form, '__name__', form)})": parts,
        "from an iterator": iterated,
    }.items():
        _require_alike(sketch, whole, scale, slack, f"rows {how}")


def _require_alike(one: Sketch, other: Sketch, scale: float, slack: float, what: str) -> None:
    require(one.rows_seen == other.rows_seen, f"{what}: {one.rows_seen} rows seen, not {other.rows_seen}")
    a, b = one.matrix / scale, other.matrix / scale
    require_close(a.T @ a, b.T @ b, f"{what}: BᵀB", atol=slack, rtol=1e-7)
    numbers = ["ridge", "squared_norm", *(["error_bound"] if math.isfinite(one.error_bound) else [])]
    for name in numbers:
        mine, theirs = (getattr(sketch, name) / scale / scale for sketch in (one, other))
        require_close(mine, theirs, f"{what}: {name}", atol=slack)


def merging_in_any_tree_keeps_the_bound(trial: Trial) -> None:
    """Shards merged in any order stand for all their rows, within the bound that one sketch would have."""
    size = max(trial.size, 2)
    pieces = [part for part in np.array_split(trial.rows, int(trial.random.integers(1, 7))) if len(part)]
    seeds = trial.takes("random_state")
    sketches = [
        trial.make(size, **({"random_state": at} if seeds else {})).update(part)
        for at, part in enumerate(pieces)
    ]
    while len(sketches) > 1:
        other = sketches.pop(int(trial.random.integers(len(sketches))))
        content = _content(other)
        sketches[int(trial.random.integers(len(sketches)))].merge(other)
        require(_content(other) == content, "merging changed the sketch that was merged in")
    (sketch,) = sketches
    seen = (sketch.rows_seen, getattr(sketch, "rows_covered", sketch.rows_seen))
    require(seen == (len(trial.rows),) * 2, f"{seen[0]} rows seen and {seen[1]} covered of {len(trial.rows)}")
    if trial.certified:
        assert_certified(trial, sketch, trial.rows, size=size)
    A, scale = unit(trial.rows)
    norm = sketch.squared_norm / scale / scale
    require_close(norm, (A**2).sum(), "squared_norm of the merged sketch", atol=rounding(A))


def decay_weighs_rows_by_their_age(trial: Trial) -> None:
    """With `decay=g` a row counts gᵗ, t rows later."""
    if not trial.takes("decay"):
        return
    decay = trial.choice(0.99, 0.7, 0.1)
    sketch = trial.make(trial.size, decay=decay)
    for part in np.array_split(trial.rows, 3):
        if len(part):
            sketch.update(part)
    weights = decay ** (np.arange(len(trial.rows))[::-1, None] / 2)
    assert_certified(trial, sketch, trial.rows * weights)
    A, scale = unit(trial.rows)
    norm, expected = sketch.squared_norm / scale / scale, float(((A * weights) ** 2).sum())
    require_close(norm, expected, "squared_norm of weighted rows", atol=rounding(A))


def a_window_covers_the_last_rows(trial: Trial) -> None:
    """With `window=W`, from W rows to an eighth more."""
    if not trial.takes("window"):
        return
    window, step = int(trial.random.integers(1, 71)), int(trial.random.integers(1, 61))
    sketch, n = trial.make(trial.size, window=window), len(trial.rows)
    for at in range(0, n, step):
        sketch.update(trial.rows[at : at + step])
    covered: int = sketch.rows_covered  # type: ignore[attr-defined]
    require(
        min(n, window) <= covered <= min(n, window + -(-window // 8) - 1),
        f"{covered} of {n} rows covered by a window of {window}",
    )
    assert_certified(trial, sketch, trial.rows[n - covered :])


def a_target_is_reached_after_every_row(trial: Trial) -> None:
    """With `target_error=e` the error is at most e·‖A‖²_F at any time."""
    if not trial.takes("target_error"):
        return
    target = trial.choice(0.5, 0.1, 0.01, 1e-4)
    sketch = trial.make(None, target_error=target)
    for at, row in enumerate(trial.rows):
        sketch.update(row)
        allowed = target * sketch.squared_norm * (1 + 1e-9)
        require(sketch.error_bound <= allowed, f"error_bound {sketch.error_bound:g} after {at + 1} rows")
    A, scale = unit(trial.rows)
    B = sketch.matrix / scale
    error = np.linalg.norm(A.T @ A - B.T @ B - np.eye(A.shape[1]) * (sketch.ridge / scale / scale), 2)
    require(error <= target * (A**2).sum() + rounding(A), f"the error is {error:g}")


# -- on rows of their own


def reading_changes_nothing(trial: Trial) -> None:
    """What is read can be written into, and is not the state."""
    A = np.random.default_rng(0).standard_normal((100, 7))
    read, unread = trial.make(3), trial.make(3)
    for part in np.split(A, 10):
        read.update(part)
        unread.update(part)
        _ = read.matrix, read.error_bound, read.covariance(), read.squared_norm, read.solve(A[0], 1.0)
        read.matrix[:] = 7
        read.components_[:] = 7
    require_same(read.matrix, unread.matrix, "the matrix of a sketch that was read")
    require(_content(read) == _content(unread), "the state of a sketch that was read differs")


def copies_are_independent(trial: Trial) -> None:
    """What a copy learns does not change the original."""
    A = np.random.default_rng(0).standard_normal((100, 7))
    sketch, whole = trial.make(3).update(A[:50]), trial.make(3).update(A)
    before = _content(sketch)
    for twin in (copy.copy(sketch), copy.deepcopy(sketch), pickle.loads(pickle.dumps(sketch))):
        require(_content(twin) == before, "a copy differs")
        twin.update(A[50:])
        require(_content(sketch) == before, "what a copy learned changed the original")
        require_close(twin.covariance(), whole.covariance(), "the covariance of a copy", atol=1e-9, rtol=1e-7)


def saving_loading_and_continuing_equals_never_stopping(trial: Trial) -> None:
    """From a file as from bytes, bit for bit, also before the first row."""
    A = np.random.default_rng(0).standard_normal((100, 7))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sketch.skn")
        for stop in (0, 1, 50):
            sketch = trial.make(3)
            if stop:
                sketch.update(A[:stop])
            sketch.save(path)
            kind = type(sketch)
            loaded = (Sketch if kind.__name__ in HOMES else kind).load(path)
            sketch.update(A[stop:])
            for how, back in {"a file": loaded, "bytes": kind.from_bytes(_read(path))}.items():
                require(type(back) is kind, f"{how} gives a {type(back).__name__}")
                back.update(A[stop:])
                require(_content(back) == _content(sketch), f"after {stop} rows and {how}, the state differs")


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _content(sketch: Sketch) -> tuple[Header, dict[str, tuple[str, bytes]]]:
    """All that a file would hold."""
    header, buffers = sketch.to_archive()
    arrays = {name: np.asarray(array) for name, array in buffers.items()}
    return header, {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()}


def new_columns_are_zero(trial: Trial) -> None:
    """`widen` makes room for features that no row had so far."""
    A = np.random.default_rng(0).standard_normal((60, 5))
    wide = np.hstack([A, np.zeros((60, 2))])
    sketch = trial.make(4).update(A)
    sketch.widen(7)
    expected = trial.make(4).update(wide).covariance()
    covariance = sketch.covariance()[:5, :5]
    require_close(covariance, expected[:5, :5], "the covariance of the old columns", atol=1e-9, rtol=1e-7)
    require(not sketch.matrix[:, 5:].any(), "a new column is not zero")
    sketch.update(wide)
    require_refused(lambda: sketch.widen(6), "the sketch has 7", "fewer columns")
    error = np.linalg.norm(2 * wide.T @ wide - sketch.covariance(), 2)
    require(error <= sketch.error_bound + 1e-9, f"error {error:g} beyond error_bound {sketch.error_bound:g}")


def solve_inverts_the_covariance(trial: Trial) -> None:
    """For vectors and for the columns of a matrix; without a ridge it is the pseudo-inverse."""
    random = np.random.default_rng(0)
    A, v = random.standard_normal((40, 12)), random.standard_normal((12, 3))
    sketch = trial.make(5).update(A)
    for alpha in (0.0, 1e-8, 1.0):
        C = sketch.covariance() + alpha * np.eye(12)
        singular = sketch.ridge + alpha == 0
        expected = np.linalg.pinv(C, rcond=1e-13) @ v if singular else np.linalg.solve(C, v)
        solved, atol = sketch.solve(v, alpha), 1e-6 * float(np.abs(expected).max())
        require_close(solved, expected, f"solve with alpha={alpha:g}", atol=atol, rtol=1e-6)
        one = sketch.solve(v[:, 0], alpha)
        require_close(one, solved[:, 0], "solve for one vector", atol=0, rtol=1e-7)


def transform_gives_coordinates_along_the_components(trial: Trial) -> None:
    """Of dense and of sparse rows; `inverse_transform` goes back."""
    from scipy.sparse import csr_array

    A = np.random.default_rng(0).standard_normal((40, 3)) @ np.random.default_rng(1).standard_normal((3, 9))
    sketch = trial.make(5).update(A)
    Z, V = sketch.transform(A), sketch.components_
    require_close(Z, A @ V.T, "transform", atol=1e-9, rtol=1e-7)
    require_close(Z, sketch.transform(csr_array(A)), "transform of sparse rows", atol=1e-9, rtol=1e-7)
    require_close(sketch.inverse_transform(Z), Z @ V, "inverse_transform", atol=1e-9, rtol=1e-7)
    wrong = np.ones((2, 30))
    require_refused(lambda: sketch.inverse_transform(wrong), "columns", "coordinates that are too many")


def bad_rows_change_nothing(trial: Trial) -> None:
    """They are refused with ValueError, and the sketch stays as it was; of an iterator, all items are undone."""
    from scipy.sparse import csr_array

    sketch = trial.make(3).update(np.random.default_rng(0).standard_normal((20, 4)))
    before = _content(sketch)
    bad: dict[str, object] = {
        "NaN": [[1.0, np.nan, 0.0, 0.0]],
        "infinity": [[1.0, np.inf, 0.0, 0.0]],
        "infinity in float32": np.array([[1.0, -np.inf, 0.0, 0.0]], np.float32),
        "infinity in sparse float32 rows": csr_array(np.array([[1.0, np.inf, 0.0, 0.0]], np.float32)),
        "another number of features": np.ones((2, 5)),
        "complex numbers": np.ones((2, 4)) * 1j,
        "text": [["a", "b", "c", "d"]],
        "an iterator that ends badly": iter([np.ones(4), np.full(4, np.nan)]),
    }
    for name, rows in bad.items():
        require_refused(partial(sketch.update, rows), ".", name)
        require(_content(sketch) == before, f"{name} changed the sketch")


ROW_PROMISES = by_title(
    the_certificate_holds_at_any_time,
    the_certificate_holds_in_float32,
    nothing_is_ever_nan,
    a_sketch_larger_than_the_rank_is_exact,
    how_rows_arrive_does_not_matter,
    merging_in_any_tree_keeps_the_bound,
    decay_weighs_rows_by_their_age,
    a_window_covers_the_last_rows,
    a_target_is_reached_after_every_row,
)
"""Promises about rows of any sort, which are tried on many."""

SKETCH_PROMISES = ROW_PROMISES | by_title(
    reading_changes_nothing,
    copies_are_independent,
    saving_loading_and_continuing_equals_never_stopping,
    new_columns_are_zero,
    solve_inverts_the_covariance,
    transform_gives_coordinates_along_the_components,
    bad_rows_change_nothing,
)
"""What every sketch promises, in words, and the check of each."""


def check_sketch(
    make: Callable[..., Sketch],
    *,
    theory: Theory | None = None,
    trials: int = 30,
    only: Iterable[str] | None = None,
) -> None:
    """Check that sketches which `make(sketch_size, **parameters)` returns keep what every sketch promises.

    `make` may be the class itself. Parameters that the class does not have, such as `decay` or `window`, are not
    asked for; a sketch whose `error_bound` is infinite promises no accuracy. `theory` says what else is known.
    Raises AssertionError that names the first promise that is broken. `trials` is on how many matrices; `only`
    names some of the `SKETCH_PROMISES`.

    >>> from sketchnewton import FrequentDirections
    >>> check_sketch(FrequentDirections, trials=5)
    >>> class Overconfident(FrequentDirections):
    ...     error_bound = 0.0
    >>> check_sketch(Overconfident, only=["the certificate holds at any time"])
    Traceback (most recent call last):
    ...
    AssertionError: broken promise: the certificate holds at any time: error ... beyond error_bound 0
    """
    wanted = list(SKETCH_PROMISES if only is None else only)
    known = Theory() if theory is None else theory
    for seed, rows in enumerate(hard_matrices(trials)):
        random = np.random.default_rng(seed)
        trial = Trial(make, known, rows, int(random.integers(1, 10)), random)
        check(SKETCH_PROMISES, trial, [title for title in wanted if seed == 0 or title in ROW_PROMISES])
