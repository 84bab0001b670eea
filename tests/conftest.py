"""What holds for all tests."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

# Before NumPy is imported, here and in the programs that tests start: `make test` has a process on every core
# already, and threads of BLAS beside them would only wait for each other.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# A shell without job control starts background jobs with these ignored, and children inherit that; tests that send
# signals to the programs they start would then wait forever.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(_number, signal.SIG_DFL)

# A machine that is busy, with these tests for one, may take its time. The same sources give the same examples, so
# that a change is blamed for what it broke alone; `--hypothesis-profile search` looks for new ones.
settings.register_profile("any machine", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def _chance() -> None:
    """Estimators without a `random_state` take NumPy's: the same in every run, for the same reason."""
    import numpy as np  # after the settings above

    np.random.seed(0)  # noqa: NPY002 - it is this generator that scikit-learn takes
