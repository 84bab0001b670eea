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
