"""Streaming clicks with drift: tastes change half way, and the learner follows without being told."""

import argparse

import numpy as np
from matplotlib.figure import Figure

from sketchnewton import AdaGrad, Model

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rows", type=int, default=20_000)
parser.add_argument("--picture", default="drift.png")
args = parser.parse_args()

rng = np.random.default_rng(0)
cities, topics = [f"city{i}" for i in range(8)], [f"topic{i}" for i in range(20)]
records, labels = [], []
for i in range(args.rows):
    city, topic, hour = rng.integers(8), rng.integers(20), rng.random()
    records.append({"city": cities[city], "topic": topics[topic], "hour": round(hour, 3)})
    liked = topic % 3 == (0 if i < args.rows / 2 else 1)  # what people click on changes half way
    labels.append(1.0 if 1.5 * liked - (city > 5) + hour + 0.5 * rng.standard_normal() > 0.8 else -1.0)

window = args.rows // 40


def errors(model: Model) -> np.ndarray:
    """The share of wrong predictions, each made before its record was learned, in windows."""
    wrong = np.sign(model.learn(records, labels)) != labels
    return wrong[: 40 * window].reshape(40, window).mean(axis=1)


figure = Figure(figsize=(7, 3.2), layout="constrained")
axes = figure.subplots()
for name, model in (
    ("the default, nothing tuned", Model()),
    ("AdaGrad", Model(learner=AdaGrad())),
):
    error = errors(model)
    print(f"{name}: {error[:20].mean():.1%} wrong before the change, {error[20:].mean():.1%} after")
    axes.plot(window * np.arange(1, 41), error, label=name)
axes.axvline(args.rows / 2, color="0.7", linestyle=":")
axes.set(xlabel="records", ylabel="wrong predictions", ylim=(0, None))
axes.legend(frameon=False)
figure.savefig(args.picture, dpi=120)
