"""Kernels compile with Clang and libc++, for other systems and processors, and compute what they should there.

Cross-compiling needs the `ziglang` package: `make portable` installs it and runs this file.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "native"
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE}"]
TARGETS = ["x86_64-linux-gnu", "aarch64-linux-gnu", "x86_64-macos", "aarch64-macos", "x86_64-windows-gnu"]
PROGRAMS = ["numbers", "elementary", "fuzz_svmlight", "fuzz_vw", "fuzz_csv", "fuzz_json"]

zig = pytest.mark.skipif(find_spec("ziglang") is None, reason="needs ziglang: make portable")


def compile_with(compiler: list[str], source: Path, *flags: str) -> None:
    done = subprocess.run(
        [*compiler, *FLAGS, *flags, str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]


def clang(target: str) -> list[str]:
    return [sys.executable, "-m", "ziglang", "c++", "-target", target]


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a compiler")
@pytest.mark.slow
def test_numbers_are_rounded_as_strtod_rounds_them(tmp_path: Path) -> None:
    program = tmp_path / "numbers"
    sanitize = "-fsanitize=address,undefined"
    compile_with(["c++"], ROOT / "tests/native/numbers.cpp", "-O1", "-g", sanitize, "-o", str(program))
    done = subprocess.run([program, "100000"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "100000 numbers as strtod\n"


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a compiler")
@pytest.mark.slow
def test_elementary_functions_and_paths(tmp_path: Path) -> None:
    """Within two units of the last place, and as the paths that are found one by one."""
    program = tmp_path / "elementary"
    sanitize = "-fsanitize=address,undefined"
    compile_with(["c++"], ROOT / "tests/native/elementary.cpp", "-O1", "-g", sanitize, "-o", str(program))
    done = subprocess.run([program, "100000"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@zig
@pytest.mark.slow
def test_numbers_with_another_standard_library(tmp_path: Path) -> None:
    program = tmp_path / "numbers"
    source = ROOT / "tests/native/numbers.cpp"
    compile_with(clang("x86_64-linux-gnu"), source, "-O2", "-o", str(program))
    done = subprocess.run([program, "300000"], capture_output=True, text=True, check=False)
    assert done.stdout == "300000 numbers as strtod\n"


@zig
@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_headers_and_parsers_compile(target: str, tmp_path: Path) -> None:
    headers = [
        path.relative_to(NATIVE) for path in sorted(NATIVE.glob("*/*.hpp")) if path.parent.name != "bindings"
    ]
    assert len(headers) > 40
    everything = tmp_path / "everything.cpp"
    everything.write_text("".join(f'#include "{path.as_posix()}"\n' for path in headers))
    for source in (everything, *(ROOT / "tests/native" / f"{name}.cpp" for name in PROGRAMS)):
        compile_with(clang(target), source, "-c", "-o", str(tmp_path / "compiled.o"))


# The bindings instantiate every kernel. Python's own headers here are Linux's, near enough to macOS's.
@zig
@pytest.mark.slow
@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "aarch64-macos"])
@pytest.mark.parametrize(
    "source",
    sorted(p for p in NATIVE.glob("bindings/*.cpp") if p.stem != "dispatch"),
    ids=lambda path: path.stem,
)
def test_kernels_compile(target: str, source: Path, tmp_path: Path) -> None:
    import nanobind

    includes = [f"-isystem{nanobind.include_dir()}", f"-isystem{sysconfig.get_path('include')}"]
    compile_with(clang(target), source, "-c", "-o", str(tmp_path / "compiled.o"), *includes)
