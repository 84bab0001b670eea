"""Dask and Spark are extras: whoever lacks one is told which, and nothing else needs it."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("package", "needed", "message"),
    [
        ("dask", "dask", "sketchnewton.dask needs Dask: pip install 'sketchnewton[dask]'"),
        ("spark", "pyspark", "sketchnewton.spark needs Spark: pip install 'sketchnewton[spark]'"),
    ],
)
def test_the_error_names_the_extra(package: str, needed: str, message: str) -> None:
    done = run(f"import sys; sys.modules[{needed!r}] = None; import sketchnewton.{package}")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == f"ModuleNotFoundError: {message}"


def test_a_sketch_of_blocks_names_it_too() -> None:
    done = run(
        "import sys; sys.modules['dask'] = None; from sketchnewton import FrequentDirections; "
        "FrequentDirections.from_dask([], 5)"
    )
    assert done.stderr.strip().splitlines()[-1].endswith("needs Dask: pip install 'sketchnewton[dask]'")


def test_the_package_imports_neither() -> None:
    done = run("import sys, sketchnewton.cli; print({'dask', 'pyspark'} & set(sys.modules))")
    assert done.stdout.strip() == "set()"
