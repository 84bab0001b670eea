"""The lines of the progressive table."""

from __future__ import annotations

from sketchnewton.cli.io.console import amount, number, percent, printable
from sketchnewton.evaluation import Report
from sketchnewton.model.target import Target

__all__ = ["header", "row"]

_COLUMNS = {
    "examples": 12,
    "loss so far": 13,
    "since last": 12,
    "error": 9,
    "label": 10,
    "prediction": 12,
    "rows/s": 12,
    "leading": 13,  # of a bank alone
}


def header(*, bank: bool, metric: str | None = None) -> str:
    """The names of the columns; a metric's is the first."""
    return _first(metric) + _line(list(_COLUMNS)[: None if bank else -1])


def row(
    report: Report, target: Target, rows_per_second: float, leading: str | None, metric: str | None = None
) -> str:
    """A report as a line; `leading` is the name of a bank's leading expert, `metric` the value of a metric."""
    several = target.outputs is not None
    return _first(metric) + _line(
        [
            amount(report.examples),
            number(report.mean_loss),
            number(report.loss_since_last),
            percent(report.error_rate),
            _cut(target.shown(report.label), _COLUMNS["label"]),
            _cut(target.shown(report.prediction), _COLUMNS["prediction"])
            if several
            else f"{report.prediction:.4g}",
            amount(rows_per_second),
            *([] if leading is None else [leading]),
        ]
    )


def _cut(name: str, width: int) -> str:
    """A class by as much of its name as there is room for."""
    name = printable(name)
    return name if len(name) < width else name[: width - 2] + "…"


def _first(metric: str | None) -> str:
    return "" if metric is None else f"{metric:>10}"


def _line(cells: list[str]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, _COLUMNS.values(), strict=False))
