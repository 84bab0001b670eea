"""These tests need Dask and Spark, which are extras: `make test-cluster` installs them."""

from __future__ import annotations

import importlib.util

missing = {
    "test_dask.py": ("dask", "distributed"),
    "test_spark.py": ("pyspark",),
}
collect_ignore = [
    file for file, needed in missing.items() if not all(importlib.util.find_spec(name) for name in needed)
]
