"""Merging shards: four learners on a quarter of the rows each, merged in rounds, against one that saw all."""

import argparse
import copy

import numpy as np
from matplotlib.figure import Figure

from sketchnewton import NewtonBank

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rows", type=int, default=16_000)
parser.add_argument("--picture", default="shards.png")
args = parser.parse_args()

rng = np.random.default_rng(0)
truth = rng.standard_normal(40)
X = rng.standard_normal((args.rows + 4000, 40)) * np.geomspace(1, 30, 40)
y = np.where(X @ truth + 20 * rng.standard_normal(len(X)) > 0, 1.0, -1.0)
test_X, test_y, X, y = X[args.rows :], y[args.rows :], X[: args.rows], y[: args.rows]


def error(learner: NewtonBank) -> float:
    return float(np.mean(np.sign(learner.predict(test_X)) != test_y))


whole = NewtonBank()
whole.learn(X, y)
alone = NewtonBank()
alone.learn(X[: args.rows // 4], y[: args.rows // 4])
results = {"one shard alone": error(alone)}
for rounds in (1, 4, 16):
    base = NewtonBank()
    first = 500 if rounds >= 8 else 0  # many rounds: shards begin with what one learner has learned
    if first:
        base.learn(X[:first], y[:first])
    for rows in np.array_split(np.arange(first, args.rows), rounds):
        learners = []
        for shard in np.array_split(rows, 4):  # in practice on four machines
            learner = copy.deepcopy(base)
            learner.learn(X[shard], y[shard])
            learners.append(learner)
        first, *others = learners
        base = first.merge(*others, base=base)
    results[f"four shards, {rounds} round{'s' * (rounds > 1)}"] = error(base)
results["all rows, one learner"] = error(whole)

figure = Figure(figsize=(7, 2.6), layout="constrained")
axes = figure.subplots()
for name, share in results.items():
    print(f"{name}: {share:.2%} wrong on new rows")
axes.barh(list(results), list(results.values()))
axes.invert_yaxis()
axes.set(xlabel="wrong on new rows")
figure.savefig(args.picture, dpi=120)
