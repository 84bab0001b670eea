from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

def parse_svmlight(
    text: Buffer, max_line_bytes: int
) -> tuple[
    npt.NDArray[np.int64],  # indptr
    npt.NDArray[np.int64],  # indices
    npt.NDArray[np.float64],  # data
    npt.NDArray[np.float64],  # labels
    int,  # columns: 1 + the largest index
    int,  # lines before the error
    tuple[int, str, bytes | None] | None,  # error: column, message, token
]: ...

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]
_Arrays = dict[str, npt.NDArray[Any]]

class Rows:
    def __len__(self) -> int: ...
    def scan(self, limit: float) -> tuple[int, int, int, int, float]:
        """Largest index, widest row, first bad row or -1, its feature, its value."""

def csr_rows(indptr: _Integers, indices: npt.NDArray[Any], values: npt.NDArray[Any]) -> Rows: ...
def dense_rows(values: npt.NDArray[Any]) -> Rows: ...

class Problem: ...

def problem(
    loss: int, parameter: float, clip: float, curvature: float, eta: float, power: float
) -> Problem: ...
def loss_values(
    code: int, parameter: float, predictions: _Floats, labels: _Floats
) -> tuple[_Floats, _Floats]: ...
def padded_columns(columns: int) -> int: ...

class TableKernel:
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

class FullNewton:
    def learn(self, rows: Rows, labels: _Floats, weights: _Floats | None, out: _Floats) -> None: ...
    def predict(self, rows: Rows, out: _Floats) -> None: ...

def full_newton(problem: Problem, intercept: bool, arrays: _Arrays) -> FullNewton: ...
