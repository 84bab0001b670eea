"""Progressive validation, metrics and regret."""

from __future__ import annotations

from sketchnewton.core.hints import TYPE_CHECKING, Any
from sketchnewton.evaluation.progressive import (
    ClassScore,
    Learner,
    ProgressiveScore,
    Report,
    SoftmaxScore,
    last_row,
    progressive,
    score_for,
)

if TYPE_CHECKING:
    from sketchnewton.evaluation.regret import best_fixed, regret, regret_bound

__all__ = [
    "ClassScore",
    "Learner",
    "ProgressiveScore",
    "Report",
    "SoftmaxScore",
    "best_fixed",
    "last_row",
    "progressive",
    "regret",
    "regret_bound",
    "score_for",
]


def __getattr__(name: str) -> Any:
    # Imported when asked for: it knows the learners, which a command that only counts losses need not load.
    if name not in ("best_fixed", "regret", "regret_bound"):
        raise AttributeError(f"module 'sketchnewton.evaluation' has no attribute {name!r}")
    import importlib

    module = importlib.import_module("sketchnewton.evaluation.regret")
    for function in ("best_fixed", "regret", "regret_bound"):  # a function replaces the module of its name
        globals()[function] = getattr(module, function)
    return globals()[name]
