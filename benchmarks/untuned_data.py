"""The data sets of `untuned.py`: labels −1 and +1, at most 20,000 rows, in the order that a learner meets them.

Sets are in two halves. Everything about the learner that could be chosen was chosen on the first, `choosing`;
the second, `confirming`, was looked at afterwards. Forms of one set (raw, scaled, shuffled) are in one half.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from sketchnewton.streams import read_svmlight

LARGEST = 20_000
DATA = Path(os.environ.get("SKETCHNEWTON_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
NEWSGROUPS = {"choosing": (1, 5, 9, 13, 17), "confirming": (3, 7, 11, 15, 19)}


@dataclass(frozen=True)
class DataSet:
    """One row of the benchmark."""

    name: str
    files: tuple[str, ...]
    half: str
    positive: tuple[int, ...] = (1,)
    shuffled: bool = False
    grouped: bool = False  # by class, as no stream comes: only text sets are run like that
    scaled: bool = False  # each feature divided by its largest size, as a user without hindsight could not
    text: bool = False

    def load(self, data: Path = DATA) -> tuple[csr_array, NDArray[np.float64]]:
        """Rows and labels."""
        batches = [batch for file in self.files for batch in read_svmlight(data / file)]
        width = max(1 + int(batch.indices.max(initial=0)) for batch in batches)
        parts = [csr_array((b.data, b.indices, b.indptr), shape=(len(b.labels), width)) for b in batches]
        X, y = csr_array(vstack(parts)), np.concatenate([b.labels for b in batches])
        y = np.where(np.isin(y, self.positive), 1.0, -1.0)
        order = np.random.default_rng(0).permutation(len(y)) if self.shuffled else np.arange(len(y))
        X, y = X[order[:LARGEST]], y[order[:LARGEST]]
        if self.scaled:
            largest = abs(X).max(axis=0).toarray().ravel()
            X = csr_array(X.multiply(1 / np.where(largest > 0, largest, 1.0)))
        X.sort_indices()
        return X, y


def _sets() -> Iterator[DataSet]:
    yield DataSet("a9a", ("a9a/a9a.xz",), "choosing")
    splice = DataSet("splice", ("splice/splice.xz", "splice/splice.t.xz"), "choosing")
    yield splice
    yield replace(splice, name="splice, scaled", scaled=True)
    yield DataSet("ionosphere", ("ionosphere/ionosphere_scale.xz",), "choosing")
    yield DataSet("breast-cancer", ("breast-cancer/breast-cancer_scale.xz",), "choosing", (4,))
    yield DataSet("w1a", ("w1a/w1a.xz",), "choosing", shuffled=True)
    rna = DataSet("cod-rna", ("cod-rna/cod-rna.xz",), "choosing", shuffled=True)
    yield rna
    yield replace(rna, name="cod-rna, scaled", scaled=True)
    yield DataSet("mnist 4/9", ("mnist/mnist_4vs9_scale01.xz",), "choosing")
    yield DataSet("census", ("census/census_onehot01.xz",), "choosing")
    reuters = ("rcv1_vw_small/rcv1_small_train.xz", "rcv1_vw_small/rcv1_small_test.xz")
    yield from _both(DataSet("rcv1", reuters, "choosing", text=True))
    basehock = ("extra_text_skfeature/BASEHOCK.xz",)
    yield from _both(DataSet("basehock", basehock, "choosing", grouped=True, text=True))

    for name, folder in (("heart", "heart/heart"), ("australian", "australian/australian")):
        yield DataSet(name, (f"{folder}.xz",), "confirming")
        yield DataSet(f"{name}, scaled", (f"{folder}_scale.xz",), "confirming")
    yield DataSet("diabetes", ("diabetes/diabetes_scale.xz",), "confirming")
    yield DataSet("mushrooms", ("mushrooms/mushrooms.xz",), "confirming", (2,))
    covtype = DataSet("covtype", ("covtype/covtype.binary.scale01.xz",), "confirming")
    yield covtype
    yield replace(covtype, name="covtype, shuffled", shuffled=True)
    yield DataSet("magic04", ("magic04/magic04.xz",), "confirming", shuffled=True)
    yield DataSet("magic04, scaled", ("magic04/magic04_scale.xz",), "confirming", shuffled=True)
    yield DataSet("adult", ("adult/adult_onehot01.xz",), "confirming")
    yield DataSet("usps, even digits", ("usps/usps.xz", "usps/usps.t.xz"), "confirming", (1, 3, 5, 7, 9))
    yield from _both(DataSet("farm-ads", ("farm-ads/farm-ads.xz",), "confirming", text=True))
    for name in ("relathe", "pcmac"):
        file = f"extra_text_skfeature/{name.upper()}.xz"
        yield from _both(DataSet(name, (file,), "confirming", grouped=True, text=True))
    for half, classes in NEWSGROUPS.items():
        for number in classes:
            file = "20news/20news_tfidf_train+test.xz"
            name = f"20news/{number}"
            yield from _both(DataSet(name, (file,), half, (number,), grouped=True, text=True))
    for name, half, classes in (
        ("20news, 1 to 10", "choosing", tuple(range(1, 11))),
        ("20news, odd", "confirming", tuple(range(1, 21, 2))),
    ):
        yield DataSet(name, ("20news/20news_tfidf_train+test.xz",), half, classes, shuffled=True, text=True)


def _both(data: DataSet) -> Iterator[DataSet]:
    """In the order of the file, and shuffled."""
    yield data
    yield replace(data, name=f"{data.name}, shuffled", shuffled=True, grouped=False)


SETS = {data.name: data for data in _sets()}
