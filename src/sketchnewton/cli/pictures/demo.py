"""The picture of `skn demo`. Imports matplotlib, so it is imported only to draw."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from sketchnewton.core.hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sketchnewton.cli.commands.demo import Best

__all__ = ["draw"]

# Okabe and Ito's colours, which the colour-blind tell apart; the default in the strongest.
_STYLE = {
    "sketchnewton": ("#0072B2", "o"),
    "online gradient": ("#9a9a9a", "s"),
    "AdaGrad": ("#D98200", "D"),
    "sketched Newton": ("#56B4E9", "v"),
    "full Newton": ("#009E73", "^"),
}
_DEFAULT = "sketchnewton"
_INK = "#333333"


def draw(
    path: str, synthetic: Mapping[float, Mapping[str, Best]], real: Mapping[str, Mapping[str, Best]]
) -> None:
    """Write the picture: error against condition number, and error on real data."""
    figure = Figure(figsize=(10.0, 4.9), dpi=160, facecolor="white")
    FigureCanvasAgg(figure)
    left = figure.add_axes((0.055, 0.12, 0.385, 0.70))
    right = figure.add_axes((0.685, 0.06, 0.31, 0.76))
    _lines(left, synthetic)
    _bars(right, real)
    figure.text(
        0.012,
        0.945,
        "Mistakes in one pass: sketchnewton with nothing tuned, others with their best learning rate",
        fontsize=13,
        fontweight="bold",
        color=_INK,
    )
    figure.savefig(path)


def _lines(axes: Axes, results: Mapping[float, Mapping[str, Best]]) -> None:
    numbers = sorted(results)
    first, last = numbers[0], numbers[-1]
    ends = {}
    for method, (colour, marker) in _STYLE.items():
        errors = [results[number][method].error for number in numbers]
        width, order = (3.6, 3) if method == _DEFAULT else (1.8, 2)
        axes.plot(
            numbers,
            errors,
            color=colour,
            marker=marker,
            markersize=6,
            linewidth=width,
            zorder=order,
            clip_on=False,
        )
        ends[method] = errors[-1]
    top = 1.12 * max(best.error for result in results.values() for best in result.values())
    for method, height in _apart(ends, 0.068 * top).items():
        words = f"{method}, untuned" if method == _DEFAULT else f"{method}, tuned"
        weight = "bold" if method == _DEFAULT else "normal"
        _note(axes, words, (last, height), _STYLE[method][0], fontsize=10.5, fontweight=weight)
    axes.set_xlim(first - 0.04 * (last - first), last)
    axes.set_xticks(numbers)
    axes.set_ylim(0.0, top)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_xlabel("condition number of the data", fontsize=10.5, color=_INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    _title(axes, "Data stretched along ten directions")


def _bars(axes: Axes, results: Mapping[str, Mapping[str, Best]]) -> None:
    step = 0.19 * len(_STYLE) + 0.45
    for at, (name, errors) in enumerate(results.items()):
        first = -step * at
        axes.text(0.0, first + 0.24, name, fontsize=10.5, color=_INK, va="center")
        for offset, (method, (colour, _)) in enumerate(_STYLE.items()):
            error, height = errors[method].error, first - 0.19 * offset
            axes.barh(height, error, height=0.16, color=colour)
            weight = "bold" if method == _DEFAULT else "normal"
            _note(axes, f"{error:.1%}", (error, height), _INK, fontsize=8.5, fontweight=weight)
    axes.set_xlim(0.0, 1.2 * max(best.error for result in results.values() for best in result.values()))
    axes.set_ylim(-step * len(results) + 0.45, 0.4)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    _title(axes, "Real data")


def _note(axes: Axes, words: str, point: tuple[float, float], colour: str, **font: Any) -> None:
    """Words to the right of a point."""
    axes.annotate(words, point, (8, 0), textcoords="offset points", va="center", color=colour, **font)


def _title(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11.5, color=_INK, pad=10)
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
