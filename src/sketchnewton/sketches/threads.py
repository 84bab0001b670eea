"""Small decompositions run on one thread of BLAS.

Several gain little where the machine is idle, and where it is busy they wait for each other: many times slower.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_limited = False  # whether a caller of the caller has done it already


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, in the main thread of a program only.

    The setting is the whole process's, and with some builds of OpenBLAS only the main thread can change it: two
    threads that change and restore it could leave it changed for good.
    """
    global _limited  # noqa: PLW0603 - as the setting is
    if _limited or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(library, library.get_num_threads()) for library in _libraries("scipy.linalg" in sys.modules)]
    for library, _ in before:
        library.set_num_threads(1)
    _limited = True
    try:
        yield
    finally:
        _limited = False
        for library, number in before:
            library.set_num_threads(number)


@cache
def _libraries(scipy: bool) -> list[Any]:
    """NumPy's BLAS, and SciPy's if it is loaded."""
    from threadpoolctl import ThreadpoolController  # looking for them takes milliseconds

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
