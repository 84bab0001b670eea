"""The picture of `skn test`. Imports matplotlib, so it is imported only to draw."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sketchnewton.cli.pictures.saving import save
from sketchnewton.core.types import Header, np
from sketchnewton.evaluation.metrics import Answers

__all__ = ["draw"]

_INK, _BLUE, _GREY = "#333333", "#0072B2", "#8c8c8c"
_LONGEST = 60  # characters of a title
_POINTS = 5000  # that a scatter plot can show


def draw(path: str, name: str, facts: Header, answers: Answers) -> None:
    """Calibration of probabilities; of numbers, predictions against labels; of classes, the confusion matrix."""
    figure = Figure(figsize=(5.5, 5.0), dpi=160, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    if facts["calibration"]:
        _calibration(axes, facts["calibration"])
    elif facts["confusion"] is not None:
        _confusion(axes, facts)
    else:
        _scatter(axes, answers)
    axes.spines[["top", "right"]].set_visible(False)
    title = name if len(name) <= _LONGEST else "…" + name[1 - _LONGEST :]
    axes.set_title(title, loc="left", color=_INK, fontsize=11, parse_math=False)
    save(figure, path)


def _calibration(axes: Axes, bins: list[Header]) -> None:
    axes.plot([0, 1], [0, 1], color=_GREY, linewidth=1, linestyle="--")
    predicted, observed = ([row[key] for row in bins] for key in ("predicted", "observed"))
    weight = np.array([row["weight"] for row in bins])
    axes.plot(predicted, observed, color=_BLUE, linewidth=1.5)
    axes.scatter(predicted, observed, s=15 + 150 * weight / weight.max(), color=_BLUE)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xlabel("predicted probability (dots: as large as their share of rows)", color=_INK)
    axes.set_ylabel("observed share", color=_INK)


def _confusion(axes: Axes, facts: Header) -> None:
    table = np.array(facts["confusion"])
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    names = [str(name) for name in facts["classes"]]
    axes.set_xticks(range(len(names)), names, rotation=90 if len(names) > 10 else 0, parse_math=False)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_xlabel("prediction", color=_INK)
    axes.set_ylabel("label (dark: a large share of its rows)", color=_INK)


def _scatter(axes: Axes, answers: Answers) -> None:
    step = max(1, len(answers.labels) // _POINTS)
    labels, predictions = answers.labels[::step], answers.predictions[::step]
    ends = [float(min(labels.min(), predictions.min())), float(max(labels.max(), predictions.max()))]
    axes.plot(ends, ends, color=_GREY, linewidth=1, linestyle="--")
    axes.scatter(predictions, labels, s=6, alpha=0.4, color=_BLUE, linewidths=0)
    axes.set_xlabel("prediction", color=_INK)
    axes.set_ylabel("label", color=_INK)
