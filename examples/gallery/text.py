"""Text in one pass: word counts of a stream of messages, a model of 50,000 weights, no vocabulary kept."""

import argparse

import numpy as np
from matplotlib.figure import Figure

from sketchnewton import Model, NewtonBank
from sketchnewton.model import Signs

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rows", type=int, default=6_000)
parser.add_argument("--picture", default="text.png")
args = parser.parse_args()

# Messages of two authors: the same 2,000 common words, and each author's own way with fifty of them.
rng = np.random.default_rng(0)
frequency = 1.0 / np.arange(1, 2001)
styles = [frequency.copy(), frequency.copy()]
favourites = rng.permutation(np.arange(20, 400))[:100]
styles[0][favourites[:50]] *= 4
styles[1][favourites[50:]] *= 4
records, authors = [], []
for _ in range(args.rows):
    author = int(rng.integers(2))
    words = rng.choice(2000, size=40, p=styles[author] / styles[author].sum())
    records.append({f"w{word}": 1.0 for word in words})
    authors.append("anna" if author else "boris")

model = Model(learner=NewtonBank(loss="logistic"), target=Signs(names=["boris", "anna"]))
half = args.rows // 2
model.learn(records[:half], authors[:half])
result = model.test(records[half:], authors[half:])
print(f"learned {half:,} messages in one pass")
print(
    f"{result['error']:.1%} of {args.rows - half:,} new messages have the wrong author, AUC {result['auc']:.3f}"
)

probabilities = model.predict_proba(records[half:])[:, 1]
is_anna = np.array([author == "anna" for author in authors[half:]])
figure = Figure(figsize=(7, 3), layout="constrained")
axes = figure.subplots()
axes.hist([probabilities[is_anna], probabilities[~is_anna]], bins=25, label=["by Anna", "by Boris"])
axes.set(xlabel="predicted probability that Anna wrote it", ylabel="messages")
axes.legend(frameon=False)
figure.savefig(args.picture, dpi=120)
