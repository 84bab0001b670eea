"""The lines of the progressive table."""

from __future__ import annotations

from sketchnewton.cli.io.console import amount, number, percent
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
    "leading": 13,  # of a bank alone
}


def header(*, bank: bool) -> str:
    """The names of the columns."""
    return _line(list(_COLUMNS)[: None if bank else -1])


def row(report: Report, rows_per_second: float, leading: str | None) -> str:
    """A report as a line; `leading` is the name of a bank's leading expert."""
    return _line(
        [
            amount(report.examples),
            number(report.mean_loss),
            number(report.loss_since_last),
            percent(report.error_rate),
            f"{report.label:.4g}",
            f"{report.prediction:.4g}",
            amount(rows_per_second),
            *([] if leading is None else [leading]),
        ]
    )


def _line(cells: list[str]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, _COLUMNS.values(), strict=False))
