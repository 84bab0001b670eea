"""Is training here faster than Vowpal Wabbit's? The same rows, side by side, in one run on one machine.

    python benchmarks/vowpal_wabbit.py [--rows 100000] [--repeat 7] [--keep DIR] [--json]

Needs the extra `bench`. Contenders take turns, so that a slow moment of the machine meets all of them;
numbers are medians. Two ways of looking at it:

* whole commands, from start to exit, with their peak memory and processor time;
* in process: from the text file to the model file, in a new process each time, everything imported before.

Both sides read the same Vowpal Wabbit text; we also read svmlight text with the same numbers. An untimed run of
each command writes down its progressive predictions, to show that each contender does learn.

The exit code is 1 if a promise is broken: with the Oja sketch of size 10, at least 5 times as fast as
`--OjaNewton --sketch_size 10`, with the default learner at least 4 times, and neither slower than plain
first-order Vowpal Wabbit; the default learner takes at most 1.5 times as long as the Oja sketch.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import vowpalwabbit
import zipf

from sketchnewton import Learner, NewtonBank, SketchedNewton
from sketchnewton.streams import open_stream

OJA_SPEEDUP, BANK_SPEEDUP, PLAIN_SPEEDUP, BANK_COST = 5.0, 4.0, 1.0, 1.5

# The peak memory of a command counts that of the process which starts it, so a small one does that.
LAUNCHER = """
import json, os, sys, time
start = time.perf_counter()
_, status, used = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
seconds = time.perf_counter() - start
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""


@dataclass
class Contender:
    """One way to train: what it is given, and what was measured."""

    name: str
    options: list[str]
    parameters: dict[str, Any] | None = None  # of our learner, {}: the default one; None for Vowpal Wabbit
    data: str = "data.vw"
    command_seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    process_seconds: list[float] = field(default_factory=list)
    loss: float = float("nan")
    error: float = float("nan")

    @property
    def ours(self) -> bool:
        return self.parameters is not None

    def command(self, folder: Path) -> list[str]:
        """The whole command that trains on the file in `folder` and saves the model there."""
        if self.ours:
            skn = str(Path(sysconfig.get_path("scripts")) / "skn")
            return [
                skn,
                "train",
                str(folder / self.data),
                *self.options,
                "--model",
                str(folder / "model.skn"),
            ]
        return [sys.executable, "-m", "vowpalwabbit", *self.vw_arguments(folder)]

    def vw_arguments(self, folder: Path) -> list[str]:
        return [*self.options, "-d", str(folder / self.data), "-f", str(folder / "model.vw")]

    def medians(self) -> dict[str, float]:
        return {
            "command_seconds": statistics.median(self.command_seconds),
            "processor_seconds": statistics.median(self.processor_seconds),
            "megabytes": statistics.median(self.megabytes),
            "process_seconds": statistics.median(self.process_seconds),
            "progressive_loss": self.loss,
            "error_rate": self.error,
        }


_OJA, _PARAMETERS = ["--sketch", "oja", "--sketch-size", "10"], {"sketch": "oja", "sketch_size": 10}
OURS = Contender("skn --sketch oja", _OJA, _PARAMETERS)
OURS_SVMLIGHT = Contender("skn, svmlight", _OJA, _PARAMETERS, "data.svm")
BANK = Contender("skn (bank)", [], {})
BANK_SVMLIGHT = Contender("skn (bank), svmlight", [], {}, "data.svm")
OURS_PLAIN = Contender("skn --sketch none", ["--sketch", "none"], {"sketch": "none"})
VW_OJA = Contender("vw --OjaNewton", ["--OjaNewton", "--sketch_size", "10"])
VW_PLAIN = Contender("vw", [])
CONTENDERS = (OURS, OURS_SVMLIGHT, BANK, BANK_SVMLIGHT, VW_OJA, VW_PLAIN, OURS_PLAIN)


def run_command(contender: Contender, folder: Path) -> None:
    """Time one whole command."""
    command = [*contender.command(folder), "--quiet"]
    launched = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LAUNCHER, *command], check=True, stdout=subprocess.PIPE
    )
    code, seconds, processor, memory = json.loads(launched.stdout.splitlines()[-1])
    if code != 0:
        raise SystemExit(f"exit code {code}: {' '.join(command)}")
    contender.command_seconds.append(seconds)
    contender.processor_seconds.append(processor)
    contender.megabytes.append(memory / (1e6 if sys.platform == "darwin" else 1e3))  # bytes, elsewhere kB


def score_command(contender: Contender, folder: Path, labels: np.ndarray) -> None:
    """Run the command once more for its progressive predictions; also warms the file cache."""
    output = folder / "predictions"
    option = "--predictions" if contender.ours else "-p"
    subprocess.run([*contender.command(folder), "--quiet", option, str(output)], check=True)
    predictions = np.loadtxt(output)
    if predictions.shape != labels.shape:
        raise SystemExit(f"{contender.name} predicted {len(predictions)} of {len(labels)} rows")
    contender.loss = float(np.mean((predictions - labels) ** 2))
    contender.error = float(np.mean((predictions >= 0.0) != (labels > 0.0)))


def train_ours(parameters: dict[str, Any], data: Path, model: Path) -> tuple[float, int]:
    """Seconds from text to model file, and rows learned; runs in a process of its own."""
    start = time.perf_counter()
    learner: Learner = SketchedNewton(**parameters, intercept=True) if parameters else NewtonBank()
    for batch in open_stream(data):
        learner.learn(batch, batch.labels)
    learner.save(model)
    return time.perf_counter() - start, learner.rows_seen


def train_vw(arguments: list[str]) -> tuple[float, int]:
    """The same for Vowpal Wabbit: `-d` makes the constructor read and learn, `finish` saves the model."""
    start = time.perf_counter()
    workspace = vowpalwabbit.Workspace(arg_list=[*arguments, "--quiet"])
    rows = workspace.get_weighted_examples()
    workspace.finish()
    return time.perf_counter() - start, int(rows)


def run_in_process(contender: Contender, folder: Path, rows: int) -> None:
    """Time the training alone; the new process imports this module, and with it both libraries, first."""
    model = folder / ("model.skn" if contender.ours else "model.vw")
    model.unlink(missing_ok=True)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        if contender.ours:
            future = pool.submit(train_ours, contender.parameters, folder / contender.data, model)
        else:
            future = pool.submit(train_vw, contender.vw_arguments(folder))
        seconds, learned = future.result()
    if learned != rows or not model.stat().st_size:
        raise SystemExit(f"{contender.name} learned {learned} of {rows} rows")
    contender.process_seconds.append(seconds)


def in_turns(repeat: int, work: Callable[[Contender], None]) -> None:
    """All contenders, `repeat` times, each round starting with another one."""
    for turn in range(repeat):
        for place in range(len(CONTENDERS)):
            work(CONTENDERS[(turn + place) % len(CONTENDERS)])


def promises() -> Iterable[tuple[str, float, float]]:
    """What is promised, the speed-up measured, and the least it must be."""
    for way, key in (("whole command", "command_seconds"), ("in process", "process_seconds")):
        for text, contender, least in (
            ("VW text", OURS, OJA_SPEEDUP),
            ("svmlight", OURS_SVMLIGHT, OJA_SPEEDUP),
            ("VW text, default", BANK, BANK_SPEEDUP),
            ("svmlight, default", BANK_SVMLIGHT, BANK_SPEEDUP),
        ):
            ours = contender.medians()[key]
            yield f"{way}, {text}: vw --OjaNewton / ours", VW_OJA.medians()[key] / ours, least
            yield f"{way}, {text}: vw / ours", VW_PLAIN.medians()[key] / ours, PLAIN_SPEEDUP
        for text, oja, bank in (("VW text", OURS, BANK), ("svmlight", OURS_SVMLIGHT, BANK_SVMLIGHT)):
            yield f"{way}, {text}: oja / default", oja.medians()[key] / bank.medians()[key], 1 / BANK_COST


def show(rows: int, repeat: int) -> None:
    ours = OURS.medians()
    print(f"{rows} rows, medians of {repeat}; ratios: time / time of {OURS.name}")
    print(
        f"{'':<22}{'command':>9}{'ratio':>7}{'processor':>11}{'peak memory':>13}"
        f"{'in process':>12}{'ratio':>7}{'loss':>8}{'error':>8}"
    )
    for contender in CONTENDERS:
        its = contender.medians()
        print(
            f"{contender.name:<22}"
            f"{its['command_seconds']:>7.3f} s{its['command_seconds'] / ours['command_seconds']:>7.2f}"
            f"{its['processor_seconds']:>9.3f} s{its['megabytes']:>10.0f} MB"
            f"{its['process_seconds']:>10.3f} s{its['process_seconds'] / ours['process_seconds']:>7.2f}"
            f"{its['progressive_loss']:>8.3f}{its['error_rate']:>8.1%}"
        )
    for name, ratio, least in promises():
        print(
            f"{'kept' if ratio >= least else 'BROKEN':<8}{name}: {ratio:.2f} (promised: at least {least:.3g})"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=zipf.ROWS, help="rows of the data set")
    parser.add_argument("--repeat", type=int, default=7, help="times that each is run")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write data and models here, and leave them")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    args = parser.parse_args()
    with ExitStack() as stack:
        folder = args.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        rows = zipf.zipf_rows(args.rows)
        zipf.write_text(rows, folder / "data.svm", folder / "data.vw")
        for contender in CONTENDERS:
            score_command(contender, folder, rows.labels)
        in_turns(args.repeat, lambda contender: run_command(contender, folder))
        in_turns(args.repeat, lambda contender: run_in_process(contender, folder, args.rows))
    if args.json:
        result = {
            "rows": args.rows,
            "repeat": args.repeat,
            "processors": os.cpu_count(),
            "medians": {contender.name: contender.medians() for contender in CONTENDERS},
            "promises": [
                {"name": name, "ratio": ratio, "at_least": least, "kept": ratio >= least}
                for name, ratio, least in promises()
            ],
        }
        print(json.dumps(result))
    else:
        show(args.rows, args.repeat)
    return int(any(ratio < least for _, ratio, least in promises()))


if __name__ == "__main__":
    sys.exit(main())
