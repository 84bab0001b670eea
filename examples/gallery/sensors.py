"""Ill-conditioned sensors: twelve correlated readings in unlike units, and no scaler in front of the model."""

import argparse

import numpy as np
from matplotlib.figure import Figure
from sklearn.linear_model import SGDRegressor

from sketchnewton import SketchedNewtonRegressor

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rows", type=int, default=5_000)
parser.add_argument("--picture", default="sensors.png")
args = parser.parse_args()

rng = np.random.default_rng(0)
causes = rng.standard_normal((args.rows, 4))
readings = causes @ rng.standard_normal((4, 12)) + 0.1 * rng.standard_normal((args.rows, 12))
X = readings * 10.0 ** np.linspace(-3, 3, 12)  # millivolts beside pascals
y = causes @ [1.0, -2.0, 0.5, 1.0] + 0.1 * rng.standard_normal(args.rows)
print(f"condition number of the readings: {np.linalg.cond(X):.0e}")


def progressive(model, X: np.ndarray) -> np.ndarray:
    """Squared errors of predictions made before their rows were learned."""
    errors = []
    for start in range(0, args.rows, 50):
        rows = slice(start, start + 50)
        predicted = model.predict(X[rows]) if start else np.zeros(len(X[rows]))
        errors.extend((predicted - y[rows]) ** 2)
        model.partial_fit(X[rows], y[rows])
    return np.asarray(errors)


scaled = X / X[:200].std(axis=0)  # a scaler that looked at the first 200 rows
runs = {
    "SketchedNewtonRegressor, raw readings": progressive(SketchedNewtonRegressor(), X),
    "SGDRegressor, scaled readings": progressive(SGDRegressor(random_state=0), scaled),
}
figure = Figure(figsize=(7, 3.2), layout="constrained")
axes = figure.subplots()
for name, errors in runs.items():
    late = errors[len(errors) // 2 :].mean()
    print(f"{name}: mean squared error {errors.mean():.3f}, in the second half {late:.4f}")
    axes.semilogy(np.cumsum(errors) / np.arange(1, len(errors) + 1), label=name)
axes.set(xlabel="rows", ylabel="mean squared error so far")
axes.legend(frameon=False)
figure.savefig(args.picture, dpi=120)
