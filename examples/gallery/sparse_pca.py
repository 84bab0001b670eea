"""PCA of sparse data with a certificate: one pass, a small sketch, and a bound on its error that is true."""

import argparse

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse import csr_array

from sketchnewton import FrequentDirections

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rows", type=int, default=8_000)
parser.add_argument("--picture", default="sparse_pca.png")
args = parser.parse_args()

rng = np.random.default_rng(0)
topics = [rng.choice(500, size=25, replace=False) for _ in range(6)]
data, indices, ends = [], [], [0]
for _ in range(args.rows):
    topic = topics[rng.choice(6, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05])]
    columns = np.unique(np.concatenate([rng.choice(topic, 8), rng.integers(0, 500, 4)]))
    indices.extend(columns)
    data.extend(np.ones(len(columns)))
    ends.append(len(indices))
X = csr_array((data, indices, ends), shape=(args.rows, 500))

exact = np.linalg.eigvalsh((X.T @ X).toarray())[::-1]
sizes = [8, 12, 20, 32, 50]
bounds, errors = [], []
for size in sizes:
    sketch = FrequentDirections(size)
    for start in range(0, args.rows, 1000):  # rows come in batches
        sketch.update(X[start : start + 1000])
    difference = (X.T @ X).toarray() - sketch.matrix.T @ sketch.matrix
    errors.append(np.linalg.norm(difference, 2) / exact[0])
    bounds.append(sketch.error_bound / exact[0])
    print(
        f"{size:>3} directions: error {errors[-1]:.4f}, certified {bounds[-1]:.4f} of the largest eigenvalue"
    )

figure = Figure(figsize=(7, 3.2), layout="constrained")
axes = figure.subplots()
axes.plot(sizes, bounds, "o-", label="certified, without seeing the data again")
axes.plot(sizes, errors, "s-", label="true error")
axes.set(xlabel="directions kept", ylabel="error of the covariance", ylim=(0, None))
axes.legend(frameon=False)
figure.savefig(args.picture, dpi=120)
