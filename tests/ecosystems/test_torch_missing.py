"""PyTorch is an extra: whoever lacks it is told which one, and nothing else needs it."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_error_names_the_extra():
    done = run("import sys; sys.modules['torch'] = None; import sketchnewton.torch")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "ModuleNotFoundError: sketchnewton.torch needs PyTorch: pip install 'sketchnewton[torch]'"
    )


def test_the_package_does_not_import_it():
    done = run("import sys, sketchnewton, sketchnewton.cli; print('torch' in sys.modules)")
    assert done.stdout.strip() == "False"
