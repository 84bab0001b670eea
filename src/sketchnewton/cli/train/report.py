"""What `skn train` says in the end, for people and for machines, and what it would do."""

from __future__ import annotations

import math
import signal

from sketchnewton import __version__
from sketchnewton.cli.io.console import amount, counted, number, percent
from sketchnewton.cli.train.learner import describe
from sketchnewton.core.hints import TYPE_CHECKING
from sketchnewton.core.types import Header
from sketchnewton.evaluation import ProgressiveScore

if TYPE_CHECKING:
    from sketchnewton.cli.train.training import Training

__all__ = ["dry_run", "report", "scored"]


def report(training: Training) -> None:
    """The closing summary."""
    facts = summary(training)
    args, rows = training.args, training.observed.rows
    if args.json:
        import json  # slow to import, and seldom asked for

        print(json.dumps(facts))
    line = training.console.line
    alpha = "" if facts["alpha"] is None else f", alpha {facts['alpha']:.4g}"
    stopped = "" if facts["stopped_by"] is None else f"stopped by {facts['stopped_by']}: "
    line(
        f"{stopped}{counted(rows, 'row')} in {training.seconds:.2f} s "
        f"({amount(facts['rows_per_second'])} rows/s), {counted(facts['features'], 'feature')}{alpha}"
    )
    if rows:
        line(scored("progressive", training.score) + _measured(training))
        if len(training.scores) > 1:
            line(scored(f"pass {len(training.scores)}", training.scores[-1]))
    if training.tested is not None:
        line(f"{scored('test', training.tested)} on {counted(training.tested.rows, 'row')}")
    if args.model is not None:
        line(f"model saved to {args.model}" if training.saving.done else f"{args.model} was not written")
        if facts["stopped_by"] is not None and training.saving.resumable:
            line(f"to finish the run: the same command with --resume {args.model}")


def summary(training: Training) -> Header:
    """All that is known after a run."""
    args, learner, score, tested = training.args, training.learner, training.score, training.tested
    rows, held = training.observed.rows, training.held_out
    return {
        "version": __version__,
        "data": args.data[0] if len(args.data) == 1 else args.data,
        "rows": rows,
        "skipped": training.data.skipped + training.data.unlearnable,
        "passes": len(training.scores),
        "features": learner.features_seen,
        "largest_index": learner.dimension - 1 if learner.dimension else None,
        "progressive_loss": _loss(score),
        "error_rate": score.error_rate,
        "metric": None if training.metric is None else {training.metric.name: training.metric.value()},
        "last_pass_loss": _loss(training.scores[-1]) if len(training.scores) > 1 else None,
        "holdout_rows": None if held is None else held.rows,
        "holdout_loss": None if held is None else _loss(held),
        "holdout_error_rate": None if held is None else held.error_rate,
        "test": args.test,
        "test_rows": None if tested is None else tested.rows,
        "test_loss": None if tested is None else _loss(tested),
        "test_error_rate": None if tested is None else tested.error_rate,
        "seconds": training.seconds,
        "pass_seconds": training.pass_seconds,
        "rows_per_second": rows / training.seconds if training.seconds > 0 else 0.0,
        "cache": training.passes.cache,
        "learner": type(learner).__name__,
        "parameters": learner.params,
        "alpha": learner.alpha_ or None,
        "positive": training.model.target.positive,
        "classes": learner.classes,
        "class_names": training.model.classes,
        "kinds": training.data.kinds,
        "cells_taken_as_missing": training.data.misfits,
        "rows_seen": learner.rows_seen,
        "model": args.model if training.saving.done else None,
        "stopped_by": None if training.stop.signal is None else signal.Signals(training.stop.signal).name,
    }


def dry_run(training: Training) -> None:
    """Say what would be done; read no more than the first rows, and of a pipe nothing."""
    line, data, args = training.console.line, training.data, training.args
    facts: Header = {
        "version": __version__,
        "dry_run": True,
        "data": args.data[0] if len(args.data) == 1 else args.data,
        "files": len(data.paths),
        "passes": training.pass_count,
        "learner": type(training.learner).__name__,
        "parameters": training.learner.params,
        **{name: value or None for name, value in data.way().items()},
        "cache": training.passes.cache,
        "first_rows": None,
        "features_per_row": None,
        "largest_index": None,
    }
    line(f"would learn {data.name}: {counted(len(data.paths), 'file')}, passes: {training.pass_count}")
    line(f"learner: {describe(training.model)}{training.whence()}")
    for name, value in data.way().items():
        if value and name != "labels":  # the learner's line has them
            line(f"{name.replace('_', ' ')}: {value}")
    if training.passes.cache is not None:
        line(f"cache: {training.passes.cache}")
    if data.identity() is not None:
        rows = data.fitted(data.read(training.console, training.stop), training.model.target)
        if (batch := next(rows, None)) is not None:
            width = len(batch.indices) / len(batch)
            facts |= {
                "first_rows": len(batch),
                "features_per_row": width,
                "largest_index": batch.shape[1] - 1,
            }
            line(
                f"the first {counted(len(batch), 'row')}: {width:.1f} features each, "
                f"largest index {batch.shape[1] - 1}"
            )
        rows.close()
    for option in ("model", "predictions", "readable"):
        facts[option] = path = getattr(args, option)
        if path is not None:
            line(f"--{option} would write {path}")
    if args.json:
        import json  # slow to import, and seldom asked for

        print(json.dumps(facts))


def scored(name: str, score: ProgressiveScore) -> str:
    """A score as a line."""
    error = "" if score.error_rate is None else f", error {percent(score.error_rate)}"
    return f"{name} loss {number(score.mean_loss)}{error}"


def _measured(training: Training) -> str:
    if training.metric is None or len(training.scores) > 1:
        return ""
    return f", {training.metric.name} {training.metric.shown}"


def _loss(score: ProgressiveScore) -> float | None:
    return score.mean_loss if math.isfinite(score.mean_loss) else None
