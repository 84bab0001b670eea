"""Regression with wild targets: one in fifty is a hundred times too large; the Huber loss shrugs."""

import argparse

import numpy as np
from matplotlib.figure import Figure

from sketchnewton import NewtonBank

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rows", type=int, default=8_000)
parser.add_argument("--picture", default="wild_targets.png")
args = parser.parse_args()

rng = np.random.default_rng(0)
X = rng.standard_normal((args.rows, 10))
clean = X @ rng.standard_normal(10)
y = clean + 0.1 * rng.standard_normal(args.rows)
wild = rng.random(args.rows) < 0.02
y[wild] *= 100

figure = Figure(figsize=(7, 3.2), layout="constrained")
axes = figure.subplots()
for loss in ("squared", "absolute", "huber:1"):
    predictions = NewtonBank(loss=loss).learn(X, y)
    errors = np.abs(predictions - clean)
    late = errors[args.rows // 2 :].mean()
    print(f"{loss}: mean distance from the truth {errors.mean():.3f}, in the second half {late:.3f}")
    width = max(args.rows // 80, 1)
    axes.semilogy(np.convolve(errors, np.ones(width) / width, "valid"), label=loss)
axes.set(xlabel="rows", ylabel="distance from the truth")
axes.legend(frameon=False, title="loss")
figure.savefig(args.picture, dpi=120)
