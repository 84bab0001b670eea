"""River's bundled data sets: our defaults against River's own linear models, each row predicted, then learned.

    python benchmarks/river_datasets.py

All sets that come with River and need no download. River's models are those of its documentation: StandardScaler
before LogisticRegression, SoftmaxRegression or LinearRegression, their defaults untouched; ours are the defaults
in the same place, and without the scaler. Texts become indicators and dates numbers for all; of several outputs
the first is predicted. A line has the error rate of a classification or the root mean squared error of a
regression, and that of a constant: the most frequent class, or the mean, so far.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from river import datasets, linear_model, preprocessing

from sketchnewton.river import SketchedNewtonClassifier, SketchedNewtonRegressor

SETS = (
    datasets.AirlinePassengers,
    datasets.Bananas,
    datasets.ChickWeights,
    datasets.ImageSegments,
    datasets.Phishing,
    datasets.Shuttle,
    datasets.SolarFlare,
    datasets.SP500Stocks,
    datasets.TrumpApproval,
    datasets.WaterFlow,
    datasets.Yeast,
)
PEERS = {
    "Binary": linear_model.LogisticRegression,
    "Multi-class": linear_model.SoftmaxRegression,
    "Regression": linear_model.LinearRegression,
}


class Constant:
    """The most frequent class, or the mean, so far."""

    def __init__(self) -> None:
        self._counts: Counter[Any] = Counter()
        self._sum, self._rows = 0.0, 0

    def predict_one(self, _: object) -> Any:
        """What to say to any row."""
        if self._rows:
            return self._sum / self._rows
        return self._counts.most_common(1)[0][0] if self._counts else None

    def learn_one(self, _: object, y: Any) -> None:
        """Count the label."""
        if isinstance(y, float):
            self._sum, self._rows = self._sum + y, self._rows + 1
        else:
            self._counts[y] += 1


def main() -> None:
    """Run all sets, print a line for each and how many are won."""
    heads = "".join(f"{head:>10}" for head in ("constant", "River", "ours", "unscaled"))
    print(f"{'data':<20}{'rows':>8}  {'kind':<12}{heads}")
    won = {"with a scaler": 0, "without": 0}
    for data in (make() for make in SETS):
        kind = next(kind for kind in PEERS if task(data).startswith(kind))
        ours = SketchedNewtonRegressor if kind == "Regression" else SketchedNewtonClassifier
        scaled = [preprocessing.StandardScaler() | model() for model in (PEERS[kind], ours)]
        rows, errors = progressive(data, [Constant(), *scaled, ours()])
        for way, error in zip(won, errors[2:], strict=True):
            won[way] += error <= errors[1]
        shown = "".join(f"{error:>10.4g}" for error in errors)
        print(f"{type(data).__name__:<20}{rows:>8,}  {kind:<12}{shown}", flush=True)
    for way, count in won.items():
        print(f"{way}, at least as good as River's own on {count} of {len(SETS)}")


def task(data: Any) -> str:
    """What is to be predicted; of several outputs, the first."""
    return str(data.task).removeprefix("Multi-output ").capitalize().replace("Multi-Class", "Multi-class")


def progressive(data: Any, models: list[Any]) -> tuple[int, list[float]]:
    """Rows, and the error of each model: a rate, or the root of the mean of squares."""
    sums = [0.0] * len(models)
    rows = 0
    squares = False
    for x, y in examples(data):
        rows += 1
        squares = isinstance(y, float)
        for k, model in enumerate(models):
            guess = model.predict_one(x)
            sums[k] += ((guess or 0.0) - y) ** 2 if squares else guess != y
            model.learn_one(x, y)
    return rows, [math.sqrt(total / rows) if squares else total / rows for total in sums]


def examples(data: Any) -> Iterator[tuple[dict[str, float], Any]]:
    """Rows of numbers alone, and the label; numbers of a regression are float."""
    regression = task(data).startswith("Regression")
    for x, y in data:
        label = next(iter(y.values())) if isinstance(y, dict) else y
        yield dict(numbers(x)), float(label) if regression else label


def numbers(x: dict[Any, Any]) -> Iterator[tuple[str, float]]:
    """A text as an indicator, a date as years from 2000 and its month."""
    for name, value in x.items():
        if isinstance(value, str):
            yield f"{name}={value}", 1.0
        elif isinstance(value, datetime.date):
            yield name, (value.toordinal() - 730_120) / 365.25
            yield f"{name}.month={value.month}", 1.0
        else:
            yield str(name), float(value)


if __name__ == "__main__":
    main()
