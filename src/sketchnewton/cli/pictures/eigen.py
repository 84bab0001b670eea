"""The pictures of `skn eigen`. Imports matplotlib, so it is imported only to draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sketchnewton.cli.pictures.eigen_games import Growth, Score
from sketchnewton.cli.pictures.saving import save

__all__ = ["curves", "table_1"]

# Okabe and Ito's colours, which the colour-blind tell apart.
_STYLE = {
    "multiplicative weights": ("#009E73", "^"),
    "leader, uniform noise": ("#E69F00", "s"),
    "leader, exponential noise": ("#D55E00", "D"),
    "Frank-Wolfe": ("#CC79A7", "v"),
    "leader, rank-one noise": ("#0072B2", "o"),
    "epoch power method": ("#56B4E9", "P"),
    "Oja": ("#8c8c8c", "X"),
    "leader, no noise": ("#333333", "*"),
}
_INK = "#333333"


def curves(path: str, title: str, scores: Sequence[Score]) -> None:
    """Mean regret after each round, a line per method."""
    figure = Figure(figsize=(8.0, 4.6), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for score in scores:
        colour, _ = _STYLE[score.method.name]
        axes.plot(*score.curve, color=colour, linewidth=2.2, label=score.method.name)
    _finish(axes, title, "rounds", "regret")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), labelcolor=_INK)
    save(figure, path)


def table_1(path: str, in_rounds: Sequence[Growth], in_n: Sequence[Growth]) -> None:
    """Regret against T and against n on logarithmic axes; a straight line's slope is the exponent."""
    figure = Figure(figsize=(10.0, 4.6), dpi=110, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("How the regret grows", x=0.01, ha="left", fontsize=13.5, fontweight="bold", color=_INK)
    left, right = figure.subplots(1, 2)
    ends = np.array(in_rounds[0].sizes)[[0, -1]]
    left.loglog(ends, 0.45 * np.sqrt(ends), color="#bbbbbb", linestyle="--")
    left.annotate(
        "√T", (ends[-1], 0.45 * np.sqrt(ends[-1])), (5, 0), textcoords="offset points", color="#888888"
    )
    for axes, growths in ((left, in_rounds), (right, in_n)):
        for growth in growths:
            if min(growth.regrets) <= 0:  # has no place on a logarithmic axis
                continue
            colour, marker = _STYLE[growth.method.name]
            axes.loglog(
                growth.sizes,
                growth.regrets,
                color=colour,
                marker=marker,
                linewidth=2,
                label=growth.method.name,
            )
        axes.set_xticks(growths[0].sizes, [f"{size:,}" for size in growths[0].sizes])
        axes.minorticks_off()
    _finish(left, "in the number of rounds, n = 10", "T", "mean regret")
    _finish(right, f"in the dimension, T = {in_rounds[0].sizes[1]:,}", "n", "")
    right.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), labelcolor=_INK)
    save(figure, path)


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", color=_INK)
    axes.set_xlabel(x, color=_INK)
    axes.set_ylabel(y, color=_INK)
    axes.grid(color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_INK, length=0)
    axes.spines[["top", "right"]].set_visible(False)
