"""The picture of `skn bench`. Imports matplotlib, so it is imported only to draw."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from sketchnewton.cli.bench import Contender

__all__ = ["draw"]

_INK, _BLUE, _GREY = "#333333", "#0072B2", "#8c8c8c"
_LONGEST = 60  # characters of a title


def draw(path: str, name: str, rows: int, contenders: list[Contender]) -> None:
    """Loss against time: each learner's best value as a dot, the rest of its grid as a line from it."""
    ran = [c for c in contenders if c.skipped is None and math.isfinite(c.scores[c.best].mean_loss)]
    figure = Figure(figsize=(8.0, 4.8), dpi=160, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    lowest = min((c.scores[c.best].mean_loss for c in ran), default=0.0)
    for contender in ran:
        best = contender.best
        seconds, loss = contender.seconds[best], contender.scores[best].mean_loss
        colour = _BLUE if loss == lowest else _GREY
        others = [s.mean_loss for s in contender.scores.values() if math.isfinite(s.mean_loss)]
        axes.plot([seconds, seconds], [loss, max(others)], color=colour, linewidth=1.2, alpha=0.5)
        axes.plot([seconds], [loss], marker="o", color=colour, markersize=8)
        axes.annotate(
            contender.name, (seconds, loss), xytext=(8, -3), textcoords="offset points", color=colour, fontsize=10
        )
    axes.set_xscale("log")
    axes.margins(x=0.2)
    axes.set_xlabel(f"seconds of learning for {rows:,} rows", color=_INK)
    axes.set_ylabel("progressive loss: dot best, line up to worst of the grid", color=_INK)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    title = name if len(name) <= _LONGEST else "…" + name[1 - _LONGEST :]
    axes.set_title(title, loc="left", color=_INK, fontsize=11, parse_math=False)
    figure.savefig(path)
