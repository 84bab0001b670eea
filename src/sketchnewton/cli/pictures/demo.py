"""The picture of `skn demo`. Imports matplotlib, so it is imported only to draw."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

if TYPE_CHECKING:
    from sketchnewton.cli.commands.demo import Best

__all__ = ["draw"]

# Okabe and Ito's colours, which the colour-blind tell apart; the first-order methods in the quieter ones.
_STYLE = {
    "online gradient": ("#8c8c8c", "s"),
    "AdaGrad": ("#D98200", "D"),
    "sketched Newton": ("#0072B2", "o"),
    "full Newton": ("#009E73", "^"),
}
_INK = "#333333"


def draw(
    path: str, synthetic: Mapping[float, Mapping[str, Best]], real: Mapping[str, Mapping[str, Best]]
) -> None:
    """Write the picture: error against condition number, and error on real data."""
    figure = Figure(figsize=(9.0, 4.4), dpi=200, facecolor="white")
    FigureCanvasAgg(figure)
    left = figure.add_axes((0.06, 0.125, 0.48, 0.755))
    right = figure.add_axes((0.745, 0.125, 0.25, 0.755))
    _lines(left, synthetic)
    _bars(right, real)
    figure.savefig(path)


def _lines(axes: Axes, results: Mapping[float, Mapping[str, Best]]) -> None:
    numbers = sorted(results)
    first, last = numbers[0], numbers[-1]
    ends = {}
    for method, (colour, marker) in _STYLE.items():
        errors = [results[number][method].error for number in numbers]
        axes.plot(numbers, errors, color=colour, marker=marker, markersize=6.5, linewidth=2.4, clip_on=False)
        ends[method] = errors[-1]
    top = 1.12 * max(best.error for result in results.values() for best in result.values())
    for method, height in _apart(ends, 0.062 * top).items():
        _note(axes, method, (last, height), _STYLE[method][0], fontsize=11.5, fontweight="bold")
    axes.set_xlim(first - 0.04 * (last - first), last)
    axes.set_xticks(numbers)
    axes.set_ylim(0.0, top)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_xlabel("condition number of the data", fontsize=11, color=_INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    _title(axes, "Mistakes in one pass over stretched data")


def _bars(axes: Axes, results: Mapping[str, Mapping[str, Best]]) -> None:
    for at, (name, errors) in enumerate(results.items()):
        middle = -1.35 * at
        axes.text(0.0, middle + 0.56, name, fontsize=11, color=_INK, va="center")
        for offset, (method, (colour, _)) in enumerate(_STYLE.items()):
            error, height = errors[method].error, middle - 0.22 * (offset - 1.5)
            axes.barh(height, error, height=0.19, color=colour)
            _note(axes, f"{error:.1%}", (error, height), _INK, fontsize=10.5)
    axes.set_xlim(0.0, 1.32 * max(best.error for result in results.values() for best in result.values()))
    axes.set_ylim(-1.35 * (len(results) - 1) - 0.5, 0.72)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    _title(axes, "569 cancer biopsies")


def _note(axes: Axes, words: str, point: tuple[float, float], colour: str, **font: Any) -> None:
    """Words to the right of a point."""
    axes.annotate(words, point, (8, 0), textcoords="offset points", va="center", color=colour, **font)


def _title(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=12.5, fontweight="bold", color=_INK, pad=14)
    axes.tick_params(colors=_INK, labelsize=10.5, length=0)
    axes.set_axisbelow(True)


def _apart(heights: Mapping[str, float], gap: float) -> dict[str, float]:
    """The heights, moved apart so that neighbouring labels do not overlap."""
    order = sorted(heights, key=lambda name: heights[name])
    placed = dict(heights)
    for _ in range(20):
        for lower, upper in itertools.pairwise(order):
            overlap = max(0.0, gap - (placed[upper] - placed[lower]))
            placed[lower] -= overlap / 2
            placed[upper] += overlap / 2
    return placed
