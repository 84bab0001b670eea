"""`skn sketch`: the rows of a stream in a small matrix, with a certified error."""

from __future__ import annotations

import argparse
import inspect
import time
from typing import Any

from sketchnewton import sketches
from sketchnewton.cli.io.console import Console, amount
from sketchnewton.cli.io.data_source import Data
from sketchnewton.cli.io.errors import usage_error
from sketchnewton.cli.io.files import check_model_place
from sketchnewton.cli.io.signals import GracefulStop
from sketchnewton.cli.pictures.spectrum import check_plot, draw, show

__all__ = ["run"]

_KINDS: dict[str, type[sketches.Sketch]] = {
    "fd": sketches.FrequentDirections,
    "rfd": sketches.RobustFrequentDirections,
    "pfd": sketches.ParameterizedFrequentDirections,
    "cfd": sketches.CompensativeFrequentDirections,
    "greedy": sketches.GreedyDirections,
    "rp": sketches.RandomProjection,
    "oja": sketches.OjaSketch,
    "exact": sketches.ExactCovariance,
}
_OPTIONS = {
    "sketch_size": "--size",
    "target_error": "--target-error",
    "beta": "--beta",
    "decay": "--decay",
    "window": "--window",
    "buffer_size": "--buffer-size",
    "random_state": "--seed",
    "dtype": "--dtype",
}


def run(args: argparse.Namespace) -> int:
    """Sketch as `args` say; a signal ends the reading, and what was read is sketched and saved."""
    sketch = _make(args)
    data = Data(args.data, args)
    data.check()
    check_plot(args.plot)
    if args.output is not None:
        check_model_place(args.output)
    console = Console(args.quiet)
    start = time.perf_counter()
    with GracefulStop() as stop:
        for batch in data.read(console, stop):
            # Later batches may have features that no row had so far, or lack some.
            sketch.widen(max(sketch.n_features, batch.shape[1]))
            sketch.update(batch.replace(columns=sketch.n_features))
        seconds = time.perf_counter() - start
        stopped = "" if stop.signal is None else "stopped: "
        console.line(f"{stopped}{amount(sketch.rows_seen)} rows in {seconds:.2f} s")
        data.report_skipped(console)
        deliver(args, data.name, sketch, console)
    return stop.exit_code


def deliver(args: argparse.Namespace, name: str, sketch: sketches.Sketch, console: Console) -> None:
    """Save, draw and print, as `args` say."""
    if args.output is not None:
        sketch.save(args.output)
        console.line(f"sketch saved to {args.output}")
    if args.plot is not None:
        draw(args.plot, name, sketch)
        console.line(f"spectrum drawn in {args.plot}")
    if args.json or not args.quiet:
        show(name, sketch, args.json)


def _make(args: argparse.Namespace) -> sketches.Sketch:
    kind = _KINDS[args.kind]
    given: dict[str, Any] = {name: getattr(args, name) for name in _OPTIONS if hasattr(args, name)}
    known = {name for base in kind.__mro__[:-1] for name in inspect.signature(base).parameters}
    for name in given:
        if name not in known:
            raise usage_error(f"{_OPTIONS[name]} means nothing to --kind {args.kind}")
    if "sketch_size" in known and "sketch_size" not in given and "target_error" not in given:
        given["sketch_size"] = 50
    try:
        return kind(**given)
    except ValueError as error:
        raise usage_error(str(error)) from None
