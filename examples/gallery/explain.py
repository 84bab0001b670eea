"""Explaining a model: which measurements speak for a benign biopsy, and which spoke in one case."""

import argparse

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer

from sketchnewton import SketchedNewtonClassifier

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rows", type=int, default=569)
parser.add_argument("--picture", default="explain.png")
args = parser.parse_args()

data = load_breast_cancer()
order = np.random.default_rng(0).permutation(len(data.target))[: args.rows]
X, y = data.data[order], data.target[order]
train = slice(0, 2 * args.rows // 3)
test = slice(2 * args.rows // 3, args.rows)

model = SketchedNewtonClassifier(max_iter=1, shuffle=False).fit(X[train], y[train])  # in random order already
print(f"accuracy on {len(y[test])} new biopsies after one pass: {model.score(X[test], y[test]):.1%}")

# coef_ is the linear part of the model. In units of a standard deviation, its weights can be compared.
spread = X[train].std(axis=0)
weight = model.coef_[0] * spread
case = X[test][0]
contribution = model.coef_[0] * (case - X[train].mean(axis=0))
top = np.argsort(-np.abs(weight))[:8]
for j in top:
    name = data.feature_names[j]
    print(f"{name:>24}: weight {weight[j]:+.3f} per standard deviation, {contribution[j]:+.3f} in this case")

figure = Figure(figsize=(7, 3.4), layout="constrained")
axes = figure.subplots()
places = np.arange(len(top))
axes.barh(places - 0.2, weight[top], 0.38, label="weight per standard deviation")
axes.barh(places + 0.2, contribution[top], 0.38, label="contribution in one case")
axes.set_yticks(places, data.feature_names[top])
axes.invert_yaxis()
axes.axvline(0, color="0.5", linewidth=0.8)
axes.legend(frameon=False)
axes.set(xlabel="towards malignant  <->  towards benign")
figure.savefig(args.picture, dpi=120)
