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

    def restore(self, key: bytes, hashed: int, /) -> bool: ...

def murmur3(data: bytes, seed: int) -> int: ...
def name_hash(name: bytes, seed: int) -> int: ...
def hash_names(names: list[bytes], seed: int, mask: int) -> npt.NDArray[np.int64]: ...
def write_pairs(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int64], data: npt.NDArray[np.float64]
) -> tuple[bytes, npt.NDArray[np.int64]]: ...
def write_lines(numbers: npt.NDArray[np.float64]) -> str: ...

class Memory(Buffer):
    """Bytes of any content, which may have been those of an earlier batch, to be written to and then sealed."""

    def __init__(self, bytes: int) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def seal(self) -> None:
        """From now on nobody can write to it."""

def narrowed(values: memoryview) -> memoryview | None: ...
def widened(values: memoryview) -> memoryview: ...
def checksum(data: Buffer, seed: int = 0) -> int: ...
def csv_start(text: Buffer, delimiter: str, quote: str, most: int) -> tuple[int, int, int, int, int]: ...

class TableRows:
    def __init__(
        self, mask: int, names: NameTable | None, spaced: bool, missing: list[bytes], labels: str
    ) -> None: ...
    def add_column(self, key: bytes, number: int) -> int: ...
    def set_kind(self, column: int, kind: str) -> None: ...
    def set_decimal_comma(self) -> None: ...
    def know(
        self, column: int, number: bool, cell: bytes, features: list[tuple[bytes, float]], misfit: bool
    ) -> None: ...
    def know_label(self, number: bool, cell: bytes, label: float) -> None: ...
    def know_weight(self, cell: bytes, weight: float) -> None: ...
    def add_row(
        self, label: float, weight: float, tag: bytes, features: list[tuple[bytes, bytes, int, float]]
    ) -> None: ...
    def found(self) -> list[tuple[bytes, str]]: ...
    def misfits(self) -> int: ...
    def take(
        self,
    ) -> tuple[
        memoryview,  # indptr
        memoryview,  # indices
        memoryview,  # data
        memoryview,  # labels
        memoryview | None,  # weights
        list[bytes] | None,  # tags
        memoryview | None,  # the first byte of each feature's namespace
        memoryview | None,  # the number of each feature's column
        memoryview | None,  # each feature's entry in the names
    ]: ...

class CsvParser:
    def __init__(self, delimiter: str, quote: str, roles: list[int]) -> None: ...
    def parse(
        self, rows: TableRows, text: Buffer, at: int
    ) -> tuple[
        str,  # why it stopped: end, open, fields, cell, label, weight
        int,  # the record where it stopped
        int,  # the one behind it
        int,  # lines before it
        int,  # its own lines
        int,  # lines before the first row that was added, -1 if none was
        int,  # its fields
        int,  # the field to be asked about
        bytes,  # and what it has
    ]: ...
    def look(
        self, rows: TableRows, text: Buffer, at: int, wanted: list[int], records: int, all: bool
    ) -> list[list[bytes]]: ...

class TableColumns:
    def __init__(self, rows: TableRows) -> None: ...
    def add_numbers(self, rows: TableRows, column: int, values: npt.NDArray[np.float64]) -> None: ...
    def add_texts(
        self,
        rows: TableRows,
        column: int,
        codes: npt.NDArray[np.int64],
        offsets: npt.NDArray[np.int64],
        data: npt.NDArray[np.uint8],
    ) -> list[int]: ...
    def leave_out(self, code: int) -> None: ...
    def add_rows(
        self,
        rows: TableRows,
        labels: npt.NDArray[np.float64],
        weights: npt.NDArray[np.float64] | None,
        tags: list[bytes] | None,
        kept: npt.NDArray[np.bool_] | None,
    ) -> None: ...

class JsonParser:
    def __init__(
        self,
        labels: list[bytes],
        weight: bytes,
        tag: bytes,
        weight_wanted: bool,
        drop: list[bytes],
        only_labels: bool,
        column_numbers: dict[bytes, int],
    ) -> None: ...
    def set_kind(self, rows: TableRows, key: bytes, kind: str) -> None: ...
    def parse(
        self, rows: TableRows, text: Buffer, at: int, max_line_bytes: int
    ) -> tuple[
        str,  # why it stopped: end, long, line, cell, label
        int,  # the line where it stopped
        int,  # the one behind it
        int,  # lines before it
        int,  # the column to be asked about
        bytes | None,  # and its name
        bool,  # whether the cell is a number, true or false
        bytes,  # the cell
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
    spaces: npt.NDArray[np.uint8] | memoryview | None,
    entries: npt.NDArray[np.int64] | memoryview | None,
    names: NameTable | None,
    kept: bytes,
    ngram: bytes,
    interactions: list[bytes],
    mask: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]
_View = npt.NDArray[Any] | memoryview[Any]  # numbers one after the other
_Arrays = dict[str, memoryview[float]]

LARGEST_VALUE: float

class Rows:
    def __len__(self) -> int: ...
    def scan(self) -> tuple[int, int, int, int, float]:
        """Largest index, widest row, first bad row or -1, its feature, its value."""
    def part(self, begin: int, end: int) -> Rows: ...

def csr_rows(indptr: _View, indices: _View, values: _View) -> Rows: ...
def dense_rows(values: npt.NDArray[Any]) -> Rows: ...

class NameIndex:
    def __init__(self) -> None: ...
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
def zeros(shape: tuple[int, ...], dtype: str) -> memoryview[float]: ...
def copy_rows(source: _View, target: _View, features: _View, count: int) -> None: ...
def gather_rows(source: _View, target: _View, features: _View, count: int) -> None: ...
def all_finite(values: _View) -> bool: ...
def not_finite(values: _View) -> int: ...
def look(values: _View) -> tuple[list[float], float, float, bool]: ...
def negative(values: _View) -> int: ...
def add_losses(
    code: int,
    parameter: float,
    predictions: _View,
    labels: _View,
    weights: _View | None,
    losses: float,
    mistakes: float,
    weight: float,
) -> tuple[float, float, float, bool]: ...

LOSSES: tuple[tuple[str, str], ...]  # name, and the name of its parameter or ""

class LabelRule:
    @staticmethod
    def numbers(low: float, high: float) -> LabelRule: ...
    @staticmethod
    def signs() -> LabelRule: ...
    @staticmethod
    def positive(label: float) -> LabelRule: ...
    @staticmethod
    def classes(count: int, zero: bool | None = None) -> LabelRule: ...
    def takes(self, label: float) -> bool: ...
    def unfit(self, labels: _View) -> list[int]:
        """The rows whose label does not fit."""

    def code(self, labels: _View) -> tuple[_Floats, list[int]]:
        """What the learner gets, a memoryview unless it is `labels` itself; and the rows whose label is unfit."""

    @property
    def zero(self) -> bool | None: ...

class RowKernel:
    """Learns and predicts rows: one output each, in a vector or a matrix of one column, or one per class."""

    def learn_one(self, row: Rows, label: float) -> float: ...
    def learn(self, rows: Rows, labels: _View, weights: _View | None, out: _View) -> None: ...
    def predict(self, rows: Rows, out: _View) -> None: ...

class SketchKernel(RowKernel):
    def settled(self, out: npt.NDArray[Any]) -> None: ...

def newton32(problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays) -> SketchKernel: ...
def newton64(problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays) -> SketchKernel: ...
def oja_newton32(
    problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays, block: int
) -> SketchKernel: ...
def oja_newton64(
    problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays, block: int
) -> SketchKernel: ...
def frequent_newton32(
    problem: Problem,
    first_alpha: float,
    diagonal: bool,
    arrays: _Arrays,
    sketch_size: int,
    every: int,
    share: float,
    ridge: float,
) -> SketchKernel: ...
def frequent_newton64(
    problem: Problem,
    first_alpha: float,
    diagonal: bool,
    arrays: _Arrays,
    sketch_size: int,
    every: int,
    share: float,
    ridge: float,
) -> SketchKernel: ...
def projection_newton32(
    problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays, seed: int
) -> SketchKernel: ...
def projection_newton64(
    problem: Problem, first_alpha: float, diagonal: bool, arrays: _Arrays, seed: int
) -> SketchKernel: ...

class BankKernel(SketchKernel):
    def predict_experts(self, rows: Rows, out: _Floats) -> None: ...
    def places_for(self, rows: Rows) -> int: ...
    def quantiles(self, predictions: _Floats, levels: _Floats, out: _Floats) -> None: ...
    def deviations(self, predictions: _Floats, out: _Floats) -> None: ...
    @property
    def experts(self) -> int: ...

def newton_bank32(
    loss: int, parameter: float, intercept: bool, clip: float, arrays: _Arrays
) -> BankKernel: ...
def newton_bank64(
    loss: int, parameter: float, intercept: bool, clip: float, arrays: _Arrays
) -> BankKernel: ...
def normal_row(seed: int, row: int, n: int) -> _Floats: ...
def adagrad32(problem: Problem, eta: float, sigma: float, intercept: bool, arrays: _Arrays) -> RowKernel: ...
def adagrad64(problem: Problem, eta: float, sigma: float, intercept: bool, arrays: _Arrays) -> RowKernel: ...
def full_newton(problem: Problem, intercept: bool, arrays: _Arrays) -> RowKernel: ...
def invariant_newton(problem: Problem, intercept: bool, arrays: _Arrays) -> RowKernel: ...

class Composite: ...

def composite(
    eta: float, sigma: float, l1: float, l2: float, averaging: bool, of_data: bool
) -> Composite: ...
def spread_row(rows: Rows, r: int, out: _View) -> int: ...

class PenaltyKernel(RowKernel):
    def weights(self, out: _Floats) -> None: ...

def projection_adaptive32(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays, sketch_size: int, seed: int
) -> SketchKernel: ...
def projection_adaptive64(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays, sketch_size: int, seed: int
) -> SketchKernel: ...
def frequent_adaptive32(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays, sketch_size: int, ridge: float
) -> SketchKernel: ...
def frequent_adaptive64(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays, sketch_size: int, ridge: float
) -> SketchKernel: ...
def composite_adagrad32(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays
) -> PenaltyKernel: ...
def composite_adagrad64(
    problem: Problem, composite: Composite, intercept: bool, arrays: _Arrays
) -> PenaltyKernel: ...
def shared_newton32(
    problem: Problem, kappa: float, first_alpha: float, diagonal: bool, arrays: _Arrays
) -> RowKernel: ...
def shared_newton64(
    problem: Problem, kappa: float, first_alpha: float, diagonal: bool, arrays: _Arrays
) -> RowKernel: ...
def add_singular_row(s: _Floats, E: _Floats, v: _Floats) -> None: ...
def proximal_newton(
    columns: _Floats, center: _Floats, pull: _Floats, h: float, l1: float, l2: float
) -> _Floats: ...
def tridiagonal_values(
    diagonal: npt.NDArray[Any], beside: npt.NDArray[Any], count: int
) -> npt.NDArray[Any]: ...
def tridiagonal_vectors(
    diagonal: npt.NDArray[Any], beside: npt.NDArray[Any], values: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], float]: ...

class TridiagonalForm32:
    @property
    def diagonal(self) -> npt.NDArray[np.float32]: ...
    @property
    def beside(self) -> npt.NDArray[np.float32]: ...
    def apply(self, X: npt.NDArray[np.float32]) -> None: ...

class TridiagonalForm64:
    @property
    def diagonal(self) -> npt.NDArray[np.float64]: ...
    @property
    def beside(self) -> npt.NDArray[np.float64]: ...
    def apply(self, X: npt.NDArray[np.float64]) -> None: ...

def tridiagonal_form(matrix: npt.NDArray[Any]) -> TridiagonalForm32 | TridiagonalForm64: ...
