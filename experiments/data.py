"""Data sets by the names that the papers use: where they are, how labels become ±1, in what order rows come.

A set is looked for in a folder (`--data DIR`, by default `../shared/data` if it is there). One that is missing can
be had from its official address; `fetch` downloads it when there is a network, and checks its sum.
"""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from sketchnewton.streams import read_svmlight

Floats = npt.NDArray[np.float64]
Rows = tuple[csr_array, Floats]

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
DEFAULT_FOLDER = Path("../shared/data")


@dataclass(frozen=True)
class DataSet:
    """One set of a paper."""

    files: tuple[str, ...]
    """Paths below the folder, in the order in which their rows come."""
    positive: tuple[float, ...] = (1.0,)
    """The labels that become +1; all others become −1."""
    shuffled: bool = False
    """The file is grouped by class, or the paper's numbers are those of shuffled rows."""
    address: str = ""
    """Where the file is to be had."""
    sha256: str = ""
    """Of the first file."""


DATA_SETS = {
    "20news": DataSet(("20news/20news_tfidf_train+test.xz",), tuple(range(1, 11)), shuffled=True),
    "a9a": DataSet(
        ("a9a/a9a.xz", "a9a/a9a.t.xz"),
        address=f"{_LIBSVM}/a9a",
        sha256="681a6e8501c90f46a11021b8786f64062768c5130764d1ffca386b9c4217735d",
    ),
    "acoustic": DataSet(("acoustic/combined_scale.xz",), address=f"{_LIBSVM}/../multiclass/vehicle"),
    "adult": DataSet(("adult/adult_onehot01.xz",)),
    "australian": DataSet(("australian/australian.xz",), address=f"{_LIBSVM}/australian"),
    "breast-cancer": DataSet(
        ("breast-cancer/breast-cancer_scale.xz",), (4.0,), address=f"{_LIBSVM}/breast-cancer"
    ),
    "census": DataSet(("census/census_onehot01.xz",)),
    "cod-rna": DataSet(("cod-rna/cod-rna.t.xz",), shuffled=True, address=f"{_LIBSVM}/cod-rna.t"),
    "covtype": DataSet(
        ("covtype/covtype.binary.scale01.xz",), (2.0,), address=f"{_LIBSVM}/covtype.libsvm.binary.scale.bz2"
    ),
    "diabetes": DataSet(("diabetes/diabetes_scale.xz",), address=f"{_LIBSVM}/diabetes"),
    "farm-ads": DataSet(
        ("farm-ads/farm-ads.xz",), address="https://archive.ics.uci.edu/dataset/218/farm+ads"
    ),
    "gisette": DataSet(("gisette/gisette_scale.t.xz",), address=f"{_LIBSVM}/gisette_scale.t.bz2"),
    "heart": DataSet(("heart/heart.xz",), address=f"{_LIBSVM}/heart"),
    "ijcnn1": DataSet(("ijcnn1/ijcnn1.xz",), address=f"{_LIBSVM}/ijcnn1.bz2"),
    "ionosphere": DataSet(("ionosphere/ionosphere_scale.xz",), address=f"{_LIBSVM}/ionosphere_scale"),
    "letter": DataSet(("letter/letter.xz",), address=f"{_LIBSVM}/../multiclass/letter.scale"),
    "magic04": DataSet(("magic04/magic04.xz",), shuffled=True),
    "mnist": DataSet(("mnist/mnist_4vs9_scale01.xz",)),
    "mushrooms": DataSet(("mushrooms/mushrooms.xz",), address=f"{_LIBSVM}/mushrooms"),
    "rcv1": DataSet(("rcv1/rcv1_test.binary.xz",), address=f"{_LIBSVM}/rcv1_test.binary.bz2"),
    "real-sim": DataSet(("real-sim/real-sim.xz",), address=f"{_LIBSVM}/real-sim.bz2"),
    "sido0": DataSet(("sido0/sido0.xz",), address="https://www.causality.inf.ethz.ch/data/SIDO.html"),
    "splice": DataSet(("splice/splice.xz",), address=f"{_LIBSVM}/splice"),
    "usps": DataSet(("usps/usps.xz",), (), address=f"{_LIBSVM}/../multiclass/usps.bz2"),
    "usps test": DataSet(("usps/usps.t.xz",), (), address=f"{_LIBSVM}/../multiclass/usps.t.bz2"),
    "w1a": DataSet(("w1a/w1a.xz",), shuffled=True, address=f"{_LIBSVM}/w1a"),
    "w8a": DataSet(("w8a/w8a.xz",), address=f"{_LIBSVM}/w8a"),
}


class MissingData(Exception):
    """A data set that is not there; the message says where to get it."""


def present(name: str, folder: Path) -> bool:
    """Are all files of the set there?"""
    return all((folder / file).is_file() for file in DATA_SETS[name].files)


def missing_line(name: str, folder: Path) -> str:
    """One line that says where a set is to be had."""
    data = DATA_SETS[name]
    source = f": get it from {data.address}" if data.address else ""
    return f"{name} is not in {folder}{source}, as svmlight text, xz-compressed, at {folder / data.files[0]}"


@lru_cache(maxsize=2)
def load(name: str, folder: Path, seed: int = 0, limit: int | None = None) -> Rows:
    """Rows and ±1 labels (as they are for sets of many classes), the first `limit` of them after any shuffle."""
    if not present(name, folder):
        raise MissingData(missing_line(name, folder))
    data = DATA_SETS[name]
    parts = [_read(folder / file) for file in data.files]
    width = max(X.shape[1] for X, _ in parts)
    for X, _ in parts:
        X.resize((X.shape[0], width))
    X, y = vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts])
    if data.positive:
        y = np.where(np.isin(y, data.positive), 1.0, -1.0)
    if data.shuffled:
        order = np.random.default_rng(seed).permutation(len(y))
        X, y = X[order], y[order]
    return csr_array(X[:limit]), y[:limit]


def _read(path: Path) -> Rows:
    indptr, indices, values, labels = [np.zeros(1, np.int64)], [], [], []
    for batch in read_svmlight(path):
        indptr.append(batch.indptr[1:] + indptr[-1][-1])
        indices.append(batch.indices)
        values.append(batch.data)
        labels.append(batch.labels)
    columns = np.concatenate(indices)
    shape = (sum(len(part) for part in labels), int(columns.max()) + 1)
    return csr_array((np.concatenate(values), columns, np.concatenate(indptr)), shape=shape), np.concatenate(
        labels
    )


def fetch(name: str, folder: Path, report: Callable[[str], None] = print) -> bool:
    """Download a set from its official address into the folder; False if that cannot be done."""
    data = DATA_SETS[name]
    if not data.address or len(data.files) > 1:
        return False
    target = folder / data.files[0]
    try:
        with urllib.request.urlopen(data.address, timeout=30) as answer:
            content = answer.read()
    except (urllib.error.URLError, OSError) as error:
        report(f"{name}: {data.address}: {error}")
        return False
    if data.sha256 and hashlib.sha256(content).hexdigest() != data.sha256:
        report(f"{name}: {data.address} is not the file that was expected")
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(".part")
    temporary.write_bytes(content)  # the reader knows compression by content, whatever the name says
    temporary.rename(target)
    return True
