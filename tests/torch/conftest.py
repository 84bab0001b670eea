"""These tests need PyTorch, an extra: `make test-torch` installs it; without it they are not collected."""

from __future__ import annotations

import importlib.util

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["*.py"]


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Tests run side by side, one process per core: more threads would stand in each other's way."""
    import torch

    torch.set_num_threads(1)
