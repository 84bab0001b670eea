"""Data sets by the names that the papers use: where they are, how labels become ±1, in what order rows come.

A set is looked for in a folder (`--data DIR`, by default `../shared/data` if it is there). A file that is missing
is downloaded from its official address if its checksum is known, so that nothing else is taken for it; otherwise a
line says where to get it.
"""

from __future__ import annotations

import bz2
import hashlib
import lzma
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack, vstack

from sketchnewton.streams import read_svmlight

Floats = npt.NDArray[np.float64]
Rows = tuple[csr_array, Floats]

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_UCI = "https://archive.ics.uci.edu"
DEFAULT_FOLDER = Path("../shared/data")


@dataclass(frozen=True)
class File:
    """One file of a set."""

    path: str
    """Below the data folder."""
    address: str = ""
    """The official place."""
    sha256: str = ""
    """Of the text, uncompressed."""


@dataclass(frozen=True)
class DataSet:
    """One set of a paper."""

    files: tuple[File, ...]
    """In the order in which their rows come."""
    positive: tuple[float, ...] = (1.0,)
    """The labels that become +1, all others −1; none: labels stay as they are."""
    scaling: str = "as published"
    """What was done to the features."""
    shuffled: bool = False
    """Rows come in an order drawn by the seed instead of the file's."""
    unit_rows: bool = False
    """Every row is divided by its length."""


def _one(path: str, address: str = "", sha256: str = "", **how: object) -> DataSet:
    return DataSet((File(path, address, sha256),), **how)  # type: ignore[arg-type]


_A9A = File(
    "a9a/a9a.xz",
    f"{_LIBSVM}/binary/a9a",
    "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
)
_COVTYPE = f"{_UCI}/dataset/31/covertype"
_MANY = ()  # labels are classes
_FIRST_TEN = tuple(range(1, 11))
DATA_SETS = {
    # Order and scaling are those under which the published numbers come out: tabular sets raw, the order of the
    # file except where rows are known to have been shuffled (cod-rna) or nothing is known (20news).
    "20news": _one("20news/20news_tfidf_train+test.xz", positive=_FIRST_TEN, scaling="tf-idf", shuffled=True),
    "a9a": DataSet((_A9A, File("a9a/a9a.t.xz", f"{_LIBSVM}/binary/a9a.t"))),
    "a9a train": DataSet((_A9A,)),
    "acoustic": _one("acoustic/acoustic_scale.xz", f"{_LIBSVM}/multiclass/vehicle/acoustic_scale.bz2"),
    "adult": _one("adult/adult_onehot01.xz", f"{_UCI}/dataset/2/adult", scaling="one-hot, numbers to [0, 1]"),
    "australian": _one("australian/australian.xz", f"{_LIBSVM}/binary/australian", scaling="raw"),
    "breast-cancer": _one(
        "breast-cancer/uci_breast-cancer-wisconsin.data.xz",
        f"{_UCI}/dataset/15/breast+cancer+wisconsin+original",
        positive=(4.0,),
        scaling="raw, sample number included",
    ),
    "census": _one("census/census_onehot01.xz", f"{_UCI}/dataset/117", scaling="one-hot, numbers to [0, 1]"),
    "cod-rna": _one("cod-rna/cod-rna.t.xz", f"{_LIBSVM}/binary/cod-rna.t", scaling="raw", shuffled=True),
    "covtype": _one(
        "covtype/covtype.binary.scale01.xz",
        f"{_LIBSVM}/binary/covtype.libsvm.binary.scale.bz2",
        scaling="[0, 1]",
    ),
    "covtype, raw": _one("covtype/covtype_7class_raw.csv.xz", _COVTYPE, positive=(2.0,), scaling="raw"),
    "covtype, raw, class 1": _one("covtype/covtype_7class_raw.csv.xz", _COVTYPE, scaling="raw"),
    "diabetes": _one(
        "diabetes/uci_pima-indians-diabetes.csv.xz",
        f"{_LIBSVM}/binary/diabetes",
        positive=(0.0,),
        scaling="raw",
    ),
    "farm-ads": _one("farm-ads/farm-ads.xz", f"{_UCI}/dataset/218/farm+ads"),
    "farm-ads, unit rows": _one("farm-ads/farm-ads.xz", f"{_UCI}/dataset/218/farm+ads", unit_rows=True),
    "gisette": _one("gisette/gisette_scale.t.xz", f"{_LIBSVM}/binary/gisette_scale.t.bz2"),
    "gisette train": _one("gisette/gisette_scale.xz", f"{_LIBSVM}/binary/gisette_scale.bz2"),
    "heart": _one("heart/heart.xz", f"{_LIBSVM}/binary/heart", scaling="raw"),
    "ijcnn1": _one("ijcnn1/ijcnn1.xz", f"{_LIBSVM}/binary/ijcnn1.bz2"),
    "ionosphere": _one("ionosphere/ionosphere_scale.xz", f"{_LIBSVM}/binary/ionosphere_scale"),
    "letter": _one("letter/letter.xz", f"{_LIBSVM}/multiclass/letter.scale"),
    "magic04": _one("magic04/magic04.xz", f"{_UCI}/dataset/159/magic+gamma+telescope", scaling="raw"),
    "mnist": _one("mnist/mnist_4vs9_scale01.xz", "4 against 9 of MNIST", scaling="pixels to [0, 1]"),
    "mushrooms": _one("mushrooms/mushrooms.xz", f"{_LIBSVM}/binary/mushrooms"),
    "rcv1": _one("rcv1/rcv1_test.binary.xz", f"{_LIBSVM}/binary/rcv1_test.binary.bz2"),
    "rcv1 train": _one("rcv1/rcv1_train.binary.xz", f"{_LIBSVM}/binary/rcv1_train.binary.bz2"),
    "real-sim": _one("real-sim/real-sim.xz", f"{_LIBSVM}/binary/real-sim.bz2"),
    "SensIT vehicle": _one(
        "sensit/combined_scale.xz",
        f"{_LIBSVM}/multiclass/vehicle/combined_scale.bz2",
        positive=_MANY,
    ),
    "SensIT vehicle test": _one(
        "sensit/combined_scale.t.xz",
        f"{_LIBSVM}/multiclass/vehicle/combined_scale.t.bz2",
        positive=_MANY,
    ),
    "sido0": _one("sido0/sido0.xz", "https://www.causality.inf.ethz.ch/data/SIDO.html"),
    "splice": _one("splice/splice.xz", f"{_LIBSVM}/binary/splice", scaling="raw"),
    "usps": _one("usps/usps.xz", f"{_LIBSVM}/multiclass/usps.bz2", positive=_MANY),
    "usps test": _one("usps/usps.t.xz", f"{_LIBSVM}/multiclass/usps.t.bz2", positive=_MANY),
    "w1a": _one("w1a/w1a.xz", f"{_LIBSVM}/binary/w1a"),
    "w8a": _one("w8a/w8a.xz", f"{_LIBSVM}/binary/w8a"),
}


class MissingData(Exception):
    """A data set that is not there; the message says where to get it."""


def present(name: str, folder: Path) -> bool:
    """Are all files of the set there? What can be fetched is."""
    files = DATA_SETS[name].files
    return all((folder / file.path).is_file() or fetch(file, folder) for file in files)


def missing_line(name: str, folder: Path) -> str:
    """One line that says where a set is to be had."""
    lacking = [file for file in DATA_SETS[name].files if not (folder / file.path).is_file()]
    source = f": {lacking[0].address}" if lacking[0].address else ""
    return f"{name} is not in {folder}{source}, as svmlight text, xz-compressed, at {lacking[0].path}"


def available(names: list[str], folder: Path) -> tuple[list[str], list[str]]:
    """The sets that are there, and a line for each of the others."""
    there = [name for name in names if present(name, folder)]
    return there, [missing_line(name, folder) for name in names if name not in there]


@lru_cache(maxsize=2)
def load(name: str, folder: Path, seed: int = 0, shuffled: bool | None = None) -> Rows:
    """Rows and labels of a set, in its declared order or, if told so, shuffled or not."""
    if not present(name, folder):
        raise MissingData(missing_line(name, folder))
    data = DATA_SETS[name]
    parts = [read(folder / file.path) for file in data.files]
    width = max(X.shape[1] for X, _ in parts)
    for X, _ in parts:
        X.resize((X.shape[0], width))
    X, y = csr_array(vstack([X for X, _ in parts], format="csr")), np.concatenate([y for _, y in parts])
    if data.positive:
        y = np.where(np.isin(y, data.positive), 1.0, -1.0)
    if data.unit_rows:
        lengths = np.sqrt(X.multiply(X).sum(axis=1))
        X = csr_array(X.multiply(1.0 / np.where(lengths == 0, 1.0, lengths)[:, None]).tocsr())
    if data.shuffled if shuffled is None else shuffled:
        order = np.random.default_rng(seed).permutation(len(y))
        X, y = X[order], y[order]
    return X, y


def dimensions(folder: str, data: str) -> dict[str, float]:
    """Rows, features (the largest index, as LIBSVM counts), non-zeros per row and classes of a set."""
    X, y = load(data, Path(folder))
    unused = 0 if (X.indices == 0).any() else 1  # where the first index is 1
    return {
        "rows": len(y),
        "features": X.shape[1] - unused,
        "nonzeros": X.nnz / len(y),
        "classes": len(np.unique(y)),
    }


def with_constant(X: csr_array) -> csr_array:
    """A feature that is always 1 after the others, as Vowpal Wabbit adds."""
    return csr_array(hstack([X, np.ones((X.shape[0], 1))]).tocsr())


def read(path: Path) -> Rows:
    """Rows and labels of a file as they stand there."""
    if ".csv" in path.name or ".data" in path.name:
        return _read_csv(path)
    indptr, indices, values, labels = [np.zeros(1, np.int64)], [], [], []
    for batch in read_svmlight(path):
        indptr.append(batch.indptr[1:] + indptr[-1][-1])
        indices.append(batch.indices)
        values.append(batch.data)
        labels.append(batch.labels)
    y, columns = np.concatenate(labels), np.concatenate(indices)
    shape = (len(y), int(columns.max()) + 1)
    return csr_array((np.concatenate(values), columns, np.concatenate(indptr)), shape=shape), y


def _read_csv(path: Path) -> Rows:
    """Numbers, the label last; rows with an unknown value are left out, as in LIBSVM's copies, and a heading."""
    with lzma.open(path, "rt") as text:
        lines = (line for line in text if "?" not in line and not line[0].isalpha())
        table = np.loadtxt(lines, delimiter=",")
    return csr_array(table[:, :-1]), table[:, -1]


@lru_cache
def fetch(file: File, folder: Path) -> bool:
    """Download a file whose checksum is known into the folder; False if that cannot be done."""
    if not (file.address and file.sha256 and folder.is_dir()):
        return False
    try:
        with urllib.request.urlopen(file.address, timeout=10) as answer:
            content = answer.read()
        text = bz2.decompress(content) if content[:3] == b"BZh" else content
        if hashlib.sha256(text).hexdigest() != file.sha256:
            return False
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(".part")
        temporary.write_bytes(lzma.compress(text))
        temporary.rename(target)
    except (urllib.error.URLError, OSError, EOFError):
        return False
    return True
