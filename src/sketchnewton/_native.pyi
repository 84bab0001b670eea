from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

def parse_svmlight(
    text: Buffer, max_line_bytes: int
) -> tuple[
    memoryview,  # indptr
    memoryview,  # indices
    memoryview,  # data
    memoryview,  # labels
    int,  # columns: 1 + the largest index
    int,  # lines before the error
    tuple[int, str, bytes | None, int] | None,  # error: column, message, token, where to go on
]: ...

class NameTable:
    def __init__(self, exact: bool) -> None: ...
    @property
    def exact(self) -> bool: ...
    def __len__(self) -> int: ...
    def enter(
        self, space: bytes, names: list[bytes], hashes: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    @property
    def joins(self) -> bool: ...
    def set_joins(self, joins: bool) -> bool: ...
    def shown(self) -> list[tuple[int, bytes]]:
        """Index and name of each entry."""

    def keys(self, begin: int) -> list[bytes]:
        """Of single features, from that number on."""

    def snapshot(self) -> tuple[list[bytes], npt.NDArray[np.int64]]:
        """Keys and indices of all entries: single features, then joined ones."""

    def restore(self, key: bytes, hashed: int) -> bool: ...

def murmur3(data: bytes, seed: int) -> int: ...
def name_hash(name: bytes, seed: int) -> int: ...
def hash_names(names: list[bytes], seed: int, mask: int) -> npt.NDArray[np.int64]: ...
def write_pairs(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int64], data: npt.NDArray[np.float64]
) -> tuple[bytes, npt.NDArray[np.int64]]: ...
def scan_csv(
    text: Buffer, delimiter: str, quote: str
) -> tuple[
    npt.NDArray[np.int64],  # behind each record
    npt.NDArray[np.int64],  # fields of each record; 0 for a blank line
    npt.NDArray[np.int64],  # lines of each record
    bool,  # whether the text ends within quotes; then the last record is left out
]: ...
def parse_vw(
    text: Buffer, max_line_bytes: int, mask: int, string_values: bool, spaced: bool, names: NameTable | None
) -> tuple[
    memoryview,  # indptr
    memoryview,  # indices
    memoryview,  # data
    memoryview,  # labels
    int,  # columns: 1 + the largest index
    int,  # lines before the error
    tuple[int, str, bytes | None, int] | None,  # error: column, message, token, where to go on
    memoryview | None,  # weights
    memoryview | None,  # base
    list[bytes] | None,  # tags
    memoryview | None,  # the first byte of each feature's namespace
    memoryview | None,  # each feature's entry in the names
]: ...
def expand_rows(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int64],
    data: npt.NDArray[np.float64],
    spaces: npt.NDArray[np.uint8] | None,
    entries: npt.NDArray[np.int64] | None,
    names: NameTable | None,
    kept: bytes,
    ngram: bytes,
    interactions: list[bytes],
    mask: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]
_Arrays = dict[str, npt.NDArray[Any]]

class Rows:
    def __len__(self) -> int: ...
    def scan(self, limit: float) -> tuple[int, int, int, int, float]:
        """Largest index, widest row, first bad row or -1, its feature, its value."""
    def part(self, begin: int, end: int) -> Rows: ...

def csr_rows(indptr: _Integers, indices: npt.NDArray[Any], values: npt.NDArray[Any]) -> Rows: ...
def dense_rows(values: npt.NDArray[Any]) -> Rows: ...

class NameIndex:
    def row(self, x: dict[Any, Any], names: list[Any], learn: bool) -> Rows: ...
    def places(self, wanted: list[Any], names: list[Any], learn: bool) -> list[int]: ...

def hashed_row(x: dict[Any, Any], bits: int) -> Rows: ...
def hashed_index(name: str, bits: int) -> int: ...

class Problem: ...

def problem(
    loss: int,
    parameter: float,
    clip: float,
    curvature: float,
    eta: float,
    power: float,
    by_dimension: bool = False,
    project: bool = True,
) -> Problem: ...
def loss_values(
    code: int, parameter: float, predictions: _Floats, labels: _Floats
) -> tuple[_Floats, _Floats]: ...
def padded_columns(columns: int) -> int: ...

class TableKernel:
    def learn_one(self, row: Rows, label: float) -> float: ...
    def learn(self, rows: Rows, labels: _Floats, weights: _Floats | None, out: _Floats) -> None: ...
    def predict(self, rows: Rows, out: _Floats) -> None: ...

class NewtonKernel(TableKernel):
    def settled(self, out: npt.NDArray[Any]) -> None: ...

def newton32(problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays) -> NewtonKernel: ...
def newton64(problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays) -> NewtonKernel: ...
def oja_newton32(
    problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays, block: int
) -> NewtonKernel: ...
def oja_newton64(
    problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays, block: int
) -> NewtonKernel: ...
def frequent_newton32(
    problem: Problem,
    first_alpha: float,
    diagonal: bool,
    arrays: _Arrays,
    sketch_size: int,
    share: float,
    ridge: float,
) -> NewtonKernel: ...
def frequent_newton64(
    problem: Problem,
    first_alpha: float,
    diagonal: bool,
    arrays: _Arrays,
    sketch_size: int,
    share: float,
    ridge: float,
) -> NewtonKernel: ...
def projection_newton32(
    problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays, seed: int
) -> NewtonKernel: ...
def projection_newton64(
    problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays, seed: int
) -> NewtonKernel: ...

class BankKernel(TableKernel):
    def settled(self, out: npt.NDArray[Any]) -> None: ...
    def predict_experts(self, rows: Rows, out: _Floats) -> None: ...

def newton_bank32(loss: int, parameter: float, intercept: bool, arrays: _Arrays) -> BankKernel: ...
def newton_bank64(loss: int, parameter: float, intercept: bool, arrays: _Arrays) -> BankKernel: ...
def normal_row(seed: int, row: int, n: int) -> _Floats: ...
def adagrad32(
    problem: Problem, eta: float, sigma: float, intercept: bool, arrays: _Arrays
) -> TableKernel: ...
def adagrad64(
    problem: Problem, eta: float, sigma: float, intercept: bool, arrays: _Arrays
) -> TableKernel: ...

class MatrixKernel:
    def learn(self, rows: Rows, labels: _Floats, weights: _Floats | None, out: _Floats) -> None: ...
    def predict(self, rows: Rows, out: _Floats) -> None: ...

def full_newton(problem: Problem, intercept: bool, arrays: _Arrays) -> MatrixKernel: ...
def invariant_newton(problem: Problem, intercept: bool, arrays: _Arrays) -> MatrixKernel: ...

class Composite: ...

def composite(
    eta: float, sigma: float, l1: float, l2: float, averaging: bool, of_data: bool
) -> Composite: ...
def spread_row(rows: Rows, r: int, out: _Floats) -> int: ...

class ClassKernel:
    def learn(self, rows: Rows, labels: _Floats, weights: _Floats | None, out: _Floats) -> None: ...
    def predict(self, rows: Rows, out: _Floats) -> None: ...

class AdaptiveKernel(ClassKernel):
    def settled(self, out: npt.NDArray[Any]) -> None: ...

class CompositeAdaGrad(ClassKernel):
    def weights(self, out: _Floats) -> None: ...

def projection_adaptive32(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays, sketch_size: int, seed: int
) -> AdaptiveKernel: ...
def projection_adaptive64(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays, sketch_size: int, seed: int
) -> AdaptiveKernel: ...
def frequent_adaptive32(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays, sketch_size: int, ridge: float
) -> AdaptiveKernel: ...
def frequent_adaptive64(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays, sketch_size: int, ridge: float
) -> AdaptiveKernel: ...
def composite_adagrad32(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays
) -> CompositeAdaGrad: ...
def composite_adagrad64(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays
) -> CompositeAdaGrad: ...
def shared_newton32(problem: Problem, kappa: float, diagonal: bool, arrays: _Arrays) -> ClassKernel: ...
def shared_newton64(problem: Problem, kappa: float, diagonal: bool, arrays: _Arrays) -> ClassKernel: ...
def proximal_newton(
    columns: _Floats, center: _Floats, pull: _Floats, h: float, l1: float, l2: float
) -> _Floats: ...
def tridiagonal_values(
    diagonal: npt.NDArray[Any], beside: npt.NDArray[Any], count: int
) -> npt.NDArray[Any]: ...
def tridiagonal_vectors(
    diagonal: npt.NDArray[Any], beside: npt.NDArray[Any], values: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], float]: ...
