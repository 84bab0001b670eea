"""Records for tests of models, and what the command prints of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sketchnewton.cli.main import main

Rows = list[dict[str, Any]]
CITIES = ["Rome", "Oslo", "São Paulo", "a b", "x|y"]


def table(rows: int, seed: int, classes: int | None = None) -> Rows:
    """Rows of a table with numbers, categories and a column in a namespace; some cells are missing."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(rows):
        price, city, age = round(float(rng.normal()), 3), CITIES[rng.integers(5)], float(rng.integers(1, 90))
        label = (price > 0) ^ (city == "Rome")
        made.append(
            {
                "label": float(rng.integers(1, classes + 1)) if classes else 1.0 if label else -1.0,
                "price": price,
                "city": city,
                "user|age": age if rng.random() < 0.8 else None,
            }
        )
    return made


def printed(tmp_path: Path, model: Path, data: Path, *options: str) -> list[str]:
    out = tmp_path / "predictions.txt"
    assert main(["predict", str(model), str(data), "--output", str(out), "--quiet", *options]) == 0
    return out.read_text().splitlines()


def lines_of(predictions: Any) -> list[str]:
    """Predictions as `skn predict` prints them."""
    rows = np.asarray(predictions).reshape(len(predictions), -1).tolist()
    return [" ".join(f"{value:.9g}" for value in row) for row in rows]
