"""`skn merge`: one sketch out of several."""

from __future__ import annotations

import argparse

from sketchnewton import model_file
from sketchnewton.cli.console import Console
from sketchnewton.cli.errors import CommandError
from sketchnewton.cli.files import check_model_place, check_readable
from sketchnewton.cli.sketch import deliver
from sketchnewton.cli.spectrum import check_plot

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Merge the files that `args` name, in their order."""
    for path in args.sketches:
        check_readable(path)
    check_model_place(args.output)
    check_plot(args.plot)
    first, *others = args.sketches
    merged = model_file.load_sketch(first)
    for path in others:
        sketch = model_file.load_sketch(path)
        width = max(merged.n_features, sketch.n_features)
        try:
            merged.widen(width)
            sketch.widen(width)
            merged.merge(sketch)
        except ValueError as error:
            raise CommandError(f"{path}: {error}") from None
    deliver(args, args.output, merged, Console(args.quiet))
    return 0
