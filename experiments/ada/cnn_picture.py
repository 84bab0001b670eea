"""The picture of cnn.py: training loss and test accuracy against batches, mean and range over the seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

# Okabe and Ito's colours, which the colour-blind tell apart.
COLOURS = ("#D98200", "#56B4E9", "#0072B2", "#CC79A7", "#8c8c8c", "#009E73", "#333333")
WINDOW = 10  # batches


def draw(path: str, results: dict[str, list[Any]]) -> None:
    figure = Figure(figsize=(9.0, 3.8), dpi=130, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for colour, every in zip(COLOURS, results.values(), strict=False):
        runs = [run for run in every if not run.diverged]
        if not runs:
            continue
        losses = np.array([np.convolve(run.losses, np.ones(WINDOW) / WINDOW, "valid") for run in runs])
        _curve(left, WINDOW + np.arange(losses.shape[1]), losses, colour, str(runs[0].job))
        accuracies = np.array([list(run.accuracies.values()) for run in runs])
        _curve(right, np.array(list(runs[0].accuracies)), accuracies, colour, str(runs[0].job))
    left.set_title(f"training loss (mean of {WINDOW} batches)", fontsize=11)
    left.set_yscale("log")
    for axis_format in (left.yaxis.set_major_formatter, left.yaxis.set_minor_formatter):
        axis_format("{x:g}")
    right.set_title("test accuracy (at the end on all test rows)", fontsize=11)
    right.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    right.legend(frameon=False, loc="lower right")
    for axes in (left, right):
        axes.set_xlabel("batches of 128")
        axes.grid(color="#e6e6e6", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def _curve(axes: Any, x: Any, runs: Any, colour: str, label: str) -> None:
    axes.plot(x, runs.mean(0), color=colour, linewidth=2.0, label=label)
    axes.fill_between(x, runs.min(0), runs.max(0), color=colour, alpha=0.18, linewidth=0)
