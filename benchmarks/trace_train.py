"""How many functions and files does `skn train` pass? One line per file, with its functions.

    python benchmarks/trace_train.py [--rows 1000] [OPTION ...]

Runs `skn train f.vw --model m.skn`, with OPTIONs of `skn train` if there are some, in a process of its own under
`sys.setprofile`, in all threads, and counts the functions of the package that were called: each once, by file and
name, so that all methods of a file that are called `__init__` count as one. Comprehensions, lambdas and the bodies
of modules and classes are not counted.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

_TRACED = """
import json, os, sys, threading
codes = set()
def note(frame, event, argument):
    if event == "call":
        codes.add(frame.f_code)
threading.setprofile(note)
sys.setprofile(note)
from sketchnewton.cli.main import main
code = main(json.loads(sys.argv[1]))
sys.setprofile(None)
import inspect
import sketchnewton
home = os.path.dirname(sketchnewton.__file__) + os.sep
functions = sorted(
    {(code.co_filename.removeprefix(home), code.co_name) for code in codes
     if code.co_filename.startswith(home) and not code.co_name.startswith("<")
     and code.co_flags & inspect.CO_OPTIMIZED}
)
sys.stdout.write(json.dumps(functions))
sys.exit(code)
"""


def passed(options: list[str], rows: int) -> list[tuple[str, str]]:
    """File and name of each function that the command calls."""
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder, "f.vw"), Path(folder, "m.skn")
        draw = random.Random(0)
        lines = []
        for _ in range(rows):
            values = [draw.gauss(0.0, 1.0) for _ in range(5)]
            features = " ".join(f"{name}:{value:.6f}" for name, value in zip("abcde", values, strict=True))
            lines.append(f"{1 if sum(values) > 0 else -1} | {features}\n")
        data.write_text("".join(lines))
        line = ["train", str(data), "--model", str(model), *options]
        command = [sys.executable, "-c", _TRACED, json.dumps(line)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if done.returncode or not model.exists():
            sys.exit(f"skn train ended with {done.returncode}")
    return [(file, name) for file, name in json.loads(done.stdout)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    args, options = parser.parse_known_args()
    files: dict[str, list[str]] = {}
    for file, name in passed(options, args.rows):
        files.setdefault(file, []).append(name)
    for file, names in files.items():
        print(f"{file} ({len(names)}): {', '.join(names)}")
    print(f"{sum(map(len, files.values()))} functions in {len(files)} files")


if __name__ == "__main__":
    main()
