"""The picture of `skn bench`. Imports matplotlib, so it is imported only to draw."""

from __future__ import annotations

import math

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sketchnewton.core.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from sketchnewton.cli.commands.bench import Contender

__all__ = ["draw"]

_INK, _BLUE, _GREY = "#333333", "#0072B2", "#8c8c8c"
_LONGEST = 60  # characters of a title


def draw(path: str, name: str, rows: int, contenders: list[Contender]) -> None:
    """Left the loss, as a dot for each learner's best value and a line to its worst; right the time."""
    ran = [c for c in contenders if c.skipped is None and math.isfinite(c.scores[c.best].mean_loss)]
    ran.sort(key=lambda c: -c.scores[c.best].mean_loss)
    figure = Figure(figsize=(9.0, 1.6 + 0.42 * len(ran)), dpi=160, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for place, contender in enumerate(ran):
        best = contender.best
        loss, seconds = contender.scores[best].mean_loss, contender.seconds[best]
        colour = _BLUE if place == len(ran) - 1 else _GREY
        grid = [score.mean_loss for score in contender.scores.values() if math.isfinite(score.mean_loss)]
        left.plot([loss, max(grid)], [place, place], color=colour, linewidth=2, alpha=0.4)
        left.plot([loss], [place], marker="o", color=colour, markersize=8)
        right.barh(place, seconds, color=colour, height=0.5)
        right.annotate(
            f" {seconds:.2g} s", (seconds, place), va="center", color=_INK, fontsize=9, annotation_clip=False
        )
    left.set_yticks(range(len(ran)), [f"{c.name} {c.setting(c.best)}".strip() for c in ran])
    left.set_xlabel("progressive loss: best of the grid, line to the worst", color=_INK)
    right.set_xlabel(f"seconds of learning for {rows:,} rows", color=_INK)
    right.margins(x=0.15)
    for axes in (left, right):
        axes.grid(axis="x", color="#e6e6e6", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(left=False)
        axes.spines[["top", "right", "left"]].set_visible(False)
    title = name if len(name) <= _LONGEST else "…" + name[1 - _LONGEST :]
    left.set_title(title, loc="left", color=_INK, fontsize=11, parse_math=False)
    figure.savefig(path)
