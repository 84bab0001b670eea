"""Runs experiments: jobs on all cores, results kept by content, so that an interrupted run resumes.

An experiment declares jobs, each a function of a `measure.py` with plain arguments, and turns their results into
tables and figures. To add one: a file in the folder of its paper with a tuple `EXPERIMENTS`, named in
`catalogue.py`; what it computes goes into the `measure.py` beside it, so that a change of the presentation leaves
the results that are kept valid.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

Result = Any
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Job:
    """One computation: `module:function` and its arguments, which JSON can hold."""

    function: str
    arguments: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]


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
    curves: dict[str, tuple[Sequence[float], Sequence[float]]]
    log_x: bool = False
    log_y: bool = False
    points: bool = False
    """No lines between the points, and a diagonal where both coordinates are equal."""
    bars: bool = False
    """A bar for the last value of each curve."""


@dataclass
class Outcome:
    """What an experiment shows."""

    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    verdict: str = ""
    missing: list[str] = field(default_factory=list)
    seconds: float = 0.0
    """Processor time of all jobs, those whose results were kept from an earlier run included."""
    jobs: int = 0
    failed: bool = False


Results = list[tuple[Job, Result]]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper."""

    name: str
    paper: str
    title: str
    jobs: Callable[[Path, bool], tuple[list[Job], list[str]]]
    """Jobs, and what is missing, given the data folder and whether the run is a quick one."""
    outcome: Callable[[Results], Outcome]
    protocol: str = ""
    shows_published: bool = False
    """Without any data, too, there is something to show: `outcome` then gets no results."""


@cache
def package_digest() -> str:
    """Of the package as it is installed."""
    import sketchnewton

    folder = Path(sketchnewton.__file__).parent
    paths = (path for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".so", ".pyd"))
    return _digest(path.read_bytes() for path in paths)


@cache
def module_digest(module: str) -> str:
    """Of a module of the experiments and of those that it imports."""
    found: dict[str, bytes] = {}

    def visit(name: str) -> None:
        path = ROOT / Path(*name.split(".")).with_suffix(".py")
        if name in found or not path.is_file():
            return
        found[name] = path.read_bytes()
        for node in ast.walk(ast.parse(found[name])):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("experiments"):
                for inner in (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)):
                    visit(inner)

    visit(module)
    return _digest(found[name] for name in sorted(found))


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


class Runner:
    """Jobs on `workers` processes, with results kept in a folder; `report` is told of the progress."""

    def __init__(self, cache: Path, workers: int, report: Callable[[str], None]) -> None:
        self._cache = cache
        self._workers = workers
        self._report = report
        cache.mkdir(parents=True, exist_ok=True)

    def run(self, experiments: Sequence[Experiment], folder: Path, quick: bool) -> list[Outcome]:
        """The outcomes of the experiments. One that fails says so, and the others go on."""
        plans = [experiment.jobs(folder, quick) for experiment in experiments]
        kept: dict[str, Any] = {}
        waiting: dict[str, tuple[str, Job]] = {}  # by key, so that a job two experiments share is run once
        for experiment, (jobs, _) in zip(experiments, plans, strict=True):
            for job in jobs:
                key = self._key(job)
                if (found := self._load(key)) is not None:
                    kept[key] = found
                else:
                    waiting.setdefault(key, (experiment.name, job))
        errors = self._compute(waiting, kept)
        return [
            self._outcome(experiment, jobs, missing, kept, errors)
            for experiment, (jobs, missing) in zip(experiments, plans, strict=True)
        ]

    def _outcome(
        self,
        experiment: Experiment,
        jobs: list[Job],
        missing: list[str],
        kept: dict[str, Any],
        errors: dict[str, str],
    ) -> Outcome:
        keys = [self._key(job) for job in jobs]
        if broken := sorted({errors[key] for key in keys if key in errors}):
            outcome = Outcome(verdict=f"failed: {broken[0]}", failed=True)
        else:
            results = [(job, kept[key]["result"]) for job, key in zip(jobs, keys, strict=True)]
            outcome = experiment.outcome(results) if results or experiment.shows_published else Outcome()
            if not results:
                outcome.verdict = "not run: data missing"
        outcome.missing += missing
        outcome.jobs = len(jobs)
        outcome.seconds = sum(kept[key]["seconds"] for key in keys if key in kept)
        return outcome

    def _compute(self, waiting: dict[str, tuple[str, Job]], kept: dict[str, Any]) -> dict[str, str]:
        """Run what waits; returns what went wrong, by key."""
        errors: dict[str, str] = {}
        if not waiting:
            return errors
        # Workers start afresh, so that these are in force when they load NumPy.
        os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        begun = time.perf_counter()
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self._workers, context) as pool:
            futures = {
                pool.submit(call, job.function, job.arguments): key for key, (_, job) in waiting.items()
            }
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    key = futures[future]
                    try:
                        kept[key] = future.result()
                        self._save(key, kept[key])
                    except BrokenExecutor:
                        raise
                    except Exception as error:  # whatever befell a job, the others go on
                        errors[key] = f"{type(error).__name__}: {error}"
                    self._show(waiting[key][0], done, len(waiting), time.perf_counter() - begun)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        self._report("\n")
        return errors

    def _show(self, name: str, done: int, total: int, seconds: float) -> None:
        bar = "#" * (24 * done // total)
        left = seconds / done * (total - done)
        wait = f"{left / 60:.0f} min" if left > 90 else f"{left:.0f} s"
        self._report(f"\r[{bar:.<24}] {done} of {total} jobs, about {wait} left, {name:<12}")

    def _key(self, job: Job) -> str:
        module = job.function.partition(":")[0]
        text = json.dumps(
            [job.function, job.arguments, module_digest(module), package_digest()], sort_keys=True
        )
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def _load(self, key: str) -> Any:
        try:
            return json.loads((self._cache / f"{key}.json").read_text())
        except (OSError, ValueError):
            return None

    def _save(self, key: str, content: Any) -> None:
        path = self._cache / f"{key}.json"
        temporary = path.with_suffix(f".{os.getpid()}.part")
        temporary.write_text(json.dumps(content))
        temporary.rename(path)


def call(function: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a job in this process: its result, and the processor time it took."""
    module, name = function.split(":")
    begun = time.process_time()
    result = getattr(importlib.import_module(module), name)(**arguments)
    return {"result": result, "seconds": time.process_time() - begun}
