"""What to do about a cell that is not of its column's kind."""

from __future__ import annotations

from sketchnewton.features.columns import NUMBER, Columns
from sketchnewton.features.kinds import EXPECTED

__all__ = ["advice"]

LABEL_ADVICE = " (labels that are texts are classes: --classes a,b)"

PYTHON_LABEL_ADVICE = " (labels that are texts are classes: target=Signs(names=[…]) or Classes(names=[…]))"


def advice(
    expected: str, column: str, columns: Columns, *, label: bool = False, in_memory: bool = False
) -> str:
    """What to do about a column that has other cells than its first rows had, or about the label.

    Who has the table in memory writes Python; others have options. What a model has learned of a column cannot be
    changed any more.
    """
    if label:
        text = PYTHON_LABEL_ADVICE if in_memory else LABEL_ADVICE
        return text if expected == EXPECTED[NUMBER] else ""
    if expected not in EXPECTED.values():
        return ""
    learned = dict(columns.kinds).get(column)
    if learned is not None:
        return f" (the model has learned it as a {learned})"
    cells = "text" if expected == EXPECTED[NUMBER] else "other cells"
    what = f"columns=Columns(categorical=({column!r},))" if in_memory else f"--categorical {column}"
    return f" ({cells} in such a column: {what})"
