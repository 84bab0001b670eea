"""A sketch as text and as a picture: what it is, how accurate it is, and its spectrum."""

from __future__ import annotations

import argparse
import json
import math
import sys
from types import ModuleType

from sketchnewton.cli.io.console import Console, amount, number, print_page
from sketchnewton.cli.pictures.saving import save
from sketchnewton.core.types import Header
from sketchnewton.sketches import Sketch

__all__ = ["deliver", "show"]

_SHOWN = 20  # singular values printed
_BAR = 30  # cells of the longest bar


def deliver(args: argparse.Namespace, name: str, sketch: Sketch, console: Console) -> None:
    """Save, draw and print, as `args` say."""
    if args.output is not None:
        sketch.save(args.output)
        console.line(f"sketch saved to {args.output}")
    if args.plot is not None:
        _draw(args.plot, name, sketch)
        console.line(f"spectrum drawn in {args.plot}")
    if args.json or not args.quiet:
        show(name, sketch, args.json)


def show(path: str, sketch: Sketch, as_json: bool) -> None:
    """Print the sketch that is called `path`."""
    print_page([json.dumps(_facts(sketch))] if as_json else _page(path, sketch))


def _draw(path: str, name: str, sketch: Sketch) -> None:
    """Draw the singular values and the share of ‖A‖²_F that they explain."""
    plt = _pyplot()
    values, explained = sketch.singular_values_, sketch.explained_variance_ratio_.cumsum()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    numbers = range(1, len(values) + 1)
    left.semilogy(numbers, values, "o-", markersize=3)
    if math.isfinite(sketch.error_bound) and sketch.error_bound > 0:
        left.axhline(
            math.sqrt(sketch.error_bound), color="gray", linestyle="--", label="√ of the error bound"
        )
        left.legend()
    left.set(xlabel="direction", ylabel="singular value", title=f"{name}: {type(sketch).__name__}")
    right.plot(numbers, 100 * explained, "o-", markersize=3)
    right.set(xlabel="directions", ylabel="% of the rows' energy", ylim=(0, None))
    save(figure, path, dpi=150)
    plt.close(figure)


def _pyplot() -> ModuleType:
    import matplotlib as mpl  # optional

    mpl.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _facts(sketch: Sketch) -> Header:
    return {
        "class": type(sketch).__name__,
        "parameters": sketch.params,
        "rows_seen": sketch.rows_seen,
        "features": sketch.n_features,
        "squared_norm": sketch.squared_norm,
        "error_bound": sketch.error_bound if math.isfinite(sketch.error_bound) else None,
        "ridge": sketch.ridge,
        "singular_values": sketch.singular_values_.tolist(),
        "explained_variance_ratio": sketch.explained_variance_ratio_.tolist(),
    }


def _page(path: str, sketch: Sketch) -> list[str]:
    total, bound = sketch.squared_norm, sketch.error_bound
    certified = "none for this kind"
    if math.isfinite(bound):
        certified = f"{number(bound)}, {bound / total if total else 0:.3%} of the squared norm"
    lines = [
        f"{path}: {sketch!r}",
        f"  rows seen     {amount(sketch.rows_seen)}",
        f"  features      {amount(sketch.n_features)}",
        f"  squared norm  {number(total)}",
        f"  error bound   {certified}",
        f"  ridge         {number(sketch.ridge)}",
    ]
    values = sketch.singular_values_
    if len(values):
        explained = sketch.explained_variance_ratio_.sum()
        lines += ["", f"singular values ({len(values)} directions, {explained:.1%} of the squared norm)"]
        lines += _bars([(str(i), float(value)) for i, value in enumerate(values[:_SHOWN], 1)])
        if len(values) > _SHOWN:
            lines.append(f"  and {amount(len(values) - _SHOWN)} smaller ones")
    return lines


def _bars(rows: list[tuple[str, float]]) -> list[str]:
    """Lines with a name, a number and a bar of proportional length."""
    width = max(len(name) for name, _ in rows)
    largest = max(value for _, value in rows) or 1.0
    full = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    return [
        f"  {name:>{width}}  {number(value):>12}  {full * math.ceil(_BAR * value / largest)}"
        for name, value in rows
    ]
