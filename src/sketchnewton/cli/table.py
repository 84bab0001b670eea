"""The lines of the progressive table."""

from __future__ import annotations

from sketchnewton.cli.console import amount, number, percent
from sketchnewton.evaluation import Report

__all__ = ["header", "row"]

_COLUMNS = {
    "examples": 12,
    "loss so far": 13,
    "since last": 12,
    "error": 9,
    "label": 10,
    "prediction": 12,
    "rows/s": 12,
}


def header() -> str:
    """The names of the columns."""
    return _line(list(_COLUMNS))


def row(report: Report, rows_per_second: float) -> str:
    """A report as a line."""
    return _line(
        [
            amount(report.examples),
            number(report.mean_loss),
            number(report.loss_since_last),
            percent(report.error_rate),
            f"{report.label:.4g}",
            f"{report.prediction:.4g}",
            amount(rows_per_second),
        ]
    )


def _line(cells: list[str]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, _COLUMNS.values(), strict=True))
