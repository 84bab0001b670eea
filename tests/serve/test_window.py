"""The last rows: figures are those of all of them together, however they came in."""

from __future__ import annotations

import random

import numpy as np
import pytest

from sketchnewton import Model
from sketchnewton.core.batch import Batch
from sketchnewton.serve.window import Window


def rows(count: int, start: int) -> tuple[Batch, np.ndarray]:
    """Labels that are their own numbers, and scores that are off by half of them."""
    labels = np.arange(start, start + count, dtype=np.float64)
    empty = np.zeros(0, np.int64)
    batch = Batch(np.zeros(count + 1, np.int64), empty, np.zeros(0), labels, 1.0 + labels % 3)
    return batch, 1.5 * labels


@pytest.mark.parametrize("seed", range(5))
def test_the_last_rows_whatever_the_steps(seed: int) -> None:
    draw = random.Random(seed)
    window, model, start = Window(), Model(), 0
    for _ in range(60):
        step = draw.choice([1, 1, 1, 2, 256, 1999, 2000, 2001, 5000])
        window.add(*rows(step, start))
        start += step
        batch, scores = rows(min(start, 2000), max(0, start - 2000))
        expected = model.new_score()
        expected.update(scores, batch.labels, batch.weights)
        found = window.figures(model)
        assert found["loss"] == expected.mean_loss


def test_nothing_yet() -> None:
    assert Window().figures(Model()) == {}
