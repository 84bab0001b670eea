"""Does a sketch survive ten million rows? A drifting sparse stream, float32 tables.

    python benchmarks/long_stream.py [--rows 10000000] [--sketch fd] [--json]

Popular features, scales of features and the labelling rule wander as time goes on; two of the eight non-zeros of a
row are among six features that stay, with larger values, so that there is something to keep. At the end:

* no number is NaN or infinite, in predictions or in the state;
* the basis, computed from the float32 table itself, is orthonormal to 10⁻³;
* the shrink certificate of Frequent Directions is still valid: ‖Σĝĝᵀ − (SᵀS + ridge)‖₂ is at most `error_bound`,
  with Σĝĝᵀ summed up in float64 beside the learner. For the other sketches SSᵀ from the table is compared with the
  small matrices that the learner keeps, which must agree to 10⁻³.

The exit code is 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sketchnewton import SketchedNewton

FEATURES, NON_ZEROS, BATCH, SIZE, ALPHA = 2_000, 8, 50_000, 10, 50.0
SKETCHES = ("oja", "fd", "rfd", "pfd", "rp")
TOLERANCE = 1e-3

Floats = NDArray[np.float64]


def drifting_stream(rows: int, seed: int = 0) -> Iterator[tuple[csr_array, Floats]]:
    random = np.random.default_rng(seed)
    rule = random.standard_normal(FEATURES)
    for start in range(0, rows, BATCH):
        n = min(BATCH, rows - start)
        centre = 5 * start / rows * FEATURES  # five times around
        columns = (centre + random.standard_normal((n, NON_ZEROS)) * 150).astype(np.int64) % FEATURES
        scale = np.exp(2 * np.sin(columns / 100.0 + 20 * start / rows))
        columns[:, :2] = random.integers(0, 6, (n, 2))
        scale[:, :2] = 30.0
        values = random.standard_normal((n, NON_ZEROS)) * scale
        X = csr_array((values.ravel(), columns.ravel(), np.arange(n + 1) * NON_ZEROS), shape=(n, FEATURES))
        X.sum_duplicates()
        rule += 0.1 * random.standard_normal(FEATURES)
        yield X, np.where(X @ rule + random.standard_normal(n) > 0, 1.0, -1.0)


def survive(sketch: str, rows: int) -> dict[str, float | str | bool]:
    learner = SketchedNewton(sketch, SIZE, alpha=ALPHA)
    curvature = learner.loss.curvature(1.0)
    total, finite, mistakes, seconds = np.zeros((FEATURES, FEATURES)), True, 0, 0.0
    for X, y in drifting_stream(rows):
        start = time.thread_time()
        predictions = learner.learn(X, y)
        seconds += time.thread_time() - start
        finite &= bool(np.isfinite(predictions).all())
        mistakes += int(np.count_nonzero(predictions * y < 0))
        G = X.multiply((np.sqrt(curvature) * learner.loss.derivative(predictions, y))[:, None]).tocsr()
        total += (G.T @ G).toarray()
    finite &= all(np.isfinite(array).all() for array in learner._all_arrays().values())
    V, S = learner.basis, learner.matrix
    crooked = float(np.abs(V @ V.T - np.eye(len(V))).max())
    size = float(np.linalg.norm(total, 2))
    report: dict[str, float | str | bool] = {
        "sketch": sketch,
        "rows": learner.rows_seen,
        "microseconds_per_row": seconds / rows * 1e6,
        "error_rate": mistakes / rows,
        "directions": len(V),
        "finite": finite,
        "orthonormal_to": crooked,
        "curvature": size,
    }
    if learner.error_bound is not None:
        error = float(np.linalg.norm(total - S.T @ S - (learner.alpha_ - ALPHA) * np.eye(FEATURES), 2))
        report |= {"error": error, "error_bound": learner.error_bound}
        valid = error <= learner.error_bound * (1 + TOLERANCE)
    else:
        squares = np.sort(np.linalg.eigvalsh(S @ S.T))[::-1]
        drift = float(np.abs(squares - learner.spectrum).max() / squares.max())
        report["drift"] = drift
        valid = drift <= TOLERANCE
    return report | {"valid": valid, "kept": finite and valid and crooked <= TOLERANCE}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--sketch", choices=SKETCHES, help="one of them only")
    parser.add_argument("--json", action="store_true", help="print one JSON object per sketch")
    args = parser.parse_args()
    kept = True
    for sketch in [args.sketch] if args.sketch else SKETCHES:
        report = survive(sketch, args.rows)
        kept &= bool(report["kept"])
        if args.json:
            print(json.dumps(report), flush=True)
            continue
        certificate = (
            f"error {report['error']:.4g} ≤ {report['error_bound']:.4g}"
            if "error" in report
            else f"drift {report['drift']:.1e}"
        )
        print(
            f"{'kept' if report['kept'] else 'BROKEN':<8}{sketch:<5}{report['rows']:,} rows, "
            f"{report['microseconds_per_row']:.2f} µs each, finite: {report['finite']}, "
            f"orthonormal to {report['orthonormal_to']:.1e}, {certificate} (curvature {report['curvature']:.4g})",
            flush=True,
        )
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
