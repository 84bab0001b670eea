"""Cases by number, one after another in a worker process that is watched: what ends it, and what costs too much.

`serve` is the worker's loop, `drive` the one that watches. A worker that dies, hangs or exceeds a limit is a
finding; another takes its place, so that one run finds all there are.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

MEMORY = 500e6
"""Bytes that a case may take beyond what the worker had before."""
SECONDS = 5.0
"""Of processor time."""
HANGS = 120.0
"""Seconds without an answer, on a machine that may be busy."""


def serve(case: Callable[[int], str]) -> None:
    """Answer each number on stdin by the outcome of its case, its seconds and its bytes."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a case prints is no answer
    for line in sys.stdin:
        before = _resident("VmRSS")
        _forget_peak()
        start = time.process_time()
        try:
            outcome = case(int(line))
        except BaseException:
            outcome = "raised: " + traceback.format_exc()
        spent = time.process_time() - start
        print(json.dumps([outcome, spent, _resident("VmHWM") - before]), file=answers, flush=True)


def _resident(name: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def _forget_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


@dataclass
class Worker:
    """A process that serves, and what it says on stderr."""

    command: list[str]
    log: tempfile._TemporaryFileWrapper[bytes] = field(default_factory=tempfile.NamedTemporaryFile)

    def __post_init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=self.log)

    def ask(self, number: int) -> tuple[str, float, int]:
        """The outcome; one that begins with "ended" or "hangs" if the worker is gone."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(f"{number}\n".encode())
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], HANGS)[0]:
                self.close()
                return "hangs", HANGS, 0
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            return f"ended: exit code {self.process.wait()}\n{self._last_words()}", 0.0, 0
        outcome, seconds, memory = json.loads(answer)
        return outcome, seconds, memory

    def _last_words(self) -> str:
        with open(self.log.name, errors="replace") as file:
            lines = file.read().splitlines()
        begin = next((k for k, line in enumerate(lines) if "ERROR" in line or "runtime error" in line), -25)
        return "\n".join(lines[begin:][:25])

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def drive(
    module: str, noun: str, name_of: Callable[[int], str], *, count: int, seconds: float, first: int
) -> int:
    """Run that many cases, or as many as there is time for; say what was found. The exit code."""
    command = [sys.executable, "-X", "faulthandler", "-m", module, "--serve"]
    worker = Worker(command)
    outcomes: Counter[str] = Counter()
    worst = {"memory": (0.0, ""), "time": (0.0, "")}
    findings = 0
    begin = time.monotonic()
    done = 0
    while done < count and time.monotonic() - begin < seconds and findings < 50:
        number = first + done
        outcome, spent, memory = worker.ask(number)
        name = f"{name_of(number)}, seed {number}"
        worst["memory"] = max(worst["memory"], (memory / 1e6, name))
        worst["time"] = max(worst["time"], (spent, name))
        if memory > MEMORY or spent > SECONDS:
            outcome = f"costs too much: {memory / 1e6:.0f} MB, {spent:.1f} s"
        kind = outcome.partition(":")[0]
        if kind in ("hangs", "ended", "raised", "costs too much", "wrong"):
            findings += 1
            print(f"FINDING {name}: {outcome}", flush=True)
            if worker.process.poll() is not None:
                worker = Worker(command)
        outcomes[kind] += 1
        done += 1
        if done % 1000 == 0:
            print(f"{done} {noun}, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    worker.close()
    counts = ", ".join(f"{number} {kind}" for kind, number in outcomes.most_common())
    print(f"{done} {noun} in {time.monotonic() - begin:.0f} s: {counts}")
    print(f"the most memory: {worst['memory'][0]:.0f} MB ({worst['memory'][1]})")
    print(f"the most time: {worst['time'][0]:.2f} s ({worst['time'][1]})")
    print(f"{findings} findings")
    return 1 if findings or done == 0 else 0


def main(module: str, noun: str, case: Callable[[int], str], name_of: Callable[[int], str]) -> None:
    """The command line of a fuzzer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0, help="the first number")
    parser.add_argument("--serve", action="store_true", help="be the worker")
    parser.add_argument("--only", type=int, help="this one case, here")
    args = parser.parse_args()
    if args.only is not None:
        print(name_of(args.only), case(args.only))
    elif args.serve:
        serve(case)
    else:
        code = drive(module, noun, name_of, count=args.count, seconds=args.seconds, first=args.seed)
        sys.exit(code)
