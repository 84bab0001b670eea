"""Runs experiments: jobs on all cores, results kept by content, so that an interrupted run resumes.

An experiment declares jobs, each a function of this package with plain arguments, and turns their results into
tables and figures. To add one: a file in the folder of its paper with a function `experiment()`, and a line in
`catalogue.py`.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.data import MissingData

Result = Any


@dataclass(frozen=True)
class Job:
    """One computation: `module:function` and its arguments, which JSON can hold."""

    function: str
    arguments: dict[str, Any]

    def key(self, source: str) -> str:
        """What the result depends on: the call, and the code of its module and of the package."""
        text = json.dumps([self.function, self.arguments, source], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass
class Table:
    """Published and measured values side by side."""

    title: str
    columns: list[str]
    rows: list[list[Any]]
    verdicts: list[str] = field(default_factory=list)
    """One per row, if the table has any: "ok", or what differs."""
    note: str = ""


@dataclass
class Figure:
    """Curves, drawn by the report."""

    title: str
    x: str
    y: str
    curves: dict[str, tuple[list[float], list[float]]]
    log_x: bool = False
    log_y: bool = False
    note: str = ""


@dataclass
class Outcome:
    """What an experiment shows."""

    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    verdict: str = ""
    missing: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper."""

    name: str
    paper: str
    title: str
    jobs: Callable[[Path, bool], tuple[list[Job], list[str]]]
    """Jobs, and what is missing, given the data folder and whether the run is a quick one."""
    outcome: Callable[[list[tuple[Job, Result]]], Outcome]
    protocol: str = ""


def source_digest(root: Path) -> str:
    """Of everything a result may depend on: the package as it is installed, and the experiments."""
    import sketchnewton  # noqa: PLC0415

    digest = hashlib.sha256()
    for folder in (Path(sketchnewton.__file__).parent, root / "experiments"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".so", ".pyd") and path.name not in ("report.py", "catalogue.py"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


class Runner:
    """Jobs on `workers` processes, with results cached in a folder."""

    def __init__(self, cache: Path, workers: int, source: str, report: Callable[[str], None]) -> None:
        self._cache = cache
        self._workers = workers
        self._source = source
        self._report = report
        cache.mkdir(parents=True, exist_ok=True)

    def run(self, experiment: Experiment, folder: Path, quick: bool) -> Outcome:
        """The outcome of one experiment."""
        start = time.perf_counter()
        jobs, missing = experiment.jobs(folder, quick)
        results: dict[int, Result] = {}
        waiting: list[int] = []
        for place, job in enumerate(jobs):
            found = self._load(job)
            if found is None:
                waiting.append(place)
            else:
                results[place] = found[0]
        self._compute(experiment.name, jobs, waiting, results)
        outcome = experiment.outcome([(jobs[i], results[i]) for i in sorted(results)])
        outcome.missing += missing
        outcome.seconds = time.perf_counter() - start
        return outcome

    def _compute(
        self, name: str, jobs: Sequence[Job], waiting: list[int], results: dict[int, Result]
    ) -> None:
        if not waiting:
            return
        start, done = time.perf_counter(), 0
        with ProcessPoolExecutor(self._workers, initializer=_quiet_worker) as pool:
            futures = {
                pool.submit(call, jobs[place].function, jobs[place].arguments): place for place in waiting
            }
            try:
                for future in as_completed(futures):
                    place = futures[future]
                    try:
                        results[place] = future.result()
                    except MissingData as error:
                        self._report(f"{name}: {error}")
                        continue
                    self._save(jobs[place], results[place])
                    done += 1
                    left = (time.perf_counter() - start) / done * (len(waiting) - done)
                    self._report(f"\r{name}: {done} of {len(waiting)} jobs, about {left:.0f} s left ")
            except BaseException:
                for future in futures:
                    future.cancel()
                raise
        self._report(f"\r{name}: {done} jobs in {time.perf_counter() - start:.0f} s                    \n")

    def _path(self, job: Job) -> Path:
        return self._cache / f"{job.key(self._source)}.json"

    def _load(self, job: Job) -> tuple[Result] | None:
        try:
            return (json.loads(self._path(job).read_text()),)
        except (OSError, ValueError):
            return None

    def _save(self, job: Job, result: Result) -> None:
        path = self._path(job)
        temporary = path.with_suffix(f".{os.getpid()}.part")
        temporary.write_text(json.dumps(result))
        temporary.rename(path)


def _quiet_worker() -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ["OMP_NUM_THREADS"] = "1"


def call(function: str, arguments: dict[str, Any]) -> Result:
    """Run a job in this process."""
    module, name = function.split(":")
    root = str(Path(__file__).resolve().parent.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    return getattr(importlib.import_module(module), name)(**arguments)
