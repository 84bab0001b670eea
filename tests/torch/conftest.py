"""These tests need PyTorch, an extra: `make test-torch` installs it; without it they are not collected."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["*.py"]
