"""AdaGrad's Frequent Directions on rows that span no more than the sketch: rounding must not open directions."""

from __future__ import annotations

import numpy as np
import pytest

from sketchnewton import SketchedAdaGrad
from tests.contract.learners import Floats
from tests.oracles.test_adagrad_oracles import compare

D = 10


def rows(sort: str) -> tuple[Floats, Floats]:
    """200 rows ten times over, with targets that a part of the features explains."""
    random = np.random.default_rng(42)
    X = random.standard_normal((200, D))
    y = X[:, 0] + 0.5 * random.standard_normal(200)
    if sort == "duplicated features":
        X = np.hstack([X, X])
    elif sort == "low rank":
        X = X[:, :3] @ random.standard_normal((3, 30))
    elif sort == "scales":
        X *= np.logspace(-3, 3, D)
    return np.tile(X, (10, 1)), np.tile(y, 10)


@pytest.mark.parametrize("sort", ["full rank", "duplicated features", "low rank", "scales"])
@pytest.mark.parametrize("sketch", ["fd", "rfd"])
@pytest.mark.parametrize("of", ["gradients", "data"])
@pytest.mark.parametrize("size", [D, 2 * D])
@pytest.mark.parametrize("loss", ["quantile", "squared"])
def test_passes_over_few_directions_stay_finite(
    sort: str, sketch: str, of: str, size: int, loss: str
) -> None:
    """In both precisions, and float32 learns as well as float64 does."""
    X, y = rows(sort)
    late = slice(len(y) // 2, None)
    errors = []
    for dtype in ("float32", "float64"):
        learner = SketchedAdaGrad(sketch, size, of=of, loss=loss, clip=3.0, dtype=dtype)
        predictions = learner.learn(X, y)
        assert np.isfinite(predictions).all()
        assert np.isfinite(learner.weights).all()
        errors.append(np.abs(predictions - y)[late].mean())
    assert errors[0] == pytest.approx(errors[1], rel=0.1)


@pytest.mark.parametrize("sort", ["full rank", "duplicated features", "low rank"])
@pytest.mark.parametrize("sketch", ["fd", "rfd"])
@pytest.mark.parametrize("of", ["gradients", "data"])
def test_passes_over_few_directions_equal_the_oracle(sort: str, sketch: str, of: str) -> None:
    X, y = rows(sort)
    compare(sketch, D, X[:1000], y[:1000], of=of)


@pytest.mark.parametrize("sketch", ["fd", "rfd"])
def test_the_sketch_spans_no_more_than_the_rows(sketch: str) -> None:
    X, y = rows("low rank")
    for dtype in ("float32", "float64"):
        learner = SketchedAdaGrad(sketch, 8, loss="absolute", dtype=dtype)
        learner.learn(X, y)
        assert (learner.spectrum > 1e-6 * learner.spectrum.max()).sum() == 3
        assert learner.spectrum.sum() == pytest.approx(np.square(X).sum(), rel=1e-4)
