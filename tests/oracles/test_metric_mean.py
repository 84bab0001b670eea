"""The mean of weights in several metrics, judged by many digits where the metrics differ much in size."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf

from sketchnewton.learners.metric_mean import metric_mean
from tests.oracles.exact.merging import combined_weights


@pytest.mark.parametrize("ridges", [(0.3, 2.0), (1e-6, 1e-6), (0.0, 0.0)])
@pytest.mark.parametrize("decades", [0, 3, 6, 9])
def test_metrics_of_different_sizes(decades: int, ridges: tuple[float, float]) -> None:
    """One side's curvature may count 1e18 times as much: its gradients were that small."""
    for seed in range(10):
        r = np.random.default_rng([seed, decades])
        S = [r.standard_normal((int(r.integers(1, 4)), 12)) for _ in range(2)]
        S[seed % 2] *= 10.0**decades
        weights = [r.standard_normal(12) for _ in range(2)]
        share = np.array([0.25, 0.75])
        with mp.workdps(60):
            rows = [[[mpf(v) for v in row] for row in side.tolist()] for side in S]
            vectors = [[mpf(v) for v in w.tolist()] for w in weights]
            expected = combined_weights(
                rows, vectors, [mpf(a) for a in ridges], [mpf(s) for s in share.tolist()]
            )
        found = metric_mean(weights, S, np.array(ridges), share)
        np.testing.assert_allclose(found, np.array(expected, float), rtol=0, atol=1e-6)
